"""Rules for the files of the repository."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bot import VERSION

ROOT = Path(__file__).parent.parent
SCRIPTS = ("run", "test", ".ci/run")
LOCKS = ("requirements.txt", "requirements-all.txt", "requirements-dev.txt", "deploy/requirements-uv.txt")
MADE_HERE = {".venv", "var", "logs", "build", "node_modules", "__pycache__"}

# The package index is part of the machine's configuration.
PACKAGE_INDEX = re.compile(
    r"\bpypi\.\w|pythonhosted\.\w|registry\.npmjs|tool\.uv\.(index|sources)"
    r"|(--|PIP_|UV_)((extra|default)[-_])?(index([-_]url)?|find[-_]links|trusted[-_]host)\b",
    re.IGNORECASE,
)
MACHINE_PATH = re.compile(r"(?<![\w./}>*-])/(?:work|home|root|Users)/\w")


def project_files() -> list[Path]:
    """Tracked and untracked files; without git, all files except generated ones."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.rstrip("\0").split("\0")]
    else:
        paths = [path for path in ROOT.rglob("*") if not _is_made_here(path.relative_to(ROOT))]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def _is_made_here(path: Path) -> bool:
    return any(part in MADE_HERE or part.endswith(("_cache", ".egg-info", ".git")) for part in path.parts)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Contents of all text files, by path."""
    found = {}
    for path in project_files():
        content = path.read_bytes()
        if b"\0" not in content:
            found[path.relative_to(ROOT).as_posix()] = content.decode("utf-8", errors="replace")
    assert "pyproject.toml" in found
    return found


def places(texts: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    """`file:line: text` for every line that matches."""
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def pins(lock: str) -> dict[str, str]:
    """Version of each package of a lock, with its extras and markers."""
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    entries = [line.rstrip("\\ ").split("==", 1) for line in lines if line and not line.startswith((" ", "#"))]
    return dict(entries)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_can_be_started(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert path.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False, timeout=30)
    assert checked.stderr == ""


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"])
def test_what_a_newcomer_looks_for_is_there(name: str) -> None:
    assert (ROOT / name).is_file()
    assert (ROOT / name).read_text(encoding="utf-8").strip()


def test_each_pre_commit_hook_runs_a_check_of_the_test_script() -> None:
    script = (ROOT / "test").read_text(encoding="utf-8")
    checks = re.findall(r'^(?:run_step|start_step) "([^"]+)" "\$venv_python" (.+)$', script, re.MULTILINE)
    [local] = YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = [(hook["name"], hook["entry"].removeprefix(".venv/bin/python ")) for hook in local["hooks"]]
    assert hooks == checks


def test_the_workflow_runs_the_complete_tests() -> None:
    workflow = YAML(typ="safe").load(ROOT / ".github/workflows/test.yml")
    [job] = workflow["jobs"].values()
    assert job["steps"][-1]["run"] == ".ci/run"
    assert [step["uses"] for step in job["steps"] if "@v" not in step.get("uses", "@v")] == []


def test_the_licence_is_the_one_that_the_package_declares() -> None:
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert re.match(r"\s+Apache License\s+Version 2\.0, January 2004\n", licence)
    assert "END OF TERMS AND CONDITIONS" in licence


def test_the_newest_release_of_the_changelog_is_the_version_of_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, newest, *_ = re.findall(r"^## \[(.+?)\](?: - \d{4}-\d\d-\d\d)?$", changelog, re.MULTILINE)
    assert (first, newest) == ("Unreleased", VERSION)
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_no_file_names_a_package_index(texts: dict[str, str]) -> None:
    assert places(texts, PACKAGE_INDEX) == []


def test_no_file_names_a_path_of_somebodys_machine(texts: dict[str, str]) -> None:
    assert places(texts, MACHINE_PATH) == []


def test_every_text_file_ends_with_a_newline(texts: dict[str, str]) -> None:
    # The corpus contains scripts as editors write them, and htmx is as its authors published it.
    ours = {name: text for name, text in texts.items() if "/basic/corpus/" not in name and "htmx" not in name}
    assert [name for name, text in ours.items() if text and not text.endswith("\n")] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_package_with_hashes_and_sets_no_option(lock: str) -> None:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    entries = re.split(r"\n(?=\S)", "\n".join(line for line in lines if not line.lstrip().startswith("#")).strip())
    unpinned = [
        entry for entry in entries if not re.match(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==[\w.+!-]+( ;.*?)? \\\n", entry)
    ]
    assert unpinned == []
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)] == []


def test_each_lock_holds_the_smaller_one() -> None:
    daemon, everything, developers = (pins(f"requirements{name}.txt").items() for name in ("", "-all", "-dev"))
    assert daemon <= everything <= developers


@pytest.mark.parametrize(
    "line", ["https://pypi" + ".org/x", "pip install --" + "index-url x", "export PIP_" + "EXTRA_INDEX_URL=x"]
)
def test_an_index_would_be_noticed(line: str) -> None:
    assert places({"deploy/x.sh": f"true\n{line}\n"}, PACKAGE_INDEX) == [f"deploy/x.sh:2: {line}"]


@pytest.mark.parametrize(
    ("line", "noticed"), [("x = '/ho" + "me/ann/y'", 1), ("`./work/x`", 0), ("https://a.b/home/x", 0)]
)
def test_a_machine_path_would_be_noticed(line: str, noticed: int) -> None:
    assert len(places({"x.md": line}, MACHINE_PATH)) == noticed
