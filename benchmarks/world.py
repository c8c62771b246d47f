"""Shared setup: messages, turns without a store, and a whole daemon with an in-memory network."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bot.cli.serving import collect_seldom
from bot.daemon import Daemon, build_daemon
from bot.database.opening import open_store
from bot.overrides import Overrides
from bot.platforms.base import Deliver, Limits, Outgoing, Receipt
from bot.telemetry.logs import set_up_logs, set_up_logs_of_a_command
from bot.telemetry.metrics import Metrics
from bot.telemetry.records import CallRecords
from config.settings import LoggingSettings, Settings
from config.texts import Texts
from function_calls.checks.permissions import Open, Policies
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.filters.call import CallFilter, Invocation, Proceed
from function_calls.invocation import Invoker
from function_calls.loading.source import Publish, Snapshot
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.spec import FunctionResult, FunctionSpec
from function_calls.turn import ChatHistory, FixedHistory, Turn, TurnInput
from services.call_log import JsonLines
from services.clock import Clock, Deadlines, SystemClock
from services.llm.model import ChatModel
from services.redaction import Redactor
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from services.store.unit_queue import switch_threads_often

NETWORK, ACCOUNT = "memory", "bot"
_SENDER = Sender(MemberRef(NETWORK, ACCOUNT, "ann"), "Ann")
_SENT_AT = datetime.now(UTC)
_LATER = 1e12
_NO_PAST = FixedHistory()
_SECRETS = ("a secret that is nowhere",)


def chat_of(number: int) -> ChatRef:
    """The chat with that number."""
    return ChatRef(NETWORK, ACCOUNT, f"chat{number}")


def message(text: str, number: int, chat: ChatRef | None = None) -> MessageContext:
    """A message to the bot in a group."""
    where = chat or chat_of(0)
    return MessageContext(
        key=MessageKey(where, f"m{number}"),
        kind=Kind.MESSAGE,
        chat=where,
        is_group=True,
        sender=_SENDER,
        text=text,
        sent_at=_SENT_AT,
        mentions_bot=True,
    )


def a_profile() -> ChatProfile:
    """A chat with default settings."""
    texts = Texts().of("en")
    return ChatProfile("default", "Rollcall", "", texts, ZoneInfo("Europe/Oslo"), True, {}, {})


def a_turn(number: int, functions: BotFunctions, profile: ChatProfile, past: ChatHistory = _NO_PAST) -> Turn:
    """A turn that is not stored."""
    return Turn(TurnInput(str(number), functions, lambda: profile, history=past), _LATER)


async def outer_filter(invocation: Invocation, proceed: Proceed) -> FunctionResult:
    """A call filter that checks the sender and continues."""
    if invocation.context.sender.is_bot:
        return FunctionResult(handled=False)
    return await proceed(invocation)


async def inner_filter(invocation: Invocation, proceed: Proceed) -> FunctionResult:
    """A call filter that checks the result."""
    result = await proceed(invocation)
    return result if result.ok else result.with_error_text("It failed.")


FILTERS: Sequence[CallFilter] = (outer_filter, inner_filter)


def set_up_process(logs: Path | None = None) -> None:
    """Apply the daemon's process-wide settings. Logs go to the folder `logs`; without it, only errors are logged."""
    switch_threads_often()
    collect_seldom()
    if logs is None:
        set_up_logs_of_a_command(sys.stderr)
    else:
        settings = LoggingSettings(folder=logs, console="off")
        set_up_logs(settings, redact=Redactor(_SECRETS), console_chat=False)


def an_invoker(folder: Path | None = None) -> Invoker:
    """An invoker; with `folder`, it has two filters, the call log and the daemon's log."""
    set_up_process(folder)
    clock = SystemClock()
    policies = Policies(Open(), Open())
    if folder is None:
        return Invoker(policies, Deadlines(clock), clock)
    log = JsonLines(folder / "function_calls.jsonl")
    records = CallRecords(log, Metrics(), clock, Redactor(_SECRETS))
    return Invoker(policies, Deadlines(clock), clock, filters=FILTERS, record=records.record)


class MemoryNetwork:
    """An in-memory chat network that stores nothing and resolves the futures of expected answers."""

    name = NETWORK
    account = ACCOUNT
    limits = Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=10**9, choices=False)

    def __init__(self) -> None:
        self._waiting: dict[ChatRef, asyncio.Future[str]] = {}
        self._sent = 0

    def answer(self, chat: ChatRef) -> asyncio.Future[str]:
        """Future of the next text that is sent to `chat`."""
        waiter = self._waiting[chat] = asyncio.get_running_loop().create_future()
        return waiter

    async def run(self, deliver: Deliver) -> None:
        return None

    async def send(self, outgoing: Outgoing) -> Receipt:
        self._sent += 1
        waiter = self._waiting.pop(outgoing.chat, None)
        if waiter is not None:
            waiter.set_result(outgoing.text)
        return Receipt(f"s{self._sent}")

    async def typing(self, chat: ChatRef, status: str) -> None:
        return None

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        return None

    async def close(self) -> None:
        return None


class _Source:
    """A source with the given specs."""

    name = "benchmark"

    def __init__(self, specs: Sequence[FunctionSpec]) -> None:
        self._specs = specs

    async def run(self, publish: Publish) -> None:
        publish(Snapshot(tuple(self._specs)))


@asynccontextmanager
async def a_daemon(
    specs: Sequence[FunctionSpec],
    *,
    model: ChatModel | None = None,
    settings: Mapping[str, Any] | None = None,
    home: Path | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[tuple[Daemon, MemoryNetwork]]:
    """A daemon with its database in `home` or a temporary folder, and with only the functions `specs`."""
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as folder:
        home = home or Path(folder)
        set_up_process(home / "logs")
        given: dict[str, Any] = {
            "home": str(home),
            "logging": {"folder": f"{home}/logs", "console": "off"},
            "chats": {"allow": ["*"]},
            **(settings or {}),
        }
        loaded = Settings.model_validate(given)
        clock, network = clock or SystemClock(), MemoryNetwork()
        store = await open_store(loaded, clock)
        parts = Overrides(clock=clock, model=model, sources=lambda services: [_Source(specs)], filters=FILTERS)
        daemon = build_daemon(loaded, store, [network], Ids(clock), Texts(), parts)
        await daemon.start()
        daemon.registry.publish("built in")
        try:
            yield daemon, network
        finally:
            await daemon.stop()


async def ask(daemon: Daemon, network: MemoryNetwork, context: MessageContext) -> str:
    """Deliver a message; returns the text of the reply that the network gets."""
    waiter = network.answer(context.chat)
    await daemon.intake.accept(context)
    return await waiter
