"""A router with real parts, a scripted model and a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import orjson

from config.settings import RouterSettings
from function_calls.call import CallRequest, Path
from function_calls.checks.permissions import Open, Policies
from function_calls.context import MessageContext
from function_calls.filters.call import CallFilter
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.outcome import TurnOutcome
from function_calls.questions.open_questions import open_from_json, open_to_json
from function_calls.registry import FunctionRegistry
from function_calls.router import FunctionCallRouter
from function_calls.spec import FunctionResult, FunctionSpec
from function_calls.turn import FixedHistory, HistoryLine, OpenQuestion, Run, Turn, TurnInput, TurnLog
from services.clock import Deadlines, VirtualClock
from services.llm.model import ChatModel
from tests.fakes.builders import a_message, a_profile
from tests.fakes.functions import Recorder
from tests.fakes.model import Scripted
from tests.fakes.wired_model import scripted_model

EVERYTHING_PASSES = Policies(budget=Open(), approval=Open())


class Routing:
    """A chat with its functions. Each message is a separate turn. `model` replaces the model with `script`."""

    def __init__(
        self,
        *functions: FunctionSpec | Recorder,
        script: Sequence[Scripted] = (),
        model: ChatModel | None = None,
        policies: Policies = EVERYTHING_PASSES,
        filters: Sequence[CallFilter] = (),
        named_filters: Mapping[str, CallFilter] | None = None,
        history: Sequence[HistoryLine] = (),
        settings: Mapping[str, Any] | None = None,
        tool_choice: str = "auto",
        invoker: type[Invoker] = Invoker,
        llm: type[FunctionCallLLM] = FunctionCallLLM,
        router: type[FunctionCallRouter] = FunctionCallRouter,
        **profile: Any,
    ) -> None:
        self.registry = FunctionRegistry()
        self.registry.register_functions([one.spec if isinstance(one, Recorder) else one for one in functions])
        self.clock = VirtualClock()
        self.deadlines = Deadlines(self.clock)
        self.profile = a_profile(**profile)
        self.model = scripted_model(*script)
        self.recorded: list[tuple[Run, FunctionResult]] = []
        self.invoker = invoker(
            policies,
            self.deadlines,
            self.clock,
            filters=filters,
            named_filters=named_filters,
            record=lambda context, run, result, turn_id, duration_us: self.recorded.append((run, result)),
        )
        self.settings = RouterSettings(**(settings or {}))
        self.router = router(
            self.invoker, llm(model or self.model, self.invoker, self.settings, self.clock, tool_choice=tool_choice)
        )
        self._history = list(history)
        self._turns = 0
        self.turn: Turn = self.a_turn()
        """The latest turn."""

    def a_turn(self, *, log: TurnLog | None = None, **changes: Any) -> Turn:
        """A new turn with a limit of 120 seconds."""

        self._turns += 1
        deadline = changes.pop("deadline", self.clock.monotonic() + 120)
        known = {field.name for field in fields(TurnInput)}
        given = {"history": FixedHistory(self._history), **{name: changes.pop(name) for name in known & changes.keys()}}
        turn_input = TurnInput(
            id=f"turn-{self._turns}",
            functions=self.registry.of("default"),
            profile=lambda: self.profile,
            **given,
        )
        turn = Turn(turn_input if log is None else replace(turn_input, log=log), deadline)
        for name, value in changes.items():
            setattr(turn.memory, name, value)
        self.turn = turn
        return turn

    async def hears(self, message: str | MessageContext, **turn: Any) -> TurnOutcome:
        """Outcome of a message, or of an answer to `answering`."""
        context = a_message(message) if isinstance(message, str) else message
        return await self.router.dispatch(context, self.a_turn(**turn))

    async def hears_answer(self, outcome: TurnOutcome, text: str, **turn: Any) -> TurnOutcome:
        """Outcome of `text` as an answer by the member whom `outcome` asked, after a restart of the daemon."""
        return await self.hears(text, answering=(restarted(outcome), text), **turn)

    async def invoke(self, name: str, *, message: MessageContext | None = None, **options: Any) -> FunctionResult:
        """Result of a run outside a message. Defaults: `raw` is {}, `path` is a command."""
        raw = options.pop("raw", {})
        path = options.pop("path", Path.COMMAND)
        turn = options.pop("turn", None) or self.a_turn()
        return await self.invoker.invoke(CallRequest(message or a_message(), name, raw, turn, path, **options))

    def set_profile(self, **changes: Any) -> None:
        """Change the settings of the chat."""
        self.profile = replace(self.profile, **changes)


def restarted(outcome: TurnOutcome) -> OpenQuestion:
    """The question of `outcome`, restored from the store after a restart."""
    assert outcome.question is not None, f"nothing was asked: {outcome}"
    return open_from_json(7, orjson.loads(orjson.dumps(open_to_json(outcome.question))))


def said(outcome: TurnOutcome) -> list[str]:
    """Texts of the outcome's messages."""
    return [message.text for message in outcome.messages]
