"""The wheel, installed by pipx and by uv, works outside the source tree with the folders of the user."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from bot import VERSION
from tests.bot.cli.running import an_environment
from tests.conftest import REPOSITORY
from tests.harness.foreign import python_of

SECONDS = 300
PARTS = ("rollcall", "bot", "function_calls", "services", "config")


@pytest.fixture(scope="module")
def installers() -> Path:
    """The folder of pipx, uv and uvx."""
    return Path(python_of("installers")).parent


@pytest.fixture(scope="module")
def wheel(installers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree")
    for part in PARTS:
        shutil.copytree(REPOSITORY / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tree)
    run(installers / "uv", "build", "--quiet", "--wheel", "--out-dir", tree / "dist", tree)
    (built,) = (tree / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def constraints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The versions of the lock, without hashes, which the wheel cannot have."""
    lines = (REPOSITORY / "requirements-all.txt").read_text(encoding="utf-8").splitlines()
    path = tmp_path_factory.mktemp("constraints") / "versions.txt"
    path.write_text("\n".join(line.split(" ")[0] for line in lines if re.match(r"[\w.-]+==", line)), encoding="utf-8")
    return path


def run(*command: object, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> str:
    """Standard output of a program that has to succeed."""
    words = [str(word) for word in command]
    ended = subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def of_a_user(home: Path) -> dict[str, str]:
    """Environment of a user with the empty home folder `home`."""
    home.mkdir()
    kept = {name: value for name, value in an_environment().items() if not name.startswith(("XDG_", "PYTHON"))}
    return {**kept, "HOME": str(home)}


def test_uvx_runs_the_wheel(installers: Path, wheel: Path, constraints: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    uvx = (installers / "uvx", "--quiet", "--constraints", constraints, "--from", f"{wheel}[web]", "rollcall")
    environment = {name: value for name, value in an_environment().items() if not name.startswith("PYTHON")}
    assert run(*uvx, "--version", environment=environment, folder=tmp_path / "elsewhere") == f"rollcall {VERSION}\n"
    assert "no problems found" in run(*uvx, "check", environment=environment, folder=tmp_path / "elsewhere")


def test_pipx_installs_a_bot_that_keeps_state_settings_and_logs_in_the_folders_of_its_user(
    installers: Path, wheel: Path, constraints: Path, tmp_path: Path
) -> None:
    folders = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    install = ("install", "--quiet", "--pip-args", f"--quiet --constraint={constraints}", f"{wheel}[web]")
    run(installers / "pipx", *install, environment={**os.environ, **folders})
    rollcall, elsewhere = tmp_path / "bin" / "rollcall", tmp_path / "elsewhere"
    elsewhere.mkdir()
    user = of_a_user(tmp_path / "user")
    assert run(rollcall, "--version", environment=user, folder=elsewhere) == f"rollcall {VERSION}\n"
    settings = tmp_path / "user" / ".config" / "rollcall" / "bot.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("config_version: 1\nlanguage: zh\nlogging: {console: text}\n", encoding="utf-8")
    assert f"{settings}: no problems found" in run(rollcall, "check", environment=user, folder=elsewhere)
    command = [str(rollcall), "run", "--port", "0", "--no-console"]
    with subprocess.Popen(
        command, env=user, cwd=elsewhere, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout is not None
        said = [daemon.stdout.readline() for _ in range(4)]
        page = said[0].split()[-1]
        with urlopen(f"{page}/healthz", timeout=30) as answer:
            assert answer.status == 200
        daemon.send_signal(signal.SIGTERM)
        complaints = daemon.communicate(timeout=60)[1]
    data = tmp_path / "user" / ".local" / "share" / "rollcall"
    assert (daemon.returncode, f"Data:        {data}\n" in said) == (0, True), complaints
    assert (data / "rollcall.sqlite").is_file()
    assert [*(tmp_path / "user" / ".local" / "state" / "rollcall").rglob("*.jsonl")] != []
    assert [*elsewhere.iterdir()] == []


def test_the_wheel_has_every_file_that_the_packages_have(wheel: Path) -> None:
    tracked = run("git", "ls-files", "--", *PARTS, folder=REPOSITORY).splitlines()
    packed = run("python3", "-m", "zipfile", "-l", wheel)
    # The template is for authors of migrations.
    assert [name for name in tracked if f"{name} " not in packed and not name.endswith((".md", ".mako"))] == []
