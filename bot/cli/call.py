"""`rollcall call NAME --json '{…}'`: run one function in a separate process, with all checks, and print its result."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import suppress

from bot.checks.scratch import a_daemon_for_calls
from bot.cli.options import add_config, chat_ref, member_ref, on_settings
from bot.daemon import Daemon
from bot.direct_calls import Called, Caller
from config.settings import Settings
from function_calls.call import Path
from function_calls.schema.definition import DefinitionError
from function_calls.sources.mcp_servers import prefix_of
from services.refs import JsonObject, MemberRef, Role
from services.store.port import StoreError
from services.store.sqlite.lock import StoreInUse


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="name of the function")
    parser.add_argument(
        "--json",
        type=_json_object,
        default="{}",
        metavar="ARGUMENTS",
        help="arguments as a JSON object (default: none)",
    )
    parser.add_argument(
        "--as",
        dest="member",
        type=member_ref,
        default="cli:main:operator",
        metavar="MEMBER",
        help="the caller, platform:account:member (default: cli:main:operator)",
    )
    parser.add_argument(
        "--role", default="owner", choices=[role.value for role in Role], help="role of the caller (default: owner)"
    )
    parser.add_argument(
        "--chat",
        type=chat_ref,
        default="cli:main:terminal",
        help="chat of the call, platform:account:chat (default: cli:main:terminal)",
    )
    parser.add_argument("--yes", action="store_true", help="answer the confirmation question of the function with yes")
    add_config(parser)
    parser.set_defaults(run=run)


_NEXT_TO_A_DAEMON = (
    "Without stopping it: send the command in a chat of the daemon, or call the function over MCP "
    "(mcp.serve in the settings). To run it on separate data: set ROLLCALL_HOME to another folder"
)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Call the function and print the result as JSON. Returns 0 on success, 1 on failure; errors are printed to
    stderr."""
    try:
        called = asyncio.run(_called(settings, options))
    except StoreInUse as error:
        print(f"error: {error}. {_NEXT_TO_A_DAEMON}", file=sys.stderr)
        return 1
    except (StoreError, DefinitionError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    result = called.result
    _say_what_nobody_was_told(called, options)
    print(json.dumps({**result.for_model(), "reply": result.reply}, indent=2, ensure_ascii=False, default=str))
    return 0 if result.ok else 1


def _json_object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("not a JSON object, {…}")
    return value


async def _called(settings: Settings, options: argparse.Namespace) -> Called:
    member: MemberRef = options.member
    caller = Caller(
        member=member,
        name=member.native,
        role=Role(options.role),
        chat=options.chat,
        is_group=True,
        path=Path.CLI,
    )
    async with a_daemon_for_calls(settings, logs_faults=False) as daemon:
        await _server_asked(daemon, settings, options.name)
        if daemon.direct_calls.functions(caller.chat).find(options.name) is None:
            # Possibly among the unusable functions.
            for one in daemon.functions.faults:
                print(one, file=sys.stderr)
        return await daemon.direct_calls.call(caller, options.name, options.json, confirmed=options.yes)


async def _server_asked(daemon: Daemon, settings: Settings, name: str) -> None:
    """Wait for a server whose tools are not known yet, until its functions or its problems are. A running daemon does
    this shortly after its start."""
    server = next((one for one in settings.mcp.servers if name.startswith(prefix_of(one.name))), None)
    if server is None:
        return
    changed = asyncio.Event()
    daemon.functions.on_change(changed.set)

    def is_known() -> bool:
        found = any(one.name.startswith(prefix_of(server.name)) for one in daemon.registry.specs)
        return found or any(one.file == f"mcp.servers.{server.name}" for one in daemon.functions.faults)

    with suppress(TimeoutError):
        async with asyncio.timeout(server.connect_seconds):
            while not is_known():
                await changed.wait()
                changed.clear()


def _say_what_nobody_was_told(called: Called, options: argparse.Namespace) -> None:
    """Print messages that cannot be sent from here to stderr, and a warning about those due later."""
    for message in called.unsent:
        print(f"not sent to {(message.to or options.chat).key}: {message.text}", file=sys.stderr)
    if called.unheard:
        print(
            f"warning: messages due later cannot be sent to {options.chat.key}; set another chat with --chat",
            file=sys.stderr,
        )
