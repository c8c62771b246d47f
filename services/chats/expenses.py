"""Shared expenses of a chat: entries, balances and the transfers that settle them. Amounts are integers in hundredths
of the currency."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import ClassVar, NamedTuple

from pydantic import BaseModel

from services.chats.documents import Document
from services.patterns import lazy_pattern, one_line
from services.scripts.values import as_amount

MOST_ENTRIES = 500
MOST_AMOUNT = 1_000_000_000
_MOST_EXACT = 12
_SIGNS = {
    **{"€": "EUR", "$": "USD", "£": "GBP", "¥": "CNY", "￥": "CNY", "円": "JPY"},
    **{"元": "CNY", "块": "CNY", "块钱": "CNY", "人民币": "CNY", "欧元": "EUR", "美元": "USD", "日元": "JPY"},
}
_CODES = (
    "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF INR ISK JPY KRW MXN NOK NZD PLN RON SEK SGD THB TWD UAH USD VND ZAR"
)
_MONEY = "|".join([*sorted(map(re.escape, _SIGNS), key=len, reverse=True), rf"(?:{_CODES.replace(' ', '|')})(?![A-Z])"])
_LINE = lazy_pattern(rf"({_MONEY})?\s*(\d[\d.,]*)\s*({_MONEY})?[\s，,]*(\S.*)", re.IGNORECASE | re.DOTALL)
_FOR = lazy_pattern(r"(.*\S)(?:\s+for\s+|\s*(?:给|为)\s*|\s+(?=@))(\S.*)", re.IGNORECASE | re.DOTALL)
_BETWEEN_NAMES = lazy_pattern(r"\s*(?:[,，、;；&]|\band\b|和|与|跟)\s*", re.IGNORECASE)
_WITHOUT_CENTS = frozenset({"CLP", "ISK", "JPY", "KRW", "VND", "XAF", "XOF"})

Balances = Mapping[str, Mapping[str, int]]
"""By currency, and by key of the member: positive if the others owe it to the member. The sum is zero."""


class NoEntry(LookupError):
    """There is no entry with that number."""


class ForeignEntry(PermissionError):
    """The entry was made by another member."""


class BadAmount(ValueError):
    """Not a positive amount of whole units of the currency, or too large."""


class BadCurrency(ValueError):
    """Neither a currency's sign nor a code of three letters."""


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


class Written(NamedTuple):
    """An expense as it was typed."""

    amount: float
    currency: str
    """Sign or code; empty if it has none."""
    what: str
    """The rest of the line without the names."""
    names: Sequence[str]
    """What follows the last "for", which may be a part of the description: names of members, or empty."""
    rest: str
    """The rest of the line with the names."""


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
    entries: list[Entry] = []
    carried: dict[str, dict[str, int]] = {}
    """Balances from entries that are no longer kept."""

    def add(self, payer: str, cents: int, currency: str, what: str, members: Sequence[str]) -> Entry:
        """Add an expense that `members` share equally, and make its currency that of the chat. Cents that cannot be
        divided go to one member each, in the order of the keys, from a position that moves with each entry."""
        self.last += 1
        unit, order = 100 if currency in _WITHOUT_CENTS else 1, sorted(set(members))
        each, rest = divmod(cents // unit, len(order))
        turned = [order[(at + self.last) % len(order)] for at in range(len(order))]
        shares = {member: (each + (at < rest)) * unit for at, member in enumerate(turned)}
        entry = Entry(number=self.last, payer=payer, cents=cents, currency=currency, what=what, shares=shares)
        self.currency = currency
        self.entries.append(entry)
        while len(self.entries) > MOST_ENTRIES:
            _book(self.carried, self.entries.pop(0))
        return entry

    def pay(self, transfer: Transfer) -> Entry:
        """Add a payment."""
        return self.add(transfer.payer, transfer.cents, transfer.currency, "", [transfer.receiver])

    def delete(self, number: int, by: str, *, any_author: bool, restore: bool = False) -> Entry:
        """Delete the entry with that number, or with `restore` make it valid again. Permitted to its payer, and to the
        receiver of a payment. Raises NoEntry and ForeignEntry."""
        entry = next((one for one in self.entries if one.number == number), None)
        if entry is None:
            raise NoEntry(number)
        if not any_author and by != entry.payer and (entry.what or by not in entry.shares):
            raise ForeignEntry(number)
        entry.is_deleted = not restore
        return entry

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


def read_line(line: str) -> Written | None:
    """Parse a line such as `30 EUR pizza for Anna, Ben`; None if it does not begin with an amount."""
    found = _LINE.fullmatch(line.strip())
    amount = as_amount(found[2].rstrip(".,")) if found else None
    if found is None or amount is None:
        return None
    rest = one_line(found[4])
    named = _FOR.fullmatch(rest)
    names = [name for name in _BETWEEN_NAMES.split(named[2]) if name] if named else []
    return Written(amount, found[1] or found[3] or "", named[1] if named else rest, names, rest)


def hundredths(amount: float, currency: str) -> int:
    """`amount`, as it was written, in hundredths. Raises BadAmount."""
    cents = Decimal(str(amount)) * 100
    if not 0 < cents <= MOST_AMOUNT * 100 or cents % (100 if currency in _WITHOUT_CENTS else 1):
        raise BadAmount(amount)
    return int(cents)


def in_words(cents: int, currency: str) -> str:
    """The amount without a sign, such as `12.50 EUR`."""
    number = str(abs(cents) // 100) if currency in _WITHOUT_CENTS else f"{abs(cents) // 100}.{abs(cents) % 100:02}"
    return f"{number} {currency}".rstrip()


def currency_code(text: str) -> str:
    """Code of the currency with that sign or code. Raises BadCurrency."""
    code = _SIGNS.get(text.strip(), text.strip().upper())
    if len(code) != 3 or not (code.isascii() and code.isalpha()):
        raise BadCurrency(text)
    return code


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
