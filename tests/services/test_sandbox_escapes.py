"""Hostile programs in the sandbox: they cannot read, access, write or outlive anything on this machine."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.clock import SystemClock, VirtualClock
from services.sandbox.processes import Command, Finished, Limits
from services.sandbox.sandbox import Isolation, Sandbox
from tests.harness.sandboxes import LIVING, a_line, needs_bubblewrap, python

pytestmark = [needs_bubblewrap, pytest.mark.requirement("E43")]
CANARY = "canary-6f1d2c"
TRY = """
import os, sys
def tried(what, *arguments):
    try:
        print("DONE", what(*arguments))
    except Exception as error:
        print("refused", type(error).__name__)
"""


@pytest.fixture
async def outside(tmp_path: Path) -> AsyncIterator[Path]:
    """A folder outside the sandbox, with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text(CANARY)
    (tmp_path / "inside").mkdir()
    yield folder
    assert (folder / "secret").read_text() == CANARY
    assert os.listdir(folder) == ["secret"]


async def attack(code: str, folder: Path, *arguments: str, limits: Limits | None = None) -> Finished:
    command = python(TRY + code, *arguments, folder=folder.parent / "inside")
    return await Sandbox(SystemClock()).run(command, limits or Limits(timeout_seconds=20), Isolation.REQUIRED)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/etc/passwd",
        "/etc/hostname",
        str(Path.home() / ".bashrc"),
        "/boot",
        "/var",
        "/proc/1/root/etc/passwd",
        "/run",
        "/sys",
    ],
)
async def test_nothing_of_the_machine_can_be_read(path: str, outside: Path) -> None:
    ended = await attack("tried(lambda: os.listdir(sys.argv[1]) or open(sys.argv[1]).read())", outside, path)
    assert b"DONE" not in ended.stdout
    assert b"refused" in ended.stdout


async def test_a_folder_beside_its_own_is_not_there(outside: Path) -> None:
    ways = [
        "../outside/secret",
        str(outside / "secret"),
        f"/proc/1/root{outside}/secret",
        "/proc/1/cwd/../outside/secret",
    ]
    for way in ways:
        ended = await attack("tried(lambda: open(sys.argv[1]).read())", outside, way)
        assert CANARY.encode() not in ended.stdout
        assert b"refused" in ended.stdout


async def test_a_link_out_of_its_folder_leads_nowhere(outside: Path) -> None:
    code = "os.symlink(sys.argv[1], 'link'); tried(lambda: open('link/secret').read())"
    code += "\ntried(lambda: open('link/new', 'w').write('x')); tried(os.link, sys.argv[1] + '/secret', 'hard')"
    ended = await attack(code, outside, str(outside))
    assert ended.stdout.split(b"\n")[:3] == [b"refused FileNotFoundError"] * 3


@pytest.mark.parametrize(
    "path", ["/usr/bin/x", "/etc/x", "/x", "/dev/x", "/proc/sys/kernel/domainname", "/proc/self/oom_score_adj"]
)
async def test_nothing_can_be_written_elsewhere(path: str, outside: Path) -> None:
    mode = "r+" if path.startswith("/proc") else "w"
    ended = await attack(f"tried(lambda: open(sys.argv[1], {mode!r}).write('1'))", outside, path)
    assert ended.stdout.startswith(b"refused"), ended.stdout


async def test_the_environment_of_the_daemon_is_not_to_be_found(outside: Path) -> None:
    os.environ["SECRET_OF_THE_DAEMON"] = CANARY
    code = """
for one in os.listdir("/proc"):
    if one.isdigit():
        for name in ("environ", "cmdline"):
            try:
                print(one, open(f"/proc/{one}/{name}").read())
            except OSError:
                pass
"""
    try:
        ended = await attack(code, outside)
    finally:
        del os.environ["SECRET_OF_THE_DAEMON"]
    assert b"PATH" in ended.stdout
    assert CANARY.encode() not in ended.stdout
    assert b"pytest" not in ended.stdout.replace(str(outside.parent).encode(), b"")


async def test_only_its_own_processes_are_seen_and_can_be_killed(outside: Path) -> None:
    code = f"print(sorted(one for one in os.listdir('/proc') if one.isdigit())); tried(os.kill, {os.getpid()}, 9)"
    ended = await attack(code, outside)
    assert len(ended.stdout.split(b"\n")[0].split()) <= 3
    assert b"refused ProcessLookupError" in ended.stdout


async def test_no_server_of_this_machine_is_reached(outside: Path) -> None:
    reached: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("somebody")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    abstract = await asyncio.start_unix_server(serve, f"\0rollcall-test-{os.getpid()}")
    port = server.sockets[0].getsockname()[1]
    code = f"""
import socket
tried(socket.create_connection, ("127.0.0.1", {port}), 2)
tried(socket.create_connection, ("::1", {port}), 2)
tried(socket.socket(socket.AF_UNIX).connect, "\\0rollcall-test-{os.getpid()}")
tried(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("192.0.2.1", 53))
"""
    async with server, abstract:
        ended = await attack(code, outside)
    assert ended.stdout.count(b"refused") == 4, ended.stdout + ended.stderr
    assert reached == []


async def test_with_a_network_neither_keys_nor_local_services_of_the_machine_are_reached(tmp_path: Path) -> None:
    reached: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("somebody")
        writer.close()

    code = f"""
import socket
tried(os.listdir, "/etc/ssl/private")
tried(lambda: socket.socket(socket.AF_UNIX).connect("\\0rollcall-test-{os.getpid()}"))
print(len(socket.socketpair()), len(socket.getaddrinfo("localhost", 80)) > 0, len(os.listdir("/etc/ssl/certs")) > 0)
"""
    async with await asyncio.start_unix_server(serve, f"\0rollcall-test-{os.getpid()}"):
        command = replace(python(TRY + code, folder=tmp_path), network=True)
        ended = await Sandbox(SystemClock()).run(command, Limits(), Isolation.REQUIRED)
    assert ended.stdout.splitlines() == [b"refused FileNotFoundError", b"refused OSError", b"2 True True"], ended
    assert reached == []


async def test_who_leaves_its_session_twice_does_not_outlive_the_timeout(tmp_path: Path) -> None:
    clock = VirtualClock()
    code = f"""{LIVING}
if os.fork():
    time.sleep(1000)
os.setsid()
if os.fork():
    os._exit(0)
import signal
for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(one, signal.SIG_IGN)
live()
"""
    async with a_line(tmp_path) as line:
        sandbox = Sandbox(clock)
        running = asyncio.create_task(
            sandbox.run(python(code, folder=tmp_path), Limits(timeout_seconds=5), Isolation.REQUIRED)
        )
        assert await line.is_taken()
        await clock.advance(5)
        assert (await running).timed_out
        assert await line.is_dead()


async def test_who_leaves_its_session_does_not_outlive_its_starter(tmp_path: Path) -> None:
    code = f"{LIVING}\nif os.fork() == 0:\n    os.setsid()\n    live()\nopen('line', 'w').close()"
    async with a_line(tmp_path) as line:
        command = python(code, folder=tmp_path)
        ended = await Sandbox(SystemClock()).run(command, Limits(), Isolation.REQUIRED)
        assert (ended.exit_code, ended.timed_out) == (0, False)
        assert await line.is_dead()


async def test_who_is_stopped_at_any_moment_of_its_start_leaves_nobody_behind(tmp_path: Path) -> None:
    sandbox = Sandbox(SystemClock())
    command = Command(("flock", "lock", "sleep", "1000"), folder=tmp_path)
    await sandbox.run(Command(("true",)))
    for number in range(80):
        running = asyncio.create_task(sandbox.run(command, Limits(), Isolation.REQUIRED))
        await asyncio.wait([running], timeout=number / 4000)
        running.cancel()
        await asyncio.wait([running])
    for _ in range(3):  # meanwhile a process left behind would take the lock
        await sandbox.run(Command(("true",)), Limits(), Isolation.REQUIRED)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_no_setuid_or_setgid_file_leaves_a_run(outside: Path) -> None:
    code = """
import ctypes, stat
libc = ctypes.CDLL(None)
os.umask(0)
for mode in (0o4755, 0o2755, 0o6755):
    open(f"plain{mode}", "w").close()
    tried(os.chmod, f"plain{mode}", mode)
    tried(lambda: os.fchmod(os.open(f"plain{mode}", os.O_RDWR), mode))
    tried(os.open, f"new{mode}", os.O_CREAT | os.O_WRONLY, mode)
    tried(os.mknod, f"node{mode}", mode | stat.S_IFREG)
    libc.syscall(85, f"creat{mode}".encode(), mode)
os.chmod("plain2541", 0o755)
os.close(os.open("plain2541", os.O_WRONLY, 0o4755))
"""
    ended = await attack(code, outside)
    modes = [path.stat().st_mode & 0o7777 for path in (outside.parent / "inside").iterdir()]
    assert ended.stdout.count(b"refused PermissionError") == 12, ended
    assert ended.exit_code == 0
    assert not any(mode & 0o6000 for mode in modes)


async def test_rights_cannot_be_had_back(outside: Path) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(status["CapEff"].strip(), status["CapBnd"].strip(), status["NoNewPrivs"].strip())
print(libc.unshare(0x10000000), libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.umount2(b"/proc", 2))
print(libc.mount(b"none", b"/proc", None, 32, None))
"""
    ended = await attack(code, outside)
    assert ended.stdout == b"0000000000000000 0000000000000000 1\n-1 -1 -1\n-1\n", ended.stdout + ended.stderr


async def test_what_is_kept_in_memory_has_an_end(outside: Path) -> None:
    code = """
written = 0
for number in range(50):
    for folder in ("/tmp", "/dev/shm"):
        try:
            with open(f"{folder}/{number}", "wb") as file:
                written += file.write(bytes(1 << 20))
        except OSError:
            pass
print(written)
"""
    ended = await attack(code, outside, limits=Limits(file_bytes=5 << 20))
    assert 0 < int(ended.stdout) <= 10 << 20


async def test_a_terminal_cannot_be_typed_into(outside: Path) -> None:
    ended = await attack("tried(open, '/dev/tty')\nprint(os.getsid(0) == os.getpid() or os.getsid(0))", outside)
    assert ended.stdout.startswith(b"refused")


async def test_a_readable_folder_stays_as_it_is(outside: Path) -> None:
    code = TRY + "print(open(sys.argv[1] + '/secret').read())\ntried(lambda: open(sys.argv[1] + '/secret', 'w'))"
    command = python(code, str(outside), readable=(outside,))
    ended = await Sandbox(SystemClock()).run(command, Limits(), Isolation.REQUIRED)
    assert ended.stdout.split(b"\n")[:2] == [CANARY.encode(), b"refused OSError"]


async def test_within_its_folder_a_part_can_be_for_reading_alone(tmp_path: Path) -> None:
    (tmp_path / "fixed").mkdir()
    command = python(
        TRY + "tried(lambda: open('fixed/x', 'w'))\ntried(lambda: open('x', 'w'))",
        folder=tmp_path,
        readable=(tmp_path / "fixed",),
    )
    ended = await Sandbox(SystemClock()).run(command, Limits(), Isolation.REQUIRED)
    assert [line.split()[0] for line in ended.stdout.splitlines()] == [b"refused", b"DONE"]


async def test_a_network_is_there_only_where_it_is_given(tmp_path: Path) -> None:
    for network, names in ((False, {"lo"}), (True, set(os.listdir("/sys/class/net")))):
        command = Command(("cat", "/proc/net/dev"), network=network)
        ended = await Sandbox(SystemClock()).run(command, Limits(), Isolation.REQUIRED)
        assert {line.split(":")[0].strip() for line in ended.stdout.decode().splitlines()[2:]} == names
