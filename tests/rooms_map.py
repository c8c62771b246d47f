"""The map of packages in docs/architecture.md, generated from the first paragraph of each package's `__init__.py`.

python -m tests.rooms_map            check that the map is up to date
python -m tests.rooms_map --write    generate it
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
    """Path and description of each package; the description may be empty."""
    for floor in FLOORS:
        for file in sorted((ROOT / floor).rglob("__init__.py")):
            text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            yield file.parent.relative_to(ROOT).as_posix(), " ".join(text.split())


def page() -> str:
    """The page with the current map."""
    named = [
        (room, text.partition(". ")[0].removesuffix("."))
        for room, text in rooms()
        # One package for each network, which docs/platforms/README.md lists, and for each subject of handlers.
        if not room.startswith(("bot/platforms/", "function_calls/handlers/"))
    ]
    width = max(len(room) for room, _ in named)
    rows = "".join(f"{room:<{width}}  {subject}\n" for room, subject in named)
    return _MAP.sub(lambda _: rows, PAGE.read_text(encoding="utf-8"))


def main(arguments: list[str]) -> int:
    """Returns 0 if the map is up to date or was written, else 1."""
    made = page()
    if arguments == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    return int(made != PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
