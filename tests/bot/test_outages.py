"""Messages to a group during an outage of all language models, and reports to its operator."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.registration.models import model_of
from bot.testing import Group, a_group, call
from bot.web.wiring import probes_of
from config.settings import Settings
from config.texts import Texts
from services.clock import Deadlines, VirtualClock
from services.llm.failover import Failover
from services.llm.model import ModelError
from services.refs import ChatRef, Role
from services.store.turns.inbox import INBOX
from tests.fakes.functions import CITY, Recorder
from tests.fakes.kept import kept
from tests.fakes.openai_server import OpenAIServer
from tests.services.llm.test_failover import BAD_KEY, DOWN, EMPTY, SETTINGS, Model
from tests.services.llm.wire import a_body, a_tool_call

EN = Texts().of("en")
TOLD = EN.say("model.provider_error")
OTHERS = ChatRef("test", "bot", "others")


async def last_reason(group: Group) -> tuple[str, str]:
    rows = await kept(group, INBOX.c.reason, INBOX.c.detail)
    return rows[-1]


async def test_a_chat_hears_once_that_there_is_no_model_and_commands_go_on() -> None:
    async with a_group() as group:
        group.model.says(*[DOWN] * 4)
        assert await group.say("Ann", "@Rollcall hello") == [TOLD]
        assert await group.say("Bob", "@Rollcall hello?") == []
        assert await last_reason(group) == ("model_down", "outage")
        assert await group.say("Ann", "/calc 6*7") == ["6*7 = 42"]
        assert await group.say("Ann", "@Rollcall still there?") == []
        assert await group.say("Ann", "@Rollcall hello", chat=OTHERS) == [TOLD]
        assert b'rollcall_turns_total{reason="model_down"} 2.0' in group.daemon.metrics.render()


async def test_what_a_yes_allowed_is_told_though_the_chat_knows_of_the_outage() -> None:
    post = Recorder("post", CITY, commands=["post"], effect="once", gives=True)
    settings = {"approvals": {"required": [{"functions": ["post"], "by": "admin"}]}}
    async with a_group([post.spec], settings=settings) as group:
        group.model.says(call("post", city="Oslo"))
        [code] = re.findall(r"#([0-9a-f]{5})", (await group.say("Ann", "@Rollcall do it now please"))[-1])
        group.model.says(DOWN, DOWN)
        assert await group.say("Cleo", "@Rollcall hello") == [TOLD]
        heard = await group.say("Bob", f"approve {code}", role=Role.ADMIN)
        assert (heard, len(post.runs)) == ([EN.say("claims.done", names="/post")], 1)


async def test_what_one_member_was_told_in_private_the_group_and_others_have_not_heard() -> None:
    async with a_group() as group:
        group.model.says(*[DOWN] * 5)
        assert await group.say("Ann", "@Rollcall hello", private=True) == [TOLD]
        assert await group.say("Ann", "@Rollcall hello", private=True) == []
        assert await group.say("Cleo", "@Rollcall hello", private=True) == [TOLD]
        assert await group.say("Bob", "@Rollcall hello") == [TOLD]
        assert await group.say("Ann", "@Rollcall hello") == []


async def test_the_next_outage_is_told_again() -> None:
    async with a_group() as group:
        group.model.says(DOWN, DOWN, "Here I am.", DOWN)
        told = [await group.say("Ann", "@Rollcall hello") for _ in range(4)]
    assert told == [[TOLD], [], ["Here I am."], [TOLD]]


async def test_whoever_asks_again_after_a_while_is_told_again() -> None:
    async with a_group(settings={"failover": {"say_again_seconds": 300}}) as group:
        group.model.says(DOWN, DOWN, DOWN)
        assert await group.say("Ann", "@Rollcall hello") == [TOLD]
        await group.clock.advance(299)
        assert await group.say("Ann", "@Rollcall hello") == []
        await group.clock.advance(1)
        assert await group.say("Ann", "@Rollcall hello") == [TOLD]


async def test_an_answer_that_cannot_be_used_is_told_each_time() -> None:
    async with a_group() as group:
        group.model.says(EMPTY, EMPTY)
        told = [await group.say("Ann", "@Rollcall hello") for _ in range(2)]
    assert told == [[EN.say("model.empty_response")]] * 2


async def test_an_operator_reads_which_model_is_left_alone_and_why() -> None:
    clock = VirtualClock()
    models = [Model("ours", [BAD_KEY]), Model("spare", [DOWN])]
    failover = Failover(models, SETTINGS, clock, Deadlines(clock))
    async with a_group(model=failover, clock=clock) as group:
        assert probes_of(group.daemon).ready().details["model.ours"] == "ok"
        for _ in range(3):
            await group.say("Ann", "@Rollcall hello")
        health = probes_of(group.daemon).ready()
        metrics = group.daemon.metrics.render()
    assert health.ok
    assert health.details["model.ours"] == "refuses the key in the settings; tried again in 600 s"
    assert health.details["model.spare"] == "left alone after failures (outage); tried again in 15 s"
    assert b'rollcall_model_left_alone_seconds{model="ours"} 600.0' in metrics
    assert b'rollcall_model_failures_total{model="spare"} 2.0' in metrics


@pytest.mark.requirement("D16")
async def test_two_servers_of_the_settings_stand_in_for_each_other_and_keep_their_own_secrets(tmp_path: Path) -> None:
    thinking = {"reasoning_content": "s3cret thoughts of the first"}
    asks = a_body(calls=[a_tool_call('{"city": "Oslo"}', "climate")], message=thinking)
    refused = {"status": 401, "body": {"error": {"message": "bad key"}}}
    climate = Recorder("climate", CITY, gives="cold")
    async with (
        OpenAIServer([{"body": asks}, refused]) as first,
        OpenAIServer([{"body": a_body("Cold.")}] * 2) as second,
    ):
        models = [
            {"name": "main", "model": "m-1", "api_key": "k1", "base_url": first.base_url},
            {"name": "spare", "model": "m-2", "api_key": "k2", "base_url": second.base_url},
        ]
        clock = VirtualClock()
        model = model_of(Settings.model_validate({"models": models}), Texts(), clock, Deadlines(clock))
        async with a_group([climate.spec], model=model, clock=clock, home=tmp_path) as group:
            assert await group.say("Ann", "@Rollcall how is Oslo?") == ["Cold."]
            assert await group.say("Ann", "@Rollcall and now?") == ["Cold."]
        assert (len(first.requests), len(second.requests)) == (2, 2)
        assert b"s3cret" in first.requests[1].body
        assert b"s3cret" not in second.requests[0].body
        assert second.requests[0].headers["authorization"] == "Bearer k2"
    lines = (tmp_path / "logs" / "model_requests.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["by"] for line in lines] == ["main", "spare", "spare"]


@pytest.mark.parametrize(
    ("error", "event", "level"),
    [(BAD_KEY, "model_refuses_its_key", "error"), (DOWN, "model_left_alone", "warning")],
    ids=["key", "outage"],
)
async def test_a_refused_key_reads_differently_in_the_log_from_an_outage(
    error: ModelError, event: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = VirtualClock()
    failover = Failover([Model("ours", [error])], SETTINGS, clock, Deadlines(clock))
    async with a_group(model=failover, clock=clock) as group:
        for _ in range(2):
            await group.say("Ann", "@Rollcall hello")
    [line] = [line for line in capsys.readouterr().out.splitlines() if event in line]
    assert f"[{level}" in line
    assert "model=ours" in line
