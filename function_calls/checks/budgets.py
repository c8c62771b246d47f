"""Daily budgets of members and chats: reservation before a request or run, settlement after it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from config.sections.bots import AllowanceSettings, BudgetsSettings, PriceSettings
from function_calls.call import CallRequest
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
"""Factor for money, which is stored as integers in millionths."""
Kind = Literal["requests", "tokens", "money", "units"]
LimitScope = Literal["member", "chat"]
Holders = Mapping[LimitScope, str]
"""Keys of the budget holders."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A configured limit."""

    scope: LimitScope
    kind: Kind
    most: int

    @property
    def setting(self) -> str:
        """The settings key."""
        return f"budgets.{self.scope}.{self.kind}"


@dataclass(frozen=True, slots=True)
class Share:
    """A reservation within a limit."""

    limit: Limit
    holder: str
    day: str
    amount: int

    def take(self) -> Write:
        """Write that takes the amount. If the limit would be exceeded, it fails with Conflict, and so does its unit."""
        return budgets.take(self.holder, self.limit.kind, self.day, self.amount, self.limit.most)


class Shares:
    """Limits of some kinds, with their remaining budgets."""

    def __init__(
        self,
        settings: BudgetsSettings,
        kinds: Sequence[Kind],
        store: Store,
        clock: Clock,
        person_of: Callable[[str], str],
    ) -> None:
        """`person_of` returns the same key for all linked accounts of a member, which share the member's budget."""
        self.limits = [*_limits("member", settings.member, kinds), *_limits("chat", settings.chat, kinds)]
        self._person_of = person_of
        self._store = store
        self._clock = clock

    def of(self, chat: str, member: str, profile: ChatProfile, amounts: Mapping[Kind, int]) -> list[Share]:
        """Shares that the member and chat with these keys would take; without `member`, of the chat alone. An estimate
        above the daily limit is reduced to the limit, because it is only an estimate."""
        holders: Holders = {"member": self._person_of(member), "chat": chat} if member else {"chat": chat}
        day = self.day(profile)
        return [
            Share(limit, f"{limit.scope} {holders[limit.scope]}", day, _amount(limit, amounts[limit.kind]))
            for limit in self.limits
            if limit.scope in holders and amounts.get(limit.kind)
        ]

    def day(self, profile: ChatProfile) -> str:
        """Today in the chat's time zone, as an ISO date."""
        return self._clock.now().astimezone(profile.timezone).date().isoformat()

    async def exceeded(self, shares: Sequence[Share]) -> Share | None:
        """First of `shares` that exceeds the remaining budget."""
        seen: dict[str, dict[str, int]] = {}
        for share in shares:
            if share.holder not in seen:
                rows = await self._store.read(budgets.used(share.holder, share.day))
                seen[share.holder] = {row["kind"]: row["used"] for row in rows}
            if seen[share.holder].get(share.limit.kind, 0) + share.amount > share.limit.most:
                return share
        return None

    async def is_first_notice(
        self, context: MessageContext, turn: Turn, share: Share, text: str, *, is_required: bool = False
    ) -> bool:
        """Whether this share was not yet reported as used up in this chat today. Private reports count for that member
        only. If so, adds a notice with `text` to the turn; an `is_required` notice is sent even if a model's reply
        omits it."""
        readers = f"{context.chat.key} {context.sender.ref.key}" if context.private else context.chat.key
        holder = f"{budgets.NOTICE_PREFIX}{readers} {share.holder}"
        rows = await self._store.read(budgets.used(holder, share.day))
        if any(row["kind"] == share.limit.kind for row in rows):
            return False
        turn.output.notices += (Notice(text, budgets.mark_notified(holder, share.limit.kind, share.day), is_required),)
        return True


def _limits(scope: LimitScope, allowance: AllowanceSettings, kinds: Sequence[Kind]) -> list[Limit]:
    limits: list[Limit] = []
    for kind in kinds:
        most = getattr(allowance, kind)
        if most is not None:
            limits.append(Limit(scope, kind, round(most * MICROS) if kind == "money" else most))
    return limits


def _amount(limit: Limit, amount: int) -> int:
    is_estimate = limit.kind in ("tokens", "money")
    return min(amount, limit.most) or 1 if is_estimate else amount


_log = structlog.get_logger("budgets")
_BYTES_PER_TOKEN = 3
"""Lower bound for estimates: English has about four bytes per token, Chinese about three."""
_PICTURE_BYTES = 4500
"""Bytes of text with about as many tokens as a picture."""
_LONGEST_ANSWER_TOKENS = 200_000
_NO_PRICE = PriceSettings()
_ANSWERED = frozenset({ModelProblem.ANSWER, ModelProblem.FILTERED})
"""Problems after which the provider charges for the request."""


class OverBudget(Exception):
    """A daily budget is used up. `text`: for the chat, empty if it was reported before. `setting`: key of the limit."""

    def __init__(self, setting: str, text: str) -> None:
        super().__init__(setting)
        self.setting = setting
        self.text = text


@dataclass(frozen=True, slots=True)
class Reservation:
    """Shares taken for a request of a member in a chat."""

    shares: Sequence[Share]
    request_bytes: int
    chat: str
    member: str
    """Empty for a request of the bot itself."""
    day: str


class RequestBudgets:
    """Budgets of model requests."""

    def __init__(
        self, settings: BudgetsSettings, store: Store, clock: Clock, person_of: Callable[[str], str] = str
    ) -> None:
        self._store = store
        self._clock = clock
        self._person_of = person_of
        self.prompt_tokens: Counter[str] = Counter()
        """Tokens of prompts since the start, by the name of the model in the settings."""
        self.completion_tokens: Counter[str] = Counter()
        self.money: Counter[str] = Counter()
        """Money spent since the start, in millionths of the currency of the prices, by model."""
        self.use(settings)

    def use(self, settings: BudgetsSettings) -> None:
        """Apply `settings` to later requests. Today's usage is kept."""
        self._settings = settings
        self._shares = Shares(settings, ("requests", "tokens", "money"), self._store, self._clock, self._person_of)

    async def reserve(self, context: MessageContext, turn: Turn, request: ModelRequest) -> Reservation:
        """Reserve the estimated usage of `request` from all shares or none. Raises OverBudget."""
        member, profile = context.sender.ref.key, turn.input.profile()
        reservation, over = await self._reserved(context.chat.key, member, profile, request)
        if over is not None:
            raise OverBudget(over.limit.setting, await self._words(context, turn, over))
        return reservation

    async def reserve_for_chat(
        self, chat: str, profile: ChatProfile, request: ModelRequest, *, member: str = ""
    ) -> Reservation:
        """`reserve` for a request outside a turn, from the shares of the chat with key `chat` and of the member with
        key `member`, if any."""
        reservation, over = await self._reserved(chat, member, profile, request)
        if over is not None:
            raise OverBudget(over.limit.setting, "")
        return reservation

    async def _reserved(
        self, chat: str, member: str, profile: ChatProfile, request: ModelRequest
    ) -> tuple[Reservation, Share | None]:
        """The reservation, and an exceeded share if nothing was taken."""
        size, over = _bytes_of(request), None
        shares = self._shares.of(chat, member, profile, self._estimate(size))
        try:
            if shares:
                await self._store.commit([share.take() for share in shares])
        except Conflict:
            over = await self._shares.exceeded(shares) or shares[0]
        return Reservation(shares, size, chat, member, self._shares.day(profile)), over

    def _estimate(self, size: int) -> dict[Kind, int]:
        """Estimated usage of a request of `size` bytes."""
        prompt, completion = math.ceil(size / _BYTES_PER_TOKEN), self._settings.answer_tokens
        # The model that will answer is not known yet, so the highest price counts.
        prices = self._settings.prices.values()
        money = max((_money(price, Usage(prompt, completion)) for price in prices), default=0)
        return {"requests": 1, "tokens": prompt + completion, "money": money}

    def settled(self, reservation: Reservation, answer: ModelAnswer) -> list[Write]:
        """Writes that replace the reserved amounts by the actual usage, and count it for the member in the chat.
        Commit them in one unit with the answer, so that they are applied exactly once."""
        usage, is_known = answer.usage, _is_believable(answer.usage, reservation)
        if not is_known:
            if usage != Usage():
                _log.warning("usage_not_believed", model=answer.by, prompt=usage.prompt, completion=usage.completion)
            usage = Usage(math.ceil(reservation.request_bytes / _BYTES_PER_TOKEN), self._settings.answer_tokens)
        price = self._settings.prices.get(answer.by, _NO_PRICE)
        used: dict[Kind, int] = {"tokens": usage.prompt + usage.completion, "money": _money(price, usage)}
        self.prompt_tokens[answer.by] += usage.prompt
        self.completion_tokens[answer.by] += usage.completion
        self.money[answer.by] += used["money"]
        counts = [
            budgets.count(reservation.chat, reservation.member, kind, reservation.day, amount)
            for kind, amount in {"requests": 1, **used}.items()
            if amount
        ]
        if not is_known:
            return counts
        return counts + [
            budgets.settle(share.holder, share.limit.kind, share.day, used[share.limit.kind] - share.amount)
            for share in reservation.shares
            if share.limit.kind in used and used[share.limit.kind] != share.amount
        ]

    async def notify_once_a_day(self, context: MessageContext, turn: Turn, subject: str) -> None:
        """Add the text with the key `subject` to the turn's reply, unless its readers got it today."""
        profile = turn.input.profile()
        share = Share(Limit("chat", "requests", 0), subject, self._shares.day(profile), 0)
        await self._shares.is_first_notice(context, turn, share, profile.texts.say(subject), is_required=True)

    def refund(self, reservation: Reservation, error: ModelError) -> None:
        """Return the reservation after a failed request, unless the provider charges for it."""
        if error.problem in _ANSWERED:
            return
        self._store.post(
            [budgets.settle(share.holder, share.limit.kind, share.day, -share.amount) for share in reservation.shares]
        )

    async def _words(self, context: MessageContext, turn: Turn, share: Share) -> str:
        texts = turn.input.profile().texts
        if share.limit.scope == "chat":
            text = texts.say("budgets.model_chat")
        else:
            text = texts.say("budgets.model_member", name=context.sender.name)
        return text if await self._shares.is_first_notice(context, turn, share, text) else ""


class FunctionBudgets:
    """The budget policy: units charged for runs of functions."""

    def __init__(
        self, settings: BudgetsSettings, store: Store, clock: Clock, person_of: Callable[[str], str] = str
    ) -> None:
        self._store = store
        self._clock = clock
        self._person_of = person_of
        self.use(settings)

    def use(self, settings: BudgetsSettings) -> None:
        """Apply `settings` to later runs. Today's usage is kept."""
        self._shares = Shares(settings, ("units",), self._store, self._clock, self._person_of)
        # Without a limit nothing is counted.
        self._costs = settings.functions if self._shares.limits else {}

    def judge(
        self, request: CallRequest, spec: FunctionSpec, arguments: Any
    ) -> PolicyDecision | Awaitable[PolicyDecision]:
        """ALLOWED if `spec` is free; otherwise the writes that charge its cost, or a refusal above the limit."""
        cost = self._costs.get(spec.name)
        return ALLOWED if cost is None else self._charged(request.context, spec, cost, request.turn)

    async def _charged(self, context: MessageContext, spec: FunctionSpec, cost: int, turn: Turn) -> PolicyDecision:
        shares = self._shares.of(context.chat.key, context.sender.ref.key, turn.input.profile(), {"units": cost})
        share = await self._shares.exceeded(shares)
        if share is None:
            return PolicyDecision(writes=tuple(one.take() for one in shares))
        text = turn.input.profile().texts.say(f"budgets.units_{share.limit.scope}", name=spec.name)
        was_notified = not await self._shares.is_first_notice(context, turn, share, text, is_required=True)
        metadata = {"refused_by": share.limit.setting, OVER_BUDGET: "told" if was_notified else "news"}
        return PolicyDecision(replace(FunctionResult.fail(ErrorCode.REFUSED, text), metadata=metadata))


def _bytes_of(request: ModelRequest) -> int:
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    size += sum(_PICTURE_BYTES * len(message.images) for message in request.messages)
    size += sum(len(call.raw) for message in request.messages for call in message.calls)
    return size + (len(encode_tools(request.offer)) if request.offer is not None else 0)


def _is_believable(usage: Usage, reservation: Reservation) -> bool:
    """Whether the reported usage is plausible: a request has no more tokens than bytes, apart from a margin for tokens
    that providers add. A single wrong count must not block a chat."""
    if usage == Usage():
        return False
    return usage.prompt <= reservation.request_bytes + 10_000 and usage.completion <= _LONGEST_ANSWER_TOKENS


def _money(price: PriceSettings, usage: Usage) -> int:
    """Price in millionths; prices are per million tokens."""
    return math.ceil(usage.prompt * price.prompt + usage.completion * price.completion)
