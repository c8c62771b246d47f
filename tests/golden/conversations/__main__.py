"""`python -m tests.golden.conversations --write [NAME…]` records conversations again; without names all of them.

A name may be that of a group (a file of conversations). Without `--write` the differences are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import traceback
from collections.abc import Sequence

import structlog

from tests.golden.conversations import recordings
from tests.golden.conversations.player import play
from tests.golden.conversations.shared import Shared


def record(names: Sequence[str], *, is_written: bool) -> int:
    """Play the conversations and groups with these names, or all. Returns 0 if they match or were recorded."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    every = recordings.conversations()
    chosen = [name for name, one in every.items() if not names or {name, one["group"]} & set(names)]
    shared = Shared(is_open=is_written, is_empty=is_written and not names)
    changed = failed = 0
    for name in chosen:
        begun = time.monotonic()
        try:
            recorded = asyncio.run(play(every[name], shared))
        except Exception:  # noqa: BLE001 - continue with the other conversations
            traceback.print_exc()
            _tell(f"{name}: FAILED")
            failed += 1
            continue
        difference = recordings.difference(name, recorded)
        changed += bool(difference)
        told = "changed" if difference else "same"
        _tell(f"{name}: {told} ({time.monotonic() - begun:.2f} s){_doubts(recorded)}")
        if is_written:
            recordings.write(name, recorded)
        elif difference:
            _tell(difference)
    if is_written:
        shared.write()
        if not names:
            for name in recordings.recorded_names() - every.keys():
                recordings.remove(name)
    _tell(f"{len(chosen)} conversations, {changed} changed, {failed} failed")
    return 1 if failed or (changed and not is_written) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.conversations", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record what happens now")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    return record(options.names, is_written=options.write)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _doubts(recorded: object) -> str:
    """Hints for the author of a conversation."""
    text = recordings.as_text(recorded)
    found = [doubt for doubt in ('"unscripted"', '"unused answers"', '"waiting"') if doubt in text]
    return f"  LOOK: {', '.join(found)}" if found else ""


if __name__ == "__main__":
    sys.exit(main())
