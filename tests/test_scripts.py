"""`./run` and `./test` prepare their environment once, or report a missing requirement of the machine in one line."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
HAS_ENSUREPIP = importlib.util.find_spec("ensurepip") is not None
pip_alone = pytest.mark.skipif(not HAS_ENSUREPIP, reason="this Python has no module ensurepip")
NEEDED = ("bash", "sh", "env", "dirname", "readlink", "cat", "rm", "chmod", "grep", "mktemp", "mv")
DAEMON = """\
import os, sys, time

def main():
    print(os.getpid(), os.getcwd(), os.environ["ROLLCALL_HOME"], *sys.argv[1:], sep="|", flush=True)
    if "wait" in sys.argv:
        time.sleep(60)
    return 3
"""


class House:
    """A copy of the scripts with empty locks and a daemon that only prints how it was started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("run", "deploy/bootstrap.sh"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        for lock in ("requirements.txt", "requirements-dev.txt"):
            (root / lock).write_text(f"# {lock}\n", encoding="utf-8")
        (root / "bot").mkdir()
        (root / "bot" / "__init__.py").touch()
        (root / "bot" / "__main__.py").write_text(DAEMON, encoding="utf-8")

    def start(
        self, *command: str, path: str = os.environ["PATH"], cwd: Path | None = None
    ) -> tuple[int, list[str], str]:
        """Exit code, the daemon's output about its start, and stderr of `command` (default: `./run`)."""
        environment = {"PATH": path, "HOME": os.environ.get("HOME", "")}
        finished = subprocess.run(
            command or [str(self.root / "run")],
            cwd=cwd or self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return finished.returncode, finished.stdout.strip().split("|")[1:], finished.stderr

    def bootstrap(self, *locks: str, path: str = os.environ["PATH"]) -> tuple[int, list[str], str]:
        """The same for preparing only the environment."""
        return self.start("bash", "-euc", f"source deploy/bootstrap.sh; bootstrap {' '.join(locks)}", path=path)

    def python_found(self, path: str) -> str:
        """The Python that would be used for the environment."""
        code, said, _ = self.start(
            "bash", "-euc", 'source deploy/bootstrap.sh; find_python; echo "|$python"', path=path
        )
        assert code == 0
        return said[0]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "a house")


class Furnished(NamedTuple):
    """A copy with a prepared environment, and the result of its first start."""

    house: House
    first: tuple[int, list[str], str]


@pytest.fixture(scope="module")
def first_start(tmp_path_factory: pytest.TempPathFactory) -> Furnished:
    """Prepared without uv if this Python can create environments."""
    folder = tmp_path_factory.mktemp("furnished")
    house = House(folder / "a house")
    path = without_uv(folder / "bin") if HAS_ENSUREPIP else os.environ["PATH"]
    return Furnished(house, house.start(path=path))


@pytest.fixture
def furnished(first_start: Furnished) -> House:
    return first_start.house


@pytest.fixture
def lived_in(furnished: House, tmp_path: Path) -> House:
    """Another copy with a copied environment, which can be moved. Creating one takes seconds without uv."""
    house = House(tmp_path / "a house")
    shutil.copytree(furnished.root / ".venv", house.root / ".venv", symlinks=True)
    return house


@pytest.fixture
def with_uv(tmp_path: Path) -> str:
    """A PATH with a uv that installs nothing."""
    path = without_uv(tmp_path / "with uv")
    (tmp_path / "with uv" / "uv").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "with uv" / "uv").chmod(0o755)
    return path


def without_uv(folder: Path) -> str:
    """A PATH without uv, with a Python that can create environments."""
    real = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    return machine(folder, f'exec "{real}" "$@"')


def machine(folder: Path, python: str) -> str:
    """A PATH with the commands that the scripts need, and a `python3` that runs the shell script `python`."""
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    if python:
        (folder / "python3").write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        (folder / "python3").chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        ([], ["run"]),
        (["--config", "my own.yaml"], ["run", "--config", "my own.yaml"]),
        (["check", "my own.yaml"], ["check", "my own.yaml"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
    ],
)
def test_run_starts_the_daemon_or_passes_its_arguments_on(
    furnished: House, given: list[str], passed_on: list[str]
) -> None:
    code, said, _ = furnished.start("./run", *given)
    assert (code, said[2:]) == (3, passed_on)


def test_started_from_another_folder_it_keeps_its_state_and_the_callers_files(furnished: House, tmp_path: Path) -> None:
    code, said, _ = furnished.start(str(furnished.root / "run"), "check", "x.yaml", cwd=tmp_path)
    assert (code, said) == (3, [str(tmp_path), str(furnished.root / "var"), "check", "x.yaml"])


def test_a_signal_reaches_the_daemon_itself(furnished: House) -> None:
    with subprocess.Popen([furnished.root / "run", "wait"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started_as = process.stdout.readline().split("|")[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == -signal.SIGTERM
    assert int(started_as) == process.pid


def test_the_first_start_installs_and_the_second_does_nothing(first_start: Furnished) -> None:
    house, told = first_start.house, "rollcall: installing requirements.txt into .venv\n"
    started = (3, [str(house.root), str(house.root / "var"), "run"])
    assert (first_start.first, house.start()) == ((*started, told), (*started, ""))


def test_a_changed_lock_is_installed(lived_in: House, with_uv: str) -> None:
    assert lived_in.start(path=with_uv)[2] == ""
    (lived_in.root / "requirements.txt").write_text("# other\n", encoding="utf-8")
    assert "installing requirements.txt" in lived_in.start(path=with_uv)[2]
    assert lived_in.start(path=with_uv)[2] == ""


@pytest.mark.parametrize(
    ("settings", "is_small"),
    [
        ("platforms:\n  irc: []\n# discord: no\nmcp:\n  servers: []\n  clients: [] # none\n", True),
        ("platforms:\n  discord:\n", False),
        ("platforms: {matrix: {main: {}}}\n", False),
        ("store: {url: 'postgresql://bot@db/bot'}\n", False),
        ("mcp:\n  servers:\n  - name: time\n", False),
        ("sources: {basic: [{url: 's3://bucket/scripts'}]}\n", False),
        ("mcp: {serve: {clients: [{name: editor}]}}\n", False),
        ("telemetry:\n  traces_url: http://127.0.0.1:4318/v1/traces\n", False),
    ],
)
def test_packages_that_few_bots_need_are_installed_for_settings_that_name_them(
    lived_in: House, with_uv: str, settings: str, is_small: bool
) -> None:
    (lived_in.root / "requirements-all.txt").write_text("# more\n", encoding="utf-8")
    (lived_in.root / "own.yaml").write_text(settings, encoding="utf-8")
    said = "" if is_small else "rollcall: installing requirements-all.txt into .venv\n"
    assert lived_in.start("./run", "--config", "own.yaml", path=with_uv)[2] == said
    assert lived_in.start("env", "ROLLCALL_CONFIG=own.yaml", "./run", path=with_uv)[2] == ""
    # They stay when other settings do not need them.
    assert lived_in.start("./run", path=with_uv)[2] == ""


def test_the_shipped_settings_need_only_the_small_lock(lived_in: House, with_uv: str) -> None:
    (lived_in.root / "requirements-all.txt").write_text("# more\n", encoding="utf-8")
    assert lived_in.start("./run", f"--config={ROOT / 'config' / 'bot.yaml'}", path=with_uv)[2] == ""


@pytest.mark.parametrize(
    "started",
    [
        ("env", "ROLLCALL_STORE_URL=postgres://bot@db/bot", "./run"),
        ("./run", "migrate", "--to", "postgresql://bot@db/bot"),
    ],
    ids=["environment", "argument"],
)
def test_an_address_of_postgresql_outside_the_settings_needs_its_driver(
    lived_in: House, with_uv: str, started: Sequence[str]
) -> None:
    (lived_in.root / "requirements-all.txt").write_text("# more\n", encoding="utf-8")
    said = lived_in.start(*started, path=with_uv)[2]
    assert said == "rollcall: installing requirements-all.txt into .venv\n"


def test_what_the_tests_need_covers_the_daemon_but_not_the_other_way_round(lived_in: House, with_uv: str) -> None:
    assert (
        "installing requirements-dev.txt"
        in lived_in.bootstrap("requirements-dev.txt", "requirements.txt", path=with_uv)[2]
    )
    assert lived_in.start(path=with_uv)[2] == ""
    (lived_in.root / "requirements.txt").write_text("# other\n", encoding="utf-8")
    lived_in.start(path=with_uv)
    assert (
        "installing requirements-dev.txt"
        in lived_in.bootstrap("requirements-dev.txt", "requirements.txt", path=with_uv)[2]
    )


def test_an_environment_without_its_python_is_created_again(lived_in: House) -> None:
    environment = lived_in.root / ".venv"
    (environment / "bin" / "python").unlink()
    (environment / "bin" / "python").symlink_to(Path(sys.executable).resolve().parent / "python-that-was-removed")
    code, said, complaint = lived_in.start()
    assert (code, said[2:], "installing requirements.txt" in complaint) == (3, ["run"], True)


def test_a_failed_installation_is_said_and_tried_again(lived_in: House) -> None:
    (lived_in.root / "requirements.txt").write_text("rollcall-has-no-such-package\n", encoding="utf-8")
    for _ in range(2):
        code, _, said = lived_in.start()
        assert (code, "could not install requirements.txt" in said) == (1, True)


def test_a_start_caches_bytecode_despite_pythondontwritebytecode(furnished: House) -> None:
    bytecode = furnished.root / "bot" / "__pycache__"
    shutil.rmtree(bytecode, ignore_errors=True)
    code, _, complaint = furnished.start("env", "PYTHONDONTWRITEBYTECODE=1", str(furnished.root / "run"))
    assert (code, complaint) == (3, "")
    assert [one.suffix for one in bytecode.glob("__init__.*")] == [".pyc"]


def test_the_folder_may_move(lived_in: House) -> None:
    moved = lived_in.root.rename(lived_in.root.parent / "elsewhere")
    code, said, complaint = lived_in.start(str(moved / "run"), cwd=moved)
    assert (code, said, complaint) == (3, [str(moved), str(moved / "var"), "run"], "")


@pytest.mark.parametrize(
    ("python", "advice"),
    [
        (
            'case "$*" in *"import ensurepip"*) exit 1 ;; *executable*) echo "$0" ;; *) echo python3.11-venv ;; esac',
            "apt-get install -y python3.11-venv",
        ),
        ('case "$*" in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac', "Python 3.11 or newer is needed"),
        ("", "Python 3.11 or newer is needed"),
    ],
    ids=["no venv", "old", "no Python"],
)
def test_what_is_missing_is_named_in_one_line(house: House, tmp_path: Path, python: str, advice: str) -> None:
    code, _, said = house.start(path=machine(tmp_path / "bin", python))
    assert (code, len(said.splitlines()), advice in said) == (2, 1, True)
    assert not (house.root / ".venv").exists()


@pytest.mark.parametrize("is_on_the_path", [True, False])
def test_the_systems_own_python_is_taken_before_another_one_where_it_is_new_enough(
    house: House, tmp_path: Path, is_on_the_path: bool
) -> None:
    telling = f'case "$*" in *executable*) echo "$0" ;; *) exec "{sys.executable}" "$@" ;; esac'
    other = machine(tmp_path / "bin", telling)
    path = f"{other}:/usr/bin" if is_on_the_path else other
    makes_environments = "" if shutil.which("uv", path=path) else "import ensurepip, venv; "
    fit = f"{makes_environments}import sys; assert sys.version_info >= (3, 11)"
    is_fit = (
        Path("/usr/bin/python3").exists()
        and subprocess.call(["/usr/bin/python3", "-c", fit], stderr=subprocess.DEVNULL) == 0
    )
    is_systems = is_on_the_path and is_fit
    assert house.python_found(path) == ("/usr/bin/python3" if is_systems else f"{other}/python3")


@pytest.mark.parametrize(("has_uv", "taken"), [(True, "python3"), (False, "python3.12")])
def test_a_python_that_cannot_make_environments_is_passed_over_unless_uv_makes_them(
    house: House, tmp_path: Path, has_uv: bool, taken: str
) -> None:
    path = machine(tmp_path / "bin", 'case "$*" in *"import ensurepip"*) exit 1 ;; *) echo "$0" ;; esac')
    able = 'case "$*" in *executable*) echo "$0" ;; esac'
    others = {"python3.12": able, **({"uv": "exit 0"} if has_uv else {})}
    for name, script in others.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    assert house.python_found(path) == f"{path}/{taken}"


@pip_alone
def test_without_uv_pip_does_it_and_neither_stays(first_start: Furnished) -> None:
    environment = first_start.house.root / ".venv"
    assert first_start.first[0] == 3
    assert [*environment.glob("lib/python3*/site-packages/pip"), *environment.glob("bin/uv")] == []


@pip_alone
@pytest.mark.parametrize(("status", "of_pip"), [(0, ""), (1, "could not install requirements.txt")])
def test_without_uv_pip_brings_one_that_installs_and_where_it_does_not_pip_does(
    lived_in: House, tmp_path: Path, status: int, of_pip: str
) -> None:
    wheel = tmp_path / "uv-1.0-py3-none-any.whl"
    asked_of_uv = tmp_path / "asked of uv"
    with zipfile.ZipFile(wheel, "w") as archive:
        script = zipfile.ZipInfo("uv-1.0.data/scripts/uv")
        script.external_attr = 0o100755 << 16
        archive.writestr(script, f'#!/bin/sh\necho "$@" >"{asked_of_uv}"\nexit {status}\n')
        archive.writestr("uv-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: uv\nVersion: 1.0\n")
        archive.writestr("uv-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("uv-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    uv_lock = lived_in.root / "deploy" / "requirements-uv.txt"
    uv_lock.write_text(f"uv @ {wheel.as_uri()} --hash=sha256:{digest}\n", encoding="utf-8")
    # Only uv finds the package.
    lock = lived_in.root / "requirements.txt"
    lock.write_text("rollcall-has-no-such-package\n", encoding="utf-8")
    code, _, said = lived_in.start(path=without_uv(tmp_path / "bin"))
    assert (code, of_pip in said, "uv" in said) == (1 if status else 3, True, False)
    python = lived_in.root / ".venv" / "bin" / "python"
    assert (
        asked_of_uv.read_text(encoding="utf-8") == f"pip install --quiet --python {python} --require-hashes -r {lock}\n"
    )
