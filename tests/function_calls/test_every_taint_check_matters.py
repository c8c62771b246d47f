"""Each taint check has a scenario that passes with the real code, and fails with a copy of the code without this
check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from function_calls import invocation, llm
from function_calls import turn as turns
from function_calls.checks import approvals, permissions
from function_calls.checks import approvals as taint
from function_calls.context import Quoted
from function_calls.questions import waiting_runs
from function_calls.spec import TAINTING, ApprovalQuestion, FunctionResult
from services.refs import Role
from tests.fakes.builders import a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import call, calls, says
from tests.function_calls.code_copies import Code
from tests.function_calls.waiting import ANN, BOB, OSLO, Removal, Waiting, act, is_noticed


async def outside_words_make_it_ask(code: Code) -> None:
    for touch in ("reads_outside", "reads_private"):
        function, page = act(), Recorder("page", touches=touch)
        chat = Waiting(code, function, page, script=[calls(call("page")), calls(call("act", **OSLO)), says("No.")])
        outcome = await chat.hears("do it")
        assert (outcome.question is not None, function.runs) == (True, [])


async def a_weaker_rule_of_its_own_does_not_stand_in_for_it(code: Code) -> None:
    chat = Waiting(code, act(approval="asker"), tainted="admin")
    result = await chat.invoke(chat.a_turn(taint=TAINTING), message=a_message(sender=ANN))
    assert result.question is not None
    assert isinstance(result.question, ApprovalQuestion)
    assert result.question.terms.role is Role.ADMIN


async def words_that_only_a_result_confesses_make_it_ask(code: Code) -> None:
    function, own = act(), Recorder("own", does=_says_words_of_others, effect="idempotent", touches="stays_here")
    chat = Waiting(code, function, own, script=[calls(call("own")), calls(call("act", **OSLO)), says("No.")])
    outcome = await chat.hears("do it")
    assert (outcome.question is not None, function.runs) == (True, [])


async def _says_words_of_others(context: Any, arguments: Any, own: Any) -> FunctionResult:
    return replace(FunctionResult.say("act!"), outside=True)


async def whatever_reaches_out_asks(code: Code) -> None:
    for options, asks in (
        ({"effect": "once"}, True),
        ({"effect": "idempotent", "roles": "admin"}, True),
        ({"effect": "read", "touches": "reaches_out"}, True),
        ({"effect": "idempotent"}, False),
        ({"effect": "once", "touches": "stays_here"}, False),
        ({"effect": "read", "roles": "admin"}, False),
    ):
        chat = Waiting(code, act(**options))
        chat.roles[BOB.ref] = Role.ADMIN
        result = await chat.invoke(chat.a_turn(taint=TAINTING), message=a_message(sender=BOB))
        assert (result.question is not None) is asks, options


async def what_is_private_asks_before_it_goes_out(code: Code) -> None:
    for read, asks in (("reads_private", True), ("reads_outside", False)):
        function, page = act(effect="read", touches="sends_out"), Recorder("page", touches=read)
        chat = Waiting(code, function, page, script=[calls(call("page")), calls(call("act", **OSLO)), says("No.")])
        outcome = await chat.hears("do it")
        assert (outcome.question is not None, len(function.runs)) == (asks, not asks)


async def a_quotation_makes_it_ask(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, script=[calls(call("act", **OSLO)), says("No.")])
    outcome = await chat.hears("do it", reply_to=Quoted("m1", "Bob", "act!"))
    assert (outcome.question is not None, function.runs) == (True, [])


async def taint_outlives_a_question(code: Code) -> None:
    function, page = act(), Recorder("page", touches="reads_outside")
    rain = Recorder("rain", CITY)
    script = [calls(call("page")), calls(call("rain"), call("act", "c2", **OSLO)), says("No.")]
    chat = Waiting(code, function, page, rain, script=script)
    outcome = await chat.hears("do it")
    outcome = await chat.answers(outcome.question, "Rome", ANN)
    assert (outcome.question is not None, rain.runs, function.runs) == (True, [{"city": "Rome"}], [])
    chat = Waiting(code, function, page, rain, script=[script[0], script[1], says("No.")])
    outcome = await chat.hears("do it")
    outcome = await chat.answers(outcome.question, "cancel", ANN)
    assert (outcome.question is not None, function.runs) == (True, [])


async def taint_outlives_an_approval(code: Code) -> None:
    for answer in ("yes", "no"):
        page, post, function = Recorder("page", touches="reads_outside"), Recorder("post", effect="once"), act()
        script = [calls(call("page")), calls(call("post"), call("act", "c2", **OSLO)), says("No.")]
        chat = Waiting(code, page, post, function, script=script)
        outcome = await chat.answers((await chat.hears("do it")).question, answer, ANN)
        assert (outcome.question is not None, function.runs) == (True, [])


_ONCE = "    return spec.execution.effect is Effect.ONCE or Role.MEMBER not in spec.access.roles"
REMOVALS = [
    Removal(
        "taint",
        taint,
        "if not turn.memory.taint or not is_tainted(spec, turn) or ",
        "if True or ",
        outside_words_make_it_ask,
    ),
    Removal(
        "the stricter of both",
        approvals,
        "return rule.with_all_of(self.tainted)",
        "return rule",
        a_weaker_rule_of_its_own_does_not_stand_in_for_it,
    ),
    Removal("what has been read", turns, "self.note_read(run.key, spec)", "pass", outside_words_make_it_ask),
    Removal(
        "what a result confesses",
        invocation,
        "        if result.outside:",
        "        if False:",
        words_that_only_a_result_confesses_make_it_ask,
    ),
    Removal("once", permissions, _ONCE, "    return Role.MEMBER not in spec.access.roles", whatever_reaches_out_asks),
    Removal(
        "not for every member",
        permissions,
        _ONCE,
        "    return spec.execution.effect is Effect.ONCE",
        whatever_reaches_out_asks,
    ),
    Removal(
        "said to reach out",
        permissions,
        "    if Touch.REACHES_OUT in spec.execution.touches:",
        "    if False:",
        whatever_reaches_out_asks,
    ),
    Removal(
        "said to stay",
        permissions,
        "spec.execution.effect is Effect.READ or Touch.STAYS_HERE in spec.execution.touches",
        "spec.execution.effect is Effect.READ",
        whatever_reaches_out_asks,
    ),
    Removal(
        "what goes out",
        permissions,
        "Touch.SENDS_OUT in spec.execution.touches and ",
        "False and ",
        what_is_private_asks_before_it_goes_out,
    ),
    Removal(
        "only what is private",
        permissions,
        " and Touch.READS_PRIVATE in turn.memory.taint",
        "",
        what_is_private_asks_before_it_goes_out,
    ),
    Removal(
        "quotation",
        llm,
        "        turn.memory.taint |= taint_of(context, turn.input.profile().notes)\n",
        "",
        a_quotation_makes_it_ask,
    ),
    Removal(
        "taint through an answer",
        waiting_runs,
        """        self.restore()
        profile = turn.input.profile()""",
        """        self.turn.memory.state.update(self.on.state)
        profile = turn.input.profile()""",
        taint_outlives_a_question,
    ),
    Removal(
        "taint through a dropped question",
        waiting_runs,
        """        self.restore()
        refused = FunctionResult""",
        """        self.turn.memory.state.update(self.on.state)
        refused = FunctionResult""",
        taint_outlives_a_question,
    ),
    Removal(
        "taint through a no",
        waiting_runs,
        """        self.restore()
        refused = FunctionResult""",
        """        self.turn.memory.state.update(self.on.state)
        refused = FunctionResult""",
        taint_outlives_an_approval,
    ),
]


@pytest.mark.requirement("D37", "E35")
@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.check)
async def test_a_check_holds_and_its_removal_would_be_noticed(removal: Removal) -> None:
    await is_noticed(removal)
