"""`rollcall …`."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence

_COMMANDS = "bot.cli.commands"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. What importing makes stays until the end: to look through it for garbage again
    and again, as it grows and ever after, would take a sixth of a start."""
    is_first = _COMMANDS not in sys.modules
    if is_first:
        gc.disable()
    try:
        commands = importlib.import_module(_COMMANDS)
    finally:
        if is_first:
            gc.freeze()
            gc.enable()
    status: int = commands.main(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
