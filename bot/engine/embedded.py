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
    """A message that was accepted and waits for its answer."""

    turn_id: int
    """Also the id of its row in the inbox."""
    context: MessageContext
    addressed: bool
    question: OpenQuestion | None = None
    """The question that it answers."""
    attempts: int = 0
    """How many of its runs an earlier process began, as far as that is known, and did not end."""
    recovered: bool = False
    """An earlier process accepted it: something of it may be stored, and each of its runs is counted before it
    begins."""
    suspect: bool = False
    """An earlier process died during a counted run of it: it runs alone, so that what ends the process is known."""
    immediate: bool = False
    begun: bool = False
    begun_ms: int = 0
    """When the attempt that runs began."""
    stopped: bool = False
    """Somebody ended it with /stop."""
    answered: bool = False
    """Its answer is being kept, or waits for room to be: it can be stopped no more."""
    withdrawn: bool = False
    """Its message was deleted before it was queued."""
    edited: bool = False
    """Its message was changed while it was being answered."""
    repeated: bool = False
    """It was tried in this process before, so something of it may be stored."""
    unfit: str = ""
    """The id under which the log has why its end could not be kept as it was."""
    ended: Callable[[], None] | None = None
    """Called when the engine is done with it, however it ended."""
    taken: tuple[OpenQuestion, float] | None = None
    """The question, and when it expires, where nobody else can answer it meanwhile; forgotten by a restart."""

    @property
    def runs_for(self) -> MessageContext:
        """The message whose sender runs what this turn runs: of an approval the one who asked, not the one who
        answers."""
        terms = self.question.terms if self.question is not None else None
        return self.context if terms is None else terms.asker


RunTurn = Callable[[Job], Awaitable[None]]


_log = structlog.get_logger("engine")
_OWN = frozenset({Kind.TIMER, Kind.EXPIRY})


class EmbeddedEngine:
    """Runs turns: one at a time in a chat, at most `parallel_turns` at once."""

    def __init__(self, run: RunTurn, limits: LimitsSettings) -> None:
        self._run = run
        self._limits = limits
        self._queues: dict[ChatRef, deque[Job]] = {}
        self._ready: deque[ChatRef] = deque()
        self._running: dict[ChatRef, tuple[Job, asyncio.Task[None]]] = {}
        self._immediate: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._places: dict[ChatRef, int] = {}
        self._places_total = 0
        self._immediate_places: dict[ChatRef, int] = {}
        self._suspects = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._accepts = True
        self._failed: asyncio.Future[None] | None = None

    def use(self, limits: LimitsSettings) -> None:
        """From now on these limits hold; what waits and runs already goes on."""
        self._limits = limits
        self._start()

    @property
    def waiting(self) -> int:
        """Turns that wait."""
        return self._waiting

    @property
    def running(self) -> int:
        """Turns that run."""
        return len(self._running) + len(self._immediate)

    def keep_place(self, chat: ChatRef, immediate: bool) -> str:
        """Keep a place for a message of `chat` while it is being accepted, until `free_place`. Empty when it has one;
        else the settings key of the limit that is reached, and no place is kept."""
        limits = self._limits
        if immediate:
            taken = self._immediate_places.get(chat, 0)
            if taken >= limits.immediate_per_chat:
                return "limits.immediate_per_chat"
            self._immediate_places[chat] = taken + 1
            return ""
        taken, queue = self._places.get(chat, 0), self._queues.get(chat)
        if (taken if queue is None else taken + len(queue)) >= limits.queue_per_chat:
            return "limits.queue_per_chat"
        if self._waiting + self._places_total >= limits.queue_total:
            return "limits.queue_total"
        self._places[chat] = taken + 1
        self._places_total += 1
        return ""

    def free_place(self, chat: ChatRef, immediate: bool) -> None:
        """The message of that place was accepted, and is submitted without waiting for anything, or was not."""
        if not immediate:
            self._places_total -= 1
        _give_back(self._immediate_places if immediate else self._places, chat)

    def submit(self, job: Job) -> None:
        """Run `job` when its chat's turn comes; at once when it is immediate. Submit suspects before all others: until
        the last of them has ended, one turn runs at a time."""
        self._idle.clear()
        chat = job.context.chat
        self._suspects += job.suspect
        if job.immediate:
            self._immediate_places[chat] = self._immediate_places.get(chat, 0) + 1
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

    def waiting_job(self, chat: ChatRef, native_id: str) -> Job | None:
        """The message of that id while it waits and nobody has begun with it."""
        return next((job for job in self._queues.get(chat, ()) if _is_message(job, native_id)), None)

    def running_job(self, chat: ChatRef, native_id: str) -> Job | None:
        """The message of that id while it is being answered."""
        job = self._running[chat][0] if chat in self._running else None
        return job if job is not None and _is_message(job, native_id) else None

    def remove(self, job: Job) -> bool:
        """Take a waiting job out; False when it runs already."""
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
        """End the running turn of `chat`, when `by` asked for it, wrote what it answers, or is a moderator or above."""
        running = self._running.get(chat)
        if running is None:
            return False
        job, task = running
        if job.answered:
            return False
        if by not in (job.context.sender.ref, job.runs_for.sender.ref) and role.rank < Role.MODERATOR.rank:
            return False
        job.stopped = True
        # A task that is cancelled before its first step never runs, and then nobody would end the turn.
        return task.cancel() if job.begun else True

    async def drain(self, seconds: float) -> None:
        """Start nothing new, and wait up to `seconds` for what runs; what is left is taken up at the next start."""
        self._accepts = False
        tasks = [task for _, task in self._running.values()] + list(self._immediate)
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
        """Return never, or raise what ended a turn although nothing may: the process has to end then."""
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
        most = 1 if self._suspects else self._limits.parallel_turns
        return self._accepts and len(self._running) < most

    def _begin(self, chat: ChatRef, job: Job) -> None:
        self._running[chat] = (job, asyncio.get_running_loop().create_task(self._guarded(job)))

    def _over(self, chat: ChatRef) -> None:
        """The turn of `chat` that ran has ended: the next one begins."""
        del self._running[chat]
        if self._queues.get(chat):
            self._ready.append(chat)
        else:
            self._queues.pop(chat, None)
        self._start()
        self._note_idle()

    def _immediate_done(self, chat: ChatRef, task: asyncio.Task[None]) -> None:
        self._immediate.discard(task)
        _give_back(self._immediate_places, chat)
        self._note_idle()

    def _note_idle(self) -> None:
        if not self._running and not self._immediate and not self._waiting:
            self._idle.set()

    async def _guarded(self, job: Job) -> None:
        job.begun = True
        try:
            await self._run(job)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - what a turn could not turn into a value ends the process, loudly
            _log.critical("turn_broke_the_engine", turn=job.turn_id, exc_info=error)
            if self._failed is not None and not self._failed.done():
                self._failed.set_exception(error)
        finally:
            if job.ended is not None:
                job.ended()
            self._suspects -= job.suspect
            if not job.immediate:
                self._over(job.context.chat)


def _is_message(job: Job, native_id: str) -> bool:
    """Whether it answers the network's message of that id: the ids of timers and of questions that nobody answered are
    the bot's own, and no network has a say in them."""
    return job.context.kind not in _OWN and job.context.key.native_id == native_id


def _give_back(places: dict[ChatRef, int], chat: ChatRef) -> None:
    left = places[chat] - 1
    if left:
        places[chat] = left
    else:
        del places[chat]
