"""Daily budgets of members and chats: reservation before a request or run, settlement after it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from config.sections.bots import AllowanceSettings, BudgetsSettings, PriceSettings
from function_calls.checks.permissions import ALLOWED, PolicyDecision
from function_calls.context import MessageContext
from function_calls.failures import OVER_BUDGET
from function_calls.profile import ChatProfile
from function_calls.spec import FunctionResult, FunctionSpec
from function_calls.turn import Notice, Turn
from services.clock import Clock
from services.llm.encoding import encode_tools
from services.llm.model import ModelAnswer, ModelError, ModelRequest, Usage
from services.refs import ErrorCode, ModelProblem
from services.store.port import Conflict, Store, Write
from services.store.turns import budgets

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
        return self._of(holders, turn.input.profile(), amounts)

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
        turn.output.notices += (Notice(text, budgets.tell(holder, share.limit.kind, share.day), is_owed),)
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


_log = structlog.get_logger("budgets")
_BYTES_PER_TOKEN = 3
"""English has about four, Chinese about three."""
_LONGEST_ANSWER_TOKENS = 200_000
_NO_PRICE = PriceSettings()
_ANSWERED = frozenset({ModelProblem.ANSWER, ModelProblem.FILTERED})
"""The model worked, so it is to be paid for. After other errors it did not."""


class OverBudget(Exception):
    """A share of the day is used up. `text` is for the chat, empty where it was said before; `setting` names the
    limit."""

    def __init__(self, setting: str, text: str) -> None:
        super().__init__(setting)
        self.setting = setting
        self.text = text


@dataclass(frozen=True, slots=True)
class Reservation:
    """What was taken for one request."""

    shares: Sequence[Share]
    request_bytes: int


class RequestBudgets:
    """Budgets of requests to models."""

    def __init__(self, settings: BudgetsSettings, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.use(settings)

    def use(self, settings: BudgetsSettings) -> None:
        """From the next request on these settings hold. What was used of the day stays used."""
        self._settings = settings
        self._shares = Shares(settings, ("requests", "tokens", "money"), self._store, self._clock)

    @property
    def is_limited(self) -> bool:
        """Whether the settings have any such budget."""
        return bool(self._shares.limits)

    async def reserve(self, context: MessageContext, turn: Turn, request: ModelRequest) -> Reservation:
        """Take what `request` is likely to use, from all shares or none. Raises OverBudget."""
        size = _bytes_of(request)
        shares = self._shares.wanted(context, turn, self._estimate(size))
        over = await self._taken(shares)
        if over is not None:
            raise OverBudget(over.limit.setting, await self._words(context, turn, over))
        return Reservation(shares, size)

    async def reserve_for_chat(
        self, chat: str, profile: ChatProfile, request: ModelRequest, *, member: str = ""
    ) -> Reservation:
        """`reserve` for what is no round of a turn: from the shares of the chat with that key, and of the member with
        the key `member` where there is one."""
        size = _bytes_of(request)
        shares = self._shares.wanted_by_chat(chat, profile, self._estimate(size), member=member)
        over = await self._taken(shares)
        if over is not None:
            raise OverBudget(over.limit.setting, "")
        return Reservation(shares, size)

    def _estimate(self, size: int) -> dict[Kind, int]:
        """What a request of that many bytes is likely to use."""
        prompt, completion = math.ceil(size / _BYTES_PER_TOKEN), self._settings.answer_tokens
        # Nobody knows yet who will answer: the dearest might.
        prices = self._settings.prices.values()
        money = max((_money(price, Usage(prompt, completion)) for price in prices), default=0)
        return {"requests": 1, "tokens": prompt + completion, "money": money}

    async def _taken(self, shares: Sequence[Share]) -> Share | None:
        """None when all of `shares` were taken, else one of which too little is left, and nothing was taken."""
        try:
            await self._store.commit([share.take() for share in shares])
        except Conflict:
            return await self._shares.exceeded(shares) or shares[0]
        return None

    def settled(self, reservation: Reservation, answer: ModelAnswer) -> list[Write]:
        """The writes that correct what was taken by what was used; to be written in one unit with the answer, so that
        it happens once, as the answer does."""
        usage = answer.usage
        if not _is_believable(usage, reservation):
            if usage != Usage():
                _log.warning("usage_not_believed", model=answer.by, prompt=usage.prompt, completion=usage.completion)
            return []
        price = self._settings.prices.get(answer.by, _NO_PRICE)
        used: dict[Kind, int] = {"tokens": usage.prompt + usage.completion, "money": _money(price, usage)}
        return [
            budgets.settle(share.holder, share.limit.kind, share.day, used[share.limit.kind] - share.amount)
            for share in reservation.shares
            if share.limit.kind in used and used[share.limit.kind] != share.amount
        ]

    def give_back(self, reservation: Reservation, error: ModelError) -> None:
        """The request gave nothing: what was taken is given back, unless the model worked all the same."""
        if error.trouble in _ANSWERED:
            return
        self._store.post(
            [budgets.settle(share.holder, share.limit.kind, share.day, -share.amount) for share in reservation.shares]
        )

    async def _words(self, context: MessageContext, turn: Turn, share: Share) -> str:
        texts = turn.input.profile().texts
        if share.limit.whose == "chat":
            text = texts.say("budgets.model_chat")
        else:
            text = texts.say("budgets.model_member", name=context.sender.name)
        return text if await self._shares.is_news(context, turn, share, text) else ""


class FunctionBudgets:
    """The policy `budget`: units that runs of functions cost."""

    def __init__(self, settings: BudgetsSettings, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.use(settings)

    def use(self, settings: BudgetsSettings) -> None:
        """From the next run on these settings hold. What was used of the day stays used."""
        self._shares = Shares(settings, ("units",), self._store, self._clock)
        # Without a limit nothing is counted.
        self._costs = settings.functions if self._shares.limits else {}

    def judge(
        self, context: MessageContext, spec: FunctionSpec, arguments: Any, turn: Turn
    ) -> PolicyDecision | Awaitable[PolicyDecision]:
        """ALLOWED for what costs nothing; else the writes that take what `spec` costs, or a refusal when too little is
        left."""
        cost = self._costs.get(spec.name)
        return ALLOWED if cost is None else self._taken(context, spec, cost, turn)

    async def _taken(self, context: MessageContext, spec: FunctionSpec, cost: int, turn: Turn) -> PolicyDecision:
        wanted = self._shares.wanted(context, turn, {"units": cost})
        share = await self._shares.exceeded(wanted)
        if share is None:
            return PolicyDecision(writes=tuple(one.take() for one in wanted))
        text = turn.input.profile().texts.say(f"budgets.units_{share.limit.whose}", name=spec.name)
        is_told = not await self._shares.is_news(context, turn, share, text, is_owed=True)
        metadata = {"refused_by": share.limit.setting, OVER_BUDGET: "told" if is_told else "news"}
        return PolicyDecision(replace(FunctionResult.fail(ErrorCode.REFUSED, text), metadata=metadata))


def _bytes_of(request: ModelRequest) -> int:
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    size += sum(len(call.raw) for message in request.messages for call in message.calls)
    return size + (len(encode_tools(request.offer)) if request.offer is not None else 0)


def _is_believable(usage: Usage, reservation: Reservation) -> bool:
    """No request has more tokens than bytes, beside some that providers add. One wrong count must not lock a chat
    out."""
    if usage == Usage():
        return False
    return usage.prompt <= reservation.request_bytes + 10_000 and usage.completion <= _LONGEST_ANSWER_TOKENS


def _money(price: PriceSettings, usage: Usage) -> int:
    """In millionths: prices are for a million tokens."""
    return math.ceil(usage.prompt * price.prompt + usage.completion * price.completion)
