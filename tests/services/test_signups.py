"""Sign-up lists under random members who join and leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chats.signups import Signup, Signups
from services.refs import RequestProblem

moves = st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=40)


@given(moves, st.integers(1, 4) | st.none())
def test_places_are_taken_in_the_order_of_joining_and_each_promotion_is_reported_once(
    acts: list[tuple[str, bool]], places: int | None
) -> None:
    signup, order = Signup(number=1, title="Pizza", author="a", places=places), list[str]()
    for member, joins in acts:
        before = set(signup.taking_part)
        promoted = signup.change(member, joins=joins)
        if joins and member not in order:
            order.append(member)
        elif not joins and member in order:
            order.remove(member)
        assert [*signup.taking_part, *signup.waiting] == order
        assert len(signup.taking_part) == min(len(order), places or len(order))
        assert set(promoted) == (set() if joins else set(signup.taking_part) - before)
        assert len(promoted) <= 1


def test_a_closed_list_cannot_be_joined_or_left() -> None:
    signup = Signup(number=1, title="Pizza", author="a", members=["b"], closed_ms=1)
    for joins in (True, False):
        with pytest.raises(RequestProblem, match=r"signup\.closed_before"):
            signup.change("b", joins=joins)
    assert signup.members == ["b"]


def test_closed_lists_are_forgotten_after_ninety_days_and_numbers_are_not_reused() -> None:
    state, day = Signups(), 86_400_000
    assert [state.create("Pizza", None, "a", 0) for _ in range(2)] == [1, 2]
    state.find(1).closed_ms = 0
    assert state.create("Pizza", None, "a", 89 * day) == 3
    assert [one.number for one in state.lists] == [1, 2, 3]
    assert state.create("Pizza", None, "a", 91 * day) == 4
    assert [one.number for one in state.lists] == [2, 3, 4]
