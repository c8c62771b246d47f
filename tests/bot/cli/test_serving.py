"""`rollcall run` and `rollcall chat` as processes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import sqlite3
import stat
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from bot.database.opening import DATABASE
from tests.bot.cli.running import PYTHON, a_settings_file, an_environment
from tests.harness.forked_processes import forked_command

SECONDS = 30.0
PAGE = "platforms: {web: {port: 0, rooms: [{id: family}]}}\nchats: {allow: ['web:*', 'console:*']}\n"
PROMPT = "› "


def arguments(settings: Path, *command: str, is_cold: bool = False) -> list[str]:
    """Command line of a fork, which has all modules loaded; if `is_cold`, of a new Python process."""
    return [*((PYTHON, "-m", "bot") if is_cold else forked_command("bot")), *command, "--config", str(settings)]


def finished(settings: Path, *command: str, said: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Result of a command that ends without a signal."""
    return subprocess.run(
        arguments(settings, *command),
        input=said,
        cwd=settings.parent,
        env=an_environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@contextmanager
def running(settings: Path, *, is_cold: bool = False) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A daemon without a terminal, and its output at the start."""
    process = subprocess.Popen(
        arguments(settings, "run", is_cold=is_cold),
        cwd=settings.parent,
        env=an_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            yield process, [process.stdout.readline().rstrip() for _ in range(4)]
        finally:
            process.kill()


def asked_to_stop(process: subprocess.Popen[str], by: int = signal.SIGTERM) -> tuple[int, str]:
    """Exit status and the remaining stderr."""
    process.send_signal(by)
    _, err = process.communicate(timeout=SECONDS)
    return process.returncode, err


def events(settings: Path) -> list[str]:
    lines = (settings.parent / "logs" / "rollcall.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["event"] for line in lines]


class Terminal:
    """A process with a pseudo-terminal."""

    def __init__(self, settings: Path, *command: str, term: str = "dumb") -> None:
        self._master, slave = pty.openpty()
        self.modes = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            arguments(settings, *command, is_cold=True),
            cwd=settings.parent,
            env=an_environment(TERM=term),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def says(self, line: str) -> None:
        os.write(self._master, f"{line}\n".encode())

    def pastes(self, text: str, *, bracketed: bool) -> None:
        """As a terminal does; `bracketed` if the program has asked for it."""
        os.write(self._master, (f"\x1b[200~{text}\x1b[201~" if bracketed else text).encode())

    def modes_now(self) -> object:
        return termios.tcgetattr(self._master)

    def shows(self, until: str) -> str:
        """Output up to `until`."""
        seen, end = b"", time.monotonic() + SECONDS
        while until.encode() not in seen:
            ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{until!r} did not appear in {seen.decode(errors='replace')!r}"
            seen += os.read(self._master, 4096)
        return seen.decode().replace("\r", "")

    def close(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        os.close(self._master)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return a_settings_file(tmp_path, PAGE)


def test_a_daemon_says_where_it_is_and_ends_well_when_told_to(settings: Path) -> None:
    with running(settings, is_cold=True) as (process, greeting):
        address = greeting[0].removeprefix("Chat page:").strip()
        token = re.escape(address) + r"/\?owner=[\w-]{20,}"
        assert re.match(rf"Owner link:  {token}   \(once; .*owner\)$", greeting[1])
        assert greeting[2:] == [
            f"Data:        {settings.parent / 'var'}",
            "Model:       none; set OPENAI_API_KEY to connect one",
        ]
        opener = build_opener(ProxyHandler({}))
        assert opener.open(f"{address}/healthz", timeout=SECONDS).status == 200
        metrics = opener.open(f"{address}/metrics", timeout=SECONDS).read().decode()
        assert "rollcall_turns_waiting 0.0" in metrics
        status, err = asked_to_stop(process)
    assert status == 0
    assert [line.split("]")[1].split()[0] for line in err.splitlines()] == ["started", "stopping", "stopped"]
    assert events(settings) == ["started", "stopping", "stopped"]


def test_the_interrupt_key_ends_it_as_well(settings: Path) -> None:
    with running(settings) as (process, _):
        assert asked_to_stop(process, signal.SIGINT)[0] == 0


@pytest.mark.requirement("D67")
def test_the_settings_are_read_again_when_their_file_changes_and_when_it_is_told_to(settings: Path) -> None:
    with running(settings) as (process, _):

        def says(event: str) -> None:
            assert process.stderr is not None
            while event not in (line := process.stderr.readline()):
                assert line

        says("started")
        a_settings_file(settings.parent, f"{PAGE}rollout: {{percent: 0}}\n")
        says("settings_reloaded")
        a_settings_file(settings.parent, f"{PAGE}rollout: {{x: 0}}\n")
        says("settings_not_reloaded")
        process.send_signal(signal.SIGHUP)
        says("settings_not_reloaded")
        a_settings_file(settings.parent, PAGE)
        says("settings_reloaded")
        process.send_signal(signal.SIGHUP)
        says("settings_reloaded")
        assert asked_to_stop(process)[0] == 0
    faulty = ["settings_invalid", "settings_not_reloaded"]
    good = ["settings_reloaded"]
    assert events(settings) == ["started", *good, *faulty, *faulty, *good, *good, "stopping", "stopped"]


def greets(*names: str) -> str:
    functions = [f"@tool_function()\ndef {name}(context: MessageContext) -> str: ...\n" for name in names]
    return "from rollcall import MessageContext, tool_function\n\n" + "\n".join(functions)


def test_a_missing_source_has_its_line_and_changed_files_are_logged_with_their_functions(settings: Path) -> None:
    folder = settings.parent / "own"
    folder.mkdir()
    (folder / "one.py").write_text(greets("first", "second"))
    a_settings_file(settings.parent, f"{PAGE}sources:\n  python:\n    - {folder}\n    - nowhere\n")
    line = settings.read_text().splitlines().index("    - nowhere") + 1
    with running(settings) as (process, _):

        def says(event: str) -> None:
            assert process.stderr is not None
            while event not in (line := process.stderr.readline()):
                assert line

        says("started")
        (folder / "one.py").write_text(greets("second", "third"))
        says("functions_changed")
        (folder / "one.py").rename(settings.parent / "one.py")
        says("functions_changed")
        assert asked_to_stop(process)[0] == 0
    records = [json.loads(one) for one in (settings.parent / "logs" / "rollcall.jsonl").read_text().splitlines()]
    unusable, *changed = [one for one in records if one["event"].startswith("function")]
    assert unusable["problem"].startswith(f"{settings}:{line}:7 functions.unusable ")
    assert [(one["level"], one["file"], one["added"], one["changed"], one["removed"]) for one in changed] == [
        ("info", "own/one.py", ["third"], ["second"], ["first"]),
        ("info", "own/one.py", [], [], ["second", "third"]),
    ]


def test_a_second_daemon_says_who_has_the_database(settings: Path) -> None:
    with running(settings, is_cold=True) as (process, _):  # a fork has another process id
        for command in (("run",), ("chat",)):
            second = finished(settings, *command)
            assert (second.returncode, second.stdout) == (1, "")
            assert f"is in use by process {process.pid}" in second.stderr
        assert asked_to_stop(process)[0] == 0


def test_old_rows_are_deleted_soon_after_a_start(settings: Path) -> None:
    with running(settings) as (process, _):
        assert asked_to_stop(process)[0] == 0
    with closing(sqlite3.connect(settings.parent / "var" / DATABASE)) as database:
        with database:
            database.execute(
                "INSERT INTO history (id, chat, sender, sender_name, text, at_ms, from_bot, reply_to_name, change)"
                " VALUES (1, 'web:main:quiet', '', 'Ann', 'old', 0, 0, '', '')"
            )
        with running(settings):
            until = time.monotonic() + SECONDS
            while database.execute("SELECT 1 FROM history").fetchall():
                assert time.monotonic() < until
                time.sleep(0.05)


def test_a_port_that_is_taken_is_told_with_the_way_out(settings: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = finished(settings, "run", "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"127.0.0.1 port {port}: Address already in use" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_with_faults_start_nothing(tmp_path: Path) -> None:
    settings = a_settings_file(tmp_path, "language: 5\nrouter: {max_rounds: 0}\n")
    done = finished(settings, "run")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 2
    assert list(tmp_path.iterdir()) == [settings]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("logging: {folder: bot.yaml/logs}\n", "bot.yaml"),
        ("home: bot.yaml/var\n", "bot.yaml"),
    ],
    ids=["logs", "home"],
)
def test_what_it_cannot_do_without_is_told_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    settings = tmp_path / "bot.yaml"
    settings.write_text(f"config_version: 1\n{text}")
    done = finished(settings, "run", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot start" in done.stderr
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_fault_point_that_means_nothing_is_told(settings: Path) -> None:
    done = finished(settings, "run", ROLLCALL_FAULTS="nonsense")
    assert done.returncode == 1
    assert "ROLLCALL_FAULTS" in done.stderr


def test_a_chat_without_a_terminal_answers_what_it_was_given_and_ends(settings: Path) -> None:
    done = finished(settings, "chat", said="/calc 6*7\n\nwhat's 15% of 80?\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "6*7 = 42" in done.stdout
    assert "12" in done.stdout
    assert finished(settings, "chat").returncode == 0


def test_a_line_that_is_piped_answers_the_question_of_the_line_before(settings: Path) -> None:
    done = finished(settings, "chat", said="/calc\n6*7\n/calc 1+1\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.index("6*7 = 42") < done.stdout.index("1+1 = 2")


def test_a_terminal_that_is_not_served_is_told_so(tmp_path: Path) -> None:
    text = f"home: {tmp_path}/var\nlogging: {{folder: {tmp_path}/logs}}\nchats: {{allow: ['web:*']}}\n"
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    done = finished(path, "chat", said="hello\n")
    assert done.stdout.startswith("This chat is not served: console:main:terminal is not in chats.allow")


def test_a_conversation_in_a_terminal_is_not_disturbed_by_logs(settings: Path) -> None:
    terminal = Terminal(settings, "run")
    try:
        greeting = terminal.shows(PROMPT)
        assert greeting.startswith("Chat page:")
        assert greeting.endswith(f"connect one\n{PROMPT}")
        terminal.says("/help")
        assert "15% of 80" in terminal.shows(f"\n{PROMPT}")
        terminal.says("what's 15% of 80?")
        assert terminal.shows(f"\n{PROMPT}") == f"what's 15% of 80?\n15% of 80 = 12\n{PROMPT}"
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.process.wait(SECONDS) == 0
    finally:
        terminal.close()
    assert events(settings) == ["started", "stopping", "stopped"]


def test_a_chat_in_a_terminal_ends_with_the_interrupt_key(settings: Path) -> None:
    terminal = Terminal(settings, "chat")
    try:
        assert terminal.shows(PROMPT) == PROMPT
        terminal.says("/roll")
        assert "🎲" in terminal.shows(f"\n{PROMPT}")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(SECONDS) == 0
    finally:
        terminal.close()


def test_lines_pasted_into_a_terminal_are_one_message(settings: Path) -> None:
    terminal = Terminal(settings, "chat", term="xterm")
    try:
        greeting = terminal.shows(PROMPT)
        terminal.pastes("/todo add buy milk\nand bread\nand tea", bracketed="\x1b[?2004h" in greeting)
        terminal.says("")
        terminal.shows("Added #1 to the list: buy milk and bread and tea")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(SECONDS) == 0
        assert terminal.modes_now() == terminal.modes
    finally:
        terminal.close()


def test_logs_and_database_are_for_their_owner_alone_also_where_they_were_open_before(tmp_path: Path) -> None:
    settings = a_settings_file(tmp_path, PAGE)
    logs, home = tmp_path / "logs", tmp_path / "var"
    before = os.umask(0o022)
    try:
        for folder in (logs, home):
            folder.mkdir(exist_ok=True)
        old = [
            logs / "rollcall.jsonl",
            logs / "rollcall.jsonl.1",
            logs / "function_calls.jsonl",
            home / "rollcall.sqlite",
        ]
        for file in old:
            file.touch()
        with running(settings) as (process, _):
            assert asked_to_stop(process)[0] == 0
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in [*logs.iterdir(), *home.glob("rollcall.*")]}
    assert set(modes.values()) == {0o600}, modes
    assert stat.S_IMODE(logs.stat().st_mode) == 0o700
