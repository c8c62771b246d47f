"""`rollcall …`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. What importing makes stays until the end: to look through it for garbage again
    and again, as it grows and ever after, would take a sixth of a start."""
    is_first = "bot.cli.commands" not in sys.modules
    if is_first:
        gc.disable()
    try:
        from bot.cli import commands

        options = commands.parser().parse_args(arguments)
    finally:
        if is_first:
            gc.freeze()
            gc.enable()
    return commands.run(options)


if __name__ == "__main__":
    sys.exit(main())
