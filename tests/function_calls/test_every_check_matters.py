"""Each check before a handler has a scenario that passes with the real code, and fails with a copy of the code without
this check. The copy is compiled from the source as a separate module."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from config.chat_settings import ResolvedFunction
from function_calls import call, invocation
from function_calls.call import Path
from function_calls.checks import permissions
from function_calls.checks.permissions import Open, Policies, PolicyDecision
from function_calls.invocation import Invoker
from function_calls.spec import FunctionResult, ToolError
from function_calls.turn import NoTurnLog, Run, StoredRun
from services.refs import ErrorCode, Role
from services.retry import RetryPolicy
from services.store.port import Write
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing

Scenario = Callable[[type[Invoker]], Awaitable[None]]
OSLO = {"city": "Oslo"}


class Removal(NamedTuple):
    """Removal of a check: `piece` of the module's source is replaced by `instead`."""

    check: str
    module: ModuleType
    piece: str
    instead: str
    scenario: Scenario


def without(removal: Removal) -> type[Invoker]:
    """The Invoker of a copy of the code without the check of `removal`."""
    changed = _changed_copy(removal.module, removal.piece, removal.instead)
    if removal.module is not invocation:
        copy = _changed_copy(invocation, "", "")
        vars(copy).update({name: value for name, value in vars(changed).items() if hasattr(copy, name)})
        changed = copy
    invoker: type[Invoker] = changed.Invoker
    return invoker


def _changed_copy(module: ModuleType, piece: str, instead: str) -> ModuleType:
    source = inspect.getsource(module)
    if piece:
        assert source.count(piece) == 1, f"{piece!r} stands {source.count(piece)} times in {module.__name__}"
        source = source.replace(piece, instead)
    copy = ModuleType(module.__name__)
    exec(compile(source, f"{module.__name__} without a check", "exec"), vars(copy))
    # Test policies return decisions of the original type.
    vars(copy).update({name: value for name, value in vars(permissions).items() if name in ("Verdict", "ALLOWED")})
    return copy


def code_of(result: FunctionResult) -> ErrorCode | None:
    """Error code of the run."""
    return result.error.code if result.error else None


async def is_refused(
    invoker: type[Invoker], path: Path = Path.COMMAND, *, addressed: bool = True, **options: Any
) -> None:
    """A function with these options is refused for a member in a group, and does not run."""
    profile = options.pop("profile", {})
    act = Recorder("act", CITY, effect="once", **options)
    routing = Routing(act, invoker=invoker, **profile)
    turn = routing.a_turn(addressed=addressed)
    result = await routing.invoke("act", raw=OSLO, path=path, turn=turn)
    assert (code_of(result), act.runs, turn.memory.effects) == (ErrorCode.REFUSED, [], 0)


async def only_known_functions_run(invoker: type[Invoker]) -> None:
    act = Recorder("act", CITY)
    result = await Routing(act, invoker=invoker).invoke("other", raw=OSLO)
    assert (code_of(result), act.runs) == (ErrorCode.NOT_FOUND, [])


async def a_disabled_function_is_refused(invoker: type[Invoker]) -> None:
    off = ResolvedFunction(
        enabled=False, roles=None, timeout_seconds=None, require_at=None, scope=None, layers={"enabled": "functions"}
    )
    await is_refused(invoker, profile={"functions": {"act": off}})


async def switched_off_is_refused(invoker: type[Invoker]) -> None:
    await is_refused(invoker, Path.MODEL, profile={"functions_on": False})


async def a_closed_way_is_refused(invoker: type[Invoker]) -> None:
    await is_refused(invoker, Path.MODEL, offered_to=["command"])


async def what_is_not_at_hand_is_refused(invoker: type[Invoker]) -> None:
    await is_refused(invoker, Path.MODEL, activation="on_request")


async def another_scope_is_refused(invoker: type[Invoker]) -> None:
    await is_refused(invoker, scope="private")


async def a_message_that_is_not_addressed_is_refused(invoker: type[Invoker]) -> None:
    await is_refused(invoker, addressed=False, require_at=True)


async def a_weaker_role_is_refused(invoker: type[Invoker]) -> None:
    await is_refused(invoker, roles="admin")


async def wrong_arguments_never_reach_the_handler(invoker: type[Invoker]) -> None:
    act = Recorder("act", CITY)
    routing = Routing(act, invoker=invoker)
    wrong, missing = await routing.invoke("act", raw={"city": 5}), await routing.invoke("act", raw={})
    assert (code_of(wrong), code_of(missing), act.runs) == (
        ErrorCode.BAD_ARGUMENTS,
        ErrorCode.MISSING_ARGUMENTS,
        [],
    )
    assert missing.question is not None


class Refuses:
    """A policy that refuses every run."""

    async def judge(self, *_: Any) -> PolicyDecision:
        return PolicyDecision(FunctionResult.fail(ErrorCode.REFUSED, "no"))


async def a_policy_that_refuses_is_obeyed(invoker: type[Invoker], which: str) -> None:
    act = Recorder("act", CITY, effect="once")
    policies = Policies(**{name: Refuses() if name == which else Open() for name in ("budget", "approval")})
    routing = Routing(act, invoker=invoker, policies=policies)
    result = await routing.invoke("act", raw=OSLO)
    assert (code_of(result), act.runs, routing.turn.memory.effects) == (ErrorCode.REFUSED, [], 0)


async def the_budget_is_obeyed(invoker: type[Invoker]) -> None:
    await a_policy_that_refuses_is_obeyed(invoker, "budget")


async def the_approval_is_obeyed(invoker: type[Invoker]) -> None:
    await a_policy_that_refuses_is_obeyed(invoker, "approval")


async def a_yes_is_asked_for(invoker: type[Invoker]) -> None:
    act = Recorder("act", CITY, effect="once", confirm="Really {city}?")
    routing = Routing(act, invoker=invoker)
    result = await routing.invoke("act", raw=OSLO)
    assert (result.question and result.question.text, act.runs) == ("Really Oslo?", [])
    assert (await routing.invoke("act", raw=OSLO, confirmed=True)).ok


async def a_guess_is_confirmed(invoker: type[Invoker]) -> None:
    act = Recorder("act", CITY, effect="once")
    result = await Routing(act, invoker=invoker).invoke("act", raw=OSLO, uncertain=True)
    assert (result.question is not None, act.runs) == (True, [])


class Remembers(NoTurnLog):
    """Knows runs of an earlier attempt, and records the order of its calls."""

    def __init__(self, events: list[Any], stored: StoredRun | None = None) -> None:
        super().__init__()
        self.events = events
        self._stored = stored

    def stored_run(self, key: str) -> StoredRun | None:
        return self._stored

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        self.events.append(("intent", run.key, len(writes)))

    def result(self, run: Run, result: FunctionResult) -> None:
        self.events.append(("result", run.key))


class Takes:
    """A policy that allows every run and adds a write to its intent."""

    async def judge(self, *_: Any) -> PolicyDecision:
        return PolicyDecision(writes=(Write(None, {}),))  # type: ignore[arg-type]


async def an_intent_stands_before_the_run_and_a_result_after_it(invoker: type[Invoker]) -> None:
    events: list[Any] = []

    async def run(context: Any, arguments: Any, call: Any) -> None:
        events.append(("run", call.key))

    act = Recorder("act", CITY, effect="once", does=run)
    routing = Routing(act, invoker=invoker, policies=Policies(Takes(), Takes()))
    turn = routing.a_turn(log=Remembers(events))
    await routing.invoke("act", raw=OSLO, turn=turn)
    key = f"{turn.input.id}:0"
    assert events == [("intent", key, 2), ("run", key), ("result", key)]
    assert turn.memory.effects == 1


async def from_before(
    invoker: type[Invoker], effect: str, stored: StoredRun
) -> tuple[FunctionResult, Recorder, Routing]:
    """Result of a run of `act` when `stored` is known from before a restart."""
    act = Recorder("act", CITY, effect=effect)
    routing = Routing(act, invoker=invoker)
    turn = routing.a_turn(log=Remembers([], stored))
    return await routing.invoke("act", raw=OSLO, turn=turn), act, routing


async def a_stored_result_is_given_again_without_a_run(invoker: type[Invoker]) -> None:
    kept = FunctionResult(data=7, context_updates={"seen": True})
    for effect in ("read", "idempotent", "once"):
        result, act, routing = await from_before(invoker, effect, StoredRun("act", kept))
        assert (result, act.runs, routing.turn.memory.state) == (kept, [], {"seen": True})
        assert routing.turn.memory.effects == (effect != "read")


async def an_effect_of_unknown_outcome_is_never_run_again(invoker: type[Invoker]) -> None:
    result, act, routing = await from_before(invoker, "once", StoredRun("act", None))
    assert (code_of(result), act.runs, routing.turn.memory.effects) == (ErrorCode.UNKNOWN_OUTCOME, [], 1)


async def a_stored_run_of_another_function_is_never_taken_for_this_one(invoker: type[Invoker]) -> None:
    result, act, _ = await from_before(invoker, "read", StoredRun("other", FunctionResult(data=7)))
    assert (code_of(result), act.runs) == (ErrorCode.UNKNOWN_OUTCOME, [])


async def what_may_be_repeated_is_run_again_under_the_same_key(invoker: type[Invoker]) -> None:
    for effect in ("read", "idempotent"):
        result, act, routing = await from_before(invoker, effect, StoredRun("act", None))
        assert (result.ok, act.runs) == (True, [OSLO])
        assert act.calls[0].key == f"{routing.turn.input.id}:0"


async def every_run_has_a_key_of_its_own(invoker: type[Invoker]) -> None:
    act = Recorder("act", CITY, effect="once")
    routing = Routing(act, invoker=invoker)
    turn = routing.a_turn()
    for _ in range(3):
        await routing.invoke("act", raw=OSLO, turn=turn)
    assert [call.key for call in act.calls] == [f"{turn.input.id}:{n}" for n in range(3)]


async def a_nested_run_has_no_more_rights(invoker: type[Invoker]) -> None:
    async def outer(context: Any, arguments: Any, call: Any) -> Any:
        return (await call.invoke("act", OSLO)).for_model()

    act = Recorder("act", CITY, roles="admin")
    routing = Routing(Recorder("outer", does=outer), act, invoker=invoker)
    assert "refused" in str((await routing.invoke("outer")).data)
    assert act.runs == []
    await routing.invoke("outer", message=a_message(sender=a_member("Olga", Role.ADMIN)))
    assert act.runs == [OSLO]


async def nesting_ends(invoker: type[Invoker]) -> None:
    async def again(context: Any, arguments: Any, call: Any) -> None:
        if len(deep.runs) > 20:
            raise AssertionError("it goes on and on")
        await call.invoke("deep", {})

    deep = Recorder("deep", does=again)
    await Routing(deep, invoker=invoker).invoke("deep")
    assert len(deep.runs) == call.DEEPEST_NESTING + 1


async def nothing_repeats_an_effect_that_must_happen_once(invoker: type[Invoker]) -> None:
    act = Recorder("act", effect="once", gives=ToolError("not now", ErrorCode.TRANSIENT))
    routing = Routing(
        replace(act.spec, execution=replace(act.spec.execution, retry=RetryPolicy(4, 0.0))), invoker=invoker
    )
    await routing.invoke("act")
    assert len(act.runs) == 1


_REFUSALS = "        (None if setting is None else refuse_disabled(setting))\n"
_AT_HAND = (
    "        or (None if spec.prompt.activation is Activation.ALWAYS else refuse_inactive(spec, turn, profile, path))\n"
)
_SWITCHED_ON = "        or (switched_on(profile) if path is Path.MODEL else None)\n"
_POLICIES = "in self._policies[passed:]:"
_PARSE = "spec.arguments.parse(as_said(spec.arguments, request.arguments, profile))\n        except ArgumentError as"
REMOVALS = [
    Removal(
        "known",
        invocation,
        "= turn.input.functions.find(request.name)\n        if spec is None:\n            text",
        "= turn.input.functions.specs[0]\n        if spec is None:\n            text",
        only_known_functions_run,
    ),
    Removal("enabled", permissions, _REFUSALS, "        None\n", a_disabled_function_is_refused),
    Removal("switched on", permissions, _SWITCHED_ON, "", switched_off_is_refused),
    Removal("path open", permissions, "        or refuse_path(spec, path)\n", "", a_closed_way_is_refused),
    Removal("at hand", permissions, _AT_HAND, "", what_is_not_at_hand_is_refused),
    Removal("scope", permissions, "        or refuse_scope(spec, setting, context)\n", "", another_scope_is_refused),
    Removal(
        "mention",
        permissions,
        "        or (None if turn.input.addressed else refuse_unaddressed(spec, setting, context))\n",
        "",
        a_message_that_is_not_addressed_is_refused,
    ),
    Removal(
        "role",
        permissions,
        "    refused = refuse_role(spec, setting, context.sender.role)\n",
        "",
        a_weaker_role_is_refused,
    ),
    Removal(
        "all rights", invocation, "        if refused is not None and", "        if False and", a_weaker_role_is_refused
    ),
    Removal(
        "arguments",
        invocation,
        _PARSE,
        "request.arguments\n        except ArgumentError as",
        wrong_arguments_never_reach_the_handler,
    ),
    Removal("budget", invocation, _POLICIES, "in self._policies[1:]:", the_budget_is_obeyed),
    Removal("approval", invocation, _POLICIES, "in self._policies[:1]:", the_approval_is_obeyed),
    Removal("refusals", invocation, "if decision.refusal is not None:", "if False:", the_budget_is_obeyed),
    Removal("all policies", invocation, "        if decided is not None:", "        if False:", a_yes_is_asked_for),
    Removal(
        "confirm", invocation, "(spec.access.confirm or request.uncertain)", "(request.uncertain)", a_yes_is_asked_for
    ),
    Removal(
        "guess", invocation, "(spec.access.confirm or request.uncertain)", "(spec.access.confirm)", a_guess_is_confirmed
    ),
    Removal(
        "intent",
        invocation,
        "noted = turn.input.log.intend(run, writes)",
        "noted = None",
        an_intent_stands_before_the_run_and_a_result_after_it,
    ),
    Removal(
        "writes of policies",
        invocation,
        "            writes += decision.writes\n",
        "",
        an_intent_stands_before_the_run_and_a_result_after_it,
    ),
    Removal(
        "result",
        invocation,
        "        turn.memory.end(run, result)\n        turn.input.log.result(run, result)\n",
        "        turn.memory.end(run, result)\n",
        an_intent_stands_before_the_run_and_a_result_after_it,
    ),
    Removal(
        "count of effects",
        invocation,
        "        turn.memory.begin(run)\n",
        "",
        an_intent_stands_before_the_run_and_a_result_after_it,
    ),
    Removal(
        "stored result", invocation, "known.result is not None or ", "", a_stored_result_is_given_again_without_a_run
    ),
    Removal(
        "unknown outcome",
        invocation,
        "(known.result is not None or spec.execution.starts_once)",
        "known.result is not None",
        an_effect_of_unknown_outcome_is_never_run_again,
    ),
    Removal(
        "function of the stored run",
        invocation,
        "        if function != spec.name:",
        "        if False:",
        a_stored_run_of_another_function_is_never_taken_for_this_one,
    ),
    Removal(
        "repeat after a crash",
        invocation,
        "(known.result is not None or spec.execution.starts_once)",
        "True",
        what_may_be_repeated_is_run_again_under_the_same_key,
    ),
    Removal(
        "keys",
        invocation,
        "= request.key or turn.next_key(),",
        '= f"{turn.input.id}:0",',
        every_run_has_a_key_of_its_own,
    ),
    Removal(
        "rights of nested runs",
        invocation,
        "refused = refusal(context, spec, turn, profile, request.path)",
        "refused = None if request.depth else refusal(context, spec, turn, profile, request.path)",
        a_nested_run_has_no_more_rights,
    ),
    Removal("depth", call, "        if self._request.depth >= DEEPEST_NESTING:", "        if False:", nesting_ends),
    Removal(
        "never twice",
        invocation,
        "retry.attempts if run.spec.execution.effect is not Effect.ONCE else 1",
        "retry.attempts",
        nothing_repeats_an_effect_that_must_happen_once,
    ),
]


@pytest.mark.requirement("D12", "D37", "E35", "E36")
@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.check)
async def test_a_check_holds_and_its_removal_would_be_noticed(removal: Removal) -> None:
    await removal.scenario(Invoker)
    changed = without(removal)
    with pytest.raises(AssertionError):
        await removal.scenario(changed)


def test_an_unchanged_copy_is_no_other_code() -> None:
    copy = _changed_copy(invocation, "", "")
    assert copy is not importlib.import_module("function_calls.invocation")
    assert copy.Invoker is not Invoker


async def test_the_scenarios_hold_for_an_unchanged_copy() -> None:
    copy = _changed_copy(invocation, "", "")
    for removal in REMOVALS:
        await removal.scenario(copy.Invoker)
