"""A source: a place where function specs come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from function_calls.spec import FunctionSpec


class FunctionSource(Protocol):
    """Publishes a snapshot of specs. The registry cannot tell sources apart."""

    name: str

    def load(self) -> Sequence[FunctionSpec]:
        """The specs as they are now. Raises DefinitionError for the first definition that cannot be used."""
