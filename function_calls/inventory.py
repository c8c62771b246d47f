"""Functions as a page of documentation, in Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence

from function_calls.spec import FunctionSpec
from function_calls.usage import usage_line
from services.json_values import JsonObject
from services.refs import Role


def inventory(specs: Sequence[FunctionSpec]) -> str:
    """What each function takes, gives and changes, who may call it, and where it is defined."""
    return "\n".join(line for spec in specs for line in _section(spec))


def who_may(spec: FunctionSpec) -> str:
    """The roles that may call it, in words."""
    if spec.roles == frozenset(Role):
        return "everybody"
    return ", ".join(role.value for role in Role if role in spec.roles)


def _section(spec: FunctionSpec) -> list[str]:
    lines = [
        f"## {spec.name}",
        "",
        spec.description,
        "",
        f"- usage: `{usage_line(spec)}`",
        f"- effect: {spec.effect.value}; where: {spec.scope}; who: {who_may(spec)}",
    ]
    if spec.commands:
        lines.append(f"- commands: {', '.join(f'`/{word}`' for word in spec.commands)}")
    required = spec.parameters["required"]
    for name, schema in spec.parameters["properties"].items():
        need = "required" if name in required else "optional"
        lines.append(f"- `{name}` ({_kind(schema)}, {need}): {schema.get('description', '')}".rstrip(" :"))
    if spec.result_schema is not None:
        lines.append(f"- returns: `{json.dumps(spec.result_schema, ensure_ascii=False)}`")
    lines += [f"- example: {example}" for example in spec.examples[:3]]
    return [*lines, f"- defined in: {spec.source or 'code'}", ""]


def _kind(schema: JsonObject) -> str:
    kinds = schema.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
