"""Processes are started in one place, inherit nothing, have limits, and leave no processes behind."""

from __future__ import annotations

import asyncio
import os
import resource
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from config.sections.processes import SandboxSettings
from services.clock import SystemClock, VirtualClock
from services.sandbox.processes import PATH, CannotStart, Command, Limits
from services.sandbox.sandbox import Isolation, NotIsolated, Sandbox
from tests.harness.sandboxes import LIVING, a_line, needs_bubblewrap, python

MEBIBYTE = 1024 * 1024
HOWEVER = [pytest.param(Isolation.REQUIRED, marks=needs_bubblewrap), Isolation.OFF]


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox(SystemClock())


@pytest.mark.requirement("C28")
@pytest.mark.parametrize("isolation", HOWEVER)
async def test_output_and_code_come_back(sandbox: Sandbox, isolation: Isolation) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    ended = await sandbox.run(python(code), isolation=isolation)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (3, b"out\n", b"err\n")
    assert ended.isolated is (isolation is Isolation.REQUIRED)
    assert not ended.cut
    assert not ended.timed_out


@pytest.mark.requirement("C28")
@pytest.mark.parametrize("isolation", HOWEVER)
async def test_a_code_comes_back_where_nothing_is_said(sandbox: Sandbox, isolation: Isolation) -> None:
    ended = await sandbox.run(Command(("false",)), isolation=isolation)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (1, b"", b"")


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_a_signal_comes_back_as_its_number_below_zero(sandbox: Sandbox, isolation: Isolation) -> None:
    ended = await sandbox.run(python("import os; os.kill(os.getpid(), 11)"), isolation=isolation)
    assert ended.exit_code == -11


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_no_shell_reads_the_arguments(sandbox: Sandbox, isolation: Isolation) -> None:
    hostile = ["$(id)", "; id", "*", "`id`", "| id", "> x", "--", "-n", "", "a b", "\n", "$HOME", "好"]
    ended = await sandbox.run(python("import sys; print(sys.argv[1:])", *hostile), isolation=isolation)
    assert ended.stdout.decode().strip() == str(hostile)


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_nothing_is_inherited_of_the_environment(sandbox: Sandbox, isolation: Isolation) -> None:
    os.environ["A_SECRET_OF_THE_DAEMON"] = "hush"
    try:
        command = Command(("env",), env={"GIVEN": "a b"})
        ended = await sandbox.run(command, isolation=isolation)
    finally:
        del os.environ["A_SECRET_OF_THE_DAEMON"]
    given = dict(line.split("=", 1) for line in ended.stdout.decode().splitlines())
    given.pop("PWD", None)
    assert set(given) == {"PATH", "LANG", "HOME", "TMPDIR", "GIVEN"}
    assert (given["PATH"], given["LANG"], given["GIVEN"]) == (PATH, "C.UTF-8", "a b")


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_no_open_file_is_inherited(sandbox: Sandbox, isolation: Isolation, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        code = "import os; print(*(os.readlink(f'/proc/self/fd/{one}') for one in os.listdir('/proc/self/fd')[:-1]))"
        ended = await sandbox.run(python(code), isolation=isolation)
    assert ended.exit_code == 0
    assert b"secret" not in ended.stdout
    assert len(ended.stdout.split()) == 3


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_much_is_read_and_written_at_the_same_time(sandbox: Sandbox, isolation: Isolation) -> None:
    told = os.urandom(900_000)
    ended = await sandbox.run(Command(("cat",), stdin=told), Limits(output_bytes=1_000_000), isolation)
    assert ended.stdout == told


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_who_does_not_listen_is_not_waited_for(sandbox: Sandbox, isolation: Isolation) -> None:
    ended = await sandbox.run(Command(("true",), stdin=bytes(2_000_000)), isolation=isolation)
    assert ended.exit_code == 0


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_output_comes_piece_by_piece(sandbox: Sandbox, isolation: Isolation, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    pieces: list[bytes] = []

    def heard(piece: bytes) -> None:
        pieces.append(piece)
        if len(pieces) == 1:
            (tmp_path / "go").write_text("go")  # the program waits until its first output was received

    code = "import sys; print('one', flush=True); open('go').read(); print('two', file=sys.stderr)"
    ended = await sandbox.run(python(code, folder=tmp_path), isolation=isolation, on_output=heard)
    assert pieces == [b"one\n", b"two\n"]
    assert (ended.stdout, ended.stderr) == (b"one\n", b"two\n")


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_of_much_output_the_beginning_is_kept(sandbox: Sandbox, isolation: Isolation) -> None:
    heard: list[bytes] = []
    code = "import sys; sys.stdout.write('ab' * 50_000); sys.stderr.write('e' * 50_000)"
    ended = await sandbox.run(python(code), Limits(output_bytes=1001), isolation, heard.append)
    assert (ended.exit_code, ended.cut) == (0, True)
    assert ended.stdout == b"ab" * 500 + b"a"
    assert len(ended.stderr) == 1001
    assert sum(map(len, heard)) == 2002


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_who_never_stops_writing_is_killed(sandbox: Sandbox, isolation: Isolation) -> None:
    ended = await sandbox.run(Command(("yes",)), Limits(output_bytes=10), isolation)
    assert (ended.exit_code, ended.cut, ended.timed_out) == (-9, True, False)
    assert ended.stdout == b"y\n" * 5


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_at_the_timeout_all_that_was_started_dies(isolation: Isolation, tmp_path: Path) -> None:
    clock = VirtualClock()
    code = f"{LIVING}print('started', flush=True)\nos.fork()\nlive()"
    async with a_line(tmp_path) as line:
        running = asyncio.create_task(
            Sandbox(clock).run(python(code, folder=tmp_path), Limits(timeout_seconds=7), isolation)
        )
        assert await line.is_taken()
        await clock.advance(6.9)
        assert not running.done()
        await clock.advance(0.1)
        ended = await running
        assert (ended.timed_out, ended.exit_code, ended.stdout) == (True, -9, b"started\n")
        assert await line.is_dead()


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_who_stops_waiting_ends_the_process(sandbox: Sandbox, isolation: Isolation, tmp_path: Path) -> None:
    async with a_line(tmp_path) as line:
        running = asyncio.create_task(sandbox.run(python(f"{LIVING}live()", folder=tmp_path), isolation=isolation))
        assert await line.is_taken()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await line.is_dead()


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_what_stays_behind_ends_with_who_started_it(
    sandbox: Sandbox, isolation: Isolation, tmp_path: Path
) -> None:
    code = f"{LIVING}\nif os.fork() == 0: live()\nopen('line', 'w').close()\nprint('done')"
    async with a_line(tmp_path) as line:
        ended = await sandbox.run(python(code, folder=tmp_path), isolation=isolation)
        assert ended.stdout == b"done\n"
        assert await line.is_dead()


async def test_without_a_sandbox_a_stream_that_is_held_open_is_not_waited_for(sandbox: Sandbox, tmp_path: Path) -> None:
    code = f"{LIVING}\nif os.fork() == 0:\n    os.setsid(); open('pid', 'w').write(str(os.getpid())); live()\n"
    code += "open('line').read(1)\nprint('done')"
    os.mkfifo(tmp_path / "line")
    ended = await sandbox.run(python(code, folder=tmp_path), isolation=Isolation.OFF)
    os.kill(int((tmp_path / "pid").read_text()), 9)  # a separate session can be ended only by a sandbox
    assert (ended.exit_code, ended.stdout, ended.timed_out) == (0, b"done\n", False)


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("isolation", HOWEVER)
async def test_one_that_takes_long_holds_up_no_other(sandbox: Sandbox, isolation: Isolation, tmp_path: Path) -> None:
    async with a_line(tmp_path) as line:
        slow = asyncio.create_task(sandbox.run(python(f"{LIVING}live()", folder=tmp_path), isolation=isolation))
        assert await line.is_taken()
        quick = await sandbox.run(Command(("echo", "quick")), isolation=isolation)
        assert quick.stdout == b"quick\n"
        assert not slow.done()
        slow.cancel()
        await asyncio.wait([slow])


@pytest.mark.requirement("C11")
async def test_one_ends_before_who_waited_for_it_starts_the_next(sandbox: Sandbox, tmp_path: Path) -> None:
    for word in ("one", "two"):
        await sandbox.run(python(f"open('log', 'a').write('{word} ')", folder=tmp_path))
    assert (tmp_path / "log").read_text() == "one two "


async def test_no_more_run_at_once_than_the_settings_say(tmp_path: Path) -> None:
    narrow = Sandbox(SystemClock(), SandboxSettings(at_once=1, isolation="off"))
    async with a_line(tmp_path) as line:
        first = asyncio.create_task(narrow.run(python(f"{LIVING}live()", folder=tmp_path)))
        assert await line.is_taken()
        second = asyncio.create_task(narrow.run(Command(("true",))))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        assert (await second).exit_code == 0


async def test_one_member_holds_half_of_the_places_and_delays_nobody_else(tmp_path: Path) -> None:
    shared = Sandbox(SystemClock(), SandboxSettings(at_once=2, isolation="off"))
    async with a_line(tmp_path) as line:
        first = asyncio.create_task(shared.run(replace(python(f"{LIVING}live()", folder=tmp_path), owner="ann")))
        assert await line.is_taken()
        second = asyncio.create_task(shared.run(Command(("true",), owner="ann")))
        await asyncio.sleep(0)
        assert (await shared.run(Command(("true",), owner="bob"))).exit_code == 0
        assert not second.done()
        first.cancel()
        await asyncio.wait([first])
        assert (await second).exit_code == 0


@pytest.mark.parametrize("isolation", HOWEVER)
@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(memory_bytes=200 * MEBIBYTE), "bytearray(300 << 20)"),
        (Limits(file_bytes=100_000), "import tempfile; tempfile.TemporaryFile().write(bytes(200_000))"),
        (Limits(file_bytes=100_000), "open('long', 'wb').write(bytes(200_000))"),
        (Limits(cpu_seconds=1), "while True: pass"),
    ],
    ids=["memory", "own file", "file", "processor"],
)
async def test_what_uses_too_much_is_ended(
    sandbox: Sandbox, isolation: Isolation, limits: Limits, code: str, tmp_path: Path
) -> None:
    ended = await sandbox.run(python(code, folder=tmp_path), limits, isolation)
    assert ended.exit_code != 0
    assert not ended.timed_out
    assert all(file.stat().st_size <= 100_000 for file in tmp_path.iterdir())


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_limits_hold_from_the_first_instruction_and_cannot_be_raised(
    sandbox: Sandbox, isolation: Isolation
) -> None:
    code = "import resource as r; print(r.getrlimit(r.RLIMIT_CPU), r.getrlimit(r.RLIMIT_CORE))"
    ended = await sandbox.run(python(code), Limits(cpu_seconds=7), isolation)
    assert ended.stdout == b"(7, 7) (0, 0)\n"


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_the_settings_say_the_most_that_anybody_may_use(isolation: Isolation) -> None:
    settings = SandboxSettings(cpu_seconds=2, memory_megabytes=300, output_kilobytes=1)
    code = "import resource as r; print(r.getrlimit(r.RLIMIT_CPU)[0], r.getrlimit(r.RLIMIT_AS)[0]); print('x' * 2000)"
    ended = await Sandbox(SystemClock(), settings).run(python(code), Limits(), isolation)
    assert ended.stdout.split()[:2] == [b"2", str(300 * MEBIBYTE).encode()]
    assert len(ended.stdout) == 1000


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_it_works_in_its_folder_and_what_it_writes_stays(
    sandbox: Sandbox, isolation: Isolation, tmp_path: Path
) -> None:
    command = python("import os; print(os.getcwd()); open('a', 'w').write('b')", folder=tmp_path)
    ended = await sandbox.run(command, isolation=isolation)
    assert ended.stdout.decode().strip() == str(tmp_path)
    assert (tmp_path / "a").read_text() == "b"


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_a_folder_of_its_own_is_empty_and_gone_afterwards(sandbox: Sandbox, isolation: Isolation) -> None:
    code = "import os; print(os.environ['TMPDIR'], os.getcwd(), os.listdir()); open('a', 'w').write('b')"
    said = [(await sandbox.run(python(code), isolation=isolation)).stdout.decode().split() for _ in range(2)]
    assert [one[0] for one in said] == [one[1] for one in said]
    assert [one[2] for one in said] == ["[]", "[]"]
    assert not any(Path(one[0], "a").exists() for one in said)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("",),
        ("no-such-program",),
        ("./here",),
        ("sub/here",),
        ("here",),
        ("/proc/version",),
        ("/usr",),
        ("ls", "\0"),
    ],
)
@pytest.mark.parametrize("isolation", HOWEVER)
async def test_what_is_no_program_is_not_started(
    sandbox: Sandbox, isolation: Isolation, argv: tuple[str, ...], tmp_path: Path
) -> None:
    for place in (tmp_path, tmp_path / "sub"):
        place.mkdir(exist_ok=True)
        (place / "here").write_text("#!/bin/sh\necho hi\n")
        (place / "here").chmod(0o755)
    with pytest.raises(CannotStart):
        await sandbox.run(Command(argv, folder=tmp_path), isolation=isolation)


@pytest.mark.parametrize("isolation", HOWEVER)
async def test_what_is_not_there_is_said_before_anything_starts(sandbox: Sandbox, isolation: Isolation) -> None:
    for command in (Command(("ls",), folder=Path("/no/such")), Command(("ls",), readable=(Path("/no/such"),))):
        with pytest.raises(CannotStart, match="/no/such"):
            await sandbox.run(command, isolation=isolation)


async def test_what_has_to_be_isolated_does_not_run_without() -> None:
    unsafe = Sandbox(SystemClock(), SandboxSettings(isolation="off"))
    with pytest.raises(NotIsolated, match=r"sandbox\.isolation"):
        await unsafe.run(Command(("true",)), isolation=Isolation.REQUIRED)
    assert (await unsafe.run(Command(("true",)))).isolated is False


@needs_bubblewrap
async def test_the_settings_can_isolate_what_does_not_ask_for_it() -> None:
    strict = Sandbox(SystemClock(), SandboxSettings(isolation="required"))
    assert (await strict.run(Command(("true",)), isolation=Isolation.OFF)).isolated


async def test_that_nothing_is_isolated_is_said_in_the_log_once() -> None:
    unsafe = Sandbox(SystemClock(), SandboxSettings(isolation="off"))
    with capture_logs() as logs:
        for _ in range(3):
            await unsafe.run(Command(("true",)))
    assert [one["event"] for one in logs] == ["processes_not_isolated"]


@needs_bubblewrap
async def test_where_bubblewrap_works_there_is_no_problem_and_no_warning(sandbox: Sandbox) -> None:
    with capture_logs() as logs:
        assert (await sandbox.run(Command(("true",)))).isolated
    assert await sandbox.problem() == ""
    assert logs == []


@needs_bubblewrap
async def test_a_program_from_elsewhere_is_shown_and_nothing_beside_it(sandbox: Sandbox, tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_bytes(Path("/bin/ls").read_bytes())
    program.chmod(0o755)
    (tmp_path / "secret").write_text("hush")
    ended = await sandbox.run(Command((str(program), str(tmp_path))), isolation=Isolation.REQUIRED)
    assert ended.stdout == b"tool\n"


@needs_bubblewrap
async def test_who_holds_the_streams_himself_starts_it_under_the_same_isolation(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    command = Command(("cat", "/proc/net/dev"), env={"KEY": "hush"})
    prepared = await sandbox.prepare(command, isolation=Isolation.REQUIRED)
    assert prepared.isolated
    assert not any("hush" in one for one in prepared.argv)
    process = await asyncio.create_subprocess_exec(
        *prepared.argv, env=dict(prepared.env), cwd=prepared.folder, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert [line.split(b":")[0].strip() for line in said.splitlines()[2:]] == [b"lo"]


def test_the_tests_own_process_keeps_its_limits() -> None:
    """Limits are set in the new process, never temporarily in the daemon."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    asyncio.run(Sandbox(SystemClock()).run(Command(("true",))))
    assert resource.getrlimit(resource.RLIMIT_CORE) == before
