"""Functions with `background`: their turn leaves the queue of its chat, with a deadline of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.testing import FAMILY, Group, a_group, call
from services.refs import ChatRef, Role
from tests.fakes.held import Held, until
from tests.fakes.kept import last_reason

WORK = ChatRef("test", "bot", "work")
INTERRUPTED = "“/dig” was interrupted by a restart, so there is no result. Please ask again if you still need it."


def digging() -> Held:
    return Held("dig", background=True, return_direct=True, timeout_seconds=900)


async def sent(group: Group, *texts: str) -> None:
    """Wait until the bot has sent these texts and no others."""
    await until(lambda: [one.text for one in group.platform.sent] == list(texts))


async def test_other_turns_of_the_chat_go_on_beside_a_run_in_the_background() -> None:
    dig = digging()
    async with a_group([dig.spec]) as group:
        await group.hear("Ann", "/dig deep", id="x1")
        await dig.has_begun("deep")
        await group.hear("Bo", "/calc 2+2")
        await sent(group, "2+2 = 4")
        dig.let_go()
        await group.settle()
        await sent(group, "2+2 = 4", "done: deep")
        # The answer quotes its request, because others wrote meanwhile.
        assert group.platform.sent[-1].reply_to == "x1"


async def test_a_model_starts_a_run_in_the_background_and_its_result_is_the_answer() -> None:
    dig = digging()
    async with a_group([dig.spec]) as group:
        group.model.says(call("dig", text="deep"), "Hello Bo.")
        await group.hear("Ann", "@Rollcall please look into this")
        await dig.has_begun("deep")
        await group.hear("Bo", "@Rollcall hi")
        await sent(group, "Hello Bo.")
        dig.let_go()
        await group.settle()
        await sent(group, "Hello Bo.", "done: deep")


async def test_three_members_have_runs_at_once_and_a_fourth_is_refused() -> None:
    dig = digging()
    async with a_group([dig.spec]) as group:
        for who in ("Ann", "Bo", "Cy"):
            await group.hear(who, f"/dig {who}")
        await dig.has_begun("Ann", "Bo", "Cy")
        await group.hear("Di", "/dig Di")
        await until(lambda: len(group.platform.sent) == 1)
        await group.hear("Di", "/dig elsewhere", chat=WORK)
        await dig.has_begun("elsewhere")
        dig.let_go()
        await group.settle()
        refusal, *results = [one.text for one in group.platform.sent]
    assert refusal.startswith("I'm already working on several long tasks here.")
    assert sorted(results) == ["done: Ann", "done: Bo", "done: Cy", "done: elsewhere"]


async def test_its_deadline_is_that_of_the_function_and_not_of_a_turn() -> None:
    dig = digging()
    async with a_group([dig.spec]) as group:
        await group.hear("Ann", "/dig deep")
        await dig.has_begun("deep")
        await group.clock.advance(890)
        group.deadlines.expire()
        assert group.platform.sent == []
        await group.clock.advance(12)
        group.deadlines.expire()
        await group.settle()
        await sent(group, "“/dig” took too long, so I stopped it. Please try again.")


@pytest.mark.parametrize(("who", "role", "ends"), [("Ann", None, True), ("Bo", Role.ADMIN, True), ("Bo", None, False)])
async def test_stop_ends_it_for_the_asker_and_for_moderators(who: str, role: Role | None, ends: bool) -> None:
    dig = digging()
    async with a_group([dig.spec]) as group:
        await group.hear("Ann", "/dig deep")
        await dig.has_begun("deep")
        await group.hear(who, "/stop", role=role)
        await until(lambda: len(group.platform.sent) == 1)
        assert (group.platform.sent[0].text == "Stopped.") is ends
        dig.let_go()
        await group.settle()
        assert ("done: deep" in [one.text for one in group.platform.sent]) is not ends


async def test_stop_ends_the_running_turn_before_the_runs_beside_it() -> None:
    dig, hold = digging(), Held()
    async with a_group([dig.spec, hold.spec]) as group:
        await group.hear("Ann", "/dig deep")
        await dig.has_begun("deep")
        await group.hear("Ann", "/hold on")
        await hold.has_begun("on")
        await group.hear("Ann", "/stop")
        await until(lambda: len(group.platform.sent) == 1)
        assert dig.running == ["deep"]
        dig.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent][1:] == ["done: deep"]


@pytest.mark.parametrize("message", ["/dig deep", "@Rollcall please look into this"])
async def test_a_crash_during_the_run_is_reported_once_and_the_run_is_not_repeated(
    tmp_path: Path, message: str
) -> None:
    dig = digging()
    async with a_group([dig.spec], home=tmp_path) as group:
        group.model.says(call("dig", text="deep"))
        await group.hear("Ann", message)
        await dig.has_begun("deep")
        await group.hear("Bo", "/calc 2+2")
        await sent(group, "2+2 = 4")
        await group.crash()
    again = digging()
    async with a_group([again.spec], home=tmp_path) as group:
        group.model.says(INTERRUPTED)
        await group.settle()
        await sent(group, INTERRUPTED)
        assert await group.say("Bo", "/calc 1+1") == ["1+1 = 2"]
    async with a_group([again.spec], home=tmp_path) as group:
        await group.settle()
        assert group.platform.sent == []
    assert again.begun == []


async def test_a_shutdown_ends_it_and_the_next_start_reports_it(tmp_path: Path) -> None:
    dig = digging()
    async with a_group([dig.spec], home=tmp_path) as group:
        await group.hear("Ann", "/dig deep")
        await dig.has_begun("deep")
        async with asyncio.timeout(30):
            await group.daemon.engine.drain(0.01)
        assert dig.running == []
    async with a_group([dig.spec], home=tmp_path) as group:
        await group.settle()
        await sent(group, INTERRUPTED)
        assert (await last_reason(group))[0] != "gave_up"
        assert group.platform.sent[0].chat == FAMILY
