"""`python -m tests.golden.starting_database --write` records the second part of the conversation again;
`--make-database` creates the database again with the current code. Do the latter only on purpose: the database is
useful because older code wrote it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import structlog

from tests.golden.conversations.player import Player, play
from tests.golden.conversations.recordings import as_text
from tests.golden.conversations.shared import Shared
from tests.golden.starting_database.before_and_after import DATABASE, EXPECTED, SHARED, conversation


async def make_database() -> None:
    """Play the conversation up to the kill, and dump the database."""
    with tempfile.TemporaryDirectory() as folder:
        player = Player(conversation("before"), Path(folder).resolve(), Shared(SHARED, is_open=True))
        sys.stdout.write(as_text(await player.play()))
        player.pack_database(DATABASE)


def write() -> None:
    """Record the second part."""
    shared = Shared(SHARED, is_open=True, is_empty=True)
    recorded = asyncio.run(play(conversation("afterwards"), shared))
    EXPECTED.write_text(as_text(recorded) + "\n", encoding="utf-8")
    shared.write()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.starting_database", description=__doc__)
    parser.add_argument("--make-database", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    if options.make_database:
        asyncio.run(make_database())
    if options.write:
        write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
