"""`rollcall mcp`: offer the functions to other programs, and accept the tools of MCP servers."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from bot.checks.scratch import a_daemon_for_calls
from bot.cli.options import add_config, agreed, chat_ref, member_ref, on_database, on_settings, table
from bot.direct_calls import Caller
from bot.mcp import callers
from bot.mcp.callers import McpCaller
from config.sections.bots import ChatSettings
from config.sections.mcp import ACCOUNT, PLATFORM, McpServerSettings
from config.settings import Settings
from function_calls.call import Path as CallPath
from function_calls.loading.foreign_text import has_unseen
from function_calls.schema.definition import DefinitionError
from services.clock import SystemClock
from services.mcp.opening import Opening
from services.mcp.problems import ServerError, Unreachable
from services.mcp.stored_logins import CALLBACK_PATH, BrowserAnswers, StoredLogin, state_of
from services.mcp.tools import COUNTER, Pin, PinState, ToolDefinition, pin_of
from services.refs import ChatRef, Role
from services.store.chats import mcp_pins
from services.store.port import StoreError, Write
from services.store.reader import OperatorConnection
from services.store.sqlite.lock import StoreInUse
from services.store.turns import audit

_DIGEST_CHARS = 12
_UNASKED = "Nobody can be asked here; --yes accepts what is shown above."
_LOGIN_SECONDS = 600.0
_LOOK_SECONDS = 0.3
_NEEDS_A_WORD = (PinState.WAITING, PinState.CHANGED)


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands `list`, `accept`, `forget` and `login`, with their options, to `rollcall mcp`."""
    listing = subcommands.add_parser("list", help="list the tools of all servers with their state")
    listing.add_argument("server", nargs="?", help="only this server")
    listing.add_argument("--full", action="store_true", help="with full descriptions and schemas")
    _finish(listing, _list)
    accept = subcommands.add_parser("accept", help="accept tools as their servers define them now")
    accept.add_argument("server")
    accept.add_argument("tools", nargs="*", metavar="TOOL", help="tools to accept (default: all that wait)")
    accept.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    _finish(accept, _accept)
    forget = subcommands.add_parser(
        "forget", help="delete the stored data of tools; a server without any is treated as new"
    )
    forget.add_argument("server")
    forget.add_argument("tools", nargs="*", metavar="TOOL", help="tools to forget (default: all of the server)")
    _finish(forget, _forget)
    login = subcommands.add_parser("login", help="log in to a server with a browser")
    login.add_argument("server")
    _add_config(login)
    login.set_defaults(run=_login)


def _finish(
    parser: argparse.ArgumentParser, act: Callable[[argparse.Namespace, Settings, OperatorConnection], int]
) -> None:
    _add_config(parser)
    parser.set_defaults(run=on_database(act))


def _add_config(parser: argparse.ArgumentParser) -> None:
    # A value before the subcommand is already parsed.
    add_config(parser, default=argparse.SUPPRESS)


def _list(options: argparse.Namespace, settings: Settings, database: OperatorConnection) -> int:
    pins = [one for one in _pins(database) if options.server in (None, one.server)]
    if options.server is not None and not pins:
        return _unknown(options.server, settings)
    if not pins:
        print("No server was seen yet: name one in mcp.servers, and start the daemon.")
    if options.full:
        for pin in pins:
            _show(pin, pin.digest, context=sys.maxsize)
    else:
        _table(pins)
    for server in sorted({one.server for one in pins if one.state in _NEEDS_A_WORD}):
        print(f"`rollcall mcp accept {server}` shows what waits, and accepts it.")
    named = {one.name for one in settings.mcp.servers}
    for server in sorted({one.server for one in pins} - named):
        print(f"{server} is no longer in mcp.servers; `rollcall mcp forget {server}` drops what is known of it.")
    return 0


def _table(pins: Sequence[Pin]) -> None:
    rows = [(one.server, _visible(one.tool), one.state.value, one.digest[:_DIGEST_CHARS]) for one in pins]
    if rows:
        print(table(("SERVER", "TOOL", "STATE", "DIGEST"), rows))


def _accept(options: argparse.Namespace, settings: Settings, database: OperatorConnection) -> int:
    pins = [one for one in _pins(database) if one.server == options.server]
    if not pins or _missing(options.server, options.tools, pins):
        return 1 if pins else _unknown(options.server, settings)
    chosen = [one for one in pins if one.state in _NEEDS_A_WORD and (not options.tools or one.tool in options.tools)]
    if not chosen:
        print(
            "Nothing waits: what the server had when it was asked last is accepted. "
            "A daemon asks it when it connects, and every ten minutes."
        )
        return 0
    for pin in chosen:
        _show(pin, context=2)
    if not options.yes and not agreed(f"Accept {', '.join(_visible(one.tool) for one in chosen)}?", unasked=_UNASKED):
        print("Nothing was accepted.")
        return 1
    now_ms = SystemClock().now_ms()
    writes = [mcp_pins.accept(one.server, one.tool, one.digest, now_ms) for one in chosen]
    touched = _write(database, writes)
    for pin, count in zip(chosen, touched, strict=True):
        if not count:
            print(f"{_visible(pin.tool)}: it has changed again in the meantime; look at it once more", file=sys.stderr)
    accepted = sum(touched)
    print(f"Accepted: {accepted}. A daemon that is running uses {'it' if accepted == 1 else 'them'} within seconds.")
    return 0 if all(touched) else 1


def _forget(options: argparse.Namespace, settings: Settings, database: OperatorConnection) -> int:
    pins = [one for one in _pins(database) if one.server == options.server]
    if not pins or _missing(options.server, options.tools, pins):
        return 1 if pins else _unknown(options.server, settings)
    names = list(dict.fromkeys(options.tools)) or [one.tool for one in pins]
    _write(database, [mcp_pins.forget(options.server, name) for name in names])
    print(f"Forgotten: {len(names)}.")
    named = {one.name: one for one in settings.mcp.servers}.get(options.server)
    if named is not None:
        print(_after_forgetting(named, knows_others=len(names) < len(pins)))
    return 0


@on_settings
def _login(options: argparse.Namespace, settings: Settings) -> int:
    """Log in to a server with a browser. 0: logged in, or not needed; 1: it failed."""
    server = next((one for one in settings.mcp.servers if one.name == options.server), None)
    if server is None:
        return _unknown(options.server, settings)
    if server.login is None or server.login.grant != "authorization_code":
        print(f"mcp.servers: {server.name} has no `login` with a browser in its settings", file=sys.stderr)
        return 1
    try:
        asyncio.run(_in_browser(server, settings))
    except ServerError as error:
        print(f"{server.name}: {error}", file=sys.stderr)
        return 1
    if not StoredLogin(Path(settings.home), server).has_tokens:
        print(f"{server.name} did not ask for a login.")
        return 0
    print(f"Logged in to {server.name}. A daemon that is running uses it within half a minute.")
    return 0


async def _in_browser(server: McpServerSettings, settings: Settings) -> None:
    """Log in to `server`. Raises ServerError."""
    # Imported here: the SDK takes half a second to import.
    from services.mcp.login import Browser

    home, clock = Path(settings.home), SystemClock()
    answers, states = BrowserAnswers(home), [""]
    pasted: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read_pasted() -> None:
        for line in sys.stdin:
            if state_of(query := urlsplit(line.strip()).query):
                loop.call_soon_threadsafe(pasted.put_nowait, query)

    async def show(url: str) -> None:
        states[:] = [state_of(urlsplit(url).query)]
        print(f"Open this page in a browser, and log in:\n\n  {url}\n")
        print("Then wait, or paste the address of the page where the browser ends here, and press Enter.", flush=True)
        threading.Thread(target=read_pasted, daemon=True).start()

    async def answer() -> str:
        with answers.expected(states[0]):
            by = clock.monotonic() + _LOGIN_SECONDS
            while clock.monotonic() < by:
                if query := pasted.get_nowait() if not pasted.empty() else answers.take(states[0]):
                    return query
                await clock.sleep(_LOOK_SECONDS)
        raise ValueError("nobody has logged in within ten minutes")

    async def start(settings: McpServerSettings) -> NoReturn:
        raise Unreachable(member_text="it is a program, which needs no login")

    web = settings.platforms.web
    address = next(iter(web.public_url), f"http://127.0.0.1:{web.port}")
    connection = await Opening(server, clock, start, home)(Browser(f"{address}{CALLBACK_PATH}", show, answer))
    try:
        await connection.list_tools()
    finally:
        await connection.close()


def _after_forgetting(server: McpServerSettings, *, knows_others: bool) -> str:
    """The effect of forgetting when a daemon sees `server` again."""
    if knows_others or server.pin == "ask":
        return f"What {server.name} still has of it waits for `rollcall mcp accept {server.name}`."
    return (
        f"Nothing is known of {server.name} any more: it is trusted with whatever it has when it is seen next. "
        "`pin: ask` in its settings lets that wait for you."
    )


def _pins(database: OperatorConnection) -> list[Pin]:
    return [pin_of(row) for row in database.rows(mcp_pins.EVERYTHING)]


def _write(database: OperatorConnection, writes: Sequence[Write]) -> list[int]:
    """The number of rows that each of `writes` changed. The running daemon is notified."""
    return database.commit([*writes, audit.touch(COUNTER)])[:-1]


def _unknown(server: str, settings: Settings) -> int:
    named = [one.name for one in settings.mcp.servers]
    if server in named:
        print(f"nothing is known of {server} yet: start the daemon, which asks it for its tools", file=sys.stderr)
        return 1
    near = difflib.get_close_matches(server, named, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    print(f"there is no server {server} in mcp.servers{hint}", file=sys.stderr)
    return 1


def _missing(server: str, names: Iterable[str], pins: Sequence[Pin]) -> bool:
    """Whether the server lacks tools of that name, which are reported."""
    known = [one.tool for one in pins]
    missing = [name for name in names if name not in known]
    for name in missing:
        near = difflib.get_close_matches(name, known, n=1)
        print(f"{server} has no tool {name}{f'; did you mean {near[0]}?' if near else ''}", file=sys.stderr)
    return bool(missing)


def _show(pin: Pin, digest: str = "", *, context: int) -> None:
    """Print the definition of the tool; after a change the diff to the accepted one, with `context` unchanged lines."""
    print("  ".join(part for part in (pin.server, _visible(pin.tool), pin.state.value, digest) if part))
    old, new = _lines(pin.was), _lines(pin.seen)
    is_other = pin.state is PinState.CHANGED and old
    for line in difflib.unified_diff(old, new, "accepted", "now", lineterm="", n=context) if is_other else new or old:
        print(f"  {line}")
    print()


def _lines(tool: ToolDefinition | None) -> list[str]:
    """The lines of a definition without its name, escaped for the terminal; empty for None. Different definitions have
    different lines."""
    if tool is None:
        return []
    lines: list[str] = []
    for key, value in tool.content.items():
        if key == "description" and isinstance(value, str):
            # A backslash is doubled as in JSON, to distinguish escaped characters from literal escapes.
            doubled = value.replace("\\", "\\\\").split("\n")
            lines += ["description:", *(f"  {_visible(line)}" for line in doubled)]
        elif key != "name":
            # The order of keys is irrelevant.
            shown = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
            lines += [_visible(line) for line in f"{key}: {shown}".split("\n")]
    return lines


def _visible(line: str) -> str:
    """`line` with invisible characters escaped, which could be used to deceive."""
    if not has_unseen(line):
        return line
    return "".join(one if not has_unseen(one) else one.encode("unicode_escape").decode("ascii") for one in line)


_LAST_SECONDS = 3.0
_HERE = f"{PLATFORM}:{ACCOUNT}:stdio"


def add_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    serve = subcommands.add_parser("serve", help="offer the functions to another program (default)")
    _add_options(serve, default=argparse.SUPPRESS)
    add_to(subcommands)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Serve until the input ends or SIGTERM. 0: ended; 1: settings, functions or store cannot be used."""
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
    """Add the options. `default` replaces the defaults, so that a subparser keeps values before the subcommand."""
    roles = [role.value for role in Role]
    parser.add_argument(
        "--role", choices=roles, help="role of the program (default: member)", **{"default": "member", **default}
    )
    parser.add_argument(
        "--as",
        dest="member",
        type=member_ref,
        metavar="MEMBER",
        help=f"the caller, platform:account:member (default: {_HERE})",
        **{"default": _HERE, **default},
    )
    parser.add_argument(
        "--chat",
        type=chat_ref,
        help=f"the chat, platform:account:chat (default: {_HERE}, private)",
        **{"default": _HERE, **default},
    )
    parser.add_argument(
        "--bot", help="the bot whose functions are offered (default: that of the chat)", **{"default": "", **default}
    )
    parser.add_argument(
        "--sampling",
        action="store_true",
        help="use the client's model for functions that need a model, if the client supports it",
        **({"default": False} | default),
    )
    add_config(parser, **default)
    parser.set_defaults(run=run)


def _problem(settings: Settings, options: argparse.Namespace) -> str:
    """Why it cannot be served; empty if it can."""
    if not callers.is_installed():
        return callers.MISSING
    if options.bot and options.bot not in settings.bots:
        return f"there is no bot {options.bot!r}; the settings name {', '.join(settings.bots)}"
    return ""


def _with_bot(settings: Settings, chat: ChatRef, bot: str) -> Settings:
    """The settings with `chat` assigned to `bot`; unchanged if `bot` is empty."""
    if not bot:
        return settings
    entry = settings.chats.settings.get(chat.key, ChatSettings()).model_copy(update={"bot": bot})
    entries = {**settings.chats.settings, chat.key: entry}
    return settings.model_copy(update={"chats": settings.chats.model_copy(update={"settings": entries})})


async def _serve(settings: Settings, options: argparse.Namespace) -> None:
    # Imported here: only this command needs the SDK, which takes half a second to import.
    from bot.mcp import stdio
    from bot.mcp.callers import into_our_log
    from bot.mcp.server import McpServer

    into_our_log()
    pipe = stdio.Pipe.of_this_process()
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
                path=CallPath.MCP,
            )
            profile, whose = daemon.chats.profile(options.chat), McpCaller(caller, may_lend=options.sampling)
            calls, knowledge = daemon.direct_calls, daemon.knowledge
            server = McpServer(calls, knowledge, lambda _: whose, profile.texts, profile.bot_name)
            daemon.functions.on_change(server.functions_changed)
            try:
                await stdio.serve(server, pipe)
            finally:
                # Calls that wait for an answer end as expired.
                await server.drain(_LAST_SECONDS)
