"""Services and ports that handlers may request by type."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import structlog

from bot.chats.chats import Chats
from bot.chats.open_questions import OpenQuestions
from bot.engine.embedded import EmbeddedEngine
from bot.platforms.base import ChatPlatform, Moderating, SendFailed
from config.sections.news_and_search import NewsSettings, SearchSettings, SummarySettings
from config.settings import Settings
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.ports import ChatWriter, Moderated, ModerationOutcome, ModerationRequest, Speaker
from services.calc.dice import Dice
from services.calc.units import Units
from services.chats.documents import Documents
from services.chats.members import KnownMembers, MemberZones
from services.chats.memory import Memory
from services.chats.message_history import MessageHistory
from services.chats.polls import Polls
from services.chats.todo import TodoLists
from services.chats.usage import UsageCounts
from services.clock import Clock, Deadlines
from services.knowledge import KnowledgeBases
from services.llm.model import MOST_CHARS, CallersModel, NoTextReason, TextRequest, WrittenText
from services.media.models import MediaModels
from services.refs import ChatRef, MemberRef, Role
from services.sandbox.sandbox import Sandbox
from services.sandbox.shell import Shell
from services.sandbox.workspace import Workspaces
from services.store.chats import desk_accounts, history
from services.store.ids import Ids
from services.store.port import Store, StoreError
from services.timers.reminders import Reminders
from services.timers.schedules import OPERATORS_PLATFORM
from services.timers.timetable import Timetable
from services.times import Times
from services.times.places import Places
from services.web.dictionary import Dictionary
from services.web.exchange_rates import ExchangeRates
from services.web.http import WebClient, WebLimits
from services.web.news import News
from services.web.pages import PageReader
from services.web.search import OPENAI_URL, PERPLEXITY_URL, Searcher, SearchingModel, SearXNG, WebSearch
from services.web.weather import OpenMeteo

_PERPLEXITY_MODEL = "sonar"


def news_of(settings: NewsSettings, clock: Clock, web: WebClient | None = None) -> News:
    """The news feeds, read through `web` if given."""
    limits = WebLimits(timeout_seconds=settings.timeout_seconds, body_bytes=settings.feed_kilobytes * 1024)
    return News(settings, web or WebClient(limits), clock)


def search_of(settings: SearchSettings, clock: Clock, web: WebClient | None = None) -> WebSearch:
    """The web search, through `web` if given."""
    return WebSearch(searcher_of(settings, web), clock, results=settings.results, cache_seconds=settings.cache_seconds)


def searcher_of(settings: SearchSettings, web: WebClient | None = None) -> Searcher | None:
    """The configured search provider; None without one. Only the URL in the settings may be in a private network."""
    if settings.kind == "none":
        return None
    limits = WebLimits(timeout_seconds=settings.timeout_seconds)
    if settings.kind == "searxng":
        http = web or WebClient(limits, private_origin=settings.url if settings.private_network else "")
        return SearXNG(http, settings.url, settings.api_key)
    is_perplexity = settings.kind == "perplexity"
    url = settings.url or (PERPLEXITY_URL if is_perplexity else OPENAI_URL)
    http = web or WebClient(limits, private_origin=url if settings.private_network else "")
    model = settings.model or (_PERPLEXITY_MODEL if is_perplexity else "")
    return SearchingModel(http, url, settings.api_key, model)


WORKSPACES = Path("work", "chats")
"""Below `home`: the folders of the chats."""


def services_of(
    settings: Settings, store: Store, clock: Clock, ids: Ids, rng: Random, web: WebClient | None, timetable: Timetable
) -> dict[type, object]:
    """The services by type. If `web` is given, all requests use it; else each service has its configured client."""
    client, zones, times = web or WebClient(), MemberZones(store, clock), Times()
    client.allow_private(settings.web_access.private_hosts)
    sandbox = Sandbox(clock, settings.sandbox)
    workspaces = Workspaces(Path(settings.home) / WORKSPACES, settings.files)
    return {
        Clock: clock,
        WebClient: client,
        OpenMeteo: OpenMeteo(client, clock),
        Dictionary: Dictionary(client),
        ExchangeRates: ExchangeRates(client, clock),
        PageReader: PageReader(client, clock),
        TodoLists: TodoLists(store, clock),
        Memory: Memory(store, clock, settings.memory),
        KnowledgeBases: KnowledgeBases(settings.knowledge, clock),
        Polls: Polls(store, clock),
        Documents: Documents(store, clock),
        Places: Places(clock),
        Dice: Dice(rng),
        Units: Units(),
        News: news_of(settings.news, clock, web),
        WebSearch: search_of(settings.search, clock, web),
        Sandbox: sandbox,
        Workspaces: workspaces,
        Shell: Shell(sandbox, workspaces, settings.shell),
        MessageHistory: MessageHistory(store, clock, ids, most_lines=settings.summary.lines),
        SummarySettings: settings.summary,
        Timetable: timetable,
        MemberZones: zones,
        KnownMembers: KnownMembers(store),
        UsageCounts: UsageCounts(store),
        MediaModels: MediaModels(settings.media, client),
        Times: times,
        Reminders: Reminders(timetable, zones, times, settings.reminders, clock),
    }


_ANSWER_SECONDS = 3.0
_MEASURE_SECONDS = 20.0
_SERVER_ERROR = 500
_moderation_log = structlog.get_logger("moderation")
_NEWEST = 2**62
_SPEAKERS = 20


class EngineActions:
    """ChatActions on the engine, which is constructed after the functions."""

    def __init__(self, store: Store, questions: OpenQuestions, engine: Callable[[], EmbeddedEngine]) -> None:
        self._store = store
        self._questions = questions
        self._engine = engine

    async def stop(self, chat: ChatRef, by: MemberRef, role: Role) -> bool:
        """Stop the running turn of `chat`; whether there was one that `by` may stop."""
        return self._engine().stop(chat, by, role)

    async def withdraw_question(self, chat: ChatRef, member: MemberRef) -> bool:
        """Close the member's open question; returns False without one. The question stays open if the store fails.
        Raises StoreError."""
        claimed = self._questions.claim_own(chat.key, member.key)
        if claimed is None:
            return False
        try:
            await self._store.commit([self._questions.close_write(claimed)])
        except StoreError:
            self._questions.reopen(chat.key, member.key, claimed)
            raise
        self._questions.claimed_unanswered(claimed)
        return True


class PlatformMembers:
    """Members of chats, from the platform and the history."""

    def __init__(
        self,
        store: Store,
        chats: Chats,
        deadlines: Deadlines,
        clock: Clock,
        platform: Callable[[ChatRef], ChatPlatform | None],
    ) -> None:
        """`platform`: that of a chat, if it is configured."""
        self._store = store
        self._chats = chats
        self._deadlines = deadlines
        self._clock = clock
        self._platform = platform

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's current role; None if the platform does not return one within three seconds. The owner of a
        schedule in the settings has the role of its entry, and an operator that of the account on the desk."""
        if member.platform == OPERATORS_PLATFORM and member.account == desk_accounts.DESK:
            rows = await self._store.read(desk_accounts.of_name(member.native))
            return desk_accounts.ROLES_IN_CHATS[rows[0]["role"]] if rows else None
        if member.platform == OPERATORS_PLATFORM:
            entry = self._chats.schedules.get(member.native)
            return Role(entry.as_role) if entry is not None and entry.chat == chat.key else None
        platform = self._platform(chat)
        if platform is None:
            return None
        deadline = self._clock.monotonic() + _ANSWER_SECONDS
        try:
            role = await self._deadlines.run(platform.role(chat, member), deadline)
        except TimeoutError:
            return None
        return None if role is None else self._chats.role(member.key, role)

    def file_bytes(self, chat: ChatRef) -> int:
        """Maximum size of a file that the bot can send in `chat`; 0: none."""
        platform = self._platform(chat)
        return platform.limits.file_bytes if platform is not None and platform.limits.attachments else 0

    async def moderate(self, request: ModerationRequest) -> Moderated:
        """Take a measure on the network; the outcome is DONE only if the network has confirmed it."""
        platform: object = self._platform(request.chat)
        if not isinstance(platform, Moderating) or request.measure not in platform.measures:
            return Moderated(ModerationOutcome.UNSUPPORTED)
        try:
            deadline = self._clock.monotonic() + _MEASURE_SECONDS
            link = await self._deadlines.run(platform.moderate(request), deadline)
            return Moderated(ModerationOutcome.DONE, link)
        except TimeoutError:
            outcome, problem = ModerationOutcome.UNKNOWN, "no answer in time"
        except SendFailed as failed:
            is_unclear = failed.unknown_outcome or failed.status >= _SERVER_ERROR
            rejected = ModerationOutcome.NOT_REACHED if failed.retryable else ModerationOutcome.NOT_PERMITTED
            outcome, problem = ModerationOutcome.UNKNOWN if is_unclear else rejected, str(failed)
        facts = {"chat": request.chat.key, "measure": request.measure.value, "outcome": outcome.value}
        _moderation_log.warning("moderation_failed", **facts, problem=problem)
        return Moderated(outcome)

    async def names(self, chat: ChatRef) -> Sequence[str]:
        """Display names of recent speakers, latest first; at most 50. Raises StoreError."""
        rows = await self._store.read(history.recent(chat.key, _NEWEST, 200))
        return list(dict.fromkeys(row["sender_name"] for row in rows if not row["from_bot"]))[:50]

    async def speakers(self, chat: ChatRef) -> Sequence[Speaker]:
        """Recent speakers with their roles, latest first; at most 20. Raises StoreError."""
        names: dict[str, str] = {}
        for row in await self._store.read(history.recent(chat.key, _NEWEST, 200)):
            if not row["from_bot"]:
                names.setdefault(row["sender"], row["sender_name"])
        members = list(names)[:_SPEAKERS]
        roles = await asyncio.gather(*(self.role(chat, MemberRef.parse(member)) for member in members))
        return [Speaker(names[member], role) for member, role in zip(members, roles, strict=True)]


_MARGIN_SECONDS = 1.0
"""Time of the run reserved for reporting that there is no text."""
_log = structlog.get_logger("words")


class TextModels:
    """The port `Words`."""

    def __init__(self, writer: ChatWriter, deadlines: Deadlines, clock: Clock) -> None:
        self._writer = writer
        self._deadlines = deadlines
        self._clock = clock

    async def ask(self, context: MessageContext, call: Call, request: TextRequest) -> WrittenText | NoTextReason:
        """The text of the caller's model, or of the bot's, or why it is missing: TOO_LONG, DOWN without time, or the
        reason of the model."""
        if sum(len(one.content) for one in request.messages) > MOST_CHARS:
            return NoTextReason.TOO_LONG
        seconds = min(request.timeout_seconds, call.deadline - self._clock.monotonic() - _MARGIN_SECONDS)
        if seconds <= 0:
            return NoTextReason.DOWN
        model = call.callers_model
        if model is None:
            written = await self._writer.write_for(context, call.profile, request.messages, seconds)
            return written if isinstance(written, NoTextReason) else WrittenText(written, is_callers=False)
        return await self._of_caller(context, call, model, request, seconds)

    async def _of_caller(
        self, context: MessageContext, call: Call, model: CallersModel, request: TextRequest, seconds: float
    ) -> WrittenText | NoTextReason:
        try:
            written = await self._deadlines.run(model.write(request), self._clock.monotonic() + seconds)
        except TimeoutError:
            written = NoTextReason.DOWN
        how = written.value if isinstance(written, NoTextReason) else "written"
        _log.info("callers_model_asked", member=context.sender.ref.key, call=call.key, how=how)
        return written
