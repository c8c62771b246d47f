"""docs/scaling.md: its processes form a cluster, its commands show what it shows, and its arithmetic is right."""

from __future__ import annotations

import math
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from services.calc.calculator import calculate
from services.store.postgres import cluster
from services.store.postgres.jobs import prepare_jobs
from tests.docs.documents import Page
from tests.docs.terminal import Terminal, steps_of
from tests.harness.postgres_server import PostgresServer

PAGE = Page("docs/scaling.md")
MOST_WORDS = 1500
_SECONDS = 60


@pytest.fixture
def running(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[tuple[Terminal, dict[str, str]]]:
    """A terminal next to the processes of the page, on a database of their own and on free ports, and its variables."""
    terminal = Terminal(tmp_path)
    [settings] = PAGE.of("yaml")
    home = shlex.quote(str(tmp_path / "shared"))
    text = settings.text.replace("/srv/rollcall", home)
    (terminal.house / "cluster.yaml").write_text(f"{text}\nlogging: {{console: 'off'}}\n", encoding="utf-8")
    [started] = PAGE.of("console", "Set up")
    commands = [step.command for step in steps_of([started])]
    exports = dict(command.removeprefix("export ").split("=", 1) for command in commands if "export" in command)
    url = postgres_server.new_database()
    variables = terminal.environment(**{**exports, "ROLLCALL_STORE_URL": url})
    processes = [command.removesuffix(" &") for command in commands if command.endswith(" &")]
    with ExitStack() as stack:
        ends = []
        for command in processes:
            on_free_port = re.sub(r"--port \d+", "--port 0", command)
            process = stack.enter_context(
                subprocess.Popen(
                    ["bash", "-c", f"exec env {on_free_port}"],
                    cwd=terminal.house,
                    env=variables,
                    stdout=subprocess.PIPE,
                )
            )
            stack.callback(process.kill)
            ends.append(process)
        for process in ends:
            assert process.stdout is not None
            assert b"http://" in process.stdout.readline()
        yield terminal, {**exports, "ROLLCALL_STORE_URL": url}
        for process in ends:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(_SECONDS) for process in ends] == [0] * len(processes)


def test_the_processes_of_the_page_form_a_cluster_whose_state_is_shown(
    running: tuple[Terminal, dict[str, str]],
) -> None:
    terminal, variables = running
    until_held = subprocess.run(
        ["bash", "-c", "until ./run cluster status >status.txt 2>&1; do :; done"],
        cwd=terminal.house, env=terminal.environment(**variables), timeout=_SECONDS, check=False,
    )  # fmt: skip
    assert until_held.returncode == 0
    terminal.follow(PAGE.of("console", "Status"), **variables)
    assert all((terminal.house / f"logs/{name}").is_dir() for name in ("gateway1", "gateway2", "worker1"))


def test_the_statements_on_the_tables_of_jobs_are_accepted(new_postgres_database: str) -> None:
    prepare_jobs(new_postgres_database)
    [statements] = PAGE.of("sql")
    with psycopg.connect(new_postgres_database) as server:
        server.execute(statements.text.encode())
        changed = "SELECT relname FROM pg_class WHERE relkind = 'r' AND reloptions IS NOT NULL ORDER BY 1"
        options = server.execute(changed).fetchall()
    assert options == [("procrastinate_events",), ("procrastinate_jobs",)]


def test_the_page_is_short_and_names_the_times_of_the_code() -> None:
    assert len(PAGE.text.split()) <= MOST_WORDS
    assert f"no heartbeat for {cluster.SILENT_SECONDS:.0f} seconds" in PAGE.text


def test_the_arithmetic_of_the_page_is_right() -> None:
    rows = re.findall(r"^\| [^|]+ \| ([\d,.×÷+ ]+)(?: bytes × (\d+))? \| ([\d,.]+)( GB)? \|$", PAGE.text, re.M)
    assert len(rows) >= 6
    for expression, factor, result, unit in rows:
        value = float(calculate(expression.replace(",", "")).value) * int(factor or 1) / (1e9 if unit else 1)
        expected = float(result.replace(",", ""))
        # Numbers of processes are rounded up.
        assert expected in (value, round(value), math.ceil(value)), expression
