"""Conversion of errors of the script services to runtime errors with texts for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value
from function_calls.basic.values import abbreviated
from services.patterns import visible_line
from services.scripts.errors import DataError, DataProblem
from services.scripts.filters import FilterError
from services.scripts.memory import LONGEST_NAME, MOST_BYTES, MOST_NAMES
from services.scripts.tables import LONGEST_ID, TableLimits
from services.scripts.tables import LONGEST_NAME as LONGEST_TABLE_NAME
from services.storage import StorageError
from services.web.addresses import host_of

_LONGEST_SHOWN = 60
_CODES = {
    **dict.fromkeys(
        (
            DataProblem.TOO_LARGE,
            DataProblem.MEMORY_FULL,
            DataProblem.TABLE_ROWS,
            DataProblem.TABLE_BYTES,
            DataProblem.TABLES,
            DataProblem.FILE_TOO_LARGE,
        ),
        RunCode.NOT_ALLOWED,
    ),
    **dict.fromkeys(
        (
            DataProblem.RESULT_ROWS,
            DataProblem.RESULT_COLUMNS,
            DataProblem.RESULT_CELLS,
            DataProblem.RESULT_TEXT,
        ),
        RunCode.MEMORY,
    ),
    DataProblem.BUSY: RunCode.UNAVAILABLE,
}
"""Codes of all problems but those of a bad value."""


@contextmanager
def as_run_errors(run: ScriptRun, name: str = "") -> Iterator[None]:
    """Context manager that converts service errors to a RunError in the chat's language; other exceptions pass. `name`:
    of the table, file or value concerned."""
    try:
        yield
    except FilterError as fault:
        raise _of_filter(run, fault) from None
    except DataError as error:
        raise _of_data(run, error, name) from None
    except StorageError:
        raise fault_of(run, RunCode.UNAVAILABLE, "csv.unreadable", name=name) from None


def fault_of(run: ScriptRun, code: RunCode, key: str, **values: object) -> RunError:
    """Runtime error with the sentence `script_data.<key>`; texts and lists of texts are sanitized to one line."""
    shown = {name: _shown(value) for name, value in values.items()}
    return RunError(code, run.call.say(f"script_data.{key}", **shown))


def _shown(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(map(_one_line, abbreviated(value)))
    return _one_line(value) if isinstance(value, str) else value


def _one_line(value: str) -> str:
    """A name from a script on one line. Of a URL only the host, since it may contain keys."""
    shown = host_of(value) if "://" in value else value
    return visible_line(shown)[:_LONGEST_SHOWN]


def wrong_type(run: ScriptRun, key: str) -> RunError:
    """The error for a value of the wrong type: the sentence `script_data.wrong.<key>`."""
    return fault_of(run, RunCode.WRONG_TYPE, f"wrong.{key}")


def text_in(run: ScriptRun, value: Value, key: str) -> str:
    """The value as a name. Raises RunError (`script_data.wrong.<key>`) if it is neither a text nor a number."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise wrong_type(run, key)


_ROOM = TableLimits()
_LIMITS = {
    "most_rows": _ROOM.rows,
    "most_tables": _ROOM.tables,
    "most_table_megabytes": _ROOM.table_bytes // 1_000_000,
    "most_names": MOST_NAMES,
    "most_megabytes": MOST_BYTES // 1_000_000,
    "longest_name": LONGEST_NAME,
    "longest_table": LONGEST_TABLE_NAME,
    "longest_id": LONGEST_ID,
}


def _of_filter(run: ScriptRun, fault: FilterError) -> RunError:
    said = run.call.say(f"script_data.filter.{fault.problem}", found=visible_line(fault.found)[:_LONGEST_SHOWN])
    if fault.position:
        said = run.call.say("script_data.filter_at", position=fault.position, problem=said)
    return RunError(RunCode.BAD_VALUE, said)


def _of_data(run: ScriptRun, error: DataError, name: str) -> RunError:
    values = {**_LIMITS, "name": name, **error.values}
    if "kind" in values:
        values["kind"] = run.call.say(f"script_data.records.kinds.{values['kind']}")
    return fault_of(run, _CODES.get(error.problem, RunCode.BAD_VALUE), error.problem, **values)
