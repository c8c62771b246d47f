"""What would leave a model, or whoever runs the bot, guessing about a function. Each finding names the line at which
its author can mend it; so functions of other programs, which nobody here can edit, get none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.function_findings import Code, finding
from config.diagnostics import Diagnostic
from function_calls.registry import BotFunctions
from function_calls.spec import Activation, FunctionSpec, OfferedTo, Touch
from services.refs import Effect
from services.text_index import is_unspaced

_WORD = re.compile(r"[^\W\d_]+|\d+")
_ARTICLES = frozenset({"a", "an", "the", "this", "its"})
_FEWEST_WORDS = 3
_FEWEST_SIGNS = 4
"""Of a script without spaces."""
_TAKEN_BY_ALL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of parameters; some providers refuse others."""
_HAS_OPTIONS = frozenset({".py", ".yaml", ".yml"})
"""Files whose functions can have every option."""


def lints(specs: Sequence[FunctionSpec], functions_of: Mapping[str, BotFunctions]) -> list[Diagnostic]:
    """All warnings about `specs`. `functions_of` has the functions of each bot, for the names under which they are
    offered there."""
    ours = [spec for spec in specs if _file_of(spec).is_file()]
    found: list[Diagnostic] = []
    for spec in ours:
        found += [finding(spec.source, code, f"function {spec.name!r}{text}") for code, text in _about(spec)]
    found += _refused_names(ours, functions_of)
    found += _text_readers(ours)
    return found


def text_reads(source: str) -> list[int]:
    """The lines in which a function reads `.text` of its first parameter, a MessageContext."""
    lines: list[int] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef) or not function.args.args:
            continue
        context = function.args.args[0]
        if not isinstance(context.annotation, ast.Name) or context.annotation.id != "MessageContext":
            continue
        lines += [
            node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute)
            and node.attr == "text"
            and isinstance(node.value, ast.Name)
            and node.value.id == context.arg
        ]
    return lines


def _file_of(spec: FunctionSpec) -> Path:
    return Path(spec.source.rpartition(":")[0] or ".")


def _about(spec: FunctionSpec) -> Iterator[tuple[Code, str]]:
    if not spec.description:
        yield Code.NO_DESCRIPTION, " has no description: a model can only guess what it does"
    elif spec.offered_to and (_is_thin(spec.description) or _is_name_again(spec.description, spec.name)):
        said = f": the description {spec.description!r} says little more than the name"
        yield Code.THIN_DESCRIPTION, f"{said}; tell a model what it does and when to use it"
    for name, schema in spec.parameters["properties"].items():
        yield from _about_parameter(name, schema if isinstance(schema, dict) else {})
    if _file_of(spec).suffix in _HAS_OPTIONS:
        yield from _about_options(spec)


def _about_parameter(name: str, schema: Mapping[str, Any]) -> Iterator[tuple[Code, str]]:
    description = schema.get("description")
    if not description:
        yield Code.UNDESCRIBED_PARAMETER, f": parameter {name!r} has no description"
    elif _is_name_again(str(description), name):
        yield Code.THIN_DESCRIPTION, f": the description of parameter {name!r} is only its name again"
    if len(name) == 1:
        yield Code.UNCLEAR_PARAMETER, f": parameter {name!r} needs a name that says what it is"
    if not _TAKEN_BY_ALL.fullmatch(name):
        text = f": some providers refuse every request in which a parameter is named {name!r}"
        yield Code.REFUSED_NAME, f"{text}; use at most 64 of A-Z, a-z, 0-9, _, . and -"
    if name == "raw_text":
        yield Code.RAW_TEXT, " takes raw_text: give it typed parameters instead"


def _about_options(spec: FunctionSpec) -> Iterator[tuple[Code, str]]:
    by_itself = OfferedTo.MODEL in spec.offered_to and spec.activation is Activation.ALWAYS
    # Whoever has not said what it does is told of that first.
    if by_itself and spec.description and not spec.examples:
        text = " has no examples: by sentences that mean it, it is found among many"
        yield Code.NO_EXAMPLES, f"{text}, and the offline model knows nothing else"
    if spec.effect is not Effect.READ and not spec.tags:
        yield Code.NO_TAGS, " has an effect and no tags: rules for approvals find functions by their tags"
    if "timeout_seconds" not in spec.declared and (spec.effect is Effect.ONCE or Touch.SENDS_OUT in spec.touches):
        then = "nobody knows then how it ended" if spec.effect is Effect.ONCE else "what it asks may take longer"
        text = f" does not say how long it may take: after {spec.timeout_seconds:g} seconds it is stopped, and {then}"
        yield Code.NO_TIMEOUT, f"{text}; set timeout_seconds"


def _is_thin(description: str) -> bool:
    if any(map(is_unspaced, description)):
        return len(description) < _FEWEST_SIGNS
    return len(_WORD.findall(description)) < _FEWEST_WORDS


def _is_name_again(description: str, name: str) -> bool:
    said = {word.casefold() for word in _WORD.findall(description)} - _ARTICLES
    return said <= {word.casefold() for word in _WORD.findall(_split(name))}


def _split(name: str) -> str:
    """`camelCase` as two words; other joints are no letters anyway."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)


def _refused_names(specs: Sequence[FunctionSpec], functions_of: Mapping[str, BotFunctions]) -> Iterator[Diagnostic]:
    for spec in specs:
        offered = {
            functions.offered_name(spec.name)
            for functions in functions_of.values()
            if functions.find(spec.name) is spec and functions.offered_name(spec.name) != spec.name
        }
        if offered:
            shown = " or ".join(map(repr, sorted(offered)))
            text = f"function {spec.name!r}: providers refuse this name, so models know it as {shown}"
            yield finding(spec.source, Code.REFUSED_NAME, text)


def _text_readers(specs: Sequence[FunctionSpec]) -> Iterator[Diagnostic]:
    """Handlers that find out for themselves what was meant."""
    for file in dict.fromkeys(map(_file_of, specs)):
        if file.suffix != ".py":
            continue
        for line in text_reads(file.read_text(encoding="utf-8")):
            text = "a handler reads the text of the message: give it parameters instead"
            yield finding(f"{file}:{line}", Code.READS_TEXT, text)
