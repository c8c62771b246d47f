"""docs/comparison.md repeats recorded figures exactly."""

from __future__ import annotations

import re

from tests.docs.documents import Page

PAGE = Page("docs/comparison.md")


def rows(page: Page, head: str) -> list[list[str]]:
    """The cells of the table of `page` whose head begins with `head`."""
    [table] = re.findall(rf"^\| {re.escape(head)} \|.*?(?=\n\n|\Z)", page.text, re.DOTALL | re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]


def test_times_in_words_are_the_sums_of_the_measured_table() -> None:
    measured = [row for row in rows(Page("docs/times.md"), "source | language | reminder-like") if row[2] == "yes"]
    for (label, *figures), language in zip(rows(PAGE, "phrases"), ("en", "zh"), strict=True):
        sums = [sum(int(row[column]) for row in measured if row[1] == language) for column in range(3, 7)]
        assert label.endswith(f" {sums[0]}")
        assert [int(figure) for figure in figures if figure] == sums[1 : 1 + len([each for each in figures if each])]


def test_shares_of_found_functions_are_those_of_the_performance_page() -> None:
    measured = {row[0]: row for row in rows(Page("docs/performance.md"), "set")}
    for name, count, baseline, share in rows(PAGE, "set"):
        assert [count, baseline, share] == [measured[name][1], measured[name][2].partition(",")[0], measured[name][3]]


def test_ratios_are_those_of_the_performance_page() -> None:
    measured = {row[0]: row for row in rows(Page("docs/performance.md"), "figure")}
    recorded = [
        next(row[2] for name, row in measured.items() if name.startswith(begin))
        for begin in (
            "routed turn over the openai package",
            "… durable, from event",
            "… durable, with 30 earlier",
            "… against the bare validator",
        )
    ]
    assert [row[-1] for row in rows(PAGE, "Rollcall")] == [each.partition(" ")[0] for each in recorded]
