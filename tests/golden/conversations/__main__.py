"""`python -m tests.golden.conversations --write [NAME…]` records conversations anew; without names all of them.

A name may be that of a group (a file of conversations). Without `--write` the differences are shown.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import traceback

import structlog

from tests.golden.conversations import recordings
from tests.golden.conversations.player import play
from tests.golden.conversations.shared import Shared


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.conversations", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record what happens now")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    every = recordings.conversations()
    chosen = [name for name, one in every.items() if not options.names or {name, one["group"]} & set(options.names)]
    shared = Shared(is_open=options.write, is_empty=options.write and not options.names)
    changed = failed = 0
    for name in chosen:
        begun = time.monotonic()
        try:
            recorded = asyncio.run(play(every[name], shared))
        except Exception:  # noqa: BLE001 - the other conversations are recorded all the same
            traceback.print_exc()
            print(f"{name}: FAILED", flush=True)
            failed += 1
            continue
        difference = recordings.difference(name, recorded)
        changed += bool(difference)
        doubts = _doubts(recorded)
        print(f"{name}: {'changed' if difference else 'same'} ({time.monotonic() - begun:.2f} s){doubts}", flush=True)
        if options.write:
            recordings.write(name, recorded)
        elif difference:
            print(difference)
    if options.write:
        shared.write()
        if not options.names:
            for name in recordings.recorded_names() - every.keys():
                recordings.remove(name)
    print(f"{len(chosen)} conversations, {changed} changed, {failed} failed")
    return 1 if failed or (changed and not options.write) else 0


def _doubts(recorded: dict[str, object]) -> str:
    text = recordings.as_text(recorded)
    found = [doubt for doubt in ('"unscripted"', '"unused answers"', '"waiting"') if doubt in text]
    return f"  LOOK: {', '.join(found)}" if found else ""


if __name__ == "__main__":
    sys.exit(main())
