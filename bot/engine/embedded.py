"""In-process engine: order within a chat, concurrency across chats."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from config.settings import LimitsSettings
from function_calls.context import Kind, MessageContext
from function_calls.turn import OpenQuestion
from services.refs import ChatRef, MemberRef, Role


@dataclass(slots=True, eq=False)
class Job:
    """An accepted message that waits for its turn."""

    turn_id: int
    """Also the id of its row in the inbox."""
    context: MessageContext
    addressed: bool
    question: OpenQuestion | None = None
    """The question that the message answers."""
    attempts: int = 0
    """Number of runs known to have been started and not ended by earlier processes."""
    recovered: bool = False
    """Accepted by an earlier process: parts of it may be stored, and each run is counted before it starts."""
    is_counted: bool = False
    """Its attempt is counted in the store already, by the worker that runs it."""
    suspect: bool = False
    """An earlier process died during a counted run of it. It runs alone, so that the cause of a crash is known."""
    immediate: bool = False
    started: bool = False
    started_ms: int = 0
    """Start of the current attempt."""
    stopped: bool = False
    """A member ended it with /stop."""
    answered: bool = False
    """Its reply is being stored, or waits for disk space: it cannot be stopped any more."""
    withdrawn: bool = False
    """Its message was deleted before it was queued."""
    edited: bool = False
    """Its message was edited during the turn."""
    changed: Callable[[], None] | None = None
    """Called after `edited` is set, if the turn runs in another process."""
    repeated: bool = False
    """Whether this process has tried the turn before, so that parts of it may be stored."""
    end_error_id: str = ""
    """Id of the log entry on why its end could not be stored; empty normally."""
    ended: Callable[[], None] | None = None
    """Called when the engine is done with the job, whatever the outcome."""
    leave_queue: Callable[[Job], bool] | None = None
    """Set by the engine: lets the next turn of the chat begin while this one continues. False: too many do."""
    claimed: tuple[OpenQuestion, float] | None = None
    """The claimed question and its expiry, for reopening it. Lost on restart."""

    @property
    def runs_for(self) -> MessageContext:
        """The message on whose sender's behalf the turn runs: for an approval the request, else the message itself."""
        terms = self.question.terms if self.question is not None else None
        return self.context if terms is None else terms.asker

    def mark_edited(self) -> None:
        """Record that its message was edited during the turn."""
        self.edited = True
        if self.changed is not None:
            self.changed()

    def answers(self, native_id: str) -> bool:
        """Whether it answers the platform message with that id. Ids of timers and expired questions are assigned by the
        bot, and no platform event refers to them."""
        context = self.context
        is_own = context.kind in (Kind.TIMER, Kind.EXPIRY)
        return not is_own and (context.key.native_id == native_id or any(id_ == native_id for id_, _ in context.parts))


RunTurn = Callable[[Job], Awaitable[None]]


_log = structlog.get_logger("engine")


class EmbeddedEngine:
    """Runs turns: one at a time per chat, at most `parallel_turns` at once."""

    def __init__(self, run: RunTurn, limits: LimitsSettings, *, is_remote: bool = False) -> None:
        """`is_remote`: turns run in other processes, which limit how many run at once."""
        self._run = run
        self._is_remote = is_remote
        self._limits = limits
        self._queues: dict[ChatRef, deque[Job]] = {}
        self._ready: deque[ChatRef] = deque()
        self._running: dict[ChatRef, tuple[Job, asyncio.Task[None]]] = {}
        self._immediate: set[asyncio.Task[None]] = set()
        self._background: dict[int, tuple[Job, asyncio.Task[None]]] = {}
        """Turns that have left the queue of their chat, by turn id, oldest first."""
        self._waiting = 0
        self._slots: dict[ChatRef, int] = {}
        self._slots_total = 0
        self._immediate_slots: dict[ChatRef, int] = {}
        self._suspects = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._accepts = True
        self._failed: asyncio.Future[None] | None = None

    def use(self, limits: LimitsSettings) -> None:
        """Apply new limits; waiting and running turns continue."""
        self._limits = limits
        self._start()

    @property
    def waiting(self) -> int:
        """Number of waiting turns."""
        return self._waiting

    @property
    def running(self) -> int:
        """Number of running turns."""
        return len(self._running) + len(self._immediate) + len(self._background)

    @property
    def oldest_waiting_id(self) -> int | None:
        """Id of the oldest waiting turn; None if none waits."""
        return min((queue[0].turn_id for queue in self._queues.values() if queue), default=None)

    def reserve_slot(self, chat: ChatRef, immediate: bool) -> str:
        """Reserve a queue slot for a message of `chat` during its acceptance, until `release_slot`. Returns an empty
        string, or the settings key of the limit that is reached; then no slot is reserved."""
        limits = self._limits
        if immediate:
            used = self._immediate_slots.get(chat, 0)
            if used >= limits.immediate_per_chat:
                return "limits.immediate_per_chat"
            self._immediate_slots[chat] = used + 1
            return ""
        used, queue = self._slots.get(chat, 0), self._queues.get(chat)
        if (used if queue is None else used + len(queue)) >= limits.queue_per_chat:
            return "limits.queue_per_chat"
        if self._waiting + self._slots_total >= limits.queue_total:
            return "limits.queue_total"
        self._slots[chat] = used + 1
        self._slots_total += 1
        return ""

    def release_slot(self, chat: ChatRef, immediate: bool) -> None:
        """Release the slot. An accepted message must be submitted with no await in between."""
        if not immediate:
            self._slots_total -= 1
        _release(self._immediate_slots if immediate else self._slots, chat)

    def submit(self, job: Job) -> None:
        """Run `job` in its chat's order, or at once if it is immediate. Submit suspects first: until the last of them
        has ended, one turn runs at a time."""
        self._idle.clear()
        chat = job.context.chat
        self._suspects += job.suspect
        job.leave_queue = self._leave_queue
        if job.immediate:
            self._immediate_slots[chat] = self._immediate_slots.get(chat, 0) + 1
            task = asyncio.create_task(self._guarded(job))
            self._immediate.add(task)
            task.add_done_callback(functools.partial(self._immediate_done, chat))
            return
        queue = self._queues.get(chat)
        if queue is None:
            if chat not in self._running and not self._ready and self._has_room():
                self._begin(chat, job)
                return
            queue = self._queues[chat] = deque()
        queue.append(job)
        self._waiting += 1
        if len(queue) == 1 and chat not in self._running:
            self._ready.append(chat)
        self._start()

    def is_busy(self, chat: ChatRef) -> bool:
        """Whether a turn of `chat` is accepted, waits or runs."""
        begun = any(chat in one for one in (self._running, self._slots, self._immediate_slots))
        return begun or bool(self._queues.get(chat))

    def waiting_job(self, chat: ChatRef, native_id: str) -> Job | None:
        """The queued job of the message with that id; None if it is unknown or has started."""
        return next((job for job in self._queues.get(chat, ()) if job.answers(native_id)), None)

    def running_job(self, chat: ChatRef, native_id: str) -> Job | None:
        """The job of the message with that id if it is running, else None."""
        return next((job for job, _ in self._tasks_of(chat) if job.answers(native_id)), None)

    def remove(self, job: Job) -> bool:
        """Remove a waiting job; False if it is not waiting any more."""
        queue = self._queues.get(job.context.chat)
        if queue is None or job not in queue:
            return False
        queue.remove(job)
        self._waiting -= 1
        self._suspects -= job.suspect
        self._note_idle()
        if job.ended is not None:
            job.ended()
        return True

    def stop(self, chat: ChatRef, by: MemberRef, role: Role) -> bool:
        """Stop the running turn of `chat`, or else the latest that has left its queue, if `by` is its requester, the
        sender of its message, or a moderator or above. Returns whether one is being stopped."""
        for job, task in self._tasks_of(chat):
            is_own = by in (job.context.sender.ref, job.runs_for.sender.ref)
            if not job.answered and (is_own or role.rank >= Role.MODERATOR.rank):
                job.stopped = True
                # Cancelling a task before its first step would skip its body, and nothing would end the turn.
                return task.cancel() if job.started else True
        return False

    def _tasks_of(self, chat: ChatRef) -> list[tuple[Job, asyncio.Task[None]]]:
        """The running turn of `chat`, then the turns that have left its queue, latest first."""
        running = [self._running[chat]] if chat in self._running else []
        return running + [one for one in reversed(self._background.values()) if one[0].context.chat == chat]

    def _leave_queue(self, job: Job) -> bool:
        """Let the next turn of the chat begin while `job`, its running turn, continues. False if as many turns as the
        limits allow do so."""
        chat = job.context.chat
        running = self._running.get(chat)
        if running is None or running[0] is not job:
            return True
        in_chat = sum(one.context.chat == chat for one, _ in self._background.values())
        if in_chat >= self._limits.background_per_chat or len(self._background) >= self._limits.parallel_turns:
            return False
        self._background[job.turn_id] = running
        self._turn_ended(chat)
        return True

    async def drain(self, seconds: float) -> None:
        """Start no more turns, and wait up to `seconds` for the running ones. The rest resume at the next start."""
        self._accepts = False
        tasks = [task for _, task in (*self._running.values(), *self._background.values())] + list(self._immediate)
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=seconds)
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=1.0)

    async def idle(self) -> None:
        """Return when nothing runs or waits."""
        await self._idle.wait()

    async def failed(self) -> None:
        """Wait forever, or raise the exception that broke a turn's error handling: the process has to end then."""
        self._failed = asyncio.get_running_loop().create_future()
        await self._failed

    def _start(self) -> None:
        while self._ready and self._has_room():
            chat = self._ready.popleft()
            queue = self._queues.get(chat)
            if chat in self._running or not queue:
                continue
            job = queue.popleft()
            self._waiting -= 1
            self._begin(chat, job)

    def _has_room(self) -> bool:
        most = self._limits.queue_total if self._is_remote else self._limits.parallel_turns
        most = 1 if self._suspects else most
        return self._accepts and len(self._running) < most

    def _begin(self, chat: ChatRef, job: Job) -> None:
        self._running[chat] = (job, asyncio.get_running_loop().create_task(self._guarded(job)))

    def _turn_ended(self, chat: ChatRef) -> None:
        """Remove the ended turn of `chat`, and start waiting turns, among them its next one."""
        del self._running[chat]
        if self._queues.get(chat):
            self._ready.append(chat)
        else:
            self._queues.pop(chat, None)
        self._start()
        self._note_idle()

    def _immediate_done(self, chat: ChatRef, task: asyncio.Task[None]) -> None:
        self._immediate.discard(task)
        _release(self._immediate_slots, chat)
        self._note_idle()

    def _note_idle(self) -> None:
        if not self.running and not self._waiting:
            self._idle.set()

    async def _guarded(self, job: Job) -> None:
        job.started = True
        try:
            await self._run(job)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception that escapes a turn ends the process
            _log.critical("turn_broke_the_engine", turn=job.turn_id, exc_info=error)
            if self._failed is not None and not self._failed.done():
                self._failed.set_exception(error)
        finally:
            if job.ended is not None:
                job.ended()
            self._suspects -= job.suspect
            if self._background.pop(job.turn_id, None) is not None:
                self._note_idle()
            elif not job.immediate:
                self._turn_ended(job.context.chat)


def _release(slots: dict[ChatRef, int], chat: ChatRef) -> None:
    remaining = slots[chat] - 1
    if remaining:
        slots[chat] = remaining
    else:
        del slots[chat]
