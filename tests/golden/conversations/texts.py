"""Finds the keys of `config/texts/*.yaml` for the bot's texts, so that recordings do not change with the wording."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

_FOLDER = Path(__file__).parents[3] / "config" / "texts"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_SENTENCE_END = re.compile(r"[.?!:)] (?=\S)|[。？！] ?(?=\S)")
_MARKS = re.compile(r"[“”—⏰✅📊🗑💤🔁]")
_OTHERS = re.compile(r"[^\s\w]")
_LETTERS = re.compile(r"[A-Za-z]")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


class _Template(NamedTuple):
    key: str
    literals: tuple[str, ...]
    longest: str
    """The longest literal; a text without it does not match."""
    pattern: re.Pattern[str]
    names: tuple[str, ...]
    weight: int


def by_keys(text: str, language: str) -> str:
    """`text` with each line that matches a template replaced by `@key {values}`."""
    if not text:
        return text
    whole = _by_key(text, language)
    if whole is not None:
        return whole
    told = [_by_key(line, language) or _by_sentences(line, language) for line in text.split("\n")]
    return "\n".join(told)


def json_by_keys(value: Any, language: str) -> Any:
    """`by_keys` for all texts in a JSON value; keys are kept."""
    match value:
        case str():
            return by_keys(value, language)
        case list():
            return [json_by_keys(item, language) for item in value]
        case dict():
            return {name: json_by_keys(item, language) for name, item in value.items()}
        case _:
            return value


def _by_sentences(line: str, language: str) -> str:
    """Several texts on one line, each of which ends like a sentence."""
    for end in reversed([found.end() for found in _SENTENCE_END.finditer(line)]):
        first = _by_key(line[:end], language)
        if first is not None:
            rest = line[end:].strip()
            return f"{first} {_by_key(rest, language) or _by_sentences(rest, language)}".strip()
    return line


def _by_key(text: str, language: str) -> str | None:
    other = "zh" if language == "en" else "en"
    for tongue, suffix in ((language, ""), (other, f" ({other})")):
        found = _match(text, tongue)
        if found is not None:
            key, values = found
            told = {name: by_keys(value, language) for name, value in values.items()}
            if key.startswith("failures.") and "id" in told:
                told["id"] = "<id of the log>"
            return f"@{key}{suffix}" + (f" {json.dumps(told, ensure_ascii=False)}" if told else "")
    return None


@cache
def _match(text: str, language: str) -> tuple[str, dict[str, str]] | None:
    stripped = text.strip()
    if not stripped:
        return None
    for template in _templates(language):
        if template.longest in stripped and all(literal in stripped for literal in template.literals):
            found = template.pattern.fullmatch(stripped)
            if found is not None:
                return template.key, {name: found[f"v{place}"] for place, name in enumerate(template.names)}
    return None


@cache
def _templates(language: str) -> list[_Template]:
    """Templates with enough literal text to be recognized, the most specific first."""
    document = YAML(typ="safe").load((_FOLDER / f"{language}.yaml").read_text(encoding="utf-8"))
    made = [_template(key, text.strip()) for key, text in _flat(document, "")]
    return sorted((one for one in made if one is not None), key=lambda one: (-one.weight, len(one.names), one.key))


def _template(key: str, text: str) -> _Template | None:
    pieces = _PLACEHOLDER.split(text)
    literals, names = pieces[::2], pieces[1::2]
    weight = sum(
        len(_LETTERS.findall(piece)) + 3 * len(_CHINESE.findall(piece)) + 2 * len(_MARKS.findall(piece))
        for piece in literals
    )
    if weight < (4 if names else 2) or (not names and len(text.split(",")) > 3):
        return None
    pattern = "".join(
        re.escape(literal) + (f"(?P<v{place}>[^\\n]*?)" if place < len(names) else "")
        for place, literal in enumerate(literals)
    )
    weight += sum(len(_OTHERS.findall(piece)) for piece in literals)
    told = tuple(filter(None, literals))
    return _Template(key, told, max(told, key=len), re.compile(pattern), tuple(names), weight)


def _flat(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            # YAML 1.1 parses the keys `yes` and `no` as booleans.
            yield from _flat(item, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, str):
        yield prefix, value
