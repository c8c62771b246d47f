"""State that scripts leave in a chat: notes for models, schedules, and whether it has begun."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import structlog

from bot.chats.chats import Chats
from function_calls.basic import KEYWORDS, NOTING, SCHEDULE_KEYWORD
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
"""How long a script may be gone before what it has set goes too."""
_log = structlog.get_logger("chat_notes")


class ScriptSchedules:
    """Takes away what no script stands behind any more."""

    def __init__(
        self, schedules: Schedules, functions: Callable[[str], BotFunctions], kept: BasicTools, clock: Clock
    ) -> None:
        self._schedules = schedules
        self._absences = Absences(clock)
        self._functions = functions
        self._kept = kept
        self._seen: tuple[frozenset[str], dict[str, BotFunctions]] = frozenset(), {}

    async def keep_in_step(self) -> None:
        """Look through them where they, or the functions of their bots, have changed since the last time."""
        names = await self._schedules.declared(SCRIPTS)
        bots = {script_of(name)[0] for name in names}
        now = {bot: self._functions(bot) for bot in bots}
        # A run that began with the script may have set one after that was gone.
        is_known = self._seen[0].issuperset(names)
        if is_known and all(self._seen[1].get(bot) is functions for bot, functions in now.items()):
            return
        active = {(row.bot, row.tool_name) for row in await self._kept.everything() if row.is_active}
        for name in names:
            bot, script = script_of(name)
            spec = now[bot].find(script)
            stands = stands_behind({SCHEDULE_KEYWORD}, spec, is_kept=(bot, script) in active)
            if not stands and not self._absences.is_short((bot, script), spec):
                await self._schedules.declare(SCRIPTS, name, None)
                _log.info("schedule_of_a_script_removed", script=script, bot=bot)
        self._absences.there(script_of(name) for name in names if now[script_of(name)[0]].find(script_of(name)[1]))
        # Whoever is missing for a short while is looked for again.
        self._seen = (frozenset(), {}) if self._absences.any else (frozenset(names), now)


class Absences:
    """How long scripts have been gone. A folder that is written anew, by a copy or from a repository, is empty for a
    moment, and what its scripts have set is to outlast that."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[tuple[str, str], float] = {}

    @property
    def any(self) -> bool:
        """Whether anything is gone that was not gone for long when it was asked for."""
        return bool(self._since)

    def is_short(self, script: tuple[str, str], spec: FunctionSpec | None) -> bool:
        """Whether the script (bot and name) is gone, and since so lately that it may come back."""
        if spec is not None:
            return False
        now = self._clock.monotonic()
        if now - self._since.setdefault(script, now) < GRACE_SECONDS:
            return True
        del self._since[script]
        return False

    def there(self, scripts: Iterable[tuple[str, str]]) -> None:
        """These are there."""
        for one in scripts:
            self._since.pop(one, None)


def stands_behind(keywords: Collection[str], spec: FunctionSpec | None, *, is_kept: bool) -> bool:
    """Whether a script still bears what set something: one of `keywords`. One that cannot be read for the moment, and
    is kept, may be mended: what it set waits for it."""
    if spec is None:
        return is_kept
    return any(keyword in keywords for keyword in spec.origin.metadata.get(KEYWORDS, ()))


_MOST_NOTES = 20
_MOST_CHARS = 8000


class StoredChatNotes:
    """Writes the notes of chats."""

    def __init__(self, chats: Chats, store: Store, clock: Clock) -> None:
        self._chats = chats
        self._store = store
        self._clock = clock

    def of(self, chat: ChatRef, bot: str) -> Sequence[ChatNote]:
        """What the models of `bot` are told in `chat`, the oldest first."""
        return [note for note in self._chats.notes(chat) if note.bot == bot]

    async def put(self, chat: ChatRef, note: ChatNote, by: MemberRef) -> None:
        """Tell it, in the place of what was told under its name. Nothing where it is told already. Raises NotesFull
        where it is more than a chat may have."""
        before = self._chats.notes(chat)
        if note in before:
            return
        left = [one for one in before if (one.bot, one.name) != (note.bot, note.name)]
        own = [note, *(one for one in left if one.bot == note.bot)]
        if len(own) > _MOST_NOTES or sum(len(one.words) for one in own) > _MOST_CHARS:
            raise NotesFull(_MOST_NOTES, _MOST_CHARS)
        write = chat_notes.put(
            chat.key,
            note.bot,
            note.name,
            note.words,
            is_instruction=note.is_instruction,
            from_outside=note.from_outside,
            from_member=bool(note.of_member),
            script=note.script,
            set_by=by.key,
            at_ms=self._clock.now_ms(),
        )
        await self._change(chat, [write], [*left, note])

    async def clear(self, chat: ChatRef, bot: str, names: Collection[str]) -> None:
        """Tell the models of `bot` no more what stands under these names."""
        before = self._chats.notes(chat)
        gone = [one for one in before if one.bot == bot and one.name in names]
        if gone:
            writes = [chat_notes.remove(chat.key, bot, one.name) for one in gone]
            await self._change(chat, writes, [one for one in before if one not in gone])

    async def _change(self, chat: ChatRef, writes: Sequence[Write], notes: Sequence[ChatNote]) -> None:
        await self._store.commit([*writes, audit.touch("chat_notes")])
        self._chats.has_notes(chat, notes)


class ScriptNotes:
    """Takes away the notes that no script stands behind any more."""

    def __init__(
        self, notes: StoredChatNotes, chats: Chats, functions: Callable[[str], BotFunctions], kept: BasicTools
    ) -> None:
        self._notes = notes
        self._chats = chats
        self._functions = functions
        self._kept = kept
        self._seen: tuple[frozenset[tuple[str, str]], dict[str, BotFunctions]] = frozenset(), {}

    async def keep_in_step(self) -> None:
        """Look through them where they, or the functions of their bots, have changed since the last time."""
        scripts = frozenset((note.bot, note.script) for notes in self._chats.all_notes.values() for note in notes)
        now = {bot: self._functions(bot) for bot, _ in scripts}
        if self._seen[0].issuperset(scripts) and all(self._seen[1].get(bot) is one for bot, one in now.items()):
            return
        active = {(row.bot, row.tool_name) for row in await self._kept.everything() if row.is_active}
        gone = {one for one in scripts if not stands_behind(NOTING, now[one[0]].find(one[1]), is_kept=one in active)}
        for key, notes in list(self._chats.all_notes.items()):
            for bot, script in sorted({(note.bot, note.script) for note in notes} & gone):
                names = [note.name for note in notes if (note.bot, note.script) == (bot, script)]
                await self._notes.clear(ChatRef.parse(key), bot, names)
                _log.info("notes_of_a_script_removed", script=script, bot=bot, chat=key)
        self._seen = scripts - gone, now


_HINT = "chats that have begun keep what it did then; an admin of each says /begin again"


class Beginnings:
    """Knows which chats have had their beginning."""

    def __init__(self, store: Store, clock: Clock, functions: Callable[[str], BotFunctions]) -> None:
        self._store = store
        self._clock = clock
        self._functions = functions
        self._known: dict[str, str] = {}
        """Of what begins the chats of each bot, which version it is."""
        self._begun: set[tuple[str, str]] = set()
        self._claims: dict[tuple[str, str], str] = {}
        """The turns that are about to begin chats."""

    async def load(self) -> None:
        """Read which chats have begun."""
        self._begun = {(row["chat"], row["bot"]) for row in await self._store.read(chat_notes.begun())}
        self.look()

    async def again(self, chat: ChatRef, bot: str) -> bool:
        """Let the next message that `bot` answers in `chat` begin it anew; False where the bot has nothing for that.
        Raises StoreError."""
        if self._functions(bot).beginning is None:
            return False
        await self._store.commit([chat_notes.forget_begun(chat.key, bot)])
        self._begun.discard((chat.key, bot))
        return True

    def look(self) -> None:
        """Tell the log where what begins chats has changed: those that have begun keep what it did then."""
        counts = Counter(bot for _, bot in self._begun)
        for bot, chats in counts.items():
            spec = self._functions(bot).beginning
            before = self._known.get(bot)
            if spec is None:
                continue
            self._known[bot] = spec.origin.version
            if before is not None and before != spec.origin.version:
                _log.warning("beginning_changed", bot=bot, script=spec.name, chats_begun_before=chats, hint=_HINT)

    def claim(self, context: MessageContext, turn: Turn, *, is_aside: bool) -> bool:
        """Whether this turn begins the chat: its message is the first that the bot answers there, and a beginning is
        defined. No other turn begins it then; a repeated attempt still does. `is_aside`: the turn runs outside the
        chat's queue and begins nothing."""
        is_due = (
            turn.input.functions.beginning is not None
            and not is_aside
            and context.kind is Kind.MESSAGE
            and turn.input.addressed
            and turn.input.answering is None
            and (context.chat.key, context.bot) not in self._begun
        )
        return is_due and self._claims.setdefault((context.chat.key, context.bot), turn.input.id) == turn.input.id

    async def begin(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome | None:
        """How it ended. Why it failed tells the log alone, since whoever speaks first has asked for none of it; what it
        had said before is said, and that nobody knows what became of an effect."""
        spec = turn.input.functions.beginning
        if spec is None:
            return None
        turn.output.begins = True
        outcome = await router.begin(context, turn, spec)
        if outcome.error is not None:
            _log.error("beginning_failed", chat=context.chat.key, function=spec.name, code=outcome.error.value)
            is_unknown = outcome.error is ErrorCode.UNKNOWN_OUTCOME
            return outcome if is_unknown else replace(outcome, messages=outcome.messages[:-1])
        return outcome

    async def give_way(
        self, context: MessageContext, turn: Turn, begun: TurnOutcome, router: FunctionCallRouter
    ) -> TurnOutcome:
        """`begun` without its question, where what was asked for asks something too: nobody can answer both at once.
        The run comes to its end, as if nobody had answered; what it had said before it asked is said."""
        if begun.question is None:
            return begun
        _log.warning("beginning_not_answered", chat=context.chat.key, function=begun.detail)
        ended = await router.end_run(context, turn, begun.question)
        return replace(begun, messages=(*begun.messages[:-1], *ended), question=None)

    def note(self, context: MessageContext) -> Write:
        """What notes that the chat has begun: it belongs into the unit that ends the turn."""
        return chat_notes.begin(context.chat.key, context.bot, self._clock.now_ms())

    def is_noted(self, context: MessageContext) -> None:
        """That is kept now."""
        key = (context.chat.key, context.bot)
        self._begun.add(key)
        self.look()
        self._claims.pop(key, None)


def with_beginning(begun: TurnOutcome | None, outcome: TurnOutcome) -> TurnOutcome:
    """`outcome` of the first message, behind what the beginning said; one of them asks at most."""
    if begun is None or not (begun.messages or begun.question):
        return outcome
    return replace(
        outcome,
        kind=OutcomeKind.SENT,
        messages=(*begun.messages, *outcome.messages),
        question=outcome.question or begun.question,
    )
