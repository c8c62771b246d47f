"""Files of a chat are read and written only within its folder, by visible paths."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from config.sections.processes import FilesSettings
from services.refs import ChatRef
from services.sandbox.workspace import MOST_SHOWN, Problem, Workspace, WorkspaceError, Workspaces, folder_name
from tests.fakes.builders import FAMILY

CANARY = b"canary"
WORK = ChatRef("test", "bot", "work")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "secret.txt").write_bytes(CANARY)
    return Workspaces(tmp_path / "chats").of(FAMILY)


def folder_of(workspace: Workspace) -> Path:
    return workspace.made()


def refused(workspace: Workspace, path: str) -> Problem:
    """The common error of reading, writing, listing and checking `path`."""
    problems: set[Problem] = set()
    for attempt in (
        lambda: workspace.read(path),
        lambda: workspace.write(path, b"x"),
        lambda: workspace.list(path),
        lambda: workspace.glob(path),
    ):
        with pytest.raises(WorkspaceError) as caught:
            attempt()
        problems.add(caught.value.problem)
    assert len(problems) == 1
    return problems.pop()


@pytest.mark.requirement("E42")
def test_what_is_written_can_be_read_listed_and_found(workspace: Workspace) -> None:
    assert workspace.write("notes/today.txt", b"one\n") == 4
    assert workspace.write("notes/today.txt", b"two\n", append=True) == 8
    assert workspace.read("notes/today.txt") == b"one\ntwo\n"
    assert workspace.write("./notes/./today.txt", b"three") == 5
    assert workspace.read("notes/today.txt") == b"three"
    assert [(one.path, one.is_folder, one.bytes) for one in workspace.list().entries] == [("notes", True, 0)]
    assert [(one.path, one.bytes) for one in workspace.list("notes/").entries] == [("notes/today.txt", 5)]
    assert [one.path for one in workspace.glob("**/*.txt").entries] == ["notes/today.txt"]
    assert workspace.glob("*").entries == ()


def test_what_was_never_written_is_not_there(workspace: Workspace) -> None:
    assert workspace.list().entries == workspace.glob("**").entries == ()
    for attempt in (lambda: workspace.read("a.txt"), lambda: workspace.list("a")):
        with pytest.raises(WorkspaceError) as caught:
            attempt()
        assert caught.value.problem is Problem.NOT_FOUND


def test_a_chat_sees_its_own_files_alone(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    workspaces.of(FAMILY).write("a.txt", b"ours")
    assert workspaces.of(WORK).list().entries == ()
    with pytest.raises(WorkspaceError):
        workspaces.of(WORK).read("a.txt")


_keys = some.text(some.characters(exclude_characters=""), max_size=300)


@given(_keys, _keys)
def test_different_chats_have_different_folders_with_safe_names(one: str, other: str) -> None:
    names = [folder_name(ChatRef("irc", "libera", native)) for native in (one, other)]
    assert (names[0].casefold() == names[1].casefold()) is (one == other)
    for name in names:
        assert name.isascii()
        assert len(name) <= 180
        assert not set(name) & set("/\\:\0 ")
        assert not name.startswith(".")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("  ", Problem.BLANK),
        ("a//b", Problem.BLANK),
        ("a/ /b", Problem.BLANK),
        ("/etc/passwd", Problem.ABSOLUTE),
        ("//a", Problem.ABSOLUTE),
        ("..", Problem.PARENT),
        ("a/../../secret.txt", Problem.PARENT),
        ("a/..", Problem.PARENT),
        (".git/config", Problem.HIDDEN),
        ("a/.bashrc", Problem.HIDDEN),
        ("...", Problem.HIDDEN),
        ("..\\secret.txt", Problem.BACKSLASH),
        ("a\\b", Problem.BACKSLASH),
        ("a\0b", Problem.UNSEEN),
        ("a\nb", Problem.UNSEEN),
        ("a\u202etxt.exe", Problem.UNSEEN),
        ("a\u200bb", Problem.UNSEEN),
        ("a\u00a0b", Problem.UNSEEN),
        ("\ud800", Problem.UNSEEN),
        ("a\u2028b", Problem.UNSEEN),
        ("n" * 201, Problem.TOO_LONG),
        ("好" * 67, Problem.TOO_LONG),
        ("a/" * 12 + "b", Problem.TOO_DEEP),
    ],
)
def test_a_path_that_is_none_is_refused(workspace: Workspace, path: str, problem: Problem) -> None:
    if path == "  ":  # an empty path is the folder itself
        with pytest.raises(WorkspaceError):
            workspace.read(path)
        assert workspace.list(path).entries == ()
        return
    assert refused(workspace, path) is problem
    assert not list(folder_of(workspace).iterdir())


@pytest.mark.parametrize("path", ["-rf", "$(id).txt", "~root", "%2e%2e", "好.txt", "a b", "CON", "*", "x" * 200])
def test_an_odd_name_is_a_name(workspace: Workspace, path: str) -> None:
    workspace.write(path, b"x")
    assert workspace.read(path) == b"x"
    assert os.listdir(folder_of(workspace)) == [path]


def test_one_name_in_two_spellings_is_one_name(workspace: Workspace) -> None:
    workspace.write("cafe\u0301", b"x")
    assert workspace.read("caf\u00e9") == b"x"


_PIECES = ["..", ".", "a", "b.txt", "secret.txt", "link", "", " ", "~", "\0", "\\", "/", "好", "link/secret.txt", "..."]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some.lists(some.one_of(some.sampled_from(_PIECES), some.text(max_size=5)), min_size=1, max_size=6),
    some.sampled_from(["/", "", "//", "\\"]),
    some.booleans(),
)
def test_whatever_the_path_nothing_outside_is_read_or_written(
    workspace: Workspace, pieces: list[str], between: str, append: bool
) -> None:
    folder = folder_of(workspace)
    outside = folder.parent.parent
    if not (folder / "link").is_symlink():
        (folder / "link").symlink_to(outside)
    path = between.join(pieces)
    with suppress(WorkspaceError):
        workspace.write(path, b"ours", append=append)
        assert workspace.read(path).endswith(b"ours")
    for look in (workspace.list, workspace.glob):
        with suppress(WorkspaceError):
            assert all("secret.txt" not in one.path or (folder / one.path).exists() for one in look(path).entries)
    assert (outside / "secret.txt").read_bytes() == CANARY
    assert sorted(one.name for one in outside.iterdir()) == ["chats", "secret.txt"]
    assert [one.name for one in folder.parent.iterdir()] == [folder.name]


def test_no_link_is_followed(workspace: Workspace) -> None:
    folder = folder_of(workspace)
    outside = folder.parent.parent
    (folder / "file").symlink_to(outside / "secret.txt")
    (folder / "folder").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    for path in ("file", "folder/secret.txt", "loop/loop/file"):
        for attempt in (lambda: workspace.read(path), lambda: workspace.write(path, b"x", append=True)):  # noqa: B023
            with pytest.raises(WorkspaceError) as caught:
                attempt()
            assert caught.value.problem is Problem.NO_FILE
    with pytest.raises(WorkspaceError):
        workspace.write("file", b"x")
    assert workspace.glob("**").entries == ()
    assert (workspace.list().entries, workspace.list().unnamed) == ((), 3)
    assert (outside / "secret.txt").read_bytes() == CANARY


def test_only_plain_files_are_read(workspace: Workspace) -> None:
    folder = folder_of(workspace)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    os.link(folder.parent.parent / "secret.txt", folder / "hard")
    for name, problem in (("pipe", Problem.NO_FILE), ("folder", Problem.IS_FOLDER), ("hard", Problem.LINKED)):
        with pytest.raises(WorkspaceError) as caught:
            workspace.read(name)
        assert caught.value.problem is problem
    for name in ("pipe", "folder"):
        with pytest.raises(WorkspaceError):
            workspace.write(name, b"x")
    workspace.write("hard", b"ours")  # takes the name and does not change the other file
    assert workspace.read("hard") == b"ours"
    assert (folder.parent.parent / "secret.txt").read_bytes() == CANARY


def test_a_file_is_no_folder(workspace: Workspace) -> None:
    workspace.write("a", b"x")
    for attempt in (lambda: workspace.read("a/b"), lambda: workspace.write("a/b", b"x"), lambda: workspace.list("a")):
        with pytest.raises(WorkspaceError) as caught:
            attempt()
        assert caught.value.problem is Problem.NO_FOLDER


def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(workspace: Workspace, tmp_path: Path) -> None:
    """Another program repeatedly replaces a folder by a link to the outside and back."""
    folder = folder_of(workspace)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(CANARY)
    (folder / "real").mkdir()
    (folder / "real" / "file").write_bytes(b"ours")
    (folder / "link").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for name in ("real", "link"):
                try:
                    os.rename(folder / name, folder / "place")
                    os.rename(folder / "place", folder / name)
                except OSError:  # the write may have created a folder there in the meantime
                    shutil.rmtree(folder / "place", ignore_errors=True)
            if not (folder / "real").is_dir():
                (folder / "real").mkdir()
                (folder / "real" / "file").write_bytes(b"ours")

    attacker = threading.Thread(target=swap)
    attacker.start()
    read = written = 0
    try:
        for number in range(1000):
            with suppress(WorkspaceError):
                assert workspace.read("place/file") in (b"ours", b"mine")
                read += 1
            with suppress(WorkspaceError):
                workspace.write("place/file" if number % 2 else "place/new", b"mine")
                written += 1
            assert all(not one.path.endswith("canary") for one in workspace.glob("**").entries)
    finally:
        stop.set()
        attacker.join()
    assert read
    assert written
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_bytes() == CANARY


def test_a_file_is_written_whole_or_not_at_all(workspace: Workspace) -> None:
    folder = folder_of(workspace)
    workspace.write("a", b"before")
    torn: list[bytes] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            torn.extend({(folder / "a").read_bytes()} - {b"before", b"x" * 100_000})

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(50):
        workspace.write("a", b"before" if number % 2 else b"x" * 100_000)
    stop.set()
    reader.join()
    assert torn == []
    assert os.listdir(folder) == ["a"]


def test_two_who_add_to_a_file_lose_nothing(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)

    def add(word: bytes) -> None:
        for _ in range(50):
            workspaces.of(FAMILY).write("log", word, append=True)

    both = [threading.Thread(target=add, args=(word,)) for word in (b"a", b"b")]
    for one in both:
        one.start()
    for one in both:
        one.join()
    content = workspaces.of(FAMILY).read("log")
    assert (content.count(b"a"), content.count(b"b")) == (50, 50)


def test_there_is_an_end_to_what_a_chat_keeps(tmp_path: Path) -> None:
    small = FilesSettings(quota_megabytes=1, most_files=4, file_kilobytes=600)
    workspace = Workspaces(tmp_path, small).of(FAMILY)
    with pytest.raises(WorkspaceError) as caught:
        workspace.write("long", bytes(600_001))
    assert (caught.value.problem, caught.value.values) == (Problem.TOO_BIG, {"kilobytes": 600})
    workspace.write("a", bytes(600_000))
    with pytest.raises(WorkspaceError) as caught:
        workspace.write("a", b"x", append=True)
    assert caught.value.problem is Problem.TOO_BIG
    with pytest.raises(WorkspaceError) as caught:
        workspace.write("b", bytes(400_001))
    assert caught.value.problem is Problem.FULL
    workspace.write("a", bytes(500_000))
    workspace.write("folder/b", bytes(400_000))
    workspace.write("c", b"x")
    for path in ("d", "folder/d", "other/d"):
        with pytest.raises(WorkspaceError) as caught:
            workspace.write(path, b"x")
        assert caught.value.problem is Problem.TOO_MANY
    workspace.write("c", b"y")
    assert not (tmp_path / folder_name(FAMILY) / "other").exists()


def test_what_a_process_left_behind_is_bounded_as_well(tmp_path: Path) -> None:
    workspace = Workspaces(tmp_path, FilesSettings(most_files=10)).of(FAMILY)
    folder = workspace.made()
    for number in range(300):
        (folder / f"{number:03}").write_bytes(b"")
    with pytest.raises(WorkspaceError) as caught:
        workspace.write("one more", b"")
    assert caught.value.problem is Problem.TOO_MANY
    assert len(workspace.list().entries) == len(workspace.glob("*").entries) == 11
    (folder / "long").write_bytes(bytes(2_000_000))
    with pytest.raises(WorkspaceError) as caught:
        workspace.read("long")
    assert caught.value.problem is Problem.TOO_BIG


def test_a_long_list_is_cut_and_says_so(tmp_path: Path) -> None:
    workspace = Workspaces(tmp_path).of(FAMILY)
    folder = workspace.made()
    for number in range(MOST_SHOWN + 5):
        (folder / f"{number:03}").write_bytes(b"")
    (folder / ".hidden").write_bytes(b"")
    (folder / "a\nb").write_bytes(b"")
    for listing in (workspace.list(), workspace.glob("*")):
        assert (len(listing.entries), listing.more, listing.unnamed) == (MOST_SHOWN, 5, 2)


def test_what_cannot_be_written_leaves_nothing_behind(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(workspace)
    workspace.write("a", b"before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        workspace.write("a", b"after")
    assert os.listdir(folder) == ["a"]
    assert workspace.read("a") == b"before"
