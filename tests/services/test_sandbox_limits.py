"""Programs that try to exceed the limits of the sandbox, started by root and by a normal user."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from services.sandbox.cgroups import NoCgroups, delegated_cgroups
from services.sandbox.processes import Limits
from tests.harness.sandboxes import needs_bubblewrap

pytestmark = [needs_bubblewrap, pytest.mark.requirement("E43")]
MEBIBYTE = 1 << 20
NOBODY = 65534
ROOT = Path(__file__).resolve().parents[2]
USERS = [
    pytest.param(0, id="root", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs root")),
    pytest.param(NOBODY if os.getuid() == 0 else os.getuid(), id="user"),
]
LIMITS = Limits(memory_bytes=64 * MEBIBYTE, file_bytes=16 * MEBIBYTE, processes=16, timeout_seconds=60)
START = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from services.clock import SystemClock
from services.sandbox.processes import Limits
from services.sandbox.sandbox import Isolation, Sandbox
from tests.harness.sandboxes import python
limits, sandbox = Limits(**json.loads(sys.argv[2])), Sandbox(SystemClock())
async def attack():
    ended = await sandbox.run(python(sys.argv[3]), limits, Isolation.REQUIRED)
    print(ended.exit_code, ended.stdout.decode(), ended.stderr.decode())
    print("unbounded:", await sandbox.unbounded())
asyncio.run(attack())
"""


def attack(user: int, code: str, limits: Limits = LIMITS) -> str:
    """Exit code and output of `code` in a sandbox started by a process of `user`, and the limits that the sandbox
    reports as missing."""
    started = subprocess.run(
        [sys.executable, "-B", "-c", START, str(ROOT), json.dumps(asdict(limits)), code],
        user=user if user != os.getuid() else None,
        group=user if user != os.getuid() else None,
        extra_groups=[] if user != os.getuid() else None,
        env={"PATH": os.environ["PATH"], "HOME": "/"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert started.returncode == 0, started.stderr
    return started.stdout


@pytest.mark.parametrize("user", USERS)
def test_the_first_process_cannot_be_traced_and_has_the_limits_too(user: int) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("attach", libc.ptrace(16, 1, 0, 0), "seize", libc.ptrace(0x4206, 1, 0, 0))
for number in ("1", "self"):
    for line in open(f"/proc/{number}/limits"):
        if line.startswith(("Max address space", "Max file size", "Max cpu time", "Max open files")):
            print(line.split()[-3:-1])
"""
    output = attack(user, code)
    assert "attach -1 seize -1" in output
    assert "unlimited" not in output
    assert output.count(str(64 * MEBIBYTE)) == 4, output


@pytest.mark.parametrize("user", USERS)
def test_memory_without_a_mapping_cannot_be_held(user: int) -> None:
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
held = 0
try:
    for number in range(20):
        file = os.memfd_create("x")
        for _ in range(15):
            held += os.write(file, bytes(1 << 20))
except OSError as error:
    print(error.strerror)
print("shared", libc.shmget(0, 64 << 20, 0o1600), "secret", libc.syscall(447, 0))
print("held", held >> 20)
"""
    output = attack(user, code)
    assert "held 0" in output, output
    assert "shared -1 secret -1" in output


@pytest.mark.parametrize("user", USERS)
def test_the_temporary_folders_hold_a_limited_number_of_files_and_bytes(user: int) -> None:
    code = """
import os
made = written = 0
for folder in ("/tmp", "/dev/shm"):
    try:
        for number in range(200_000):
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
            made += 1
    except OSError as error:
        print(error.strerror)
for folder in ("/tmp", "/dev/shm"):
    try:
        for number in range(100):
            with open(f"{folder}/{number}", "wb", buffering=0) as file:
                written += file.write(bytes(1 << 20))
    except OSError as error:
        print(error.strerror)
print("made", made, "written", written >> 20)
"""
    words = attack(user, code).split()
    assert 1000 < int(words[words.index("made") + 1]) <= 20_000
    assert int(words[words.index("written") + 1]) <= 16


FORK = """
import os, time
made = 0
try:
    for _ in range(100):
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError as error:
    print(error.strerror)
print("made", made, flush=True)
os.kill(-1, 9)
"""


@pytest.mark.parametrize("user", USERS)
def test_processes_are_counted_together(user: int) -> None:
    output = attack(user, FORK)
    words = output.split()
    made = int(words[words.index("made") + 1])
    if user == 0 and "number of processes" in output:
        assert "root" in output
    else:
        assert 1 < made <= LIMITS.processes + 4


HOLD = """
import os, time
children, held = [], 0
for _ in range(8):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        data = bytearray(20 << 20)
        data[::4096] = b"x" * len(data[::4096])
        os.write(write, b"x")
        time.sleep(30)
    os.close(write)
    held += len(os.read(read, 1))
print("held", held, flush=True)
os.kill(-1, 9)
"""


@pytest.mark.parametrize("user", USERS)
def test_processes_share_the_memory_of_their_run_or_the_gap_is_reported(user: int) -> None:
    output = attack(user, HOLD)
    assert ("memory of a run" in output) == ("held 8" in output), output


SYSTEM_CALLS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, call in {
    "keyctl": lambda: libc.syscall(250, 0, -3, 1),
    "io_uring_setup": lambda: libc.syscall(425, 8, ctypes.create_string_buffer(256)),
    "bpf": lambda: libc.syscall(321, 0, ctypes.create_string_buffer(128), 128),
    "perf_event_open": lambda: libc.syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
    "process_vm_readv": lambda: libc.syscall(310, 1, None, 0, None, 0, 0),
    "unshare": lambda: libc.unshare(0x10000000),
    "vsock": lambda: libc.socket(40, 1, 0),
    "packet": lambda: libc.socket(17, 3, 0),
    "getpid of x32": lambda: libc.syscall(0x40000000 + 39),
}.items():
    ctypes.set_errno(0)
    print(call(), ctypes.get_errno(), f"({name})", flush=True)
"""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
def test_system_calls_without_a_use_in_a_sandbox_are_refused(user: int) -> None:
    output = attack(user, SYSTEM_CALLS)
    assert output.startswith("0 "), output
    refused = re.findall(r"-1 (?:1|38|97) \((.*)\)$", output, re.MULTILINE)
    assert len(refused) == SYSTEM_CALLS.count("lambda"), output


def a_delegated_cgroup(folder: Path, *, controllers: str = "cpu memory pids", others: str = "") -> tuple[Path, Path]:
    """A folder with the files of /proc and one with those of a cgroup, as systemd's `Delegate=yes` creates it."""
    proc, own = folder / "proc", folder / "cgroup" / "rollcall.service"
    (proc / "self").mkdir(parents=True)
    own.mkdir(parents=True)
    (proc / "self" / "mountinfo").write_text(f"30 23 0:26 / {folder}/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
    (proc / "self" / "cgroup").write_text("0::/rollcall.service\n")
    (own / "cgroup.controllers").write_text(controllers)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n{others}")
    (own / "cgroup.subtree_control").write_text("")
    return proc, own


def test_a_delegated_cgroup_limits_each_run_as_a_whole(tmp_path: Path) -> None:
    """Real control files need a kernel that delegates; these are plain files."""
    proc, own = a_delegated_cgroup(tmp_path)
    group = delegated_cgroups(proc).create(LIMITS)
    assert (own / "rollcall-daemon" / "cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert group.parent == own
    assert (group / "memory.max").read_text() == str(LIMITS.memory_bytes)
    assert LIMITS.processes <= int((group / "pids.max").read_text()) < LIMITS.processes + 8
    (proc / "self" / "cgroup").write_text("0::/rollcall.service/rollcall-daemon\n")
    assert delegated_cgroups(proc).create(LIMITS).parent == own


@pytest.mark.parametrize(
    ("cgroup", "reason"),
    [
        ({"controllers": "cpu pids"}, "has no controller for memory"),
        ({"others": "1\n"}, "1 other processes"),
    ],
)
def test_a_cgroup_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, cgroup: dict[str, str], reason: str
) -> None:
    proc, _ = a_delegated_cgroup(tmp_path, **cgroup)
    with pytest.raises(NoCgroups, match=reason):
        delegated_cgroups(proc)
