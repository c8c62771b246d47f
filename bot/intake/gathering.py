"""Gathering: messages that a member sends shortly after an addressed one are answered together with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.engine.embedded import EmbeddedEngine, Job
from bot.intake.gate import GateDecision
from config.settings import LimitsSettings
from function_calls.context import Kind, MessageContext, with_part
from services.background import Background
from services.clock import Clock
from services.refs import ChatRef, MemberRef, ReasonCode

_Place = tuple[ChatRef, MemberRef]
_MOST_MESSAGES = 10
_JOINABLE = frozenset({ReasonCode.WAITING, ReasonCode.NOT_ADDRESSED})


@dataclass(slots=True, eq=False)
class _Held:
    """A turn that waits for further messages."""

    job: Job
    until: float
    """On the monotonic clock; later with each message."""
    is_stored: bool = False
    is_over: bool = False


@dataclass(eq=False, repr=False)
class Gathering:
    """Turns that wait for further messages of their senders, at most one of each member in a chat."""

    engine: EmbeddedEngine
    clock: Clock
    limits: LimitsSettings
    has_model: Callable[[], bool]
    """Without a model turns do not wait: commands and examples match single messages."""

    def __post_init__(self) -> None:
        self._held: dict[_Place, _Held] = {}
        self._background = Background()
        """Current self.limits; may be replaced."""

    def begin(self, job: Job, decision: GateDecision) -> None:
        """Let `job` wait for further messages before it is stored, unless it is a command or an answer."""
        context, is_plain = job.context, decision.addressed and not decision.is_command and decision.question is None
        is_text = context.kind is Kind.MESSAGE and not context.text.startswith("/")
        if is_plain and is_text and self.limits.gather_seconds and self.has_model():
            until = self.clock.monotonic() + self.limits.gather_seconds
            self._held.setdefault(_place(context), _Held(job, until))

    def submit(self, job: Job) -> None:
        """Queue a stored `job`: after its wait if it has begun one, else at once, behind the waiting turn of its
        sender."""
        held = self._held.get(_place(job.context))
        if held is None or held.job is not job:
            if held is not None:
                self._end(held)
            self.engine.submit(job)
            return
        held.is_stored = True
        if held.is_over:
            self._release(held)
            return
        self._background.start(self._wait(held))

    def drop(self, job: Job) -> None:
        """Forget a waiting job that was not stored."""
        held = self._held.get(_place(job.context))
        if held is not None and held.job is job:
            del self._held[_place(job.context)]

    def end_all(self) -> None:
        """End all waits now."""
        for held in list(self._held.values()):
            self._end(held)

    async def close(self) -> None:
        """Forget the waiting turns, which resume at the next start."""
        self._held.clear()
        await self._background.close()

    def waiting_job(self, chat: ChatRef, native_id: str = "") -> Job | None:
        """The waiting turn of `chat` to which the message with that id belongs, or any without an id; else None."""
        waiting = (held.job for (where, _), held in self._held.items() if where == chat)
        return next((job for job in waiting if not native_id or job.answers(native_id)), None)

    def may_join(self, context: MessageContext) -> bool:
        """Whether a turn of the sender waits for further messages."""
        return context.kind is Kind.MESSAGE and _place(context) in self._held

    def joined(self, context: MessageContext, decision: GateDecision) -> Job | None:
        """The waiting turn with which the message is answered; None if it is not a further message of its sender."""
        held = self._held.get(_place(context))
        if held is None or decision.reason not in _JOINABLE or decision.is_command or decision.question is not None:
            return None
        first, now = held.job.context, self.clock.monotonic()
        is_other = context.reply_to is not None or context.takes or context.addresses_another
        is_known = held.job.answers(context.key.native_id)
        is_long = len(first.text) + len(context.text) >= self.limits.message_chars or len(first.parts) >= _MOST_MESSAGES
        is_alike = context.kind is Kind.MESSAGE and context.private == first.private
        if is_other or is_known or is_long or not is_alike or now > held.until:
            return None
        held.until = now + self.limits.gather_seconds
        return held.job

    def _end(self, held: _Held) -> None:
        held.is_over = True
        if held.is_stored:
            self._release(held)

    async def _wait(self, held: _Held) -> None:
        while (left := held.until - self.clock.monotonic()) > 0 and not held.is_over:
            await self.clock.sleep(left)
        self._release(held)

    def _release(self, held: _Held) -> None:
        place = _place(held.job.context)
        if self._held.get(place) is held:
            del self._held[place]
            if not held.job.withdrawn:
                self.engine.submit(held.job)


def _place(context: MessageContext) -> _Place:
    return context.chat, context.sender.ref


def extended(context: MessageContext, further: MessageContext) -> MessageContext:
    """`context` with the text and the files of the message `further`."""
    joined = with_part(context, further.key.native_id, further.text)
    return replace(joined, attachments=(*joined.attachments, *further.attachments))
