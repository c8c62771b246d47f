"""A mistake in the keywords of a block is reported once, on the line to be changed."""

from __future__ import annotations

import pytest

from bot.registration.basic_scripts import compiler_of, keyword_modules, spellings_of
from config.settings import Settings
from function_calls.basic.compiler import BasicCompiler

HEAD = 'DESCRIPTION "Does a thing"\n'


@pytest.fixture(scope="module")
def compiler() -> BasicCompiler:
    """The compiler of the shipped settings, with their keywords."""
    settings = Settings()
    return compiler_of(settings.basic, spellings_of(keyword_modules(settings)))


def told(compiler: BasicCompiler, text: str) -> list[tuple[int, str]]:
    """Line, not counting the description, and message of each diagnostic."""
    found = compiler.compile_text(HEAD + text, "it.bas", name="it").diagnostics
    return [(one.line - 1, one.message) for one in found]


@pytest.mark.parametrize(
    ("begin", "end", "right"),
    [
        ("IF 1 = 1 THEN", "END FOR", "END IF"),
        ("IF 1 = 1 THEN", "NEXT", "END IF"),
        ("IF 1 = 1 THEN", "NEXT i", "END IF"),
        ("IF 1 = 1 THEN", "ENDFOR", "END IF"),
        ("FOR i = 1 TO 2", "END IF", "NEXT"),
        ("FOR i = 1 TO 2", "WEND", "NEXT"),
        ("DO WHILE 1 = 1", "END IF", "LOOP"),
        ("WHILE 1 = 1", "LOOP UNTIL 1 = 1", "WEND"),
        ("SELECT CASE 1\nCASE 1", "END IF", "END SELECT"),
    ],
)
def test_the_end_of_another_kind_of_block_is_told_where_it_stands(
    compiler: BasicCompiler, begin: str, end: str, right: str
) -> None:
    script = f'{begin}\nTALK "a"\n{end}\n'
    [(line, words)] = told(compiler, script)
    assert line == len(script.splitlines())
    assert words.endswith(f"is still open; write {right}")


def test_a_wrong_end_within_a_block_of_that_kind_is_told_there(compiler: BasicCompiler) -> None:
    [(line, words)] = told(compiler, 'FOR i = 1 TO 3\nIF i = 1 THEN\nTALK "a"\nEND FOR\nNEXT\n')
    assert (line, words.split("; ")[-1]) == (4, "write END IF")


def test_an_end_too_many_does_not_end_a_block_that_has_its_own(compiler: BasicCompiler) -> None:
    [(line, words)] = told(compiler, 'FOR i = 1 TO 3\nIF i = 1 THEN TALK "a"\nEND IF\nNEXT\n')
    assert line == 3
    assert "unexpected END IF: no IF is open" in words


@pytest.mark.parametrize(
    ("script", "line", "right"),
    [
        ("IF 1 = 1 THAN\nTALK 1\nEND IF", 1, "THEN"),
        ("IF 1 = 1 THNE\nTALK 1\nEND IF", 1, "THEN"),
        ("IF 1 = 1 THNE TALK 1", 1, "THEN"),
        ("IF 1 = 1 THEN\nTALK 1\nELS\nTALK 2\nEND IF", 3, "ELSE"),
        ("IF 1 = 1 THEN\nTALK 1\nESLE\nTALK 2\nEND IF", 3, "ELSE"),
        ("IF 1 = 1 THEN\nTALK 1\nELSIF 1 = 2 THEN\nTALK 2\nEND IF", 3, "ELSEIF"),
        ("IF 1 = 1 THEN\nTALK 1\nENDFI", 3, "END IF"),
        ("IF 1 = 1 THEN\nTALK 1\nEND FI", 3, "END IF"),
        ("IF 1 = 1 THEN\nTALK 1\nEDN IF", 3, "END IF"),
        ("IFF 1 = 1 THEN TALK 1", 1, "IF"),
        ("FRO i = 1 TO 2\nTALK i\nNEXT i", 1, "FOR"),
        ("FRO EACH i IN [1]\nTALK i\nNEXT i", 1, "FOR"),
        ("FOR i = 1 TO 2\nTALK i\nNXT i", 3, "NEXT"),
        ("WHIEL 1 = 1\nTALK 1\nWEND", 1, "WHILE"),
        ("WHILE 1 = 1\nTALK 1\nWNED", 3, "WEND"),
        ("SELCT CASE 1\nCASE 1\nTALK 1\nEND SELECT", 1, "SELECT"),
        ("SELECT CASE 1\nCAES 1\nTALK 1\nEND SELECT", 2, "CASE"),
        ("SUB greet()\nTALK 1\nENDSBU\ngreet", 3, "END SUB"),
        ("FUNCTOIN one()\nRETURN 1\nEND FUNCTION\nTALK one()", 1, "FUNCTION"),
        ("WIHT o\na = 1\nEND WITH", 1, "WITH"),
    ],
)
def test_a_misspelt_word_of_a_block_is_told_alone_and_taken_for_what_is_meant(
    compiler: BasicCompiler, script: str, line: int, right: str
) -> None:
    [(at, words)] = told(compiler, f"{script}\n")
    assert at == line
    assert words.endswith(f"did you mean {right}?")


def test_a_name_that_is_near_to_a_word_of_a_block_is_a_name(compiler: BasicCompiler) -> None:
    script = "SUB nxt(i)\nTALK i\nEND SUB\nels = 1\nnxt els\nCALL nxt(els)\nthan = els\nIF than = 1 THEN TALK than\n"
    assert told(compiler, script) == []


@pytest.mark.parametrize("inner", ["SUB", "FUNCTION"])
@pytest.mark.parametrize("outer", ["SUB", "FUNCTION"])
def test_a_procedure_within_another_is_told_once(compiler: BasicCompiler, outer: str, inner: str) -> None:
    for indent in ("", "  "):
        script = f"{outer} f()\n{indent}{inner} g()\n{indent}TALK 1\n{indent}END {inner}\nCALL g()\nEND {outer}\nf()\n"
        [(line, words)] = told(compiler, script)
        assert line == 2
        assert f"{inner} is only allowed at the top level of a script, not inside another one" in words


def test_a_procedure_without_an_end_before_another_is_told_as_that(compiler: BasicCompiler) -> None:
    found = told(compiler, "SUB f()\nTALK 1\nSUB g()\nTALK 2\nEND SUB\n")
    assert found == [(1, "the SUB on line 2 has no END SUB")]


@pytest.mark.parametrize(
    ("script", "written"),
    [
        ('if (x == 5) {\nTALK "a"\n}', "IF condition THEN"),
        ('if (x == 5) {\nTALK "a"\n} else {\nTALK "b"\n}', "IF condition THEN"),
        ('if (x == 5) {\nTALK "a"\n}\nelse if (x == 6) {\nTALK "b"\n}', "IF condition THEN"),
        ("function f() {\nreturn 1\n}", "FUNCTION name(a, b)"),
        ("function f() {\nif (x) {\nreturn #{a: 1}\n}\n}\nx = f()\n", "FUNCTION name(a, b)"),
        ('SWITCH x {\ncase 1: TALK "a"\n}', "SELECT CASE value"),
        ("while (x < 5) {\nx = x + 1\n}", "WHILE condition … WEND"),
        ("for (i = 0; i < 5; i++) {\nTALK i\n}", "FOR i = 1 TO 10"),
        ('if (x == 5) {\nTALK "a"', "IF condition THEN"),
        ('if (x) { TALK "a" }', "IF condition THEN"),
        ('if (x) { TALK "a" } else { TALK "b" }', "IF condition THEN"),
        ("while (x < 5) { x = x + 1 }\nTALK x", "WHILE condition … WEND"),
    ],
)
def test_a_block_in_braces_is_told_once_with_how_it_is_written_here(
    compiler: BasicCompiler, script: str, written: str
) -> None:
    found = told(compiler, f"x = 5\n{script}\n")
    assert [line for line, _ in found] == [2]
    assert f"blocks in braces are not supported; write {written}" in found[0][1]


@pytest.mark.parametrize(
    "script",
    [
        'IF 1 = 1 THEN RETURN {\n"a": 1\n}\nTALK 1',
        'x = {\n"a": 1\n}\nTALK x',
        'IF 1 = 1 THEN\nx = {\n"a": 1\n}\nEND IF',
        "IF TRUE THEN RETURN { a: 1 }",
        "FOR EACH item IN { a: 1, b: 2 }\nTALK item\nNEXT",
    ],
)
def test_a_map_is_no_block_in_braces(compiler: BasicCompiler, script: str) -> None:
    assert all("braces" not in words for _, words in told(compiler, f"{script}\n"))


def test_next_of_two_loops_names_the_inner_one_first(compiler: BasicCompiler) -> None:
    loops = "FOR i = 1 TO 2\nFOR j = 1 TO 2\nTALK i\n"
    assert told(compiler, f"{loops}NEXT j, i\n") == []
    assert told(compiler, f"{loops}NEXT i, j\n") == [(4, "the inner loop must end first; write NEXT j, i")]


@pytest.mark.parametrize("block", ["IF 1 = 1 THEN\n{}\nEND IF", "FOR i = 1 TO 2\n{}\nNEXT"])
def test_an_error_goes_to_no_label_within_a_block(compiler: BasicCompiler, block: str) -> None:
    [(line, words)] = told(compiler, block.format("ON ERROR GOTO bad\nTALK 1 / 0\nbad:\nTALK 2") + "\n")
    assert line == 2
    assert "move it before or after that" in words


@pytest.mark.parametrize(
    "script",
    [
        "if (x) {\n}\n" + "else {\n}\n" * 4000,
        "if (x) {\n" * 5000,
        "while x " + "{ " * 20000,
        "FOR i = 1 TO 2\n" + "END IF\n" * 8000,
        "SUB f\n" * 6000 + "END SUB\n" * 100,
        "NXT i\n" * 9000,
        "IF 1 = 1 THNE\n" * 4000,
        "whiel x\n" * 7000 + "WEND\n",
        "IF a " + "b " * 20000,
        "FOR a = 1 TO 2\nNEXT a" + ", a" * 20000,
        "TRY\n" + "CATCH\n" * 8000,
    ],
)
def test_mistakes_without_number_are_told_as_any(compiler: BasicCompiler, script: str) -> None:
    assert 0 < len(told(compiler, script)) <= 200


@pytest.mark.parametrize(
    ("script", "line", "words"),
    [
        ('IF 1 = 1 THEN TALK "a" ELSE\nTALK "b"', 1, "expected a statement after ELSE"),
        ("SELECT CASE 1\nCASE ELSE\nTALK 1\nCASE 1\nTALK 2\nEND SELECT", 4, "the default case on line 3"),
        ("SWITCH 1\nDEFAULT\nTALK 1\nCASE 1\nTALK 2\nEND SWITCH", 4, "the default case on line 3"),
        ("SELECT CASE 1\nCASE ELSE\nTALK 1\nCASE ELSE\nTALK 2\nEND SELECT", 4, "the default case on line 3"),
        ('TALK 1\nx = FIND "t", "a ="\nTALK x', 2, "this filter ends before a value"),
        ('DELETE FROM "t", "a = \'b"', 1, "invalid filter at character 5"),
        ('UPDATE "t", "a = 1 AND", #{b: 1}', 1, "invalid filter"),
        ("x = SORT\nTALK x", 1, "SORT needs arguments"),
        ('x = 3\nTALK 1\nFORMAT x, "0.00"', 3, 'write `y = FORMAT(value, "0.00")`'),
        ('x = 3\ny = FORMAT x, "0.00"\nTALK y', 2, 'write FORMAT(value, "0.00")'),
        (
            "WITH a\n.b = 1\nSWITCH 3\nCASE 1\n.c = 1\nEND SWITCH\nEND WITH\nTALK a",
            3,
            "expected `key = value` inside WITH",
        ),
        ("WITH a\nb = 1\nSELECT CASE 1\nCASE 1\nc = 1\nEND SELECT\nd = 2\nEND WITH\nTALK a", 3, "inside WITH"),
        ("WITH a\nIF 1 = 1 THEN\nIF 2 = 2 THEN\nc = 1\nEND IF\nEND IF\nEND WITH\nTALK a", 2, "inside WITH"),
        ("WITH a\nIF 1 = 1 THEN c = 1\nb = 2\nEND WITH\nTALK a", 2, "inside WITH"),
    ],
)
def test_what_was_missed_in_silence_is_told_once_and_on_its_line(
    compiler: BasicCompiler, script: str, line: int, words: str
) -> None:
    [(at, message)] = told(compiler, f"{script}\n")
    assert at == line
    assert words in message


@pytest.mark.parametrize(
    "script",
    [
        'IF chat THEN TALK "a" ELSE TALK "b"',
        'x = FIND "t", "status", "open"\nTALK x',
        'x = FIND "t", "a = b"\ny = FIND "t", "status IN (1, 2)"\nTALK x + y',
        'who = "Ann"\nx = FIND "t", "a = " + who\nTALK x',
    ],
)
def test_what_is_right_stays_untold(compiler: BasicCompiler, script: str) -> None:
    assert told(compiler, f"{script}\n") == []


def test_no_parameter_is_called_if(compiler: BasicCompiler) -> None:
    [(_, message)] = told(compiler, 'PARAM if AS string LIKE "a" DESCRIPTION "b"\nTALK 1\n')
    assert "`if` is a reserved word" in message
