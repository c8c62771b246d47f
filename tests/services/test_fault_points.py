"""Named fault points for tests."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys

import pytest

from services.fault_points import FaultPoints
from tests.conftest import REPOSITORY


def test_a_point_fails_once_when_it_is_reached_for_the_time_that_was_named() -> None:
    points = FaultPoints.parse("first:2=ENOSPC; second=EIO")
    points.reach("first")
    points.reach("elsewhere")
    with pytest.raises(OSError, match="No space left") as caught:
        points.reach("first")
    assert caught.value.errno == errno.ENOSPC
    points.reach("first")
    with pytest.raises(OSError, match="Input/output"):
        points.reach("second")


def test_nothing_is_armed_without_a_word() -> None:
    FaultPoints.parse("").reach("anything")
    FaultPoints().reach("anything")


@pytest.mark.parametrize("text", ["first", "first:1", "first=", "=kill", ":1=kill", "first=boom", "first:x=kill"])
def test_a_text_that_arms_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        FaultPoints.parse(text)


def test_a_process_dies_where_it_is_told_to() -> None:
    code = "from services.fault_points import FaultPoints; FaultPoints.parse('a=kill').reach('a'); print('alive')"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")
