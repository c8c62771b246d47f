"""What goes on while a run takes long, told to the program that called: as progress where it asked for that, and as a
message of the log where it takes those."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, get_args

from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types import (
    EmptyResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SetLevelRequestParams,
)

Context = ServerRequestContext[Any, Any]
_LEVEL: LoggingLevel = "info"
_LEVELS: tuple[str, ...] = get_args(LoggingLevel)
"""The least first."""
_SESSIONS_KEPT = 1024


class Statuses:
    """Knows which session wants how much. As the protocol is now each request says so itself, and one that does not is
    sent nothing; before, a session that has not said so is sent all there is."""

    def __init__(self) -> None:
        self._wanted: OrderedDict[str, str] = OrderedDict()

    async def set_level(self, context: Context, params: SetLevelRequestParams) -> EmptyResult:
        """From now on the session is sent what is of that level or above."""
        session_id = session_of(context)
        self._wanted[session_id] = params.level
        self._wanted.move_to_end(session_id)
        if len(self._wanted) > _SESSIONS_KEPT:
            self._wanted.popitem(last=False)
        return EmptyResult()

    def forget(self, session_id: str) -> None:
        """That session has ended."""
        self._wanted.pop(session_id, None)

    async def tell(self, context: Context, function: str, step: int, text: str) -> None:
        """Tell whoever waits for `function` that it has come to `step`, the how manieth that is told."""
        await context.session.report_progress(step, None, text)
        if not self._wants(context):
            return
        message = LoggingMessageNotificationParams(level=_LEVEL, logger=function, data=text)
        await context.session.send_notification(LoggingMessageNotification(params=message), context.request_id)

    def _wants(self, context: Context) -> bool:
        if _LEVEL not in allowed_log_levels(context.protocol_version, context.meta):
            return False
        least = self._wanted.get(session_of(context), _LEVEL)
        return _LEVELS.index(least) <= _LEVELS.index(_LEVEL)


def session_of(context: Context) -> str:
    """The session of a request; empty where there is one alone, or none."""
    return context.request.headers.get("mcp-session-id", "") if context.request is not None else ""
