"""Sources of functions: their problems, and an editor of BASIC scripts that checks while somebody types."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from bot.checks.scripts_check import check_scripts
from bot.platforms.http.wire import RequestError
from bot.web.desk.accounts import DeskRole
from bot.web.desk.desk import Desk, Verbatim, Visit
from config.diagnostics import Diagnostic
from config.sections.basic import BasicSource
from function_calls.schema.definition import DefinitionError, problems_of
from function_calls.spec import FunctionSpec

_MOST_SCRIPTS, _LONGEST_SCRIPT = 1_000, 200_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_STARTER = (
    'PARAM who AS string LIKE "Ann" DESCRIPTION "The person to greet"\n\n'
    'DESCRIPTION "Greet somebody by name"\n\nTALK "Hello ${who}!"\nRETURN "greeted"\n'
)


class Script(NamedTuple):
    """One script file of the settings' sources."""

    id: str
    """Its place: number of the source, and the path below the source's folder."""
    path: Path
    source: BasicSource


class SourcePages:
    """The pages, and the editor."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        """Problems for viewers; scripts for operators; changes for owners, since scripts run with granted rights."""
        desk, owner = self._desk, DeskRole.OWNER
        return [
            desk.get("/sources", self._page),
            desk.get("/sources/script", self._edit, DeskRole.OPERATOR),
            desk.post("/sources/new", self._new, owner),
            desk.post("/sources/check", self._check, owner),
            desk.post("/sources/script", self._save, owner),
        ]

    async def _page(self, visit: Visit) -> Response:
        scripts = await asyncio.to_thread(self._scripts)
        counts: dict[str, int] = {}
        for spec in self._desk.daemon.registry.specs:
            place = spec.origin.source.rpartition(":")[0] or spec.origin.source
            counts[place] = counts.get(place, 0) + 1
        return visit.page(
            "sources.html",
            "sources",
            faults=self._desk.daemon.functions.faults,
            files=sorted(counts.items()),
            scripts=scripts,
            folders=[
                (number, source.path)
                for number, source in enumerate(self._desk.settings.sources.basic)
                if source.path and source.path.is_dir()
            ],
        )

    async def _edit(self, visit: Visit) -> Response:
        script = await asyncio.to_thread(self._script, visit, visit.query.get("id", ""))
        text = await asyncio.to_thread(script.path.read_text, "utf-8-sig", "replace")
        return await self._editor(visit, script, text)

    async def _new(self, visit: Visit) -> Response:
        """The editor with a new script, which the first save creates."""
        name, number = visit.form.get("name", "").strip(), visit.form.get("source", "")
        if _NAME.fullmatch(name) is None:
            raise RequestError(422, "bad_request", visit.texts.say("sources.bad_name"))
        script = await asyncio.to_thread(self._script, visit, f"{number}/{name}.bas")
        if script.path.exists():
            raise RequestError(409, "conflict", visit.texts.say("sources.exists"))
        return await self._editor(visit, script, _STARTER)

    async def _check(self, visit: Visit) -> Response:
        script = await asyncio.to_thread(self._script, visit, visit.form.get("id", ""))
        found = await asyncio.to_thread(self._found, script, visit.form.get("text", ""))
        return visit.page("script_checked.html", "sources", found=found)

    async def _save(self, visit: Visit) -> Response:
        script = await asyncio.to_thread(self._script, visit, visit.form.get("id", ""))
        text = visit.form.get("text", "").replace("\r\n", "\n")
        if len(text) > _LONGEST_SCRIPT:
            raise RequestError(413, "too_large", visit.texts.say("sources.too_large"))
        await asyncio.to_thread(_write, script.path, text)
        note = self._desk.accounts.note(visit.account.actor, "script", script.path.name)
        await self._desk.daemon.store.commit([note])
        return visit.done(f"sources/script?id={script.id}", "saved")

    async def _editor(self, visit: Visit, script: Script, text: str) -> Response:
        found = await asyncio.to_thread(self._found, script, text)
        return visit.page("script.html", "sources", script=script, text=Verbatim(text), found=found)

    def _scripts(self) -> list[Script]:
        """All script files of the sources that are folders or files, at most 1,000."""
        found: list[Script] = []
        for number, source in enumerate(self._desk.settings.sources.basic):
            root = source.path
            if root is None:
                continue  # scripts in a bucket are edited there
            files = sorted(root.rglob("*.bas")) if root.is_dir() else [root]
            found += [
                Script(f"{number}/{file.relative_to(root) if root.is_dir() else file.name}", file, source)
                for file in files
                if file.is_file() and not file.is_symlink()
            ]
        return found[:_MOST_SCRIPTS]

    def _script(self, visit: Visit, id_: str) -> Script:
        """The script with that id, or a new one directly in a source's folder. Raises RequestError (404) otherwise."""
        known = next((script for script in self._scripts() if script.id == id_), None)
        if known is not None:
            return known
        number, _, name = id_.partition("/")
        sources = self._desk.settings.sources.basic
        if number.isdecimal() and int(number) < len(sources) and _NAME.fullmatch(name.removesuffix(".bas")):
            source = sources[int(number)]
            if source.path and source.path.is_dir() and visit.may(DeskRole.OWNER):
                return Script(id_, source.path / name, source)
        raise RequestError(404, "not_found", visit.texts.say("sources.unknown"))

    def _found(self, script: Script, text: str) -> Sequence[Diagnostic]:
        """Problems of the text as that script, as `rollcall basic check` reports them."""
        settings = self._desk.settings
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / script.path.name
            file.write_text(text, encoding="utf-8")
            source = script.source.model_copy(update={"path": file})
            try:
                found = check_scripts(settings, [source], self._others(script), tuple(settings.bots)).findings
            except DefinitionError as error:
                found = list(problems_of(error))
        return [
            Diagnostic(script.path.name, each.line, each.column, each.code, each.message, each.severity)
            for each in found
        ]

    def _others(self, script: Script) -> list[FunctionSpec]:
        """The functions whose names the script cannot use."""
        own = str(script.path)
        return [spec for spec in self._desk.daemon.registry.specs if not spec.origin.source.startswith(own)]


def _write(path: Path, text: str) -> None:
    """Replace the file in one step, with its permissions."""
    aside = path.with_name(f".{path.name}.new")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
    aside.replace(path)
