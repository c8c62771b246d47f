"""What one run may reach: the functions of its turn, for its member, one level deeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from function_calls.approval_terms import Approved
from function_calls.beginning import begins_chats
from function_calls.call import Resumed
from function_calls.context import MessageContext
from function_calls.groups import Takeable
from function_calls.permissions import callable_here
from function_calls.profile import ChatProfile
from function_calls.shortlist import found_here
from function_calls.spec import FunctionResult, FunctionSpec, Question
from function_calls.touches import is_tainted
from function_calls.turn import Turn
from function_calls.turn_log import Path
from function_calls.words import CallersModel
from services.llm.model import OfferedFunction
from services.refs import ErrorCode, Role
from services.threads import Threads

DEEPEST_NESTING = 4


class Runs(Protocol):
    """Who runs functions: the Invoker."""

    threads: Threads

    async def invoke(
        self,
        context: MessageContext,
        name: str,
        raw: Mapping[str, Any],
        turn: Turn,
        path: Path,
        *,
        confirmed: bool = False,
        depth: int = 0,
        key: str = "",
    ) -> FunctionResult:
        """The result of running the function `name`."""


class RunDoors:
    """The doors of one run."""

    __slots__ = ("_context", "_depth", "_key", "_profile", "_runs", "_turn", "asked")

    def __init__(
        self, runs: Runs, context: MessageContext, key: str, turn: Turn, profile: ChatProfile, depth: int
    ) -> None:
        self._runs = runs
        self._context = context
        self._key = key
        self._turn = turn
        self._profile = profile
        self._depth = depth
        self.asked: tuple[Question, ...] = ()
        """What runs within this one have asked so far in their midst."""

    @property
    def threads(self) -> Threads:
        return self._runs.threads

    @property
    def asked_at(self) -> datetime | None:
        return self._turn.asked_at if self._turn.resumed else None

    @property
    def answered(self) -> str:
        return self._turn.answered

    @property
    def resumed(self) -> Resumed | None:
        return self._turn.resuming.get(self._key)

    @property
    def callers_model(self) -> CallersModel | None:
        turn = self._turn
        # What a function of this turn may have read of others stays with the bot's own model, and a run that only ends
        # asks nobody any more.
        return None if turn.reads or turn.taint or self._key in turn.ending else turn.callers_model

    def count_from(self, at: datetime) -> None:
        self._turn.asked_at = at

    def functions(self) -> Sequence[FunctionSpec]:
        return callable_here(self._context, self._turn, Path.NESTED)

    def on_request(self) -> Sequence[Takeable]:
        may = {spec.name for spec in self.functions()}
        everything = self._turn.functions.on_request.takeable.values()
        # The functions of a group may come later.
        return [one for one in everything if not one.functions or not may.isdisjoint(one.functions)]

    def is_at_hand(self, spec: FunctionSpec) -> bool:
        return self._turn.functions.on_request.is_at_hand(spec, self._turn.profile().at_hand)

    def find(self, text: str, most: int) -> Sequence[OfferedFunction]:
        return found_here(self._context, self._turn, text, most)

    async def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any],
        number: int,
        *,
        confirmed: bool = False,
        goes_on: Resumed | None = None,
        allowed: str = "",
    ) -> FunctionResult:
        if self._depth >= DEEPEST_NESTING:
            return FunctionResult.fail(ErrorCode.REFUSED, self._profile.texts.say("refusals.too_deep"))
        spec = self._turn.functions.find(name)
        if spec is not None and begins_chats(spec) and goes_on is None:
            return FunctionResult.fail(
                ErrorCode.NOT_FOUND, self._profile.texts.say("refusals.unknown_function", name=name)
            )
        if self._key in self._turn.ending:
            return FunctionResult.fail(ErrorCode.REFUSED, self._profile.texts.say("refusals.only_ends"))
        turn, key = self._turn, f"{self._key}.{number}"
        if goes_on is not None:
            turn.resume(key, goes_on)
        if allowed:
            turn.approved = Approved(allowed, self._context.sender, always=False, is_noted=True)
        result = await self._runs.invoke(
            self._context, name, arguments, turn, Path.NESTED, confirmed=confirmed, depth=self._depth + 1, key=key
        )
        if allowed:
            turn.approved = None
        if result.question is not None and result.question.kind == "input":
            self.asked += (result.question,)
        return result

    def kept_back(self, result: FunctionResult) -> list[Question]:
        """Those that have been asked and that `result` of this run does not pass on, so that nobody ever answers
        them; each once, though its run may have been tried again."""
        passed_on = (result.question.key, result.question.passes_on) if result.question is not None else ()
        return list({one.key: one for one in self.asked if one.key not in passed_on}.values())

    def has_read_outside(self) -> None:
        self._turn.holds_words_of_others(self._key)

    async def role_now(self) -> Role:
        return await self._turn.role_now(self._context.sender)

    def would_ask(self, spec: FunctionSpec) -> bool:
        return is_tainted(spec, self._turn)

    async def until_kept(self) -> None:
        await self._turn.log.until_kept()

    async def status(self, text: str) -> None:
        if self._key not in self._turn.ending:
            await self.until_kept()
            await self._turn.status(text)
