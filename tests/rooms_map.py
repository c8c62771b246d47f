"""The map of rooms in docs/architecture.md, made of the first words of each room's `__init__.py`.

python -m tests.rooms_map            whether the map is up to date
python -m tests.rooms_map --write    make it again
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
FLOORS = ("rollcall", "bot", "function_calls", "services", "config")
_MAP = re.compile(r"(?<=--write`. -->\n```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def rooms() -> Iterator[tuple[str, str]]:
    """Every room, by its path from the root, with its paragraph; empty where it has none."""
    for floor in FLOORS:
        for file in sorted((ROOT / floor).rglob("__init__.py")):
            text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            yield file.parent.relative_to(ROOT).as_posix(), " ".join(text.split())


def page() -> str:
    """The page with the map as it should be."""
    named = [(room, text.partition(". ")[0].removesuffix(".")) for room, text in rooms()]
    width = max(len(room) for room, _ in named)
    rows = "".join(f"{room:<{width}}  {subject}\n" for room, subject in named)
    return _MAP.sub(lambda _: rows, PAGE.read_text(encoding="utf-8"))


def main(arguments: list[str]) -> int:
    """0: the map is up to date, or was written; 1: it is not."""
    made = page()
    if arguments == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    return int(made != PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
