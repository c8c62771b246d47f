"""All routes of the desk."""

from __future__ import annotations

from starlette.routing import Route

from bot.web.desk.chats import ChatPages
from bot.web.desk.data import DataPages
from bot.web.desk.desk import Desk
from bot.web.desk.logs import LogPages
from bot.web.desk.overview import Overview
from bot.web.desk.settings import SettingsPages
from bot.web.desk.sources import SourcePages
from bot.web.desk.waiting import WaitingPages


def desk_routes(desk: Desk) -> list[Route]:
    """The log-in, the static files, and the pages of every section."""
    return [
        *desk.routes(),
        *Overview(desk).routes(),
        *ChatPages(desk).routes(),
        *WaitingPages(desk).routes(),
        *DataPages(desk).routes(),
        *SettingsPages(desk).routes(),
        *SourcePages(desk).routes(),
        *LogPages(desk).routes(),
    ]
