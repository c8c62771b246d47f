"""Shared expenses of a chat: entries, balances and the transfers that settle them. Amounts are integers in hundredths
of the currency."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import ClassVar, NamedTuple

from pydantic import BaseModel, Field

from services.chats.documents import Document
from services.patterns import lazy_pattern
from services.refs import ErrorCode, RequestProblem
from services.scripts.values import as_amount

MOST_ENTRIES = 500
MOST_AMOUNT = 1_000_000_000
_MOST_EXACT = 12
_SIGNS = {
    "€": "EUR",
    "$": "USD",
    "£": "GBP",
    "¥": "CNY",
    "￥": "CNY",
    "円": "JPY",
    "元": "CNY",
    "块": "CNY",
    "块钱": "CNY",
    "人民币": "CNY",
    "欧元": "EUR",
    "美元": "USD",
    "日元": "JPY",
}
_CODES = (
    "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF INR ISK JPY KRW MXN NOK NZD PLN RON SEK SGD THB TWD UAH USD VND ZAR"
)
_MONEY = "|".join([*sorted(map(re.escape, _SIGNS), key=len, reverse=True), rf"(?:{_CODES.replace(' ', '|')})(?![A-Z])"])
_LINE = lazy_pattern(
    rf"({_MONEY})?\s*(\d[\d.,]*)(?![\d.,])\s*({_MONEY})?[\s，,]*(\S.*?)(?:\s+(?:for\b|给|为)\s*(\S.*?))?",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN_NAMES = lazy_pattern(r"\s*(?:[,，、;；&]|\band\b|和|与|跟)\s*", re.IGNORECASE)
_WITHOUT_CENTS = frozenset({"CLP", "ISK", "JPY", "KRW", "VND", "XAF", "XOF"})

Balances = Mapping[str, Mapping[str, int]]
"""By currency, and by key of the member: positive if the others owe it to the member. The sum is zero."""


class Entry(BaseModel):
    """An expense, or a payment that settles debts."""

    number: int
    payer: str
    """Key of the member who paid."""
    cents: int
    currency: str
    what: str
    """Empty for a payment."""
    shares: dict[str, int]
    """Part of the amount by key of each member for whom it was paid; the sum is `cents`."""
    is_deleted: bool = False


class Transfer(NamedTuple):
    """A payment from one member to another that settles debts."""

    payer: str
    receiver: str
    cents: int
    currency: str


class Expenses(Document):
    """Entries of a chat. Beyond `MOST_ENTRIES`, the oldest are kept only in the balances."""

    kind: ClassVar[str] = "expenses"
    last: int = 0
    currency: str = ""
    """Currency of the latest entry; empty before the first one with a currency."""
    entries: list[Entry] = Field(default_factory=list)
    carried: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Balances from entries that are no longer kept."""

    def add(self, payer: str, amount: float | Decimal, currency: str | None, what: str, members: Sequence[str]) -> int:
        """Add an expense that `members` share equally, and return its number; `currency` None: the latest one. Cents
        that cannot be divided go to one member each, in the order of the keys, from a place that moves with each entry.
        Raises RequestProblem for an amount that is not positive, too large, or has fractions of a cent."""
        currency = currency_code(currency) if currency else self.currency if currency is None else ""
        unit, cents = 100 if currency in _WITHOUT_CENTS else 1, Decimal(str(amount)) * 100
        if not 0 < cents <= MOST_AMOUNT * 100 or cents % unit:
            raise RequestProblem("expenses.bad_amount", ErrorCode.BAD_ARGUMENTS, most=MOST_AMOUNT)
        self.last, self.currency, order = self.last + 1, currency, sorted(set(members))
        each, rest = divmod(int(cents) // unit, len(order))
        shares = {member: (each + ((at + self.last) % len(order) < rest)) * unit for at, member in enumerate(order)}
        entry = Entry(number=self.last, payer=payer, cents=int(cents), currency=currency, what=what, shares=shares)
        self.entries.append(entry)
        while len(self.entries) > MOST_ENTRIES:
            _book(self.carried, self.entries.pop(0))
        return self.last

    def find(self, number: int | str) -> Entry:
        """The entry with that number. Raises RequestProblem."""
        for entry in self.entries:
            if entry.number == number:
                return entry
        raise RequestProblem("expenses.no_entry", ErrorCode.NOT_FOUND, number=number)

    def balances(self) -> Balances:
        """What each member has paid minus their shares; settled members are left out."""
        found = {currency: dict(members) for currency, members in self.carried.items()}
        for entry in self.entries:
            _book(found, entry)
        return {
            currency: {member: cents for member, cents in sorted(members.items()) if cents}
            for currency, members in sorted(found.items())
            if any(members.values())
        }

    def transfers(self) -> Sequence[Transfer]:
        """Payments that settle all balances, by currency. Their number is minimal if at most 12 members have a balance
        in the currency, else less than the number of these members."""
        return [
            Transfer(payer, receiver, cents, currency)
            for currency, members in self.balances().items()
            for group in _zero_groups(list(members.items()))
            for payer, receiver, cents in _settled(dict(group))
        ]


def read_line(line: str) -> tuple[float, str, str, Sequence[str]] | None:
    """Amount, currency or empty, description, and names of `30 EUR pizza for Anna, Ben`; None without an amount."""
    found = _LINE.fullmatch(line.strip())
    amount = as_amount(found[2].rstrip(".,")) if found else None
    if found is None or amount is None:
        return None
    names = [name for name in _BETWEEN_NAMES.split(found[5] or "") if name]
    return amount, found[1] or found[3] or "", found[4].strip(), names


def currency_code(text: str) -> str:
    """Code of the currency with that sign or code. Raises RequestProblem."""
    code = _SIGNS.get(text.strip(), text.strip().upper())
    if len(code) != 3 or not (code.isascii() and code.isalpha()):
        raise RequestProblem("expenses.bad_currency", ErrorCode.BAD_ARGUMENTS, currency=text)
    return code


def in_words(cents: int, currency: str) -> str:
    """The amount without its sign, such as `12.50 EUR`."""
    number = str(abs(cents) // 100) if currency in _WITHOUT_CENTS else f"{abs(cents) // 100}.{abs(cents) % 100:02}"
    return f"{number} {currency}".rstrip()


def _book(balances: dict[str, dict[str, int]], entry: Entry) -> None:
    if entry.is_deleted:
        return
    members = balances.setdefault(entry.currency, {})
    members[entry.payer] = members.get(entry.payer, 0) + entry.cents
    for member, cents in entry.shares.items():
        members[member] = members.get(member, 0) - cents


def _zero_groups(balances: Sequence[tuple[str, int]]) -> Sequence[Sequence[tuple[str, int]]]:
    """`balances` in the largest number of groups with the sum zero, found with a table of all subsets; one group if
    there are more than 12. A group of n members needs at most n - 1 transfers."""
    if len(balances) > _MOST_EXACT:
        return [balances]
    sums, most, last = [0], [0], [0]
    for subset in range(1, 1 << len(balances)):
        lowest = (subset & -subset).bit_length() - 1
        sums.append(sums[subset & (subset - 1)] + balances[lowest][1])
        count, removed = max((most[subset ^ (1 << at)], -at) for at in range(len(balances)) if subset >> at & 1)
        most.append(count + (sums[subset] == 0))
        last.append(-removed)
    groups: list[list[tuple[str, int]]] = []
    subset = len(sums) - 1
    while subset:
        if sums[subset] == 0:
            groups.append([])
        groups[-1].append(balances[last[subset]])
        subset ^= 1 << last[subset]
    return groups


def _settled(balances: dict[str, int]) -> list[tuple[str, str, int]]:
    """Payer, receiver and amount of payments between the largest debtor and the largest creditor until all are zero."""
    found: list[tuple[str, str, int]] = []
    while any(balances.values()):
        payer = min(balances, key=lambda member: (balances[member], member))
        receiver = max(balances, key=lambda member: (balances[member], member))
        cents = min(-balances[payer], balances[receiver])
        balances[payer] += cents
        balances[receiver] -= cents
        found.append((payer, receiver, cents))
    return found
