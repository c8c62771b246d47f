"""The daemon under a service manager: notifications, watchdog, and the unit for systemd."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.bot.cli.running import PYTHON, a_settings_file, an_environment
from tests.conftest import REPOSITORY

UNIT = REPOSITORY / "deploy" / "rollcall.service"
WORKER = REPOSITORY / "deploy" / "rollcall-worker@.service"
SECONDS = 60.0
WATCHDOG_SECONDS = 0.4
TOOLS = '''\
import time
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

@tool_function(commands=("block",))
async def block(context: MessageContext) -> str:
    """Block the event loop."""
    time.sleep(3)
    return "done"
'''


class Manager:
    """A service manager that collects notifications."""

    def __init__(self, address: Path) -> None:
        self.address = str(address)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)

    def told(self, seconds: float = SECONDS) -> str:
        """The next notification; TimeoutError if there is none within `seconds`."""
        self._socket.settimeout(seconds)
        return self._socket.recv(4096).decode()

    def until(self, state: str, seconds: float = SECONDS) -> None:
        """Receive notifications up to the one with `state`."""
        while state not in self.told(seconds).split("\n"):
            pass

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(tmp_path / "notify")
    yield made
    made.close()


def test_a_manager_hears_of_the_start_a_reload_the_running_loop_and_the_stop(manager: Manager, tmp_path: Path) -> None:
    with started(tmp_path, manager) as daemon:
        manager.until("READY=1")
        assert {manager.told() for _ in range(3)} == {"WATCHDOG=1"}
        daemon.send_signal(signal.SIGHUP)
        manager.until("RELOADING=1")
        manager.until("READY=1")
        daemon.send_signal(signal.SIGTERM)
        manager.until("STOPPING=1")
        assert daemon.wait(timeout=SECONDS) == 0


def test_the_watchdog_is_not_fed_while_the_loop_is_blocked(manager: Manager, tmp_path: Path) -> None:
    with started(tmp_path, manager, said="/block\n") as daemon:
        manager.until("READY=1")
        with pytest.raises(TimeoutError):
            manager.until("STOPPING=1", seconds=4 * WATCHDOG_SECONDS)
        manager.until("WATCHDOG=1")
        daemon.kill()


def test_a_watchdog_of_another_process_is_not_fed(manager: Manager, tmp_path: Path) -> None:
    with started(tmp_path, manager, WATCHDOG_PID="1") as daemon:
        assert "READY=1" in manager.told()
        with pytest.raises(TimeoutError):
            manager.told(seconds=3 * WATCHDOG_SECONDS)
        daemon.kill()


def started(folder: Path, manager: Manager, said: str = "", **variables: str) -> subprocess.Popen[str]:
    """A daemon that reads the lines `said` on its console, if any, and serves the chat page."""
    (folder / "tools.py").write_text(TOOLS, encoding="utf-8")
    settings = a_settings_file(
        folder,
        "platforms: {web: {port: 0}, console: {enabled: 'on'}}\nchats: {allow: ['*']}\nsources: {python: [tools.py]}\n",
    )
    watchdog = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6)), **variables}
    process = subprocess.Popen(
        [PYTHON, "-m", "bot", "run", "--config", str(settings), *([] if said else ["--no-console"])],
        cwd=folder,
        env=an_environment(**watchdog),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(said)
    process.stdin.flush()
    return process


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("source", [UNIT, WORKER], ids=lambda path: path.stem)
def test_systemd_accepts_the_unit_and_finds_it_confined(tmp_path: Path, source: Path) -> None:
    unit = tmp_path / source.name.replace("@", "@9201")
    unit.write_text(source.read_text(encoding="utf-8").replace("/opt/rollcall/bin/rollcall", "/bin/true"), "utf-8")
    environment = {**os.environ, "SYSTEMD_COLORS": "0"}
    for command in (["verify"], ["security", "--offline=true", "--threshold=45"]):
        ended = subprocess.run(
            ["systemd-analyze", *command, str(unit)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert command != ["verify"] or ended.stderr == ""


def service_of(unit: Path) -> dict[str, str]:
    """The values of the section Service; the last one of repeated keys."""
    parser = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text(encoding="utf-8"))
    return dict(parser["Service"])


def test_the_unit_starts_an_unprivileged_daemon_that_is_watched() -> None:
    service = service_of(UNIT)
    expected = {"Type": "notify", "DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict"}
    assert expected.items() <= service.items()
    assert int(service["WatchdogSec"]) > 0
    assert service["ExecStart"].split()[1:] == ["run", "--no-console"]


def test_a_worker_has_the_same_confinement_and_state_and_its_own_port_and_logs() -> None:
    service, worker = service_of(UNIT), service_of(WORKER)
    assert worker.pop("User") == UNIT.stem
    assert worker["ExecStart"].split()[1:] == ["run", "--no-console", "--role", "worker", "--port", "%i"]
    assert {name for name in service if worker[name] != service[name]} == {"ExecStart", "LogsDirectory"}
    assert "ROLLCALL_LOGS=/var/log/rollcall/%i" in WORKER.read_text(encoding="utf-8")
    assert worker.keys() == service.keys()
