"""What is left of a file of settings without its faults, so that what else is wrong is told in the same breath."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.environment import fill_references
from config.loader import ENVIRONMENT_DEFAULTS
from config.settings import Settings
from config.yaml_document import read_yaml_file

_SAY_WHICH_FUNCTIONS = frozenset({"sources", "plugins", "mcp", "bots", "config_version"})
"""With a fault there, nobody knows which functions there would be."""
_MOST_PASSES = 50


def usable_part(path: Path, environment: Mapping[str, str]) -> Settings | None:
    """The settings of the file `path` less every section that cannot be used; what is left stands where it stood. None
    where nothing can be said of the functions that it would give."""
    document = read_yaml_file(path)
    if not isinstance(document.value, dict) or document.faults.errors:
        return None
    document.value = {**ENVIRONMENT_DEFAULTS, **document.value}
    fill_references(document, environment)
    rest: Any = document.value
    for _ in range(_MOST_PASSES):
        try:
            return Settings.model_validate(rest)
        except ValidationError as error:
            places = [details["loc"] for details in error.errors(include_url=False, include_context=False)]
        if not all(place and place[0] not in _SAY_WHICH_FUNCTIONS for place in places):
            return None
        for place in places:
            _take_out(rest, place)
    return None


def _take_out(rest: dict[str, Any], place: Sequence[int | str]) -> None:
    """Delete what stands at `place`, or else what it would stand in. Of a list the whole: what follows in it would no
    longer stand where it stood."""
    held, key = rest, place[0]
    inner: Any = rest
    for one in place:
        is_there = (isinstance(inner, dict) and one in inner) or (
            isinstance(inner, list) and isinstance(one, int) and one < len(inner)
        )
        if not is_there:
            break
        if isinstance(inner, dict):
            held, key = inner, one
        inner = inner[one]
        if isinstance(inner, list):
            break
    held.pop(str(key) if key not in held else key, None)
