"""`rollcall run`: the daemon, with the chat page, and a console where there is a terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import structlog

from bot.cli.options import add_config, settings_or_faults
from bot.logs import set_up_logs
from bot.platforms.base import ChatPlatform
from bot.platforms.console import Console
from bot.wiring import Given, build_daemon, open_store, secrets_of
from config.settings import Settings
from config.texts import Texts
from function_calls.definition import DefinitionError
from services.clock import SystemClock
from services.fault_points import FaultPoints
from services.redaction import Redactor
from services.store.ids import Ids
from services.store.port import StoreError
from services.store.starvation import switch_threads_often

FAULTS_VARIABLE = "ROLLCALL_FAULTS"
_log = structlog.get_logger("daemon")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("run", help="start the daemon", description=__doc__)
    add_config(parser)
    parser.add_argument("--port", type=int, help="another port for the chat page; 0 takes a free one")
    parser.add_argument("--no-console", action="store_true", help="no conversation in this terminal")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT. 0: ended as told; 1: settings, functions or the store cannot be used."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    if options.port is not None:
        web = settings.platforms.web.model_copy(update={"port": options.port})
        platforms = settings.platforms.model_copy(update={"web": web})
        settings = settings.model_copy(update={"platforms": platforms})
    talks = _console_wanted(settings) and not options.no_console
    close_logs = set_up_logs(settings.logging, redact=Redactor(secrets_of(settings)), somebody_chats_here=talks)
    try:
        return asyncio.run(serve(settings, console=talks))
    except (StoreError, DefinitionError, OSError) as error:
        _log.critical("cannot_start", problem=str(error))
        print(f"rollcall cannot start: {error}", file=sys.stderr)
        return 1
    finally:
        close_logs()


async def serve(settings: Settings, *, console: bool, page: bool = True) -> int:
    """Start everything, run until told to stop, and drain. The exit status."""
    switch_threads_often()
    clock, texts = SystemClock(), Texts()
    stop = asyncio.Event()
    _on_signals(stop)
    broken: list[Exception] = []

    def on_broken(error: Exception) -> None:
        broken.append(error)
        stop.set()

    store = await open_store(settings, clock, on_broken)
    ids = Ids(clock)
    faults = FaultPoints.parse(os.environ.get(FAULTS_VARIABLE, ""))
    platforms: list[ChatPlatform] = []
    if console:
        platforms.append(Console(settings.platforms.console.name, clock, read_from=sys.stdin, write_to=sys.stdout))
    web = None
    if page:
        # Imported here: a chat in the terminal alone needs no web server.
        from bot.web.wiring import Web

        web = await Web.build(settings, store, ids, clock)
        platforms += web.platforms
    try:
        daemon = build_daemon(settings, store, platforms, ids, texts, Given(clock=clock, faults=faults))
    except BaseException:
        await store.close()
        raise
    await daemon.start()
    ticker = daemon.ticker()
    ticker.start()
    serving = asyncio.create_task(daemon.run())
    try:
        if web is not None:
            address = await web.start(daemon)
            await _greet(settings, address, await web.owner_link(store, clock, address))
        await _first(serving, stop)
    finally:
        ticker.stop()
        if web is not None:
            await web.stop()
        serving.cancel()
        await asyncio.wait([serving])
        await daemon.stop()
    _log.info("stopped")
    return 1 if broken or (not serving.cancelled() and serving.exception() is not None) else 0


async def _first(serving: asyncio.Task[None], stop: asyncio.Event) -> None:
    """Return when the daemon is told to stop, or has ended by itself."""
    told = asyncio.create_task(stop.wait())
    await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if serving.done() and serving.exception() is not None:
        _log.critical("ended", exc_info=serving.exception())


def _on_signals(stop: asyncio.Event) -> None:
    """The first signal drains; a second one ends at once, which is safe."""
    loop = asyncio.get_running_loop()

    def told() -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told)


def _console_wanted(settings: Settings) -> bool:
    wanted = settings.platforms.console.enabled
    return wanted == "on" or (wanted == "auto" and sys.stdin.isatty() and sys.stdout.isatty())


async def _greet(settings: Settings, address: str, owner_link: str) -> None:
    """What the operator needs to know, on standard output."""
    model = next((one for one in settings.models if one.usable), None)
    lines = [
        f"Chat page:   {address}",
        f"Owner link:  {owner_link}   (once; it makes its holder owner)",
        f"Data:        {Path(settings.home).resolve()}",
        f"Model:       {f'{model.model} ({model.name})' if model else 'none; set OPENAI_API_KEY to connect one'}",
    ]
    print("\n".join(lines), flush=True)
