"""`rollcall call NAME --json '{…}'`: run one function by hand, in a process of its own, through every check."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid

from bot.cli.options import add_config, settings_or_faults
from bot.turn_log import StoreTurnLog
from bot.wiring import Given, build_daemon, open_store
from config.settings import Settings
from config.texts import Texts
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.definition import DefinitionError
from function_calls.spec import FunctionResult
from function_calls.turn import Path, Turn
from services.clock import SystemClock
from services.fault_points import FaultPoints
from services.json_values import JsonObject
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from services.store.port import StoreError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("call", help="run one function by hand", description=__doc__)
    parser.add_argument("name")
    parser.add_argument(
        "--json", type=_json_object, default="{}", metavar="ARGUMENTS", help="the arguments as a JSON object"
    )
    parser.add_argument(
        "--as",
        dest="member",
        type=_member,
        default="cli:main:operator",
        metavar="MEMBER",
        help="who calls, platform:account:member",
    )
    parser.add_argument("--role", default="owner", choices=[role.value for role in Role], help="as what (owner)")
    parser.add_argument(
        "--chat", type=_chat, default="cli:main:terminal", help="the group where, platform:account:chat"
    )
    parser.add_argument("--yes", action="store_true", help="do what the function asks a yes for before it runs")
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the result as JSON. 0: it did what was asked; 1: it did not."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    try:
        result = asyncio.run(_called(settings, options))
    except (StoreError, DefinitionError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({**result.for_model(), "reply": result.reply}, indent=2, ensure_ascii=False, default=str))
    return 0 if result.ok else 1


def _json_object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("the arguments have to be a JSON object, {…}")
    return value


def _chat(text: str) -> ChatRef:
    try:
        return ChatRef.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form platform:account:chat") from None


def _member(text: str) -> MemberRef:
    try:
        return MemberRef.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form platform:account:member") from None


async def _called(settings: Settings, options: argparse.Namespace) -> FunctionResult:
    chat: ChatRef = options.chat
    member: MemberRef = options.member
    clock = SystemClock()
    store = await open_store(settings, clock)
    ids = Ids(clock)
    try:
        daemon = build_daemon(settings, store, [], ids, Texts(), Given(clock=clock))
    except BaseException:
        await store.close()
        raise
    try:
        await daemon.chats.load(store)
        await daemon.functions.start()
        context = MessageContext(
            key=MessageKey(chat, uuid.uuid4().hex),
            kind=Kind.MESSAGE,
            chat=chat,
            is_group=True,
            sender=Sender(member, member.native, Role(options.role)),
            text="",
            sent_at=clock.now(),
            bot=daemon.chats.of(chat).settings.bot,
        )
        turn_id = ids.next()
        log = StoreTurnLog(store, context, turn_id, clock, FaultPoints())
        turn = Turn(
            id=str(turn_id),
            functions=daemon.registry.of(context.bot),
            profile=lambda: daemon.chats.profile(chat),
            deadline=clock.monotonic() + settings.router.turn_timeout_seconds,
            log=log,
        )
        invoker, name = daemon.invoker, options.name
        result = await invoker.invoke(context, name, options.json, turn, Path.CLI, confirmed=options.yes)
        await store.commit(log.rest())
        return result
    finally:
        await daemon.stop()
