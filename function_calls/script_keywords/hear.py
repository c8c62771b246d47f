"""What scripts ask: HEAR and INPUT. The run goes on with the member's answer, also after a restart."""

from __future__ import annotations

from collections.abc import Sequence

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import Asks, ScriptRun, Value, basic_keyword
from function_calls.basic.values import as_number, text_of
from function_calls.scripts.heard import KINDS, Heard, NotHeard, chosen, read
from function_calls.scripts.heard_words import ALIASES
from function_calls.spec import Choice
from services.clock import Clock
from services.times import Times

MOST_RETRIES = 3
"""How often an answer that does not fit is asked for again."""
_MOST_BUTTONS = 20
_MOST_CHOICES = 200
_LABEL_CHARS = 60
_OF_FILES = frozenset({"file", "image", "audio", "video"}) | {
    word for word, kind in ALIASES.items() if kind in ("file", "image", "audio", "video")
}
_KINDS = "|".join(sorted(one.upper() for one in (*KINDS, *ALIASES)))
_WANTED = f"[AS ( {{kind={_KINDS}}} | {{choices...}} )]"


@basic_keyword(
    f"HEAR {{into:variable}} ( WITH {{prompt}} {_WANTED} | {_WANTED} [WITH {{prompt}}] )",
    f"HEAR {_WANTED} [WITH {{prompt}}]",
    f"HEAR {{prompt:text}} [AS {{kind={_KINDS}}}]",  # no choices: in `HEAR "Name?" AS x` a variable is meant
    effect="idempotent",
)
async def hear(
    run: ScriptRun,
    kind: Value = "text",
    choices: Value = None,
    prompt: Value = None,
    *,
    clock: Clock,
    times: Times,
) -> Value | Asks:
    """Wait for what the member answers: in words, as a kind such as EMAIL, or as one of some texts. What does not fit
    is asked for again, three times. The question may be said before, or with it: `HEAR name WITH "Your name?"`,
    `name = HEAR "Your name?"`."""
    if run.answer is None:
        offered = _buttons(run, text_of(kind), _texts(run, choices))
        return Asks(text_of(prompt), offered, takes_files=choices is None and text_of(kind).casefold() in _OF_FILES)
    return _understood(run, text_of(kind).casefold(), _texts(run, choices), clock, times)


@basic_keyword("INPUT {prompt} (, | ;) {into:variable}", "INPUT {into:variable}", effect="idempotent")
async def input_line(run: ScriptRun, prompt: Value = None) -> Value | Asks:
    """Ask and wait for the answer, as HEAR does; an answer that is a number becomes one."""
    if run.answer is None:
        return Asks(text_of(prompt))
    number = as_number(run.answer)
    return run.answer if number is None else number


def _understood(run: ScriptRun, kind: str, choices: Sequence[str], clock: Clock, times: Times) -> Value | Asks:
    """The answer as what was asked for, or the question once more."""
    texts, said = run.call.profile.texts, run.answer or ""
    kind = ALIASES.get(kind, kind)
    heard = Heard(said, run.context.attachments, clock.now().astimezone(run.call.profile.timezone), times, texts)
    try:
        return chosen(choices, said) if choices else read(kind, heard)
    except NotHeard:
        if run.asked > MOST_RETRIES:
            raise RunFault(RunCode.BAD_VALUE, texts.say("basic.hear.gave_up")) from None
    key = "choice" if choices else kind
    why = texts.say(f"basic.hear.{key}", choices=", ".join(choices[:_MOST_BUTTONS]))
    return Asks(why, _buttons(run, kind, choices), takes_files=not choices and kind in _OF_FILES)


def _texts(run: ScriptRun, choices: Value) -> list[str]:
    """What may be chosen: `AS "A", "B"`, or one list of them. Raises RunFault."""
    if choices is None:
        return []
    given = choices if isinstance(choices, list) else [choices]
    if len(given) == 1 and isinstance(given[0], list):
        given = given[0]
    found = [text for one in given if (text := text_of(one).strip())]
    if not found or len(found) > _MOST_CHOICES:
        raise RunFault(RunCode.BAD_VALUE, run.call.say("basic.hear.no_choices"))
    return list(dict.fromkeys(found))


def _buttons(run: ScriptRun, kind: str, choices: Sequence[str]) -> tuple[Choice, ...]:
    """What is offered to press."""
    if choices:
        return tuple(Choice(one[:_LABEL_CHARS], one) for one in choices[:_MOST_BUTTONS])
    if ALIASES.get(kind.casefold(), kind.casefold()) != "boolean":
        return ()
    texts = run.call.profile.texts
    return tuple(Choice(texts.say(f"questions.{one}_label"), texts.words(f"answers.{one}")[0]) for one in ("yes", "no"))
