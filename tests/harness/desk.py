"""The operators' desk on a real port, with a daemon on a virtual clock, and people with browsers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from bot.testing import Group, a_group
from bot.web.desk.accounts import Account, Accounts, DeskRole
from bot.web.page import OwnerLink
from bot.web.wiring import Web
from config.settings import Settings

PASSWORD = "correct horse battery"


class Person:
    """Somebody with a browser: keeps cookies, sends the origin and the token of forms."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self._csrf = ""

    async def get(self, path: str, **options: Any) -> httpx2.Response:
        """The page at `path`, following redirects; remembers the token of its forms."""
        response = await self.http.get(path, follow_redirects=True, **options)
        if found := re.search(r'name="csrf" value="([0-9a-f]+)"', response.text):
            self._csrf = found[1]
        return response

    async def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> httpx2.Response:
        """The response to a form with `fields` and the remembered token, without following redirects."""
        sent = {"csrf": self._csrf, **(fields or {})}
        return await self.http.post(path, data=sent, headers={"origin": str(self.http.base_url).rstrip("/"), **headers})


@dataclass(frozen=True, slots=True)
class DeskWorld:
    """A daemon with its desk."""

    group: Group
    web: Web
    address: str
    accounts: Accounts

    @asynccontextmanager
    async def visitor(self) -> AsyncIterator[Person]:
        """Somebody who is not logged in."""
        async with httpx2.AsyncClient(base_url=self.address, timeout=20, trust_env=False, verify=False) as http:
            yield Person(http)

    @asynccontextmanager
    async def person(self, role: DeskRole = DeskRole.OWNER, name: str = "") -> AsyncIterator[Person]:
        """Somebody logged in to a new account with that role, named like it by default."""
        account = Account(name or role.value, role)
        await self.accounts.put(account, PASSWORD, "test")
        async with self.visitor() as visitor:
            response = await visitor.post("/desk/login", {"name": account.name, "password": PASSWORD})
            assert response.status_code == 303, response.text
            await visitor.get("/desk")
            yield visitor

    async def owner_link(self) -> str:
        """The token of a new owner link."""
        link = await OwnerLink.make(self.group.daemon.store, self.group.clock)
        return link.url("").partition("owner=")[2]


@asynccontextmanager
async def a_desk(
    functions: Sequence[object] = (),
    settings: Mapping[str, Any] | None = None,
    settings_file: Path | None = None,
    **more: Any,
) -> AsyncIterator[DeskWorld]:
    """A group whose daemon serves the page and the desk; `more` is passed to `a_group`."""
    given = {"platforms": {"web": {"port": 0}}, **(settings or {})}
    loaded: list[Settings] = []

    def keep(fresh: Settings) -> Settings:
        loaded.append(fresh)
        return fresh

    async with a_group(functions, settings=given, prepare=keep, **more) as group:
        daemon = group.daemon
        web = await Web.build(loaded[0], daemon.store, daemon.ids, group.clock, settings_file)
        web.live(daemon.live)
        address = await web.start(daemon)
        try:
            yield DeskWorld(group, web, address, Accounts(daemon.store, daemon.ids, group.clock))
        finally:
            await web.stop()
