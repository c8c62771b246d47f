"""Questions of MCP servers during a call, asked in the chat."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group
from config.texts import Texts
from tests.harness.mcp_sdk import Played, over_http
from tests.harness.mcp_servers import Script, a_tool, function, is_alive, servers, until, until_true

COLOURS = {"type": "string", "title": "Colour", "enum": ["red", "blue"]}
FORM = {
    "message": "About your car.\u202e",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "colour": COLOURS,
            "doors": {"type": "integer", "minimum": 2, "maximum": 5},
            "used": {"type": "boolean", "title": "Is it used?"},
            "since": {"type": "string", "format": "date", "default": "2020-01-01"},
            "extras": {
                "type": "array",
                "items": {"anyOf": [{"const": "r", "title": "Roof"}, {"const": "h", "title": "Hook"}]},
            },
        },
        "required": ["colour", "doors", "used", "extras"],
    },
}
SHORT = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"colour": COLOURS}}}
PAGE = {"mode": "url", "message": "Pay there.", "url": "https://pay.example.org/1", "elicitationId": "1"}


def asking(folder: Path, *questions: dict[str, Any], **more: Any) -> tuple[Script, dict[str, Any]]:
    """A server of 2025 whose only tool asks these questions, and returns the answers."""
    script = Script(folder, a_tool("go", "ask", list(questions)))
    return script, servers(script.settings(tools={"go": {"commands": ["go"]}}, **more))


async def started(group: Group) -> None:
    await until(group, lambda: function(group, "mcp__one__go"))


async def test_the_fields_of_a_form_are_asked_one_after_the_other_and_invalid_answers_again(tmp_path: Path) -> None:
    _, settings = asking(tmp_path, FORM)
    async with a_group(settings=settings) as group:
        await started(group)
        [first] = await group.say("Ann", "/go")
        assert first.splitlines()[:2] == ["one asks: About your car.", "Colour"]
        assert [choice.label for choice in group.platform.sent[-1].choices] == ["red", "blue", "Decline"]
        assert "doors" in (await group.say("Ann", "blue"))[0]
        [again] = await group.say("Ann", "seven")
        assert again.splitlines()[:2] == ["That does not fit here. Please try again.", "doors"]
        assert (await group.say("Ann", "9"))[0].startswith("That does not fit")
        assert "Is it used?" in (await group.say("Ann", "4"))[0]
        assert "since" in (await group.say("Ann", "yes"))[0]
        assert "Roof, Hook" in (await group.say("Ann", "skip"))[0]
        [answers] = await group.say("Ann", "hook, r")
    content = {"colour": "blue", "doors": 4, "used": True, "since": "2020-01-01", "extras": ["h", "r"]}
    assert json.loads(answers) == [{"action": "accept", "content": content}]


async def test_only_the_member_who_called_answers(tmp_path: Path) -> None:
    _, settings = asking(tmp_path, SHORT)
    async with a_group(settings=settings) as group:
        await started(group)
        await group.say("Ann", "/go")
        assert await group.say("Ben", "red") == []
        assert json.loads((await group.say("Ann", "blue"))[0])[0]["content"] == {"colour": "blue"}


@pytest.mark.parametrize(("word", "action"), [("Decline", "decline"), ("cancel", "cancel")])
async def test_a_member_can_decline_and_cancel(word: str, action: str, tmp_path: Path) -> None:
    _, settings = asking(tmp_path, FORM)
    async with a_group(settings=settings) as group:
        await started(group)
        await group.say("Ann", "/go")
        assert f'"action": "{action}"' in "".join(await group.say("Ann", word))


async def test_a_question_without_an_answer_is_cancelled_in_time(tmp_path: Path) -> None:
    script, settings = asking(tmp_path, FORM, effect="read")
    async with a_group(settings=settings) as group:
        await started(group)
        await group.say("Ann", "/go")
        await group.clock.advance(400)
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        await until_true(lambda: script.asked("answered"))
    assert script.asked("answered") == [{"action": "cancel"}]


async def test_a_page_is_shown_as_a_link_and_only_over_https(tmp_path: Path) -> None:
    _, settings = asking(tmp_path, PAGE, {**PAGE, "url": "http://pay.example.org/1"}, {**PAGE, "url": "file:///a"})
    async with a_group(settings=settings) as group:
        await started(group)
        [asked] = await group.say("Ann", "/go")
        assert "a page of pay.example.org: https://pay.example.org/1" in asked
        [answers] = await group.say("Ann", "done")
    assert [one["action"] for one in json.loads(answers)] == ["accept", "decline", "decline"]


@pytest.mark.parametrize("is_back", [True, False])
async def test_a_call_whose_server_ends_while_it_waits_has_an_unknown_outcome(is_back: bool, tmp_path: Path) -> None:
    script, settings = asking(tmp_path, SHORT)
    async with a_group(settings=settings) as group:
        await started(group)
        await group.say("Ann", "/go")
        [pid] = script.asked("began")
        if not is_back:
            script.write(a_tool("go", "ask", [SHORT]), dies=True)
        os.kill(pid, signal.SIGKILL)
        await until_true(lambda: not is_alive(pid))
        assert await group.say("Ann", "blue") == [Texts().of("en").say("failures.unknown_outcome", name="one: go")]
    assert script.asked("called") == ["go"]


async def test_a_server_that_may_not_ask_is_told_so(tmp_path: Path) -> None:
    script, settings = asking(tmp_path, FORM, elicitation=False)
    async with a_group(settings=settings) as group:
        await started(group)
        assert "not supported" in "".join(await group.say("Ann", "/go"))
    assert "elicitation" not in script.asked("offered")[0]


@pytest.mark.parametrize(("tool", "rounds"), [("form", 1), ("form_twice", 2)])
async def test_a_server_of_the_current_protocol_is_called_again_with_answer_and_state(tool: str, rounds: int) -> None:
    played = Played()
    async with over_http(played) as (url, _):
        entry = {"name": "one", "url": url, "roles": "member", "tools": {tool: {"commands": ["go"]}}}
        async with a_group(settings=servers(entry)) as group:
            await until(group, lambda: function(group, f"mcp__one__{tool}"))
            said = await group.say("Ann", "/go")
            for _ in range(rounds):
                assert "Who are you?" in said[0]
                assert await group.say("Ben", "Ben") == []
                said = await group.say("Ann", "Ann")
    answer = {"who": {"action": "accept", "content": {"name": "Ann"}}}
    assert json.loads(said[0]) == answer
    assert played.answers == [(None, {}), *((f"state {number}", answer) for number in range(1, rounds + 1))]
