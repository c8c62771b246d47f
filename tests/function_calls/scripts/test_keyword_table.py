"""Keywords are decorated functions; errors in their declarations are reported at load time with their place."""

from __future__ import annotations

from typing import Any

import pytest

from bot.registration.basic_scripts import built_in_keyword_modules
from function_calls.basic.keywords import Asks, ScriptRun, Value, basic_keyword
from function_calls.basic.run.keyword_table import KeywordTable
from function_calls.schema.definition import DefinitionError
from function_calls.spec import Touch
from services.clock import Clock, VirtualClock
from services.refs import Effect
from tests.fakes.script_runs import a_run
from tests.function_calls.scripts.keyword_modules import a_module


@basic_keyword("SHOUT {text} [, {times}]", "CRY {text}")
async def shout(run: ScriptRun, text: Value, times: Value = 1, *, clock: Clock) -> Value:
    """Give a text in capitals.

    More that is of no concern."""
    return f"{str(text).upper() * int(str(times))} {clock.now():%H}"


@basic_keyword("RING {bell}", effect="once", touches=["reaches_out", "reads_outside"])
async def ring(run: ScriptRun, bell: Value) -> None:
    """Ring."""


@basic_keyword("NOTE {text}", effect="once", touches=["stays_here"])
async def note(run: ScriptRun, text: Value) -> None:
    """Note."""


@basic_keyword("DROP {text}", effect="once")
async def drop(run: ScriptRun, text: Value) -> None:
    """Drop."""


@basic_keyword("PUT {text}", effect="idempotent")
async def put(run: ScriptRun, text: Value) -> None:
    """Put."""


def a_table(*functions: Any) -> KeywordTable:
    return KeywordTable([a_module("words", *functions)], {Clock: VirtualClock()})


def faults_of(*functions: Any) -> str:
    with pytest.raises(DefinitionError) as error:
        a_table(*functions)
    return str(error.value)


async def test_a_keyword_is_given_its_slots_and_services_and_stands_under_each_of_its_names() -> None:
    table = a_table(shout)
    assert table.forms.names == ("SHOUT", "CRY")
    found = table.find("SHOUT")
    assert found is not None
    assert (found.description, found.usage) == ("Give a text in capitals.", ("SHOUT text [, times]",))
    assert found.source.endswith("test_keyword_table.py:20")
    assert await found.handler(a_run(), {"text": "a", "times": 2}) == "AA 09"
    cry = table.find("CRY")
    assert cry is not None
    assert await cry.handler(a_run(), {"text": "b"}) == "B 09"
    assert table.find("WHISPER") is None


def test_a_script_does_what_the_strongest_of_its_keywords_does() -> None:
    table = a_table(shout, ring, put)
    assert table.effect_of([]) is Effect.READ
    assert table.effect_of(["SHOUT"]) is Effect.READ
    assert table.effect_of(["SHOUT", "PUT"]) is Effect.IDEMPOTENT
    assert table.effect_of(["RING", "SHOUT", "PUT"]) is Effect.ONCE
    assert table.effect_of(["UNKNOWN"]) is Effect.ONCE


def test_a_script_that_changes_what_is_kept_happens_once_though_each_of_its_statements_may_be_repeated() -> None:
    @basic_keyword("KEEP {text}", effect="idempotent", touches=["stays_here"])
    async def keep(run: ScriptRun, text: Value) -> None: ...

    @basic_keyword("SEND {text}", effect="idempotent", touches=["reaches_out"])
    async def send(run: ScriptRun, text: Value) -> None: ...

    table = a_table(shout, put, keep, send)
    assert table.effect_of(["KEEP"]) is Effect.ONCE
    assert table.effect_of(["SHOUT", "SEND"]) is Effect.ONCE
    # Messages are sent after the run, and a called function detects repetitions itself.
    assert table.effect_of(["SHOUT", "PUT"]) is Effect.IDEMPOTENT


def test_a_script_touches_what_its_keywords_touch() -> None:
    table = a_table(shout, ring, note, drop, put)
    assert table.touches_of(["SHOUT", "PUT"]) == frozenset()
    assert table.touches_of(["RING"]) == {Touch.REACHES_OUT, Touch.READS_OUTSIDE}
    assert table.touches_of(["NOTE", "PUT"]) == {Touch.STAYS_HERE}
    # The label of one keyword is not reduced by the effect of another.
    assert table.touches_of(["NOTE", "DROP"]) == {Touch.REACHES_OUT}


def test_two_keywords_of_one_name_are_both_named() -> None:
    @basic_keyword("SHOUT {loudly}")
    async def other(run: ScriptRun, loudly: Value) -> None: ...

    text = faults_of(shout, other)
    assert "SHOUT is already a keyword of" in text
    assert text.count("test_keyword_table.py:") == 2


def test_parameters_have_to_fit_the_forms() -> None:
    @basic_keyword("GIVE {what} [, {whom}]")
    async def give(run: ScriptRun, what: Value, whom: Value) -> None: ...

    @basic_keyword("TAKE {what}")
    async def take(run: ScriptRun) -> None: ...

    text = faults_of(give, take)
    assert "the form `GIVE {what} [, {whom}]` may leave out 'whom', so the parameter needs a default" in text
    assert "the form `TAKE {what}` has the slot {what}, but the function has no parameter 'what'" in text


def test_a_variable_that_receives_the_result_is_no_parameter() -> None:
    @basic_keyword("GUESS {into:variable} AS {kind:word}")
    async def guess(run: ScriptRun, kind: Value) -> Value | Asks:
        return kind

    assert a_table(guess).find("GUESS") is not None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (((), {}), "no form is given"),
        ((("lower {x}",), {}), "invalid form `lower {x}`"),
        ((("WORD",), {"effect": "twice"}), "effect must be one of read, idempotent, once, not 'twice'"),
        ((("WORD",), {"touches": ["everything"]}), "touches must be among"),
        ((("WORD",), {"touches": ["reaches_out", "stays_here"]}), "cannot both reach out and stay here"),
    ],
)
def test_a_wrong_mark_is_said(options: tuple[tuple[str, ...], dict[str, Any]], problem: str) -> None:
    forms, named = options

    @basic_keyword(*forms, **named)
    async def word(run: ScriptRun) -> None: ...

    assert problem in faults_of(word)


def test_a_wrong_signature_is_said() -> None:
    @basic_keyword("ONE")
    def not_async(run: ScriptRun) -> None: ...

    @basic_keyword("TWO")
    async def no_run(text: str) -> None: ...

    @basic_keyword("THREE")
    async def no_type(run: ScriptRun, *, service) -> None: ...  # type: ignore[no-untyped-def]  # is what is tried

    @basic_keyword("FOUR")
    async def no_service(run: ScriptRun, *, service: VirtualClock) -> None: ...

    text = faults_of(not_async, no_run, no_type, no_service)
    for problem in (
        "it must be an `async def`",
        "the first parameter must be the ScriptRun",
        "parameter 'service' needs a type",
        "there is no service of type VirtualClock for parameter 'service'",
    ):
        assert problem in text


def test_what_a_module_only_imports_is_not_its_own() -> None:
    module = a_module("words", shout)
    module.__dict__["borrowed"] = ring
    ring.__module__ = "elsewhere"
    assert KeywordTable([module], {Clock: VirtualClock()}).forms.names == ("SHOUT", "CRY")


def test_modules_of_the_package_are_found_by_themselves() -> None:
    names = {module.__name__.rpartition(".")[2] for module in built_in_keyword_modules()}
    assert {"calls", "memory", "talk", "web"} <= names
