"""Model answers with characters that the store rejects are processed like others, and end the daemon neither now nor at
its next start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.testing import Group, a_group, call
from function_calls.context import Attachment
from function_calls.spec import Choice, FunctionResult, Message
from services.clock import SystemClock
from services.llm.model import ModelAnswer
from services.llm.protocols.openai_chat import OpenAIChat
from services.refs import ChatRef, MemberRef
from tests.bot.test_turns import ModelProfile
from tests.fakes.functions import CITY, Recorder
from tests.fakes.openai_server import OpenAIServer

NUL = "\0"


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of a daemon with its database on the engine."""
    if request.param == "sqlite":
        return {}
    return {"store": {"url": request.getfixturevalue("new_postgres_database")}}


def asks(name: str, identity: str = "c1", arguments: str = '{"city": "Oslo"}') -> dict[str, Any]:
    calls = [{"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"id": "r1", "choices": [{"message": message, "finish_reason": "tool_calls"}]}


def words(text: str, identity: str = "r1") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"id": identity, "choices": [{"message": message, "finish_reason": "stop"}]}


async def answer(group: Group, message_id: str) -> list[str]:
    """Messages to the chat. Raises exceptions that would end the daemon."""
    failed = asyncio.create_task(group.daemon.engine.failed())
    await asyncio.sleep(0)
    said = await group.say("Ann", "@Rollcall hi there", id=message_id)
    await asyncio.sleep(0)
    if failed.done():
        failed.result()
    failed.cancel()
    return said


@pytest.mark.parametrize(
    ("answers", "heard"),
    [
        pytest.param([words(f"a{NUL}b")], ["a\ufffdb"], id="words"),
        pytest.param([words("ok", f"r{NUL}")], ["ok"], id="the request's id"),
        pytest.param([asks(f"cl{NUL}imate"), words("ok")], None, id="an unknown function"),
        pytest.param([asks("climate", arguments='{"city": "Os\\u0000lo"}'), words("ok")], None, id="arguments"),
        pytest.param([asks("climate", f"c{NUL}"), words("ok")], ["cold", "ok"], id="the call's id"),
    ],
)
async def test_an_answer_with_nul_is_answered_like_any_other(
    answers: list[dict[str, Any]], heard: list[str] | None, settings: dict[str, Any], tmp_path: Path
) -> None:
    climate = Recorder("climate", CITY, gives="cold", effect="idempotent")
    async with OpenAIServer([{"body": one} for one in answers]) as server:
        model = OpenAIChat(ModelProfile("main", "m", server.base_url, SecretStr("k")), SystemClock())
        async with a_group([climate.spec], home=tmp_path, settings=settings, model=model) as group:
            said = await answer(group, "x1")
    assert said
    assert heard is None or said == heard
    async with a_group([climate.spec], home=tmp_path, settings=settings) as group:
        assert await answer(group, "x1") == []  # it was answered and is a duplicate


@pytest.mark.parametrize("unfit", [NUL, "\ud800"], ids=["NUL", "a lone surrogate"])
async def test_what_a_model_at_hand_says_is_made_fit_too(unfit: str, settings: dict[str, Any], tmp_path: Path) -> None:
    async with a_group([], home=tmp_path, settings=settings) as group:
        group.model.says(ModelAnswer(text=f"a{unfit}b", finish=unfit, model=unfit, request_id=unfit))
        assert await answer(group, "x1") == ["a\ufffdb"]


async def test_what_a_function_is_given_and_gives_may_hold_nul(settings: dict[str, Any], tmp_path: Path) -> None:
    act = Recorder("act", {"x": {"type": "string"}}, gives=f"c{NUL}d", effect="once")
    async with a_group([act.spec], home=tmp_path, settings=settings) as group:
        group.model.says([call("act", x=f"a{NUL}b")], "ok")
        assert await answer(group, "x1") == ["c\ufffdd", "ok"]
    assert [run["x"] for run in act.runs] == [f"a{NUL}b"]


@pytest.mark.parametrize("unfit", [NUL, "\ud800"], ids=["NUL", "a lone surrogate"])
@pytest.mark.parametrize(
    "more",
    [
        lambda unfit: {"choices": (Choice(f"A{unfit}", "a"), Choice("B", f"b{unfit}"))},
        lambda unfit: {
            "attachments": (Attachment(f"{unfit}.txt", f"text/{unfit}", f"https://x.example/{unfit}", 10**30),)
        },
        lambda unfit: {"reply_to": f"m{unfit}"},
        lambda unfit: {"mentions": (MemberRef("test", "bot", f"ann{unfit}"),)},
        lambda unfit: {"to": MemberRef("test", "bot", f"ann{unfit}")},
        lambda unfit: {"to": ChatRef("test", "bot", f"room{unfit}")},
    ],
    ids=["choices", "files", "a quoted message", "mentions", "to a member", "to a chat"],
)
async def test_what_a_function_says_beside_words_may_be_unfit(
    more: Callable[[str], dict[str, Any]], unfit: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    messages = (Message("Here.", **more(unfit)), Message("And here."))
    act = Recorder("act", commands=["act"], gives=FunctionResult(messages=messages), effect="once")
    async with a_group([act.spec], home=tmp_path, settings=settings) as group:
        group.model.says(call("act"), "ok")
        said = await answer(group, "x1")
        assert [one.split("\n")[0] for one in said[-2:]] == ["And here.", "ok"]
