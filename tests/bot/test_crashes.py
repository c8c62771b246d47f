"""The daemon is killed at every fault point and started again: nothing is lost or repeated."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.texts import Texts
from tests.fakes.held import until
from tests.fakes.openai_server import OpenAIServer
from tests.harness.audit import answers, expected, in_doubt, problems, said_in_time, status_ids, to_come, unmarked
from tests.harness.daemon_process import SOON_SECONDS
from tests.harness.nursery import Nursery
from tests.harness.outside import Outside, Said, an_outside
from tests.harness.real_daemon import a_real_daemon

RECEIVING = ("recv.before_persist", "recv.after_persist_before_ack", "dedupe.after_insert", "recv.after_ack")
ASKING = ("route.before_llm", "llm.after_request_sent", "llm.after_response_before_persist", "llm.after_persist")
RUNNING = (
    "tool.before_intent_record",
    "tool.after_intent_before_call",
    "tool.during_call",
    "tool.after_call_before_result_record",
    "tool.after_result_record",
)
REPLYING = (
    "reply.before_outbox",
    "reply.after_outbox_before_send",
    "reply.during_send",
    "reply.after_send_before_mark",
    "reply.after_mark",
)
FIRING = ("sched.before_claim", "sched.after_claim", "sched.after_fire_before_done")
A_BUSY_HOUR = (
    Said("f1", "family", "Ann", "/pay tea"),
    Said("w1", "work", "Ann", "/keep report"),
    Said("f2", "family", "Bob", "@Rollcall keep milk"),
    Said("f3", "family", "Eve", "nobody is meant by this"),
    Said("w2", "work", "Ann", "@Rollcall pay cake"),
    Said("f4", "family", "Ann", "@Rollcall pay rent"),
    Said("f5", "family", "Bob", "@Rollcall good morning"),
)
HELLO = {"id": "r", "choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]}
NOT_A_STEP_OF_ITS_OWN = {
    "cursor.before_advance": "a cursor is advanced in the unit that accepts its message",
    "cursor.after_advance": "a cursor is advanced in the unit that accepts its message",
    "migrate.during": "tests/services/store/test_upgrade.py cuts migrations short",
    "checkpoint.during_wal": "tests/services/store/test_kill.py kills the store while it writes",
}
_UNKNOWN = Texts().of("en").say("failures.unknown_outcome", name="/pay")
PAY_RENT = Said("m1", "family", "Ann", "@Rollcall pay rent")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("nursery") / "stderr") as started:
        yield started


async def crashed(outside: Outside, faults: str, *said: Said) -> None:
    """Deliver `said` to a daemon that dies at the enabled fault point."""
    pid = await outside.start(faults)
    outside.deliver(*said)
    assert await outside.died(pid) == -signal.SIGKILL, f"{faults} was not reached"


async def recovered(outside: Outside) -> None:
    """Start it again without faults, deliver unacknowledged messages again, and wait until it has settled."""
    pid = await outside.start()
    outside.redeliver()
    await outside.settled()
    assert await outside.stop(pid) == 0


def test_every_point_of_a_crash_is_reached_here_or_is_not_a_step_of_its_own(data: Callable[[str], Path]) -> None:
    lines = data("G_faults/crash_points.jsonl").read_text(encoding="utf-8").splitlines()
    points = {json.loads(line)["point"] for line in lines}
    here = {*RECEIVING, *ASKING, *RUNNING, *REPLYING, *FIRING, "shutdown.during_drain", "reload.during_swap"}
    assert points == here | NOT_A_STEP_OF_ITS_OWN.keys()


@pytest.mark.parametrize("hit", [1, 2])
@pytest.mark.parametrize("point", [*RECEIVING, *ASKING, *RUNNING, *REPLYING])
async def test_after_a_kill_at_any_point_every_message_is_answered_once(
    tmp_path: Path, nursery: Nursery, point: str, hit: int
) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}:{hit}=kill", *A_BUSY_HOUR)
        await recovered(outside)
        assert problems(outside) == []


PLANS = (
    Said("p1", "family", "Ann", "/soon keep tea"),
    Said("p2", "work", "Ann", "/soon keep report"),
    Said("p3", "family", "Bob", "/soon keep cake"),
)
PAY_SOON = Said("p1", "family", "Ann", "/soon pay tea")


async def fired(outside: Outside) -> None:
    """Start it again and wait for all timers."""
    pid = await outside.start()
    outside.redeliver()
    await outside.settled()
    await until(lambda: not to_come(outside))
    await outside.settled()
    assert await outside.stop(pid) == 0


@pytest.mark.parametrize("hit", [1, 2])
@pytest.mark.parametrize("point", FIRING)
async def test_after_a_kill_while_something_is_fired_it_is_said_once(
    tmp_path: Path, nursery: Nursery, point: str, hit: int
) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}:{hit}=kill", *PLANS)
        await fired(outside)
        assert problems(outside) == []
        assert said_in_time(outside) == {name: [f"Kept {name}."] for name in ("tea", "report", "cake")}


@pytest.mark.parametrize("point", FIRING)
async def test_after_a_kill_while_a_payment_is_fired_it_is_made_once(
    tmp_path: Path, nursery: Nursery, point: str
) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}=kill", PAY_SOON)
        await fired(outside)
        assert problems(outside) == []
        assert said_in_time(outside) == {"tea": ["Paid for tea."]}
        assert len(outside.effects) == 1


@pytest.mark.parametrize("point", [*RUNNING, *REPLYING])
async def test_after_a_kill_while_a_timer_runs_or_speaks_it_has_paid_at_most_once_and_said_one_thing(
    tmp_path: Path, nursery: Nursery, point: str
) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        # The command that creates the timer reaches these points first, except one, which only payments reach.
        hit = 1 if point == "tool.during_call" else 2
        await crashed(outside, f"{point}:{hit}=kill", PAY_SOON)
        await fired(outside)
        assert problems(outside) == []
        (said,) = said_in_time(outside)["tea"]
        assert said == "Paid for tea." or _UNKNOWN in said
        assert (_UNKNOWN in said) is (point in (*RUNNING[1:], "reply.before_outbox"))


@pytest.mark.parametrize("point", REPLYING)
async def test_what_a_timer_says_is_shown_twice_only_where_the_network_keeps_no_keys_and_is_marked_then(
    tmp_path: Path, nursery: Nursery, point: str
) -> None:
    async with an_outside(tmp_path, nursery, sends_are_idempotent=False) as outside:
        await crashed(outside, f"{point}:2=kill", PLANS[0])
        await fired(outside)
        first, *again = said_in_time(outside)["tea"]
        assert first.startswith("Kept tea.")
        assert len(again) == (point == "reply.after_send_before_mark")
        assert all(one.endswith("(sent again after an interruption)") for one in again)


async def test_what_became_due_while_the_daemon_was_stopped_is_said_once_when_it_goes_on(
    tmp_path: Path, nursery: Nursery
) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        pid = await outside.start()
        outside.deliver(*PLANS)
        await outside.settled()
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(3 * SOON_SECONDS)
        os.kill(pid, signal.SIGCONT)
        await until(lambda: not to_come(outside))
        await outside.settled()
        assert await outside.stop(pid) == 0
        assert problems(outside) == []
        assert said_in_time(outside) == {name: [f"Kept {name}."] for name in ("tea", "report", "cake")}


@pytest.mark.parametrize(
    ("point", "is_known", "payments"),
    [
        *((point, True, 1) for point in (*RECEIVING, *ASKING[:3], RUNNING[0], *REPLYING)),
        # The intent is durable, so the payment may have happened and is not repeated.
        ("llm.after_persist", False, 0),
        ("tool.after_intent_before_call", False, 0),
        ("tool.during_call", False, 1),
        ("tool.after_call_before_result_record", False, 1),
        ("tool.after_result_record", False, 1),
    ],
)
async def test_what_may_happen_once_is_not_repeated_and_doubt_is_said_once(
    tmp_path: Path, nursery: Nursery, point: str, is_known: bool, payments: int
) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}=kill", PAY_RENT)
        await recovered(outside)
        said = answers(outside)[PAY_RENT.id]
        assert len(said) == 2
        assert (said == expected(PAY_RENT.text), in_doubt(said)) == (is_known, not is_known)
        assert len(outside.effects) == payments


@pytest.mark.parametrize("hit", [1, 2])
@pytest.mark.parametrize("point", ["llm.after_response_before_persist", "llm.after_persist", *REPLYING])
async def test_the_line_about_what_was_not_done_is_sent_once(
    tmp_path: Path, nursery: Nursery, point: str, hit: int
) -> None:
    exile = Said("m1", "family", "Ann", "@Rollcall exile bob")
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}:{hit}=kill", exile, Said("m2", "family", "Ann", "@Rollcall pay rent"))
        await recovered(outside)
        line = "Not done: There is no function called “exile”."
        assert answers(outside)[exile.id] == ["You said exile bob.", line]


@pytest.mark.parametrize("point", ["tool.after_intent_before_call", *RUNNING[2:]])
async def test_what_may_be_repeated_is_repeated_with_the_same_key(tmp_path: Path, nursery: Nursery, point: str) -> None:
    keep = Said("m1", "family", "Ann", "/keep milk")
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}=kill", keep)
        before = len(outside.effects)
        await recovered(outside)
        assert len(outside.effects) == before + 1
        assert len({effect.key for effect in outside.effects}) == 1
        assert answers(outside)[keep.id] == ["Kept milk."]


@pytest.mark.parametrize("point", ["tool.after_intent_before_call", "tool.during_call", *REPLYING])
async def test_an_answer_that_is_stored_is_not_asked_for_again(tmp_path: Path, nursery: Nursery, point: str) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}=kill", PAY_RENT)
        await recovered(outside)
        assert outside.asked.count("pay rent (0)") == 1


@pytest.mark.parametrize("hit", [1, 2])
@pytest.mark.parametrize("point", REPLYING)
async def test_where_the_network_keeps_no_keys_only_a_kill_between_send_and_mark_shows_one_message_twice(
    tmp_path: Path, nursery: Nursery, point: str, hit: int
) -> None:
    family = [one for one in A_BUSY_HOUR if one.chat == "family"]
    async with an_outside(tmp_path, nursery, sends_are_idempotent=False) as outside:
        await crashed(outside, f"{point}:{hit}=kill", *family)
        before = list(outside.arrived)
        # A message sent shortly before the kill may be unmarked at any fault point.
        not_marked = {one.key for one in before} & unmarked(outside)
        await recovered(outside)
        keys = [sent.key for sent in outside.arrived]
        again = [sent for sent in outside.arrived[len(before) :] if sent.key in {one.key for one in before}]
        assert len(set(keys)) == sum(len(expected(one.text)) for one in family)
        assert sorted(sent.key for sent in again) == sorted(not_marked)
        assert point != "reply.after_send_before_mark" or again
        assert all(sent.text.endswith("(sent again after an interruption)") for sent in again)


STATUS = ("status.after_send_before_mark", "status.after_mark")


@pytest.mark.parametrize(
    ("point", "text", "has_keys"),
    [
        *((point, "/keep milk", has_keys) for point in (*STATUS, *REPLYING) for has_keys in (True, False)),
        *((point, "@Rollcall keep milk", True) for point in (*STATUS, *REPLYING)),
        # The third message deletes the status.
        *((f"{point}:3", "@Rollcall keep milk", True) for point in REPLYING[1:]),
    ],
)
async def test_after_a_kill_the_status_of_a_long_turn_is_replaced_by_its_answer_or_deleted(
    tmp_path: Path, nursery: Nursery, point: str, text: str, has_keys: bool
) -> None:
    keep = Said("m1", "family", "Ann", text)
    async with an_outside(tmp_path, nursery, sends_are_idempotent=has_keys, can_edit=True) as outside:
        outside.acting.clear()
        pid = await outside.start(f"{point}=kill")
        outside.deliver(keep)
        await until(lambda: bool(outside.shown))
        assert all(text.startswith("Working") for text in outside.shown.values())
        if point not in STATUS:
            await until(lambda: status_ids(outside) == list(outside.shown))
        outside.acting.set()
        assert await outside.died(pid) == -signal.SIGKILL
        await recovered(outside)
        seen = list(outside.shown.values())
        if not has_keys and point == STATUS[0]:
            # The network has no way to find a message whose id was lost.
            assert seen.pop(0).startswith("Working")
        assert seen == expected(text)


async def test_a_message_that_kills_the_process_each_time_is_given_up_and_the_others_are_served(
    tmp_path: Path, nursery: Nursery
) -> None:
    deadly, other = Said("m1", "family", "Ann", "/keep bomb"), Said("m2", "family", "Bob", "/pay tea")
    async with an_outside(tmp_path, nursery) as outside:
        for _ in range(3):
            await crashed(outside, "tool.during_call=kill", deadly)
        outside.said.append(other)
        await recovered(outside)
        assert answers(outside) == {
            "m1": [
                "I tried several times but couldn't answer this message, so "
                "I stopped. Please try asking in another way."
            ],
            "m2": ["Paid for tea."],
        }
        assert len(outside.effects) == 4


GAVE_UP, GAVE_UP_AFTER = Texts().of("en").say("failures.gave_up"), Texts().of("en").say("failures.gave_up_after")


async def killed_three_times(outside: Outside, faults: str, *said: Said) -> None:
    """The daemon and its two successors die at the fault point."""
    for _ in range(3):
        await crashed(outside, faults, *said)


async def test_a_message_that_is_given_up_says_what_was_done(tmp_path: Path, nursery: Nursery) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await killed_three_times(outside, "reply.before_outbox=kill", PAY_RENT)
        await recovered(outside)
        assert answers(outside)[PAY_RENT.id] == ["Paid for rent.", GAVE_UP_AFTER]
        assert len(outside.effects) == 1


async def test_a_message_that_is_given_up_says_that_an_outcome_is_unknown(tmp_path: Path, nursery: Nursery) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, "tool.during_call=kill", PAY_RENT)
        for _ in range(2):
            await crashed(outside, "reply.before_outbox=kill")
        await recovered(outside)
        assert answers(outside)[PAY_RENT.id] == [_UNKNOWN, GAVE_UP_AFTER]
        assert len(outside.effects) == 1


async def test_a_deadly_message_is_given_up_and_the_forty_that_waited_or_ran_are_answered(
    tmp_path: Path, nursery: Nursery
) -> None:
    deadly = Said("bomb", "family", "Ann", "@Rollcall keep bomb")
    behind = [Said(f"b{number}", "family", "Bob", f"/keep thing{number}") for number in range(20)]
    beside = [Said(f"o{number}", f"chat{number}", "Eve", f"@Rollcall keep thing{number}") for number in range(20)]
    async with an_outside(tmp_path, nursery) as outside:
        await killed_three_times(outside, "asked.bomb=kill", *beside, deadly, *behind)
        await recovered(outside)
        seen = answers(outside)
        assert {one.id: seen[one.id] for one in (*behind, *beside) if seen[one.id] != expected(one.text)} == {}
        assert seen["bomb"] == [GAVE_UP]


async def test_two_deadly_messages_are_given_up_and_the_others_are_answered(tmp_path: Path, nursery: Nursery) -> None:
    bombs = [Said(f"bomb{number}", f"chat{number}", "Ann", f"@Rollcall keep bomb{number}") for number in range(2)]
    others = [Said(f"o{number}", f"other{number}", "Eve", f"@Rollcall keep thing{number}") for number in range(9)]
    faults = "asked.bomb0=kill;asked.bomb1=kill"
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, faults, *others, *bombs)
        for _ in range(2 * 3):
            pid = await outside.start(faults)
            outside.redeliver()
            settling = asyncio.create_task(outside.settled())
            await asyncio.wait([settling, asyncio.create_task(outside.ended.wait())], return_when="FIRST_COMPLETED")
            if not outside.ended.is_set():
                break
            settling.cancel()
        assert await outside.stop(pid) == 0
        seen = answers(outside)
        assert [seen[one.id] for one in bombs] == [[GAVE_UP], [GAVE_UP]]
        assert [seen[one.id] for one in others] == [expected(one.text) for one in others]


@pytest.mark.parametrize("plan", ["keep bomb", "pay bomb"])
async def test_a_reminder_that_was_interrupted_three_times_is_said(tmp_path: Path, nursery: Nursery, plan: str) -> None:
    point = f"{plan.replace(' ', '.')}=kill"
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, point, Said("p1", "family", "Ann", f"/soon {plan}"))
        # A `once` effect is not repeated, so the daemon dies later.
        for _ in range(2):
            await crashed(outside, point if plan == "keep bomb" else "reply.before_outbox=kill")
        await fired(outside)
        first, *more = said_in_time(outside)["bomb"]
        assert "bomb" in first.splitlines()[-1]
        assert more == ([] if plan == "keep bomb" else [_UNKNOWN])
        assert len(outside.effects) == (3 if plan == "keep bomb" else 1)


async def test_a_kill_while_the_daemon_drains_loses_nothing(tmp_path: Path, nursery: Nursery) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        outside.answering.clear()
        pid = await outside.start("shutdown.during_drain=kill")
        outside.deliver(*A_BUSY_HOUR)
        await outside.is_asked()
        stopping = outside.stop(pid)
        outside.answering.set()
        assert await stopping == -signal.SIGKILL
        await recovered(outside)
        assert problems(outside) == []


async def test_a_kill_while_other_settings_take_their_places_loses_nothing(tmp_path: Path, nursery: Nursery) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        outside.answering.clear()
        pid = await outside.start("reload.during_swap=kill")
        outside.deliver(*A_BUSY_HOUR)
        await outside.is_asked()
        outside.reload()
        assert await outside.died(pid) == -signal.SIGKILL
        outside.answering.set()
        await recovered(outside)
        assert problems(outside) == []


async def test_settings_that_take_their_places_while_turns_run_disturb_none(tmp_path: Path, nursery: Nursery) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        outside.answering.clear()
        pid = await outside.start()
        outside.deliver(*A_BUSY_HOUR)
        await outside.is_asked()
        outside.reload()
        outside.answering.set()
        await outside.settled()
        assert await outside.stop(pid) == 0
        assert problems(outside) == []
        assert not any(map(in_doubt, answers(outside).values()))


@pytest.mark.requirement("E6")
async def test_a_daemon_finishes_running_turns_at_shutdown_and_leaves_the_rest_for_the_next_start(
    tmp_path: Path, nursery: Nursery
) -> None:
    many = [Said(f"m{number}", f"chat{number % 5}", "Ann", f"@Rollcall pay bill{number}") for number in range(40)]
    async with an_outside(tmp_path, nursery) as outside:
        outside.answering.clear()
        pid = await outside.start()
        outside.deliver(*many)
        await outside.is_asked()
        stopping = outside.stop(pid)
        outside.answering.set()
        assert await stopping == 0
        assert len(outside.effects) < len(many)
        await recovered(outside)
        assert problems(outside) == []
        assert not any(map(in_doubt, answers(outside).values()))


async def test_sigterm_under_load_finishes_what_runs_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    chats = [f"chat{number}" for number in range(5)]
    slow, quick = {"body": HELLO, "delay_seconds": 2}, {"body": HELLO}
    async with OpenAIServer([slow] * 5 + [quick] * 15) as server:
        async with a_real_daemon(tmp_path, server.base_url) as daemon:
            for number in range(20):
                await daemon.say(chats[number % 5], f"m{number}", "good morning to all of you")
            await daemon.told_to_stop()
            assert await daemon.ended() == 0
        assert len(server.requests) == 5
        async with a_real_daemon(tmp_path, server.base_url) as daemon:
            assert await daemon.answers(chats, 20) == dict.fromkeys(chats, 4)
        assert len(server.requests) == 20


async def test_a_second_sigterm_ends_at_once_and_the_message_is_answered_after_the_next_start(tmp_path: Path) -> None:
    async with OpenAIServer([{"body": HELLO, "delay_seconds": 60}, {"body": HELLO}]) as server:
        async with a_real_daemon(tmp_path, server.base_url) as daemon:
            await daemon.say("family", "m1", "good morning to all of you")
            await until(lambda: bool(server.requests))
            await daemon.told_to_stop()
            daemon.process.terminate()
            assert await daemon.ended(seconds=2) == 130
        async with a_real_daemon(tmp_path, server.base_url) as daemon:
            assert await daemon.answers(["family"], 1) == {"family": 1}
