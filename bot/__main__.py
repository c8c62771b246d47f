"""`rollcall …` and `python -m bot …`."""

# Built into Python, or imported by it before this file. All others, `__future__` among them, are imported after the
# working folder has left the path.
import gc
import os
import sys


def _leave_working_folder() -> None:
    """Remove the working folder from `sys.path`, where `python -m` and relative entries of PYTHONPATH put it. It stays
    if it holds these packages, or if PYTHONPATH names it in full."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""  # deleted
    wanted = {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    wanted.update(filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    sys.path[:] = [entry for entry in sys.path if entry in wanted or entry not in ("", folder)]


def main(arguments: list[str] | None = None) -> int:
    """Run one command (default: the one of this process); the exit status. What importing makes stays until the end: to
    look through it for garbage again and again, as it grows and ever after, would take a sixth of a start."""
    if arguments is None:
        _leave_working_folder()
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
