"""Mappings with a limited number of entries."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(OrderedDict[_Key, _Value]):
    """A mapping that drops its oldest entries."""

    def __init__(self, most: int = 5000) -> None:
        """`most`: maximum number of entries."""
        super().__init__()
        self._most = most

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
