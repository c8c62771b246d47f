"""Rows of CSV files as written by various spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scripts.errors import DataError, DataProblem
from services.scripts.files import MOST_BYTES, MOST_ROWS, csv_rows

ANN = [{"name": "Ann", "city": "Oslo"}]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"name,city\nAnn,Oslo\n", ANN),
        (b"\xef\xbb\xbfname;city\r\nAnn;Oslo\r\n", ANN),
        ("name\tcity\nAnn\tOslo".encode("utf-16"), ANN),
        (b"sep=|\nname|city\nAnn|Oslo", ANN),
        (b"\n\n name , city \n\n Ann , Oslo \n,\n", ANN),
        (b'name,city\n"Ann","Os,lo"\n', [{"name": "Ann", "city": "Os,lo"}]),
        (b'name;note\nAnn;"a, b; ""c""\nd"\n', [{"name": "Ann", "note": 'a, b; "c"\nd'}]),
        ("name,city\nZoë,Zürich".encode("cp1252"), [{"name": "Zoë", "city": "Zürich"}]),
        ("名字,城市\n安,北京".encode(), [{"名字": "安", "城市": "北京"}]),
        (b"name,,name\nAnn,1,x\n", [{"name": "Ann", "column2": "1", "name_2": "x"}]),
        (b"name,city\nAnn\n", [{"name": "Ann", "city": None}]),
        (b"name\nAnn,Oslo\n", [{"name": "Ann", "column2": "Oslo"}]),
        (
            b"price;name\n1,5;tea\n2,5;milk, sugar\n",
            [{"price": "1,5", "name": "tea"}, {"price": "2,5", "name": "milk, sugar"}],
        ),
        (b"name\nAnn\nBob\n", [{"name": "Ann"}, {"name": "Bob"}]),
        (b"name,city\n", []),
        (b"", []),
    ],
)
def test_a_file_is_read_as_it_was_meant(content: bytes, rows: list[Any]) -> None:
    assert csv_rows(content) == rows


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a\n" + b"x" * MOST_BYTES, DataProblem.FILE_TOO_LARGE),
        (b"a\n" + b"1\n" * (MOST_ROWS + 1), DataProblem.FILE_ROWS),
        (b"a," * 501 + b"\n", DataProblem.FILE_COLUMNS),
        (b"PK\0\1", DataProblem.NOT_CSV),
        (b'a,b\n"' + b"x" * 200_000, DataProblem.NOT_CSV),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, problem: DataProblem) -> None:
    with pytest.raises(DataError) as raised:
        csv_rows(content)
    assert raised.value.problem is problem


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8).map(str.strip)


@given(st.lists(st.tuples(CELLS.filter(bool), CELLS), max_size=6), st.sampled_from(",;"))
def test_what_a_program_writes_comes_back(cells: list[tuple[str, str]], separator: str) -> None:
    file = io.StringIO()
    csv.writer(file, delimiter=separator).writerows([("first", "second"), *cells])
    content = f"sep={separator}\n{file.getvalue()}".encode()
    assert csv_rows(content) == [{"first": first, "second": second} for first, second in cells]


@given(st.binary(max_size=60))
def test_any_bytes_are_rows_or_a_fault(content: bytes) -> None:
    try:
        rows = csv_rows(content)
    except DataError:
        return
    assert all(isinstance(name, str) and name for row in rows for name in row)
