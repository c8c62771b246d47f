"""Files next to scripts: only those in the bot's folders are accessible."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.scripts.errors import DataError
from services.scripts.files import LocalScriptFiles, NoSuchScriptFile, ScriptFolder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, content in {
        "scripts/a.gbai/a.gbdialog/people.csv": "a's people",
        "scripts/a.gbai/a.gbdata/prices.csv": "a's prices",
        "scripts/b.gbai/b.gbdialog/people.csv": "b's people",
        "scripts/people.csv": "the default bot's",
        "scripts/.gbdata/more.csv": "more",
        "scripts/large.csv": "x" * 101,
        "secret.csv": "secret",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    (tmp_path / "scripts" / "link.csv").symlink_to(tmp_path / "secret.csv")
    (tmp_path / "scripts" / "folder.csv").mkdir()
    return tmp_path / "scripts"


@pytest.fixture
def files(root: Path) -> LocalScriptFiles:
    return LocalScriptFiles([ScriptFolder(root, "default")], most_bytes=100)


@pytest.mark.parametrize(
    ("bot", "folder", "name", "content"),
    [
        ("a", "a.gbai/a.gbdialog/", "people.csv", "a's people"),
        ("A", "a.gbai/a.gbdialog/", "prices.csv", "a's prices"),
        ("default", "", "people.csv", "the default bot's"),
        ("default", "", "more.csv", "more"),
    ],
)
def test_a_file_is_found_beside_the_script_and_in_the_bots_data(
    files: LocalScriptFiles, bot: str, folder: str, name: str, content: str
) -> None:
    assert files.read(bot, folder, name) == content.encode()


@pytest.mark.parametrize(
    ("bot", "folder", "name"),
    [
        ("default", "", "nobody.csv"),
        ("default", "", "../secret.csv"),
        ("default", "", "/etc/passwd"),
        ("default", "", "a.gbai/a.gbdialog/people.csv"),
        ("default", "", "..\\secret.csv"),
        ("default", "", "link.csv"),
        ("default", "", "folder.csv"),
        ("default", "", ".hidden"),
        ("default", "", ""),
        ("default", "../", "secret.csv"),
        ("default", "a.gbai/a.gbdialog/", "people.csv"),
        ("a", "b.gbai/b.gbdialog/", "people.csv"),
        ("a", "a.gbai/../b.gbai/b.gbdialog/", "people.csv"),
        ("a", "", "people.csv"),
        ("default", "", "people.csv\0"),
    ],
)
def test_nothing_else_is_there(files: LocalScriptFiles, bot: str, folder: str, name: str) -> None:
    with pytest.raises(NoSuchScriptFile):
        files.read(bot, folder, name)


@pytest.mark.parametrize(("path", "folder", "name"), [("a.gbai", "a.gbdialog/", "prices.csv"), ("a.gbai", "", "x.csv")])
def test_the_folder_of_one_bot_may_be_named_itself(root: Path, path: str, folder: str, name: str) -> None:
    (root / "a.gbai" / "x.csv").write_text("top")
    files = LocalScriptFiles([])
    files.use([ScriptFolder(root / path, "a")])
    assert files.read("a", folder, name) in (b"a's prices", b"top")
    with pytest.raises(NoSuchScriptFile):
        files.read("default", folder, name)


def test_a_file_that_is_too_large_is_not_read(files: LocalScriptFiles) -> None:
    with pytest.raises(DataError, match=r"csv\.too_large"):
        files.read("default", "", "large.csv")
