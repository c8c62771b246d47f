"""Messages about typical beginners' mistakes: on the right line and with a hint."""

from __future__ import annotations

import pytest

from bot.registration.basic_scripts import compiler_of, keyword_modules, spellings_of
from config.settings import Settings
from function_calls.basic.codes import Profile
from function_calls.basic.compiler import BasicCompiler

HEAD = 'DESCRIPTION "Does a thing"\n'


@pytest.fixture(scope="module")
def compiler() -> BasicCompiler:
    """The compiler of the shipped settings, with their keywords."""
    settings = Settings()
    return compiler_of(settings.basic, spellings_of(keyword_modules(settings)))


def told(compiler: BasicCompiler, text: str, profile: Profile = Profile.EXTENDED) -> list[tuple[int, str, str]]:
    """Line, severity and message of each diagnostic."""
    found = compiler.compile_text(text, "it.bas", name="it", profile=profile).diagnostics
    return [(one.line, one.severity, one.message) for one in found]


@pytest.mark.parametrize("left", ["5", '"name"'])
def test_what_is_no_name_receives_no_value(compiler: BasicCompiler, left: str) -> None:
    [(line, severity, words)] = told(compiler, f"{HEAD}x = 1\n{left} = x\n")
    assert (line, severity) == (3, "error")
    assert f"expected a variable name before `=`, found `{left}`" in words


@pytest.mark.parametrize(
    ("block", "first"),
    [
        ("IF x = 1 THEN\nTALK x\nEND IF and more", "IF"),
        ("IF x = 1 THEN\nTALK x\nEND IF IF", "IF"),
        ("DO WHILE x < 2\nx = 2\nWEND x", "DO"),
        ("SELECT CASE x\nCASE 1\nEND SELECT x", "SELECT"),
        ("WITH y\na = 1\nEND WITH y", "WITH"),
    ],
)
def test_text_behind_the_end_of_a_block_is_told_there(compiler: BasicCompiler, block: str, first: str) -> None:
    found = told(compiler, f"{HEAD}x = 1\n{block}\nTALK x\n")
    last = 2 + len(block.splitlines())
    expected = f"expected the end of the line after the {first} of line 3"
    assert any(line == last and expected in words for line, _, words in found)


def test_an_operator_at_the_end_of_the_script_is_told_on_its_own_line(compiler: BasicCompiler) -> None:
    [(line, _, words)] = told(compiler, f"{HEAD}x = 1\ny = x +\n\n\n")
    assert line == 3
    assert "expected a value after `+`" in words


def test_a_procedure_that_is_there_twice_is_told_by_its_name(compiler: BasicCompiler) -> None:
    sub = "SUB twice(x)\nTALK x\nEND SUB\n"
    [(line, _, words)] = told(compiler, f"{HEAD}{sub}{sub}CALL twice(1)\n")
    assert (line, words) == (5, "the SUB or FUNCTION `twice` is already defined on line 2; rename one of them")


def test_the_fence_of_a_script_that_was_copied_from_a_chat_is_told(compiler: BasicCompiler) -> None:
    errors = [one for one in told(compiler, f'```basic\n{HEAD}TALK "hello"\n```\n') if one[1] == "error"]
    assert [line for line, *_ in errors] == [1]
    assert "the fence ``` is not part of a script" in errors[0][2]


@pytest.mark.parametrize(("kind", "hint"), [("SOUFFLE", "such as EMAIL"), ("EMIAL", "did you mean EMAIL?")])
def test_a_kind_of_answer_that_is_none_is_told(compiler: BasicCompiler, kind: str, hint: str) -> None:
    [(line, severity, words)] = told(compiler, f"{HEAD}HEAR it AS {kind}\nTALK it\n")
    assert (line, severity) == (2, "warning")
    assert f"unknown kind of answer `{kind}` for HEAR" in words
    assert hint in words


@pytest.mark.requirement("B28")
@pytest.mark.parametrize("word", ["then", "ELSE", "elseif", "and", "null"])
def test_a_word_that_is_never_a_variable_is_no_name_of_a_parameter(compiler: BasicCompiler, word: str) -> None:
    found = told(compiler, f'PARAM {word} AS string LIKE "a" DESCRIPTION "b"\n{HEAD}TALK "c"\n')
    assert (1, "error", f"`{word}` is a reserved word and cannot be a parameter name") in found


def test_what_may_be_chosen_may_stand_in_a_variable(compiler: BasicCompiler) -> None:
    assert told(compiler, f'{HEAD}sizes = ["S", "M"]\nHEAR it AS sizes\nTALK it\n') == []


def test_the_words_of_an_error_need_no_value_before(compiler: BasicCompiler) -> None:
    script = f'{HEAD}ON ERROR RESUME NEXT\nx = 1 / 0\nIF ERROR THEN TALK "it was " + ERROR MESSAGE\n'
    assert told(compiler, script) == []


def test_a_number_may_be_formatted_without_a_pattern(compiler: BasicCompiler) -> None:
    assert told(compiler, f'{HEAD}TALK "No. " + FORMAT(RANDOM(1000, 9999))\n') == []


@pytest.mark.requirement("A53")
def test_a_script_that_runs_by_the_clock_alone_needs_no_description_but_in_the_strict_profile(
    compiler: BasicCompiler,
) -> None:
    script = 'REM every day\nSET SCHEDULE "0 8 * * *"\nTALK "Good morning"\n'
    assert told(compiler, script) == []
    assert "the DESCRIPTION is missing" in told(compiler, script, Profile.STRICT)[0][2]
    assert "the DESCRIPTION is missing" in told(compiler, 'TALK "Good morning"\n')[0][2]


@pytest.mark.parametrize("left_open", ["x =", "x = a.", "x = NOT", "x = a[", 'TALK "a" +', "x = [1,"])
def test_what_is_missing_at_the_end_is_told_where_its_statement_stands(compiler: BasicCompiler, left_open: str) -> None:
    assert [line for line, *_ in told(compiler, f"{HEAD}a = {{}}\n{left_open}\n\n\n")] == [3]


def test_what_is_missing_before_a_block_is_told_on_the_line_that_begins_it(compiler: BasicCompiler) -> None:
    [(line, _, words)] = told(compiler, f"{HEAD}BEGIN MAIL\nSubject: a\nb\nEND MAIL\n")
    assert line == 2
    assert "expected a value for `to`, found the end of the line" in words


def test_a_list_with_a_comma_at_its_end_and_no_bracket_is_told_as_not_closed(compiler: BasicCompiler) -> None:
    found = told(compiler, f'{HEAD}colours = ["red",\n    "blue",\nTALK colours\n')
    assert (2, "`[` is not closed; expected `]` before the end of the statement") in [
        (line, words) for line, _, words in found
    ]


@pytest.mark.parametrize(
    ("line", "column", "bracket"),
    [
        ("TALK (1 + 2", 6, "("),
        ('TALK ("a"', 6, "("),
        ('TALK("a"', 5, "("),
        ('SEND MAIL("a@b.c", "x", "y"', 10, "("),
        ("IF (1 = 1 THEN TALK 1", 4, "("),
        ("x = [1, 2,", 5, "["),
        ("x = #{ a: 1,", 5, "#{"),
    ],
)
def test_a_bracket_that_is_not_closed_is_told_where_it_stands(
    compiler: BasicCompiler, line: str, column: int, bracket: str
) -> None:
    found = compiler.compile_text(f'{HEAD}{line}\nTALK "b"\n', "it.bas", name="it").diagnostics
    [one] = [one for one in found if one.severity == "error"]
    assert (one.line, one.column) == (2, column)
    assert one.message.startswith(f"`{bracket}` is not closed")


@pytest.mark.parametrize("line", ["TALK hello world", 'TALK "a" "b"', 'TALK "He said "hi" to me"'])
def test_a_text_without_its_quotes_is_told_what_is_missing(compiler: BasicCompiler, line: str) -> None:
    assert any("put texts in quotes and join them with `+`" in words for *_, words in told(compiler, HEAD + line))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x++", "`x` is not a statement; write `x = …` to assign it, or `TALK x` to send it"),
        ("x + 1", "`x` is not a statement"),
        ("x", "`x` is not a statement"),
        ("SET x TO 3", "To assign a variable, write SET x = …"),
        ("IF x = 1\nTHEN\nTALK x\nEND IF", "THEN must be on the same line as its IF"),
        ("HEAR it AS", "or a value for `choices`"),
    ],
)
def test_nearly_right_is_told_how_it_is_right(compiler: BasicCompiler, line: str, says: str) -> None:
    assert any(says in words for *_, words in told(compiler, f"{HEAD}x = 1\n{line}\n"))


def test_of_findings_without_number_as_many_are_told_as_somebody_may_read(compiler: BasicCompiler) -> None:
    assert len(told(compiler, HEAD + "".join(f"TALK value_{number}\n" for number in range(3000)))) == 200
    assert len(told(compiler, HEAD + "PARAM city\n" * 3000)) == 400


def test_a_word_without_end_is_told_in_short(compiler: BasicCompiler) -> None:
    [(_, _, words)] = told(compiler, HEAD + "A" * 60_000)
    assert len(words) < 200


@pytest.mark.parametrize("line", ["HEAR name, age", 'HEAR "your name?" AS x', "HEAR x IN EMAIL", "HEAR x AS"])
def test_a_slip_with_hear_is_told_as_people_write_it(compiler: BasicCompiler, line: str) -> None:
    words = told(compiler, f"{HEAD}{line}\n")[0][2]
    assert words.endswith("; write HEAR name, or HEAR name AS EMAIL")


@pytest.mark.parametrize(
    "line",
    [
        *("HEAR x AS", "HEAR x IN EMAIL", "CALL", 'PRINT "a" "b"', "RUN TOOL", "MERGE a", 'SET FOO "a"', "INSERT INTO"),
        *("AGGREGATE 5", "JOIN a", "UPDATE a", "SAVE", 'GRAPHQL "a" "b"', f"TALK {'a' * 300} 5", f"GOTO {'b' * 300}"),
        *(f"{'c' * 300}(1)", f"x = {'d' * 300}", f"SUB f({'e' * 300})\nEND SUB\nf 1, 2", f"SET {'f' * 300} 5"),
    ],
)
def test_what_is_told_of_one_mistake_is_short(compiler: BasicCompiler, line: str) -> None:
    found = told(compiler, f"{HEAD}{line}\n")
    assert found
    assert all(len(words) < 240 for *_, words in found)


@pytest.mark.parametrize("ends", ["", "\n", "\r\n", "\r", "   ", "\t\r\n\r\n", " _"])
def test_it_does_not_matter_how_the_last_line_ends(compiler: BasicCompiler, ends: str) -> None:
    assert told(compiler, f'{HEAD}IF chat THEN\nTALK "a"\nEND IF{ends}') == []


@pytest.mark.parametrize(
    "line",
    [
        "x = (1 +", "TALK", "x = [1,", 'x = "a" +', "x =", "x = GET", 'TALK "a', "FOR i = 1 TO", 'SEND MAIL "a",',
        "IF x = 1 THEN", "BEGIN TALK", "WITH a", "SELECT CASE x", "SUB s()", "HEAR x AS", "GOTO", "CALL",
    ],
)  # fmt: skip
@pytest.mark.parametrize("behind", ["", "\n\n\n", "\n\n' a comment\n\n", "\n  \n\t\n"])
def test_what_is_missing_at_the_end_is_told_of_the_last_line_that_holds_something(
    compiler: BasicCompiler, line: str, behind: str
) -> None:
    found = told(compiler, f"{HEAD}{line}{behind}")
    assert found
    assert {place for place, *_ in found} == {HEAD.count("\n") + 1}
