from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from services.storage import name_matches, path_matches


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.txt", "a.txt", True),
        ("*.txt", "b/a.txt", False),
        ("**/*.txt", "a.txt", True),
        ("**/*.txt", "b/c/a.txt", True),
        ("b/**", "b/c/d", True),
        ("b/**", "b", True),
        ("b/**/d", "b/d", True),
        ("b/**/d", "b/c/c/d", True),
        ("**/c/**/d", "a/c/b/c/d", True),
        ("**/c/**/d", "a/b/d", False),
        ("?.md", "a.md", True),
        ("?.md", "ab.md", False),
        ("[ab].md", "a.md", False),
        ("笔记/*", "笔记/今天.txt", True),
    ],
)
def test_stars_stand_for_names_and_two_for_folders(pattern: str, path: str, fits: bool) -> None:
    assert path_matches(pattern.split("/"), path.split("/")) is fits


@given(some.text("ab*?", max_size=8), some.text("ab", max_size=8))
def test_a_name_fits_as_a_regular_expression_says(pattern: str, name: str) -> None:
    expression = "".join(".*" if one == "*" else "." if one == "?" else one for one in pattern)
    assert name_matches(pattern, name) is (re.fullmatch(expression, name) is not None)


@given(
    some.lists(some.sampled_from(["**", "a", "b", "*"]), max_size=6), some.lists(some.sampled_from("ab"), max_size=6)
)
def test_a_path_fits_as_its_names_do_one_by_one(pattern: list[str], path: list[str]) -> None:
    free = pattern.count("**")
    lengths = itertools.product(range(len(path) + 1), repeat=free)

    def spelled(counts: tuple[int, ...]) -> list[str]:
        left = iter(counts)
        return [one for part in pattern for one in (["*"] * next(left) if part == "**" else [part])]

    expected = any(len(names) == len(path) and all(map(name_matches, names, path)) for names in map(spelled, lengths))
    assert path_matches(pattern, path) is expected


def test_no_pattern_takes_long() -> None:
    began = time.process_time()
    assert not name_matches("*a" * 100 + "b", "a" * 200)
    assert not path_matches(["**", "a"] * 6 + ["b"], ["a"] * 12)
    assert time.process_time() - began < 1
