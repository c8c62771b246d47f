"""Shares of a day: what members and chats may use, and what they have. Shared by requests to models and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from config.budgets import AllowanceSettings, BudgetsSettings
from function_calls.context import MessageContext
from function_calls.profile import ChatProfile
from function_calls.turn import Notice, Turn
from services.clock import Clock
from services.store import budgets
from services.store.port import Store, Write

MICROS = 1_000_000
"""Money is counted in millionths, since the store has whole numbers."""
Kind = Literal["requests", "tokens", "money", "units"]
Whose = Literal["member", "chat"]
Holders = Mapping[Whose, str]
"""The keys of who shares what is used."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of the settings."""

    whose: Whose
    kind: Kind
    most: int

    @property
    def setting(self) -> str:
        """Where it is set."""
        return f"budgets.{self.whose}.{self.kind}"


@dataclass(frozen=True, slots=True)
class Share:
    """A part of one limit that one message takes."""

    limit: Limit
    holder: str
    day: str
    amount: int

    def take(self) -> Write:
        """The write that takes it, or undoes its unit."""
        return budgets.take(self.holder, self.limit.kind, self.day, self.amount, self.limit.most)


class Shares:
    """The limits of some kinds, and what is left of them."""

    def __init__(self, settings: BudgetsSettings, kinds: Sequence[Kind], store: Store, clock: Clock) -> None:
        self.limits = [*_limits("member", settings.member, kinds), *_limits("chat", settings.chat, kinds)]
        self._store = store
        self._clock = clock

    def wanted(self, context: MessageContext, turn: Turn, amounts: Mapping[Kind, int]) -> list[Share]:
        """The shares that a message would take. An estimate above a whole day's share takes all of it: it is no more
        than an estimate."""
        holders: Holders = {"member": context.sender.ref.key, "chat": context.chat.key}
        return self._of(holders, turn.profile(), amounts)

    def wanted_by_chat(
        self, chat: str, profile: ChatProfile, amounts: Mapping[Kind, int], *, member: str = ""
    ) -> list[Share]:
        """The shares of the chat with that key, and of the member with the key `member`; of the chat alone for what no
        member asked for."""
        holders: Holders = {"member": member, "chat": chat} if member else {"chat": chat}
        return self._of(holders, profile, amounts)

    def _of(self, holders: Holders, profile: ChatProfile, amounts: Mapping[Kind, int]) -> list[Share]:
        day = self._clock.now().astimezone(profile.timezone).date().isoformat()
        return [
            Share(limit, f"{limit.whose} {holders[limit.whose]}", day, _amount(limit, amounts[limit.kind]))
            for limit in self.limits
            if limit.whose in holders and amounts.get(limit.kind)
        ]

    async def exceeded(self, wanted: Sequence[Share]) -> Share | None:
        """The first of `wanted` for which too little is left."""
        seen: dict[str, dict[str, int]] = {}
        for share in wanted:
            if share.holder not in seen:
                rows = await self._store.read(budgets.used(share.holder, share.day))
                seen[share.holder] = {row["kind"]: row["used"] for row in rows}
            if seen[share.holder].get(share.limit.kind, 0) + share.amount > share.limit.most:
                return share
        return None

    async def is_news(
        self, context: MessageContext, turn: Turn, share: Share, text: str, *, is_owed: bool = False
    ) -> bool:
        """Whether nobody was told yet, in this chat and on this day, that this share is used up; what was said in
        private was told to that member alone. It is told when `text` says so
        in what `turn` ends with; where it `is_owed`, whatever a model says."""
        told = f"{context.chat.key} {context.sender.ref.key}" if context.private else context.chat.key
        holder = f"{budgets.TOLD}{told} {share.holder}"
        rows = await self._store.read(budgets.used(holder, share.day))
        if any(row["kind"] == share.limit.kind for row in rows):
            return False
        turn.notices += (Notice(text, budgets.tell(holder, share.limit.kind, share.day), is_owed),)
        return True


def _limits(whose: Whose, allowance: AllowanceSettings, kinds: Sequence[Kind]) -> list[Limit]:
    limits: list[Limit] = []
    for kind in kinds:
        most = getattr(allowance, kind)
        if most is not None:
            limits.append(Limit(whose, kind, round(most * MICROS) if kind == "money" else most))
    return limits


def _amount(limit: Limit, amount: int) -> int:
    is_estimate = limit.kind in ("tokens", "money")
    return min(amount, limit.most) or 1 if is_estimate else amount
