"""Damaged databases are never served. `PRAGMA integrity_check` is the independent reference."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import NamedTuple

import orjson
import pytest

from tests.harness.forked_processes import Ended, a_forked_process
from tests.harness.real_daemon import PATIENCE_SECONDS, a_real_daemon

NOWHERE = "http://127.0.0.1:9/v1"
DATABASE = "rollcall.sqlite"
PAGE = 4096
Corrupt = Callable[[Path, Random], None]


class Home(NamedTuple):
    """Data of a killed daemon, with the newest rows only in the write-ahead log."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / DATABASE


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An undamaged one, with a good backup and a newer damaged one."""
    home = Home(tmp_path_factory.mktemp("whole"))
    asyncio.run(_live(home, stop=signal.SIGTERM, first=0))
    backups = home.folder / "backups"
    backups.mkdir()
    shutil.copy(home.database, backups / "rollcall-20260101T000000Z-x.db")
    (backups / "rollcall-20260102T000000Z-x.db").write_bytes(b"no database" * 500)
    asyncio.run(_live(home, stop=signal.SIGKILL, first=100))
    return home


async def _live(home: Home, *, stop: signal.Signals, first: int) -> None:
    chats = [f"family{number}" for number in range(6)]
    async with a_real_daemon(home.folder, NOWHERE) as daemon:
        for number in range(first, first + 60):
            await daemon.say(chats[number % 6], f"m{number}", f"/calc {number}*7")
        await daemon.answers(chats, 60 + (60 if first else 0))
        daemon.process.send_signal(stop)
        await daemon.ended()


def _write(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def _read(path: Path, at: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(size)


def _pages(path: Path) -> int:
    return path.stat().st_size // PAGE


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _without_log(corrupt: Corrupt) -> Corrupt:
    """Checkpoint the log first, so that `corrupt` damages pages that are read."""

    def corrupt_all(path: Path, rng: Random) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        corrupt(path, rng)

    return corrupt_all


def _flip(path: Path, at: int, rng: Random) -> None:
    _write(path, at, bytes([_read(path, at, 1)[0] ^ 1 << rng.randrange(8)]))


def flipped_bits(count: int) -> Corrupt:
    def corrupt(path: Path, rng: Random) -> None:
        for _ in range(count):
            _flip(path, rng.randrange(path.stat().st_size), rng)

    return corrupt


def flipped_page_headers(path: Path, rng: Random) -> None:
    for page in rng.sample(range(1, _pages(path)), 4):
        _flip(path, page * PAGE + rng.randrange(8), rng)


def flipped_cell_pointers(path: Path, rng: Random) -> None:
    for page in rng.sample(range(1, _pages(path)), 4):
        _flip(path, page * PAGE + 8 + rng.randrange(8), rng)


def filled_page(byte: int) -> Corrupt:
    return lambda path, rng: _write(path, rng.randrange(1, _pages(path)) * PAGE, bytes([byte]) * PAGE)


def random_page(path: Path, rng: Random) -> None:
    _write(path, rng.randrange(1, _pages(path)) * PAGE, rng.randbytes(PAGE))


def swapped_pages(path: Path, rng: Random) -> None:
    one, other = (page * PAGE for page in rng.sample(range(1, _pages(path)), 2))
    first, second = _read(path, one, PAGE), _read(path, other, PAGE)
    _write(path, one, second)
    _write(path, other, first)


def repeated_page(path: Path, rng: Random) -> None:
    one, other = (page * PAGE for page in rng.sample(range(1, _pages(path)), 2))
    _write(path, one, _read(path, other, PAGE))


def header(at: int, content: bytes) -> Corrupt:
    return lambda path, _rng: _write(path, at, content)


def cut(pages: float) -> Corrupt:
    """Truncate to `pages` pages, or by that many if negative."""

    def corrupt(path: Path, _rng: Random) -> None:
        os.truncate(path, int((pages if pages >= 0 else _pages(path) + pages) * PAGE))

    return corrupt


def schema(*statements: str) -> Corrupt:
    def corrupt(path: Path, _rng: Random) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA writable_schema = ON")
            for statement in statements:
                database.execute(statement)

    return corrupt


def hidden_index(change: str) -> Corrupt:
    """Execute `change` while the index `inbox_once` is hidden from SQLite."""

    def corrupt(path: Path, _rng: Random) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA writable_schema = ON")
            row = database.execute("SELECT * FROM sqlite_schema WHERE name = 'inbox_once'").fetchone()
            database.execute("DELETE FROM sqlite_schema WHERE name = 'inbox_once'")
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute(change)
            database.execute("PRAGMA writable_schema = ON")
            database.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)

    return corrupt


def deleted_log(path: Path, _rng: Random) -> None:
    _log_of(path).unlink()


def foreign_log(path: Path, _rng: Random) -> None:
    """Add the log of another database, as left behind by its process."""
    other = path.with_name("other.sqlite")
    code = (
        "import os, sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "d.execute('PRAGMA journal_mode = WAL'); d.execute('CREATE TABLE other (x TEXT)');"
        "[d.execute('INSERT INTO other VALUES (?)', ('x' * 900,)) for _ in range(40)]; os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(other)], check=False)
    os.replace(_log_of(other), _log_of(path))


def flipped_log(path: Path, rng: Random) -> None:
    for _ in range(8):
        _flip(_log_of(path), rng.randrange(32, _log_of(path).stat().st_size), rng)


def cut_log(path: Path, _rng: Random) -> None:
    os.truncate(_log_of(path), _log_of(path).stat().st_size * 2 // 3)


CORRUPTIONS: dict[str, Corrupt] = {
    "the magic word of the header": _without_log(header(0, b"NOSQL")),
    "the page size in the header": _without_log(header(16, b"\x02\x00")),
    "a header of zeros": _without_log(header(0, bytes(100))),
    "a first page of zeros": _without_log(header(0, bytes(PAGE))),
    "the schema format in the header": _without_log(header(44, b"\x00\x00\x00\x09")),
    "the text encoding in the header": _without_log(header(56, b"\x00\x00\x00\x03")),
    "a free page that is in use": _without_log(header(32, b"\x00\x00\x00\x05\x00\x00\x00\x02")),
    "the size in the header": _without_log(header(28, b"\x00\x00\x00\x08")),
    "the root page of a table": _without_log(schema("UPDATE sqlite_schema SET rootpage = 99999 WHERE name = 'inbox'")),
    "one root page for two tables": _without_log(
        schema(
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'inbox') "
            "WHERE name = 'history'"
        )
    ),
    "a definition that is no SQL": _without_log(
        schema("UPDATE sqlite_schema SET sql = 'CREATE ' WHERE name = 'inbox'")
    ),
    "a name that is no text": _without_log(
        schema("UPDATE sqlite_schema SET name = CAST(x'ac41' AS TEXT), sql = 'CREATE ' WHERE name = 'inbox'")
    ),
    "rows that an index lacks": _without_log(
        hidden_index(
            "INSERT INTO inbox SELECT id + 1, key || 'x', chat, native_id || 'x', sender, sender_name, kind, "
            "body, received_ms, reason, detail, turn_id, question_id, ended_ms, epoch, attempts FROM inbox "
            "ORDER BY id DESC LIMIT 1"
        )
    ),
    "rows that only an index has": _without_log(hidden_index("DELETE FROM inbox WHERE id % 7 = 0")),
    "half of the file": _without_log(cut(30)),
    "the last page missing": _without_log(cut(-1)),
    "the last page cut": _without_log(cut(-0.5)),
    "only the first page": _without_log(cut(1)),
    "nothing left": _without_log(cut(0)),
    **{f"a page of zeros, {n}": _without_log(filled_page(0)) for n in range(3)},
    **{f"a page of ones, {n}": _without_log(filled_page(0xFF)) for n in range(2)},
    **{f"a page of noise, {n}": _without_log(random_page) for n in range(3)},
    **{f"swapped pages, {n}": _without_log(swapped_pages) for n in range(3)},
    **{f"a page twice, {n}": _without_log(repeated_page) for n in range(2)},
    **{f"page headers, {n}": _without_log(flipped_page_headers) for n in range(3)},
    **{f"cell pointers, {n}": _without_log(flipped_cell_pointers) for n in range(3)},
    **{f"a hundred bits, {n}": _without_log(flipped_bits(100)) for n in range(3)},
    **{f"one bit, {n}": _without_log(flipped_bits(1)) for n in range(3)},
    "no log": deleted_log,
    "the log of another database": foreign_log,
    "a page of zeros under the log": header(3 * PAGE, bytes(PAGE)),
    "bits of the log": flipped_log,
    "a part of the log": cut_log,
}


def is_sound(database: Path, folder: Path) -> bool:
    """Result of the integrity check for a copy."""
    folder.mkdir()
    for file in (database, _log_of(database)):
        if file.exists():
            shutil.copy(file, folder)
    try:
        with closing(sqlite3.connect(folder / database.name)) as connection:
            connection.text_factory = bytes
            return bool(connection.execute("PRAGMA integrity_check").fetchall() == [(b"ok",)])
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def damaged(whole: Home, folder: Path, name: str) -> Home:
    """A copy of `whole` with the named damage."""
    shutil.copytree(whole.folder, folder)
    home = Home(folder)
    settings = (folder / "bot.yaml").read_text()
    (folder / "bot.yaml").write_text(settings.replace(str(whole.folder), str(folder)))
    CORRUPTIONS[name](home.database, Random(name))
    return home


async def started(home: Home) -> Ended | None:
    """How a start ended; None if the daemon runs."""
    command = ("run", "--config", str(home.folder / "bot.yaml"), "--no-console")
    async with a_forked_process("bot", *command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await process.stdout.readline()
            if line.startswith(b"Chat page"):
                return None
            said = await process.stderr.read()
            return Ended(await process.wait(), line.decode(), said.decode())


@pytest.mark.parametrize("name", CORRUPTIONS)
async def test_what_an_integrity_check_finds_is_refused_by_name_with_a_good_backup(
    whole: Home, tmp_path: Path, name: str
) -> None:
    home = damaged(whole, tmp_path / "home", name)
    sound = is_sound(home.database, tmp_path / "judge")
    before = home.database.read_bytes()
    ended = await started(home)
    if ended is None:
        assert sound
        return
    assert ended.status == 1
    assert "Traceback" not in ended.err
    assert f"{home.database} is damaged: " in ended.err
    backup = home.folder / "backups" / "rollcall-20260101T000000Z-x.db"
    assert f"the newest good backup is {backup}; to go back to it: rollcall restore {backup}" in ended.err
    assert home.database.read_bytes() == before


def test_the_table_has_enough_that_can_be_found(whole: Home, tmp_path: Path) -> None:
    found = []
    for number, name in enumerate(CORRUPTIONS):
        home = damaged(whole, tmp_path / f"{number}", name)
        if not is_sound(home.database, tmp_path / f"judge{number}"):
            found.append(name)
    assert len(found) >= 24


async def test_damage_that_shows_while_the_daemon_runs_ends_it_with_the_way_back(whole: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    shutil.copytree(whole.folder, home.folder)
    async with a_real_daemon(home.folder, NOWHERE) as daemon:
        # Another connection changes the schema, so that the daemon parses it again.
        schema("UPDATE sqlite_schema SET rootpage = 99999 WHERE name = 'inbox'", "PRAGMA schema_version = 9999")(
            home.database, Random(0)
        )
        assert await daemon.ended() == 1
    last = [orjson.loads(line) for line in daemon.log.read_bytes().splitlines()][-2:]
    ended = next(entry for entry in last if entry["event"] == "rollcall ended")
    assert "damaged" in ended["problem"]
    assert "rollcall-20260101T000000Z-x.db" in ended["hint"]
