"""`rollcall schema`: JSON Schemas of the settings and of command tool files, for completion in editors."""

from __future__ import annotations

import argparse
import json
from typing import Any

from config.sections.command_tools import CommandFile
from config.settings import Settings
from config.yaml_document import REFERENCE

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ANNOTATIONS = ("title", "description", "default")
_HOLDS_REFERENCE = {"type": "string", "pattern": REFERENCE}


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of a settings file, with a description of every key. Values with a narrow type also accept a
    reference to the environment."""
    schema = _open_to_references(Settings.model_json_schema())
    return {"$schema": DIALECT, **schema}


def command_tools_schema() -> dict[str, Any]:
    """The JSON Schema of a command tools file, where references to the environment are not supported."""
    return {"$schema": DIALECT, **CommandFile.model_json_schema()}


def _open_to_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_open_to_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if _is_narrow(schema):
        outer = {key: schema[key] for key in _ANNOTATIONS if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {**outer, "anyOf": [inner, _HOLDS_REFERENCE]}
    opened = {key: value if key == "propertyNames" else _open_to_references(value) for key, value in schema.items()}
    if "patternProperties" in opened:
        opened["additionalProperties"] = False
    return opened


def _is_narrow(schema: dict[str, Any]) -> bool:
    """Whether `schema` is for a scalar and would reject a reference."""
    kind = schema.get("type")
    if kind == "string":
        return any(word in schema for word in ("enum", "const", "pattern"))
    return kind in ("integer", "number", "boolean")


_SCHEMAS = {"settings": settings_schema, "commands": command_tools_schema}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("of", nargs="?", choices=_SCHEMAS, default="settings", help="kind of files (default: settings)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the JSON Schema of the chosen kind of file. Returns 0."""
    print(json.dumps(_SCHEMAS[options.of](), indent=2, ensure_ascii=False))
    return 0
