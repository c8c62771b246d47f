"""Sources of functions: their problems, and an editor of BASIC scripts that checks while somebody types."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from bot.checks.scratch import scratch_daemon
from bot.checks.script_trial import Ended, ScriptTrial, Step, Trying, no_web, script_source, specs_of, trial_settings
from bot.checks.scripts_check import Checked, check_scripts
from bot.overrides import Overrides
from bot.platforms.http.wire import RequestError
from bot.web.desk.accounts import DeskRole
from bot.web.desk.desk import Desk, Verbatim, Visit
from bot.web.desk.settings_file import replace_text
from config.diagnostics import Diagnostic
from config.sections.basic import BasicSource
from config.settings import Settings
from function_calls.basic import STOPPED_AT
from function_calls.schema.commands import value_of
from function_calls.schema.definition import DefinitionError, problems_of
from function_calls.spec import FunctionSpec
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef, Role

_MOST_SCRIPTS, _LONGEST_SCRIPT = 1_000, 200_000
_TRIAL_SECONDS, _MOST_STEPS, _MOST_SHOWN_CHARS = 20.0, 200, 10_000
_TRIAL_CHAT = ChatRef("desk", "main", "trial")
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
        self._trial = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Problems for viewers; scripts for operators; changes for owners, since scripts run with granted rights."""
        desk, owner = self._desk, DeskRole.OWNER
        return [
            desk.get("/sources", self._page),
            desk.get("/sources/script", self._edit, DeskRole.OPERATOR),
            desk.post("/sources/new", self._new, owner),
            desk.post("/sources/check", self._check, owner),
            desk.post("/sources/try", self._try, owner),
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
        checked = await asyncio.to_thread(self._checked, script, visit.form.get("text", ""))
        form = {name: Verbatim(value) for name, value in visit.form.items()}
        return visit.page("script_checked.html", "sources", checked=checked, form=form, is_update=True)

    async def _try(self, visit: Visit) -> Response:
        """Run the text of the editor in a thread with its own event loop, so that members' turns are not delayed."""
        script = await asyncio.to_thread(self._script, visit, visit.form.get("id", ""))
        if self._trial.locked():
            return visit.page("script_tried.html", "sources", problem=visit.texts.say("sources.trial_running"))
        async with self._trial:
            steps = await asyncio.to_thread(_tried, self._desk.settings, script, visit.form, visit.account.name)
        if not steps or not isinstance(steps[-1], Ended):
            return visit.page("script_tried.html", "sources", problem=visit.texts.say("sources.trial_broken"))
        result, data = steps[-1].result, ""
        if result.data is not None:
            data = json.dumps(result.data, ensure_ascii=False, default=str)[:_MOST_SHOWN_CHARS]
        shown = steps[:-1][:_MOST_STEPS]
        where = result.metadata.get(STOPPED_AT)
        return visit.page(
            "script_tried.html", "sources", problem="", steps=shown, result=result, data=data, where=where
        )

    async def _save(self, visit: Visit) -> Response:
        script = await asyncio.to_thread(self._script, visit, visit.form.get("id", ""))
        text = visit.form.get("text", "").replace("\r\n", "\n")
        if len(text) > _LONGEST_SCRIPT:
            raise RequestError(413, "too_large", visit.texts.say("sources.too_large"))
        await asyncio.to_thread(replace_text, script.path, text)
        note = self._desk.accounts.note(visit.account.actor, "script", script.path.name)
        await self._desk.daemon.store.commit([note])
        return visit.done(f"sources/script?id={script.id}", "saved")

    async def _editor(self, visit: Visit, script: Script, text: str) -> Response:
        checked = await asyncio.to_thread(self._checked, script, text)
        text = Verbatim(text)
        return visit.page("script.html", "sources", script=script, text=text, checked=checked, form={}, is_update=False)

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

    def _checked(self, script: Script, text: str) -> Checked:
        """Tools and problems of the text as that script, as `rollcall basic check` reports them."""
        settings, name = self._desk.settings, script.path.name
        with _as_file(script, text) as source:
            try:
                checked = check_scripts(settings, [source], self._others(script), tuple(settings.bots))
            except DefinitionError as error:
                checked = Checked(list(problems_of(error)))
        checked.findings = [
            Diagnostic(name, each.line, each.column, each.code, each.message, each.severity)
            for each in checked.findings
        ]
        return checked

    def _others(self, script: Script) -> list[FunctionSpec]:
        """The functions whose names the script cannot use."""
        own = str(script.path)
        return [spec for spec in self._desk.daemon.registry.specs if not spec.origin.source.startswith(own)]


@contextmanager
def _as_file(script: Script, text: str) -> Iterator[BasicSource]:
    """A source with the text as that script in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / script.path.name
        file.write_text(text, encoding="utf-8")
        yield script_source(script.path, script.source).model_copy(update={"path": file})


def _tried(settings: Settings, script: Script, form: Mapping[str, str], name: str) -> list[Step]:
    """Events of a run of the form's text with its arguments and answers, by the owner `name`; empty if the text has
    errors. Raises StoreError."""
    with _as_file(script, form.get("text", "")) as source:
        try:
            return asyncio.run(_run(settings, source, form, name))
        except DefinitionError:
            return []


async def _run(settings: Settings, source: BasicSource, form: Mapping[str, str], name: str) -> list[Step]:
    clock, answers = SystemClock(), iter(form.get("answers", "").splitlines())

    async def next_answer() -> str | None:
        return next(answers, None)

    trying = Trying(MemberRef("desk", "main", name), name, Role.OWNER, _TRIAL_CHAT)
    overrides = Overrides(clock=clock, web=no_web("was not contacted: a trial has no network access"))
    async with scratch_daemon(trial_settings(settings, source, _TRIAL_CHAT), overrides) as daemon:
        specs = specs_of(daemon, _TRIAL_CHAT, Path(source.where))
        spec = next((spec for spec in specs if form.get("tool", spec.name) == spec.name), None)
        if spec is None:
            return []
        arguments = {
            parameter: value_of(schema, value)
            for parameter, schema in spec.parameters["properties"].items()
            if (value := form.get(f"argument.{spec.name}.{parameter}"))
        }
        trial = ScriptTrial(daemon, clock, trying, _TRIAL_SECONDS)
        return [step async for step in trial.steps(spec, arguments, next_answer)]
