from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from config.yaml_document import DEEPEST, MOST_BYTES, Plain, read_yaml, read_yaml_file


def the_faults_in(text: str) -> list[str]:
    return [f"{found.line}:{found.column} {found.code}" for found in read_yaml(text, "x.yaml").faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("010", "010"),
        ("2026-01-05", "2026-01-05"),
        (".inf", ".inf"),
        ("1_000", "1_000"),
        ("9" * 40, "9" * 40),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("-12", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("'12'", "12"),
        ('"true"', "true"),
    ],
)
def test_a_scalar_is_read_by_the_rules_of_yaml_1_2(text: str, value: object) -> None:
    document = read_yaml(f"a: {text}\n", "x.yaml")
    read = document.value["a"] if isinstance(document.value, dict) else document.value
    assert (type(read), read) == (type(value), value)
    assert document.faults == []


def test_keys_are_texts_as_they_are_written() -> None:
    assert read_yaml("1: a\nno: b\ntrue: c\n", "x.yaml").value == {"1": "a", "no": "b", "true": "c"}


def test_every_key_and_value_has_its_place() -> None:
    document = read_yaml("a:\n  - b:   c\n  - d\n", "x.yaml")
    assert document.key_at(("a", 0, "b")) == (2, 5)
    assert document.value_at(("a", 0, "b")) == (2, 10)
    assert document.value_at(("a", 1)) == (3, 5)


def test_what_is_absent_has_the_place_of_what_would_hold_it() -> None:
    document = read_yaml("a:\n  b: 1\n", "x.yaml")
    assert document.value_at(("a", "c", "d")) == (1, 1)
    assert document.key_at(("a", "b", "c")) == (2, 3)
    assert document.value_at(("a", "b", "c")) == (2, 6)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a: 1\nb: {c: 1, c: 2}\na: 2\n", ["2:11 yaml.duplicate_key", "3:1 yaml.duplicate_key"]),
        ("a: &x [1]\nb: *x\n", ["1:4 yaml.alias", "2:4 yaml.alias"]),
        ("a: &a [*a]\n", ["1:4 yaml.alias", "1:8 yaml.alias"]),
        ("a: !!python/object/apply:os.system [ls]\n", ["1:4 yaml.tag"]),
        ("a: !!str 1\n", ["1:4 yaml.tag"]),
        ("? [a, b]\n: 1\n", ["1:3 yaml.bad_key"]),
        ("a: 1\n---\nb: 2\n", ["2:1 yaml.syntax"]),
        ("a:\n\tb: 1\n", ["2:1 yaml.syntax"]),
        ("a: [1\nb: 2\n", ["2:2 yaml.syntax"]),
        ('a: "\\ud800"\n', ["1:4 yaml.bad_character"]),
        ('a: 1\nb: "x\\0"\n', ["2:4 yaml.bad_character"]),
        ("a: 1\nb: \x01\n", ["2:4 yaml.bad_character"]),
    ],
)
def test_what_is_not_allowed_is_named_with_its_place(text: str, faults: list[str]) -> None:
    assert the_faults_in(text) == faults


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a:\n\tb: 1\n", "2:1 a tab; YAML indents and separates with spaces"),
        ("a: @home\n", "1:4 a text cannot begin with @; put it in quotes"),
        ("a: [*]\n", "1:5 a text cannot begin with *; put it in quotes"),
        ("a: *.py\n", "1:4 the alias *.py is not allowed; repeat the text. A text that begins with * needs quotes"),
        (
            "a: {{b}}\n",
            "1:5 a key has to be a word, not an alias or a collection; a text that begins with { or [ needs quotes",
        ),
        ("a:\n  - title: Friends: all\n", '2:19 a text with a colon needs quotes: title: "…"'),
        ('"a b": c: d\n', '1:9 a text with a colon needs quotes: key: "…"'),
        (
            "a: 1\n  b: 2\n",
            "2:4 this line is indented deeper than line 1, which has a value already; align the two",
        ),
        ("a:1\nb: 2\n", "1:1 this line has no colon followed by a space; write key: value"),
        ("a: 1\nb\nc: 3\n", "2:1 this line has no colon followed by a space; write key: value"),
        (
            "a:\n    b: 1\n  c: 2\n",
            "3:3 the indentation of this line fits no line above; align it with its neighbours",
        ),
        ("a:\n  b: 1\n  - c\n", "3:3 a list item (- …) where keys were expected; indent it below its key"),
        ("- a\nb: 1\n", "2:1 a key where list items (- …) were expected; correct its indentation"),
        ("a: - b\n", "1:4 a list item (- …) cannot follow a key on the same line; start a new line"),
        ("a: [1, 2\n", "1:4 the bracket [ is never closed; add its counterpart"),
        ("a: [", "1:5 the file ends within an open bracket; add the missing ] or }"),
        ("a: [1, 2\nb: 3\n", "2:2 the [ of line 1 is not closed with ], or a comma is missing before this"),
        ("a: {b: 1\nc: 2\n", "2:2 the { of line 1 is not closed with }, or a comma is missing before this"),
        ("a: {b: c: d}\n", "1:9 a comma is missing between two entries, or a text with a colon needs quotes"),
        ('a: ["b" "c"]\n', "1:9 a comma is missing between two entries, or a text needs quotes"),
        ("a: [1,,2]\n", "1:7 an entry is missing before the comma"),
        ("a: ]\n", "1:4 a closing ] without an opening bracket"),
        ("{a: 1}}\n", "1:7 a closing } without an opening bracket"),
        ("a: 'b\nc: 1\n", "1:4 the quote ' is never closed; add it at the end of the text"),
        ("a: 'it's'\n", "1:8 text follows a closing quote, or is indented less than its first line"),
        ('a: "C:\\dir"\n', '1:8 an unknown escape sequence in "…"; write \\\\, or use single quotes'),
        ("a: |b\n", "1:5 after | or > the text begins on the next line; to begin with them, it needs quotes"),
        (
            "%x\n",
            "2:1 is not valid YAML: check the indentation, quotes and brackets of this line and of the lines above",
        ),
    ],
)
def test_a_syntax_error_is_explained_with_its_remedy(text: str, fault: str) -> None:
    assert [f"{one.line}:{one.column} {one.message}" for one in read_yaml(text, "x.yaml").faults] == [fault]


def test_a_character_that_is_not_allowed_never_reaches_the_value() -> None:
    assert read_yaml('"\\ud800": "x\\e"\n', "x.yaml").value == {
        "\N{REPLACEMENT CHARACTER}": "x\N{REPLACEMENT CHARACTER}"
    }


def test_what_stands_under_a_repeated_key_replaces_nothing() -> None:
    document = read_yaml("a:\n  b: 1\na:\n  b: 2\n  c: 3\n", "x.yaml")
    assert document.value == {"a": {"b": 1}}
    assert document.value_at(("a", "b")) == (2, 6)


def test_nesting_is_limited_without_recursion() -> None:
    assert the_faults_in("[" * DEEPEST + "]" * DEEPEST) == []
    assert the_faults_in("[" * 100_000) == [f"1:{DEEPEST + 1} yaml.too_deep"]


def test_a_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"#" * (MOST_BYTES + 1))
    assert [str(found) for found in read_yaml_file(file).faults] == [
        f"{file}:1:1 yaml.too_big is larger than 1,000,000 bytes"
    ]


def test_a_file_in_another_encoding_is_refused_where_it_stops_to_be_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes("a: 1\nb: é\n".encode("latin-1"))
    assert [(found.line, found.column, found.code) for found in read_yaml_file(file).faults] == [
        (2, 4, "yaml.encoding")
    ]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml_file(file).value == {"a": 1}


@given(st.text(alphabet="ab:-[]{}\"'#&*!|>?%@`, \n\t0\\$", max_size=60))
def test_any_text_is_read_as_another_reader_does_or_refused(text: str) -> None:
    document = read_yaml(text, "x.yaml")
    assert document.faults or _shape(document.value) == _shape_of_node(YAML(typ="safe", pure=True).compose(text))


@given(st.text(alphabet="ab:-[]{}\"'#&*!|>?%@`, \n\t0\\$", max_size=60))
def test_no_wording_of_the_parser_is_passed_on(text: str) -> None:
    said = [one.message for one in read_yaml(text, "x.yaml").faults]
    foreign = (
        "cannot start",
        "values are not",
        "keys are not",
        "expected",
        "could not",
        "<block",
        "stream",
        "scanning",
        "token",
    )
    assert not [one for one in said if any(word in one for word in foreign) and "were expected" not in one]


SCALAR = "a scalar"


def _shape(value: Plain) -> object:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return [_shape(item) for item in value] if isinstance(value, list) else SCALAR


def _shape_of_node(node: Node | None) -> object:
    if isinstance(node, MappingNode):
        return {key.value: _shape_of_node(value) for key, value in node.value}
    return [_shape_of_node(item) for item in node.value] if isinstance(node, SequenceNode) else SCALAR
