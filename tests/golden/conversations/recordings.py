"""Conversations and their recordings, as files."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.golden.conversations.shared import FOLDER as EXPECTED

SPOKEN = Path(__file__).parent / "spoken"


@cache
def conversations() -> Mapping[str, Mapping[str, Any]]:
    """All conversations by name, in the order of their files."""
    found: dict[str, Mapping[str, Any]] = {}
    for file in sorted(SPOKEN.glob("*.yaml")):
        group = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
        for name, conversation in group["conversations"].items():
            assert name not in found, name
            defaults = group.get("defaults", {})
            settings = {**defaults.get("settings", {}), **conversation.get("settings", {})}
            files = {**defaults.get("files", {}), **conversation.get("files", {})}
            found[name] = {**defaults, **conversation, "settings": settings, "files": files, "group": file.stem}
    return found


def expected(name: str) -> Any:
    """The recording, or None."""
    file = EXPECTED / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def write(name: str, recorded: Any) -> None:
    """Write the recording."""
    EXPECTED.mkdir(exist_ok=True)
    (EXPECTED / f"{name}.json").write_text(as_text(recorded) + "\n", encoding="utf-8")


def recorded_names() -> set[str]:
    """Names of all recordings."""
    return {file.stem for file in EXPECTED.glob("*.json")} - {"_shared"}


def remove(name: str) -> None:
    """Delete a recording."""
    (EXPECTED / f"{name}.json").unlink()


def as_text(recorded: Any) -> str:
    """The text of a recording in its file."""
    return json.dumps(recorded, ensure_ascii=False, indent=1)


def difference(name: str, recorded: Any) -> str:
    """Line diff between the stored recording and `recorded`; empty if they are equal."""
    return difference_of(expected(name), recorded)


def difference_of(old: Any, new: Any) -> str:
    """Line diff between two recordings."""
    lines = as_text(old).splitlines(), as_text(new).splitlines()
    return "\n".join(difflib.unified_diff(*lines, "recorded", "now", lineterm="", n=4))
