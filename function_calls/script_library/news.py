"""What became of scripts at a look, for whoever keeps the bot: one line of the log."""

from __future__ import annotations

from typing import Literal

import structlog

_MOST_NAMED = 20
_log = structlog.get_logger("basic")

Happened = Literal["added", "changed", "compiled_anew", "broken", "deleted"]


class News:
    """Of one library, since it was told of last."""

    def __init__(self, where: str) -> None:
        """`where`: the scripts lie."""
        self._where = where
        self._paths: dict[Happened, list[str]] = {}

    def note(self, happened: Happened, path: str) -> None:
        """Remember it."""
        self._paths.setdefault(happened, []).append(path)

    def tell(self) -> None:
        """Write the line; none where nothing happened."""
        if not self._paths:
            return
        told: dict[str, object] = {}
        for happened, paths in self._paths.items():
            more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
            told |= {happened: len(paths), f"{happened}_scripts": ", ".join(sorted(paths)[:_MOST_NAMED]) + more}
        self._paths = {}
        _log.info("scripts_changed", where=self._where, **told)
