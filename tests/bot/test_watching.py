"""The file watcher: subscribers are notified of changes of their paths, however they are made."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from bot.live.watching import Watcher, places_of
from tests.fakes.held import until

PATIENCE_SECONDS = 60.0
QUIET_SECONDS = 0.2
"""Several times the watcher's delay; used after a change of a file that is not watched."""


class Ear:
    """A subscriber of some paths."""

    def __init__(self, watcher: Watcher, *paths: Path) -> None:
        self.heard = 0
        self._news = asyncio.Event()
        self.listening = asyncio.create_task(self._listen(watcher, paths))

    async def _listen(self, watcher: Watcher, paths: tuple[Path, ...]) -> None:
        async for _ in watcher.of(*paths):
            self.heard += 1
            self._news.set()

    async def hears(self, change: Callable[[], object]) -> None:
        """Make a change, and wait for the notification."""
        self._news.clear()
        change()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._news.wait()
        # One change may cause several notifications.
        await asyncio.sleep(QUIET_SECONDS)

    async def hears_nothing(self, change: Callable[[], object]) -> None:
        """Make a change that causes no notification."""
        before = self.heard
        change()
        await asyncio.sleep(QUIET_SECONDS)
        assert self.heard == before


@asynccontextmanager
async def watching(*paths: Path) -> AsyncIterator[Ear]:
    """A subscriber of `paths` after its first notification."""
    watcher = Watcher()
    watcher.start()
    ear = Ear(watcher, *paths)
    try:
        await ear.hears(lambda: None)
        yield ear
    finally:
        await watcher.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ear.listening


def put_in_place_of(file: Path, text: str) -> None:
    """Replace a file as editors and deployments do."""
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(text)
    beside.replace(file)


async def test_a_file_in_a_folder_is_heard_of_however_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "tools" / "a.py"
    file.parent.mkdir()
    async with watching(file.parent) as ear:
        await ear.hears(lambda: file.write_text("1"))
        await ear.hears(lambda: file.write_text("2"))
        await ear.hears(lambda: put_in_place_of(file, "3"))
        await ear.hears(lambda: file.rename(file.with_name("b.py")))
        await ear.hears(lambda: file.with_name("b.py").unlink())


async def test_one_file_is_heard_of_and_its_neighbours_are_not(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text("1")
    async with watching(file) as ear:
        await ear.hears_nothing(lambda: (tmp_path / "other.yaml").write_text("1"))
        await ear.hears(lambda: put_in_place_of(file, "2"))
        await ear.hears(file.unlink)
        await ear.hears(lambda: file.write_text("3"))


async def test_hidden_files_and_what_python_compiled_are_nobodys_business(tmp_path: Path) -> None:
    async with watching(tmp_path) as ear:
        await ear.hears_nothing((tmp_path / "__pycache__").mkdir)
        await ear.hears_nothing(lambda: (tmp_path / "__pycache__" / "a.pyc").write_text("1"))
        await ear.hears_nothing(lambda: (tmp_path / ".a.py.swp").write_text("1"))
        await ear.hears_nothing(lambda: (tmp_path / "a.py~").write_text("1"))


async def test_folders_come_go_and_come_again(tmp_path: Path) -> None:
    folder = tmp_path / "far" / "tools"
    async with watching(folder) as ear:
        await ear.hears(lambda: folder.mkdir(parents=True))
        await ear.hears(lambda: (folder / "a.py").write_text("1"))
        await ear.hears((folder / "deep").mkdir)
        await ear.hears(lambda: (folder / "deep" / "b.py").write_text("1"))
        await ear.hears(lambda: shutil.rmtree(folder))
        await ear.hears(lambda: (folder.mkdir(), (folder / "a.py").write_text("2")))
        await ear.hears(lambda: (folder / "a.py").write_text("34"))
        await ear.hears(lambda: shutil.rmtree(tmp_path / "far"))
        await ear.hears(lambda: (folder.mkdir(parents=True), (folder / "a.py").write_text("5")))
        await ear.hears(lambda: (folder / "a.py").write_text("67"))


async def test_links_are_followed_where_they_are_turned(tmp_path: Path) -> None:
    """As in mounted configuration of a cluster: the file is a link through a link that is replaced."""
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "bot.yaml").write_text(version)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "bot.yaml").symlink_to("..data/bot.yaml")

    def turn() -> None:
        (tmp_path / "..new").symlink_to("two")
        os.replace(tmp_path / "..new", tmp_path / "..data")

    async with watching(tmp_path / "bot.yaml") as ear:
        await ear.hears(lambda: (tmp_path / "one" / "bot.yaml").write_text("edited"))
        await ear.hears(turn)
        await ear.hears(lambda: (tmp_path / "two" / "bot.yaml").write_text("edited"))
        await ear.hears_nothing(lambda: (tmp_path / "one" / "bot.yaml").write_text("nobody looks here any more"))


async def test_a_link_to_a_folder_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "tools").symlink_to(tmp_path / "real")
    async with watching(tmp_path / "tools") as ear:
        await ear.hears(lambda: (tmp_path / "real" / "a.py").write_text("1"))


async def test_links_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "again").symlink_to(tmp_path / "tools")
    assert places_of([tmp_path / "a", tmp_path / "tools"]).whole == {str(tmp_path / "tools")}


async def test_only_those_hear_of_a_change_whose_paths_it_touches(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    watcher = Watcher()
    watcher.start()
    one, two = Ear(watcher, tmp_path / "one"), Ear(watcher, tmp_path / "two")
    try:
        await one.hears(lambda: None)
        assert two.heard == 1
        await one.hears(lambda: (tmp_path / "one" / "a.py").write_text("1"))
        assert two.heard == 1
        await two.hears(watcher.wake_all)
        assert one.heard >= 3
    finally:
        await watcher.close()
        await asyncio.gather(one.listening, two.listening)


async def test_what_was_told_of_to_nobody_is_found_by_the_next_look(tmp_path: Path) -> None:
    """A hidden folder above is renamed: no watched folder changes, but its content is different."""
    old, new = tmp_path / "a" / "b" / "tools", tmp_path / "other" / "b" / "tools"
    for folder in (old, new):
        folder.mkdir(parents=True)
    (new / "a.py").write_text("1")
    watcher = Watcher()
    watcher.start()
    ear = Ear(watcher, old)
    try:
        await ear.hears(lambda: None)

        def rename() -> None:
            (tmp_path / "a").rename(tmp_path / "gone")
            (tmp_path / "other").rename(tmp_path / "a")

        await ear.hears_nothing(rename)
        before = ear.heard
        await watcher.look()
        await until(lambda: ear.heard > before)
        await ear.hears(lambda: (old / "a.py").write_text("23"))
    finally:
        await watcher.close()
        await ear.listening


NAMES = st.sampled_from(["a.py", "b.py", "deep/c.py", "deep/deeper/d.py"])


@effort(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["write", "remove", "replace"]), NAMES), min_size=1, max_size=8))
def test_what_there_is_looks_other_exactly_when_something_was_done(changes: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        root = Path(home) / "tools"
        root.mkdir()
        for what, name in changes:
            file, before = root / name, places_of([root])
            assert places_of([root]) == before
            was_there = file.exists()
            if what == "remove":
                file.unlink(missing_ok=True)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                put_in_place_of(file, what) if what == "replace" else file.write_text(f"{before.state}")
            after = places_of([root])
            assert (after.state != before.state) is (what != "remove" or was_there)
            assert after.concerns(str(file.resolve())) or not file.parent.exists()
