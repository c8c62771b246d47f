"""A FunctionSpec in the formats of OpenAI, Anthropic and MCP, and as a documentation page."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from function_calls.schema.commands import usage_line
from function_calls.schema.definition import DefinitionError
from function_calls.schema.schema import EMPTY, UnusableSchema, imported
from function_calls.spec import FunctionSpec, OfferedTo
from services.refs import JsonObject, Role

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "arguments")
"""Keys of the argument schema in a definition; `arguments` belongs to no standard."""


def offered_names(names: Sequence[str]) -> dict[str, str]:
    """Map each name to a name that providers accept: 1 to 64 of [A-Za-z0-9_-]. A changed name that would clash gets a
    suffix from its hash, so the mapping is the same in every process."""
    legal = {name for name in names if not _ILLEGAL.search(name) and len(name) <= _LONGEST_NAME}
    offered: dict[str, str] = {}
    used = set(legal)
    for name in names:
        if name in legal:
            offered[name] = name
            continue
        changed = _ILLEGAL.sub("_", name)[:_LONGEST_NAME]
        if changed in used or not changed.strip("_"):
            suffix = hashlib.sha256(name.encode()).hexdigest()[:8]
            changed = f"{changed[: _LONGEST_NAME - 9]}_{suffix}"
        offered[name] = changed
        used.add(changed)
    return offered


def openai_bare(spec: FunctionSpec) -> JsonObject:
    """`{name, description, parameters}` with the metadata of the spec."""
    return _with_metadata(spec, parameters=spec.parameters)


def openai_tool(spec: FunctionSpec) -> JsonObject:
    """`openai_bare` wrapped in `{type: function, function: …}`."""
    return {"type": "function", "function": openai_bare(spec)}


def anthropic_tool(spec: FunctionSpec) -> JsonObject:
    """Definition in Anthropic's format: `{name, description, input_schema}` with the metadata of the spec."""
    return _with_metadata(spec, input_schema=spec.parameters)


def mcp_tool(spec: FunctionSpec) -> JsonObject:
    """`{name, description, inputSchema}` as on the wire, with `outputSchema` if the result is typed."""
    return _with_metadata(spec, inputSchema=spec.parameters, **_result(spec))


def mcp_stored_tool(spec: FunctionSpec) -> JsonObject:
    """`mcp_tool` in its stored form, with `input_schema`."""
    return _with_metadata(spec, input_schema=spec.parameters, **_result(spec))


ENCODERS: Mapping[str, Callable[[FunctionSpec], JsonObject]] = {
    "openai": openai_tool,
    "openai-bare": openai_bare,
    "anthropic": anthropic_tool,
    "mcp": mcp_tool,
}
"""Encoders by their names for `rollcall functions --format`."""


def _result(spec: FunctionSpec) -> JsonObject:
    return {} if spec.prompt.result_schema is None else {"outputSchema": spec.prompt.result_schema}


def _with_metadata(spec: FunctionSpec, **schemas: JsonObject) -> JsonObject:
    """Definition of the function: `name`, `description`, `schemas` and its metadata, which cannot override them."""
    defined = {"name": spec.name, "description": spec.description, **schemas}
    return {**defined, **spec.origin.metadata, **defined}


@dataclass(frozen=True, slots=True)
class ForeignDefinition:
    """A function definition from another system."""

    name: str
    description: str
    parameters: JsonObject
    metadata: JsonObject
    """All other keys, such as `title`, `annotations` and `outputSchema`; preserved on export."""

    @property
    def result_schema(self) -> JsonObject | None:
        """A copy of MCP's `outputSchema`, or None without one."""
        schema = self.metadata.get("outputSchema")
        return dict(schema) if isinstance(schema, Mapping) else None


def imported_definition(definition: Mapping[str, Any]) -> ForeignDefinition:
    """Parse a definition in any supported format: OpenAI, Anthropic, MCP on the wire or stored, or with `arguments`.
    Raises DefinitionError without a name, or for an invalid schema."""
    inner = definition.get("function")
    outer: dict[str, Any] = {}
    if isinstance(inner, Mapping):
        outer = {key: value for key, value in definition.items() if key not in ("type", "function")}
        definition = inner
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise DefinitionError("a function definition", ["name is required"])
    schemas = [key for key in _SCHEMAS if key in definition]
    try:
        parameters = imported(definition[schemas[0]]) if schemas and definition[schemas[0]] else EMPTY
    except UnusableSchema as error:
        raise DefinitionError(f"function {name!r}", [f"{schemas[0]}: {error}"]) from None
    known = {"name", "description", *_SCHEMAS[:3], *schemas[:1]}
    if definition.get("type") in ("function", "custom"):
        known.add("type")
    metadata = {key: value for key, value in definition.items() if key not in known}
    return ForeignDefinition(name, str(definition.get("description") or ""), parameters, {**metadata, **outer})


def inventory(specs: Sequence[FunctionSpec]) -> str:
    """Markdown reference of `specs`: usage, parameters, result, effect, places, roles, callers, the services that a
    Python function requests, and location of each function."""
    return "\n".join(line for spec in specs for line in _section(spec))


def who_may(spec: FunctionSpec) -> str:
    """Roles that may call the function, as text: `everybody`, or their names separated by commas."""
    if spec.access.roles == frozenset(Role):
        return "everybody"
    return ", ".join(role.value for role in Role if role in spec.access.roles)


def _section(spec: FunctionSpec) -> list[str]:
    lines = [
        f"## {spec.name}",
        "",
        spec.description,
        "",
        f"- usage: `{usage_line(spec)}`",
        f"- effect: {spec.execution.effect.value}; where: {spec.access.scope}; who: {who_may(spec)}",
    ]
    lines.append(f"- called by: {', '.join(caller.value for caller in OfferedTo if caller in spec.access.offered_to)}")
    if spec.origin.runs:
        lines.append(f"- runs: {spec.origin.runs}; needs: {', '.join(spec.origin.services) or 'nothing'}")
    if spec.command.words:
        lines.append(f"- commands: {', '.join(f'`/{word}`' for word in spec.command.words)}")
    required = spec.parameters["required"]
    for name, schema in spec.parameters["properties"].items():
        need = "required" if name in required else "optional"
        lines.append(f"- `{name}` ({_kind(schema)}, {need}): {schema.get('description', '')}".rstrip(" :"))
    if spec.prompt.result_schema is not None:
        lines.append(f"- returns: `{json.dumps(spec.prompt.result_schema, ensure_ascii=False)}`")
    lines += [f"- example: {example}" for example in spec.prompt.examples[:3]]
    return [*lines, f"- defined in: {spec.origin.source or 'code'}", ""]


def _kind(schema: JsonObject) -> str:
    kinds = schema.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
