"""`rollcall doctor`: check settings, database, disk, sandbox, models, search, feeds and networks."""

from __future__ import annotations

import argparse
import asyncio
import functools
import http.client
import json
import os
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from bot.checks.functions_check import Code, ProcessUse, check_functions, processes_of
from bot.cli.cluster import check_cluster
from bot.cli.options import add_config, config_path
from bot.database.opening import database_of, restore_advice, state_on_server
from bot.platforms.adapter import Adapter, CannotOpen
from bot.registration.models import online_models
from bot.registration.services import news_of, searcher_of
from config.diagnostics import Diagnostic
from config.loader import check_settings
from config.sections.mcp import McpServerSettings
from config.sections.media import MediaModelSettings
from config.sections.networks import NetworkSettings, import_adapter
from config.settings import Settings
from config.texts import Texts
from function_calls.schema.definition import DefinitionError
from services.clock import SystemClock
from services.extras import missing_extra
from services.knowledge import KnowledgeBases, Summary
from services.llm.model import ChatModel, ModelError
from services.llm.offline.offline import OfflineModel
from services.mcp.stored_logins import StoredLogin
from services.media.models import MediaError, MediaModels
from services.refs import ModelProblem
from services.sandbox.sandbox import Sandbox
from services.store.migrations.transaction import VERSIONS, read_revisions
from services.store.reader import ReaderError
from services.store.sqlite.upgrade import damage
from services.web.http import WebClient, WebError
from services.web.search import Searcher, advice


def check_database(settings: Settings) -> Diagnostic | str:
    """Check that the database can be used; on a server also report its version, schema and processes."""
    return _on_server(settings) if settings.store.is_on_a_server else _on_sqlite(settings)


def _on_sqlite(settings: Settings) -> Diagnostic | str:
    path = database_of(settings)
    if not path.exists():
        return f"{path} does not exist yet; the first start creates it"
    problem = damage(path)
    if problem is None:
        return f"{path}: no damage found"
    text = f"{problem}; {restore_advice(settings)}"
    return Diagnostic(str(path), 1, 1, "store.damaged", text)


def _on_server(settings: Settings) -> Diagnostic | str:
    try:
        state = state_on_server(settings.store)
    except ReaderError as problem:
        return Diagnostic("store.url", 1, 1, "store.unreachable", str(problem))
    revisions = read_revisions(VERSIONS)
    if state.schema_version is None:
        schema = "no tables yet; the first start creates them"
    elif state.schema_version == revisions.head:
        schema = f"schema {state.schema_version}, up to date"
    elif state.schema_version in revisions.known:
        schema = f"schema {state.schema_version}, migrated to {revisions.head} by the next start"
    else:
        text = f"{state.place} has schema {state.schema_version}, which needs a newer version of the program"
        return Diagnostic("store.url", 1, 1, "store.too_new", text)
    use = f"in use by {', '.join(state.holders)}" if state.holders else "not in use"
    return f"{state.place}: PostgreSQL {state.server_version}; {schema}; {use}"


Check = tuple[str, Callable[[], Diagnostic | str]]
_QUESTION = "weather"
"""A query with results in every search."""


def web_checks(settings: Settings) -> Sequence[Check]:
    """Checks of search, feeds and permitted private hosts, if configured."""
    checks: list[Check] = []
    if settings.web_access.private_hosts:
        checks.append(("private", lambda: _private_hosts(settings.web_access.private_hosts)))
    searcher = searcher_of(settings.search)
    if searcher is not None:
        checks.append(("search", lambda: _search(settings, searcher)))
    if settings.news.feeds:
        checks.append(("news", lambda: _news(settings)))
    return checks


def _private_hosts(hosts: Sequence[str]) -> Diagnostic | str:
    client, unreachable = WebClient(), list[str]()
    client.allow_private(hosts)

    async def probe(host: str) -> None:
        try:
            await client.get(f"{'https' if host.endswith(':443') else 'http'}://{host}/")
        except WebError as error:
            # Any status is an answer.
            if not error.status:
                unreachable.append(str(error))

    async def probe_all() -> None:
        await asyncio.gather(*map(probe, hosts))
        await client.close()

    asyncio.run(probe_all())
    text = f"functions and scripts may ask {', '.join(hosts)}"
    if not unreachable:
        return text
    text = f"{text}; {'; '.join(unreachable)}"
    return Diagnostic("web_access.private_hosts", 1, 1, "web_access.unreachable", text, "warning")


def _search(settings: Settings, searcher: Searcher) -> Diagnostic | str:
    async def probe() -> str:
        try:
            answer = await searcher.search(_QUESTION, 1, settings.language)
        finally:
            await searcher.close()
        return "answered" if answer.text or answer.hits else "answered without results"

    try:
        return f"{settings.search.kind}: {asyncio.run(probe())}"
    except WebError as error:
        return Diagnostic("search", 1, 1, "search.unusable", f"{settings.search.kind}: {error}. {advice(error)}")


def _news(settings: Settings) -> Diagnostic | str:
    async def problems() -> dict[str, str]:
        news = news_of(settings.news, SystemClock())
        try:
            return await news.problems()
        finally:
            await news.close()

    found = asyncio.run(problems())
    if not found:
        return f"{len(settings.news.feeds)} feeds, all readable"
    text = "; ".join(f"{name}: {problem}" for name, problem in found.items())
    everything = len(found) == len(settings.news.feeds)
    return Diagnostic("news.feeds", 1, 1, "news.feed_unusable", text, "error" if everything else "warning")


_LEAST_FREE_BYTES = 200_000_000
_DAEMON_SECONDS = 2.0
_MOST_BYTES = 100_000
_MOST_LISTED = 10
_ADVICE = {
    ModelProblem.KEY: ("model.key_refused", "Check api_key: the provider rejects it"),
    ModelProblem.QUOTA: ("model.no_credit", "The provider reports that the credit is used up"),
    ModelProblem.MISSING: ("model.not_found", "Check base_url and the model's name"),
    ModelProblem.BUSY: ("model.busy", "The provider limits requests; try again later"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-model", action="store_true", help="skip the models")
    parser.add_argument("--no-web", action="store_true", help="skip web search and feeds")
    parser.add_argument("--no-networks", action="store_true", help="skip chat networks")
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one line per check: ok, warn or ERROR. Returns the exit code: 1 if a check failed or the settings are
    invalid, else 0."""
    path = config_path(options)
    settings, found = check_settings(path, os.environ)
    if settings is None:
        print("\n".join(str(one) for one in found))
        return 1
    checks: list[Check] = [
        ("settings", lambda: f"{path}: no errors"),
        ("functions", lambda: _functions(settings)),
        ("database", lambda: check_database(settings)),
        ("disk", lambda: _disk(settings)),
    ]
    if settings.engine == "cluster":
        checks.append(("cluster", lambda: check_cluster(settings)))
    if uses := processes_of(settings):
        checks.append(("sandbox", lambda: _sandbox(settings, uses)))
    if settings.knowledge.bases:
        checks.append(("knowledge", lambda: _knowledge(settings)))
    if not options.no_model:
        checks += _model_checks(settings)
        checks += _media_checks(settings)
        checks += _daemon_checks(settings)
    if not options.no_web:
        checks += web_checks(settings)
    checks += [("mcp", functools.partial(_login, settings, one)) for one in settings.mcp.servers if one.login]
    if not options.no_networks:
        checks += [(name, functools.partial(_network, name, account)) for name, account in settings.platforms.networks]
    failed = False
    for name, check in checks:
        outcome = check()
        wrong = isinstance(outcome, Diagnostic) and outcome.severity == "error"
        status = "ERROR" if wrong else "warn" if isinstance(outcome, Diagnostic) else "ok"
        print(f"{status:<6} {name:<10} {outcome}")
        failed = failed or wrong
    return 1 if failed else 0


def _functions(settings: Settings) -> Diagnostic | str:
    found = asyncio.run(check_functions(settings))
    errors = [one for one in found if one.severity == "error"]
    if errors:
        return errors[0]
    missing = [one.message for one in found if one.code == Code.NO_PROGRAM]
    told = f": {'; '.join(missing)}" if missing else ""
    return f"usable; {len(found)} warnings, `rollcall check` lists them{told}" if found else "usable"


def _login(settings: Settings, server: McpServerSettings) -> Diagnostic | str:
    """Whether somebody has logged in to an MCP server that needs it. The server is not asked."""
    stored = StoredLogin(Path(settings.home), server)
    if server.login is not None and server.login.grant == "client_credentials":
        return f"{server.name}: logs in by itself"
    if not stored.has_tokens:
        return Diagnostic(f"mcp.servers.{server.name}", 1, 1, "mcp.login_needed", stored.advice)
    if stored.read().get("missing_scope"):
        text = f"it requires further permissions: `rollcall mcp login {server.name}`"
        return Diagnostic(f"mcp.servers.{server.name}", 1, 1, "mcp.login_needed", text, "warning")
    return f"{server.name}: logged in"


def _disk(settings: Settings) -> Diagnostic | str:
    home = Path(settings.home).resolve()
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    if not there.is_dir():
        return Diagnostic(str(there), 1, 1, "disk.no_folder", "not a folder; set home to another path")
    free = shutil.disk_usage(there).free
    text = f"{free / 1e9:.1f} GB free for {home}"
    if not os.access(there, os.W_OK):
        return Diagnostic(str(there), 1, 1, "disk.read_only", "the folder is not writable")
    return text if free >= _LEAST_FREE_BYTES else Diagnostic(str(there), 1, 1, "disk.full", text)


def _sandbox(settings: Settings, uses: Sequence[ProcessUse]) -> Diagnostic | str:
    problem, unbounded = asyncio.run(_isolation(settings))
    names = ", ".join(use.name for use in uses)
    if not problem:
        return "; not limited here: ".join((f"processes run isolated: {names}", *unbounded))
    stopped = ", ".join(use.name for use in uses if use.needs_sandbox)
    if stopped:
        return Diagnostic("sandbox", 1, 1, "sandbox.missing", f"{problem}. Unavailable without it: {stopped}")
    text = f"{problem}. Not isolated: {names}"
    return Diagnostic("sandbox", 1, 1, "sandbox.missing", text, "warning")


async def _isolation(settings: Settings) -> tuple[str, Sequence[str]]:
    """Why processes cannot be isolated, and the limits that isolated ones can exceed."""
    sandbox = Sandbox(SystemClock(), settings.sandbox)
    return await sandbox.problem(), await sandbox.unbounded()


def _knowledge(settings: Settings) -> Diagnostic | str:
    async def read() -> Sequence[Summary]:
        bases = KnowledgeBases(settings.knowledge, SystemClock())
        await bases.refresh()
        return bases.summaries()

    found = asyncio.run(read())
    text = "; ".join(f"{one.name}: {one.files} files, {one.passages} passages" for one in found)
    problems = [f"{one.name}/{file}: {problem}" for one in found for file, problem in one.problems.items()]
    if not problems:
        return text
    text = f"{text}; left out: {'; '.join(problems[:_MOST_LISTED])}"
    return Diagnostic("knowledge", 1, 1, "knowledge.left_out", text, "warning")


def _model_checks(settings: Settings) -> list[Check]:
    """One check per model, and one for an unusable definition."""
    try:
        models = online_models(settings, SystemClock()) or [OfflineModel(Texts())]
    except DefinitionError as error:
        unusable = Diagnostic("models", 1, 1, "model.unusable", str(error))
        return [("model", lambda: unusable)]
    return [("model", functools.partial(_model, model)) for model in models]


def _media_checks(settings: Settings) -> list[Check]:
    """One check per model that hears, speaks or draws, which models see, and whether documents can be read."""
    media = settings.media
    lists = {"hears": media.hearing, "speaks": media.speaking, "draws": media.drawing}
    checks: list[Check] = [
        (name, functools.partial(_media_model, settings, one)) for name, models in lists.items() for one in models
    ]
    if settings.seeing_models:
        checks.insert(0, ("sees", lambda: ", ".join(sorted(settings.seeing_models))))
    if media.documents:
        missing = [name for name in ("pypdf", "openpyxl") if find_spec(name) is None]
        text = f"PDF or Excel files cannot be read: {missing_extra('documents', ', '.join(missing))}"
        found = Diagnostic("media.documents", 1, 1, "media.no_reader", text, "warning") if missing else "readable"
        checks.append(("documents", lambda: found))
    return checks


def _media_model(settings: Settings, model: MediaModelSettings) -> Diagnostic | str:
    if not model.usable:
        return Diagnostic("media", 1, 1, "media.no_key", f"{model.name} has neither api_key nor base_url", "warning")
    try:
        return asyncio.run(MediaModels(settings.media, WebClient()).probe(model))
    except MediaError as error:
        # Some servers do not list their models.
        text = f"{error}. Check api_key, base_url and the model's name"
        return Diagnostic("media", 1, 1, "media.unreachable", text, "warning")


def _daemon_checks(settings: Settings) -> list[Check]:
    """Model status from a daemon with these settings on this machine; empty if none is running."""
    web = settings.platforms.web
    connection = http.client.HTTPConnection(web.host, web.port, timeout=_DAEMON_SECONDS)
    try:
        connection.request("GET", "/readyz")
        details = json.loads(connection.getresponse().read(_MOST_BYTES))["details"]
        models = {name: said for name, said in details.items() if name.startswith("model.") and said != "ok"}
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError):
        return []
    finally:
        connection.close()
    text = "; ".join(f"{name.removeprefix('model.')} {said}" for name, said in models.items())
    found = Diagnostic("models", 1, 1, "model.left_alone", text, "warning") if models else "running, all models in use"
    return [("daemon", lambda: found)]


def _network(name: str, account: NetworkSettings) -> Diagnostic | str:
    adapter: Adapter = import_adapter(name)
    try:
        return f"{account.account}: {asyncio.run(adapter.probe(account, SystemClock()))}"
    except CannotOpen as problem:
        return Diagnostic(f"platforms.{name}.{account.account}", 1, 1, f"{name}.unreachable", str(problem))


def _model(model: ChatModel) -> Diagnostic | str:
    async def probe() -> str:
        try:
            return await model.probe()
        finally:
            await model.close()

    try:
        return f"{model.name}: {asyncio.run(probe())}"
    except ModelError as error:
        code, advice = _ADVICE.get(error.problem, ("model.unreachable", "Check base_url and the network"))
        text = f"{error.code.value}: {error}. {advice}"
        return Diagnostic(f"models.{model.name}", 1, 1, code, text)
