"""Delivery of the outbox: the only sender. Keeps the order within a chat and the networks' rates, and retries until a
message is sent or given up. On paced networks the order is per member, and the queue is limited."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace

import structlog

from bot.delivery.outgoing import (
    ROOM_FOR_LATENESS,
    Due,
    OutboundMessage,
    StatusPart,
    first_lines,
    line_count,
    message_of_row,
    outbox_row,
    pieces,
)
from bot.delivery.status_messages import StatusMessages
from bot.platforms.base import (
    ChatPlatform,
    Editing,
    Elsewhere,
    Limits,
    Linked,
    Membership,
    Outgoing,
    Receipt,
    SendFailed,
    is_here,
)
from config.settings import DeliverySettings
from config.texts import Phrases
from function_calls.spec import Message
from services.background import Background
from services.clock import Clock
from services.fault_points import FaultPoints
from services.recent import Recent
from services.refs import ChatRef, MemberRef, ReasonCode
from services.retry import RetryPolicy
from services.store.chats import history
from services.store.ids import Ids
from services.store.port import Store, StoreError, StoreFull, Write
from services.store.turns import inbox, outbox

_log = structlog.get_logger("delivery")
_WINDOW_SECONDS = 60.0
_CHATS_PACED = 10_000
_MOST_CLAIMED = 200
_STATUS_SHARE = 4
"""A status is posted or changed while at most this fraction, 1/4, of a chat's rate is used."""
Lane = ChatRef | tuple[ChatRef, MemberRef]
"""A sequence of messages in order: those of a chat, or, on linked networks, where a member may be offline, those that
are private to one member."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A queued message."""

    message: OutboundMessage
    member: str = ""
    """Key of the member in whose queue it waits; empty if members do not take turns."""
    lines: int = 0
    """Lines charged to its member and its chat."""
    dropped: int = 0
    """Dropped lines for the member that this message reports."""


class _Queue:
    """Messages of one lane: round-robin over members, in order for each member."""

    def __init__(self) -> None:
        self._members: dict[str, deque[_Waiting]] = {}
        self.reports: dict[str, _Waiting] = {}
        """Queued message that reports the dropped lines, by member."""

    def __len__(self) -> int:
        return sum(map(len, self._members.values()))

    def append(self, waiting: _Waiting) -> None:
        self._members.setdefault(waiting.member, deque()).append(waiting)

    def next(self) -> _Waiting:
        """The message to send now; it stays in the queue until `done`."""
        return next(iter(self._members.values()))[0]

    def done(self) -> None:
        """Remove the message that `next` returned, and continue with the next member."""
        member = next(iter(self._members))
        remaining = self._members.pop(member)
        remaining.popleft()
        if remaining:
            self._members[member] = remaining


@dataclass(eq=False, repr=False)
class Delivery:
    """Sends outbound messages. Each lane has a queue, so a slow network blocks no other."""

    platforms: Mapping[tuple[str, str], ChatPlatform]
    store: Store
    settings: DeliverySettings
    clock: Clock
    epoch: int
    faults: InitVar[FaultPoints]
    resent: Callable[[ChatRef], str]
    """The note that a message may be a duplicate."""
    late: Callable[[ChatRef, Due], str]
    """The note that a message is late, or empty."""
    dropped: Callable[[ChatRef, int], str]
    """The note on this number of dropped lines."""
    statuses: StatusMessages
    elsewhere: Callable[[ChatRef], None] = lambda chat: None
    """Called with the chat of each message that another process has to send."""
    hide: Callable[[str], str] = str
    """Removes known secrets from texts."""

    def __post_init__(self, faults: FaultPoints) -> None:
        # Checked once: isinstance with a runtime protocol is slower than a send.
        self._linked = {place: one for place, one in self.platforms.items() if isinstance(one, Linked)}
        self._editing = {place for place, one in self.platforms.items() if isinstance(one, Editing)}
        self._reach = faults.reach
        self._queues: dict[Lane, _Queue] = {}
        self._lines: Counter[ChatRef | str] = Counter()
        """Queued lines on paced networks, by chat and by member."""
        self._tasks: dict[Lane, asyncio.Task[None]] = {}
        self._sent_at = Recent[ChatRef, deque[float]](_CHATS_PACED)
        self._paused_until: dict[tuple[str, str], float] = {}
        """End of the rate limit of an account, on the monotonic clock, by network and account."""
        self._leaving = Background()
        self._is_closing = False
        self.failed = 0
        """Messages given up since the start."""
        self.on_given_up: list[Callable[[OutboundMessage, str], None]] = []
        """Called for each message that is given up, with the reason."""
        self.dropped_lines = 0
        """Lines dropped since the start because of full queues."""

    @property
    def waiting(self) -> int:
        """Number of messages that wait or are being sent."""
        return sum(len(queue) for queue in self._queues.values())

    def platform(self, chat: ChatRef) -> ChatPlatform | None:
        """The platform of `chat`, or None if it is not configured."""
        return self.platforms.get((chat.platform, chat.account))

    def is_here(self, chat: ChatRef) -> bool:
        """Whether this process sends in `chat`; also if its account is not configured."""
        return is_here(self.platform(chat))

    def senders_retry(self, chat: ChatRef) -> bool:
        """Whether senders in `chat` retry messages that were rejected."""
        platform = self.platform(chat)
        return platform is not None and platform.limits.senders_retry

    def is_only_bot(self, chat: ChatRef) -> bool:
        """Whether `chat` has no other bots."""
        platform = self.platform(chat)
        return platform is not None and platform.limits.only_bot

    def leave_after(self, chat: ChatRef) -> None:
        """Leave `chat` as soon as the messages queued for it now are sent, where the network lets the bot leave."""
        platform: object = self.platform(chat)
        if isinstance(platform, Membership):
            self._leaving.start(self._leave(platform, chat))

    async def _leave(self, platform: Membership, chat: ChatRef) -> None:
        await self.delivered(chat)
        try:
            await platform.leave(chat)
        except SendFailed as problem:
            _log.warning("chat_not_left", chat=chat.key, problem=str(problem))

    def shows(self, chat: ChatRef) -> str:
        """Sentence for models about the texts that the network of `chat` can show; empty if it is not configured."""
        platform = self.platform(chat)
        return "" if platform is None else platform.limits.for_models

    def last_unmarked_sent_at(self, chat: ChatRef) -> float | None:
        """When the bot last sent something in `chat`, on the monotonic clock; None if it has not, or if the network
        marks bots."""
        times, platform = self._sent_at.get(chat), self.platform(chat)
        return times[-1] if times and platform is not None and not platform.limits.bots_are_marked else None

    def hand_over(self, messages: Sequence[OutboundMessage]) -> None:
        """Queue these behind messages of the same chats; on a paced network, as much as the queue may hold."""
        for message in messages:
            if not self.is_here(message.outgoing.chat):
                self.elsewhere(message.outgoing.chat)
                continue
            lane = self._lane(message.outgoing)
            queue = self._queues.setdefault(lane, _Queue())
            platform = self.platform(message.outgoing.chat)
            if platform is not None and platform.limits.is_paced:
                self._append_within_limits(queue, message, platform.limits)
            else:
                queue.append(_Waiting(message))
            if lane not in self._tasks:
                self._tasks[lane] = asyncio.get_running_loop().create_task(self._work_off(lane))

    def _append_within_limits(self, queue: _Queue, message: OutboundMessage, limits: Limits) -> None:
        """Queue the lines of `message` that fit. The member's first message that does not fit stays in the queue to
        report how much is dropped; later ones are dropped until that report is sent."""
        outgoing, member = message.outgoing, message.asked_by
        lines = line_count(outgoing.text, limits)
        room, setting = min(
            (self.settings.lines_per_member - self._lines[member], "delivery.lines_per_member"),
            (self.settings.lines_per_chat - self._lines[outgoing.chat], "delivery.lines_per_chat"),
        )
        if not member or lines <= room:
            self._charge(message, lines)
            queue.append(_Waiting(message, member, lines))
            return
        # The end of the turn is already stored, so its reason is amended.
        writes = [inbox.amend(message.turn_id, ReasonCode.REPLY_DROPPED.value, setting)]
        report = queue.reports.get(member)
        if report is not None:
            report.dropped += lines
            self.dropped_lines += lines
            self.store.post([outbox.drop_unsent(message.row_id, setting), *writes])
            return
        text, rest = first_lines(outgoing.text, max(room, 0), limits)
        self._charge(message, lines - rest)
        report = _Waiting(message._replace(outgoing=replace(outgoing, text=text)), member, lines - rest, rest)
        queue.reports[member] = report
        queue.append(report)
        self.dropped_lines += rest
        self.store.post(writes)
        _log.warning("reply_dropped", chat=outgoing.chat.key, member=member, because=setting)

    def _charge(self, message: OutboundMessage, lines: int) -> None:
        """Add `lines` (may be negative) to the queued lines of the chat and the member."""
        for payer in (message.outgoing.chat, message.asked_by):
            self._lines[payer] += lines
            if not self._lines[payer]:
                del self._lines[payer]

    def _reporting(self, queue: _Queue, waiting: _Waiting) -> OutboundMessage:
        """The message to send for `waiting`, with a note on dropped lines if it reports them."""
        message = waiting.message
        if not waiting.dropped:
            return message
        if queue.reports.get(waiting.member) is waiting:
            # Later drops need another report.
            del queue.reports[waiting.member]
        note = self.dropped(message.outgoing.chat, waiting.dropped)
        text = f"{message.outgoing.text}\n{note}".lstrip("\n")
        return message._replace(outgoing=replace(message.outgoing, text=text))

    def _lane(self, outgoing: Outgoing) -> Lane:
        chat = outgoing.chat
        if outgoing.private_to is None or (chat.platform, chat.account) not in self._linked:
            return chat
        return chat, outgoing.private_to

    async def recover(self, account: str = "") -> int:
        """Queue the outbox rows that an earlier process left, of one account (`network:account`) in a cluster; returns
        their number. Raises StoreError."""
        messages: list[OutboundMessage] = []
        for row in await self.store.read(outbox.UNSENT):
            if not row["chat"].startswith(account):
                continue
            message = message_of_row(row)
            # The end of its turn replaces or deletes a status.
            if message.status is not StatusPart.SHOW:
                messages.append(message._replace(may_be_sent=row["state"] == "sending"))
        self.hand_over(messages)
        return len(messages)

    async def take_up(self) -> None:
        """Send the messages that no process has claimed: of workers, and given-up ones that an operator has released
        for a retry. Raises StoreError."""
        found = [row for row in await self.store.read(outbox.UNCLAIMED) if self.is_here(ChatRef.parse(row["chat"]))]
        # Turns have increasing ids in each chat; messages of several workers need not.
        found.sort(key=lambda row: row["turn_id"] or row["id"])
        for start in range(0, len(found), _MOST_CLAIMED):
            rows = found[start : start + _MOST_CLAIMED]
            claimed = await self.store.commit([outbox.claim(row["id"], self.epoch) for row in rows])
            self.hand_over(
                [
                    message_of_row(row)._replace(claimed=True)
                    for row, is_ours in zip(rows, claimed, strict=True)
                    if is_ours
                ]
            )

    def _marked(self, outgoing: Outgoing) -> Outgoing:
        """`outgoing` with a note that it may be a duplicate, unless the network deduplicates sends. `pieces` has
        reserved the room."""
        platform = self.platform(outgoing.chat)
        if platform is None or platform.limits.sends_are_idempotent:
            return outgoing
        text = f"{outgoing.text}\n{self.resent(outgoing.chat)}"
        return replace(outgoing, text=text) if len(text) <= platform.limits.text_chars else outgoing

    def _with_late_note(self, outgoing: Outgoing, due: Due | None) -> Outgoing:
        """`outgoing`, behind a note if it is late now. `pieces` has reserved the room."""
        if due is None:
            return outgoing
        platform = self.platform(outgoing.chat)
        note = self.late(outgoing.chat, due)
        if platform is None or not note:
            return outgoing
        text = f"{note}\n{outgoing.text}"
        return replace(outgoing, text=text) if len(text) <= platform.limits.text_chars else outgoing

    def has_status_messages(self, chat: ChatRef) -> bool:
        """Whether long turns in `chat` post a status message: the network can edit it, and does not show the status
        elsewhere."""
        platform = self.platform(chat)
        if platform is None or (chat.platform, chat.account) not in self._editing:
            return False
        return not platform.limits.shows_status and not platform.limits.is_paced

    def show_status(self, turn_id: int, outgoing: Outgoing) -> bool:
        """Post or change the status message of a running turn, unless that might delay other messages: something is
        being sent in the chat, more than a quarter of its rate is used, or the network is unreachable or limits the
        rate. Returns whether it is queued."""
        chat = outgoing.chat
        platform, linked = self.platform(chat), self._linked.get((chat.platform, chat.account))
        remote: object = platform
        if isinstance(remote, Elsewhere) and not remote.is_here:
            if self.statuses.may_show(turn_id):
                remote.show_status(turn_id, outgoing)
            return True
        if (
            platform is None
            or chat in self._tasks
            or (linked is not None and not linked.link().is_up)
            or self._paused_until.get(chat[:2], 0.0) > self.clock.monotonic()
            or not self.statuses.may_show(turn_id)
            or not self._takes_place(chat, max(platform.limits.sends_per_minute // _STATUS_SHARE, 1))
        ):
            return False
        message = OutboundMessage(
            0, outgoing, None, claimed=True, created_ms=0, turn_id=turn_id, status=StatusPart.SHOW
        )
        self.hand_over([message])
        return True

    async def typing(self, chat: ChatRef, status: str) -> None:
        """Show a progress status in `chat`; best effort."""
        platform = self.platform(chat)
        if platform is not None:
            await platform.typing(chat, status)

    async def delivered(self, chat: ChatRef) -> None:
        """Return when the messages queued for `chat` now are sent or given up."""
        task = self._tasks.get(chat)
        if task is not None:
            await asyncio.wait([task])

    async def idle(self) -> None:
        """Return when everything is sent or given up."""
        while self._tasks or self._leaving.tasks:
            await asyncio.wait([*self._tasks.values(), *self._leaving.tasks])

    async def close(self, seconds: float) -> None:
        """Wait up to `seconds` for the queues, and as long again for sends in progress. The rest is sent after the next
        start."""
        for leaving in self._leaving.tasks:
            leaving.cancel()
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=seconds)
        if unfinished:
            # A send that is cancelled may have arrived, and would be repeated after the restart.
            self._is_closing = True
            _, unfinished = await asyncio.wait(unfinished, timeout=seconds)
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished)
        # A task cancelled before its first step has not removed itself.
        self._tasks.clear()

    async def _work_off(self, lane: Lane) -> None:
        queue = self._queues[lane]
        try:
            while queue and not self._is_closing:
                waiting = queue.next()
                message = self._reporting(queue, waiting)
                try:
                    await self._deliver(message)
                except StoreFull as problem:
                    # Nothing is lost: the row stays in the outbox until there is disk space to claim it.
                    _log.error("outbox_cannot_be_claimed", chat=_chat(lane).key, problem=str(problem))
                    await self.clock.sleep(self.settings.longest_delay_seconds)
                    continue
                except StoreError as problem:
                    # The process is about to end; the queue is stored in the outbox.
                    _log.critical("delivery_failed", chat=_chat(lane).key, exc_info=problem)
                    return
                except Exception as problem:  # noqa: BLE001 - a broken platform must not stop the chat
                    _log.critical("delivery_failed", chat=_chat(lane).key, exc_info=problem)
                    self._give_up(message, f"{type(problem).__name__} while sending")
                if waiting.lines:
                    self._charge(message, -waiting.lines)
                queue.done()
        finally:
            del self._tasks[lane]
            if not queue:
                del self._queues[lane]

    async def _deliver(self, message: OutboundMessage) -> None:
        chat = message.outgoing.chat
        platform = self.platform(chat)
        if platform is None:
            self._give_up(message, f"there is no platform {chat.platform}:{chat.account}")
            return
        if message.status is StatusPart.SHOW:
            await self._show_status(platform, message)
            return
        linked = self._linked.get((chat.platform, chat.account))
        is_claimed, outgoing, may_be_sent = message.claimed, message.outgoing, message.may_be_sent
        attempt = 1
        while True:
            if linked is not None or not is_claimed:
                await self._make_ready(message, outgoing, linked, is_claimed=is_claimed)
                is_claimed = True
            if attempt == 1:
                self._reach("reply.after_outbox_before_send")
            await self._account_pause(chat)
            if not message.only_ends_status and not self._takes_place(chat, platform.limits.sends_per_minute):
                await self._waits_for_place(chat, platform.limits.sends_per_minute)
            try:
                self._reach("reply.during_send")
                # Checked here, after the wait for rate and connection.
                shown = self._without_secrets(self._with_late_note(outgoing, message.due))
                receipt = await self._sent_or_edited(platform, message, shown, may_be_sent=may_be_sent)
            except SendFailed as failure:
                if not await self._may_retry(message, failure, attempt):
                    return
                may_be_sent |= failure.unknown_outcome
                attempt += failure.retry_after_seconds is None
                continue
            self._reach("reply.after_send_before_mark")
            writes = _sent(message, receipt)
            if platform.limits.sends_are_idempotent:
                self.store.post(writes)
            else:
                await self._mark_sent(message, writes)
            self._reach("reply.after_mark")
            return

    async def _show_status(self, platform: ChatPlatform, message: OutboundMessage) -> None:
        chat = message.outgoing.chat
        failure = await self.statuses.show(platform, message.turn_id, self._without_secrets(message.outgoing))
        if failure is not None and failure.for_account and failure.retry_after_seconds is not None:
            self._paused_until[chat[:2]] = self.clock.monotonic() + failure.retry_after_seconds

    async def _sent_or_edited(
        self, platform: ChatPlatform, message: OutboundMessage, outgoing: Outgoing, *, may_be_sent: bool
    ) -> Receipt | None:
        """Replace the status of the turn or the earlier message that `outgoing` names, where the network can; send a
        new message if it is gone or too old. Returns None if a status is deleted only. Raises SendFailed."""
        if message.status is StatusPart.END:
            receipt = await self.statuses.end_with(platform, message.turn_id, outgoing)
            if receipt is not None or message.only_ends_status:
                return receipt
        if outgoing.replaces is not None and isinstance(platform, Editing):
            try:
                await platform.edit(outgoing.replaces, outgoing)
            except SendFailed as failure:
                if failure.retryable:
                    raise
            else:
                return Receipt(outgoing.replaces)
        # A duplicate is better than a loss, if the second copy says that it may be one.
        return await platform.send(self._marked(outgoing) if may_be_sent else outgoing)

    async def _may_retry(self, message: OutboundMessage, failure: SendFailed, attempt: int) -> bool:
        """Wait before the next attempt; False after giving the message up. A wait that the network requests is not
        counted as an attempt."""
        settings, chat = self.settings, message.outgoing.chat
        policy = RetryPolicy(settings.attempts, settings.first_delay_seconds, settings.longest_delay_seconds)
        requested = failure.retry_after_seconds
        if not failure.retryable or (requested is None and attempt == policy.attempts):
            self._give_up(message, str(failure))
            return False
        _log.info("send_failed", chat=chat.key, attempt=attempt, problem=str(failure))
        if requested is not None and failure.for_account:
            self._paused_until[chat[:2]] = self.clock.monotonic() + requested
        else:
            await self.clock.sleep(policy.wait_after(attempt) if requested is None else requested)
        return True

    async def _account_pause(self, chat: ChatRef) -> None:
        """Wait until the rate limit of the chat's account on its network permits sends."""
        while (left := self._paused_until.get(chat[:2], 0.0) - self.clock.monotonic()) > 0:
            await self.clock.sleep(left)

    def _without_secrets(self, outgoing: Outgoing) -> Outgoing:
        text = self.hide(outgoing.text)
        return outgoing if text == outgoing.text else replace(outgoing, text=text)

    async def _mark_sent(self, message: OutboundMessage, writes: Sequence[Write]) -> None:
        """Mark the row as sent, durably: the network would show a repeated send after a crash."""
        try:
            await self.store.commit(writes)
        except StoreFull as problem:
            # Retrying the delivery would send a certain duplicate; without the mark, a restart may send one.
            _log.error("sent_but_not_marked", outbox=message.row_id, problem=str(problem))

    async def _make_ready(
        self, message: OutboundMessage, outgoing: Outgoing, linked: Linked | None, *, is_claimed: bool
    ) -> None:
        """Wait until the recipient is reachable, and claim the row. Raises StoreError."""
        if linked is not None:
            await linked.until_reachable(outgoing, message.created_ms)
        if not is_claimed:
            await self.store.commit([outbox.claim(message.row_id, self.epoch)])

    def _takes_place(self, chat: ChatRef, sends_per_minute: int) -> bool:
        """Count one send in the chat's rate. Returns False without counting if the rate is used up."""
        now, times = self.clock.monotonic(), self._sent_at.get(chat)
        if times is None:
            times = self._sent_at[chat] = deque()
        while times and times[0] <= now - _WINDOW_SECONDS:
            times.popleft()
        if len(times) >= sends_per_minute:
            return False
        times.append(now)
        return True

    async def _waits_for_place(self, chat: ChatRef, sends_per_minute: int) -> None:
        """Wait until the chat's rate permits a send, and count it."""
        times = self._sent_at[chat]
        while len(times) >= sends_per_minute:
            # Other lanes of the chat may wait for the same slot: only one of them gets it.
            await self.clock.sleep(times[0] + _WINDOW_SECONDS - self.clock.monotonic())
            while times and times[0] <= self.clock.monotonic() - _WINDOW_SECONDS:
                times.popleft()
        times.append(self.clock.monotonic())

    def _give_up(self, message: OutboundMessage, problem: str) -> None:
        if message.status is StatusPart.SHOW or message.only_ends_status:
            _log.warning("status_not_ended", chat=message.outgoing.chat.key, problem=problem)
            self.store.post([outbox.drop_unsent(message.row_id, problem)])
            return
        self.failed += 1
        if message.is_unrecorded:
            self.store.post([outbox.drop_unsent(message.row_id, problem), outbox.erase(message.row_id)])
            return
        _log.error("message_not_delivered", chat=message.outgoing.chat.key, outbox=message.row_id, problem=problem)
        self.store.post([outbox.failed(message.row_id, problem, self.clock.now_ms())])
        for call in self.on_given_up:
            call(message, problem)


def _sent(message: OutboundMessage, receipt: Receipt | None) -> list[Write]:
    """Writes that mark the message as sent, or as dropped without a receipt."""
    if receipt is None:
        writes = [outbox.drop_unsent(message.row_id, "")]
    else:
        writes = [outbox.sent(message.row_id, receipt.native_id)]
        if message.history_id is not None:
            writes.append(history.sent(message.history_id, receipt.native_id))
    # A file may be large, and nobody reads it again.
    if message.is_unrecorded or message.outgoing.uploads:
        writes.append(outbox.erase(message.row_id))
    if message.status is StatusPart.END:
        writes.append(outbox.end_status(message.turn_id))
    return writes


def _chat(lane: Lane) -> ChatRef:
    return lane if isinstance(lane, ChatRef) else lane[0]


@dataclass(frozen=True, slots=True)
class Address:
    """Destination of one message."""

    chat: ChatRef
    private_to: MemberRef | None
    """The only member of the chat who may see the message; None if it is public."""
    platform: ChatPlatform


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a message."""

    turn_id: int
    """Also the id of the history row that the message answers, if the turn has one."""
    number: int
    """Number of the message in its turn. Turn and number form the key, which is the same on every attempt."""
    asked_by: MemberRef
    bot_name: str
    texts: Phrases
    outside: bool
    """The message may contain text of others."""
    due: Due | None = None
    """Set for messages of timers."""
    closes: tuple[str, ...] = ()
    """Native ids of earlier messages whose choices become invalid."""
    is_held: bool = False
    """The messages are stored to be sent after the quiet hours of the chat."""
    pressed: str | None = None
    """Native id of the bot's message whose button was pressed. None: no button started the turn."""
    ends_status: bool = False
    """The message replaces the status of the turn, if it is one plain message."""
    is_unrecorded: bool = False
    """The member has opted out: the message is in no history, and its content is deleted once it is sent."""


class OutboxRows:
    """Builds outbox rows of this process, identified by `epoch`."""

    def __init__(self, ids: Ids, epoch: int) -> None:
        self._ids = ids
        self._epoch = epoch

    def of(
        self, message: Message, to: Address, origin: Origin, now_ms: int
    ) -> tuple[list[Write], list[OutboundMessage]]:
        """The writes to commit, and the outbound messages to hand to the delivery afterwards."""
        writes: list[Write] = []
        outbound: list[OutboundMessage] = []
        chat, due, history_id = to.chat, origin.due, None
        limits = to.platform.limits
        if message.brief and limits.max_lines:
            message = replace(message, text=message.brief)
        replaces = origin.pressed if message.update is not None and isinstance(to.platform, Editing) else None
        if replaces is not None and message.update is not None:
            message = replace(message.update, to=message.to)
        if to.private_to is None and not origin.is_unrecorded:
            history_id = self._ids.next()
            writes.append(
                history.add_bot_message(
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
        # The process that holds the account claims the messages of other processes.
        epoch = self._epoch if is_here(to.platform) else outbox.NOBODY
        key, room = f"{origin.turn_id}:{origin.number}", ROOM_FOR_LATENESS if due is not None else 0
        closes, asked_by = origin.closes, origin.asked_by.key if limits.is_paced and due is None else ""
        parts = pieces(message, chat, to.private_to, key, limits, origin.texts, origin.bot_name, room)
        is_plain = len(parts) == 1 and to.private_to is None and not (closes or replaces or parts[0].attachments)
        status = StatusPart.END if origin.ends_status and is_plain else None
        for piece in parts:
            if closes or replaces is not None:
                piece, closes, replaces = replace(piece, closes=closes, replaces=replaces), (), None
            sent = OutboundMessage(
                self._ids.next(), piece, history_id, claimed, now_ms, due, origin.turn_id, asked_by, status
            )._replace(is_unrecorded=origin.is_unrecorded)
            writes.append(outbox_row(sent, epoch, "held" if origin.is_held else "sending" if claimed else "pending"))
            if not origin.is_held:
                outbound.append(sent)
            history_id = due = None
        return writes, outbound

    def end_of_status(self, turn_id: int, number: int, to: Address, now_ms: int) -> tuple[Write, OutboundMessage]:
        """The write and the outbound message that delete the status of the turn; `number` as in Origin."""
        outgoing = Outgoing(to.chat, f"{turn_id}:{number}:0", "")
        message = OutboundMessage(
            self._ids.next(), outgoing, None, claimed=True, created_ms=now_ms, turn_id=turn_id, status=StatusPart.END
        )
        return outbox_row(message, self._epoch if is_here(to.platform) else outbox.NOBODY), message
