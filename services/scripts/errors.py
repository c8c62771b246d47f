"""Errors of operations on the data of scripts: stored values, tables, files and lists of records."""

from __future__ import annotations

from enum import StrEnum


class DataProblem(StrEnum):
    """Reason why an operation failed; texts under `script_data.…`."""

    NOT_KEEPABLE = "not_keepable"
    """The value cannot be stored: nested too deeply, with NaN or infinity, or not JSON."""
    TOO_LARGE = "too_large"
    """The value as JSON is larger than `most` kB."""

    BAD_NAME = "bad_name"
    """The name in memory is empty, too long, or not printable."""
    BAD_DURATION = "bad_duration"
    """The value is not a duration such as a number of days or `2 weeks`."""
    MEMORY_FULL = "memory_full"

    BAD_TABLE = "bad_table"
    """The table name is empty, too long, or not printable."""
    BAD_ID = "bad_id"
    """The row id is too long, not printable, or neither text nor number."""
    ROW_EXISTS = "row_exists"
    """The table already has a row with the id `found`, so it was not inserted."""
    NO_KEY = "no_key"
    """Row `number`, from 1, of the rows to be merged has no value in the key field `found`."""
    TABLE_ROWS = "table_full.rows"
    TABLE_BYTES = "table_full.bytes"
    TABLES = "table_full.tables"
    BUSY = "busy"
    """Every attempt conflicted with concurrent changes of the same rows."""

    FILE_TOO_LARGE = "csv.too_large"
    """The file is larger than `most` kB."""
    FILE_ROWS = "csv.too_many_rows"
    FILE_COLUMNS = "csv.too_many_columns"
    NOT_CSV = "csv.not_csv"
    """The file is binary or invalid in `line`, from 1; 0 for the whole file."""

    NO_TOTAL = "records.no_total"
    NO_JOIN = "records.no_join"
    NO_MAPPING = "records.no_mapping"
    RESULT_ROWS = "records.too_many_rows"
    RESULT_COLUMNS = "records.too_many_columns"
    RESULT_CELLS = "records.too_many_cells"
    RESULT_TEXT = "records.too_large"
    NO_COLUMN = "records.no_column"
    """No row has the column `found`; `columns` are the existing ones."""
    NO_NUMBER = "records.no_number"
    """The column `found` in `row`, from 1, has a value of this `kind`: `text`, `truth`, `list` or `map`."""


class DataError(Exception):
    """An operation on the data of a script failed; `values` fill the placeholders of its text."""

    def __init__(self, problem: DataProblem, **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.values = values
