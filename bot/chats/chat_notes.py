"""State that scripts leave in a chat: notes for models, schedules, and whether the start script has run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import structlog

from bot.chats.chats import Chats
from function_calls.basic import KEYWORDS, NOTE_KEYWORDS, SCHEDULE_KEYWORD
from function_calls.context import Kind, MessageContext
from function_calls.outcome import OutcomeKind, TurnOutcome
from function_calls.ports import NotesFull
from function_calls.profile import ChatNote
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.spec import FunctionSpec
from function_calls.turn import Turn
from services.clock import Clock
from services.refs import ChatRef, ErrorCode, MemberRef
from services.scripts.basic_tools import BasicTools
from services.store.chats import chat_notes
from services.store.port import Store, Write
from services.store.turns import audit
from services.timers.schedules import SCRIPTS, Schedules, script_of

GRACE_SECONDS = 120
"""How long a script may be missing before its schedules are removed."""
_log = structlog.get_logger("chat_notes")


class ScriptSchedules:
    """Removes the schedules of scripts that no longer exist or no longer schedule."""

    def __init__(
        self, schedules: Schedules, functions: Callable[[str], BotFunctions], tools: BasicTools, clock: Clock
    ) -> None:
        self._schedules = schedules
        self._absences = Absences(clock)
        self._functions = functions
        self._tools = tools
        self._seen: tuple[frozenset[str], dict[str, BotFunctions]] = frozenset(), {}

    async def sync(self) -> None:
        """Check the schedules, if they or the functions of their bots have changed since the last check."""
        names = await self._schedules.declared(SCRIPTS)
        bots = {script_of(name)[0] for name in names}
        now = {bot: self._functions(bot) for bot in bots}
        # A run that started with the old script may have added a schedule after the script was removed.
        is_known = self._seen[0].issuperset(names)
        if is_known and all(self._seen[1].get(bot) is functions for bot, functions in now.items()):
            return
        active = {(row.bot, row.tool_name) for row in await self._tools.everything() if row.is_active}
        for name in names:
            bot, script = script_of(name)
            spec = now[bot].find(script)
            is_declared = still_declares({SCHEDULE_KEYWORD}, spec, is_stored=(bot, script) in active)
            if not is_declared and not self._absences.is_short((bot, script), spec):
                await self._schedules.declare(SCRIPTS, name, None)
                _log.info("schedule_of_a_script_removed", script=script, bot=bot)
        self._absences.there(script_of(name) for name in names if now[script_of(name)[0]].find(script_of(name)[1]))
        # Scripts that have been missing for a short time are checked again.
        self._seen = (frozenset(), {}) if self._absences.any else (frozenset(names), now)


class Absences:
    """How long scripts have been missing. While a folder is replaced, by a copy or a checkout, it is empty for a
    moment, which must not remove schedules."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[tuple[str, str], float] = {}

    @property
    def any(self) -> bool:
        """Whether any script has been missing for less than the grace period."""
        return bool(self._since)

    def is_short(self, script: tuple[str, str], spec: FunctionSpec | None) -> bool:
        """Whether the script (bot and name) is missing and still within the grace period."""
        if spec is not None:
            return False
        now = self._clock.monotonic()
        if now - self._since.setdefault(script, now) < GRACE_SECONDS:
            return True
        del self._since[script]
        return False

    def there(self, scripts: Iterable[tuple[str, str]]) -> None:
        """Record that these scripts exist."""
        for one in scripts:
            self._since.pop(one, None)


def still_declares(keywords: Collection[str], spec: FunctionSpec | None, *, is_stored: bool) -> bool:
    """Whether a script still uses one of the `keywords` that set something. A stored script that cannot be loaded now
    may be repaired: its settings are kept."""
    if spec is None:
        return is_stored
    return any(keyword in keywords for keyword in spec.origin.metadata.get(KEYWORDS, ()))


_MOST_NOTES = 20
_MOST_CHARS = 8000


class StoredChatNotes:
    """Stores the notes of chats."""

    def __init__(self, chats: Chats, store: Store, clock: Clock) -> None:
        self._chats = chats
        self._store = store
        self._clock = clock

    def of(self, chat: ChatRef, bot: str) -> Sequence[ChatNote]:
        """The notes for the models of `bot` in `chat`, oldest first."""
        return [note for note in self._chats.notes(chat) if note.bot == bot]

    async def put(self, chat: ChatRef, note: ChatNote, by: MemberRef) -> None:
        """Add `note`, replacing the note of the same name. Does nothing if it is unchanged. Raises NotesFull if
        the bot would have too many notes in the chat, or too many characters in them."""
        before = self._chats.notes(chat)
        if note in before:
            return
        others = [one for one in before if (one.bot, one.name) != (note.bot, note.name)]
        own = [note, *(one for one in others if one.bot == note.bot)]
        if len(own) > _MOST_NOTES or sum(len(one.words) for one in own) > _MOST_CHARS:
            raise NotesFull(_MOST_NOTES, _MOST_CHARS)
        write = chat_notes.put(
            chat=chat.key,
            bot=note.bot,
            name=note.name,
            words=note.words,
            is_instruction=note.is_instruction,
            from_outside=note.from_outside,
            from_member=bool(note.of_member),
            script=note.script,
            set_by=by.key,
            at_ms=self._clock.now_ms(),
        )
        await self._change(chat, [write], [*others, note])

    async def clear(self, chat: ChatRef, bot: str, names: Collection[str]) -> None:
        """Remove the notes of `bot` with these names."""
        before = self._chats.notes(chat)
        removed = [one for one in before if one.bot == bot and one.name in names]
        if removed:
            writes = [chat_notes.remove(chat.key, bot, one.name) for one in removed]
            await self._change(chat, writes, [one for one in before if one not in removed])

    async def _change(self, chat: ChatRef, writes: Sequence[Write], notes: Sequence[ChatNote]) -> None:
        await self._store.commit([*writes, audit.touch("chat_notes")])
        self._chats.set_notes(chat, notes)


class ScriptNotes:
    """Removes the notes of scripts that no longer exist or no longer set notes."""

    def __init__(
        self, notes: StoredChatNotes, chats: Chats, functions: Callable[[str], BotFunctions], tools: BasicTools
    ) -> None:
        self._notes = notes
        self._chats = chats
        self._functions = functions
        self._tools = tools
        self._seen: tuple[frozenset[tuple[str, str]], dict[str, BotFunctions]] = frozenset(), {}

    async def sync(self) -> None:
        """Remove the notes of scripts that no longer exist or no longer set notes. Does nothing if the notes and the
        functions of their bots are unchanged since the last check."""
        scripts = frozenset((note.bot, note.script) for notes in self._chats.all_notes.values() for note in notes)
        now = {bot: self._functions(bot) for bot, _ in scripts}
        if self._seen[0].issuperset(scripts) and all(self._seen[1].get(bot) is one for bot, one in now.items()):
            return
        active = {(row.bot, row.tool_name) for row in await self._tools.everything() if row.is_active}
        removed = {
            one
            for one in scripts
            if not still_declares(NOTE_KEYWORDS, now[one[0]].find(one[1]), is_stored=one in active)
        }
        for key, notes in list(self._chats.all_notes.items()):
            for bot, script in sorted({(note.bot, note.script) for note in notes} & removed):
                names = [note.name for note in notes if (note.bot, note.script) == (bot, script)]
                await self._notes.clear(ChatRef.parse(key), bot, names)
                _log.info("notes_of_a_script_removed", script=script, bot=bot, chat=key)
        self._seen = scripts - removed, now


STARTS = "begun_chats"
"""Change counter of the chats where the start script has run."""
_HINT = "chats where it has run keep the old result until an admin sends /begin again"


class StartScripts:
    """Records the chats where the start script has run."""

    def __init__(self, store: Store, clock: Clock, functions: Callable[[str], BotFunctions]) -> None:
        self._store = store
        self._clock = clock
        self._functions = functions
        self._known: dict[str, str] = {}
        """Last seen version of each bot's start script."""
        self._started: set[tuple[str, str]] = set()
        self._claims: dict[tuple[str, str], str] = {}
        """Turn that runs the start script, by chat and bot."""

    async def load(self) -> None:
        """Load the chats where the start script has run. Raises StoreError."""
        self._started = {(row["chat"], row["bot"]) for row in await self._store.read(chat_notes.STARTED)}
        self.warn_of_changes()

    def is_configured(self, bot: str) -> bool:
        """Whether `bot` has a start script."""
        return self._functions(bot).start_function is not None

    async def rerun(self, chat: ChatRef, bot: str) -> bool:
        """Let the start script run again with the next message that `bot` answers in `chat`. Returns False if the bot
        has no start script. Raises StoreError."""
        if self._functions(bot).start_function is None:
            return False
        await self._store.commit([chat_notes.forget_started(chat.key, bot), audit.touch(STARTS)])
        self._started.discard((chat.key, bot))
        return True

    def warn_of_changes(self) -> None:
        """Log a warning if a start script has changed: it does not run again in chats where it has run."""
        counts = Counter(bot for _, bot in self._started)
        for bot, chats in counts.items():
            spec = self._functions(bot).start_function
            before = self._known.get(bot)
            if spec is None:
                continue
            self._known[bot] = spec.origin.version
            if before is not None and before != spec.origin.version:
                _log.warning("beginning_changed", bot=bot, script=spec.name, chats_begun_before=chats, hint=_HINT)

    async def claim(self, context: MessageContext, turn: Turn, *, is_aside: bool) -> bool:
        """Whether this turn runs the start script: its message is the first that the bot answers in the chat. The claim
        is exclusive, but a repeated attempt gets it again. `is_aside`: the turn runs outside the chat's queue and
        cannot claim. Raises StoreError."""
        key = context.chat.key, context.bot
        is_due = (
            turn.input.functions.start_function is not None
            and not is_aside
            and context.kind is Kind.MESSAGE
            and turn.input.addressed
            and turn.input.answering is None
            and key not in self._started
        )
        if not is_due or self._claims.setdefault(key, turn.input.id) != turn.input.id:
            return False
        # Another process may have run it since the last reload.
        if not await self._store.read(chat_notes.started(*key)):
            return True
        self.mark_started(context)
        return False

    async def begin(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome | None:
        """Run the start script; None if the bot has none. The reason of a failure is only logged, since the sender did
        not ask for the run; earlier messages and the notice of an unknown outcome are kept."""
        spec = turn.input.functions.start_function
        if spec is None:
            return None
        turn.output.ran_start_function = True
        outcome = await router.run_start_function(context, turn, spec)
        if outcome.error is not None:
            _log.error("beginning_failed", chat=context.chat.key, function=spec.name, code=outcome.error.value)
            is_unknown = outcome.error is ErrorCode.UNKNOWN_OUTCOME
            return outcome if is_unknown else replace(outcome, messages=outcome.messages[:-1])
        return outcome

    async def drop_question(
        self, context: MessageContext, turn: Turn, start: TurnOutcome, router: FunctionCallRouter
    ) -> TurnOutcome:
        """`start` without its question, for a turn whose message asks one as well: only one question can be answered.
        The run ends as if its question had expired; its earlier messages are kept."""
        if start.question is None:
            return start
        _log.warning("beginning_not_answered", chat=context.chat.key, function=start.detail)
        ended = await router.end_run(context, turn, start.question)
        return replace(start, messages=(*start.messages[:-1], *ended), question=None)

    def started_writes(self, context: MessageContext) -> Sequence[Write]:
        """The writes that record the run, for the unit that ends the turn."""
        started = chat_notes.mark_started(context.chat.key, context.bot, self._clock.now_ms())
        return [started, audit.touch(STARTS)]

    def mark_started(self, context: MessageContext) -> None:
        """Update the memory after the writes of `started_writes` are durable."""
        key = (context.chat.key, context.bot)
        self._started.add(key)
        self.warn_of_changes()
        self._claims.pop(key, None)


def with_start_messages(start: TurnOutcome | None, outcome: TurnOutcome) -> TurnOutcome:
    """`outcome` of the first message, behind the messages of the start script; at most one question. Unchanged without
    such messages."""
    if start is None or not (start.messages or start.question):
        return outcome
    return replace(
        outcome,
        kind=OutcomeKind.SENT,
        messages=(*start.messages, *outcome.messages),
        question=outcome.question or start.question,
    )
