"""The schedules of the settings, made to be what is kept: at the start, and whenever the settings were read again."""

from __future__ import annotations

import structlog

from bot.chats import Chats
from bot.schedule_plans import SchedulePlans
from services.refs import ChatRef
from services.schedules import Schedules

ORIGIN = "schedules"
_log = structlog.get_logger("schedules")


class SettingsSchedules:
    """Keeps the timers in step with the section `schedules` as it is in force."""

    def __init__(self, chats: Chats, plans: SchedulePlans, schedules: Schedules) -> None:
        self._chats = chats
        self.plans = plans
        """What the section means, for those who check it."""
        self._schedules = schedules
        self._seen: object = None

    async def keep_in_step(self) -> None:
        """Reconcile where the section, or what chats give it (a time zone, a bot), has changed since the last time."""
        entries = self._chats.schedules
        seen = (entries, [self._of_chat(ChatRef.parse(entry.chat)) for entry in entries.values()])
        if seen != self._seen and await self._reconcile():
            self._seen = seen

    async def _reconcile(self) -> bool:
        """Whether all is in step; what could not be kept is tried again. Faulty entries change nothing: what was kept
        under their names goes on, and the log says so."""
        plans = self.plans.of(self._chats.schedules)
        for fault in plans.faults:
            log = _log.warning if fault.severity == "warning" else _log.error
            log("schedule_not_usable", setting=f"{ORIGIN}.{fault.name}.{fault.key}", problem=fault.message)
        unread = {fault.name for fault in plans.faults}
        done = await self._schedules.reconcile(ORIGIN, plans.wanted, unread=unread)
        if done.added or done.changed or done.removed:
            _log.info("schedules_of_the_settings", added=done.added, changed=done.changed, removed=done.removed)
        return not done.failed

    def _of_chat(self, chat: ChatRef) -> tuple[str, str, bool]:
        served = self._chats.of(chat)
        return served.settings.timezone, served.settings.bot, served.allowed_by is not None
