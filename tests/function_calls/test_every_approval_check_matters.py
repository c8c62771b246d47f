"""Each check of live roles and approvals has a scenario that passes with the real code, and fails with a copy of the
code without this check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from function_calls import invocation, spec
from function_calls import turn as turns
from function_calls.checks import approvals, askers_words, permissions, vouching
from function_calls.context import Quoted
from function_calls.questions import approval_questions, waiting_runs
from function_calls.turn import OpenQuestion
from services.refs import ErrorCode, Role
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import Recorder
from tests.fakes.model import call, calls, says
from tests.function_calls.code_copies import Code
from tests.function_calls.routing import said
from tests.function_calls.waiting import ANN, BOB, OFFICE, OLGA, OSLO, Removal, Waiting, act, approved, is_noticed, rule


async def a_lost_role_is_noticed(code: Code) -> None:
    function = act(roles="admin")
    chat = Waiting(code, function)
    for now in (Role.MEMBER, None):
        chat.roles = {BOB.ref: now} if now else {}
        result = await chat.invoke(chat.a_turn(), message=a_message(sender=BOB))
        assert (result.error and result.error.code, function.runs) == (ErrorCode.REFUSED, [])
    chat.roles = {BOB.ref: Role.ADMIN}
    assert (await chat.invoke(chat.a_turn(), message=a_message(sender=BOB))).ok


async def a_lost_role_is_noticed_for_reads_that_touch_more(code: Code) -> None:
    function = act(roles="admin", effect="read", touches="reads_private")
    chat = Waiting(code, function)
    result = await chat.invoke(chat.a_turn(), message=a_message(sender=BOB))
    assert (result.error and result.error.code, function.runs) == (ErrorCode.REFUSED, [])


async def a_rule_makes_it_wait(code: Code) -> None:
    for named in ({"functions": ["act"]}, {"tags": ["loud"]}, {"sensitive": True}):
        function = act(tags="loud", sensitive="city")
        chat = Waiting(code, function, required=[named])
        assert (await chat.invoke(chat.a_turn())).question is not None
        assert function.runs == []


async def a_rule_for_another_chat_or_function_does_not(code: Code) -> None:
    for named in ({"functions": ["act"], "chats": ["test:bot:office"]}, {"functions": ["other"]}):
        chat = Waiting(code, act(), required=[named])
        assert (await chat.invoke(chat.a_turn())).ok


async def a_yes_is_for_one_run(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule())
    question = (await chat.invoke(chat.a_turn(id="t"))).question
    turn = chat.a_turn(approved=approved(code, question))
    assert (await chat.invoke(turn)).ok
    assert (await chat.invoke(turn)).question is not None
    assert len(function.runs) == 1


async def another_run_is_not_allowed(chat: Waiting, question: Any, **run: Any) -> None:
    result = await chat.invoke(chat.a_turn(approved=approved(chat.code, question)), **run)
    assert result.question is not None
    assert all(not function.runs for function in chat.functions)


async def a_yes_is_for_these_arguments(code: Code) -> None:
    chat = Waiting(code, act(), **rule())
    question = (await chat.invoke(chat.a_turn())).question
    await another_run_is_not_allowed(chat, question, raw={"city": "Rome"})


async def a_yes_is_for_this_chat(code: Code) -> None:
    chat = Waiting(code, act(), **rule())
    question = (await chat.invoke(chat.a_turn())).question
    await another_run_is_not_allowed(chat, question, message=a_message(sender=ANN, chat=OFFICE))


async def a_yes_is_for_this_asker(code: Code) -> None:
    chat = Waiting(code, act(), **rule())
    question = (await chat.invoke(chat.a_turn())).question
    await another_run_is_not_allowed(chat, question, message=a_message(sender="Cleo"))


async def a_yes_is_for_this_rule(code: Code) -> None:
    for first, then in (({"by": "moderator"}, {"by": "owner"}), ({}, {"by_other": True})):
        chat = Waiting(code, act(), **rule(**first))
        question = (await chat.invoke(chat.a_turn())).question
        chat.with_rules(**rule(**then))
        await another_run_is_not_allowed(chat, question)


async def a_yes_is_for_this_form_of_the_function(code: Code) -> None:
    edited = act()
    edited.spec = replace(edited.spec, origin=replace(edited.spec.origin, version="another"))
    for changed in (act(effect="idempotent"), act(touches="reaches_out"), edited):
        chat = Waiting(code, act(), **rule())
        question = (await chat.invoke(chat.a_turn())).question
        chat.functions = (changed,)
        chat.with_rules(**rule())
        await another_run_is_not_allowed(chat, question)


async def always_is_for_exactly_this(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule())
    question = (await chat.invoke(chat.a_turn())).question
    assert (await chat.invoke(chat.a_turn(approved=approved(code, question, always=True)))).ok
    assert (await chat.invoke(chat.a_turn())).ok
    assert (await chat.invoke(chat.a_turn(), message=a_message(sender="Cleo"))).ok
    assert (await chat.invoke(chat.a_turn(), raw={"city": "Rome"})).question is not None
    assert (await chat.invoke(chat.a_turn(), message=a_message(sender=ANN, chat=OFFICE))).question is not None


async def always_is_not_said_by_a_plain_yes(code: Code) -> None:
    chat = Waiting(code, act(), **rule())
    question = (await chat.invoke(chat.a_turn())).question
    assert (await chat.invoke(chat.a_turn(approved=approved(code, question)))).ok
    assert (await chat.invoke(chat.a_turn())).question is not None


async def always_is_not_for_where_others_agree_each_time(code: Code) -> None:
    chat = Waiting(code, act(), **rule(by_other=True))
    question = (await chat.invoke(chat.a_turn())).question
    assert (await chat.invoke(chat.a_turn(approved=approved(code, question, always=True)))).ok
    assert (await chat.invoke(chat.a_turn())).question is not None


async def always_is_not_for_unvouched_calls(code: Code) -> None:
    chat = Waiting(code, act(), **rule())
    question = (await chat.invoke(chat.a_turn())).question
    assert (await chat.invoke(chat.a_turn(approved=approved(code, question, always=True)))).ok
    assert (await chat.invoke(chat.a_turn(), by_model=True)).question is not None


async def asked(chat: Waiting, sender: Any = ANN, **facts: Any) -> OpenQuestion:
    outcome = await chat.hears("/act Oslo", sender, **facts)
    assert outcome.question is not None
    return outcome.question


async def only_the_role_counts(code: Code) -> None:
    for answer, who, runs in (("yes", BOB, 1), ("yes", a_member("Bob"), 0), ("yes", ANN, 0), ("yes", OLGA, 1)):
        function = act()
        chat = Waiting(code, function, **rule())
        await chat.answers(await asked(chat), answer, who)
        assert (len(function.runs), chat.claims) == (runs, runs)


async def the_role_of_now_counts(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule())
    question = await asked(chat)
    chat.roles[BOB.ref] = Role.MEMBER
    await chat.answers(question, "yes", BOB)
    assert (function.runs, chat.claims) == ([], 0)


async def four_eyes_are_not_two(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule(by_other=True))
    await chat.answers(await asked(chat, OLGA), "yes", OLGA)
    assert (function.runs, chat.claims) == ([], 0)


async def four_eyes_are_those_of_anybody_else_with_the_role(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule(by_other=True))
    await chat.answers(await asked(chat, OLGA), "yes", BOB)
    assert (len(function.runs), chat.claims) == (1, 1)


async def whoever_has_the_role_may_allow_what_they_ask_for(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule())
    await chat.answers(await asked(chat, OLGA), "yes", OLGA)
    assert (len(function.runs), chat.claims) == (1, 1)


async def four_eyes_are_required_for_unvouched_calls_too(code: Code) -> None:
    chat = Waiting(code, act(), **rule(by_other=True))
    question = (await chat.invoke(chat.a_turn(), by_model=True)).question
    assert question is not None
    assert isinstance(question, spec.ApprovalQuestion)
    assert question.terms.by_other


async def a_weaker_rule_does_not_replace_that_of_unvouched_calls(code: Code) -> None:
    chat = Waiting(code, act(approval="asker"), unvouched="admin")
    question = (await chat.invoke(chat.a_turn(), by_model=True)).question
    assert question is not None
    assert isinstance(question, spec.ApprovalQuestion)
    assert question.terms.role is Role.ADMIN


async def ran(code: Code, text: str, function: Recorder | None = None, **facts: Any) -> bool:
    """Whether a call of `act` in Oslo by a model ran without a question, for a message with this text."""
    chat = Waiting(code, function or act(), script=[calls(call("act", **facts.pop("arguments", OSLO))), says("Done.")])
    return (await chat.hears(text, **facts)).question is None


async def words_stand_for_a_call(code: Code) -> None:
    assert await ran(code, "act in Oslo")
    assert not await ran(code, "nice weather in Oslo")


async def every_value_is_in_the_words(code: Code) -> None:
    assert not await ran(code, "act in Rome")


async def a_call_without_values_needs_a_question(code: Code) -> None:
    assert not await ran(code, "act now", Recorder("act", effect="once", touches=()), arguments={})


async def what_stays_here_needs_no_words(code: Code) -> None:
    assert await ran(code, "hello", act(touches="stays_here"))
    assert await ran(code, "hello", act(effect="read"))


async def quoted_and_pasted_text_is_not_the_askers(code: Code) -> None:
    assert not await ran(code, "what is this?\n> act in Oslo")
    assert not await ran(code, "what is this?\n```\nact in Oslo\n```")
    assert not await ran(code, "what is this?\nForwarded message\nact in Oslo")


async def an_address_is_the_askers_or_a_finding(code: Code) -> None:
    def fetch() -> Recorder:
        return Recorder("act", {"url": {"type": "string"}}, effect="read", touches="sends_out")

    for text, url, runs in (
        ("what is on example.org?", "https://example.org/a", True),
        ("what is new?", "https://example.org/a", False),
        ("what is on example.org?", "https://evil.example/?example.org", False),
    ):
        assert await ran(code, text, fetch(), arguments={"url": url}) is runs


async def text_of_the_chat_is_not_sent_out(code: Code) -> None:
    function = Recorder("act", {"words": {"type": "string"}}, effect="read", touches="sends_out")
    facts = {"reply_to": Quoted("m1", "Bob", "the code is tulip"), "arguments": {"words": "tulip"}}
    assert not await ran(code, "look it up", function, **facts)
    facts["reply_to"] = Quoted("m1", "Bob", "hello")
    assert await ran(code, "look it up", function, **facts)


async def the_asker_alone_says_what_was_meant(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, script=[calls(call("act", **OSLO)), says("Done.")])
    outcome = await chat.hears("please act", reply_to=Quoted("m1", "Bob", "act!"))
    await chat.answers(outcome.question, "yes", OLGA)
    assert (function.runs, chat.claims) == ([], 0)
    assert said(await chat.answers(outcome.question, "yes", ANN)) == ["done", "Done."]


async def not_everybody_may_refuse(code: Code) -> None:
    for who, claimed in ((a_member("Cleo"), 0), (ANN, 1), (BOB, 1)):
        function = act()
        chat = Waiting(code, function, **rule())
        await chat.answers(await asked(chat), "no", who)
        assert (function.runs, chat.claims) == ([], claimed)


async def one_answer_alone_is_heeded(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule())
    question = await asked(chat)
    for _ in range(2):
        await chat.answers(question, "yes", BOB)
    assert len(function.runs) == 1


async def it_runs_as_the_asker(code: Code) -> None:
    function = act()
    chat = Waiting(code, function, **rule())
    await chat.answers(await asked(chat), "yes", BOB)
    assert [one.sender.ref for one in function.contexts] == [ANN.ref]


async def the_one_who_allows_lends_no_rights(code: Code) -> None:
    function = act(roles="moderator")
    chat = Waiting(code, function, **rule())
    question = await asked(chat, a_member("Ann", Role.MODERATOR))
    chat.roles[ANN.ref] = Role.MEMBER
    await chat.answers(question, "yes", BOB)
    assert function.runs == []
    plain = act(roles="moderator", effect="read")
    chat = Waiting(code, plain, **rule())
    question = await asked(chat, a_member("Ann", Role.MODERATOR))
    chat.roles[ANN.ref] = Role.MEMBER
    await chat.answers(question, "yes", BOB)
    assert plain.runs == []


async def a_changed_function_is_not_run_on_an_old_yes(code: Code) -> None:
    chat = Waiting(code, act(), **rule())
    question = await asked(chat)
    changed = act(effect="idempotent")
    chat.functions = (changed,)
    chat.with_rules()
    await chat.answers(question, "yes", BOB)
    assert changed.runs == []


_ANY_ROLE = "        return role.rank >= self.role.rank and not (self.by_other and is_asker)\n"
_RANK, _OTHERS = "role.rank >= self.role.rank and ", " and not (self.by_other and is_asker)"
_CLAIM = "    if not await turn.input.approval.claim(allows):"
_MAY = "    if not may and not await turn.input.approval.claimed():"
_GRANT = 'grant=grant if for_always and not rule.by_other else ""'
_ALWAYS = "for_always and "
_FACTS = '_digest("grant", context.chat, spec.name, spec.fingerprint, touches, values, rule.role, rule.by_other)'
REMOVALS = [
    Removal(
        "live role",
        invocation,
        "            refused = await refusal_now(context, spec, turn, profile)\n",
        "            pass\n",
        a_lost_role_is_noticed,
    ),
    Removal("no answer, no privilege", turns, "return Role.MEMBER", "return sender.role", a_lost_role_is_noticed),
    Removal(
        "live role of effects",
        permissions,
        "(spec.execution.effect is not Effect.READ or ",
        "(False or ",
        a_lost_role_is_noticed,
    ),
    Removal(
        "live role of reads",
        permissions,
        " or bool(spec.execution.touches))",
        ")",
        a_lost_role_is_noticed_for_reads_that_touch_more,
    ),
    Removal("rule", approvals, "return ALLOWED if rule is None", "return ALLOWED if True", a_rule_makes_it_wait),
    Removal("tags", approvals, "not spec.origin.tags.isdisjoint(rule.tags)", "False", a_rule_makes_it_wait),
    Removal("sensitive", approvals, "(rule.sensitive and spec.execution.sensitive)", "False", a_rule_makes_it_wait),
    Removal("names", approvals, "spec.name in rule.functions", "False", a_rule_makes_it_wait),
    Removal(
        "chats",
        approvals,
        "any(matches(pattern, chat.key) for pattern in rule.chats)",
        "True",
        a_rule_for_another_chat_or_function_does_not,
    ),
    Removal("same run", approvals, "approved.covers(terms.digest)", "True", a_yes_is_for_these_arguments),
    Removal(
        "single use",
        approvals,
        "            turn.memory.approved = approved.without(terms.digest)\n",
        "",
        a_yes_is_for_one_run,
    ),
    Removal("arguments", approvals, _FACTS, _FACTS.replace(" values,", ""), a_yes_is_for_these_arguments),
    Removal("chat", approvals, _FACTS, _FACTS.replace(" context.chat,", ""), a_yes_is_for_this_chat),
    Removal("asker", approvals, '_digest("once", grant, context.sender.ref)', "grant", a_yes_is_for_this_asker),
    Removal("role of the rule", approvals, _FACTS, _FACTS.replace(" rule.role,", ""), a_yes_is_for_this_rule),
    Removal("others in the rule", approvals, _FACTS, _FACTS.replace(", rule.by_other", ""), a_yes_is_for_this_rule),
    Removal(
        "form of the function",
        approvals,
        _FACTS,
        _FACTS.replace(" spec.fingerprint,", ""),
        a_yes_is_for_this_form_of_the_function,
    ),
    Removal(
        "touches of the function",
        approvals,
        _FACTS,
        _FACTS.replace(" touches,", ""),
        a_yes_is_for_this_form_of_the_function,
    ),
    Removal("arguments of always", approvals, _FACTS, _FACTS.replace(" values,", ""), always_is_for_exactly_this),
    Removal("saying always", approvals, "not approved.always or ", "", always_is_not_said_by_a_plain_yes),
    Removal(
        "always for others",
        approvals,
        _GRANT,
        _GRANT.replace(" and not rule.by_other", ""),
        always_is_not_for_where_others_agree_each_time,
    ),
    Removal(
        "always for unvouched calls",
        approvals,
        _GRANT,
        _GRANT.replace(_ALWAYS, ""),
        always_is_not_for_unvouched_calls,
    ),
    Removal("unvouched terms", vouching, "for_always=False", "for_always=True", always_is_not_for_unvouched_calls),
    Removal(
        "the stricter of both rules",
        vouching,
        "rule.with_all_of(self._approvals.unvouched)",
        "rule",
        a_weaker_rule_does_not_replace_that_of_unvouched_calls,
    ),
    Removal("vouching", vouching, "if is_judged(request, spec):", "if False:", words_stand_for_a_call),
    Removal(
        "the function in the words", vouching, "if not self._selects(now,", "if False and (now,", words_stand_for_a_call
    ),
    Removal(
        "the values in the words",
        vouching,
        "if not words.contain(name, value, properties.get(name, {})):",
        "if False:",
        every_value_is_in_the_words,
    ),
    Removal("no values", vouching, "    if not found:\n", "    if False:\n", a_call_without_values_needs_a_question),
    Removal("calls that stay", vouching, "or not leaves_chat(spec) ", "", what_stays_here_needs_no_words),
    Removal("quotations", askers_words, '_QUOTED_LINE.sub(" ", ', "str(", quoted_and_pasted_text_is_not_the_askers),
    Removal("code", askers_words, '_FENCES.sub(" ", text)', "text", quoted_and_pasted_text_is_not_the_askers),
    Removal("forwarded", askers_words, '_FORWARDED.sub(" ", ', "str(", quoted_and_pasted_text_is_not_the_askers),
    Removal(
        "hosts",
        vouching,
        "if any(host not in found and not _names_host(own, host) for host in hosts):",
        "if False:",
        an_address_is_the_askers_or_a_finding,
    ),
    Removal(
        "text of the chat",
        vouching,
        "if _repeats(text, private, own, {*hosts, *found}):",
        "if False:",
        text_of_the_chat_is_not_sent_out,
    ),
    Removal(
        "role",
        spec,
        _ANY_ROLE,
        _ANY_ROLE.replace(_RANK, ""),
        only_the_role_counts,
    ),
    Removal(
        "four eyes",
        spec,
        _ANY_ROLE,
        _ANY_ROLE.replace(_OTHERS, ""),
        four_eyes_are_not_two,
    ),
    Removal(
        "other eyes",
        spec,
        "(self.by_other and is_asker)",
        "self.by_other",
        four_eyes_are_those_of_anybody_else_with_the_role,
    ),
    Removal(
        "own eyes",
        spec,
        "(self.by_other and is_asker)",
        "is_asker",
        whoever_has_the_role_may_allow_what_they_ask_for,
    ),
    Removal(
        "four eyes of both rules",
        approvals,
        "self.by_other or other.by_other",
        "other.by_other",
        four_eyes_are_required_for_unvouched_calls_too,
    ),
    Removal(
        "asker alone",
        spec,
        "            return is_asker\n",
        "            return True\n",
        the_asker_alone_says_what_was_meant,
    ),
    Removal(
        "refusing",
        spec,
        "return member == self.asker.sender.ref or self.may_allow(member, role)",
        "return True",
        not_everybody_may_refuse,
    ),
    Removal(
        "taking back",
        spec,
        "return member == self.asker.sender.ref or self.may_allow(member, role)",
        "return self.may_allow(member, role)",
        not_everybody_may_refuse,
    ),
    Removal("who may answer", approval_questions, _MAY, "    if False:", only_the_role_counts),
    Removal(
        "role of now",
        approval_questions,
        "await turn.role_now(context.sender)\n",
        "context.sender.role\n",
        the_role_of_now_counts,
    ),
    Removal("one answer", approval_questions, _CLAIM, "    if False:", one_answer_alone_is_heeded),
    Removal("claim", approval_questions, _CLAIM, "    if False:", only_the_role_counts),
    Removal(
        "the asker's run",
        approval_questions,
        "replace(waiting, context=asker)",
        "waiting",
        it_runs_as_the_asker,
    ),
    Removal(
        "the asker's rights now",
        approval_questions,
        "replace(sender, role=await turn.role_now(sender))",
        "sender",
        the_one_who_allows_lends_no_rights,
    ),
    Removal(
        "changed function",
        waiting_runs,
        "if spec is not None and spec.fingerprint == self.on.fingerprint:",
        "if spec is not None:",
        a_changed_function_is_not_run_on_an_old_yes,
    ),
]


@pytest.mark.requirement("D37", "E35")
@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.check)
async def test_a_check_holds_and_its_removal_would_be_noticed(removal: Removal) -> None:
    await is_noticed(removal)
