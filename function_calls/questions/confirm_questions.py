"""Confirmation questions: the member says yes or no before a run."""

from __future__ import annotations

from config.texts import Phrases
from function_calls.outcome import TurnOutcome
from function_calls.questions.open_questions import (
    Answered,
    argument_list,
    declared_text,
    read_yes_or_no,
    run_question,
    shown_value,
)
from function_calls.questions.waiting_runs import WaitingTurn
from function_calls.schema.commands import about
from function_calls.spec import Choice, ConfirmQuestion, FunctionSpec
from services.refs import JsonObject


def confirm_question(spec: FunctionSpec, arguments: JsonObject, texts: Phrases) -> ConfirmQuestion:
    """Ask for a yes before a run, with the declared text or else with the parsed arguments."""
    text = declared_text(spec, spec.access.confirm, arguments, texts) or run_question(spec, arguments, texts)
    if not text:
        understood = argument_list({name: shown_value(value) for name, value in arguments.items()}, texts)
        key = "questions.confirm_with" if understood else "questions.confirm"
        text = texts.say(key, description=about(spec, texts).rstrip("."), arguments=understood)
    choices = (
        Choice(texts.say("questions.yes_label"), texts.words("answers.yes")[0]),
        Choice(texts.say("questions.no_label"), texts.words("answers.no")[0]),
    )
    return ConfirmQuestion(text, spec.name, arguments, choices)


async def resume(waiting: WaitingTurn, question: ConfirmQuestion, spec: FunctionSpec, text: str) -> TurnOutcome:
    """Run the function if `text` is a yes, else drop the call."""
    answer = read_yes_or_no(text, waiting.texts)
    if answer.kind is not Answered.YES:
        return await waiting.drop(spec, is_clear=answer.kind is Answered.NO)
    return await waiting.run(question, spec, question.arguments, confirmed=True)
