"""Links between accounts of one person on several networks, made by a code that both accounts confirm."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal, NamedTuple

from services.clock import Clock
from services.refs import ChatRef, MemberRef, RequestProblem
from services.store.chats import member_links
from services.store.port import Conflict, Row, Store, Write
from services.store.turns import audit, budgets

COUNTER = "member_links"
"""Change counter of the links."""
CODE_MINUTES = 10
"""How long a code can be redeemed, and how long its redemption can be accepted."""
MOST_ACCOUNTS = 10
MOST_CODES_PER_DAY = 20
MOST_ATTEMPTS_PER_DAY = 10
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Without letters and digits that look alike."""
_CODE_CHARS = 8


LinkProblem = Literal[
    "unknown_code", "own_code", "already_linked", "too_many_codes", "too_many_attempts", "too_many_accounts"
]
"""Why accounts cannot be linked. `unknown_code`: unknown, expired, used, or of another member."""


class Account(NamedTuple):
    """An account of a person."""

    member: MemberRef
    name: str
    """Display name at the time of the link."""
    chat: ChatRef
    """Private chat with the bot, in which the account was linked."""
    language: str
    """Language of the bot's texts in that chat."""


class MemberLinks:
    """Links between accounts. Links carry no roles: every role belongs to an account. Call `load` first."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._persons: dict[str, str] = {}

    async def load(self) -> None:
        """Load all links for `person_of`. Raises StoreError."""
        self._persons = {row["member"]: row["person"] for row in await self._store.read(member_links.EVERYTHING)}

    def person_of(self, member: str) -> str:
        """The same key for all linked accounts: the key of one of them, or `member` without links; from memory."""
        return self._persons.get(member, member)

    async def others_of(self, member: MemberRef) -> Sequence[Account]:
        """The other accounts of the member's person; empty without links."""
        return [one for one in await self._accounts_of(member) if one.member != member]

    async def new_code(self, account: Account) -> str:
        """A new code of the account, which replaces an earlier one. Raises RequestProblem after too many on one day."""
        await self._count(account.member, "codes", MOST_CODES_PER_DAY, "too_many_codes")
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_CHARS))
        member, name, chat, language = _values(account)
        issued = member_links.issue(
            code, member=member, name=name, chat=chat, language=language, expires_ms=self._expires_ms()
        )
        await self._store.commit([issued])
        return code

    async def claim(self, code: str, account: Account, *, call_key: str) -> Account:
        """Redeem the code of another account, which has to accept; returns that account. Each attempt counts, and a
        repeated call succeeds again. Raises RequestProblem."""
        await self._count(account.member, "attempts", MOST_ATTEMPTS_PER_DAY, "too_many_attempts")
        row = await self._found(code)
        issuer = Account(MemberRef.parse(row["member"]), row["name"], ChatRef.parse(row["chat"]), row["language"])
        member, name, chat, language = _values(account)
        if issuer.member == account.member:
            raise _problem("own_code")
        await self._check(issuer.member, account.member)
        claimed = member_links.claim(
            row["code"],
            by=member,
            name=name,
            chat=chat,
            language=language,
            in_call=call_key,
            now_ms=self._clock.now_ms(),
            expires_ms=self._expires_ms(),
        )
        await self._commit([claimed])
        return issuer

    async def accept(self, code: str, account: Account, *, call_key: str) -> Account:
        """Link the account that has redeemed this account's code, and return it. A repeated call succeeds again. Raises
        RequestProblem."""
        claimer, ended = await self._claimed(code, account.member, call_key)
        if self.person_of(claimer.member.key) != self.person_of(account.member.key):
            await self._check(account.member, claimer.member)
        await self._commit([ended, *member_links.link(_values(account), _values(claimer)), audit.touch(COUNTER)])
        await self.load()
        return claimer

    async def reject(self, code: str, member: MemberRef, *, call_key: str) -> Account:
        """Reject the account that has redeemed the member's code, and return it. The code cannot be used again. Raises
        RequestProblem for an unknown code."""
        claimer, ended = await self._claimed(code, member, call_key)
        await self._commit([ended])
        return claimer

    async def dissolve(self, member: MemberRef) -> Sequence[Account]:
        """Delete all links of the member's person and the codes that the member has issued or redeemed; returns the
        other accounts, empty without links."""
        others = await self.others_of(member)
        await self._store.commit([*member_links.dissolve(member.key), audit.touch(COUNTER)])
        await self.load()
        return others

    async def _accounts_of(self, member: MemberRef) -> Sequence[Account]:
        rows = await self._store.read(member_links.of_person(member.key))
        return [
            Account(MemberRef.parse(row["member"]), row["name"], ChatRef.parse(row["chat"]), row["language"])
            for row in rows
        ]

    async def _check(self, first: MemberRef, second: MemberRef) -> None:
        """Raise RequestProblem if they are linked already, or would have too many accounts together."""
        if self.person_of(first.key) == self.person_of(second.key):
            raise _problem("already_linked")
        if sum([len(await self._accounts_of(one)) or 1 for one in (first, second)]) > MOST_ACCOUNTS:
            raise _problem("too_many_accounts")

    async def _claimed(self, code: str, member: MemberRef, call_key: str) -> tuple[Account, Write]:
        """The account that has redeemed the code, and the write that uses the code up, which ends in Conflict if it is
        not the member's. Raises RequestProblem."""
        row = await self._found(code)
        if row["claimed_by"] is None:
            raise _problem("unknown_code")
        ended = member_links.end(row["code"], member=member.key, in_call=call_key, now_ms=self._clock.now_ms())
        by, chat = MemberRef.parse(row["claimed_by"]), ChatRef.parse(row["claimed_chat"])
        return Account(by, row["claimed_name"], chat, row["claimed_language"]), ended

    async def _commit(self, writes: Sequence[Write]) -> None:
        try:
            await self._store.commit(writes)
        except Conflict:
            raise _problem("unknown_code") from None

    async def _found(self, code: str) -> Row:
        rows = await self._store.read(member_links.find("".join(one for one in code.upper() if one.isalnum())))
        if not rows:
            raise _problem("unknown_code")
        return rows[0]

    async def _count(self, member: MemberRef, kind: str, most: int, problem: LinkProblem) -> None:
        """Count one use of `kind` of the member today, in UTC. Raises RequestProblem if there were `most` already."""
        today = self._clock.now().date().isoformat()
        try:
            await self._store.commit([budgets.take(f"link {member.key}", kind, today, 1, most)])
        except Conflict:
            raise _problem(problem) from None

    def _expires_ms(self) -> int:
        return self._clock.now_ms() + CODE_MINUTES * 60_000


def _problem(what: LinkProblem) -> RequestProblem:
    return RequestProblem(f"links.problems.{what}", fields=["code"])


def _values(account: Account) -> tuple[str, str, str, str]:
    return account.member.key, account.name, account.chat.key, account.language
