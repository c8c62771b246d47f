"""Attribute docstrings."""

from __future__ import annotations

from typing import ClassVar

from config.terms import attribute_docs


class Base:
    first: int = 1
    """One."""
    bare: int = 2


class Derived(Base):
    """Of the class itself."""

    first: int = 3
    """Another one,
    over two lines."""
    unit: ClassVar[str] = "s"
    """Of all."""

    def act(self) -> None:
        """Not of an attribute."""


def test_each_annotated_attribute_has_the_text_under_it_and_its_own_counts_more_than_its_bases() -> None:
    assert attribute_docs(Base) == {"first": "One."}
    assert attribute_docs(Derived) == {"first": "Another one,\nover two lines.", "unit": "Of all."}
