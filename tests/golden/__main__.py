"""`python -m tests.golden --write` records conversations, the earlier database and settings again.

The database file itself is kept; `python -m tests.golden.starting_database --make-database` creates a new one.
"""

from __future__ import annotations

import argparse
import sys

from tests.golden.conversations.__main__ import record
from tests.golden.settings import snapshots
from tests.golden.starting_database.__main__ import write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    status = record([], is_written=True)
    write()
    snapshots.write()
    return status


if __name__ == "__main__":
    sys.exit(main())
