"""The rows of the tables that scripts of a bot keep."""

from __future__ import annotations

from services.store.schema import integer, table, text

SCRIPT_ROWS = table(
    "script_rows",
    text("bot", primary_key=True),
    text("table_name", primary_key=True),  # in lower case
    text("row_id", primary_key=True),
    integer("number"),  # counts the rows of a table in the order in which they came
    text("fields"),  # JSON object
    integer("changed_ms"),
)
