"""Builds FunctionSpecs from declarations in any form. All errors of names and options are reported at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from config.diagnostics import Diagnostic, Severity, did_you_mean
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.schema import EMPTY, UnusableSchema, imported
from function_calls.spec import (
    Access,
    Activation,
    ArgumentParser,
    CommandForm,
    Execution,
    FunctionSpec,
    Handler,
    OfferedTo,
    Origin,
    Prompt,
    Touch,
)
from services.refs import Effect, JsonObject, Role
from services.retry import RetryPolicy

_NAME = re.compile(r"[^\s\x00-\x1f]{1,128}")
_SLOT = re.compile(r"\{([^{}]+)\}")
_Choice = TypeVar("_Choice", bound=str)


class DefinitionError(ValueError):
    """A function that cannot be registered. `problems` lists all errors."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        super().__init__(f"{where}: " + "; ".join(problems))
        self.where = where
        self.problems = tuple(problems)


def build_spec(
    *,
    name: str,
    description: str,
    handler: Handler,
    arguments: ArgumentParser,
    parameters: JsonObject,
    options: Mapping[str, Any],
    source: str = "",
    result_schema: JsonObject | None = None,
    version: str = "",
) -> FunctionSpec:
    """Build a spec with `options` parsed as in YAML; unknown options become metadata. Raises DefinitionError with all
    invalid options."""
    problems: list[str] = []
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problems.append(f"name must be 1 to 128 characters without spaces, not {name!r}")
    fields: dict[str, Any] = {}
    groups: dict[type, dict[str, Any]] = {group: {} for group in (Prompt, CommandForm, Access, Execution, Origin)}
    metadata = dict(options.get("metadata") or {})
    for key, value in options.items():
        if key == "metadata":
            continue
        reader = _OPTIONS.get(key)
        if reader is None:
            metadata[key] = value
            continue
        try:
            group, field, read = reader
            fields[field] = groups[group][field] = read(value)
        except (ValueError, TypeError) as error:
            problems.append(f"{key}: {error}")
    problems += _slot_problems(fields.get("examples", ()), parameters)
    problems += [
        f"{option}: there is no parameter {one!r}"
        for option in ("ask", "positional", "sinks")
        for one in fields.get(option, ())
        if one not in parameters["properties"]
    ]
    line = fields.get("line", "")
    if line and parameters["properties"].get(line, {}).get("type") != "string":
        problems.append(f"line: there is no text parameter {line!r}")
    if fields.get("retry") and fields.get("effect") is Effect.ONCE:
        problems.append("retry: a function with effect 'once' is never repeated")
    if problems:
        raise DefinitionError(f"function {name!r} ({source})" if source else f"function {name!r}", problems)
    return FunctionSpec(
        name=name,
        description=description.strip(),
        handler=handler,
        parameters=parameters,
        arguments=arguments,
        prompt=Prompt(result_schema=result_schema, **groups[Prompt]),
        command=CommandForm(**groups[CommandForm]),
        access=Access(**groups[Access]),
        execution=Execution(**groups[Execution]),
        origin=Origin(
            source=source,
            version=version,
            declared=frozenset(fields),
            metadata=metadata,
            **groups[Origin],
        ),
    )


def misspelt_options(options: Mapping[str, Any], others: Sequence[str] = ()) -> list[str]:
    """Problems of options that are probably misspelt: they would become metadata, and the intended restriction would be
    lost. `others`: additional valid keys."""
    problems: list[str] = []
    known = [*_OPTIONS, "metadata", *others]
    for key in options:
        if key in known:
            continue
        near = did_you_mean(str(key), known, cutoff=0.75)
        if near:
            problems.append(f"there is no option {key!r}{near} Put custom values into metadata")
    return problems


def schema_arguments(name: str, parameters: object) -> tuple[JsonObject, ArgumentParser]:
    """A JSON Schema of an author or another system, and its parser. Raises DefinitionError for an invalid schema."""
    try:
        schema = EMPTY if parameters is None or parameters == {} else imported(parameters)
        return schema, SchemaArguments(schema)
    except UnusableSchema as error:
        raise DefinitionError(f"function {name!r}", [f"parameters: {error}"]) from None


def _slot_problems(examples: Iterable[str], parameters: JsonObject) -> list[str]:
    return [
        f"example {example!r} has the slot {{{slot}}}, but there is no such parameter"
        for example in examples
        for slot in _SLOT.findall(example)
        if slot not in parameters["properties"]
    ]


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise ValueError(f"must be a text or a list of texts, not {value!r}")


def _commands(value: Any) -> tuple[str, ...]:
    commands = tuple(" ".join(one.lstrip("/").casefold().split()) for one in _words(value))
    for one in commands:
        if not one or len(one.split()) > 2:
            raise ValueError(f"{one!r} must be one word or two")
    return commands


def _tags(value: Any) -> frozenset[str]:
    return frozenset(_words(value))


def _one_of(known: Iterable[_Choice]) -> Callable[[Any], _Choice]:
    """Parser of a value from the closed list `known`. It raises ValueError, with a suggestion, for other values."""
    choices = {str(one): one for one in known}

    def read(value: Any) -> _Choice:
        if not isinstance(value, str) or value not in choices:
            *others, last = choices
            suggestion = did_you_mean(str(value), choices)
            raise ValueError(f"must be {', '.join(others)} or {last}, not {value!r}{suggestion}")
        return choices[value]

    return read


_role = _one_of(Role)


def _roles(value: Any) -> frozenset[Role]:
    """Parse roles: a single role includes all higher roles; a list means exactly those. Raises ValueError for unknown
    roles."""
    if isinstance(value, str):
        return Role.at_least(_role(value))
    return frozenset(map(_role, value))


def _touches(value: Any) -> frozenset[Touch]:
    touches = frozenset(map(_one_of(Touch), _words(value)))
    if {Touch.REACHES_OUT, Touch.STAYS_HERE} <= touches:
        raise ValueError("an effect that reaches out does not stay here")
    return touches


def _offered_to(value: Any) -> frozenset[OfferedTo]:
    return frozenset(map(_one_of(OfferedTo), (value,) if isinstance(value, str) else value))


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 3600:
        raise ValueError(f"must be above 0 and at most 3600 seconds, not {value!r}")
    return float(value)


def _milliseconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"must be a number of milliseconds, not {value!r}")
    return _seconds(value / 1000)


def _retry(value: Any) -> RetryPolicy | None:
    if value is None or isinstance(value, RetryPolicy):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"must be {{max: attempts, delay: milliseconds}}, not {value!r}")
    attempts, delay_ms = int(value.get("max", 0)), float(value.get("delay", 0))
    if not 0 <= attempts <= 10 or not 0 <= delay_ms <= 60_000:
        raise ValueError("max must be 0 to 10 and delay 0 to 60000 milliseconds")
    return RetryPolicy(attempts + 1, delay_ms / 1000, delay_ms / 1000) if attempts else None


def _approval(value: Any) -> Role | str:
    if value in ("", "none", "asker"):
        return "asker" if value == "asker" else ""
    role: Role | str = _one_of(("none", "asker", *Role))(value)
    return role


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"must be true or false, not {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be a text, not {value!r}")
    return value


def _texts_by_name(value: Any) -> dict[str, str]:
    return {str(name): _text(text) for name, text in dict(value).items()}


_OPTIONS: dict[str, tuple[type, str, Callable[[Any], Any]]] = {
    "bot": (Access, "bot", _text),
    "examples": (Prompt, "examples", _words),
    "commands": (CommandForm, "words", _commands),
    "offered_to": (Access, "offered_to", _offered_to),
    "activation": (Prompt, "activation", _one_of(Activation)),
    "scope": (Access, "scope", _one_of(("group", "private", "both"))),
    "require_at": (Access, "require_at", _flag),
    "roles": (Access, "roles", _roles),
    "auth": (Access, "roles", _roles),
    "tag": (Origin, "tags", _tags),
    "tags": (Origin, "tags", _tags),
    "touches": (Execution, "touches", _touches),
    "effect": (Execution, "effect", _one_of(Effect)),
    "timeout_seconds": (Execution, "timeout_seconds", _seconds),
    "timeout": (Execution, "timeout_seconds", _milliseconds),
    "retry": (Execution, "retry", _retry),
    "ask": (Execution, "ask", _texts_by_name),
    "confirmation_prompt": (Access, "confirm", _text),
    "confirm": (Access, "confirm", _text),
    "approval": (Access, "approval", _approval),
    "groups": (Prompt, "groups", _tags),
    "filters": (Execution, "filters", _words),
    "serial": (Execution, "serial", _flag),
    "return_direct": (Execution, "return_direct", _flag),
    "background": (Execution, "background", _flag),
    "sensitive": (Execution, "sensitive", _tags),
    "sinks": (Access, "sinks", _tags),
    "status_text": (Execution, "status_text", _text),
    "system_prompt": (Prompt, "system_prompt", _text),
    "line": (CommandForm, "line", _text),
    "immediate": (CommandForm, "immediate", _flag),
    "positional": (CommandForm, "positional", _words),
}
"""Option name → the group and field of FunctionSpec, and the parser of its value."""


SERVERS = "mcp.servers."
"""Prefix of locations of MCP servers: the settings key that defines them."""
_PLACE = re.compile(r"\((?P<source>[^()\n]+:\d+)\)")


class Code(StrEnum):
    """Codes of problems with functions. Closed list."""

    UNUSABLE = "functions.unusable"
    TAKEN = "functions.taken"
    UNREACHABLE = "functions.unreachable"
    NOT_ACCEPTED = "functions.not_accepted"


def is_at_line(where: str) -> bool:
    """Whether `where` is of the form `file:line`."""
    return ":" in where and where.rpartition(":")[2].isdecimal()


def problems_of(error: DefinitionError, file: str = "") -> list[Diagnostic]:
    """A diagnostic for each problem, at the last location that it names, else in `file`."""
    found: list[Diagnostic] = []
    for problem in error.problems:
        text = f"{error.where}: {problem}"
        places = _PLACE.findall(text)
        where = error.where if is_at_line(error.where) else file
        found.append(problem_at(places[-1] if places else where, text))
    return found


def problem_at(source: str, message: str, code: str = Code.UNUSABLE, severity: Severity = "error") -> Diagnostic:
    """Diagnostic at `source`, which is `file:line`, a file, a settings key, or empty."""
    file, _, line = source.rpartition(":")
    if not line.isdecimal():
        # The line of a settings key is not known here.
        file, line = source, "0" if source.startswith(SERVERS) else "1"
    return Diagnostic(file or "functions", int(line), 1, str(code), message, severity)
