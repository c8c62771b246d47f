"""Texts of the bot: `config/texts/*.yaml`, one file per language with the same keys and placeholders."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ruamel.yaml import YAML

_NAME, _SENTENCE = "[a-z_][a-z0-9_]*", r'"(?:[^"\\]|\\["\\n])*"'
_PAIR = re.compile(f"({_NAME}): ({_SENTENCE})")
_PAIRS = f"{_NAME}: {_SENTENCE}(?:, {_NAME}: {_SENTENCE})*"
_LINE = re.compile(
    rf"(?P<indent> *)(?P<name>{_NAME}):"
    rf"(?: (?:(?P<sentence>{_SENTENCE})|(?P<block>\|)|\{{(?P<pairs>{_PAIRS})\}}))?"
)
_NOTHING = re.compile(r" *(?:#.*)?")
_MEANS_MORE = frozenset({"true", "false", "null"})
"""Keys that YAML parses as other types."""
_NOT_FOR_LINES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
"""Tabs, unusual line ends, and characters that YAML forbids."""


class _NotPlain(Exception):
    """The file uses YAML beyond the supported subset."""


@lru_cache(maxsize=8)
def read_texts(text: str) -> Mapping[str, str]:
    """Parse a file to texts by dotted key, without trailing line ends; cached by content. A fast parser handles the
    usual subset of YAML, ruamel all other files. Raises ruamel's YAMLError for invalid YAML."""
    if not _NOT_FOR_LINES.search(text):
        lines = _Lines(text)
        try:
            lines.read_mapping(-1, "")
        except _NotPlain:
            pass
        else:
            return lines.found
    return read_as_yaml(text)


def read_as_yaml(text: str) -> dict[str, str]:
    """Parse any YAML with ruamel to texts by dotted key, without trailing line ends. Raises YAMLError."""
    found: dict[str, str] = {}

    def walk(node: Mapping[str, object], prefix: str) -> None:
        for key, value in node.items():
            if isinstance(value, Mapping):
                walk(value, f"{prefix}{key}.")
            else:
                found[f"{prefix}{key}"] = str(value).rstrip("\n")

    walk(YAML(typ="safe", pure=True).load(text), "")
    return found


class _Lines:
    """Line parser for the subset of YAML; `found` has the result."""

    def __init__(self, text: str) -> None:
        self.found: dict[str, str] = {}
        self._named: set[str] = set()
        self._lines = text.split("\n")
        self._place = 0

    def read_mapping(self, outside: int, prefix: str) -> None:
        """Parse keys at the same indent, which is deeper than `outside`. Raises _NotPlain for anything outside the
        subset."""
        indent = None
        while (parts := self._upcoming()) is not None:
            here = len(parts["indent"])
            if indent is None and here > outside:
                indent = here
            if indent is None or here > indent:
                raise _NotPlain
            if here < indent:
                break
            self._place += 1
            self._read_entry(parts, indent, prefix)
        if indent is None:
            raise _NotPlain

    def _upcoming(self) -> re.Match[str] | None:
        """The next line that is not empty or a comment, without consuming it; None at the end. Raises _NotPlain for
        another kind of line."""
        while self._place < len(self._lines):
            line = self._lines[self._place]
            if parts := _LINE.fullmatch(line):
                return parts
            if not _NOTHING.fullmatch(line):
                raise _NotPlain
            self._place += 1
        return None

    def _read_entry(self, parts: re.Match[str], indent: int, prefix: str) -> None:
        name = self._name(prefix, parts["name"])
        if parts["sentence"]:
            self.found[name] = _unquoted(parts["sentence"])
        elif parts["block"]:
            self.found[name] = self._block(indent)
        elif parts["pairs"]:
            for inner, sentence in _PAIR.findall(parts["pairs"]):
                self.found[self._name(f"{name}.", inner)] = _unquoted(sentence)
        else:
            self.read_mapping(indent, f"{name}.")

    def _name(self, prefix: str, last: str) -> str:
        name = prefix + last
        if last in _MEANS_MORE or name in self._named:
            raise _NotPlain
        self._named.add(name)
        return name

    def _block(self, outside: int) -> str:
        """Parse a block scalar indented deeper than `outside`, without the indent of its first line and trailing line
        ends. Raises _NotPlain if it is empty."""
        first = self._lines[self._place] if self._place < len(self._lines) else ""
        inside = len(first) - len(first.lstrip(" "))
        if inside <= outside or not first.strip(" "):
            raise _NotPlain
        block = []
        while self._place < len(self._lines) and not self._lines[self._place][:inside].strip(" "):
            block.append(self._lines[self._place][inside:])
            self._place += 1
        return "\n".join(block).rstrip("\n")


def _unquoted(sentence: str) -> str:
    text: str = json.loads(sentence)
    return text.rstrip("\n")


FOLDER = Path(__file__).parent / "texts"
FALLBACK = "en"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class MissingText(LookupError):
    """The language has no text with this key."""


class Phrases:
    """Texts of one language by key, with placeholders `{name}`."""

    def __init__(self, language: str, templates: Mapping[str, str]) -> None:
        self.language = language
        self._templates = dict(templates)
        self._words: dict[str, tuple[str, ...]] = {}

    def say(self, key: str, /, **values: object) -> str:
        """The text `key` with each `{name}` replaced by that value, literally: values are never templates. Raises
        MissingText, and KeyError for a placeholder without a value."""
        template = self._templates.get(key)
        if template is None:
            raise MissingText(f"no text {key!r} in config/texts/{self.language}.yaml")
        if "{" not in template:
            return template
        return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)

    def resolve(self, text: str, /, **values: object) -> str:
        """`text`, or for `@key` the text of that key, with placeholders filled; in a plain text those without a value
        are kept. Raises MissingText for an unknown key."""
        if text.startswith("@"):
            return self.say(text[1:], **values)
        return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), text)

    def words(self, key: str) -> tuple[str, ...]:
        """Words of the text `key`, a comma-separated list such as those for yes; cached. Raises MissingText."""
        if key not in self._words:
            self._words[key] = tuple(word.strip() for word in re.split("[,，]", self.say(key)))
        return self._words[key]

    def has(self, key: str) -> bool:
        """Whether there is a text with this key."""
        return key in self._templates

    @property
    def templates(self) -> Mapping[str, str]:
        """All texts by key, with unfilled placeholders, for checks."""
        return self._templates


class Texts:
    """Texts of all languages; a language is loaded on first use."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._languages: dict[str, Phrases] = {}

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages with a file, sorted."""
        return tuple(sorted(file.stem for file in self._folder.glob("*.yaml")))

    def of(self, language: str) -> Phrases:
        """Texts of `language` (`zh-TW` uses `zh`), or English if it has no file. Cached."""
        known = self._languages.get(language)
        if known is None:
            stem = language.lower().replace("_", "-").split("-")[0]
            file = self._folder / f"{stem}.yaml"
            if not file.is_file():
                stem, file = FALLBACK, self._folder / f"{FALLBACK}.yaml"
            known = self._languages.get(stem) or Phrases(stem, read_texts(file.read_text(encoding="utf-8")))
            self._languages[stem] = self._languages[language] = known
        return known


def placeholders(template: str) -> frozenset[str]:
    """Names of the placeholders `{name}` in `template`, without braces."""
    return frozenset(_PLACEHOLDER.findall(template))
