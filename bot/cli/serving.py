"""Running the daemon until it is stopped, for `run` and `chat`."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

from bot import VERSION
from bot.cluster.opening import open_cluster
from bot.daemon import Daemon, build_daemon
from bot.database.opening import open_store, remedy
from bot.live.settings import secrets_of
from bot.live.watching import LOOK_SECONDS, Watcher
from bot.mcp import callers
from bot.overrides import Overrides
from bot.platforms.adapter import CannotOpen, open_platforms
from bot.platforms.base import ChatPlatform
from bot.platforms.console import TERMINAL, Console
from bot.telemetry.logs import set_up_logs
from config.chat_settings import is_allowed
from config.settings import Settings
from config.texts import Texts
from function_calls.schema.definition import DefinitionError
from services.clock import SystemClock
from services.fault_points import FaultPoints
from services.redaction import Redactor
from services.store.ids import Ids
from services.store.port import Store, StoreBroken, StoreError
from services.store.turns.cluster import ProcessRole
from services.store.unit_queue import switch_threads_often

if TYPE_CHECKING:
    from bot.web.wiring import Web


_NEW_OBJECTS = 50_000
_YOUNG_BEFORE_MIDDLE = 20
_MIDDLE_BEFORE_OLD = 50


def collect_seldom() -> None:
    """Collect garbage only after every 50,000 new objects, for the whole process."""
    gc.set_threshold(_NEW_OBJECTS, _YOUNG_BEFORE_MIDDLE, _MIDDLE_BEFORE_OLD)


FAULTS_VARIABLE = "ROLLCALL_FAULTS"
_log = structlog.get_logger("daemon")


class CannotStart(Exception):
    """A requirement of the daemon is missing; the message says which, and the remedy."""


class ServiceManager:
    """The service manager that started this process, such as systemd, notified over `$NOTIFY_SOCKET`. Without that
    variable nothing is sent."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Removes the variables, so that child processes cannot send in the name of the daemon."""
        address, of_process = environment.pop("NOTIFY_SOCKET", ""), environment.pop("WATCHDOG_PID", "")
        limit = environment.pop("WATCHDOG_USEC", "")
        self._feed_seconds = int(limit) / 2e6 if limit.isdecimal() and of_process in ("", str(os.getpid())) else 0.0
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)

    def notify(self, state: str) -> None:
        """Send `state`, as in sd_notify(3). Errors are ignored: the manager decides by what it receives."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendto(state.encode(), self._address)

    def feed_watchdog(self) -> None:
        """Report twice in each interval of the watchdog that the running event loop is not blocked."""
        if self._feed_seconds:
            self.notify("WATCHDOG=1")
            asyncio.get_running_loop().call_later(self._feed_seconds, self.feed_watchdog)


class Stop:
    """Set when the daemon has to stop: by a signal, or because it cannot continue."""

    def __init__(self, manager: ServiceManager) -> None:
        self.manager = manager
        self._told = asyncio.Event()
        self.broken: Exception | None = None

    def on_signals(self) -> None:
        """The first signal drains; the second one exits at once, which is safe."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._by_signal)

    def on_broken(self, error: Exception) -> None:
        """Stop because the store is broken."""
        self.broken = self.broken or error
        self._told.set()

    async def or_end_of(self, serving: asyncio.Task[None]) -> None:
        """Return when a stop is requested or `serving` has ended."""
        told = asyncio.create_task(self._told.wait())
        await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if serving.done() and (error := serving.exception()) is not None:
            _log.critical("ended", exc_info=error)
            self.broken = self.broken or RuntimeError("the daemon ended by itself")

    def _by_signal(self) -> None:
        if self._told.is_set():
            os._exit(130)
        self._told.set()


class SettingsFile(NamedTuple):
    """The settings file."""

    path: Path
    read: Callable[[], Settings]
    """Reads the file and applies the command line. Raises SettingsInvalid."""


def serve(
    settings: Settings, file: SettingsFile, *, console: bool, page: bool, role: ProcessRole = ProcessRole.ALL
) -> int:
    """Serve the console, the page, or both, until stopped; `role`: the work of this process in a cluster. Settings and
    functions are reloaded when their files change and, without a console, on SIGHUP. 0: stopped on request; 1: failed
    to start or crashed."""
    redact = Redactor(secrets_of(settings))
    try:
        shown = set_up_logs(settings.logging, redact=redact, console_chat=console)
    except OSError as error:
        print(f"rollcall cannot start: its log: {error}", file=sys.stderr)
        return 1
    try:
        return asyncio.run(_served(settings, file, redact, role, console=console, page=page, shown=shown))
    except (StoreError, DefinitionError, CannotStart, OSError) as error:
        _report("rollcall cannot start", settings, error, shown=shown)
        return 1


def _report(what: str, settings: Settings, error: Exception, *, shown: bool) -> None:
    """Log the reason for the end and the next step; also print it if the terminal shows no log."""
    hint = remedy(settings, error)
    _log.critical(what, problem=str(error), **({"hint": hint} if hint else {}))
    if not shown:
        print("; ".join([f"{what}: {error}", *([hint] if hint else [])]), file=sys.stderr)


async def _served(
    settings: Settings,
    file: SettingsFile,
    redact: Redactor,
    role: ProcessRole,
    *,
    console: bool,
    page: bool,
    shown: bool,
) -> int:
    switch_threads_often()
    collect_seldom()
    stop = Stop(ServiceManager(os.environ))
    stop.on_signals()
    stop.manager.feed_watchdog()
    await _run(settings, file, redact, stop, role, console=console, page=page)
    if isinstance(stop.broken, StoreBroken):
        _report("rollcall ended", settings, stop.broken, shown=shown)
    _log.info("stopped")
    return 1 if stop.broken else 0


async def _run(
    settings: Settings,
    file: SettingsFile,
    redact: Redactor,
    stop: Stop,
    role: ProcessRole,
    *,
    console: bool,
    page: bool,
) -> None:
    """Build everything, run until stopped, and close the store. `console` and `page` select the platforms."""
    faults, watcher, clock = _faults(), Watcher(), SystemClock()
    cluster = await open_cluster(settings, clock, stop.on_broken, role) if settings.engine == "cluster" else None
    store: Store = await open_store(settings, clock, stop.on_broken) if cluster is None else cluster.store
    try:
        ids = Ids(clock) if cluster is None else cluster.ids
        web = await _web(settings, store, ids, clock, file.path) if page else None
        platforms: list[ChatPlatform] = [*web.platforms, *_networks(settings, store, ids, clock)] if web else []
        if cluster is not None:
            platforms = [cluster.account_of(platform) for platform in platforms]
        terminal = None
        if console:
            terminal = Console(settings.platforms.console.name, clock, read_from=sys.stdin, write_to=sys.stdout)
            platforms.append(terminal)
        given = Overrides(
            clock=clock,
            changes=watcher,
            read_settings=file.read,
            settings_file=file.path,
            faults=faults,
            cluster=cluster,
        )
        daemon = build_daemon(settings, store, platforms, ids, Texts(), given)
        if terminal is not None and not sys.stdin.isatty():
            terminal.answered = daemon.engine.idle
    except BaseException:
        await store.close()
        raise
    daemon.live.register(prepare=lambda fresh: partial(redact.learn, secrets_of(fresh)), depends_on=secrets_of)
    if web is not None:
        web.live(daemon.live)
    watcher.start()
    following: set[asyncio.Task[None]] = set()
    try:
        await daemon.start()
        _begin(daemon.reload.follow(file.path, watcher), following)
        if not console:
            # With a console, SIGHUP means that the terminal is gone, and ends the process by default.
            loop = asyncio.get_running_loop()
            reload = partial(_look_again, daemon, watcher, stop.manager)
            loop.add_signal_handler(signal.SIGHUP, lambda: _begin(reload(), following))
        await _until_stopped(settings, daemon, web, stop, watcher)
        _log.info("stopping", turns_running=daemon.engine.running, turns_waiting=daemon.engine.waiting)
    finally:
        await watcher.close()
        for task in following:
            task.cancel()
        if following:
            await asyncio.wait(following)
        await daemon.stop(at_once=isinstance(stop.broken, StoreError))


def _begin(work: Coroutine[None, None, None], among: set[asyncio.Task[None]]) -> None:
    """Run `work` in the background. An exception is logged and ends nothing else."""

    def ended(task: asyncio.Task[None]) -> None:
        among.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.critical("settings_are_not_read_again", exc_info=error)

    task = asyncio.get_running_loop().create_task(work)
    among.add(task)
    task.add_done_callback(ended)


async def _look_again(daemon: Daemon, watcher: Watcher, manager: ServiceManager) -> None:
    """Reload everything, whatever the watcher knows."""
    manager.notify("RELOADING=1")
    try:
        await daemon.reload.now()
        daemon.functions.revive()
        watcher.wake_all()
    finally:
        manager.notify("READY=1")


async def _until_stopped(settings: Settings, daemon: Daemon, web: Web | None, stop: Stop, watcher: Watcher) -> None:
    ticker = daemon.ticker()
    ticker.every(LOOK_SECONDS, "look for changed files", watcher.look)
    ticker.start()
    serving: asyncio.Task[None] | None = None
    try:
        if web is not None:
            address = await _listening(settings, daemon, web)
            await _greet(settings, daemon, web, address)
        elif is_allowed(settings, TERMINAL.key) is None:
            print(f"This chat is not served: {TERMINAL.key} is not in chats.allow of the settings.", flush=True)
        _log.info("started", version=VERSION, home=str(Path(settings.home).resolve()))
        stop.manager.notify("READY=1\nSTATUS=Answers messages")
        serving = asyncio.create_task(daemon.run())
        await stop.or_end_of(serving)
    finally:
        stop.manager.notify("STOPPING=1")
        ticker.stop()
        if web is not None:
            await web.stop()
        if serving is not None:
            serving.cancel()
            with suppress(asyncio.CancelledError, BaseExceptionGroup):
                await serving


async def _web(settings: Settings, store: Store, ids: Ids, clock: SystemClock, settings_file: Path) -> Web:
    if settings.mcp.serve.enabled and not callers.is_installed():
        raise CannotStart(f"mcp.serve: {callers.MISSING}")
    # Imported here: a chat in the terminal needs no web server.
    from bot.web.wiring import Web

    return await Web.build(settings, store, ids, clock, settings_file)


def _networks(settings: Settings, store: Store, ids: Ids, clock: SystemClock) -> list[ChatPlatform]:
    """One platform per configured account, not yet connected. Raises CannotStart."""
    try:
        return open_platforms(settings, store, ids, clock)
    except CannotOpen as problem:
        raise CannotStart(str(problem)) from None


async def _listening(settings: Settings, daemon: Daemon, web: Web) -> str:
    """Start the web server; returns its URL. Raises CannotStart if the port cannot be opened."""
    where = settings.platforms.web
    try:
        return await web.start(daemon)
    except OSError as error:
        raise CannotStart(
            f"{where.host} port {where.port}: {error.strerror}; "
            "choose another port with --port or in platforms.web.port, 0 for any that is free"
        ) from None


def _faults() -> FaultPoints:
    try:
        return FaultPoints.parse(os.environ.get(FAULTS_VARIABLE, ""))
    except ValueError as error:
        raise CannotStart(f"{FAULTS_VARIABLE}: {error}") from None


async def _greet(settings: Settings, daemon: Daemon, web: Web, address: str) -> None:
    """Print the addresses of this process. Raises StoreError."""
    if not daemon.receives:
        print(f"Worker:      {address}/healthz", flush=True)
        return
    public = next(iter(settings.platforms.web.public_url), address)
    owner_link = await web.owner_link(daemon.store, SystemClock(), public)
    print("\n".join(_greeting(settings, public, address, owner_link)), flush=True)


def _greeting(settings: Settings, public: str, address: str, owner_link: str) -> Sequence[str]:
    """Lines for the operator at the start: URLs, owner link, data folder, model, and a warning if no chat is served."""
    model = next((one for one in settings.answering_models if one.usable), None)
    return [
        f"Chat page:   {public}",
        *([] if public == address else [f"Local URL:   {address}"]),
        f"Owner link:  {owner_link}   (once; it makes its holder owner)",
        f"Data:        {Path(settings.home).resolve()}",
        f"Model:       {f'{model.model} ({model.name})' if model else 'none; set OPENAI_API_KEY to connect one'}",
        *([] if settings.chats.allow else ["Chats:       none is served, because chats.allow is empty"]),
    ]
