"""The function call log: lines are written soon, and files are rotated."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services.call_log import JsonLines, RotatingFile

ROOT = Path(__file__).parents[2]


def line(number: int) -> dict[str, Any]:
    return {"number": number}


def numbers(path: Path) -> list[int]:
    return [json.loads(one)["number"] for one in path.read_bytes().splitlines()]


async def test_a_line_is_written_a_moment_later(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "calls.jsonl"
    log = JsonLines(path, delay_seconds=0.001)
    log.append(line(1))
    assert not path.exists()
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.002, later.set)
    await later.wait()
    assert numbers(path) == [1]


async def test_many_lines_are_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = JsonLines(path, lines_per_write=3, delay_seconds=60)
    for number in range(4):
        log.append(line(number))
    assert numbers(path) == [0, 1, 2]
    log.flush()
    assert numbers(path) == [0, 1, 2, 3]
    log.flush()
    assert numbers(path) == [0, 1, 2, 3]


async def test_lines_that_the_disk_refuses_are_written_once_it_takes_them(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.write_text("in the way")
    log = JsonLines(folder / "calls.jsonl", lines_per_write=2, delay_seconds=60)
    for number in range(4):
        log.append(line(number))
    assert log.failed_writes == 2
    folder.unlink()
    log.append(line(4))
    log.flush()
    assert numbers(folder / "calls.jsonl") == [0, 1, 2, 3, 4]


async def test_no_more_than_ten_thousand_refused_lines_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.write_text("in the way")
    log = JsonLines(folder / "calls.jsonl", lines_per_write=5000, delay_seconds=60)
    for number in range(15_000):
        log.append(line(number))
    folder.unlink()
    log.append(line(15_000))
    log.flush()
    written = numbers(folder / "calls.jsonl")
    assert (len(written), written[0], written[-1]) == (10_001, 5000, 15_000)


def test_a_full_file_is_put_aside_and_the_oldest_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    file = RotatingFile(path, max_bytes=10, keep_files=2)
    for letter in b"abcdefgh":
        file.append(bytes([letter]) * 4 + b"\n")
    assert path.read_bytes() == b"gggg\nhhhh\n"
    assert path.with_name("x.jsonl.1").read_bytes() == b"eeee\nffff\n"
    assert path.with_name("x.jsonl.2").read_bytes() == b"cccc\ndddd\n"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_line_longer_than_a_file_gets_one_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    file = RotatingFile(path, max_bytes=4, keep_files=1)
    file.append(b"longer than four\n")
    file.append(b"b\n")
    assert path.read_bytes() == b"b\n"
    assert path.with_name("x.jsonl.1").read_bytes() == b"longer than four\n"


def test_a_file_that_somebody_moved_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    file = RotatingFile(path, max_bytes=100, keep_files=1)
    file.append(b"a\n")
    path.rename(tmp_path / "elsewhere")
    file.append(b"b\n")
    assert path.read_bytes() == b"b\n"


def test_a_full_disk_is_told() -> None:
    with pytest.raises(OSError, match="No space left"):
        RotatingFile(Path("/dev/full"), max_bytes=100, keep_files=1).append(b"a\n")


IN_TEN_BYTES = """
import resource, sys
from pathlib import Path
from services.call_log import RotatingFile
file = RotatingFile(Path(sys.argv[1]), max_bytes=100, keep_files=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
file.append(b"1234567\\n")
try:
    file.append(b"89012345\\n")
except OSError:
    sys.exit(7)
"""


def test_a_disk_that_fills_up_keeps_no_half_lines(tmp_path: Path) -> None:
    """In a separate process with a file size limit of ten bytes."""
    path = tmp_path / "x.jsonl"
    child = subprocess.run([sys.executable, "-c", IN_TEN_BYTES, str(path)], cwd=ROOT, check=False, timeout=30)
    assert child.returncode == 7
    assert path.read_bytes() == b"1234567\n"
