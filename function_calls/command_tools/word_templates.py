"""Templates of command words with `${variables}`, and the definitions of tools built from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from config.sections.command_tools import ToolOptions
from function_calls.command_tools.callables import PythonNames, name_of
from services.refs import JsonObject
from services.sandbox.sandbox import Isolation

_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[^\W\d][\w-]*(?:\.[\w-]+)*)(?P<each>\.\.\.)?\}|\$\{")
_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")
_MOST_CHARS = 100_000


class BadTemplate(ValueError):
    """A text with an invalid `${`; the message explains the syntax."""


class WordProblem(StrEnum):
    """Reasons why a value cannot be inserted into a word. Closed list; each is the end of a key in `texts/`."""

    ABSENT = "absent"
    STRUCTURED = "structured"
    LIST = "list"
    OPTION = "option"
    UNFIT = "unfit"
    TOO_LONG = "too_long"


class WordError(ValueError):
    """A value that cannot be inserted into the command."""

    def __init__(self, name: str, why: WordProblem) -> None:
        super().__init__(f"{name}: {why.value}")
        self.name = name
        self.why = why


@dataclass(frozen=True, slots=True)
class Variable:
    """`${name}`, `${name.of.inner}`, or `${name...}` for one word per value."""

    name: str
    is_each: bool = False

    @property
    def root(self) -> str:
        """Name of the argument or variable before the first dot."""
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Template:
    """A text with variables."""

    parts: tuple[str | Variable, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables of the template, in order."""
        return tuple(part for part in self.parts if isinstance(part, Variable))

    @property
    def begins_with(self) -> Variable | None:
        """The variable at the beginning of the text; None if it begins otherwise."""
        first = self.parts[0] if self.parts else ""
        return first if isinstance(first, Variable) else None

    @property
    def each(self) -> Variable | None:
        """The variable that expands into a word per value; None if there is none."""
        return next((one for one in self.variables if one.is_each), None)


def template_of(text: str) -> Template:
    """Parse `text`. `$${` is a literal `${`. Raises BadTemplate for other uses of `${`, and for more than one variable
    with `...`."""
    parts: list[str | Variable] = []
    end = 0
    for found in _TOKEN.finditer(text):
        _add(parts, text[end : found.start()])
        end = found.end()
        if found[0] == "$${":
            _add(parts, "${")
        elif found["name"] is None:
            raise BadTemplate("write ${name}, or ${name...} for a word of each value, or $${ for a literal ${")
        else:
            parts.append(Variable(found["name"], found["each"] is not None))
    _add(parts, text[end:])
    template = Template(tuple(parts))
    if sum(one.is_each for one in template.variables) > 1:
        raise BadTemplate("only one variable of a word may have `...`")
    return template


def argv_of(words: Sequence[Template], values: Mapping[str, Any], *, options_end: int | None = None) -> tuple[str, ...]:
    """The words with values inserted. From index `options_end` on, values may begin with `-`; None: never. Raises
    WordError for values that cannot be inserted, and for others that begin with `-`."""
    argv: list[str] = []
    for place, word in enumerate(words):
        after_options = options_end is not None and place >= options_end
        for filled in _filled(word, values):
            first = word.begins_with
            if first is not None and not after_options and filled.startswith("-"):
                raise WordError(first.name, WordProblem.OPTION)
            argv.append(filled)
    return tuple(argv)


def text_of(template: Template, values: Mapping[str, Any]) -> str:
    """The text with values inserted; list items are separated by spaces. Raises WordError."""
    return " ".join(_filled(template, values))


def display_text(template: Template, values: Mapping[str, Any]) -> str:
    """The text for display: structured values as JSON, absent values as nothing."""
    return "".join(
        part if isinstance(part, str) else _display_value(_looked_up(part, values)) for part in template.parts
    )


def is_truthy(name: str, values: Mapping[str, Any]) -> bool:
    """Whether the variable is set and neither empty, false nor zero."""
    return bool(_looked_up(Variable(name), values))


def known_variables(properties: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Variables for arguments of this schema, including parts of objects with dotted names, with their schemas."""
    found: dict[str, Any] = {}
    for name, schema in properties.items():
        found[prefix + name] = schema
        inner = schema.get("properties") if isinstance(schema, Mapping) else None
        if isinstance(inner, Mapping):
            found |= known_variables(inner, f"{prefix}{name}.")
    return found


def _add(parts: list[str | Variable], text: str) -> None:
    if not text:
        return
    last = parts[-1] if parts else None
    if isinstance(last, str):
        parts[-1] = last + text
    else:
        parts.append(text)


def _filled(word: Template, values: Mapping[str, Any]) -> Iterable[str]:
    each = word.each
    if each is None:
        return (_joined(word, values, {}),)
    found = _looked_up(each, values)
    items = found if isinstance(found, list | tuple) else [] if found is None else [found]
    return [_joined(word, values, {each: item}) for item in items]


def _joined(word: Template, values: Mapping[str, Any], each_values: Mapping[Variable, Any]) -> str:
    pieces = [
        part
        if isinstance(part, str)
        else _plain(part, each_values[part] if part in each_values else _looked_up(part, values))
        for part in word.parts
    ]
    return "".join(pieces)


def _looked_up(variable: Variable, values: Mapping[str, Any]) -> Any:
    """Value of the variable: by its whole name, else by its dotted path; None if it is absent."""
    if variable.name in values:
        return values[variable.name]
    found: Any = values
    for step in variable.name.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return None
        found = found[step]
    return found


def _plain(variable: Variable, value: Any) -> str:
    """The value as part of a word. Raises WordError if it is absent, a list or map, unprintable or too long."""
    if value is None:
        raise WordError(variable.name, WordProblem.ABSENT)
    if isinstance(value, list | tuple):
        raise WordError(variable.name, WordProblem.LIST)
    if not isinstance(value, str | bool | int | float):
        raise WordError(variable.name, WordProblem.STRUCTURED)
    text = _display_value(value)
    if _UNPRINTABLE.search(text):
        raise WordError(variable.name, WordProblem.UNFIT)
    if len(text) > _MOST_CHARS:
        raise WordError(variable.name, WordProblem.TOO_LONG)
    return text


def _display_value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


class Ending(StrEnum):
    """How a run ended; argument of `on_exit`. Closed list."""

    SUCCESS = "success"
    ERROR = "error"
    REJECTED = "rejected"  # a step was rejected or its question expired
    CANCELLED = "cancelled"  # stopped or timed out


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A command, or a callable if `function` is set. Compared by identity."""

    words: tuple[Template, ...] = ()
    function: Callable[..., Any] | None = None
    name: str = ""
    """Reference to the callable."""
    stdin: Template | None = None
    when: str = ""
    options_end: int | None = None
    """Index of the first word whose values may begin with `-`. None: no word."""
    succeeds_with: tuple[int, ...] = (0,)
    added: JsonObject | None = None
    """Definition of a step that `setup` added, for restoring it."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Custom texts about a step."""

    model: Template | None = None
    chat: Template | None = None
    function: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """Complete definition of a tool."""

    name: str
    steps: tuple[Step, ...]
    opts: ToolOptions
    names: PythonNames
    isolation: Isolation = Isolation.REQUIRED
    readable: tuple[Path, ...] = ()
    env: Mapping[str, Template] | Callable[..., Any] | None = None
    setup: Callable[..., Any] | None = None
    approved: Callable[..., Any] | None = None
    on_exit: Step | None = None
    output: Mapping[Ending, Wording] | None = None
    digest: str = ""
    """Digest of all facts that determine a run; an approval does not cover a changed tool."""

    def wording(self, ending: Ending) -> Wording | None:
        """Custom texts for that ending; None: the default texts."""
        return (self.output or {}).get(ending)

    @property
    def streams(self) -> bool:
        """Whether the chat is shown progress output of long commands."""
        if self.opts.stream is None:
            return self.wording(Ending.SUCCESS) is None
        return self.opts.stream


def digest_of(*facts: Any) -> str:
    """Digest that is stable across restarts. `facts` are JSON values, callables and settings values."""
    return hashlib.sha256(orjson.dumps(facts, default=_as_json, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _as_json(value: object) -> object:
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    return name_of(value) if callable(value) else str(value)
