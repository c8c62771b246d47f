"""`rollcall mcp`: the functions for another program, by the Model Context Protocol over standard input and output."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from typing import Any

from bot import mcp_package
from bot.cli import mcp_pins
from bot.cli.opened import a_daemon_for_calls
from bot.cli.options import add_config, chat_ref, member_ref, settings_or_faults
from bot.direct_calls import Caller
from bot.mcp_callers import McpCaller
from config.bots import ChatSettings
from config.mcp_serve import ACCOUNT, PLATFORM
from config.settings import Settings
from function_calls.definition import DefinitionError
from function_calls.turn_log import Path
from services.refs import ChatRef, Role
from services.store.lock import StoreInUse
from services.store.port import StoreError

_LAST_SECONDS = 3.0
_HERE = f"{PLATFORM}:{ACCOUNT}:stdio"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What may stand behind the command."""
    _add_options(parser)
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    serve = subcommands.add_parser("serve", help="the same as without a subcommand", description=__doc__)
    _add_options(serve, default=argparse.SUPPRESS)
    mcp_pins.add_to(subcommands)


def run(options: argparse.Namespace) -> int:
    """Serve until the input ends, or SIGTERM. 0: it did; 1: settings, functions or store cannot be used."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    problem = _problem(settings, options)
    if problem:
        print(f"rollcall mcp: {problem}", file=sys.stderr)
        return 1
    settings = _with_bot(settings, options.chat, options.bot)
    try:
        asyncio.run(_serve(settings, options))
    except StoreInUse as error:
        own = "a database of its own" if settings.store.is_on_a_server else "a folder of its own with ROLLCALL_HOME"
        print(
            f"rollcall mcp: {error}. A daemon that runs serves programs itself where mcp.serve is enabled in its "
            f"settings; or give this one {own}",
            file=sys.stderr,
        )
        return 1
    except (StoreError, DefinitionError, OSError) as error:
        print(f"rollcall mcp: {error}", file=sys.stderr)
        return 1
    return 0


def _add_options(parser: argparse.ArgumentParser, **default: Any) -> None:
    """`default` for all of them, where a parser around this one has the values already."""
    roles = [role.value for role in Role]
    parser.add_argument("--role", choices=roles, help="what it may do (member)", **{"default": "member", **default})
    parser.add_argument(
        "--as",
        dest="member",
        type=member_ref,
        metavar="MEMBER",
        help=f"as whom it calls, platform:account:member ({_HERE})",
        **{"default": _HERE, **default},
    )
    parser.add_argument(
        "--chat",
        type=chat_ref,
        help=f"the chat where, platform:account:chat ({_HERE}, a private one)",
        **{"default": _HERE, **default},
    )
    parser.add_argument(
        "--bot", help="the bot whose functions it gets (that of the chat)", **{"default": "", **default}
    )
    parser.add_argument(
        "--sampling",
        action="store_true",
        help="a function that wants a model's words has them from the client's own model, where it can do that",
        **({"default": False} | default),
    )
    add_config(parser, **default)
    parser.set_defaults(run=run)


def _problem(settings: Settings, options: argparse.Namespace) -> str:
    """Why it cannot be served; empty when it can."""
    if not mcp_package.is_installed():
        return mcp_package.MISSING
    if options.bot and options.bot not in settings.bots:
        return f"there is no bot {options.bot!r}; the settings name {', '.join(settings.bots)}"
    return ""


def _with_bot(settings: Settings, chat: ChatRef, bot: str) -> Settings:
    """The settings, with `chat` given to `bot`."""
    if not bot:
        return settings
    entry = settings.chats.settings.get(chat.key, ChatSettings()).model_copy(update={"bot": bot})
    entries = {**settings.chats.settings, chat.key: entry}
    return settings.model_copy(update={"chats": settings.chats.model_copy(update={"settings": entries})})


async def _serve(settings: Settings, options: argparse.Namespace) -> None:
    # Imported here: no other command needs the library, and loading it takes half a second.
    from bot import mcp_stdio
    from bot.mcp_logs import into_our_log
    from bot.mcp_server import McpServer

    into_our_log()
    pipe = mcp_stdio.Pipe.of_this_process()
    serving = asyncio.current_task()
    assert serving is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        async with a_daemon_for_calls(settings, logs_faults=True) as daemon:
            caller = Caller(
                member=options.member,
                name=options.member.native,
                role=Role(options.role),
                chat=options.chat,
                is_group=options.chat.platform != PLATFORM,
                path=Path.MCP,
            )
            profile, whose = daemon.chats.profile(options.chat), McpCaller(caller, may_lend=options.sampling)
            server = McpServer(daemon.direct_calls, lambda _: whose, profile.texts, profile.bot_name)
            daemon.functions.on_change(server.functions_changed)
            try:
                await mcp_stdio.serve(server, pipe)
            finally:
                # What waits for an answer ends as if nobody had given one.
                await server.drain(_LAST_SECONDS)
