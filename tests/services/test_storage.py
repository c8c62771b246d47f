"""Storage of definition files: their list, and etags that change with the content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.storage import LocalFile, LocalFolder, Storage, StorageError, storage_at
from tests.fakes.memory_storage import MemoryStorage


def test_a_folder_lists_the_files_that_fit_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml", "c.txt", ".hidden.yaml", "_draft.yaml"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.yaml").write_text("d", encoding="utf-8")
    assert list(LocalFolder(tmp_path, ["*.yaml"]).list()) == ["a.yaml", "b.yaml"]
    deep = LocalFolder(tmp_path, ["*.yaml"], is_deep=True)
    assert list(deep.list()) == ["a.yaml", "b.yaml", "inner/d.yaml"]
    assert deep.read("inner/d.yaml") == b"d"


def test_an_edit_within_the_same_instant_and_of_the_same_length_has_another_etag(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one", encoding="utf-8")
    os.utime(file, ns=(1, 1))
    folder = LocalFolder(tmp_path, ["*.yaml"])
    before = folder.list()["a.yaml"]
    assert folder.list()["a.yaml"] == before
    # As editors do: replace the file with a new one.
    fresh = tmp_path / "fresh"
    fresh.write_text("two", encoding="utf-8")
    os.utime(fresh, ns=(1, 1))
    fresh.replace(file)
    assert folder.list()["a.yaml"] != before


def test_the_etag_in_memory_changes_although_the_time_does_not() -> None:
    storage = MemoryStorage({"a": "one"})
    before = storage.list()["a"]
    storage.write("a", "one")
    assert storage.list()["a"] != before
    storage.delete("a")
    assert storage.list() == {}


@pytest.mark.parametrize("kind", ["folder", "file", "memory"])
def test_what_is_gone_is_told_by_its_place(tmp_path: Path, kind: str) -> None:
    storages: dict[str, Storage] = {
        "folder": LocalFolder(tmp_path, ["*"]),
        "file": LocalFile(tmp_path / "gone.yaml"),
        "memory": MemoryStorage(),
    }
    assert storages[kind].list() == {}
    with pytest.raises(StorageError, match=r"gone\.yaml"):
        storages[kind].read("gone.yaml")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="absent: there is no such folder or file; make it"):
        LocalFolder(tmp_path / "absent", ["*"]).list()


def test_a_named_file_counts_whatever_its_name_and_a_folder_by_its_patterns(tmp_path: Path) -> None:
    file = tmp_path / "_tools.conf"
    file.write_text("x", encoding="utf-8")
    assert list(storage_at(file, ["*.yaml"]).list()) == ["_tools.conf"]
    assert list(storage_at(tmp_path, ["*.yaml"]).list()) == []


def test_a_named_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert LocalFolder(tmp_path, ["*.yaml"]).list() == {}
