"""Voice messages heard and answered, and pictures drawn, over servers with the answers of a provider."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from services.refs import ChatRef
from tests.fakes.files import FileNetwork, png, wav
from tests.fakes.openai_server import OpenAIServer

HEARD = {"body": {"text": "What time is the rehearsal?", "usage": {"type": "duration", "seconds": 1}}}
BROKEN = {"status": 500, "body": {"error": {"message": "sk-secret is broken", "code": "server_error"}}}
DRAWN = {"body": {"created": 1, "data": [{"b64_json": base64.b64encode(png(8, 8)).decode()}]}}
DECLINED = {"status": 400, "body": {"error": {"message": "no", "code": "content_policy_violation"}}}
PRIVATE: dict[str, Any] = {"chat": ChatRef("test", "bot", "ann"), "is_group": False}
SPEAKS = {"chats": {"allow": ["*"], "settings": {"*": {"voice_answers": True}}}}


@asynccontextmanager
async def a_hearing_group(
    *answers: dict[str, Any], media: dict[str, Any] | None = None, more: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[Group, FileNetwork, OpenAIServer]]:
    """A group whose models that hear, speak and draw have these answers, in order."""
    async with OpenAIServer(answers) as server:
        model = {"model": "m-1", "base_url": server.base_url, "api_key": "sk-secret"}
        lists = {key: [{"name": key, **model}] for key in ("hearing", "speaking", "drawing")}
        settings = {"media": {**lists, **(media or {})}}
        network = options.pop("platform", None) or FileNetwork()
        async with a_group(settings={**settings, **(more or {})}, platform=network, **options) as group:
            yield group, network, server


def voice(network: FileNetwork, seconds: float = 0.1) -> Any:
    return (network.file("voice.ogg", "audio/ogg", wav(seconds)),)


async def test_a_voice_message_in_private_is_the_members_text() -> None:
    async with a_hearing_group(HEARD) as (group, network, server):
        group.model.says("At eight.")
        assert await group.say("Ann", "", attachments=voice(network), **PRIVATE) == ["At eight."]
        assert group.model.requests[0].messages[-1].content.endswith("What time is the rehearsal?")
        (asked,) = server.requests
        assert asked.path == "/v1/audio/transcriptions"
        assert asked.headers["authorization"] == "Bearer sk-secret"
        assert wav() in asked.body
        assert b'name="model"\r\n\r\nm-1' in asked.body
        group.model.says("Yes.")
        await group.say("Ann", "Are you sure?", **PRIVATE)
        assert "Ann: What time is the rehearsal?" in "\n".join(one.content for one in group.model.requests[1].messages)


@pytest.mark.parametrize(
    ("text", "facts", "requests"), [("", {"reply_to_bot": True}, 1), ("@Rollcall", {}, 1), ("", {}, 0), ("@Bob", {}, 0)]
)
async def test_a_voice_message_in_a_group_is_heard_if_it_is_for_the_bot(
    text: str, facts: dict[str, Any], requests: int
) -> None:
    async with a_hearing_group(HEARD) as (group, network, server):
        group.model.says("At eight.")
        said = await group.say("Ann", text, attachments=voice(network), **facts)
        assert len(server.requests) == requests
        assert said == ["At eight."] * requests


@pytest.mark.parametrize(
    ("words", "answers"),
    [("Rollcall, what time is it?", ["Noon."]), ("See you all tomorrow!", []), ("", [])],
)
async def test_a_voice_message_that_names_the_bot_is_answered_if_configured(words: str, answers: list[str]) -> None:
    async with a_hearing_group({"body": {"text": words}}, media={"heard_by_name": True}) as (group, network, server):
        group.model.says("Noon.")
        assert await group.say("Ann", "", id="v1", attachments=voice(network)) == answers
        assert len(server.requests) == 1
        assert len(group.model.requests) == len(answers)


async def test_what_was_heard_without_a_name_is_in_the_history() -> None:
    async with a_hearing_group({"body": {"text": "See you all tomorrow!"}}, media={"heard_by_name": True}) as parts:
        group, network, _ = parts
        await group.say("Ann", "", attachments=voice(network))
        group.model.says("She goes home.")
        await group.say("Bob", "@Rollcall what did Ann say?")
        assert "Ann: See you all tomorrow!" in "\n".join(one.content for one in group.model.requests[0].messages)


async def test_what_was_heard_is_shown_if_configured() -> None:
    async with a_hearing_group(HEARD, media={"show_heard": True}) as (group, network, _):
        group.model.says("At eight.")
        said = await group.say("Ann", "", attachments=voice(network), **PRIVATE)
        assert "\n".join(said).startswith("Heard: “What time is the rehearsal?”")
        assert said[-1].endswith("At eight.")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([BROKEN], "I couldn't understand your voice message right now."),
        ([{"body": {"text": " "}}], "I couldn't hear any words"),
        ([{"body": "no JSON"}], "I couldn't understand your voice message right now."),
    ],
)
async def test_a_failure_to_hear_is_a_clear_sentence(answers: Sequence[dict[str, Any]], words: str) -> None:
    async with a_hearing_group(*answers) as (group, network, _):
        said = "\n".join(await group.say("Ann", "", attachments=voice(network), **PRIVATE))
        assert words in said
        assert "sk-secret" not in said
        assert group.model.requests == []


async def test_a_voice_message_that_is_too_large_is_refused() -> None:
    async with a_hearing_group(HEARD, media={"voice_bytes": 1000}) as (group, network, server):
        said = await group.say("Ann", "", attachments=voice(network, 5.0), **PRIVATE)
        assert "0.001 MB" in "\n".join(said)
        assert server.requests == []


async def test_the_next_model_hears_if_the_first_fails() -> None:
    async with OpenAIServer([HEARD]) as other:
        second = {"name": "second", "model": "m-2", "base_url": other.base_url}
        async with OpenAIServer([BROKEN]) as first:
            hearing = [{"name": "first", "model": "m-1", "base_url": first.base_url}, second]
            network = FileNetwork()
            async with a_group(settings={"media": {"hearing": hearing}}, platform=network) as group:
                group.model.says("At eight.")
                assert await group.say("Ann", "", attachments=voice(network), **PRIVATE) == ["At eight."]


async def test_hearing_blocks_no_other_chat() -> None:
    work = ChatRef("test", "bot", "work")
    async with a_hearing_group({**HEARD, "delay_seconds": 3600}) as (group, network, _):
        await group.hear("Ann", "", attachments=voice(network), **PRIVATE)
        async with asyncio.timeout(60):
            await group.hear("Bob", "/roll 1d1", chat=work)
            while not network.sent:
                await group.clock.advance(0.1)
        assert network.sent[0].chat == work
        await group.hear("Ann", "/stop", **PRIVATE)
        await group.settle()
        assert len(network.sent) == 2


async def test_a_voice_message_is_heard_once_across_a_crash(tmp_path: Path) -> None:
    network = FileNetwork()
    waits = asyncio.Event()

    class Silent:
        name = "silent"

        async def complete(self, request: Any) -> Any:
            waits.set()
            return await asyncio.get_running_loop().create_future()

        async def probe(self) -> str:
            return "silent"

        async def close(self) -> None:
            return None

    async with a_hearing_group(HEARD, platform=network, home=tmp_path, model=Silent()) as (group, _, _):
        await group.hear("Ann", "", attachments=voice(network), **PRIVATE)
        async with asyncio.timeout(60):
            await waits.wait()
        await group.crash()
    async with a_hearing_group(platform=network, home=tmp_path) as (again, _, server):
        again.model.says("At eight.")
        await again.settle()
        assert server.requests == []
        assert "rehearsal" in again.model.requests[0].messages[-1].content
        assert [one.text for one in network.sent][-1] == "At eight."


async def test_hearing_counts_towards_the_budget() -> None:
    budget = {"budgets": {"member": {"requests": 1}}}
    async with a_hearing_group(HEARD, HEARD, more=budget) as (group, network, server):
        said = [await group.say("Ann", "", attachments=voice(network), **PRIVATE) for _ in range(2)]
        assert len(server.requests) == 1
        assert group.model.requests == []
        assert "\n".join(said[0])


@pytest.mark.parametrize(("form", "media_type"), [("opus", "audio/ogg"), ("mp3", "audio/mpeg")])
async def test_an_answer_is_read_aloud_where_the_chat_wants_it(form: str, media_type: str) -> None:
    async with OpenAIServer([HEARD, {"body": b"sound", "headers": {"content-type": media_type}}]) as server:
        model = {"name": "m", "model": "m-1", "base_url": server.base_url}
        media = {"hearing": [model], "speaking": [{**model, "name": "v", "voice": "coral", "format": form}]}
        network = FileNetwork()
        async with a_group(settings={"media": media, **SPEAKS}, platform=network) as group:
            group.model.says("At eight.", "Hello.")
            await group.say("Ann", "", attachments=voice(network), **PRIVATE)
            (file,) = network.sent[-1].attachments
            assert network.sent[-1].text == "At eight."
            assert (file.media_type, file.url) == (media_type, f"data:{media_type};base64,c291bmQ=")
            asked = server.requests[1]
            assert asked.path == "/v1/audio/speech"
            assert asked.json == {"model": "m-1", "voice": "coral", "input": "At eight.", "response_format": form}
            await group.say("Ann", "and in writing?", **PRIVATE)
            assert network.sent[-1].attachments == ()


async def test_an_answer_that_cannot_be_read_aloud_is_sent_as_text() -> None:
    async with a_hearing_group(HEARD, BROKEN, more=SPEAKS) as (group, network, _):
        group.model.says("At eight.")
        assert await group.say("Ann", "", attachments=voice(network), **PRIVATE) == ["At eight."]
        assert network.sent[-1].attachments == ()


async def test_a_drawn_picture_is_sent_to_the_chat() -> None:
    async with a_hearing_group(DRAWN) as (group, network, server):
        assert await group.say("Ann", "/draw a cat") == ["🎨 a cat"]
        (file,) = network.sent[-1].attachments
        assert file.url == f"data:image/png;base64,{base64.b64encode(png(8, 8)).decode()}"
        assert server.requests[0].path == "/v1/images/generations"
        assert server.requests[0].json == {"model": "m-1", "prompt": "a cat", "n": 1}


async def test_a_model_draws_and_its_prompt_never_has_the_picture() -> None:
    async with a_hearing_group(DRAWN) as (group, network, _):
        group.model.says(call("draw", picture="a cat on the moon"), "Here.")
        await group.say("Ann", "@Rollcall draw a cat on the moon")
        assert any(one.attachments for one in network.sent)
        data = base64.b64encode(png(8, 8)).decode()
        assert all(data not in one.content for request in group.model.requests for one in request.messages)


async def test_a_picture_at_a_url_of_the_provider_is_downloaded() -> None:
    async with OpenAIServer([]) as server:
        url = f"{server.base_url}/files/1.png"
        server.script += [{"body": {"created": 1, "data": [{"url": url}]}}, {"body": png(8, 8)}]
        media = {"drawing": [{"name": "m", "model": "m-1", "base_url": server.base_url}]}
        network = FileNetwork()
        async with a_group(settings={"media": media}, platform=network) as group:
            await group.say("Ann", "/画 一只猫")
            assert len(network.sent[-1].attachments) == 1
            assert [one.path for one in server.requests] == ["/v1/images/generations", "/v1/files/1.png"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (BROKEN, "I couldn't draw this right now."),
        (DECLINED, "declined to draw this"),
        ({"body": {"created": 1, "data": []}}, "I couldn't draw this right now."),
        ({"body": {"created": 1, "data": [{"b64_json": "bm8="}]}}, "I couldn't draw this right now."),
        ({"body": {"created": 1, "data": [{"url": "http://127.0.0.1:1/x.png"}]}}, "I couldn't draw this right now."),
    ],
)
async def test_a_failure_to_draw_is_a_clear_sentence(answer: dict[str, Any], words: str) -> None:
    async with a_hearing_group(answer) as (group, _, _):
        said = "\n".join(await group.say("Ann", "/draw a cat"))
        assert words in said
        assert "secret" not in said


async def test_drawing_has_a_budget() -> None:
    budget = {"budgets": {"member": {"units": 1}, "functions": {"draw": 1}}}
    async with a_hearing_group(DRAWN, DRAWN, more=budget) as (group, network, server):
        await group.say("Ann", "/draw a cat")
        await group.say("Ann", "/draw a dog")
        assert len(server.requests) == 1
        assert sum(bool(one.attachments) for one in network.sent) == 1


async def test_nothing_is_drawn_or_heard_without_a_model() -> None:
    network = FileNetwork()
    async with a_group(platform=network) as group:
        assert "I can't draw yet" in "\n".join(await group.say("Ann", "/draw a cat"))
        await group.say("Ann", "", attachments=voice(network))
        assert network.reads == []
