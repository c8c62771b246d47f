"""Commands of `rollcall`, each in a process of its own as `python -m bot` starts it. They come off one interpreter that
has imported what all of them need: that is most of what a start costs."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tests.conftest import REPOSITORY

_NEEDED = ("bot.cli.call", "bot.cli.commands", "bot.wiring", "alembic.command", "jsonschema_rs")


class Ended(NamedTuple):
    """How a process ended, and what it wrote."""

    status: int
    out: str
    err: str


class Commands:
    """Starts them, one at a time."""

    def __init__(self, forking: subprocess.Popen[str]) -> None:
        self._forking = forking

    async def run(self, *arguments: str, timeout_seconds: float = 30) -> Ended:
        """What came of it. Raises TimeoutError, with all processes ended."""
        try:
            async with asyncio.timeout(timeout_seconds):
                return Ended(*json.loads(await asyncio.to_thread(self._told, arguments)))
        except TimeoutError:
            self.end()
            raise

    def end(self) -> None:
        """Let nothing run any more."""
        if self._forking.poll() is None:
            os.killpg(self._forking.pid, signal.SIGKILL)
        self._forking.communicate()

    def _told(self, arguments: Sequence[str]) -> str:
        assert self._forking.stdin is not None
        assert self._forking.stdout is not None
        self._forking.stdin.write(json.dumps(arguments) + "\n")
        self._forking.stdin.flush()
        return self._forking.stdout.readline()


@contextmanager
def forking(environment: Mapping[str, str]) -> Iterator[Commands]:
    """Commands in that environment."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=REPOSITORY,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    commands = Commands(process)
    try:
        yield commands
    finally:
        commands.end()


def _run(arguments: Sequence[str]) -> Ended:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            for ours, theirs in enumerate((nothing, out.fileno(), err.fileno())):
                os.dup2(theirs, ours)
            sys.argv[1:] = arguments
            # It ends by SystemExit, which ends this process as it would end any.
            runpy.run_module("bot", run_name="__main__", alter_sys=True)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return Ended(status, out.read().decode(), err.read().decode())


def _main() -> None:
    for name in _NEEDED:
        importlib.import_module(name)
    while line := sys.stdin.readline():
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
