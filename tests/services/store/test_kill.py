"""Whenever the process is killed, acknowledged data is stored, and units are complete."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from services.store.sqlite.lock import StoreLock
from services.store.sqlite.upgrade import damage

REPOSITORY = Path(__file__).resolve().parents[3]
ROUNDS = 4


def run_and_kill(database: Path, first: int, seconds: float) -> list[int]:
    """Units acknowledged by a process that was killed `seconds` after its first acknowledgement."""
    command = [sys.executable, "-m", "tests.services.store.acknowledging_process", str(database), str(first)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, "it ended before it wrote anything"
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            said += process.stdout.readline()
        process.kill()
        said += process.stdout.read()
    return [int(line) for line in said.split()]


def test_nothing_that_was_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    moments = random.Random(20260105)
    acknowledged: list[int] = []
    for number in range(ROUNDS):
        acknowledged += run_and_kill(database, number * 1_000_000, moments.uniform(0.0, 0.3))
        StoreLock.take(database).release()
    with closing(sqlite3.connect(database)) as stored:
        bodies: dict[int, str] = dict(stored.execute("SELECT id, body FROM notes").fetchall())
    calls = {note // 2 for note in bodies if note % 2 == 0}
    replies = {note // 2 for note in bodies if note % 2}
    assert len(acknowledged) > ROUNDS
    assert set(acknowledged) <= calls
    assert calls == replies, "a unit is there in part"
    assert all(bodies[2 * call] == "call" and bodies[2 * call + 1] in {"reply", "sent"} for call in calls)
    assert damage(database) is None
