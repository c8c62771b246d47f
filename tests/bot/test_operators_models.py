"""Models per bot and chat, longer thinking, and use of models by member, in a whole daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.registration.models import model_of
from bot.testing import FAMILY, Group, a_group
from config.settings import Settings
from config.texts import Texts
from services.clock import Deadlines, SystemClock, VirtualClock
from services.llm.model import ModelAnswer, Usage
from services.refs import ChatRef, Role
from tests.bot.cli.running import a_settings_file, command
from tests.fakes.openai_server import OpenAIServer
from tests.services.llm.wire import a_body

EN = Texts().of("en")
ADMIN = {"role": Role.ADMIN}
WORK = ChatRef("test", "bot", "work")
NOT_SET_UP = EN.say("thinking.not_configured")
LISTS = {
    "bots": {"default": {"models": ["cloud", "spare"]}},
    "chats": {
        "allow": ["*"],
        "settings": {WORK.key: {"models": ["local"]}},
        "selectable_models": ["spare", "local"],
    },
}


@asynccontextmanager
async def answered_by(*names: str, each: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[Any]:
    """A group and its server, which answers with a number; the requests name the models `names` of the settings."""
    script = [{"body": a_body(f"Answer {number}.")} for number in range(1, 10)]
    async with OpenAIServer(script) as server:
        models = [
            {"name": name, "model": name, "base_url": server.base_url, "attempts": 1, **(each or {}).get(name, {})}
            for name in names
        ]
        written = {"models": models, "chats": {"allow": ["*"]}, **settings}
        clock = SystemClock()
        model = model_of(Settings.model_validate(written), Texts(), clock, Deadlines(clock))
        async with a_group(settings=written, model=model) as group:
            yield group, server


def asked(server: OpenAIServer) -> list[str]:
    return [one.json["model"] for one in server.requests]


async def test_each_chat_is_answered_by_the_models_of_the_nearest_layer_only() -> None:
    async with answered_by("other", "cloud", "spare", "local", **LISTS) as (group, server):
        await group.say("Ann", "@Rollcall hello")
        await group.say("Ann", "@Rollcall hello", chat=WORK)
        server.script.insert(0, {"status": 500})
        await group.say("Ann", "@Rollcall hello")
        assert asked(server) == ["cloud", "local", "cloud", "spare"]
        server.script[:] = [{"status": 500}]
        await group.say("Ann", "@Rollcall hello", chat=WORK)
        assert asked(server)[4:] == ["local"]


async def test_an_admin_chooses_among_the_permitted_models_of_the_chat() -> None:
    async with answered_by("cloud", "spare", "local", **LISTS) as (group, server):
        shown = (await group.say("Ann", "/settings model", **ADMIN))[0]
        assert shown == "model: cloud, spare (bots.default.models) – choose from spare"
        bad = EN.say("settings.bad_value", name="model", allowed="one of spare")
        assert await group.say("Ann", "/settings model local", **ADMIN) == [bad]
        chosen = (await group.say("Ann", "/settings model spare", **ADMIN))[0]
        assert chosen == "model: spare, cloud (set in this chat with /settings) – choose from spare"
        await group.say("Bob", "@Rollcall hello")
        await group.say("Ann", "/settings model default", **ADMIN)
        await group.say("Bob", "@Rollcall hello")
        assert asked(server) == ["spare", "cloud"]
        assert "Only admins" in (await group.say("Bob", "/settings model spare"))[0]


async def test_without_a_choice_a_chat_sees_its_models_and_cannot_change_them() -> None:
    async with answered_by("cloud", "spare") as (group, _):
        assert await group.say("Ann", "/settings model", **ADMIN) == [
            "model: cloud, spare (the default) – only in the settings file"
        ]
        refused = EN.say("settings.not_changeable", name="model")
        assert await group.say("Ann", "/settings model spare", **ADMIN) == [refused]


async def test_a_chat_whose_only_model_has_no_key_is_not_answered_by_another_one() -> None:
    settings = {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"models": ["local"]}}}}
    async with answered_by("cloud", "local", each={"local": {"base_url": ""}}, **settings) as (group, server):
        (reply,) = await group.say("Ann", "@Rollcall hello")
        assert reply
        assert not server.requests


@pytest.mark.parametrize(
    "text",
    [
        "think harder: is 91 prime?",
        "is 91 prime? Think carefully",
        "91 是质数吗？仔细想想",
        "想想 91 是不是质数",
        "/think is 91 prime?",
        "/想想 91 是质数吗",
    ],
)
async def test_words_and_a_command_use_the_thinking_model_for_one_message(text: str) -> None:
    router = {"thinking": {"model": "deep"}}
    async with answered_by("main", "deep", router=router) as (group, server):
        assert await group.say("Ann", text if text.startswith("/") else f"@Rollcall {text}") == ["Answer 1."]
        await group.say("Ann", "@Rollcall and 97?")
        assert asked(server) == ["deep", "main"]
        assert "tools" in server.requests[0].json
        assert "/think" not in server.requests[0].json["messages"][-1]["content"]


@pytest.mark.parametrize(
    "text", ["I think it is harder", "think of a name", "我想想再说", "> think harder\nis that a good idea?"]
)
async def test_other_messages_do_not(text: str) -> None:
    async with answered_by("main", "deep", router={"thinking": {"model": "deep"}}) as (group, server):
        await group.say("Ann", f"@Rollcall {text}")
        assert asked(server) == ["main"]
        assert "think of" not in text or "think of" in server.requests[0].json["messages"][-1]["content"]


async def test_a_model_reasons_longer_for_such_a_message_and_a_fallback_is_used() -> None:
    effort = {"main": {"reasoning_effort": "low", "thinking_effort": "high"}}
    async with answered_by("main", "spare", each=effort) as (group, server):
        await group.say("Ann", "@Rollcall think harder: is 91 prime?")
        server.script.insert(0, {"status": 500})
        await group.say("Ann", "@Rollcall is 91 prime?")
        efforts = [(one.json["model"], one.json.get("reasoning_effort")) for one in server.requests]
        assert efforts == [("main", "high"), ("main", "low"), ("spare", None)]


async def test_a_chat_with_local_models_only_does_not_get_the_thinking_model() -> None:
    settings = {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"models": ["local"]}}}}
    router = {"thinking": {"model": "deep"}}
    async with answered_by("deep", "local", router=router, **settings) as (group, server):
        assert await group.say("Ann", "/think is 91 prime?") == ["Answer 1.", NOT_SET_UP]
        assert asked(server) == ["local"]


async def test_without_a_model_for_it_the_reply_says_so_once_a_day() -> None:
    async with answered_by("main") as (group, _):
        assert await group.say("Ann", "@Rollcall think harder: is 91 prime?") == ["Answer 1.", NOT_SET_UP]
        assert await group.say("Ann", "/think is 97 prime?") == ["Answer 2."]
        assert await group.say("Ann", "@Rollcall think harder", chat=WORK) == ["Answer 3.", NOT_SET_UP]


def answer(text: str, prompt: int, completion: int) -> ModelAnswer:
    return ModelAnswer(text, usage=Usage(prompt, completion), by="main")


def line(name: str, today: str, month: str) -> str:
    return EN.say("usage.line", name=name, today=today, month=month)


async def hello(group: Group, who: str, prompt: int, completion: int, **facts: Any) -> None:
    group.model.says(answer("Hi.", prompt, completion))
    await group.say(who, "@Rollcall hello", **facts)


PRICED = {
    "budgets": {"prices": {"main": {"prompt": 1000, "completion": 2000}}},
    "models": [{"name": "main", "model": "m"}],
}


async def test_members_see_their_use_of_this_chat_today_and_this_month_without_any_budget() -> None:
    clock = VirtualClock(datetime(2026, 3, 30, 12, tzinfo=UTC))
    async with a_group(clock=clock) as group:
        await hello(group, "Ann", 300, 20)
        await clock.advance(24 * 3600)
        await hello(group, "Ann", 100, 5)
        await hello(group, "Ann", 100, 5, private=True)
        await hello(group, "Ann", 9, 9, chat=WORK)
        await hello(group, "Bob", 7, 1)
        today, month = "2× asked, 210 tokens", "3× asked, 530 tokens"
        assert await group.say("Ann", "/usage") == [line("Ann", today, month)]
        await clock.advance(24 * 3600)
        nothing = "0× asked, 0 tokens"
        assert await group.say("Ann", "/用量") == [line("Ann", nothing, nothing)]


async def test_admins_see_the_use_and_cost_of_all_members_of_this_chat() -> None:
    async with a_group(settings=PRICED) as group:
        await hello(group, "Ann", 300, 20)
        await hello(group, "Bob", 1000, 500)
        await hello(group, "Cleo", 9, 9, chat=WORK)
        ann, bob = "1× asked, 320 tokens, 0.34 in money", "1× asked, 1500 tokens, 2.00 in money"
        shown = "\n".join([line("Bob", bob, bob), line("Ann", ann, ann)])
        assert await group.say("Ann", "/usage all", **ADMIN) == [shown]
        assert await group.say("Ann", "/全部用量", **ADMIN) == [shown]
        assert "Only admins" in (await group.say("Bob", "/usage all"))[0]


async def test_counts_of_the_month_outlast_a_shorter_retention_period() -> None:
    clock = VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    async with a_group(settings={"store": {"days_kept": 1}, "chats": {"allow": ["*"]}}, clock=clock) as group:
        await hello(group, "Ann", 300, 20)
        for days, used in ((30, "1× asked, 320 tokens"), (31, "0× asked, 0 tokens")):
            await clock.advance(days * 24 * 3600)
            await group.daemon.housekeeping.forget()
            assert await group.say("Ann", "/usage") == [line("Ann", "0× asked, 0 tokens", used)]


async def test_counts_survive_a_restart(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await hello(group, "Ann", 300, 20)
    async with a_group(home=tmp_path) as group:
        once = "1× asked, 320 tokens"
        assert await group.say("Ann", "/usage") == [line("Ann", once, once)]


async def test_stats_list_the_use_by_chat_and_member(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = a_settings_file(tmp_path)
    async with a_group(home=tmp_path / "var", clock=VirtualClock(datetime.now(UTC))) as group:
        await hello(group, "Ann", 300, 20)
    printed = await asyncio.to_thread(command, capsys, "stats", "--config", file)
    assert [row.split()[2:] for row in printed.out.splitlines() if " usage " in row] == [
        [FAMILY.key, "test:bot:ann", "requests", "1"],
        [FAMILY.key, "test:bot:ann", "tokens", "320"],
    ]
