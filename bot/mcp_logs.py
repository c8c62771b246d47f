"""What the library of the protocol says for itself goes where everything goes: into our log, never to a terminal."""

from __future__ import annotations

import logging

import structlog

_NAME = "mcp"


class _IntoOurLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger("mcp")
        error = record.exc_info[1] if record.exc_info else None
        # Requests of others: nothing there is a failure of ours that `bot.mcp_server` has not told.
        log.warning("mcp_library", said=record.getMessage()[:300], exc_info=error)


def into_our_log() -> None:
    """Lead warnings of the library into the log; a second call does nothing."""
    logger = logging.getLogger(_NAME)
    if not any(isinstance(handler, _IntoOurLog) for handler in logger.handlers):
        logger.addHandler(_IntoOurLog(logging.WARNING))
        logger.propagate = False
