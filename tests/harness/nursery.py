"""Fast start of daemon processes: one process imports everything once and forks for each start. Requests and answers
are lines of JSON on its standard input and output."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import orjson

from services.refs import JsonObject
from tests.harness.daemon_process import Plan, functions_of, serve
from tests.harness.forked_processes import live_once
from tests.harness.wire import Peer

REPOSITORY = Path(__file__).resolve().parents[2]


class Nursery:
    """The test's side of the connection."""

    def __init__(self, log: Path) -> None:
        """`log`: receives stderr of the daemons."""
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.harness.nursery"],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=10)

    def start(self, plan: Plan) -> int:
        """Start a daemon; returns its process id."""
        pid = self._asked({"start": plan.to_json()})["pid"]
        assert isinstance(pid, int)
        return pid

    def status(self, pid: int) -> int:
        """Exit status of a daemon, after it has ended; the negative signal number if it was killed."""
        status = self._asked({"wait": pid})["status"]
        assert isinstance(status, int)
        return status

    def _asked(self, question: JsonObject) -> JsonObject:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(orjson.dumps(question) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the nursery has ended; see {self._log}"
        answer: JsonObject = orjson.loads(line)
        return answer


def main() -> None:
    """The side of the forking process."""
    asyncio.run(live_once(functions_of(cast("Peer", None), lambda _: None)))  # none of them is called
    assert threading.active_count() == 1, "a fork takes no threads along, and may take what they hold"
    gc.freeze()
    for line in sys.stdin.buffer:
        question = orjson.loads(line)
        answer: JsonObject
        if "start" in question:
            pid = os.fork()
            if pid == 0:
                os._exit(_in_the_child(Plan(**question["start"])))
            answer = {"pid": pid}
        else:
            _, status = os.waitpid(question["wait"], 0)
            answer = {"status": os.waitstatus_to_exitcode(status)}
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.buffer.flush()


def _in_the_child(plan: Plan) -> int:
    # Only the forking process communicates with the test.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    try:
        return asyncio.run(serve(plan))
    except Exception as error:  # noqa: BLE001 - the process ends with this message
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 70


if __name__ == "__main__":
    main()
