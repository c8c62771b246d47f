"""Command lines: assignment of words to parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.texts import Texts
from function_calls.registry import BotFunctions, FunctionRegistry
from function_calls.schema.commands import arguments_of, fault_text, is_command_word, plan_for, usage_line
from function_calls.schema.definition import DefinitionError
from function_calls.spec import ArgumentError, FunctionSpec
from services.refs import ReasonCode
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import says
from tests.function_calls.routing import Routing, said

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
WORDS = {"type": "array", "items": {"type": "string"}}
LEVEL = {"type": "string", "enum": ["low", "high"]}
FLAG = {"type": "boolean"}


def required(schema: dict[str, Any]) -> dict[str, Any]:
    """The same parameter, required."""
    return {**schema, "required": True}


NOTHING: dict[str, Any] = {}
SOLE = {"text": required(TEXT)}
TASK = {"text": required(TEXT), "priority": LEVEL, "days": NUMBER}
REMIND = {"who": required(TEXT), "what": required(TEXT), "days": NUMBER}
POLL = {"question": required(TEXT), "options": required(WORDS)}
MOVE = {"steps": required(NUMBER), "quickly": FLAG, "note": TEXT}


def read(parameters: dict[str, Any], line: str) -> dict[str, Any]:
    """Raw arguments of a command line."""
    return arguments_of(plan_for(Recorder("act", parameters).spec), line)


@pytest.mark.requirement("D6")
@pytest.mark.parametrize(
    ("parameters", "line", "arguments"),
    [
        # the whole line is one text
        (SOLE, "", {}),
        (SOLE, "   ", {}),
        (SOLE, "buy milk  and tea", {"text": "buy milk  and tea"}),
        (SOLE, '"buy milk"', {"text": "buy milk"}),
        (SOLE, "“buy milk”", {"text": "buy milk"}),
        (SOLE, "「买牛奶」", {"text": "买牛奶"}),
        (SOLE, "『买』", {"text": "买"}),
        (SOLE, "«milk»", {"text": "milk"}),
        (SOLE, "text=buy milk", {"text": "buy milk"}),
        (SOLE, 'text="buy milk"', {"text": "buy milk"}),
        (SOLE, "text=", {"text": ""}),
        (SOLE, "text=  ", {"text": ""}),
        (SOLE, '"', {"text": '"'}),
        (SOLE, '"a" and "b"', {"text": '"a" and "b"'}),
        (SOLE, "it's ann's", {"text": "it's ann's"}),
        # typed parameters are taken from the right
        (TASK, "buy milk", {"text": "buy milk"}),
        (TASK, "buy milk high", {"text": "buy milk high"}),
        (TASK, '"buy milk" high', {"text": "buy milk", "priority": "high"}),
        (TASK, "buy milk HIGH 3", {"text": "buy milk HIGH", "days": "3"}),
        (TASK, "buy 3 high", {"text": "buy 3 high"}),
        (TASK, "3", {"text": "3"}),
        (TASK, "high", {"text": "high"}),
        (TASK, '"buy high 3"', {"text": "buy high 3"}),
        (TASK, '"buy  milk" low', {"text": "buy  milk", "priority": "low"}),
        (TASK, "buy   milk\tnow 3", {"text": "buy   milk\tnow", "days": "3"}),
        # by name
        (TASK, "priority=high buy milk", {"priority": "high", "text": "buy milk"}),
        (TASK, "buy milk priority=high", {"priority": "high", "text": "buy milk"}),
        (TASK, "buy priority=high milk", {"priority": "high", "text": "buy milk"}),
        (TASK, 'text="a b" days=3', {"text": "a b", "days": "3"}),
        (TASK, "text=“a b” days=3", {"text": "a b", "days": "3"}),
        (TASK, "days= milk", {"days": "", "text": "milk"}),
        (TASK, "milk days=", {"days": "", "text": "milk"}),
        (TASK, "unknown=3", {"text": "unknown=3"}),
        # several texts
        (REMIND, "ann call me", {"who": "ann call", "what": "me"}),
        (REMIND, '"ann lee" "call me" 3', {"who": "ann lee", "what": "call me", "days": "3"}),
        (REMIND, '"ann lee" call me', {"who": "ann lee", "what": "call me"}),
        # lists
        (POLL, '"Tea or coffee?" tea coffee', {"question": "Tea or coffee?", "options": ["tea", "coffee"]}),
        (POLL, '"Lunch?" rice bowl, soup', {"question": "Lunch?", "options": ["rice bowl", "soup"]}),
        (POLL, '"午饭？" 米饭，面条、汤', {"question": "午饭？", "options": ["米饭", "面条", "汤"]}),
        (POLL, '"Q" "a, b" c', {"question": "Q", "options": ["a, b", "c"]}),
        (POLL, "question=Q options=tea,coffee", {"question": "Q", "options": ["tea", "coffee"]}),
        (POLL, 'options="tea, coffee" Q', {"question": "Q", "options": ["tea, coffee"]}),
        # a typed word that does not match becomes part of a later text
        (MOVE, "5 yes", {"steps": "5", "quickly": "yes"}),
        (MOVE, "5 carefully now", {"steps": "5", "note": "carefully now"}),
        (MOVE, "five", {"steps": "five"}),
        (TASK, '"buy" milk', {"text": "buy", "priority": "milk"}),
        (TASK, '"buy" 3', {"text": "buy", "days": "3"}),
        (NOTHING, "", {}),
    ],
)
def test_words_become_arguments_by_the_schema(parameters: Any, line: str, arguments: dict[str, Any]) -> None:
    assert read(parameters, line) == arguments


@pytest.mark.parametrize(
    ("parameters", "line", "words"),
    [
        (NOTHING, "now", ["now"]),
        ({"n": NUMBER}, "1 2 3", ["2", "3"]),
        (TASK, "milk days=3 days=4", ["days"]),
    ],
)
def test_words_that_no_parameter_takes_are_refused_by_name(parameters: Any, line: str, words: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        read(parameters, line)
    assert list(caught.value.problems) == words


ANY_PARAMETERS = st.dictionaries(
    st.sampled_from(["a", "b", "text", "天"]),
    st.builds(
        lambda schema, is_required: {**schema, "required": is_required},
        st.sampled_from([TEXT, NUMBER, WORDS, LEVEL, FLAG, {"type": "object"}, {"type": "number"}]),
        st.booleans(),
    ),
    max_size=4,
)
LINES = st.text(st.sampled_from(list("ab =\"'“”「」,，1.- \n\u3000天high\u200b\x00")), max_size=30) | st.text(
    max_size=30
)


@given(ANY_PARAMETERS, LINES)
def test_no_text_makes_anything_but_arguments_or_a_fault(parameters: dict[str, Any], line: str) -> None:
    try:
        arguments = read(parameters, line)
    except ArgumentError:
        return
    assert set(arguments) <= set(parameters)
    for name, value in arguments.items():
        assert isinstance(value, list if parameters[name].get("type") == "array" else str)


QUOTABLE = st.text(st.characters(exclude_characters='"', exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(QUOTABLE, QUOTABLE, st.lists(QUOTABLE, min_size=1, max_size=4))
def test_quoted_values_come_back_as_they_were(who: str, what: str, options: list[str]) -> None:
    assert read(REMIND, f'"{who}" "{what}"') == {"who": who, "what": what}
    assert read(REMIND, f'what="{what}" who="{who}"') == {"who": who, "what": what}
    line = " ".join(f'"{one}"' for one in options)
    assert read(POLL, f'"{who}" {line}') == {"question": who, "options": options}


@given(QUOTABLE)
def test_a_sole_quoted_text_comes_back_as_it_was(text: str) -> None:
    assert read(SOLE, f'"{text}"') == {"text": text}


# -- command words


@pytest.mark.parametrize("word", ["he\u200blp", "help\u200b", "\u202ehelp", "he\u00adlp", "help\ufeff", "h\x00elp", ""])
def test_a_word_with_invisible_characters_is_no_command(word: str) -> None:
    functions = BotFunctions([Recorder("help", commands=["help"]).spec])
    assert functions.command_line(f"/{word}", bare=True) is None
    assert not is_command_word(word)


@pytest.mark.parametrize("text", ["/help", "/HELP", "/Help", "help", "HELP weather", "/help\u2003me"])
def test_a_visible_word_is_a_command_in_any_case(text: str) -> None:
    functions = BotFunctions([Recorder("help", SOLE, commands=["help"]).spec])
    line = functions.command_line(text, bare=True)
    assert line is not None
    assert line.word == "help"


@pytest.mark.parametrize(
    "text", ["//help", "/ help", "/", "", " ", "/help/me", "\u200b/help", "!help", "helpme", "./help"]
)
def test_what_only_resembles_a_command_is_none(text: str) -> None:
    functions = BotFunctions([Recorder("help", SOLE, commands=["help"]).spec])
    assert functions.command_line(text, bare=True) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/天气北京", ("天气", "北京")),
        ("/天气预报北京 3", ("天气预报", "北京 3")),
        ("/投票结果", ("投票 结果", "")),
        ("/投诉", None),
        ("天气北京", None),
        ("/weatherParis", None),
    ],
)
def test_after_a_slash_chinese_words_need_no_spaces(text: str, found: tuple[str, str] | None) -> None:
    weather = Recorder("weather", SOLE, commands=["weather", "天气", "天气预报"])
    polls = Recorder("polls", SOLE, commands=["投", "投票", "投票 结果"])
    line = BotFunctions([weather.spec, polls.spec]).command_line(text, bare=True)
    assert (line and (line.word, line.rest)) == found


async def test_the_texts_of_a_hostile_world_never_break_the_router(data: Callable[[str], Path]) -> None:
    cases = [json.loads(line) for line in data("G_faults/unicode_commands.jsonl").read_text("utf-8").splitlines()]
    assert cases
    for case in cases:
        text, expected = case["text"], case["expect"]
        admin = Recorder("admin", SOLE, commands=["admin"], roles="admin")
        help_ = Recorder("help", SOLE, commands=["help"])
        echo = Recorder("echo", SOLE, commands=["echo"], gives=("ok", None))
        routing = Routing(admin, help_, echo, script=[says("Hm.")])
        outcome = await routing.hears(text)
        if expected == "not_a_command":
            assert (help_.runs, admin.runs, outcome.reason) == ([], [], ReasonCode.CHAT), case
        elif expected == "same_policy_as_lower":
            lower = await Routing(admin).hears(text.lower())
            assert (outcome.reason, said(outcome)) == (lower.reason, said(lower)), case
        elif expected == "literal":
            await routing.hears(f"/echo {text}")
            assert echo.runs == [{"text": text}], case


def test_two_word_commands_win_over_one_word_ones() -> None:
    add, todo = (
        Recorder("add", SOLE, commands=["todo add", "添加 待办"]),
        Recorder("todo", SOLE, commands=["todo", "添加"]),
    )
    functions = BotFunctions([add.spec, todo.spec])

    def found(text: str) -> tuple[str, str]:
        line = functions.command_line(text, bare=True)
        assert line is not None
        return line.spec.name, line.rest

    assert found("/todo add milk") == ("add", "milk")
    assert found("/TODO   Add  milk ") == ("add", "milk ")
    assert found("/todo added milk") == ("todo", "added milk")
    assert found("/todo") == ("todo", "")
    assert found("/todo add") == ("add", "")
    assert found("/添加 待办 牛奶") == ("add", "牛奶")
    assert found("/添加 牛奶") == ("todo", "牛奶")


@pytest.mark.requirement("D10", "D24")
@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("roll 6", True),
        ("roll two dice for me", False),
        ("roll", True),
        ("/roll two dice for me", True),
        ("wipe everything please", False),
        ("wipe", True),
        ("/wipe everything please", True),
    ],
)
async def test_a_bare_word_before_words_that_make_no_sense_to_it_is_plain_speech(text: str, is_command: bool) -> None:
    roll = Recorder("roll", {"sides": {"type": "integer"}}, commands=["roll"])
    wipe = Recorder("wipe", SOLE, commands=["wipe"], effect="once")
    routing = Routing(roll, wipe, script=[says("Let me think.")])
    outcome = await routing.hears(text)
    assert (outcome.reason is not ReasonCode.CHAT) is is_command
    assert len(wipe.runs) == (text == "/wipe everything please")


@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("look up rivers", False),
        ("look up", False),
        ("gaze rivers", False),
        ("gaze", False),
        ("/gaze rivers", True),
        ("/look up rivers", True),
        ("note list milk", True),
        ("note list of groceries: milk", False),
        ("note list what is on it?", False),
        ("/note list of groceries", True),
        ("note add the milk", True),
    ],
)
def test_bare_words_that_would_be_sent_away_or_go_on_as_a_sentence_are_speech(text: str, is_command: bool) -> None:
    away = Recorder("away", SOLE, commands=["gaze", "look up"], touches="sends_out")
    notes = Recorder("notes", SOLE, commands=["note list"])
    add = Recorder("add", SOLE, commands=["note add"], effect="idempotent")
    functions = BotFunctions([away.spec, notes.spec, add.spec])
    assert (functions.command_line(text, bare=True) is not None) is is_command


async def test_plain_speech_is_not_refused_for_beginning_with_a_word_that_is_forbidden() -> None:
    ban = Recorder("ban", commands=["ban"], roles="admin")
    routing = Routing(ban, script=[says("A ban of what?")])
    assert said(await routing.hears("ban all sugar")) == ["A ban of what?"]
    assert (await routing.hears("/ban all sugar")).reason is ReasonCode.REFUSED
    assert (await routing.hears("ban")).reason is ReasonCode.REFUSED


def test_finding_a_command_looks_at_no_other_command() -> None:
    looked_up: list[str] = []

    class Noting(dict[str, Any]):
        """Records look-ups, and cannot be iterated."""

        def get(self, key: Any, default: Any = None) -> Any:
            looked_up.append(key)
            return super().get(key, default)

        def __iter__(self) -> Any:
            raise AssertionError("all commands were looked at")

        items = keys = values = __iter__

    registry = FunctionRegistry()
    registry.register_functions(Recorder(f"f{n}", SOLE, commands=[f"word{n}"]).spec for n in range(300))
    functions = registry.of("default")
    functions._commands = Noting(functions._commands)
    line = functions.command_line("/word250 x", bare=False)
    assert line is not None
    assert (line.spec.name, looked_up) == ("f250", ["word250"])
    assert line.plan is functions.command_line("/word250", bare=False).plan  # type: ignore[union-attr]


# -- parameters only by name


def summing() -> FunctionSpec:
    """A function with many parameters, one of which is filled by words of a command line."""
    parameters = {"period": TEXT, "count": NUMBER, "about": TEXT, "who": required(TEXT)}
    return Recorder("sum", parameters, commands=["sum"], positional=["period"]).spec


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("", {}),
        ("today", {"period": "today"}),
        ("last 2 hours", {"period": "last 2 hours"}),
        ("last 100", {"period": "last 100"}),
        ('last 100 about="the trip" who=ann', {"period": "last 100", "about": "the trip", "who": "ann"}),
        ("count=3", {"count": "3"}),
        ('"since yesterday" count=3', {"period": "since yesterday", "count": "3"}),
    ],
)
def test_words_fill_only_the_parameters_that_are_meant_for_them(line: str, arguments: dict[str, Any]) -> None:
    assert arguments_of(plan_for(summing()), line) == arguments


def test_words_that_only_named_parameters_could_take_are_refused() -> None:
    spec = Recorder("sum", {"count": NUMBER, "about": TEXT}, positional="count").spec
    with pytest.raises(ArgumentError) as caught:
        arguments_of(plan_for(spec), "3 trip")
    assert list(caught.value.problems) == ["trip"]


def test_the_usage_line_names_what_is_only_named() -> None:
    assert usage_line(summing()) == "/sum [period] <who=…> [count=…] [about=…]"


# -- usage


@pytest.mark.parametrize(
    ("parameters", "commands", "line"),
    [
        (TASK, ["task", "任务"], "/task <text> [priority] [days]"),
        ({"days": NUMBER, "city": required(TEXT)}, ["weather"], "/weather <city> [days]"),
        (NOTHING, ["id"], "/id"),
        (SOLE, [], "act"),
    ],
)
def test_the_usage_line_shows_the_order_in_which_words_are_taken(
    parameters: Any, commands: list[str], line: str
) -> None:
    assert usage_line(Recorder("act", parameters, commands=commands).spec) == line


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 7}, "a whole number from 1 to 7"),
        ({"type": "integer", "minimum": 1}, "a whole number, at least 1"),
        ({"type": "number", "maximum": 9.5}, "a number, at most 9.5"),
        ({"type": "string", "enum": ["a", "b"]}, "one of a, b"),
        ({"type": "string", "maxLength": 5}, "text of at most 5 characters"),
        ({"type": "array", "minItems": 2, "maxItems": 9}, "a list of 2 to 9 items"),
        ({"type": "array", "minItems": 2}, "a list of 2 to … items"),
        ({"type": "boolean"}, "yes or no"),
        ({"type": "object"}, "an object"),
        ({}, "some text"),
    ],
)
def test_what_is_allowed_is_said_in_words(schema: Any, words: str) -> None:
    spec = Recorder("act", SOLE, commands=["act"]).spec
    text = fault_text(spec, ArgumentError({"x": schema}), Texts().of("en"))
    assert text == f"“x” must be: {words}.\nUsage: /act <text>"


def test_a_fault_is_told_in_the_chats_language() -> None:
    spec = Recorder("act", CITY, commands=["act"]).spec
    for language in ("en", "zh"):
        texts = Texts().of(language)
        lines = fault_text(spec, ArgumentError({"x": None}, ["city"]), texts).splitlines()
        assert lines == [
            texts.say("arguments.no_such", name="x"),
            texts.say("arguments.missing", name="city"),
            texts.say("arguments.usage", usage="/act <city>"),
        ]


def test_a_fault_of_no_argument_in_particular_is_a_sentence_and_the_usage() -> None:
    spec = Recorder("act", CITY, commands=["act"]).spec
    assert fault_text(spec, ArgumentError({"": None}), Texts().of("en")) == (
        "These values can't be used.\nUsage: /act <city>"
    )


OPTIONS = {"type": "array", "items": {"type": "string"}, "required": True}


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("Dinner? rice, beans", {"question": "Dinner?", "options": ["rice", "beans"]}),
        ("Where do we eat? thai food, at home", {"question": "Where do we eat?", "options": ["thai food", "at home"]}),
        ("吃什么？ 披萨，寿司", {"question": "吃什么？", "options": ["披萨", "寿司"]}),
        ('"Tea or coffee" tea coffee', {"question": "Tea or coffee", "options": ["tea", "coffee"]}),
    ],
)
def test_a_question_before_a_list_ends_at_its_question_mark(line: str, arguments: dict[str, object]) -> None:
    poll = Recorder("poll", {"question": {"type": "string", "required": True}, "options": OPTIONS})
    assert arguments_of(plan_for(poll.spec), line) == arguments


def test_a_function_may_take_the_whole_line_into_one_of_its_parameters() -> None:
    parameters = {
        "text": {"type": "string", "required": True},
        "count": {"type": "integer"},
        "when": {"type": "string"},
    }
    spec = Recorder("act", parameters, commands=["act"], line="text").spec
    assert arguments_of(plan_for(spec), "tomorrow at 5 call mum 7") == {"text": "tomorrow at 5 call mum 7"}
    assert arguments_of(plan_for(spec), 'a=b "c"') == {"text": 'a=b "c"'}
    assert arguments_of(plan_for(spec), 'when="at 5" call mum') == {"when": "at 5", "text": "call mum"}
    assert usage_line(spec) == "/act <text>"


def test_a_line_goes_to_a_text_parameter_that_exists() -> None:
    for line in ("count", "nothing"):
        with pytest.raises(DefinitionError, match="line: there is no text parameter"):
            Recorder("act", {"count": {"type": "integer"}}, line=line)
