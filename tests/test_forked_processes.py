"""A forked process is set up like a normal one, and ends together with its client process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.forked_processes import forked_command

TOLD = """
import os, sys, warnings
umask = os.umask(0)
import beside, elsewhere
print(os.getcwd(), sys.argv, sys.path[:2], sys.stdin.read(), os.environ["NAME"], oct(umask), __name__)
warnings.warn("this is an error")
"""
WAITS = """
import time
print("started", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "elsewhere.py").touch()
    (tmp_path / "beside.py").touch()
    (tmp_path / "told.py").write_text(TOLD)
    (tmp_path / "waits.py").write_text(WAITS)
    return tmp_path


def test_it_has_the_folder_environment_streams_and_umask_of_the_starting_process(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder / "elsewhere"), "PYTHONWARNINGS": "error", "NAME": "Zoë"}

    def told(*program: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [*program, "--an", "option"],
            cwd=folder,
            env=environment,
            umask=0o027,
            input="typed",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr.splitlines()[-1]

    alone = told(sys.executable, "-m", "told")
    assert told(*forked_command("told")) == alone
    assert (alone[0], alone[2]) == (1, "UserWarning: this is an error")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_it_and_the_program_that_stands_for_it(folder: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        forked_command("waits"), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.send_signal(number)
        # Both processes have this pipe open.
        assert process.stdout.read() == b""
        assert process.wait(30) == -number
