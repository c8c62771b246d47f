"""Look-up of members by name."""

from __future__ import annotations

import pytest

from services.chats.members import KnownMember, SeveralMembers, UnknownMember, called, times_mentioned
from services.refs import MemberRef


def member(key: str, name: str) -> KnownMember:
    return KnownMember(MemberRef("test", "bot", key), name)


ANN, BOB, BOBBY = member("1", "Ann Lee"), member("2", "Bob"), member("3", "Bob Ross")
ALL = [ANN, BOB, BOBBY]
STRANGER = MemberRef("test", "bot", "9")


@pytest.mark.parametrize(
    ("name", "found"), [("Ann Lee", ANN), ("@ann", ANN), ("ANN  LEE", ANN), ("bob", BOB), ("Bob Ross", BOBBY)]
)
def test_a_member_is_known_by_the_whole_name_or_its_first_word(name: str, found: KnownMember) -> None:
    assert called(name, ALL) == found


def test_two_of_one_name_are_told_apart_by_who_is_mentioned() -> None:
    twins = [member("4", "Max"), member("5", "Max")]
    with pytest.raises(SeveralMembers) as several:
        called("max", twins)
    assert several.value.names == ("Max", "Max")
    assert called("max", twins, [twins[1].ref]) == twins[1]


def test_somebody_who_is_mentioned_need_not_have_spoken() -> None:
    assert called("@Zoe", ALL, [STRANGER], as_mention=True) == KnownMember(STRANGER, "Zoe")
    with pytest.raises(UnknownMember):
        called("@Zoe", ALL, [ANN.ref], as_mention=True)
    with pytest.raises(UnknownMember):
        called("@Zoe", ALL, [STRANGER, MemberRef("test", "bot", "10")], as_mention=True)
    with pytest.raises(UnknownMember):
        called("Zoe", ALL, [STRANGER])


@pytest.mark.parametrize(
    ("text", "times"),
    [("remind @Zoe Lee, and @ZOE  LEE", 2), ("remind Zoe Lee", 0), ("@Zoe Lees", 0), ("@Zoe Lee明天", 1)],
)
def test_a_name_is_a_mention_only_with_its_sign(text: str, times: int) -> None:
    assert times_mentioned("@zoe lee", text) == times


def test_an_unknown_name_has_the_near_ones_beside_it() -> None:
    with pytest.raises(UnknownMember) as unknown:
        called("Anne Lee", ALL)
    assert unknown.value.similar == ("Ann Lee",)
