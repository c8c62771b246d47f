"""What a script's tools are called, take and do, as a value and in the forms in which models are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from function_calls.basic.param_types import type_named, type_of_choices
from services.json_values import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """One parameter."""

    name: str
    """As written. In the script it is a variable, which knows no upper and lower case."""
    type: str
    """In lower case; empty where its choices say what it is."""
    description: str = ""
    required: bool = True
    example: JsonValue = None
    """What LIKE shows; None: nothing."""
    default: JsonValue = None
    choices: tuple[JsonValue, ...] = ()
    line: int = 0

    def schema(self) -> JsonObject:
        """Its JSON Schema."""
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

    def to_json(self) -> JsonObject:
        """Plain data that `of_json` reads again."""
        return {
            "name": self.name,
            "type": self.type,
            "description": self.description,
            "required": self.required,
            "example": self.example,
            "default": self.default,
            "choices": list(self.choices),
            "line": self.line,
        }

    @classmethod
    def of_json(cls, data: Mapping[str, JsonValue]) -> ParamDecl:
        """The parameter of which `data` was made."""
        return cls(**{**data, "choices": tuple(data["choices"])})


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool of a script."""

    name: str
    description: str
    parameters: tuple[ParamDecl, ...] = ()
    """As the script declares them, in its order."""
    bot: str = "default"
    source_file: str = ""
    """The path of the script."""
    line: int = 1
    """Where the tool begins in it."""
    unit: int = 0
    """Which of the script's units it is, from 0."""
    metadata: JsonObject = field(default_factory=dict)
    """`session`: it runs when a conversation starts, and is no tool of models."""

    def schema(self) -> JsonObject:
        """The JSON Schema of its arguments; `required` in the script's order."""
        return {
            "type": "object",
            "properties": {one.name: one.schema() for one in self.parameters},
            "required": [one.name for one in self.parameters if one.required],
        }

    def mcp(self) -> JsonObject:
        """The definition as it is stored for MCP."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema()}

    def openai(self) -> JsonObject:
        """The bare function of OpenAI's format."""
        return {"name": self.name, "description": self.description, "parameters": self.schema()}

    def to_json(self) -> JsonObject:
        """Plain data that `of_json` reads again."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": [one.to_json() for one in self.parameters],
            "bot": self.bot,
            "source_file": self.source_file,
            "line": self.line,
            "unit": self.unit,
            "metadata": self.metadata,
        }

    @classmethod
    def of_json(cls, data: Mapping[str, JsonValue]) -> ToolDefinition:
        """The definition of which `data` was made."""
        return cls(**{**data, "parameters": tuple(map(ParamDecl.of_json, data["parameters"]))})
