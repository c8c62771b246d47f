"""Settings files and their recordings: all values of an empty file, and the differences of other files from them."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.settings.effective import Effective, effective

FOLDER = Path(__file__).parent
VALID = FOLDER / "valid"
DEFAULTS = FOLDER / "defaults.json"
EXPECTED = FOLDER / "expected.json"


def files() -> list[Path]:
    """All settings files; all of them are valid."""
    return sorted(VALID.glob("*.yaml"))


def defaults() -> Any:
    """Values of an empty file, and of empty entries."""
    entries: dict[str, Any] = {}
    for file in files():
        entries |= effective(file).entries
    return {"of a file": _empty().values, "of entries": dict(sorted(entries.items()))}


def difference(value: Any, default: Any) -> Any:
    """Parts of `value` that differ from `default`; empty if there are none."""
    if isinstance(value, dict) and isinstance(default, dict):
        found = {
            name: difference(item, default[name]) if name in default else item
            for name, item in value.items()
            if name not in default or item != default[name]
        }
        return found | {f"without {name}": True for name in default.keys() - value.keys()}
    return value


def now(file: Path) -> Any:
    """Differences of `file` from the defaults."""
    return difference(effective(file).values, _empty().values)


def write() -> None:
    """Record the current values."""
    DEFAULTS.write_text(_as_text(defaults()), encoding="utf-8")
    EXPECTED.write_text(_as_text({file.stem: now(file) for file in files()}), encoding="utf-8")


@cache
def _empty() -> Effective:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bot.yaml"
        file.write_text("config_version: 1\n", encoding="utf-8")
        return effective(file)


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
