"""Definition of a script's tool: name, description and typed parameters, in the formats for models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches

from function_calls.basic.codes import Code, Profile, ScriptProblem
from function_calls.basic.language.param_types import (
    LOOSE_EXAMPLES,
    STRICT_TYPES,
    DoesNotFit,
    ParamType,
    type_named,
    type_names,
    type_of_choices,
)
from function_calls.basic.nodes import At, Param, Unit
from services.refs import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """One parameter."""

    name: str
    """As written. The script's variable of this name is case-insensitive."""
    type: str
    """In lower case; empty if the type follows from the choices."""
    description: str = ""
    required: bool = True
    example: JsonValue = None
    """Example value from LIKE; None without an example."""
    default: JsonValue = None
    choices: tuple[JsonValue, ...] = ()
    line: int = 0

    def schema(self) -> JsonObject:
        """The parameter's JSON Schema: that of its type with `description`, `enum`, `default` and `example` where
        declared."""
        kind = type_named(self.type) if self.type or not self.choices else type_of_choices(self.choices)
        schema: JsonObject = dict(deepcopy(kind.schema)) if kind is not None else {}
        if self.description:
            schema["description"] = self.description
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = deepcopy(self.default)
        if self.example is not None:
            schema["example"] = deepcopy(self.example)
        return schema

    @classmethod
    def of_json(cls, data: Mapping[str, JsonValue]) -> ParamDecl:
        """The parameter that was serialized with its tool."""
        return cls(**{**data, "choices": tuple(data["choices"])})


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool of a script."""

    name: str
    description: str
    parameters: tuple[ParamDecl, ...] = ()
    """In the order of declaration."""
    bot: str = "default"
    source_file: str = ""
    """Path of the script."""
    line: int = 1
    """Line where the tool begins."""
    unit: int = 0
    """Index of the tool's unit in the script, from 0."""
    metadata: JsonObject = field(default_factory=dict)
    """`session`: the tool runs when a conversation starts and is not offered to models. `x-…`: properties from META
    lines, exported as they are."""
    results: tuple[ParamDecl, ...] = ()
    """Members of its result, from RETURNS lines; empty if the result is not declared."""

    def schema(self) -> JsonObject:
        """JSON Schema of the arguments, with parameters and `required` in the order of declaration."""
        return _object_of(self.parameters)

    def result_schema(self) -> JsonObject | None:
        """JSON Schema of the result, an object; None if it is not declared."""
        return _object_of(self.results) if self.results else None

    def mcp(self) -> JsonObject:
        """The definition in the stored MCP format: `name`, `description`, `input_schema`, `outputSchema` if the result
        is declared, and the `x-…` properties."""
        declared = {"outputSchema": self.result_schema()} if self.results else {}
        return {**self._head(), "input_schema": self.schema(), **declared}

    def openai(self) -> JsonObject:
        """The function object of OpenAI's format: `name`, `description`, `parameters`, and the `x-…` properties."""
        return {**self._head(), "parameters": self.schema()}

    def _head(self) -> JsonObject:
        custom = {name: value for name, value in self.metadata.items() if name.startswith("x-")}
        return {"name": self.name, "description": self.description, **custom}

    def to_json(self) -> JsonObject:
        """Plain data for `of_json`: all fields by name; `parameters` as maps."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, JsonValue]) -> ToolDefinition:
        """The definition that `to_json` serialized."""
        declared = {name: tuple(map(ParamDecl.of_json, data.get(name, ()))) for name in ("parameters", "results")}
        return cls(**{**data, **declared})


def _object_of(members: Sequence[ParamDecl]) -> JsonObject:
    return {
        "type": "object",
        "properties": {one.name: one.schema() for one in members},
        "required": [one.name for one in members if one.required],
    }


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_NO_NAMES = frozenset(
    ("and", "or", "not", "in", "is", "like", "mod", "null", "true", "false", "then", "else", "elseif", "if")
)
"""Reserved words in expressions, never variables."""


def parameters_of(unit: Unit, profile: Profile) -> tuple[tuple[ParamDecl, ...], list[ScriptProblem]]:
    """The parameters of `unit` in order, and the problems of all of them."""
    faults = [*_duplicates(unit.params), *_late(unit, profile)]
    declared: list[ParamDecl] = []
    for param in unit.params:
        reading = _Reading(param, profile)
        declared.append(reading.declared())
        faults += reading.faults
    return tuple(declared), faults


def results_of(unit: Unit) -> tuple[tuple[ParamDecl, ...], list[ScriptProblem]]:
    """The declared members of the result of `unit`, and their errors."""
    readings = [_Reading(param, Profile.EXTENDED) for param in unit.results]
    declared = tuple(one.declared() for one in readings)
    faults = [*_duplicates(unit.results), *(fault for one in readings for fault in one.faults)]
    # A description is optional here.
    return declared, [
        fault._replace(message=fault.message.replace("PARAM", "RETURNS"))
        for fault in faults
        if fault.severity == "error"
    ]


def _duplicates(params: Sequence[Param]) -> Iterator[ScriptProblem]:
    first: dict[str, Param] = {}
    for param in params:
        known = first.setdefault(param.name.lower(), param)
        if known is not param:
            message = f"PARAM {param.name} is already declared on line {known.at.line} (case is ignored); rename it"
            yield ScriptProblem(param.at, Code.DUPLICATE_NAME, message)


def _late(unit: Unit, profile: Profile) -> Iterator[ScriptProblem]:
    if not unit.body:
        return
    begin = unit.body[0].at
    for param in unit.params:
        if param.at > begin:
            message = f"PARAM {param.name} must come before the first statement of the script, on line {begin.line}"
            yield ScriptProblem(param.at, Code.LATE_PARAM, message, "error" if profile is Profile.STRICT else "warning")


class _Reading:
    """Validation of one PARAM; collects its problems."""

    def __init__(self, param: Param, profile: Profile) -> None:
        self._param = param
        self._is_strict = profile is Profile.STRICT
        self.faults: list[ScriptProblem] = []

    def declared(self) -> ParamDecl:
        """The declared parameter, without its invalid parts, whose problems are added to `faults`. Without a type it is
        a string, or that of its choices."""
        param = self._param
        self._check_name()
        kind = self._kind()
        self._check_profile()
        self._check_description()
        choices = self._choices(kind)
        return ParamDecl(
            name=param.name,
            type="" if choices and not param.type else param.type or "string",
            description=param.description.strip(),
            required=self._is_strict or not (param.optional or param.has_default),
            example=self._example(kind, choices),
            default=self._default(kind, choices),
            choices=choices,
            line=param.at.line,
        )

    def _check_name(self) -> None:
        name = self._param.name
        if not _NAME.fullmatch(name):
            message = (
                f"`{name}` is not a valid parameter name: models accept only names that begin with a letter and have "
                f"at most 64 of A-Z, a-z, 0-9 and `_`"
            )
            self._fault(Code.BAD_NAME, message)
        elif name.lower() in _NO_NAMES:
            self._fault(Code.BAD_NAME, f"`{name}` is a reserved word and cannot be a parameter name")

    def _kind(self) -> ParamType | None:
        """The parameter's type; None if the name is unknown. Reports unknown and forbidden types, and in strict mode a
        missing one."""
        param = self._param
        if not param.type and param.choices:
            return type_of_choices(param.choices)
        if not param.type and self._is_strict:
            right = f"write PARAM {param.name} AS {', '.join(STRICT_TYPES[:-1])} or {STRICT_TYPES[-1]}"
            self._fault(Code.BAD_PARAM, f"PARAM {param.name} has no type; {right}", param.type_at)
        elif not param.type and param.type_at is not None:
            message = (
                f"the text after AS is used as the description of {param.name}; write PARAM {param.name} AS string "
                f'DESCRIPTION "…", or list several texts to allow only these'
            )
            self._fault(Code.BAD_PARAM, message, param.type_at, is_grave=False)
        kind = type_named(param.type)
        allowed = STRICT_TYPES if self._is_strict else type_names()
        if kind is None or (param.type and param.type not in allowed):
            near = get_close_matches(param.type, allowed, 1)
            hint = f"; did you mean `{near[0]}`?" if near else "."
            message = f"PARAM {param.name}: `{param.type}` is not an allowed type{hint} Allowed types:"
            self._fault(Code.BAD_TYPE, f"{message} {', '.join(allowed)}", param.type_at)
        return kind

    def _check_profile(self) -> None:
        if not self._is_strict:
            return
        param = self._param
        used = {"OPTIONAL": param.optional, "DEFAULT": param.has_default, "a list of choices": bool(param.choices)}
        for what, is_used in used.items():
            if is_used:
                message = f"PARAM {param.name}: the strict profile does not allow {what}"
                self._fault(
                    Code.NOT_IN_STRICT, f"{message}; every parameter is required and accepts any value of its type"
                )

    def _check_description(self) -> None:
        param = self._param
        if not param.description.strip():
            message = f'PARAM {param.name} has no DESCRIPTION; describe it: PARAM {param.name} … DESCRIPTION "…"'
            self._fault(Code.MISSING_PARAM_DESCRIPTION, message, is_grave=self._is_strict)

    def _choices(self, kind: ParamType | None) -> tuple[JsonValue, ...]:
        choices: list[JsonValue] = []
        for written in self._param.choices:
            value = self._read(kind, written)
            if value is None:
                self._fault(Code.BAD_PARAM, self._wrong("the choice", written, kind))
            elif not any(_is_same(value, one) for one in choices):
                choices.append(value)
        return tuple(choices)

    def _example(self, kind: ParamType | None, choices: tuple[JsonValue, ...]) -> JsonValue:
        param = self._param
        if not param.has_like or param.like is None or kind is None:
            return None
        value = _among(self._read(kind, param.like), choices)
        is_loose = not (self._is_strict or choices) and param.type in LOOSE_EXAMPLES
        if value is None and is_loose and isinstance(param.like, str) and param.like.strip():
            return LOOSE_EXAMPLES[param.type](param.like)
        if value is None:
            message = self._wrong("the example after LIKE", param.like, kind, choices)
            left = "" if self._is_strict else "; it is not shown to models"
            self._fault(Code.BAD_PARAM, message + left, is_grave=self._is_strict)
        return value

    def _default(self, kind: ParamType | None, choices: tuple[JsonValue, ...]) -> JsonValue:
        param = self._param
        # DEFAULT NULL is the same as OPTIONAL.
        if not param.has_default or param.default is None or kind is None:
            return None
        value = _among(self._read(kind, param.default), choices)
        if value is None:
            self._fault(Code.BAD_PARAM, self._wrong("the DEFAULT", param.default, kind, choices))
        return value

    def _read(self, kind: ParamType | None, written: JsonValue) -> JsonValue:
        try:
            return written if kind is None else kind.read(written)
        except DoesNotFit:
            return None

    def _wrong(self, what: str, value: JsonValue, kind: ParamType | None, choices: tuple[JsonValue, ...] = ()) -> str:
        shown = str(value)
        shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
        wanted = f"one of {', '.join(map(str, choices))}" if choices else kind.wanted if kind else ""
        named = f" of type {self._param.type}" if self._param.type and not choices else ""
        return f"PARAM {self._param.name}{named}: {what} `{shown}` must be {wanted}"

    def _fault(self, code: Code, message: str, at: At | None = None, *, is_grave: bool = True) -> None:
        self.faults.append(ScriptProblem(at or self._param.at, code, message, "error" if is_grave else "warning"))


def _among(value: JsonValue, choices: tuple[JsonValue, ...]) -> JsonValue:
    """`value`, or the choice equal to it except for letter case; None if it is not a choice."""
    if not choices or value is None:
        return value
    for one in choices:
        if _is_same(one, value):
            return one
    return next((one for one in choices if str(one).casefold() == str(value).casefold()), None)


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other
