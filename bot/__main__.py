"""`rollcall …` and `python -m bot …`."""

# Built into Python, or imported by it before this file. Everything else, even `__future__`, is imported after the
# working folder has been removed from the path.
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
    """Run one command (default: the arguments of this process); returns the exit status. Imported objects live until
    the end, so garbage collection is off during imports, where it would take a sixth of the start time."""
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
