"""Builds the web side: the chat page's platform, the programs' platform, the app and its server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from bot.daemon import Daemon
from bot.live.command_menus import command_hints
from bot.live.settings import LiveSettings, Use
from bot.platforms.base import ChatPlatform, CommandHint, Linked, Webhooks
from bot.platforms.http.platform import HttpPlatform, Programs
from bot.platforms.mentions import mention_parser
from bot.web.app import Health, Probes, WebServer, web_app
from bot.web.connections import ConnectionLimits
from bot.web.desk.accounts import Accounts
from bot.web.desk.desk import Desk
from bot.web.desk.routes import desk_routes
from bot.web.page import (
    ChatPage,
    CommandHints,
    OwnerLink,
    Owners,
    PageMembers,
    PageSettings,
    Room,
    Signer,
    page_key,
)
from config.diagnostics import Diagnostic
from config.sections.mcp import McpClientSettings
from config.settings import DEFAULT_BOT, Settings, WebSettings
from config.texts import Texts
from services.chats.members import MemberZones
from services.clock import Clock
from services.llm.failover import ModelState
from services.mcp.stored_logins import CALLBACK_PATH, BrowserAnswers
from services.refs import ChatRef, MemberRef, ModelProblem, Role
from services.store.ids import Ids
from services.store.port import Store
from services.timers.timer import at_ms

if TYPE_CHECKING:
    from bot.mcp.http import McpHttp

ACCOUNT = "main"
_PLACES_SHOWN = 5
_PROBLEMS = {
    ModelProblem.KEY: "refuses the key in the settings",
    ModelProblem.QUOTA: "has no credit left",
    ModelProblem.MISSING: "does not exist under this name and address",
}


_HELD = "held: many are overdue after the clock jumped; set it right, or see timers_held in the log"


class Web:
    """The web application with its platforms and programs."""

    def __init__(
        self,
        settings: Settings,
        platforms: Sequence[HttpPlatform],
        members: PageMembers,
        owners: Owners,
        clock: Clock,
        programs: Programs | None = None,
        settings_file: Path | None = None,
    ) -> None:
        self.platforms = platforms
        self._settings = settings
        self._members = members
        self._owners = owners
        self._clock = clock
        self._programs = programs
        self._settings_file = settings_file
        self._use_uploads(_upload_bytes(settings))
        self._server: WebServer | None = None
        self.routes: Sequence[BaseRoute] = ()
        """Routes of the application, after the start."""
        self.programs: McpHttp | None = None
        """The MCP server over HTTP, after the start."""
        self._clients: Sequence[McpClientSettings] = settings.mcp.serve.clients

    @classmethod
    async def build(
        cls, settings: Settings, store: Store, ids: Ids, clock: Clock, settings_file: Path | None = None
    ) -> Web:
        """The platforms that the settings enable: the page, and HTTP for programs. Loads the owners. `settings_file`:
        the file that the desk may change. Raises StoreError."""
        # Each room has one bot, so the name of any bot addresses it.
        names = [name for bot in settings.bots.values() for name in (bot.name, *bot.aliases)]
        hear = mention_parser(names)
        owners = Owners(store, clock)
        await owners.load()
        members = PageMembers(Signer(page_key(Path(settings.home) / "keys")), owners, bot_names=names)
        platforms: list[HttpPlatform] = []
        if settings.platforms.web.page:
            platforms.append(
                HttpPlatform(
                    "web", ACCOUNT, store=store, ids=ids, clock=clock, hear=hear, callers=members, shows_members=True
                )
            )
        http = settings.platforms.http
        programs = None
        if http.enabled:
            programs = Programs(http.token, Role(http.max_role))
            platforms.append(
                HttpPlatform("http", ACCOUNT, store=store, ids=ids, clock=clock, hear=hear, callers=programs)
            )
        return cls(settings, platforms, members, owners, clock, programs, settings_file)

    def live(self, live: LiveSettings) -> None:
        """Register the live settings of tokens and roles of programs: withdrawn tokens and lowered roles take effect at
        once."""
        if self._settings.mcp.serve.enabled:
            live.register(
                "mcp.serve.clients", prepare=lambda fresh: partial(self._use_clients, fresh.mcp.serve.clients)
            )
        live.register(prepare=lambda fresh: partial(self._use_uploads, _upload_bytes(fresh)), depends_on=_upload_bytes)
        programs = self._programs
        if programs is None:
            return
        feeds = [platform.feed for platform in self.platforms if platform.callers is programs]

        def prepare(fresh: Settings) -> Use:
            http = fresh.platforms.http

            def use() -> None:
                if programs.use(http.token if http.enabled else None, Role(http.max_role)):
                    for feed in feeds:
                        feed.listeners.dismiss_all()

            return use

        names = ("enabled", "token", "max_role")
        live.register(*(f"platforms.http.{name}" for name in names), prepare=prepare)

    def _use_uploads(self, upload_bytes: int) -> None:
        for platform in self.platforms:
            platform.upload_bytes = upload_bytes

    def _use_clients(self, clients: Sequence[McpClientSettings]) -> None:
        self._clients = clients
        if self.programs is not None:
            self.programs.use(clients)

    async def start(self, daemon: Daemon) -> str:
        """Start serving; returns the URL for a browser on this machine. Raises OSError if the port is in use."""
        web = self._settings.platforms.web
        if not daemon.receives:
            return await self._serve(web_app(probes=probes_of(daemon), **self._access()))
        page = None
        if web.page:
            bot = self._settings.bots[DEFAULT_BOT]
            rooms = tuple(Room(room.id, room.title or room.id) for room in web.rooms)
            page_settings = PageSettings(bot.name, bot.aliases, rooms) if rooms else PageSettings(bot.name, bot.aliases)
            zones = MemberZones(daemon.store, self._clock)

            async def suggest_zone(member: str, zone: str) -> None:
                await zones.suggest(MemberRef("web", ACCOUNT, member), zone)

            hints = _hints(daemon, page_settings)
            uploads, who = (lambda: self.platforms[0].upload_bytes), (self._members, self._owners)
            page = ChatPage(page_settings, *who, hints, self._clock, suggest_zone, uploads)
        programs = await self._serve_programs(daemon)
        app = web_app(
            platforms=self.platforms,
            page=page,
            probes=probes_of(daemon),
            more_routes=[
                *(programs.routes if programs else ()),
                *_webhooks(daemon.platforms),
                *_login_routes(self._settings),
                *(self._desk_routes(daemon) if web.desk else ()),
            ],
            **self._access(),
        )
        self.routes = app.routes
        return await self._serve(app)

    def _access(self) -> dict[str, Any]:
        """Arguments of the application that say who may use it."""
        web = self._settings.platforms.web
        return {
            "hosts": [web.host],
            "public_urls": web.public_url,
            "exposed": is_exposed(web),
            "metrics_token": web.metrics_token,
            "clock": self._clock,
        }

    async def _serve(self, app: Starlette) -> str:
        web = self._settings.platforms.web
        limits = ConnectionLimits(per_address=web.connections_per_address)
        self._server = WebServer(app, web.host, web.port, before_stop=self._end_streams, limits=limits)
        address = await self._server.start()
        return address.url

    def _desk_routes(self, daemon: Daemon) -> list[Route]:
        """Routes of the operators' desk."""
        accounts = Accounts(daemon.store, daemon.ids, self._clock)
        desk = Desk(daemon, accounts, self._owners, self._members, self._settings_file, self._clock)
        return desk_routes(desk)

    async def owner_link(self, store: Store, clock: Clock, address: str) -> str:
        """URL of a new one-time link that makes its holder owner. Raises StoreError."""
        link = await OwnerLink.make(store, clock)
        return link.url(address)

    async def stop(self) -> None:
        """End open streams and close the server."""
        if self._server is not None:
            await self._server.stop()
        if self.programs is not None:
            self.programs.end()
            await self.programs.closed()

    async def _serve_programs(self, daemon: Daemon) -> McpHttp | None:
        """Start the MCP server and return it; None if the settings do not enable it."""
        if not self._settings.mcp.serve.enabled:
            return None
        # Imported here: the SDK takes half a second to import, and most daemons do not use it.
        from bot.mcp.http import McpHttp

        bot = self._settings.bots[DEFAULT_BOT]
        texts = Texts().of(bot.language or self._settings.language)
        path, calls = self._settings.mcp.serve.path, daemon.direct_calls
        self.programs = McpHttp(path, self._clients, calls, daemon.knowledge, texts, bot.name)
        await self.programs.start()
        daemon.functions.on_change(self.programs.server.functions_changed)
        return self.programs

    def _end_streams(self) -> None:
        if self.programs is not None:
            self.programs.end()
        for platform in self.platforms:
            platform.feed.end()


def _upload_bytes(settings: Settings) -> int:
    """Maximum size of the files of a message; 0 without a model that is given files."""
    return settings.media.upload_bytes if settings.takes_files else 0


def _webhooks(platforms: Sequence[ChatPlatform]) -> list[BaseRoute]:
    """The routes of networks that send events to the web server, below `/platforms/<name>/<account>`."""
    return [
        Mount(f"/platforms/{one.name}/{one.account}", routes=[*one.routes()])
        for one in platforms
        if isinstance(one, Webhooks)
    ]


def _login_routes(settings: Settings) -> list[BaseRoute]:
    """The route to which browsers return from a login at an MCP server, if one has a login."""
    answers = BrowserAnswers(Path(settings.home))

    async def callback(request: Request) -> Response:
        if answers.put(request.url.query):
            return PlainTextResponse("You can close this page: `rollcall mcp login` continues.")
        text = "No login waits for this page: start it again with `rollcall mcp login`."
        return PlainTextResponse(text, status_code=404)

    has_login = any(server.login is not None for server in settings.mcp.servers)
    return [Route(CALLBACK_PATH, callback)] if has_login else []


def _hints(daemon: Daemon, page: PageSettings) -> CommandHints:
    """The commands of a role in the first room."""

    def commands(language: str, role: Role) -> list[CommandHint]:
        profile = daemon.chats.profile(ChatRef("web", ACCOUNT, page.rooms[0].id))
        return command_hints(daemon.registry.of(DEFAULT_BOT), profile, role, Texts().of(language))

    return commands


def is_exposed(web: WebSettings) -> bool:
    """Whether the web server is reachable from other machines, directly or through a proxy."""
    try:
        return bool(web.public_url) or not ip_address(web.host).is_loopback
    except ValueError:
        return web.host != "localhost"


def probes_of(daemon: Daemon) -> Probes:
    """Probes and metrics of `daemon`: always alive, and ready if the store has no problem and a gateway of a cluster
    holds an account; other states are only details."""

    def alive() -> Health:
        return Health(ok=True)

    def ready() -> Health:
        store, cluster = daemon.store.health(), daemon.overrides.cluster
        details = {
            "store": store.problem or "ok",
            **({} if store.checked_ms is None else {"integrity": f"checked at {at_ms(store.checked_ms).isoformat()}"}),
            "turns_waiting": str(daemon.engine.waiting),
            "turns_running": str(daemon.engine.running),
            "settings": _faulty(daemon.reload.faults, daemon.unknown_names.faults),
            "functions": _faulty(daemon.functions.faults),
            **({"backup": daemon.backups.state} if daemon.backups.are_scheduled else {}),
            "timers": _HELD if daemon.timers.is_holding else "ok",
            **({} if cluster is None else {"cluster": cluster.state}),
            **{f"model.{state.name}": _in_words(state) for state in daemon.model.states()},
            # A lost network does not make the daemon unready: the others are served.
            **{f"{one.name}.{one.account}": one.link().words for one in daemon.platforms if isinstance(one, Linked)},
        }
        is_ready = store.problem is None and (cluster is None or cluster.is_ready)
        return Health(ok=is_ready, details=details)

    return Probes(alive=alive, ready=ready, metrics=daemon.metrics.render)


def _faulty(faults: Sequence[Diagnostic], doubtful: Sequence[Diagnostic] = ()) -> str:
    """Status of settings or functions with the places of problems; the log has the details. Problems do not make the
    daemon unready: it continues with what worked before."""
    told = [f"{len(faults)} cannot be used: {_places(faults)}"] if faults else []
    told += [f"{len(doubtful)} of names that no function has: {_places(doubtful)}"] if doubtful else []
    return "; ".join(told) or "ok"


def _places(faults: Sequence[Diagnostic]) -> str:
    places = [one.place for one in faults[:_PLACES_SHOWN]]
    more = [f"{len(faults) - len(places)} more"] if len(faults) > len(places) else []
    return ", ".join([*places, *more])


def _in_words(state: ModelState) -> str:
    """Status of a model for operators. Failures do not make the daemon unready: commands work without models."""
    if state.problem is None:
        return "ok"
    words = _PROBLEMS.get(state.problem, f"left alone after failures ({state.problem.value})")
    return f"{words}; tried again in {state.seconds_left:.0f} s"
