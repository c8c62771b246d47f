"""A database written by an earlier commit with unfinished work, and the conversation that continues with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FOLDER = Path(__file__).parent
DATABASE = FOLDER / "database.sql.gz"
EXPECTED = FOLDER / "afterwards.json"
SHARED = FOLDER / "_shared.json"


def conversation(part: str) -> Mapping[str, Any]:
    """The part `before` or `afterwards`."""
    whole = YAML(typ="safe").load((FOLDER / "conversation.yaml").read_text(encoding="utf-8"))
    database = {"database": str(DATABASE)} if part == "afterwards" else {}
    return {**whole[part], **database, "settings": whole["settings"], "files": whole["files"]}
