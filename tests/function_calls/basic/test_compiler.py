"""The compiler: tools of a file, or all its problems."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function_calls.basic.codes import Profile
from function_calls.basic.compiler import CompilationResult
from function_calls.basic.machine.program import Program
from function_calls.basic.tool_definition import ToolDefinition
from tests.function_calls.script_library.libraries import ORDER, REGISTRATION, a_compiler


def found(result: CompilationResult) -> list[tuple[int, str]]:
    return [(one.line, one.code.removeprefix("basic.")) for one in result.diagnostics]


@pytest.mark.requirement("A13", "A19", "A22", "B25")
def test_a_file_becomes_a_tool_that_can_be_kept_and_read_again() -> None:
    file = "club/user_registration.bas"
    result = a_compiler().compile_text(REGISTRATION, file, name="user_registration", bot="crm")
    (tool,) = result.tools
    assert result.errors == ()
    assert (tool.definition.name, tool.definition.bot) == ("user_registration", "crm")
    assert tool.definition.source_file == file
    assert ToolDefinition.of_json(tool.definition.to_json()) == tool.definition
    assert Program.of_json(tool.program.to_json()) == tool.program
    assert tool.program.keywords == ("TALK",)


def test_a_byte_order_mark_is_no_part_of_the_script() -> None:
    assert a_compiler().compile_text(b"\xef\xbb\xbf" + ORDER.encode(), "a.bas", name="a").errors == ()


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (b"\xff\xfeT\x00A\x00", 1, 1),
        ('TALK "Hi"\nTALK "Stra\xdfe"\n'.encode("latin-1"), 2, 11),
        ('TALK "中'.encode() + b"\xe4\xb8", 1, 8),
    ],
)
def test_what_is_not_utf8_is_told_where_it_begins(content: bytes, line: int, column: int) -> None:
    (one,) = a_compiler().compile_text(content, "a.bas", name="a").diagnostics
    assert (one.code, one.line, one.column) == ("basic.unreadable", line, column)
    assert "UTF-8" in one.message


def test_a_script_that_is_too_long_is_not_even_parsed() -> None:
    compiler = a_compiler(source_bytes=100)
    assert compiler.compile_text("REM " + "x" * 96, "a.bas", name="a").errors == ()
    result = compiler.compile_text("IF (((" * 20, "a.bas", name="a")
    assert found(result) == [(1, "too_long")]
    assert "100" in result.diagnostics[0].message


@pytest.mark.requirement("A36", "A37", "A38", "A40")
@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('PARAM a_name AS string LIKE "x" DESCRIPTION "What it is"\nTALK a_name\n', "missing_description", 1),
        ('DESCRIPTION "Does it"\nPARAM AS string\n', "bad_param", 2),
        ('DESCRIPTION "Does it"\n\nPARAM thing AS blob LIKE "x" DESCRIPTION "What"\nTALK thing\n', "bad_type", 3),
        ('DESCRIPTION "Does it"\nTALK "Hi"\nFLY "away"\n', "unknown_statement", 3),
    ],
)
def test_the_common_errors_have_codes_of_their_own(text: str, code: str, line: int) -> None:
    result = a_compiler().compile_text(text, "a.bas", name="a", profile=Profile.STRICT)
    assert result.tools == ()
    assert (line, code) in found(result)
    assert all(one.file == "a.bas" for one in result.diagnostics)


def test_all_that_is_wrong_stands_in_the_order_of_the_file() -> None:
    text = 'PARAM 2x AS string\nFLY "a"\nPARAM thing AS blob\nTALK )\nDESCRIPTION "Does it"\nFLY "b"\n'
    lines = [line for line, _ in found(a_compiler().compile_text(text, "a.bas", name="a"))]
    assert lines == sorted(lines)
    assert {1, 2, 3, 4, 6} <= set(lines)


def test_where_there_are_errors_nothing_is_doubted_that_an_error_may_explain() -> None:
    text = 'DESCRIPTION "Does it well"\nPARAM thing AS string LIKE "x" DESCRIPTION "What"\nthing2 = (\nTALK other\n'
    result = a_compiler().compile_text(text, "a.bas", name="a")
    assert all(one.severity == "error" for one in result.diagnostics)


@pytest.mark.parametrize("profile", Profile)
def test_a_description_that_is_misspelt_is_not_missed_as_well(profile: Profile) -> None:
    text = 'PARAM thing AS string LIKE "x" DESCRIPTION "What"\nDESCRPTION "Does it well"\nTALK thing\n'
    result = a_compiler().compile_text(text, "a.bas", name="a", profile=profile)
    assert [(one.line, one.severity) for one in result.diagnostics] == [(2, "error")]


@pytest.mark.requirement("A17", "B4")
def test_several_tools_may_stand_in_one_file() -> None:
    one = 'PARAM {0} AS string LIKE "x" DESCRIPTION "What it is"\nDESCRIPTION "{1}"\nRETURN {0}\n'
    text = one.format("city", "Finds the city") + one.format("street", "Finds the street")
    result = a_compiler().compile_text(text, "places.bas", name="places")
    assert result.errors == ()
    assert [[param.name for param in tool.definition.parameters] for tool in result.tools] == [["city"], ["street"]]
    assert len({tool.definition.name for tool in result.tools}) == 2
    strict = a_compiler().compile_text(text, "places.bas", name="places", profile=Profile.STRICT)
    assert strict.tools == ()


def test_the_digest_is_that_of_everything_that_decides() -> None:
    same, other = a_compiler(), a_compiler(source_bytes=1000)
    assert a_compiler().digest() == same.digest()
    assert other.digest() != same.digest()


_WORDS = st.sampled_from(
    ["PARAM", "AS", "string", "DESCRIPTION", '"x"', "IF", "THEN", "END IF", "FOR", "EACH", "NEXT", "x", "=", "(", ")",
     "[", "]", "{", "}", "+", "1", "TALK", "RETURN", "GOTO", "SUB", "END SUB", "WITH", ":", ",", "${", "`", "\n", "#{"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(_WORDS, max_size=60).map(" ".join)))
def test_no_text_is_too_strange_for_the_compiler(text: str) -> None:
    result = a_compiler().compile_text(text.encode("utf-8", "surrogatepass"), "a.bas", name="a")
    assert bool(result.tools) is not bool(result.errors) or not text.strip()
