"""`rollcall call NAME --json '{…}'`: run one function by hand, in a process of its own, through every check."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from typing import Any

from bot.cli.options import add_config, settings_or_faults
from bot.wiring import Given, build_daemon, open_store
from config.settings import Settings
from config.texts import Texts
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.definition import DefinitionError
from function_calls.spec import FunctionResult
from function_calls.turn import Path, Turn
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from services.store.port import StoreError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("call", help="run one function by hand", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--json", default="{}", metavar="ARGUMENTS", help="the arguments as a JSON object")
    parser.add_argument("--as", dest="member", default="cli:main:operator", help="the member, platform:account:member")
    parser.add_argument("--role", default="owner", choices=[role.value for role in Role])
    parser.add_argument("--chat", default="cli:main:terminal", help="the chat, platform:account:chat")
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the result as JSON. 0: it did what was asked; 1: it did not; 2: the arguments are no JSON object."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    try:
        arguments = dict(json.loads(options.json))
        chat, member = ChatRef.parse(options.chat), MemberRef.parse(options.member)
    except (ValueError, TypeError) as error:
        print(f"--json, --chat or --as cannot be read: {error}", file=sys.stderr)
        return 2
    try:
        result = asyncio.run(_called(settings, options.name, arguments, chat, member, Role(options.role)))
    except (StoreError, DefinitionError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({**result.for_model(), "reply": result.reply}, indent=2, ensure_ascii=False, default=str))
    return 0 if result.ok else 1


async def _called(
    settings: Settings, name: str, arguments: dict[str, Any], chat: ChatRef, member: MemberRef, role: Role
) -> FunctionResult:
    clock, texts = SystemClock(), Texts()
    store = await open_store(settings, clock)
    ids = Ids(clock)
    try:
        daemon = build_daemon(settings, store, [], ids, texts, Given(clock=clock))
    except BaseException:
        await store.close()
        raise
    try:
        await daemon.chats.load(store)
        context = MessageContext(
            key=MessageKey(chat, uuid.uuid4().hex),
            kind=Kind.MESSAGE,
            chat=chat,
            is_group=True,
            sender=Sender(member, member.native, role),
            text="",
            sent_at=clock.now(),
            bot=daemon.chats.of(chat).settings.bot,
        )
        turn = Turn(
            id=f"cli-{ids.next()}",
            functions=daemon.registry.of(context.bot),
            profile=lambda: daemon.chats.profile(chat),
            deadline=clock.monotonic() + settings.router.turn_timeout_seconds,
        )
        return await daemon.invoker.invoke(context, name, arguments, turn, Path.CLI)
    finally:
        await daemon.stop()
