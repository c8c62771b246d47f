"""The chat is informed of the actual effects, whatever a model claims or omits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bot.testing import call as a_call
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.outcome import OutcomeKind
from function_calls.spec import ToolError
from function_calls.turn import HistoryLine
from services.llm.model import ModelAnswer, ModelError
from services.refs import ErrorCode
from tests.fakes.builders import a_message
from tests.fakes.functions import Recorder
from tests.fakes.model import Scripted, call, calls, says
from tests.fakes.wired_model import a_group, not_over
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.function_calls.routing import Routing, said

pytestmark = [pytest.mark.requirement("D28"), pytest.mark.usefixtures("each_protocol")]

EN, ZH = Texts().of("en"), Texts().of("zh")
NOTHING = EN.say("claims.nothing_done")
UNCONFIRMED = EN.say("claims.unconfirmed")
TEXT = {"text": {"type": "string", "required": True}}


def todo(**options: Any) -> Recorder:
    options = {"effect": "once", "gives": "Added #1 milk.", "description": "Add to the to-do list"} | options
    return Recorder("todo_add", TEXT, **options)


def remind(**options: Any) -> Recorder:
    return Recorder(
        "remind", TEXT, description="Set a reminder", effect="once", gives="Reminder 1 for 17:00.", **options
    )


ADD = calls(call("todo_add", text="milk"))


@pytest.mark.requirement("C26")
@pytest.mark.parametrize(
    ("last", "heard"),
    [
        (says("I've added milk to your list."), ["Added #1 milk.", "I've added milk to your list."]),
        (says("I couldn't add milk, sorry."), ["Added #1 milk.", "I couldn't add milk, sorry."]),
        (calls(call("none")), ["Added #1 milk."]),
        (ModelError(ErrorCode.EMPTY_RESPONSE, "nothing"), ["Added #1 milk."]),
        (ModelError(ErrorCode.TIMEOUT, "slow"), ["Added #1 milk."]),
        (says("I've set a reminder for five. Bye."), ["Added #1 milk.", f"{UNCONFIRMED} Bye."]),
        (says("I've added milk to your list and set a reminder."), ["Added #1 milk.", UNCONFIRMED]),
        (says("I will remind you at five."), ["Added #1 milk.", UNCONFIRMED]),
    ],
    ids=["repeats", "contradicts", "declines", "silent", "fails", "claims another", "claims one more", "promises"],
)
async def test_after_an_effect_the_chat_hears_its_message_and_no_other_claim(last: Scripted, heard: list[str]) -> None:
    routing = Routing(todo(), remind(), script=[ADD, last])
    assert said(await routing.hears("add milk")) == heard
    assert routing.model.answers_left == 0


async def test_a_claim_without_a_run_is_asked_about_once_and_the_function_that_is_called_then_speaks() -> None:
    note = remind()
    routing = Routing(
        note, script=[says("I've set a reminder."), calls(call("remind", text="tea")), says("See you then.")]
    )
    assert said(await routing.hears("remind me of tea")) == ["Reminder 1 for 17:00.", "See you then."]
    assert len(note.runs) == 1
    claim, doubt = routing.model.requests[1].messages[-2:]
    assert (claim.role, claim.content, doubt.role) == ("assistant", "I've set a reminder.", "system")


async def test_a_model_that_corrects_itself_is_heard_in_its_own_words() -> None:
    routing = Routing(remind(), script=[says("I've set a reminder."), says("I have no function for that, sorry.")])
    assert said(await routing.hears("remind me")) == ["I have no function for that, sorry."]


@pytest.mark.requirement("C26")
@pytest.mark.parametrize(
    ("script", "language", "heard"),
    [
        ([says("Sure! I've set a reminder. Bye.")] * 2, "en", f"Sure! {NOTHING} Bye."),
        ([says("好的。我已经设置了提醒。")] * 2, "zh", f"好的。{ZH.say('claims.nothing_done')}"),
        ([says("Done!")] * 2, "en", NOTHING),
        ([says("I've set a reminder."), ModelError(ErrorCode.TIMEOUT, "slow")], "en", NOTHING),
        ([calls(call("insufficient_arguments", question="I've set a reminder. When?"))], "en", f"{NOTHING} When?"),
    ],
    ids=["english", "chinese", "done", "the model fails when asked", "in a question"],
)
async def test_a_model_that_insists_is_corrected_before_anybody_reads_it(
    script: Sequence[Scripted], language: str, heard: str
) -> None:
    routing = Routing(remind(), script=script, texts=Texts().of(language))
    assert said(await routing.hears("remind me")) == [heard]
    assert routing.model.answers_left == 0


async def test_words_of_plain_chat_are_judged_too() -> None:
    routing = Routing(remind(), script=[says("I've set a reminder.")])
    assert said(await routing.router.run_chat_fallback(a_message("remind me"), routing.a_turn())) == [NOTHING]


@pytest.mark.parametrize(
    ("gives", "line"),
    [
        (ToolError("You may not.", ErrorCode.REFUSED), EN.say("claims.not_done", names="todo add – You may not")),
        (TimeoutError(), EN.say("failures.unknown_outcome", name="todo add")),
        (RuntimeError("secret"), EN.say("failures.unknown_outcome", name="todo add")),
    ],
    ids=["refused", "timeout", "exception"],
)
async def test_a_claim_about_an_effect_that_failed_is_replaced_by_the_failure(gives: Exception, line: str) -> None:
    routing = Routing(todo(gives=gives), script=[ADD, says("I've added milk to your list.")])
    assert said(await routing.hears("add milk"))[-1] == line


async def test_an_effect_within_another_function_bears_a_claim_out() -> None:
    async def outer(context: MessageContext, arguments: dict[str, Any], run: Call) -> str:
        return (await run.invoke("todo_add", {"text": "milk"})).reply

    functions = [todo(), Recorder("errand", does=outer, effect="idempotent")]
    routing = Routing(*functions, script=[calls(call("errand")), says("I've added milk to your list.")])
    assert said(await routing.hears("run the errand")) == ["Added #1 milk.", "I've added milk to your list."]


async def test_what_was_done_before_a_question_is_still_known_after_its_answer() -> None:
    asked = calls(call("todo_add", "a", text="milk"), call("remind", "b"))
    routing = Routing(todo(), remind(), script=[asked, says("I've added milk to your list and set a reminder.")])
    question = await routing.hears("add milk and remind me")
    assert question.kind is OutcomeKind.SENT
    outcome = await routing.hears_answer(question, "tea")
    assert said(outcome) == ["Reminder 1 for 17:00.", "I've added milk to your list and set a reminder."]


@pytest.mark.parametrize("asked", ["did you add milk?", "Have you added milk yet", "has the milk been added?"])
async def test_asked_about_the_past_the_model_may_tell_of_what_an_earlier_turn_reported(asked: str) -> None:
    reported = [HistoryLine("Rollcall", "Added #1 milk.", 0, from_bot=True)]
    words = says("Yes, I've added milk to your list.")
    assert said(await Routing(todo(), history=reported, script=[words]).hears(asked)) == [words.text]
    untold = [HistoryLine("Rollcall", "It rains.", 0, from_bot=True)]
    assert said(await Routing(todo(), history=untold, script=[words] * 2).hears(asked)) == [NOTHING]
    assert said(await Routing(todo(), script=[words] * 2).hears(asked)) == [NOTHING]


async def test_asked_to_do_it_again_what_an_earlier_turn_did_bears_nothing_out() -> None:
    reported = [HistoryLine("Rollcall", "Added #1 milk.", 0, from_bot=True)]
    words = says("I've added milk to your list.")
    assert said(await Routing(todo(), history=reported, script=[words] * 2).hears("add milk again")) == [NOTHING]


async def test_a_claim_after_a_question_is_not_said_to_be_all_that_was_not_done() -> None:
    look = Recorder("look", TEXT, gives=("ok", "found"))
    asked = calls(call("todo_add", "a", text="milk"), call("look", "b"))
    routing = Routing(todo(), look, remind(), script=[asked, says("I've set a reminder.")])
    outcome = await routing.hears_answer(await routing.hears("add milk and look"), "tea")
    assert said(outcome) == [UNCONFIRMED]


async def test_a_doubt_costs_a_round_and_there_is_only_one() -> None:
    routing = Routing(remind(), script=[says("I've set a reminder.")] * 2, settings={"max_rounds": 2})
    assert said(await routing.hears("remind me")) == [NOTHING]
    assert [request.tool_choice for request in routing.model.requests] == ["auto", "none"]


@pytest.mark.parametrize("words", ["I've set a reminder.", "Your poll has been closed.", "I'll remind you.", "Done!"])
async def test_a_liar_delivers_no_false_claim(words: str) -> None:
    async with a_group() as group:
        group.model.says(*[ModelAnswer(text=words, finish="stop")] * 2)
        assert await group.say("Ann", "@Rollcall remind me at five") == [NOTHING]


async def test_the_daemons_own_to_do_list_bears_out_what_is_said_of_it() -> None:
    async with a_group() as group:
        group.model.says(a_call("todo_add", text="milk"), "I've added milk to your to-do list.")
        heard = await group.say("Ann", "@Rollcall add milk to the todo list")
        assert heard[1:] == ["I've added milk to your to-do list."]
        assert "milk" in heard[0]


PERFORM = {"task": {"type": "string", "description": "What", "required": True}}


def asking(**options: Any) -> Recorder:
    """A read function that asks the member for its argument."""
    city = {"city": {"type": "string", "required": True}}
    return Recorder("weather", city, ask={"city": "Where?"}, **options)


async def after_a_question(*functions: Recorder, asked: str, first: ModelAnswer, answer: str, words: str) -> list[str]:
    """Messages to the chat when the model says `words`, if necessary twice, after the answer to a question."""
    routing = Routing(*functions, script=[first, says(words), says(words)])
    return said(await routing.hears_answer(await routing.hears(asked), answer))


async def test_a_failed_effect_before_a_question_supports_no_claim_after_it() -> None:
    mail = Recorder("mail", TEXT, effect="idempotent", gives=("error", "no such address"), touches="reads_outside")
    first = calls(call("mail", "a", text="x"), call("weather", "b"))
    heard = await after_a_question(
        mail, asking(), asked="mail and weather", first=first, answer="Rome", words="I've sent the mail."
    )
    assert heard == [EN.say("claims.not_done", names="mail – no such address")]


async def test_arguments_of_an_approved_run_support_a_claim_about_it() -> None:
    perform = Recorder("perform", PERFORM, effect="idempotent", gives="ok", description="Do it.", confirm="Really?")
    other = Recorder("close_poll", effect="idempotent", description="Close the poll")
    first = calls(call("perform", task="close the poll"))
    heard = await after_a_question(perform, other, asked="go", first=first, answer="yes", words="I've closed the poll.")
    assert heard == ["ok", "I've closed the poll."]


async def test_arguments_of_an_effect_before_a_question_support_a_claim_after_it() -> None:
    perform = Recorder("perform", PERFORM, effect="idempotent", gives="ok", description="Do it.")
    other = Recorder("close_poll", effect="idempotent", description="Close the poll")
    first = calls(call("perform", "a", task="close the poll"), call("weather", "b"))
    words = "I've closed the poll."
    heard = await after_a_question(perform, other, asking(), asked="go", first=first, answer="Rome", words=words)
    assert heard == [words]


async def test_what_was_looked_up_before_a_question_may_be_told_after_it() -> None:
    look = Recorder("look", gives="The poll was closed by Cleo.")
    other = Recorder("close_poll", effect="idempotent", description="Close the poll")
    first, words = calls(call("look", "a"), call("weather", "b")), "The poll has been closed."
    weather = asking(gives=("error", "no weather"))
    heard = await after_a_question(look, other, weather, asked="look", first=first, answer="Oslo", words=words)
    assert heard == [words]


async def test_a_nested_effect_before_a_question_supports_a_claim_after_it() -> None:
    async def outer(context: MessageContext, arguments: dict[str, Any], run: Call) -> str:
        await run.invoke("todo_add", {"text": "milk"})
        return "ok"

    first = calls(call("outer", "a"), call("weather", "b"))
    words = "I've added milk to your list."
    functions = (todo(), Recorder("outer", does=outer, effect="idempotent"), asking())
    heard = await after_a_question(*functions, asked="add milk", first=first, answer="Oslo", words=words)
    assert heard == [words]


async def test_what_was_reported_earlier_may_be_told_after_a_question_too() -> None:
    past = [HistoryLine("Ann", "add milk", 0, False), HistoryLine("Rollcall", "Added #1 milk.", 1, True)]
    routing = Routing(
        todo(), asking(), script=[calls(call("weather")), says("I've added milk to your list.")], history=past
    )
    asked = await routing.hears("did you add milk?")
    assert said(await routing.hears_answer(asked, "Oslo")) == ["I've added milk to your list."]


async def test_a_value_that_is_not_asked_for_again_leaves_the_function_undone() -> None:
    city = {"city": {"type": "string", "required": True}}
    send = Recorder("send", city, effect="once", gives="sent", description="Send the mail.")
    script = [calls(call("weather")), calls(call("send", "b"), call("look", "c")), *[says("I've sent the mail.")] * 2]
    routing = Routing(send, asking(), Recorder("look"), script=script)
    heard = said(await routing.hears_answer(await routing.hears("weather"), "Rome"))
    assert (heard, send.runs) == ([EN.say("claims.not_done", names="send – “city” is missing")], [])


CHEERFUL = {
    "english": "I have done everything successfully!",
    "chinese": "好的，全部都处理好了！",
    "german": "Alles erledigt, ich habe die Nachricht verschickt!",
}
HONEST = {
    "english": "I couldn't send the mail, sorry.",
    "chinese": "抱歉，邮件没能发出去。",
    "german": "Ich konnte die Nachricht leider nicht verschicken.",
}


def mail(gives: object, **options: Any) -> Recorder:
    return Recorder(
        "send_mail", TEXT, description="Send a mail", commands=["mail"], effect="once", gives=gives, **options
    )


SEND = calls(call("send_mail", text="hello"))
REFUSED = ToolError("Only owners may send mail.", ErrorCode.REFUSED)
NOT_DONE = EN.say("claims.not_done", names="/mail – Only owners may send mail")


@pytest.mark.parametrize("words", CHEERFUL.values(), ids=CHEERFUL)
async def test_a_refused_effect_is_reported_as_not_done_after_a_cheerful_answer(words: str) -> None:
    heard = said(await Routing(mail(REFUSED), script=[SEND, says(words)]).hears("send it"))
    assert heard[-1].endswith(NOT_DONE)


@pytest.mark.parametrize(
    ("gives", "line"),
    [
        (("error", "no such address"), EN.say("claims.not_done", names="/mail – no such address")),
        (TimeoutError(), EN.say("claims.unknown", names="/mail")),
        (RuntimeError("secret"), EN.say("claims.unknown", names="/mail")),
    ],
    ids=["failed", "timeout", "exception"],
)
async def test_a_failed_or_unknown_effect_is_reported_after_a_cheerful_answer(gives: object, line: str) -> None:
    heard = said(await Routing(mail(gives), script=[SEND, says("All good, have fun!")]).hears("send it"))
    assert heard[-1] == line
    assert "All good, have fun!" in heard


@pytest.mark.parametrize("words", ["You asked for a mail.", "I don't know whether it was sent."])
async def test_an_unknown_outcome_that_the_chat_was_told_of_is_not_repeated_after_other_words(words: str) -> None:
    heard = said(await Routing(mail(TimeoutError()), script=[SEND, says(words)]).hears("send it"))
    assert heard == [EN.say("failures.unknown_outcome", name="/mail"), words]


async def test_a_reason_of_several_lines_is_cut_after_a_whole_sentence() -> None:
    stopped = ToolError("Okay, I stopped there. Before that I ran:\n`rm x`", ErrorCode.REFUSED)
    heard = said(await Routing(mail(stopped), script=[SEND, says(CHEERFUL["english"])]).hears("send it"))
    assert heard[-1].endswith(EN.say("claims.not_done", names="/mail – Okay, I stopped there"))


@pytest.mark.parametrize("words", HONEST.values(), ids=HONEST)
@pytest.mark.parametrize("gives", [REFUSED, ("error", "no such address")], ids=["refused", "failed"])
async def test_an_answer_that_says_so_itself_gets_no_further_line(words: str, gives: object) -> None:
    assert said(await Routing(mail(gives), script=[SEND, says(words)]).hears("send it")) == [words]


async def test_done_and_refused_effects_are_both_listed() -> None:
    both = calls(call("todo_add", "a", text="milk"), call("send_mail", "b", text="hello"))
    routing = Routing(todo(), mail(REFUSED), script=[both, says("Both are taken care of.")])
    done = EN.say("claims.done", names="todo add")
    assert said(await routing.hears("do both")) == ["Added #1 milk.", "Both are taken care of.", f"{NOT_DONE}\n{done}"]


async def test_the_line_is_in_the_language_of_the_chat() -> None:
    routing = Routing(mail(REFUSED), script=[SEND, says("好的，都弄妥当啦！")], texts=ZH)
    heard = said(await routing.hears("发邮件"))
    assert heard[-1] == ZH.say("claims.not_done", names="/mail – Only owners may send mail")


async def test_one_admission_does_not_stand_for_two_refused_effects() -> None:
    both = calls(call("send_mail", "a", text="hello"), call("ban", "b"))
    ban = Recorder("ban", effect="once", gives=("error", "no such member"))
    routing = Routing(mail(REFUSED), ban, script=[both, says("I couldn't send the mail.")])
    line = EN.say("claims.not_done", names="/mail – Only owners may send mail; ban – no such member")
    assert said(await routing.hears("mail and ban")) == ["I couldn't send the mail.", line]


@not_over("xml_text", because="numbers are texts there")
async def test_an_effect_that_succeeds_at_the_second_attempt_counts_as_done() -> None:
    wrong = calls(call("send_mail", text=7))
    routing = Routing(mail("Sent."), script=[wrong, SEND, says("It is on its way!")])
    assert said(await routing.hears("send it")) == ["Sent.", "It is on its way!"]


async def test_a_success_with_other_values_does_not_cover_a_refused_call() -> None:
    async def only_hello(context: MessageContext, arguments: dict[str, Any], run: Call) -> str:
        if arguments["text"] != "hello":
            raise REFUSED
        return "Sent."

    script = [calls(call("send_mail", text="secret")), SEND, says("It is on its way!")]
    heard = said(await Routing(mail(None, does=only_hello), script=script).hears("send both"))
    assert heard[-1] == EN.say("claims.partly_done", names="/mail – Only owners may send mail")


@not_over("xml_text", because="an answer of that many elements is not read")
async def test_three_thousand_refused_calls_end_with_one_short_line() -> None:
    many = calls(*(call("send_mail", f"c{number}", text=f"mail {number}") for number in range(3000)))
    heard = said(await Routing(mail("Sent."), script=[many, says(CHEERFUL["english"])]).hears("send them all"))
    reason = EN.say("failures.too_many_calls").rstrip(".")
    assert heard[-1].endswith(EN.say("claims.not_done", names=f"/mail – {reason}"))


@pytest.mark.parametrize("last", [says(""), ModelError(ErrorCode.TIMEOUT, "slow")], ids=["silent", "fails"])
async def test_a_refused_effect_is_reported_when_the_model_says_nothing(last: Scripted) -> None:
    both = calls(call("todo_add", "a", text="milk"), call("send_mail", "b", text="hello"))
    script = [both, calls(call("todo_add", text="eggs")), last]
    heard = said(await Routing(todo(), mail(REFUSED), script=script).hears("do both"))
    assert NOT_DONE in heard[-1]


async def test_a_refused_effect_before_a_question_is_reported_after_its_answer() -> None:
    first = calls(call("send_mail", "a", text="hello"), call("weather", "b"))
    heard = await after_a_question(
        mail(REFUSED), asking(), asked="mail and weather", first=first, answer="Rome", words="It is on its way!"
    )
    assert heard == ["It is on its way!", NOT_DONE]


async def test_a_call_of_a_function_that_does_not_exist_is_reported_as_not_done() -> None:
    routing = Routing(mail("Sent."), script=[calls(call("send_email", text="hello")), says("It is on its way! Bye.")])
    reason = EN.say("refusals.unknown_function", name="send_email").rstrip(".")
    line = EN.say("claims.not_done", names=reason)
    assert said(await routing.hears("send it")) == ["Bye.", line]


async def test_a_function_that_the_asker_may_not_use_is_not_hidden_by_an_answer_without_functions() -> None:
    ban = Recorder("ban", roles="admin", effect="once")
    routing = Routing(
        Recorder("weather"), ban, script=[calls(call("ban")), calls(call("none")), says("Done, Bob is gone!")]
    )
    heard = said(await routing.hears("ban bob"))
    assert "Only admins" in heard[-1]
    assert ban.runs == []


@pytest.mark.parametrize(
    "words",
    ["Erledigt!", "Ich habe eine Erinnerung für 17 Uhr gesetzt.", "Die Nachricht wurde gesendet.", "Timer gestellt."],
)
async def test_a_german_claim_without_a_run_is_corrected(words: str) -> None:
    assert said(await Routing(remind(), script=[says(words)] * 2).hears("erinnere mich")) == [NOTHING]
