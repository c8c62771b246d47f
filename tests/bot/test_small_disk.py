"""The daemon on a small disk that becomes full: nothing accepted is lost, the probes report it immediately, and it
recovers when there is space."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import httpx2
import pytest

from tests.harness.forked_processes import forked
from tests.harness.real_daemon import PATIENCE_SECONDS, RealDaemon, a_real_daemon

DISK_BYTES = 24 << 20
NOWHERE = "http://127.0.0.1:9/v1"
_AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


class SmallDisk:
    """An in-memory file system with a file of another program."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self._ballast = folder / "ballast"

    @property
    def log_bytes(self) -> int:
        """Size of the write-ahead log."""
        return (self.home / "rollcall.sqlite-wal").stat().st_size

    def fill(self, *, leaving: int = 0) -> None:
        """Let the other program fill the disk, up to `leaving` bytes."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while shutil.disk_usage(self.home).free >= leaving:
                file.write(bytes(4096))

    def free(self) -> None:
        """Delete the other program's file."""
        self._ballast.unlink()

    def sound(self) -> bool:
        """Whether SQLite's integrity check passes."""
        with closing(sqlite3.connect(self.home / "rollcall.sqlite")) as database:
            return bool(database.execute("PRAGMA integrity_check").fetchone() == ("ok",))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = [*_AS_ROOT, "mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0777", "none", str(folder)]
    if shutil.which(mount[0]) is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here: that is for root")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run([*_AS_ROOT, "umount", "--lazy", str(folder)], check=True)


@asynccontextmanager
async def a_daemon_on(disk: SmallDisk) -> AsyncIterator[tuple[RealDaemon, httpx2.AsyncClient]]:
    async with (
        a_real_daemon(disk.home, NOWHERE) as daemon,
        httpx2.AsyncClient(
            base_url=daemon.address,
            headers={"authorization": "Bearer a-token-for-the-tests"},
            timeout=20,
            trust_env=False,
            verify=False,
        ) as client,
    ):
        yield daemon, client


async def posted(client: httpx2.AsyncClient, native_id: str, chat: str = "family", *, text: str = "/calc 6*7") -> int:
    """Status code for a message of a member, by default a command."""
    body = {"id": native_id, "sender": {"id": "ann", "name": "Ann"}, "text": text}
    return (await client.post(f"/api/v1/chats/{chat}/messages", json=body)).status_code


async def store_of(client: httpx2.AsyncClient) -> tuple[int, str]:
    """Status code of /readyz, and its text for the store."""
    answer = await client.get("/readyz")
    return answer.status_code, answer.json()["details"]["store"]


async def is_ready(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await store_of(client)) != (200, "ok"):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.05)


async def filled_until_refused(disk: SmallDisk, client: httpx2.AsyncClient) -> list[str]:
    """Fill the disk repeatedly until a message is refused; returns the ids of accepted ones."""
    accepted = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            disk.fill()
            native_id = f"full-{len(accepted)}"
            if await posted(client, native_id) != 202:
                return accepted
            accepted.append(native_id)


async def test_the_log_of_the_database_leaves_room_on_a_small_disk_and_a_start_after_a_crash_succeeds(
    disk: SmallDisk,
) -> None:
    async with a_daemon_on(disk) as (daemon, client):
        chats = [f"family{number}" for number in range(15)]
        statuses = {await posted(client, f"m{number}", chat) for number in range(30) for chat in chats}
        assert statuses == {202}
        assert disk.log_bytes <= DISK_BYTES / 8
        daemon.process.send_signal(signal.SIGKILL)
        await daemon.ended()
    async with a_daemon_on(disk) as (daemon, client):
        assert await store_of(client) == (200, "ok")
        assert await daemon.answers(chats, 450) == dict.fromkeys(chats, 30)
    assert disk.sound()


async def test_a_full_disk_shows_in_the_probes_at_once_and_what_was_refused_is_taken_once_there_is_room(
    disk: SmallDisk,
) -> None:
    async with a_daemon_on(disk) as (daemon, client):
        assert await posted(client, "first") == 202
        await daemon.answers(["family"], 1)
        disk.fill()
        status, store = await store_of(client)
        assert (status, store) == (503, "the disk of the database is full: 0 KiB free")
        assert "rollcall_store_usable 0.0" in (await client.get("/metrics")).text
        accepted = await filled_until_refused(disk, client)
        assert (await store_of(client))[0] == 503
        disk.free()
        await is_ready(client)
        assert "rollcall_store_usable 1.0" in (await client.get("/metrics")).text
        assert await posted(client, f"full-{len(accepted)}") == 202
        count = len(accepted) + 2
        assert await daemon.answers(["family"], count) == {"family": count}
    assert disk.sound()


async def test_a_reader_that_holds_the_log_open_on_a_small_disk_is_outlived(disk: SmallDisk) -> None:
    disk.fill(leaving=8 << 20)
    async with a_daemon_on(disk) as (daemon, client):
        accepted = 0
        with closing(sqlite3.connect(disk.home / "rollcall.sqlite", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM inbox").fetchall()
            async with asyncio.timeout(PATIENCE_SECONDS):
                # Long messages: nearly every page of the log is not yet in the database.
                while await posted(client, f"m{accepted}", text="to somebody else " * 200) == 202:
                    accepted += 1
            status, store = await store_of(client)
            assert status == 503
            assert store.endswith("its log cannot be emptied: another process reads the database for long")
        await is_ready(client)
        assert await posted(client, "last") == 202
        assert await daemon.answers(["family"], 1) == {"family": 1}
    assert disk.sound()


async def test_a_daemon_killed_on_a_full_disk_starts_again_with_the_room_that_it_kept(disk: SmallDisk) -> None:
    async with a_daemon_on(disk) as (daemon, client):
        for number in range(40):
            assert await posted(client, f"m{number}") == 202
        await daemon.answers(["family"], 40)
        # Longer than the interval of the daemon's disk check, so that the reserve file exists.
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (disk.home / "rollcall.sqlite.reserve").exists():  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.05)
        disk.fill()
        daemon.process.send_signal(signal.SIGKILL)
        await daemon.ended()
    disk.fill()
    async with a_daemon_on(disk) as (daemon, client):
        assert await store_of(client) == (200, "ok")
        assert await posted(client, "after") == 202
        assert await daemon.answers(["family"], 41) == {"family": 41}
    assert disk.sound()


async def test_a_start_without_any_room_says_which_files_of_its_own_may_go(disk: SmallDisk) -> None:
    async with a_daemon_on(disk) as (daemon, client):
        assert await posted(client, "first") == 202
        await daemon.answers(["family"], 1)
    (disk.home / "rollcall.sqlite.reserve").unlink(missing_ok=True)
    (disk.home / "backups").mkdir()
    (disk.home / "backups" / "rollcall-20260101T000000Z-x.db").write_bytes(bytes(2_000_000))
    disk.fill()
    ended = await forked("bot", "run", "--config", str(disk.home / "bot.yaml"), "--no-console", env=os.environ)
    assert ended.status == 1
    assert f"{disk.home}/rollcall.sqlite: the disk of the database is full" in ended.err
    assert f"{disk.home}/backups (2.0 MB)" in ended.err
    assert "Traceback" not in ended.err + ended.out
    (disk.home / "backups" / "rollcall-20260101T000000Z-x.db").unlink()
    async with a_daemon_on(disk) as (daemon, client):
        await is_ready(client)
        assert await posted(client, "second") == 202


async def test_a_database_that_cannot_be_written_shows_in_the_probes_and_recovers_by_itself(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path)
    async with a_daemon_on(disk) as (daemon, client):
        assert await posted(client, "first") == 202
        await daemon.answers(["family"], 1)
        limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        assert await posted(client, "second") == 503
        assert await store_of(client) == (503, "the database cannot be written: disk I/O error")
        assert "rollcall_store_usable 0.0" in (await client.get("/metrics")).text
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, limits)
        await is_ready(client)
        assert await posted(client, "second") == 202
        assert await daemon.answers(["family"], 2) == {"family": 2}
    assert disk.sound()
