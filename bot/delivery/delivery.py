"""The only sender: what is in the outbox goes to the networks, in order within a chat, within their rates, until they
have it or it is given up. On paced networks the order is that of each member, and what waits is limited."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson
import structlog

from bot.database.leadership import Lead
from bot.delivery.outgoing import (
    ROOM_FOR_LATENESS,
    Due,
    due_from_json,
    first_lines,
    line_count,
    outgoing_from_json,
    outgoing_to_json,
    pieces,
)
from bot.platforms.base import ChatPlatform, Limits, Linked, Outgoing, SendFailed
from config.settings import DeliverySettings
from config.texts import Phrases
from function_calls.spec import Message
from services.clock import Clock
from services.fault_points import FaultPoints
from services.refs import ChatRef, MemberRef, ReasonCode
from services.retry import RetryPolicy
from services.store.chats import history
from services.store.ids import Ids
from services.store.port import Row, Store, StoreError, StoreFull, Write
from services.store.turns import inbox, outbox

_log = structlog.get_logger("delivery")
_WINDOW_SECONDS = 60.0
_CHATS_PACED = 10_000
Lane = ChatRef | tuple[ChatRef, MemberRef]
"""What is sent one after the other: what is said in a chat; or, on networks where one member may be away while others
are there, what is for that member alone."""


class OutboundMessage(NamedTuple):
    """One row of the outbox."""

    row_id: int
    outgoing: Outgoing
    history_id: int | None
    """The row of history that learns the network's id."""
    claimed: bool
    """It stands in the outbox as being sent by this process."""
    said_at_ms: int
    """When it was put there."""
    due: Due | None = None
    """Set where it is said by the clock, and has to say when it comes late."""
    turn_id: int = 0
    """The turn that says it; 0 for notices."""
    asked_by: str = ""
    """On a paced network, the key of the member whom it answers. Empty: nobody, and it is never dropped."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A parcel in its queue."""

    parcel: OutboundMessage
    member: str = ""
    """The key of the member with whose parcels it waits; empty where members take no turns."""
    lines: int = 0
    """Lines charged to its member and its chat."""
    dropped: int = 0
    """Lines for the member that are dropped and that it reports."""


class _Queue:
    """Parcels of one lane: members take turns, and the order for one member is kept."""

    def __init__(self) -> None:
        self._members: dict[str, deque[_Waiting]] = {}
        self.reports: dict[str, _Waiting] = {}
        """By member: the parcel that reports what is dropped, while it waits."""

    def __bool__(self) -> bool:
        return bool(self._members)

    def append(self, waiting: _Waiting) -> None:
        self._members.setdefault(waiting.member, deque()).append(waiting)

    def next(self) -> _Waiting:
        """The parcel to send now; it stays in the queue until `done`."""
        return next(iter(self._members.values()))[0]

    def done(self) -> None:
        """Take out what `next` gave, and let the next member have a turn."""
        member = next(iter(self._members))
        left = self._members.pop(member)
        left.popleft()
        if left:
            self._members[member] = left


class Delivery:
    """Sends parcels. Each lane has a queue of its own, so a slow network holds up nobody else's."""

    def __init__(
        self,
        platforms: Mapping[tuple[str, str], ChatPlatform],
        store: Store,
        settings: DeliverySettings,
        clock: Clock,
        epoch: int,
        faults: FaultPoints,
        resent: Callable[[ChatRef], str],
        late: Callable[[ChatRef, Due], str],
        dropped: Callable[[ChatRef, int], str],
        lead: Lead,
    ) -> None:
        """`resent` words, for a chat, that a message may have been there before; `late` that it comes later than it was
        due, empty where nobody would mind; `dropped` that so many lines are not sent. `lead` says whether this process
        may send."""
        self._platforms = platforms
        # Looked at once: to ask whether something has what a protocol names takes longer than to send.
        self._linked = {place: one for place, one in platforms.items() if isinstance(one, Linked)}
        self._store = store
        self._resent = resent
        self._late = late
        self._dropped = dropped
        self._lead = lead
        self._settings = settings
        self._clock = clock
        self._epoch = epoch
        self._reach = faults.reach
        self._queues: dict[Lane, _Queue] = {}
        self._lines: Counter[ChatRef | str] = Counter()
        """Lines that wait on paced networks, by chat and by member."""
        self._tasks: dict[Lane, asyncio.Task[None]] = {}
        self._sent_at: dict[ChatRef, deque[float]] = {}
        self._is_closing = False
        self.failed = 0
        """Messages given up since the start."""
        self.on_given_up: list[Callable[[OutboundMessage, str], None]] = []
        """Called for each of them, with the reason."""
        self.dropped_lines = 0
        """Lines that were not sent since the start, because too many waited."""

    def platform(self, chat: ChatRef) -> ChatPlatform | None:
        """The network that `chat` is on."""
        return self._platforms.get((chat.platform, chat.account))

    def senders_retry(self, chat: ChatRef) -> bool:
        """Whether those who write in `chat` send again what was not accepted."""
        platform = self.platform(chat)
        return platform is not None and platform.limits.senders_retry

    def unmarked_bots_said_at(self, chat: ChatRef) -> float | None:
        """When something was last said in `chat`, on the monotonic clock; None also where its network says which of its
        members are bots."""
        times, platform = self._sent_at.get(chat), self.platform(chat)
        return times[-1] if times and platform is not None and not platform.limits.bots_are_marked else None

    def hand_over(self, parcels: Sequence[OutboundMessage]) -> None:
        """Send these, after what is waiting for the same chats; on a paced network as much as may wait."""
        for parcel in parcels:
            lane = self._lane(parcel.outgoing)
            queue = self._queues.setdefault(lane, _Queue())
            platform = self.platform(parcel.outgoing.chat)
            if platform is not None and platform.limits.is_paced:
                self._append_within_limits(queue, parcel, platform.limits)
            else:
                queue.append(_Waiting(parcel))
            if lane not in self._tasks:
                self._tasks[lane] = asyncio.get_running_loop().create_task(self._work_off(lane))

    def _append_within_limits(self, queue: _Queue, parcel: OutboundMessage, limits: Limits) -> None:
        """Queue the lines of `parcel` for which there is room. The first parcel of a member that does not fit stays in
        the queue to report how much is dropped; others are dropped until that report is sent."""
        outgoing, member = parcel.outgoing, parcel.asked_by
        lines = line_count(outgoing.text, limits)
        room, setting = min(
            (self._settings.lines_per_member - self._lines[member], "delivery.lines_per_member"),
            (self._settings.lines_per_chat - self._lines[outgoing.chat], "delivery.lines_per_chat"),
        )
        if not member or lines <= room:
            self._charge(parcel, lines)
            queue.append(_Waiting(parcel, member, lines))
            return
        # How the turn ended is on record already, so the reason is amended.
        writes = [inbox.amend(parcel.turn_id, ReasonCode.REPLY_DROPPED.value, setting)]
        report = queue.reports.get(member)
        if report is not None:
            report.dropped += lines
            self.dropped_lines += lines
            self._store.post([outbox.drop_unsent(parcel.row_id, setting), *writes])
            return
        text, left = first_lines(outgoing.text, max(room, 0), limits)
        self._charge(parcel, lines - left)
        report = _Waiting(parcel._replace(outgoing=replace(outgoing, text=text)), member, lines - left, left)
        queue.reports[member] = report
        queue.append(report)
        self.dropped_lines += left
        self._store.post(writes)
        _log.warning("reply_dropped", chat=outgoing.chat.key, member=member, because=setting)

    def _charge(self, parcel: OutboundMessage, lines: int) -> None:
        """Count `lines` more, or fewer, that wait."""
        for payer in (parcel.outgoing.chat, parcel.asked_by):
            self._lines[payer] += lines
            if not self._lines[payer]:
                del self._lines[payer]

    def _reporting(self, queue: _Queue, waiting: _Waiting) -> OutboundMessage:
        """The parcel of `waiting`, with a note of what is dropped where it reports that."""
        parcel = waiting.parcel
        if not waiting.dropped:
            return parcel
        if queue.reports.get(waiting.member) is waiting:
            # What is dropped from now on needs another report.
            del queue.reports[waiting.member]
        note = self._dropped(parcel.outgoing.chat, waiting.dropped)
        text = f"{parcel.outgoing.text}\n{note}".lstrip("\n")
        return parcel._replace(outgoing=replace(parcel.outgoing, text=text))

    def _lane(self, outgoing: Outgoing) -> Lane:
        chat = outgoing.chat
        if outgoing.private_to is None or (chat.platform, chat.account) not in self._linked:
            return chat
        return chat, outgoing.private_to

    async def recover(self) -> int:
        """Take up what an earlier process left; returns how many parcels."""
        parcels: list[OutboundMessage] = []
        for row in await self._store.read(outbox.unsent()):
            parcel = _parcel(row)
            if row["state"] == "sending":
                parcel = parcel._replace(outgoing=self._marked(parcel.outgoing))
            parcels.append(parcel)
        self.hand_over(parcels)
        return len(parcels)

    async def take_up_retried(self) -> None:
        """Send the messages that were given up and that an operator lets be sent again."""
        for row in await self._store.read(outbox.retried()):
            if (await self._store.commit([outbox.claim(row["id"], self._epoch)]))[0]:
                self.hand_over([_parcel(row)._replace(claimed=True)])

    def _marked(self, outgoing: Outgoing) -> Outgoing:
        """The network may have it already: where it would show it twice, the second says so, once. `pieces` has left
        room for that."""
        platform = self.platform(outgoing.chat)
        if platform is None or platform.limits.sends_are_idempotent:
            return outgoing
        note = self._resent(outgoing.chat)
        if outgoing.text.endswith(f"\n{note}"):
            return outgoing
        text = f"{outgoing.text}\n{note}"
        return replace(outgoing, text=text) if len(text) <= platform.limits.text_chars else outgoing

    def _said_late(self, outgoing: Outgoing, due: Due | None) -> Outgoing:
        """With a word in front of it when it comes late, as late as it is now. `pieces` has left room for that."""
        if due is None:
            return outgoing
        platform = self.platform(outgoing.chat)
        note = self._late(outgoing.chat, due)
        if platform is None or not note:
            return outgoing
        text = f"{note}\n{outgoing.text}"
        return replace(outgoing, text=text) if len(text) <= platform.limits.text_chars else outgoing

    async def typing(self, chat: ChatRef, status: str) -> None:
        """Show that an answer is on its way; best effort."""
        platform = self.platform(chat)
        if platform is not None and self._lead.holds():
            await platform.typing(chat, status)

    async def delivered(self, chat: ChatRef) -> None:
        """Return when what waits for `chat` now is sent or given up."""
        task = self._tasks.get(chat)
        if task is not None:
            await asyncio.wait([task])

    async def idle(self) -> None:
        """Return when everything is sent or given up."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self, seconds: float) -> None:
        """Wait up to `seconds`, and as long again for what is being sent just then; what is left is sent after the next
        start."""
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=seconds)
        if unfinished:
            # A send that is cut off may have arrived, and would have to be said again.
            self._is_closing = True
            _, unfinished = await asyncio.wait(unfinished, timeout=seconds)
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished)
        # One that was cancelled before its first step has not said that it is gone.
        self._tasks.clear()

    async def _work_off(self, lane: Lane) -> None:
        queue = self._queues[lane]
        try:
            while queue and not self._is_closing:
                waiting = queue.next()
                parcel = self._reporting(queue, waiting)
                try:
                    await self._deliver(parcel)
                except StoreFull as problem:
                    # Nothing is lost: the row stays in the outbox until there is room to claim it.
                    _log.error("outbox_cannot_be_claimed", chat=_chat(lane).key, problem=str(problem))
                    await self._clock.sleep(self._settings.longest_delay_seconds)
                    continue
                except StoreError as problem:
                    # The process is about to end; what waits is in the outbox.
                    _log.critical("delivery_failed", chat=_chat(lane).key, exc_info=problem)
                    return
                except Exception as problem:  # noqa: BLE001 - a platform that breaks its promise must not mute the chat
                    _log.critical("delivery_failed", chat=_chat(lane).key, exc_info=problem)
                    self._give_up(parcel, f"{type(problem).__name__} while sending")
                if waiting.lines:
                    self._charge(parcel, -waiting.lines)
                queue.done()
        finally:
            del self._tasks[lane]
            if not queue:
                del self._queues[lane]

    async def _deliver(self, parcel: OutboundMessage) -> None:
        chat = parcel.outgoing.chat
        platform = self.platform(chat)
        if platform is None:
            self._give_up(parcel, f"there is no platform {chat.platform}:{chat.account}")
            return
        linked = self._linked.get((chat.platform, chat.account))
        is_claimed, outgoing = parcel.claimed, parcel.outgoing
        settings = self._settings
        policy = RetryPolicy(settings.attempts, settings.first_delay_seconds, settings.longest_delay_seconds)
        for attempt in range(1, policy.attempts + 1):
            if linked is not None or not is_claimed:
                await self._make_ready(parcel, outgoing, linked, is_claimed=is_claimed)
                is_claimed = True
            if attempt == 1:
                self._reach("reply.after_outbox_before_send")
            if not self._takes_place(chat, platform.limits.sends_per_minute):
                await self._waits_for_place(chat, platform.limits.sends_per_minute)
            try:
                self._reach("reply.during_send")
                # What waited for its turn or for the network may have become late only there.
                receipt = await platform.send(self._said_late(outgoing, parcel.due))
            except SendFailed as failure:
                if not failure.retryable or attempt == policy.attempts:
                    self._give_up(parcel, str(failure))
                    return
                _log.info("send_failed", chat=chat.key, attempt=attempt, problem=str(failure))
                if failure.unknown_outcome and outgoing is parcel.outgoing:
                    # Shown twice is better than lost, where the second says that it may be the second.
                    outgoing = self._marked(outgoing)
                await self._clock.sleep(failure.retry_after_seconds or policy.wait_after(attempt))
                continue
            self._reach("reply.after_send_before_mark")
            writes = _sent(parcel, receipt.native_id)
            if platform.limits.sends_are_idempotent:
                self._store.post(writes)
            else:
                await self._mark_sent(parcel, writes)
            self._reach("reply.after_mark")
            return

    async def _mark_sent(self, parcel: OutboundMessage, writes: Sequence[Write]) -> None:
        """Durably: a crash soon after must not send it again, for the network would show it."""
        try:
            await self._store.commit(writes)
        except StoreFull as problem:
            # To try the whole delivery again would send it twice now; like this, at worst after a restart.
            _log.error("sent_but_not_marked", outbox=parcel.row_id, problem=str(problem))

    async def _make_ready(
        self, parcel: OutboundMessage, outgoing: Outgoing, linked: Linked | None, *, is_claimed: bool
    ) -> None:
        """Wait until who it is for is there, and say in the outbox that it is being sent."""
        if linked is not None:
            await linked.until_reachable(outgoing, parcel.said_at_ms)
        if not is_claimed:
            await self._store.commit([outbox.claim(parcel.row_id, self._epoch)])

    def _takes_place(self, chat: ChatRef, sends_per_minute: int) -> bool:
        """Count one more message of this minute. False, and nothing is counted, where the chat may not take it now, or
        where another process may be leading."""
        now, times = self._clock.monotonic(), self._sent_at.get(chat)
        if times is None:
            if len(self._sent_at) >= _CHATS_PACED:
                self._sent_at.pop(next(iter(self._sent_at)))
            times = self._sent_at[chat] = deque()
        while times and times[0] <= now - _WINDOW_SECONDS:
            times.popleft()
        if len(times) >= sends_per_minute or not self._lead.holds():
            return False
        times.append(now)
        return True

    async def _waits_for_place(self, chat: ChatRef, sends_per_minute: int) -> None:
        """Wait until the chat may take it, and count it then. Raises StoreError where another process leads."""
        times = self._sent_at[chat]
        while len(times) >= sends_per_minute:
            # Other lanes of the chat may wait for the same moment: one of them takes the place.
            await self._clock.sleep(times[0] + _WINDOW_SECONDS - self._clock.monotonic())
            while times and times[0] <= self._clock.monotonic() - _WINDOW_SECONDS:
                times.popleft()
        times.append(self._clock.monotonic())
        if not self._lead.holds():
            # Whoever leads by now sends it: as a row of the outbox it is theirs.
            await self._lead.sure()

    def _give_up(self, parcel: OutboundMessage, problem: str) -> None:
        self.failed += 1
        _log.error("message_not_delivered", chat=parcel.outgoing.chat.key, outbox=parcel.row_id, problem=problem)
        self._store.post([outbox.failed(parcel.row_id, problem, self._clock.now_ms())])
        for call in self.on_given_up:
            call(parcel, problem)


def _parcel(row: Row) -> OutboundMessage:
    """The parcel of a row of the outbox that an earlier process left, or that is retried."""
    body = orjson.loads(row["body"])
    outgoing, due = outgoing_from_json(row["key"], body), due_from_json(body)
    if due is not None:
        due = due._replace(was_away=True)
    return OutboundMessage(
        row["id"],
        outgoing,
        row["history_id"],
        claimed=False,
        said_at_ms=row["at_ms"],
        due=due,
        turn_id=row["turn_id"],
        asked_by=body.get("asked_by", ""),
    )


def _sent(parcel: OutboundMessage, native_id: str) -> list[Write]:
    """What notes that the network has it."""
    writes = [outbox.sent(parcel.row_id, native_id)]
    if parcel.history_id is not None:
        writes.append(history.sent(parcel.history_id, native_id))
    return writes


def _chat(lane: Lane) -> ChatRef:
    return lane if isinstance(lane, ChatRef) else lane[0]


@dataclass(frozen=True, slots=True)
class Address:
    """Where one message goes."""

    chat: ChatRef
    private_to: MemberRef | None
    """The member of that chat whom alone it is for."""
    platform: ChatPlatform


@dataclass(frozen=True, slots=True)
class Origin:
    """What led to a message."""

    turn_id: int
    """Also the row of history that it answers, where the turn has one."""
    number: int
    """Which message of the turn it is: with the turn it makes the key, the same on every attempt."""
    asked_by: MemberRef
    bot_name: str
    texts: Phrases
    outside: bool
    """It may hold words of others."""
    due: Due | None = None
    """Set where it is said by the clock."""
    closes: tuple[str, ...] = ()
    """The native ids of earlier messages whose choices lead nowhere any more."""


class OutboxRows:
    """Makes the rows of one process, which has its `epoch`."""

    def __init__(self, ids: Ids, epoch: int) -> None:
        self._ids = ids
        self._epoch = epoch

    def of(
        self, message: Message, to: Address, origin: Origin, now_ms: int
    ) -> tuple[list[Write], list[OutboundMessage]]:
        """What is to be committed, and then handed to the delivery."""
        writes: list[Write] = []
        parcels: list[OutboundMessage] = []
        chat, due, history_id = to.chat, origin.due, None
        limits = to.platform.limits
        if message.brief and limits.max_lines:
            message = replace(message, text=message.brief)
        if to.private_to is None:
            history_id = self._ids.next()
            writes.append(
                history.said(
                    id=history_id,
                    chat=chat.key,
                    sender_name=origin.bot_name,
                    text=message.text,
                    at_ms=now_ms,
                    reply_to=message.reply_to,
                    asked_by=origin.asked_by.key,
                    answers=origin.turn_id,
                    outside=origin.outside,
                )
            )
        claimed = limits.sends_are_idempotent
        key, room = f"{origin.turn_id}:{origin.number}", ROOM_FOR_LATENESS if due is not None else 0
        closes, asked_by = origin.closes, origin.asked_by.key if limits.is_paced and due is None else ""
        for piece in pieces(message, chat, to.private_to, key, limits, origin.texts, origin.bot_name, room):
            if closes:
                piece, closes = replace(piece, closes=closes), ()
            row_id = self._ids.next()
            writes.append(
                outbox.put(
                    id=row_id,
                    key=piece.key,
                    turn_id=origin.turn_id,
                    history_id=history_id,
                    chat=chat.key,
                    body=orjson.dumps(outgoing_to_json(piece, due, asked_by)).decode(),
                    state="sending" if claimed else "pending",
                    epoch=self._epoch,
                    at_ms=now_ms,
                )
            )
            parcels.append(OutboundMessage(row_id, piece, history_id, claimed, now_ms, due, origin.turn_id, asked_by))
            history_id = due = None
        return writes, parcels
