"""Text files are parsed line by line, with the same result as a YAML parser."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml.error import YAMLError

from config.texts import FOLDER, read_as_yaml, read_texts

NAMES = st.sampled_from(["a", "b", "no", "yes", "true", "null", "n1", "_", "each"])
ODD_SENTENCES = st.sampled_from(["", "{count} #1", 'a "b"', "c\\d", "\n"])
SENTENCES = st.text(st.characters(codec="utf-8"), max_size=8) | ODD_SENTENCES
SIGNS = [*': "|{}#~', ": ", "  ", "    ", "\n", "\t", "|-", ", ", "- ", "\\", '\\"', "\\n", "\u2028"]
WORDS = ["a", "b", "true", '"x"', '"{y} z"', "'q'", "plain", "1", "&x ", "*x", "---", "ü", "天"]
PIECES = st.sampled_from([*SIGNS, *WORDS])


def outcome(read: Any, text: str) -> object:
    """Result of `read` for `text`, in order; or that it is invalid."""
    try:
        return list(read(text).items())
    except (YAMLError, AttributeError):
        return "no texts"


def quoted(sentence: str) -> str:
    escaped = sentence.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@st.composite
def files(draw: st.DrawFn, indent: str = "") -> str:
    """Names and texts like those of the shipped files, sometimes slightly out of order."""
    lines = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=4)):
        sentence = draw(SENTENCES)
        match draw(st.integers(0, 6)):
            case 0 if len(indent) < 8:
                deeper = draw(st.sampled_from(["  ", "  ", "    ", " ", ""]))
                lines += [f"{indent}{name}:", draw(files(indent + deeper))]
            case 1:
                lines += [f"{indent}{name}: |", *(f"{indent}  {line}" for line in sentence.split("\n"))]
            case 2:
                lines.append(
                    f"{indent}{name}: {{{name}: {quoted(sentence)}, {draw(NAMES)}: {quoted(draw(SENTENCES))}}}"
                )
            case 3:
                lines += [f"{indent}# {name}".rstrip(), "", f"{indent}{name}: {quoted(sentence)}"]
            case _:
                lines.append(f"{indent}{name}: {quoted(sentence)}")
    return "\n".join(lines)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_shipped_texts_are_those_that_a_reader_of_all_yaml_finds(file: Any) -> None:
    text = file.read_text(encoding="utf-8")
    assert outcome(read_texts, text) == outcome(read_as_yaml, text)


@given(files())
@example('a:\n  b: "x"\n c: "y"')
@example('a: |\n  one\n\n   two\n\nb: "x"')
@example('a:\nb: "x"')
@example('a: "x"\na: "y"')
def test_texts_in_the_form_of_the_shipped_ones_are_read_alike(text: str) -> None:
    assert outcome(read_texts, text) == outcome(read_as_yaml, text)


@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_read_alike(text: str) -> None:
    assert outcome(read_texts, text) == outcome(read_as_yaml, text)
