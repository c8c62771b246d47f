"""The contract of platforms, with the table of docs/platforms/README.md that is generated from it.

ROLLCALL_WRITE_PLATFORMS=1 python -m pytest tests/bot/platforms tests/contracts -k page_of_platforms
"""

from __future__ import annotations

import os
from pathlib import Path

from bot.platforms.contract import PlatformContract, capabilities

PAGE = Path(__file__).parents[2] / "docs" / "platforms" / "README.md"
_START, _END = "<!-- capabilities -->\n", "<!-- end of capabilities -->"
Table = dict[str, dict[str, str]]
"""Values by network and capability."""


class DescribedContract(PlatformContract):
    """The contract of a platform of this project."""

    async def test_the_page_of_platforms_says_what_it_can(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, _):
            name, able = network.platform.name, capabilities(network, self.lacks)
        if os.environ.get("ROLLCALL_WRITE_PLATFORMS"):
            _write(_read() | {name: able})
        assert _read().get(name) == able


def _read() -> Table:
    lines = PAGE.read_text(encoding="utf-8").partition(_START)[2].partition(_END)[0].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    names = rows[0][1:] if rows else []
    return {name: {row[0]: row[number] for row in rows[2:]} for number, name in enumerate(names, start=1)}


def _write(table: Table) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_START)
    names = sorted(table)
    rows = [["", *names], ["---"] * (len(names) + 1)]
    rows += [[capability, *(table[name].get(capability, "") for name in names)] for capability in table[names[0]]]
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    PAGE.write_text(f"{before}{_START}{lines}{_END}{rest.partition(_END)[2]}", encoding="utf-8")
