"""Tables of words that members write: files of `config/words` and `config/phrases`, with a block of lines per name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def word_tables(name: str) -> Mapping[str, list[str]]:
    """The lines of each table of `config/words/<name>.yaml`. Not cached."""
    return _blocks([_FOLDER / "words" / f"{name}.yaml"])


def phrases() -> Mapping[str, list[str]]:
    """More ways to ask for the built-in functions, by function name, in all languages: `config/phrases/*.yaml`. Not
    cached."""
    return _blocks(sorted((_FOLDER / "phrases").glob("*.yaml")))


def _blocks(files: Iterable[Path]) -> Mapping[str, list[str]]:
    """Lines of all blocks `name: |`; a line with a deeper indent continues the one before it."""
    found: dict[str, list[str]] = {}
    for file in files:
        lines: list[str] = []
        for line in file.read_text(encoding="utf-8").splitlines():  # faster than a YAML parser: 10 ms against 400
            if line.startswith("   "):
                lines[-1] += f" {line.strip()}"
            elif line.startswith("  "):
                lines.append(line.strip())
            elif line.endswith(": |"):
                lines = found.setdefault(line.removesuffix(": |"), [])
    return found
