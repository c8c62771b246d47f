"""Lazily compiled patterns behave like compiled ones."""

from __future__ import annotations

import re

import pytest

from services.patterns import lazy_pattern


def test_it_finds_what_the_expression_finds() -> None:
    lazy, compiled = lazy_pattern(r"(?P<a>a)|b", re.IGNORECASE), re.compile(r"(?P<a>a)|b", re.IGNORECASE)
    for text in ("A", "xb", "", "c"):
        found, expected = lazy.search(text), compiled.search(text)
        assert (found and found.groupdict()) == (expected and expected.groupdict())
        assert lazy.sub("-", text) == compiled.sub("-", text)
    assert lazy.pattern == compiled.pattern
    assert lazy.groupindex == compiled.groupindex


def test_a_mistake_in_it_is_told_when_it_is_used() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error, match="unterminated"):
        broken.search("")
