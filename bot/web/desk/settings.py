"""Settings and functions: effective values with their places, statistics, and changes of the operator's file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from bot.checks.plan import Planned
from bot.platforms.http.wire import RequestError
from bot.web.desk.accounts import DeskRole
from bot.web.desk.chats import DAYS_LISTED, why
from bot.web.desk.desk import Desk, Verbatim, Visit
from bot.web.desk.settings_file import Checked, FileChanged, SettingsFile
from function_calls.schema.definition import DefinitionError
from function_calls.spec import FunctionSpec
from services.refs import ChatRef
from services.store import reports
from services.store.ids import first_id_at
from services.store.reader import CallStatistics

_DAY_MS = 24 * 3_600_000
_CHATS_LISTED = 200
_NAMES_IN_AUDIT = 20
_PLANNED, _CHANGES_SHOWN = 1_000, 200


class FunctionLine(NamedTuple):
    """One function in the list."""

    spec: FunctionSpec
    bots: str
    statistics: CallStatistics | None
    """Statistics of the last 24 hours; None without a run."""
    is_on: bool
    """In the chosen chat; without one, as far as the whole file decides."""
    layer: str
    """The settings key that decides; empty for the default."""


class SettingsPages:
    """The pages, and their forms."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        path = desk.settings_file
        self._one_plan_at_a_time = asyncio.Lock()
        self._file = None if path is None else SettingsFile(path, desk.daemon.live)

    def routes(self) -> list[Route]:
        """Lists for viewers; the file and its changes for owners."""
        desk, owner = self._desk, DeskRole.OWNER
        return [
            desk.get("/functions", self._functions),
            desk.post("/functions/{name}", self._switch, owner),
            desk.get("/settings", self._settings),
            desk.get("/settings/file", self._edit, owner),
            desk.post("/settings/check", self._check, owner),
            desk.post("/settings/plan", self._plan, owner),
            desk.post("/settings/file", self._save, owner),
        ]

    async def _functions(self, visit: Visit) -> Response:
        daemon, since_ms = self._desk.daemon, self._desk.clock.now_ms() - _DAY_MS
        found = await self._desk.report(lambda reader: reader.call_statistics(since_ms))
        statistics = {each.function: each for each in found}
        chat = visit.query.get("chat", "")
        chats = await daemon.store.read(reports.chats(first_id_at(since_ms - DAYS_LISTED * _DAY_MS), _CHATS_LISTED))
        bots: dict[FunctionSpec, list[str]] = {}
        for bot in daemon.chats.bots:
            for spec in daemon.registry.of(bot).specs:
                bots.setdefault(spec, []).append(bot)
        lines = [
            FunctionLine(spec, ", ".join(names), statistics.get(spec.name), *self._state(spec.name, chat))
            for spec, names in sorted(bots.items(), key=lambda item: item[0].name)
        ]
        return visit.page(
            "functions.html",
            "functions",
            lines=lines,
            chat=chat,
            chats=[row["chat"] for row in chats],
            may_switch=self._file is not None and visit.may(DeskRole.OWNER),
        )

    def _state(self, function: str, chat: str) -> tuple[bool, str]:
        if chat:
            resolved = self._desk.daemon.chats.of(ChatRef.parse(chat)).settings.functions.get(function)
            return (True, "") if resolved is None else (resolved.enabled, resolved.layers.get("enabled", ""))
        of_file = self._desk.settings.functions.get(function)
        is_off = of_file is not None and of_file.enabled is False
        return not is_off, f"functions.{function}" if is_off else ""

    async def _switch(self, visit: Visit) -> Response:
        """The file with the function on or off, in a chat or in all, to be looked at and saved."""
        chat, is_on = visit.form.get("chat", ""), visit.form.get("on") == "1"
        place = ("chats", "settings", chat, "functions") if chat else ("functions",)
        file = self._opened(visit)
        text = await asyncio.to_thread(file.with_value, (*place, visit.path["name"], "enabled"), is_on)
        key = "settings.switch_on" if is_on else "settings.switch_off"
        notice = visit.texts.say(key, function=visit.path["name"], chat=chat or visit.texts.say("functions.all_chats"))
        return await self._edit_page(visit, file, await asyncio.to_thread(file.checked, text), notice=notice)

    async def _settings(self, visit: Visit) -> Response:
        words = visit.query.get("words", "").strip().lower()
        entries = await asyncio.to_thread(self._file.entries) if self._file else []
        shown = [entry for entry in entries if words in entry.path.lower() or words in entry.about.lower()]
        return visit.page(
            "settings.html",
            "settings",
            entries=shown,
            words=words,
            file=self._file.path.name if self._file else "",
            faults=self._desk.daemon.reload.faults,
        )

    async def _edit(self, visit: Visit) -> Response:
        file = self._opened(visit)
        return await self._edit_page(visit, file, await asyncio.to_thread(lambda: file.checked(file.text())))

    async def _check(self, visit: Visit) -> Response:
        checked = await asyncio.to_thread(self._opened(visit).checked, visit.form.get("text", ""))
        return visit.page("settings_checked.html", "settings", checked=checked)

    async def _plan(self, visit: Visit) -> Response:
        """Page with the recent messages that would end differently with the text as the settings."""
        file, text = self._opened(visit), visit.form.get("text", "")
        async with self._one_plan_at_a_time:
            try:
                found = await asyncio.to_thread(file.plan, text, _PLANNED)
            except DefinitionError:
                found = None
        if found is None:
            return await self._edit_page(visit, file, await asyncio.to_thread(file.checked, text), status=422)
        changes = [
            (change, *(_ended(end, visit) for end in (change.old, change.new)))
            for change in found.changes[:_CHANGES_SHOWN]
        ]
        values = {"plan": found, "changes": changes, "text": Verbatim(text), "version": visit.form.get("version", "")}
        return visit.page("plan.html", "settings", status=200, **values)

    async def _save(self, visit: Visit) -> Response:
        file, text = self._opened(visit), visit.form.get("text", "")
        checked = await asyncio.to_thread(file.checked, text)
        if not checked.is_valid:
            return await self._edit_page(visit, file, checked, status=422)
        try:
            await asyncio.to_thread(file.write, text, visit.form.get("version", ""))
        except FileChanged:
            problem = visit.texts.say("settings.file_changed")
            return await self._edit_page(visit, file, checked, problem=problem, status=409)
        changed = [*checked.at_once, *checked.at_start]
        note = self._desk.accounts.note(visit.account.actor, "settings", _named(changed))
        await self._desk.daemon.store.commit([note])
        await self._desk.daemon.reload.now()
        return visit.done("settings", "saved")

    async def _edit_page(
        self,
        visit: Visit,
        file: SettingsFile,
        checked: Checked,
        *,
        problem: str = "",
        notice: str = "",
        status: int = 200,
    ) -> Response:
        version = visit.form.get("version") or await asyncio.to_thread(file.version)
        values = {"checked": checked, "version": version, "file": file.path.name, "problem": problem, "notice": notice}
        return visit.page("settings_file.html", "settings", status=status, **values)

    def _opened(self, visit: Visit) -> SettingsFile:
        if self._file is None:
            raise RequestError(409, "conflict", visit.texts.say("settings.no_file"))
        return self._file


def _ended(planned: Planned, visit: Visit) -> str:
    """The end of a message in words, with the calls."""
    calls = [f"{call.function} {call.arguments}" for call in planned.calls]
    words = [f"{planned.end}: {why(visit, planned.reason, planned.detail)}", *calls, planned.reply]
    return "; ".join(word.rstrip(".") for word in words if word)


def _named(changed: Sequence[str]) -> str:
    return ", ".join(changed[:_NAMES_IN_AUDIT]) + (" …" if len(changed) > _NAMES_IN_AUDIT else "")
