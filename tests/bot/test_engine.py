"""Turns are ordered within a chat, parallel across chats, limited in number, and stopped by /stop."""

from __future__ import annotations

import asyncio
import itertools
from random import Random

import pytest

from bot.engine.embedded import EmbeddedEngine, Job
from bot.testing import ScriptedModel, a_group
from config.settings import LimitsSettings
from config.texts import Texts
from function_calls.context import Kind
from services.llm.model import ModelAnswer, ModelRequest
from services.refs import ChatRef, Role
from services.store.port import StoreFull
from tests.fakes.builders import a_message
from tests.fakes.full_disk import FullDisk
from tests.fakes.functions import Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import last_reason, reasons

STOPPED = Texts().of("en").say("stop.stopped")
NOTHING = Texts().of("en").say("stop.nothing")


def a_chat(number: int) -> ChatRef:
    return ChatRef("test", "bot", f"chat{number}")


class Work:
    """Jobs that end when the test says so, and a record of them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.begun: list[tuple[ChatRef, int]] = []
        self.running: dict[ChatRef, asyncio.Event] = {}
        self.most_at_once = 0

    async def run(self, job: Job) -> None:
        chat = job.context.chat
        assert chat not in self.running, "two turns of a chat at once"
        self.begun.append((chat, job.turn_id))
        self.running[chat] = asyncio.Event()
        self.most_at_once = max(self.most_at_once, len(self.running))
        try:
            await self.running[chat].wait()
            if self.random.random() < 0.5:
                await asyncio.sleep(0)
        finally:
            del self.running[chat]

    async def finish_one(self) -> None:
        """Finish a running job, if any."""
        if self.running:
            self.random.choice(list(self.running.values())).set()
        for _ in range(3):
            await asyncio.sleep(0)

    async def finish(self, engine: EmbeddedEngine) -> None:
        """Finish all jobs, one after the other."""
        async with asyncio.timeout(10):
            while engine.waiting or engine.running:
                await self.finish_one()


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("seed", range(40))
async def test_every_chat_is_served_in_order_one_at_a_time_and_no_more_than_allowed_at_once(seed: int) -> None:
    random = Random(seed)
    work = Work(random)
    most = random.randint(1, 5)
    engine = EmbeddedEngine(work.run, LimitsSettings(parallel_turns=most))
    kept: dict[ChatRef, list[int]] = {}
    waiting: list[Job] = []
    for number in range(150):
        if random.random() < 0.6:
            chat = a_chat(random.randint(0, 7))
            job = Job(number, a_message(chat=chat), True)
            kept.setdefault(chat, []).append(number)
            waiting.append(job)
            engine.submit(job)
        elif waiting and random.random() < 0.3:
            job = random.choice(waiting)
            if engine.remove(job):
                kept[job.context.chat].remove(job.turn_id)
        else:
            await work.finish_one()
    await work.finish(engine)
    await engine.idle()
    assert work.most_at_once <= most
    for chat, numbers in kept.items():
        assert [number for where, number in work.begun if where == chat] == numbers


async def test_turns_that_are_suspected_run_one_at_a_time_before_all_others() -> None:
    work = Work(Random(1))
    engine = EmbeddedEngine(work.run, LimitsSettings(parallel_turns=5))
    for number in range(6):
        engine.submit(Job(number, a_message(chat=a_chat(number)), True, suspect=number < 3))
    while len(work.begun) < 3:
        await work.finish_one()
    assert work.most_at_once == 1
    await work.finish(engine)
    assert [number for _, number in work.begun] == [0, 1, 2, 3, 4, 5]
    assert work.most_at_once == 3


async def test_a_message_taken_out_of_the_queue_makes_no_room_for_two_at_once() -> None:
    work = Work(Random(1))
    engine = EmbeddedEngine(work.run, LimitsSettings(parallel_turns=1))
    jobs = [Job(number, a_message(chat=a_chat(number % 2)), True) for number in range(4)]
    engine.submit(jobs[0])
    engine.submit(jobs[1])
    assert engine.remove(jobs[1])
    assert not engine.remove(jobs[1])
    engine.submit(jobs[3])
    engine.submit(jobs[2])
    await work.finish(engine)
    assert [number for _, number in work.begun] == [0, 3, 2]


async def test_a_chat_that_floods_delays_nobody_by_more_than_one_turn() -> None:
    work = Work(Random(1))
    engine = EmbeddedEngine(work.run, LimitsSettings(parallel_turns=1))
    numbers = itertools.count()
    for _ in range(100):
        engine.submit(Job(next(numbers), a_message(chat=a_chat(0)), True))
    for chat in range(1, 6):
        engine.submit(Job(next(numbers), a_message(chat=a_chat(chat)), True))
    while len(work.begun) < 6:
        await work.finish_one()
    assert [chat for chat, _ in work.begun[:6]] == [a_chat(number) for number in range(6)]
    await engine.drain(0)


@pytest.mark.requirement("C7")
async def test_a_chat_that_waits_does_not_hold_up_another() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold long")
        await held.has_begun("long")
        await group.hear("Bob", "/id", chat=a_chat(1))
        await until(lambda: len(group.platform.sent) == 1)
        assert group.platform.sent[0].chat == a_chat(1)
        held.let_go()


async def test_messages_of_a_chat_are_answered_in_the_order_of_their_arrival() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        for number in range(5):
            await group.hear("Ann", f"/hold {number}")
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == [f"done: {number}" for number in range(5)]
        assert held.most_at_once == 1


async def test_a_full_queue_is_said_once_a_minute_and_counted_always() -> None:
    held = Held()
    limits = {"limits": {"queue_per_chat": 2}, "chats": {"allow": ["*"]}}
    full = Texts().of("en").say("failures.queue_full")
    async with a_group([held.spec], settings=limits) as group:
        await group.hear("Ann", "/hold first")
        await held.has_begun("first")
        for number in range(6):
            await group.hear("Ann", f"/hold {number}")
        assert [reason for reason, _ in await reasons(group)][1:] == ["waiting"] * 2 + ["queue_full"] * 4
        await until(lambda: [one.text for one in group.platform.sent] == [full])
        await group.hear("Bob", "/id", chat=a_chat(1))
        await until(lambda: len(group.platform.sent) == 2)
        await group.clock.advance(61)
        await group.hear("Ann", "/hold more")
        await until(lambda: [one.text for one in group.platform.sent].count(full) == 2)
        held.let_go()
        await group.settle()
        assert held.begun == ["first", "0", "1"]


async def test_the_total_of_what_waits_is_bounded_too() -> None:
    held = Held()
    limits = {"limits": {"queue_total": 3, "parallel_turns": 1}, "chats": {"allow": ["*"]}}
    async with a_group([held.spec], settings=limits) as group:
        for number in range(6):
            await group.hear("Ann", f"/hold {number}", chat=a_chat(number))
            await held.has_begun("0")
        assert [reason for reason, _ in await reasons(group)].count("queue_full") == 2
        held.let_go()
        await group.settle()
        assert held.most_at_once == 1


async def test_a_member_stops_the_turn_that_answers_them() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        assert await group.say("Ann", "/stop") == [STOPPED]
        assert held.running == []
        assert (await reasons(group))[0] == ("stopped", "")


@pytest.mark.parametrize(("role", "ends"), [(Role.MEMBER, False), (Role.MODERATOR, True), (Role.OWNER, True)])
async def test_the_turn_of_another_is_stopped_by_moderators_alone(role: Role, ends: bool) -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        await group.hear("Bob", "/stop", role=role)
        await until(lambda: len(group.platform.sent) == 1)
        assert [one.text for one in group.platform.sent] == [STOPPED if ends else NOTHING]
        assert (held.running == []) is ends
        held.let_go()


async def test_stop_with_nothing_to_stop_says_so() -> None:
    async with a_group() as group:
        assert await group.say("Ann", "/stop") == [NOTHING]


async def test_stop_in_another_chat_stops_nothing_here() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        await group.hear("Ann", "/stop", chat=a_chat(1))
        await until(lambda: len(group.platform.sent) == 1)
        assert held.running == ["it"]
        held.let_go()


class HangingModel(ScriptedModel):
    """Never answers."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        never: asyncio.Future[ModelAnswer] = asyncio.get_running_loop().create_future()
        return await never


async def test_a_model_that_hangs_can_be_stopped() -> None:
    model = HangingModel()
    async with a_group(model=model) as group:
        await group.hear("Ann", "@Rollcall hello")
        await until(lambda: bool(model.requests))
        assert await group.say("Ann", "/stop") == [STOPPED]
        assert await group.say("Ann", "/id") != []


async def test_stop_needs_no_room_in_the_queue() -> None:
    held = Held()
    async with a_group([held.spec], settings={"limits": {"queue_per_chat": 1}, "chats": {"allow": ["*"]}}) as group:
        for text in ("first", "second", "third"):
            await group.hear("Ann", f"/hold {text}")
            await held.has_begun("first")
        held.let_go("second")
        await group.say("Ann", "/stop")
        assert STOPPED in [one.text for one in group.platform.sent]
        assert held.begun == ["first", "second"]


async def test_what_waits_behind_a_stopped_turn_is_answered() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold first")
        await held.has_begun("first")
        await group.hear("Ann", "/hold second")
        held.let_go("second")
        await group.say("Ann", "/stop")
        assert [one.text for one in group.platform.sent] == [STOPPED, "done: second"]


async def test_a_stop_at_any_moment_of_a_turn_leaves_no_message_without_an_answer() -> None:
    once = Recorder("pay", commands=["pay"], effect="once")
    for ticks in range(30):
        async with a_group([once.spec]) as group:
            await group.hear("Ann", "/pay")
            for _ in range(ticks):
                await asyncio.sleep(0)
            await group.hear("Ann", "/stop")
            await group.settle()
            assert "waiting" not in [reason for reason, _ in await reasons(group)]
            assert len(group.platform.sent) in (2, 3) or (await last_reason(group))[0] == "silent"


async def test_a_stop_right_when_the_next_turn_begins_loses_nothing() -> None:
    engine_runs: list[int] = []

    async def run(job: Job) -> None:
        engine_runs.append(job.turn_id)

    engine = EmbeddedEngine(run, LimitsSettings())
    job = Job(1, a_message(), True)
    engine.submit(job)
    engine.stop(job.context.chat, job.context.sender.ref, Role.MEMBER)
    await engine.idle()
    assert engine_runs == [1]


async def test_a_stop_while_the_disk_is_full_loses_no_answer() -> None:
    disk = FullDisk()
    held = Held()
    async with a_group([held.spec], around_store=disk.under) as group:
        await group.hear("Ann", "/hold it", id="x1")
        await held.has_begun("it")
        disk.is_full = True
        held.let_go()
        await until(lambda: disk.refused > 0)
        disk.is_full = False
        await group.hear("Ann", "/stop")
        await until(lambda: [one.text for one in group.platform.sent] == [NOTHING])
        await group.clock.advance(5)
        await group.settle()
        assert [one.text for one in group.platform.sent] == [NOTHING, "done: it"]


async def test_an_edit_does_not_reach_a_turn_that_runs() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold old", id="x1")
        await held.has_begun("old")
        await group.hear("Ann", "/hold new", id="x1", kind=Kind.EDIT)
        held.let_go()
        await group.settle()
        assert held.begun == ["old"]
        assert await last_reason(group) == ("edit_too_late", "")


async def test_messages_that_arrive_at_once_find_no_more_room_than_there_is() -> None:
    held = Held()
    async with a_group([held.spec], settings={"limits": {"queue_per_chat": 5}, "chats": {"allow": ["*"]}}) as group:
        await asyncio.gather(*(group.hear("Ann", f"/hold {number}") for number in range(50)))
        found = await reasons(group)
        assert found.count(("waiting", "")) == 5
        assert found.count(("queue_full", "limits.queue_per_chat")) == 45
        held.let_go()
        await group.settle()
        assert len(held.begun) == 5


async def test_a_message_that_was_not_kept_leaves_its_place_to_others() -> None:
    disk, held = FullDisk(), Held()
    settings = {"limits": {"queue_per_chat": 1}, "chats": {"allow": ["*"]}}
    async with a_group([held.spec], settings=settings, around_store=disk.under) as group:
        disk.is_full = True
        for _ in range(3):
            with pytest.raises(StoreFull):
                await group.hear("Ann", "/hold it", id="x1")
        disk.is_full = False
        await group.hear("Ann", "/hold it", id="x1")
        await group.hear("Ann", "/hold it", id="x1")
        await held.has_begun("it")
        await group.hear("Ann", "/hold next")
        held.let_go()
        await group.settle()
        assert held.begun == ["it", "next"]


async def test_the_reason_of_a_full_queue_names_the_limit_that_was_reached() -> None:
    held = Held()
    limits = {"limits": {"queue_per_chat": 50, "queue_total": 1}, "chats": {"allow": ["*"]}}
    async with a_group([held.spec], settings=limits) as group:
        await group.hear("Ann", "/hold first")
        await held.has_begun("first")
        await group.hear("Ann", "/hold second")
        await group.hear("Ann", "/hold third")
        assert await last_reason(group) == ("queue_full", "limits.queue_total")
        held.let_go()


async def test_commands_that_do_not_wait_are_bounded_too() -> None:
    async with a_group(settings={"limits": {"immediate_per_chat": 3}, "chats": {"allow": ["*"]}}) as group:
        await asyncio.gather(*(group.hear("Ann", "/stop") for _ in range(100)))
        assert (await reasons(group)).count(("queue_full", "limits.immediate_per_chat")) == 97
        await group.settle()
        assert await group.say("Ann", "/stop") == [NOTHING]


async def test_who_waits_for_the_end_of_a_turn_hears_that_it_was_taken_out() -> None:
    ended: list[int] = []
    never = asyncio.Event()

    async def run(job: Job) -> None:
        await never.wait()

    engine = EmbeddedEngine(run, LimitsSettings())
    jobs = [Job(number, a_message(f"{number}"), addressed=True, ended=lambda: ended.append(1)) for number in range(2)]
    for job in jobs:
        engine.submit(job)
    assert engine.remove(jobs[1])
    assert ended == [1]
    never.set()
    await engine.idle()
