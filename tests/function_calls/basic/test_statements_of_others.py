"""Messages about statements of other languages, and about confused words."""

from __future__ import annotations

import pytest

from bot.registration.basic_scripts import compiler_of, keyword_modules, spellings_of
from config.settings import Settings
from function_calls.basic.compiler import BasicCompiler

HEAD = 'DESCRIPTION "Does a thing"\n'
SETTINGS = Settings()
SPELLINGS = spellings_of(keyword_modules(SETTINGS))


@pytest.fixture(scope="module")
def compiler() -> BasicCompiler:
    """The compiler of the shipped settings, with their keywords."""
    return compiler_of(SETTINGS.basic, SPELLINGS)


def told(compiler: BasicCompiler, text: str) -> list[tuple[int, str, str]]:
    """Line, code and message of each diagnostic."""
    found = compiler.compile_text(HEAD + text, "it.bas", name="it").diagnostics
    return [(one.line, one.code, one.message) for one in found]


@pytest.mark.parametrize(
    ("line", "statement", "instead"),
    [
        ("ON INSERT OF orders", "ON INSERT OF", "SET SCHEDULE"),
        ('ON EMAIL "a"', "ON EMAIL", "SET SCHEDULE"),
        ('ON FORM SUBMIT "a"', "ON FORM SUBMIT", "SET SCHEDULE"),
        ('WEBHOOK "a"', "WEBHOOK", "SET SCHEDULE"),
        ('ADD KB "a"', "ADD KB", "USE KB"),
        ('x = THINK KB "a"', "THINK KB", "knowledge_search"),
        ('USE WEBSITE "https://site.example"', "USE WEBSITE", "GET"),
        ('ADD SWITCHER "a" AS "b"', "ADD SWITCHER", "ADD SUGGESTION"),
        ("SET USER y", "SET USER", "member"),
        ('x = UPLOAD "a"', "UPLOAD", "WRITE"),
        ('COMPRESS "a", "b"', "COMPRESS", "CALL"),
        ('EXTRACT "a"', "EXTRACT", "CALL"),
        ('x = GENERATE PDF "a", "b"', "GENERATE PDF", "CALL"),
        ('MERGE PDF "a", "b"', "MERGE PDF", "CALL"),
        ('x = RUN PYTHON "1"', "RUN PYTHON", "CALL"),
        ('RUN JS "1"', "RUN JS", "CALL"),
        ('DELEGATE "a" TO BOT "b"', "DELEGATE", "CALL"),
        ('BROADCAST "a" TO y', "BROADCAST", "TALK TO"),
        ('ADD BOT "a"', "ADD BOT", "CALL"),
        ('TRANSFER "a"', "TRANSFER", "CREATE TASK"),
        ('x = BOOK "a"', "BOOK", "CALL"),
        ('ADD MEMBER "a"', "ADD MEMBER", "chat"),
        ('TALK QRCODE "a"', "QRCODE", "CALL"),
        ('CREATE SITE "a"', "CREATE SITE", "CALL"),
        ('OPEN "a" FOR INPUT AS y', "OPEN", "READ"),
        ("POKE 1, 2", "POKE", ""),
        ('SHELL "ls"', "SHELL", "CALL"),
        ("IMPORT os", "IMPORT", "CALL"),
        ('x = GENERATE_PDF "a", "b"', "GENERATE PDF", "CALL"),
        ('x = QR CODE "a"', "QR CODE", "CALL"),
        ("x = MERGE PDF y, 'a'", "MERGE PDF", "CALL"),
        ("MERGE PDF y, 'a'", "MERGE PDF", "CALL"),
        ('ON EVENT "a" DO\nTALK 1\nEND ON', "ON EVENT", "SET SCHEDULE"),
        ("SCHEDULE IN 300 SECONDS DO\nTALK 1\nEND SCHEDULE", "SCHEDULE IN", "SET SCHEDULE"),
        ("TABLE a\n  id number key\nEND TABLE\nTABLE b\n  id number\nEND TABLE", "TABLE", "SAVE"),
        ('MsgBox "hi"', "MSGBOX", "TALK"),
        ('echo "a"', "ECHO", "TALK"),
        ('console.log("a")', "CONSOLE", "TALK"),
        ('Console.WriteLine("a")', "CONSOLE", "TALK"),
    ],
)
def test_a_statement_of_another_language_is_told_once_with_what_there_is_instead(
    compiler: BasicCompiler, line: str, statement: str, instead: str
) -> None:
    [(at, code, words)] = told(compiler, f"{line}\n")
    assert (at, code) == (2, "basic.unknown_statement")
    assert words.startswith(f"{statement} is not supported")
    assert instead in words


@pytest.mark.parametrize("call", ["x = PEEK(1)", 'msgbox("a")', 'alert("a")', 'echo("a")'])
def test_a_function_of_another_language_is_told_likewise(compiler: BasicCompiler, call: str) -> None:
    [(at, code, words)] = told(compiler, f"{call}\n")
    assert (at, code) == (2, "basic.unknown_function")
    assert "is not supported" in words


@pytest.mark.parametrize("rest", ["CATCH e\nTALK e\n", 'CATCH\nTALK "a"\nFINALLY\nTALK "b"\n'])
def test_try_is_told_once_with_all_that_belongs_to_it(compiler: BasicCompiler, rest: str) -> None:
    [(line, _, words)] = told(compiler, f"TRY\nx = 1\n{rest}END TRY\nTALK x\n")
    assert line == 2
    assert "TRY is not supported; write ON ERROR RESUME NEXT" in words


@pytest.mark.parametrize(
    "form",
    ["QRCODE {text}", "RUN PYTHON {text}", "MERGE PDF {text}", "RUN {language:word} {text}", "ADD KB {text}"],
)
def test_an_operators_own_keyword_of_such_a_name_wins(form: str) -> None:
    compiler = compiler_of(SETTINGS.basic, {**SPELLINGS, form: {}})
    words = form.replace("{language:word}", "PYTHON").replace("{text}", '"a"')
    assert told(compiler, f"{words}\n") == []
    assert not any("not supported" in said for *_, said in told(compiler, f"{words} 5 5\n"))


def test_a_variable_or_a_procedure_of_such_a_name_is_what_it_is(compiler: BasicCompiler) -> None:
    assert told(compiler, "book = 1\nquery = book + 1\nTALK query\n") == []
    assert told(compiler, "SUB open(a)\nTALK a\nEND SUB\nopen 5\nCALL open(6)\n") == []
    assert told(compiler, 'pdf = "t"\nMERGE pdf, [{"a": 1}], "a"\n') == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('TALK LEN "abc"', 'LEN needs parentheses around its arguments: LEN("abc")'),
        ('x = LEN "abc"', 'LEN needs parentheses around its arguments: LEN("abc")'),
        ('TALK ucase "a"', 'UCASE needs parentheses around its arguments: UCASE("a")'),
        ('IF LEN "abc" > 2 THEN TALK "a"', 'LEN needs parentheses around its arguments: LEN("abc")'),
        ('x = LEFT "abc", 2', "LEFT needs parentheses around its arguments: LEFT(…)"),
        ("x = IF 1 = 1 THEN 2 ELSE 3", "IF has no value; write IIF(condition, value, default)"),
        (
            'x = CREATE "/"',
            "unknown CREATE keyword; expected one of CREATE OBJECT, CREATE ARRAY, CREATE DRAFT, CREATE TASK",
        ),
        ('SET HEADR "a", "b"', "unknown statement SET HEADR; did you mean SET HEADER?"),
    ],
)
def test_a_word_before_a_value_is_told_for_what_it_was_mistaken(compiler: BasicCompiler, line: str, says: str) -> None:
    assert [words for *_, words in told(compiler, f"{line}\n")] == [says]


def test_all_that_set_goes_on_as_is_told(compiler: BasicCompiler) -> None:
    [(*_, words)] = told(compiler, 'SET FOO "a"\n')
    assert all(f"SET {one}" in words for one in ("CONTEXT", "SCHEDULE", "HEADER"))
