"""Commands of `rollcall`, one after another, each in a process of its own as `python -m bot` starts it. They come off
one interpreter that has imported what all of them need: that is most of what a start costs."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.conftest import REPOSITORY

_NEEDED = ("bot.cli.commands", "bot.wiring", "bot.cli.opened")


class Ended(NamedTuple):
    """How a process ended, and what it wrote."""

    status: int
    out: str
    err: str


async def commands(
    environment: Mapping[str, str], *each: Sequence[str], timeout_seconds: float = 60
) -> Sequence[Ended]:
    """What came of the commands with those arguments. Raises TimeoutError, with all of them ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, json.dumps(each)),
        cwd=REPOSITORY,
        env=dict(environment),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_seconds):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)
            await process.wait()
    return [Ended(*one) for one in json.loads(out)]


def _run_each(each: Sequence[Sequence[str]]) -> None:
    for name in _NEEDED:
        importlib.import_module(name)
    ended = [_run(arguments) for arguments in each]
    sys.stdout.write(json.dumps(ended))


def _run(arguments: Sequence[str]) -> Ended:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv[1:] = arguments
            # It ends by SystemExit, which ends this process as it would end any.
            runpy.run_module("bot", run_name="__main__", alter_sys=True)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return Ended(status, out.read().decode(), err.read().decode())


if __name__ == "__main__":
    _run_each(json.loads(sys.argv[1]))
