"""Keyword modules made of functions that a test defines."""

from __future__ import annotations

from types import ModuleType


def a_module(name: str, *functions: object) -> ModuleType:
    """A module with `functions` as its members."""
    module = ModuleType(name)
    for number, function in enumerate(functions):
        function.__module__ = name
        setattr(module, f"keyword_{number}", function)
    return module
