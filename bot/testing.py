"""Test kit for authors of functions: a real daemon without waiting, with a virtual clock and a scripted model.

Example:
    async with a_group(functions=[weather]) as group:
        group.model.says(call("weather", city="Oslo"), "Cold.")
        assert await group.say("Ann", "@Rollcall how is Oslo?") == ["Cold."]
"""

from __future__ import annotations

import asyncio
import functools
import tempfile
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo

import function_calls
import services
from bot.daemon import Daemon, build_daemon
from bot.database.opening import database_of, open_store
from bot.overrides import Overrides
from bot.platforms.base import Accepted, Deliver, Limits, Outgoing, Receipt
from bot.platforms.mentions import ParseText, mention_parser
from config.settings import Settings
from config.texts import Texts
from function_calls.context import Kind, MessageContext, MessageKey, Quoted, Sender
from function_calls.filters.call import CallFilter
from function_calls.loading.python_functions import as_spec
from function_calls.loading.source import Changes, FunctionSource, Publish, Snapshot, Unwatched
from function_calls.ports import Measure, ModerationRequest
from function_calls.spec import FunctionSpec
from services.clock import Deadlines, VirtualClock
from services.fault_points import FaultPoints
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest, ToolCall
from services.refs import ChatRef, ErrorCode, MemberRef, Role
from services.store.all_tables import all_tables
from services.store.ids import Ids
from services.store.port import Store
from services.store.sqlite.upgrade import upgrade
from services.store.sqlite.writer import connect_writer
from services.web.http import WebClient

PLATFORM = "test"
ACCOUNT = "bot"
_HANGS_SECONDS = 60.0
_TEXTS = Texts()  # read once for all groups of a run of tests
FAMILY = ChatRef(PLATFORM, ACCOUNT, "family")
Step = str | ToolCall | ModelAnswer | ModelError | Sequence[ToolCall]


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A model's call of the function `name`."""
    return ToolCall(id=f"call_{name}", name=name, arguments=arguments)


class ScriptedModel:
    """ChatModel with scripted answers, which records its requests."""

    name = "scripted"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self._steps: list[Step] = []

    def says(self, *steps: Step) -> None:
        """Add answers: a text, one call, several calls, or an error to raise."""
        self._steps += steps

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        if not self._steps:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "the test's script has no more answers")
        step = self._steps.pop(0)
        number = len(self.requests)
        match step:
            case str():
                return ModelAnswer(text=step, finish="stop", request_id=f"request-{number}")
            case ToolCall():
                return ModelAnswer(calls=(step,), finish="tool_calls", request_id=f"request-{number}")
            case ModelAnswer():
                return step
            case ModelError():
                raise step
            case _:
                calls = tuple(
                    ToolCall(f"{one.id}_{place}", one.name, one.arguments, one.raw, one.fault)
                    for place, one in enumerate(step)
                )
                return ModelAnswer(calls=calls, finish="tool_calls", request_id=f"request-{number}")

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None:
        return None


class TestPlatform:
    """A chat network in memory that records the messages that the bot sends."""

    __test__ = False
    name = PLATFORM
    account = ACCOUNT
    measures = frozenset(Measure)

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits(
            text_chars=4000, sends_are_idempotent=True, sends_per_minute=100_000, choices=True
        )
        self.sent: list[Outgoing] = []
        self.statuses: list[tuple[ChatRef, str]] = []
        self.roles: dict[MemberRef, Role] = {}
        """Current roles by member: the role of the member's first message, unless the test sets another."""
        self.failures: list[Exception] = []
        """Raised by the next sends, one each."""
        self.moderated: list[ModerationRequest] = []
        """Measures taken."""
        self.refusals: list[Exception] = []
        """Raised by the next measures, one each."""

    async def run(self, deliver: Deliver) -> None:
        return None

    async def send(self, outgoing: Outgoing) -> Receipt:
        if self.failures:
            raise self.failures.pop(0)
        if all(one.key != outgoing.key for one in self.sent):
            self.sent.append(outgoing)
        return Receipt(f"sent-{outgoing.key}")

    async def typing(self, chat: ChatRef, status: str) -> None:
        self.statuses.append((chat, status))

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        return self.roles.get(member)

    async def moderate(self, request: ModerationRequest) -> str:
        if self.refusals:
            raise self.refusals.pop(0)
        self.moderated.append(request)
        if request.member is not None and request.measure in (Measure.KICK, Measure.BAN):
            self.roles.pop(request.member, None)
        return "https://chat.example/join" if request.measure is Measure.LINK else ""

    async def close(self) -> None:
        return None


class SpecSource:
    """Function source of marked functions and specs."""

    def __init__(self, functions: Sequence[object], services: Mapping[type, object]) -> None:
        self.name = "test"
        self._functions = functions
        self._services = services

    async def run(self, publish: Publish) -> None:
        specs: list[FunctionSpec] = []
        for one in self._functions:
            if isinstance(one, FunctionSpec):
                specs.append(one)
            elif callable(one) and not isinstance(one, ModuleType):
                specs.append(as_spec(one, self._services))
            else:
                raise TypeError(f"{one!r} is neither a marked function nor a FunctionSpec")
        publish(Snapshot(tuple(specs)))


@dataclass(slots=True)
class Group:
    """A conversation with the bot."""

    daemon: Daemon
    platform: TestPlatform
    model: ScriptedModel
    clock: VirtualClock
    deadlines: Deadlines
    parse: ParseText
    """Finds out whether a text is addressed to the bot."""
    chat: ChatRef = FAMILY
    is_group: bool = True

    async def say(self, who: str, text: str, **facts: Any) -> list[str]:
        """Deliver `text` by `who`; returns the texts that the bot sends until it is idle. `facts`: role, id, chat,
        reply_to_bot, kind, is_bot."""
        before = len(self.platform.sent)
        await self.hear(who, text, **facts)
        await self.settle()
        return [one.text for one in self.platform.sent[before:]]

    async def hear(self, who: str, text: str, **facts: Any) -> Accepted:
        """Deliver `text` by `who`; returns as soon as it is accepted."""
        return await self.daemon.intake.accept(self.message(who, text, **facts))

    async def settle(self) -> None:
        """Return when the bot is idle. Raises TimeoutError if that takes more than a minute."""
        async with asyncio.timeout(_HANGS_SECONDS):
            await self.daemon.settle()
            await self.daemon.summaries.idle()

    async def crash(self) -> None:
        """Stop the daemon without finishing its work. A new group on the same `home` resumes from the durable state."""
        await self.daemon.timers.close()
        await self.daemon.engine.drain(0)
        await self.daemon.delivery.close(0)
        await self.daemon.summaries.close()
        await self.daemon.store.close()

    def message(self, who: str, text: str, **facts: Any) -> MessageContext:
        """The event of `who` sending `text`, as a platform reports it. `facts` are fields of MessageContext or `id`,
        `role`, `is_bot`, `revision` and `reply_to_bot`; a `role` is also recorded by the platform."""
        parsed = self.parse(text)
        chat = facts.pop("chat", self.chat)
        kind = facts.pop("kind", Kind.MESSAGE)
        native_id = facts.pop("id", None) or f"m{self.daemon.ids.next()}"
        quoted = Quoted("q", "Rollcall", "…", from_bot=True) if facts.pop("reply_to_bot", False) else None
        member, role = MemberRef(PLATFORM, ACCOUNT, who.lower()), facts.pop("role", None)
        if role is not None:
            self.platform.roles.setdefault(member, role)
        sender = Sender(member, who, role or Role.MEMBER, facts.pop("is_bot", False))
        key_kind = kind if kind in (Kind.EDIT, Kind.DELETE, Kind.REACTION) else Kind.MESSAGE
        revision = facts.pop("revision", "1") if key_kind is not Kind.MESSAGE else ""
        return MessageContext(
            key=MessageKey(chat, native_id, key_kind, revision),
            kind=kind,
            chat=chat,
            is_group=facts.pop("is_group", self.is_group),
            sender=sender,
            text=parsed.text,
            sent_at=self.clock.now(),
            mentions_bot=parsed.mentions_bot,
            reply_to=facts.pop("reply_to", quoted),
            **facts,
        )


@functools.cache
def _new_database() -> bytes:
    """A new migrated database. Cached for all groups, because creating it takes longer than most of a test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.sqlite"
        upgrade(path, backups=Path(folder), clock=VirtualClock(), tables=all_tables())
        connect_writer(path).close()
        return path.read_bytes()


_OUR_FOLDERS = tuple(folder for package in (function_calls, services) for folder in package.__path__)


@contextmanager
def _short_tracebacks() -> Iterator[None]:
    """Log exceptions without local variables, unless the test has configured structlog."""
    if structlog.is_configured():
        yield
        return
    *others, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=_short_traceback)
    structlog.configure(processors=[*others, renderer])
    try:
        yield
    finally:
        structlog.reset_defaults()


def _short_traceback(write_to: TextIO, exc_info: ExcInfo) -> None:
    """Print the traceback from the first frame outside of this project on; all of it if there is none."""
    kind, error, trace = exc_info
    own = trace
    while own is not None and own.tb_frame.f_code.co_filename.startswith(_OUR_FOLDERS):
        own = own.tb_next
    write_to.write("\n")
    traceback.print_exception(kind, error, own or trace, file=write_to)


@asynccontextmanager
async def a_group(
    functions: Sequence[object] = (),
    *,
    settings: Mapping[str, Any] | None = None,
    model: ChatModel | None = None,
    shadow: ChatModel | None = None,
    filters: Sequence[CallFilter] = (),
    home: Path | None = None,
    platform: TestPlatform | None = None,
    other_platforms: Sequence[TestPlatform] = (),
    faults: FaultPoints | None = None,
    clock: VirtualClock | None = None,
    around_store: Callable[[Store], Store] = lambda store: store,
    prepare: Callable[[Settings], Settings] | None = None,
    web: WebClient | None = None,
    sources: Sequence[FunctionSource] = (),
    changes: Changes | None = None,
) -> AsyncIterator[Group]:
    """A group chat with the bot: a real daemon with the built-in functions and `functions`. The store is in a temporary
    folder, or in `home`, which is kept. `other_platforms` are additional networks of the same daemon. `settings` are
    as in YAML; None removes one of the group's. `web` replaces the web client; the default never connects to this
    machine. `sources` are additional sources, after all others; `changes` notifies the sources of changed files, by
    default never."""
    with _short_tracebacks(), tempfile.TemporaryDirectory() as folder:
        at = home or Path(folder)
        test_settings = {
            "home": str(at),
            "logging": {"folder": str(at / "logs"), "console": "off"},
            "chats": {"allow": ["*"]},
            "timezone": "UTC",
            **(settings or {}),
        }
        test_settings = {key: value for key, value in test_settings.items() if value is not None}
        loaded = Settings.model_validate(test_settings)
        if prepare is not None:
            loaded = prepare(loaded)
        clock = clock or VirtualClock()
        deadlines = Deadlines(clock)
        scripted = ScriptedModel()
        network = platform or TestPlatform()

        def all_sources(services: Mapping[type, object]) -> Sequence[FunctionSource]:
            return [SpecSource(functions, services), *sources]

        if not loaded.store.is_on_a_server and not (database := database_of(loaded)).exists():
            database.parent.mkdir(parents=True, exist_ok=True)
            database.write_bytes(_new_database())
        store = around_store(await open_store(loaded, clock))
        overrides = Overrides(
            clock=clock,
            rng=Random(1),  # noqa: S311 - the same random numbers in every test
            model=model or scripted,
            shadow=shadow,
            web=web,
            sources=all_sources,
            changes=changes or Unwatched(),
            filters=filters,
            faults=faults or FaultPoints(),
            deadlines=deadlines,
        )
        try:
            daemon = build_daemon(loaded, store, [network, *other_platforms], Ids(clock), _TEXTS, overrides)
        except BaseException:
            await store.close()
            raise
        try:
            await daemon.start()
            names = [name for bot in loaded.bots.values() for name in (bot.name, *bot.aliases)]
            yield Group(daemon, network, scripted, clock, deadlines, mention_parser(names))
        finally:
            await daemon.stop()
