"""What a machine says when it stops."""

from __future__ import annotations

from dataclasses import dataclass

from function_calls.basic.codes import RunCode
from function_calls.basic.nodes import At
from services.json_values import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Wants:
    """A keyword is to be carried out: `give` its value, or `fail` with its fault."""

    keyword: str
    arguments: JsonObject
    """By the names of its form's slots. They are the taker's own: changing them changes nothing in the run."""
    at: At


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over, with what RETURN gave."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Failed:
    """The run is over, and not as meant."""

    code: RunCode
    detail: str
    """In our own words or the script's; may be empty."""
    at: At


@dataclass(frozen=True, slots=True)
class Paused:
    """As many steps are done as were allowed; the run goes on with the next `go`."""


Event = Wants | Ended | Failed | Paused
