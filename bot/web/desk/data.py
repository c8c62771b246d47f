"""Budgets, notes with their audience, backups, and accounts with the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import structlog
from starlette.responses import Response
from starlette.routing import Route

from bot.database.opening import database_of
from bot.housekeeping import backups_of
from bot.platforms.http.wire import RequestError
from bot.web.desk.accounts import Account, DeskRole
from bot.web.desk.desk import Desk, Visit, problem_with
from function_calls.checks.budgets import MICROS
from services.store import listings
from services.store.port import StoreError
from services.store.sqlite.upgrade import back_up, backups_in
from services.store.turns import audit

_DAYS, _MOST_NOTES, _AUDIT_ROWS = 7, 300, 200
_log = structlog.get_logger("desk")


class BackupFile(NamedTuple):
    """A backup in the folder of the settings."""

    name: str
    made: str
    size: str


class DataPages:
    """The pages, and their forms."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._one_backup_at_a_time = asyncio.Lock()

    def routes(self) -> list[Route]:
        """All pages; backups need an operator, accounts an owner."""
        desk, owner = self._desk, DeskRole.OWNER
        return [
            desk.get("/budgets", self._budgets),
            desk.get("/memory", self._memory, DeskRole.OPERATOR),
            desk.get("/backups", self._backups),
            desk.post("/backups", self._back_up),
            desk.get("/accounts", self._accounts, owner),
            desk.post("/accounts", self._put_account, owner),
            desk.post("/accounts/remove", self._remove_account, owner),
        ]

    async def _budgets(self, visit: Visit) -> Response:
        since = (datetime.now(UTC) - timedelta(days=_DAYS)).date().isoformat()
        shares = await self._desk.report(lambda reader: reader.used_shares(since))
        rows = [(share, f"{share.used / MICROS:.4f}" if share.kind == "money" else str(share.used)) for share in shares]
        return visit.page("budgets.html", "budgets", rows=rows, budgets=self._desk.settings.budgets, days=_DAYS)

    async def _memory(self, visit: Visit) -> Response:
        words = visit.query.get("words", "").strip()[:200]
        rows = await self._desk.daemon.store.read(listings.notes(words.lower(), _MOST_NOTES))
        return visit.page("memory.html", "memory", notes=rows, words=words)

    async def _backups(self, visit: Visit) -> Response:
        files = [] if self._is_on_server else await asyncio.to_thread(self._files)
        return visit.page("backups.html", "backups", files=files, on_server=self._is_on_server)

    async def _back_up(self, visit: Visit) -> Response:
        settings, clock = self._desk.settings, self._desk.clock
        if self._is_on_server:
            raise RequestError(409, "conflict", visit.texts.say("backups.on_server"))
        path, folder = database_of(settings), backups_of(settings)
        async with self._one_backup_at_a_time:
            try:
                made = await asyncio.to_thread(
                    back_up, path, folder, label="manual", clock=clock, keep=settings.store.backups_kept
                )
            except StoreError as error:
                _log.error("backup_failed", problem=str(error))
                raise RequestError(503, "unavailable", visit.texts.say("backups.failed")) from error
        note = self._desk.accounts.note(visit.account.actor, "backup", made.name)
        await self._desk.daemon.store.commit([note])
        return visit.done("backups", "saved")

    @property
    def _is_on_server(self) -> bool:
        return self._desk.settings.store.is_on_a_server

    def _files(self) -> Sequence[BackupFile]:
        settings = self._desk.settings
        found: list[Path] = list(backups_in(database_of(settings), backups_of(settings)))
        return [
            BackupFile(file.name, self._desk.local(int(stat.st_mtime * 1000)), f"{stat.st_size / 1e6:.1f} MB")
            for file in found
            if (stat := file.stat())
        ]

    async def _accounts(self, visit: Visit) -> Response:
        return await self._accounts_page(visit)

    async def _accounts_page(self, visit: Visit, problem: str = "", status: int = 200) -> Response:
        return visit.page(
            "accounts.html",
            "accounts",
            status=status,
            problem=problem,
            accounts=await self._desk.accounts.everyone(),
            roles=[role.value for role in DeskRole],
            audit=await self._desk.daemon.store.read(audit.last(_AUDIT_ROWS)),
        )

    async def _put_account(self, visit: Visit) -> Response:
        name, password = visit.form.get("name", "").strip(), visit.form.get("password", "")
        role = visit.form.get("role", "")
        problem = problem_with(visit.texts, name, password)
        if role not in [each.value for each in DeskRole]:
            problem = visit.texts.say("accounts.bad_role")
        if name == visit.account.name and role != DeskRole.OWNER.value:
            problem = visit.texts.say("accounts.own_role")
        if problem:
            return await self._accounts_page(visit, problem, 422)
        await self._desk.accounts.put(Account(name, DeskRole(role)), password, visit.account.actor)
        return visit.done("accounts", "saved")

    async def _remove_account(self, visit: Visit) -> Response:
        if not await self._desk.accounts.remove(visit.form.get("name", ""), visit.account.actor):
            return await self._accounts_page(visit, visit.texts.say("accounts.last_owner"), 409)
        return visit.done("accounts", "removed")
