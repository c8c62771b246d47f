"""Conversion of errors of the script services to runtime errors with texts for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value
from function_calls.basic.values import abbreviated
from services.patterns import visible_line
from services.scripts.files import MOST_ROWS as MOST_CSV_ROWS
from services.scripts.files import CsvError, ScriptFileTooLarge
from services.scripts.filters import FilterError
from services.scripts.memory import LONGEST_NAME, MOST_BYTES, MOST_NAMES, BadName, MemoryFull, NoDuration
from services.scripts.records import RecordError, RecordProblem
from services.scripts.tables import LONGEST_ID, BadRowId, BadTableName, Busy, NoKey, RowExists, TableFull, TableLimits
from services.scripts.tables import LONGEST_NAME as LONGEST_TABLE_NAME
from services.scripts.values import NotKeepable, TooLarge
from services.storage import StorageError
from services.web.addresses import host_of

_LONGEST_SHOWN = 60
_MEMORY = frozenset(
    {
        RecordProblem.TOO_LARGE,
        RecordProblem.TOO_MANY_ROWS,
        RecordProblem.TOO_MANY_COLUMNS,
        RecordProblem.TOO_MANY_CELLS,
    }
)


@contextmanager
def as_run_errors(run: ScriptRun, name: str = "") -> Iterator[None]:
    """Context manager that converts service errors to a RunError in the chat's language; other exceptions pass. `name`:
    of the table, file or value concerned."""
    try:
        yield
    except (FilterError, RecordError, CsvError) as fault:
        raise _of_a_problem(run, fault, name) from None
    except (TableFull, MemoryFull) as full:
        key = "memory_full" if isinstance(full, MemoryFull) else f"table_full.{full.of}"
        raise fault_of(run, RunCode.NOT_ALLOWED, key, **_LIMITS, name=name) from None
    except TooLarge as large:
        raise fault_of(run, RunCode.NOT_ALLOWED, "too_large", most=large.most_bytes // 1000, name=name) from None
    except ScriptFileTooLarge as large:
        raise fault_of(run, RunCode.NOT_ALLOWED, "csv.too_large", most=large.most_bytes // 1000, name=name) from None
    except NotKeepable:
        raise fault_of(run, RunCode.BAD_VALUE, "not_keepable", name=name) from None
    except (BadName, BadTableName, BadRowId, NoDuration) as bad:
        raise fault_of(run, RunCode.BAD_VALUE, _BAD[type(bad)], **_LIMITS, found=str(bad)) from None
    except RowExists as exists:
        raise fault_of(run, RunCode.BAD_VALUE, "row_exists", found=exists.row_id, name=name) from None
    except NoKey as missing:
        raise fault_of(
            run, RunCode.BAD_VALUE, "no_key", number=missing.number, found=missing.field, name=name
        ) from None
    except (Busy, StorageError) as error:
        key = "busy" if isinstance(error, Busy) else "csv.unreadable"
        raise fault_of(run, RunCode.UNAVAILABLE, key, name=name) from None


def fault_of(run: ScriptRun, code: RunCode, key: str, **values: object) -> RunError:
    """Runtime error with the sentence `script_data.<key>`; text values are sanitized to one line."""
    shown = {name: _one_line(value) if isinstance(value, str) else value for name, value in values.items()}
    return RunError(code, run.call.say(f"script_data.{key}", **shown))


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
_BAD: dict[type[Exception], str] = {
    BadName: "bad_name",
    BadTableName: "bad_table",
    BadRowId: "bad_id",
    NoDuration: "bad_duration",
}


def _of_a_problem(run: ScriptRun, fault: FilterError | RecordError | CsvError, name: str) -> RunError:
    if isinstance(fault, FilterError):
        key, at = f"filter.{fault.problem}", fault.position
        said = run.call.say(f"script_data.{key}", found=visible_line(fault.found)[:_LONGEST_SHOWN])
        where = run.call.say("script_data.filter_at", position=at, problem=said) if at else said
        return RunError(RunCode.BAD_VALUE, where)
    if isinstance(fault, RecordError):
        code = RunCode.MEMORY if fault.problem in _MEMORY else RunCode.BAD_VALUE
        kind = run.call.say(f"script_data.records.kinds.{fault.value}") if fault.value else ""
        shown = ", ".join(map(_one_line, abbreviated(fault.columns)))
        found = _one_line(fault.found)
        said = f"script_data.records.{fault.problem}"
        return RunError(code, run.call.say(said, found=found, columns=shown, row=fault.row, kind=kind))
    most = MOST_CSV_ROWS if fault.problem == "too_many_rows" else 1000
    return fault_of(run, RunCode.BAD_VALUE, f"csv.{fault.problem}", name=name, line=fault.line, most=most)
