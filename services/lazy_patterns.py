"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # The package keeps what it has compiled; what was found stays here and is not looked for again.
        found = self.__dict__[name] = getattr(re.compile(self.pattern, self._flags), name)
        return found


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The expression, to call the methods of. Several hundred of them compiled at once took a tenth of every start, and
    few are used before somebody speaks of a time. A mistake in `pattern` shows only then."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
