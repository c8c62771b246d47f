"""Balances and settlements: sums, divided cents, the number of transfers, and amounts as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.chats.expenses import MOST_ENTRIES, Expenses, read_line
from services.refs import RequestProblem

MEMBERS = [f"test:bot:{letter}" for letter in "abcdefghijklmnop"]
people = st.lists(st.sampled_from(MEMBERS[:8]), min_size=1, unique=True)
purchases = st.tuples(st.sampled_from(MEMBERS[:8]), st.integers(1, 10**7), st.sampled_from(["", "EUR", "JPY"]), people)


def ledger(entries: Sequence[tuple[str, int, str, list[str]]]) -> Expenses:
    state = Expenses()
    for payer, cents, currency, members in entries:
        state.add(payer, cents if currency == "JPY" else cents / 100, currency, "food", members)
    return state


@given(st.lists(purchases, max_size=20), st.sets(st.integers(1, 20)))
def test_balances_of_each_currency_sum_to_zero_whatever_is_deleted(
    entries: list[tuple[str, int, str, list[str]]], deleted: set[int]
) -> None:
    state = ledger(entries)
    for entry in state.entries:
        entry.is_deleted = entry.number in deleted
        assert sum(entry.shares.values()) == entry.cents
        assert max(entry.shares.values()) - min(entry.shares.values()) <= (100 if entry.currency == "JPY" else 1)
    restored = Expenses.model_validate_json(state.model_dump_json())
    assert all(sum(members.values()) == 0 for members in state.balances().values())
    assert restored.balances() == state.balances()


@given(st.lists(purchases, max_size=12))
def test_everything_is_settled_after_all_transfers(entries: list[tuple[str, int, str, list[str]]]) -> None:
    state = ledger(entries)
    for transfer in state.transfers():
        amount = transfer.cents // 100 if transfer.currency == "JPY" else transfer.cents / 100
        state.add(transfer.payer, amount, transfer.currency, "", [transfer.receiver])
    assert state.balances() == {}
    assert state.transfers() == []


@settings(deadline=None)
@given(st.lists(st.integers(-4, 4).filter(bool), min_size=2, max_size=7))
def test_the_number_of_transfers_is_minimal(cents: list[int]) -> None:
    balances = (*cents, -sum(cents)) if sum(cents) else tuple(cents)
    state = Expenses(carried={"EUR": dict(zip(MEMBERS, balances, strict=False))})
    assert len(state.transfers()) == fewest(balances)


@cache
def fewest(balances: tuple[int, ...]) -> int:
    """Minimal number of transfers, by trying all transfers that settle the first debt or credit."""
    first, *others = balances
    if not others:
        return 0
    if first == 0:
        return fewest(tuple(others))
    tries = [at for at, other in enumerate(others) if first * other < 0]
    return 1 + min(fewest((*others[:at], others[at] + first, *others[at + 1 :])) for at in tries)


def test_many_members_are_settled_with_fewer_transfers_than_members() -> None:
    state = Expenses()
    for number, payer in enumerate(MEMBERS):
        state.add(payer, round(10 + number * 3.37, 2), "EUR", "food", MEMBERS)
    assert len(state.transfers()) < len(MEMBERS)


def test_cents_that_cannot_be_divided_are_borne_in_turn() -> None:
    state = ledger([(MEMBERS[0], 1000, "EUR", MEMBERS[:3])] * 3)
    assert [sorted(entry.shares.values()) for entry in state.entries] == [[333, 333, 334]] * 3
    assert state.balances() == {"EUR": {MEMBERS[0]: 2000, MEMBERS[1]: -1000, MEMBERS[2]: -1000}}


def test_old_entries_are_kept_in_the_balances() -> None:
    state = ledger([(MEMBERS[0], 200, "EUR", MEMBERS[:2])] * (MOST_ENTRIES + 5))
    assert len(state.entries) == MOST_ENTRIES
    assert state.balances() == {"EUR": {MEMBERS[0]: 100 * (MOST_ENTRIES + 5), MEMBERS[1]: -100 * (MOST_ENTRIES + 5)}}


@pytest.mark.parametrize(("amount", "currency"), [(0, "EUR"), (1.005, "EUR"), (10.5, "JPY"), (1e12, ""), (1, "euros")])
def test_an_amount_that_is_no_money_is_refused(amount: float, currency: str) -> None:
    with pytest.raises(RequestProblem):
        Expenses().add(MEMBERS[0], amount, currency, "food", MEMBERS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("30 pizza", (30, "", "pizza", [])),
        ("12,50 € pizza for Anna, Ben and Cem", (12.5, "€", "pizza", ["Anna", "Ben", "Cem"])),
        ("€12.50 pizza", (12.5, "€", "pizza", [])),
        ("1,234.50 usd flights home for us", (1234.5, "usd", "flights home", ["us"])),
        ("30 euros worth of tea", (30, "", "euros worth of tea", [])),
        ("30元 披萨 给 小安、小本", (30, "元", "披萨", ["小安", "小本"])),
        ("99块钱火锅", (99, "块钱", "火锅", [])),
        ("pizza", None),
        ("30", None),
    ],
)
def test_a_line_is_read_as_it_is_written(line: str, expected: object) -> None:
    assert read_line(line) == expected


@given(st.text(alphabet="0123456789.,€EURfor给 ,\n", max_size=60))
def test_any_line_is_an_expense_or_none(line: str) -> None:
    written = read_line(line)
    assert written is None or written[2]
