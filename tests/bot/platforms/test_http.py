"""The HTTP platform with a real server and a real store."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from pydantic import SecretStr

from bot.platforms.base import Outgoing, SendFailed
from bot.platforms.http.platform import ChatFeed, HttpPlatform, Programs
from function_calls.context import Kind, MessageContext
from function_calls.spec import Choice
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from services.store.port import BadUnit, StoreFull
from services.store.turns.http_events import Event, Viewer
from tests.bot.web_world import BEARER, QUICK, TOKEN, World, a_post, a_world, events_of

MESSAGES = "/api/v1/chats/family/messages"
EVENTS = "/api/v1/chats/family/events"
FAMILY = ChatRef("http", "main", "family")


async def post(world: World, body: Any, *, path: str = MESSAGES, headers: dict[str, str] = BEARER) -> httpx2.Response:
    async with world.client() as client:
        if isinstance(body, bytes):
            return await client.post(path, content=body, headers=headers)
        return await client.post(path, json=body, headers=headers)


async def polled(world: World, query: str = "", path: str = EVENTS) -> dict[str, Any]:
    async with world.client() as client:
        answer = await client.get(f"{path}?wait=0{query}", headers=BEARER)
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


async def until(condition: Callable[[], bool]) -> None:
    """Let the server work until `condition()`, for at most ten seconds; there is no event for it."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_posted_message_is_accepted_after_it_is_durable(tmp_path: Path) -> None:
    async with a_world(tmp_path, answer=None) as world:
        answer = await post(world, a_post("hi there", mentions_bot=True))
        assert (answer.status_code, answer.json()) == (202, {"accepted": True, "duplicate": False})
        (context,) = world.daemon.received
        assert context.chat == FAMILY
        assert context.key.native_id == "m1"
        assert context.sender.ref == MemberRef("http", "main", "u1")
        assert (context.sender.name, context.sender.role) == ("Ann", Role.MEMBER)
        assert (context.text, context.mentions_bot, context.is_group) == ("hi there", True, True)


async def test_a_duplicate_is_answered_as_one_and_not_taken_again(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await post(world, a_post())
        answer = await post(world, a_post())
        assert (answer.status_code, answer.json()) == (202, {"accepted": True, "duplicate": True})
        assert len(world.daemon.received) == 1


async def test_one_message_of_a_chat_is_taken_in_at_a_time_and_other_chats_do_not_wait(tmp_path: Path) -> None:
    begun: list[str] = []
    goes_on = asyncio.Event()

    async def hold(_platform: HttpPlatform, context: MessageContext) -> None:
        begun.append(context.chat.native)
        if context.chat == FAMILY:
            await goes_on.wait()

    async with a_world(tmp_path, answer=hold) as world:
        flood = [asyncio.create_task(post(world, a_post(id=f"m{number}"))) for number in range(20)]
        await until(lambda: bool(begun))
        for number in range(5):
            answer = await post(world, a_post(id=f"w{number}"), path="/api/v1/chats/work/messages")
            assert answer.status_code == 202
        assert begun == ["family"] + ["work"] * 5
        goes_on.set()
        assert [answer.status_code for answer in await asyncio.gather(*flood)] == [202] * 20
        assert begun.count("family") == 20


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"id": "bot:answer"}, "id"),
        ({"id": "a\x00b"}, "id"),
        ({"text": None}, "text"),
        ({"sender": {"name": "Ann"}}, "sender.id"),
        ({"sender": {"id": "u1", "role": "king"}}, "sender.role"),
        ({"mentions_bot": "yes"}, "mentions_bot"),
        ({"mention_bot": True}, "mention_bot"),
        ({"reply_to": ""}, "reply_to"),
        ({"kind": "choice"}, "reply_to"),
    ],
)
async def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    async with a_world(tmp_path) as world:
        answer = await post(world, a_post() | change)
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
        assert field in answer.json()["error"]["message"]
        assert world.daemon.received == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"id":"\xff"}', b'{"id":"a","text":"\\ud800"}'])
async def test_a_body_that_is_no_message_is_a_bad_request(tmp_path: Path, body: bytes) -> None:
    async with a_world(tmp_path) as world:
        assert (await post(world, body)).status_code == 400


@pytest.mark.parametrize("chat", ["%00", "%20", "x" * 101, "a%0Ab"])
async def test_a_chat_needs_a_name_of_ordinary_characters(tmp_path: Path, chat: str) -> None:
    async with a_world(tmp_path) as world:
        answer = await post(world, a_post(), path=f"/api/v1/chats/{chat}/messages")
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "chat")


async def test_too_much_is_refused_as_too_large(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        long_text = await post(world, a_post("x" * 8001))
        assert (long_text.status_code, long_text.json()["error"]["field"]) == (413, "text")
        assert (await post(world, b" " * 70_000)).status_code == 413


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic a-token-for-tests"}]
)
async def test_without_the_token_nothing_is_taken_or_told(tmp_path: Path, headers: dict[str, str]) -> None:
    async with a_world(tmp_path) as world:
        answer = await post(world, a_post(), headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
        async with world.client() as client:
            assert (await client.get(EVENTS, headers=headers)).status_code == 401
        assert world.daemon.received == []


async def test_a_role_is_never_more_than_the_settings_allow(tmp_path: Path) -> None:
    async with a_world(tmp_path, max_role=Role.MODERATOR) as world:
        await post(world, a_post(sender={"id": "u1", "name": "Ann", "role": "owner"}))
        assert world.daemon.received[0].sender.role is Role.MODERATOR
        assert await world.http.role(FAMILY, MemberRef("http", "main", "u1")) is Role.MODERATOR
        assert await world.http.role(FAMILY, MemberRef("http", "main", "stranger")) is None


async def test_a_token_that_was_withdrawn_lets_nobody_in_any_more_and_ends_what_it_let_in(tmp_path: Path) -> None:
    fresh = SecretStr("another-token-of-some-length")
    async with a_world(tmp_path) as world, world.client() as client:
        assert isinstance(world.http.callers, Programs)
        async with client.stream("GET", EVENTS, headers=BEARER) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "retry: 1000"
            polling = asyncio.create_task(client.get(f"{EVENTS}?wait=30", headers=BEARER))
            await until(lambda: world.http.feed.listening == 2)
            assert world.http.callers.use(fresh, Role.MEMBER)
            world.http.feed.listeners.dismiss_all()
            await post_to_all(world)
            assert [line async for line in lines if line] == []
            assert (await polling).status_code == 401
        assert (await post(world, a_post())).status_code == 401
        bearer = {"authorization": f"Bearer {fresh.get_secret_value()}"}
        assert (await post(world, a_post(), headers=bearer)).status_code == 202
        assert world.http.callers.use(None, Role.MEMBER)
        for headers in (BEARER, bearer, {"authorization": "Bearer x"}):
            assert (await post(world, a_post(), headers=headers)).status_code == 401


async def post_to_all(world: World) -> None:
    """Send a message of the bot, which a removed member must not see."""
    await world.http.send(Outgoing(FAMILY, "late", "Not for you any more."))


async def test_a_role_that_was_lowered_counts_for_whoever_had_it(tmp_path: Path) -> None:
    async with a_world(tmp_path, max_role=Role.OWNER) as world:
        await post(world, a_post(sender={"id": "u1", "name": "Ann", "role": "owner"}))
        ann = MemberRef("http", "main", "u1")
        assert await world.http.role(FAMILY, ann) is Role.OWNER
        assert isinstance(world.http.callers, Programs)
        assert not world.http.callers.use(SecretStr(TOKEN), Role.MODERATOR)
        assert await world.http.role(FAMILY, ann) is Role.MODERATOR
        await post(world, a_post(id="m2", sender={"id": "u1", "name": "Ann", "role": "owner"}))
        assert world.daemon.received[-1].sender.role is Role.MODERATOR


async def test_a_full_store_is_told_with_a_time_to_come_back(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        world.daemon.fails_with = StoreFull("disk full")
        answer = await post(world, a_post())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        world.daemon.fails_with = BadUnit("no")
        assert (await post(world, a_post())).status_code == 400
        world.daemon.fails_with = None
        assert (await post(world, a_post())).json() == {"accepted": True, "duplicate": False}


async def test_what_the_bot_sends_comes_as_events_with_cursors(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await post(world, a_post("hi", mentions_bot=True))
        told = await polled(world)
        (event,) = told["events"]
        assert (event["type"], event["text"], event["reply_to"]) == ("message", "You said: hi", "m1")
        assert event["mentions"] == ["u1"]
        assert told["cursor"] == event["cursor"]
        assert (await polled(world, f"&after={told['cursor']}"))["events"] == []


async def test_a_stream_tells_what_comes_and_begins_after_the_cursor(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        await world.http.send(Outgoing(FAMILY, "one", "first"))
        first = (await polled(world))["events"][0]
        async with client.stream("GET", f"{EVENTS}?after={first['cursor']}", headers=BEARER) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = events_of(response)
            await world.http.send(Outgoing(FAMILY, "two", "second"))
            await world.http.send(Outgoing(ChatRef("http", "main", "other"), "x", "elsewhere"))
            await world.http.send(Outgoing(FAMILY, "three", "third"))
            second, third = await anext(events), await anext(events)
            assert [second["text"], third["text"]] == ["second", "third"]
            assert second["stream_id"] == second["cursor"]
        resumed = BEARER | {"last-event-id": second["cursor"]}
        async with client.stream("GET", f"{EVENTS}?after=0", headers=resumed) as response:
            assert (await anext(events_of(response)))["text"] == "third"


async def test_a_second_send_with_the_same_key_is_one_event(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        first = await world.http.send(Outgoing(FAMILY, "k", "once"))
        second = await world.http.send(Outgoing(FAMILY, "k", "once"))
        assert first == second
        assert [event["text"] for event in (await polled(world))["events"]] == ["once"]
        assert world.http.limits.sends_are_idempotent


async def test_a_status_is_told_while_it_lasts_and_never_stored(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        async with client.stream("GET", EVENTS, headers=BEARER) as response:
            events = events_of(response)
            await world.http.typing(FAMILY, "looking up the weather")
            assert await anext(events) == {"cursor": None, "type": "status", "text": "looking up the weather"}
            await world.http.typing(FAMILY, "")
            assert (await anext(events))["text"] == ""
        assert (await polled(world))["events"] == []


async def test_a_silent_stream_has_heartbeats(tmp_path: Path) -> None:
    async with (
        a_world(tmp_path) as world,
        world.client() as client,
        client.stream("GET", EVENTS, headers=BEARER) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith(":"):
                break
        assert line == ": still here"


async def test_a_long_poll_returns_as_soon_as_there_is_an_event(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        waiting = asyncio.create_task(client.get(f"{EVENTS}?wait=30", headers=BEARER))
        await until(lambda: world.http.feed.listening == 1)
        await world.http.send(Outgoing(FAMILY, "k", "here"))
        assert (await waiting).json()["events"][0]["text"] == "here"


@pytest.mark.parametrize("query", ["after=x", "after=-1", "after=99999999999999999999", "last=0", "wait=61", "wait=x"])
async def test_a_wrong_query_is_a_bad_request(tmp_path: Path, query: str) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        answer = await client.get(f"{EVENTS}?{query}", headers=BEARER)
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, query.partition("=")[0])


async def test_only_the_newest_events_of_a_chat_are_kept(tmp_path: Path) -> None:
    async with a_world(tmp_path, keep_events=10) as world:
        for number in range(129):
            await world.http.send(Outgoing(FAMILY, f"k{number}", str(number)))
        texts = [event["text"] for event in (await polled(world))["events"]]
        assert texts == [str(number) for number in range(119, 129)]
        newest = await polled(world, "&last=3")
        assert [event["text"] for event in newest["events"]] == ["126", "127", "128"]


async def test_a_poll_that_is_full_says_that_there_is_more(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        for number in range(150):
            await world.http.send(Outgoing(FAMILY, f"k{number}", str(number)))
        first = await polled(world)
        rest = await polled(world, f"&after={first['cursor']}")
        assert (len(first["events"]), first["more"], len(rest["events"]), rest["more"]) == (100, True, 50, False)


async def test_a_reply_to_the_bot_bears_what_the_bot_said(tmp_path: Path) -> None:
    async with a_world(tmp_path, answer=None) as world:
        receipt = await world.http.send(Outgoing(FAMILY, "k", "Tea or coffee?"))
        await post(world, a_post("tea", reply_to=receipt.native_id))
        quoted = world.daemon.received[0].reply_to
        assert quoted is not None
        assert (quoted.native_id, quoted.text, quoted.from_bot) == (receipt.native_id, "Tea or coffee?", True)


async def test_a_reply_to_an_unknown_message_keeps_its_id(tmp_path: Path) -> None:
    async with a_world(tmp_path, answer=None) as world:
        await post(world, a_post("tea", reply_to="$event:server"))
        quoted = world.daemon.received[0].reply_to
        assert quoted is not None
        assert (quoted.native_id, quoted.text, quoted.from_bot) == ("$event:server", "", False)


async def test_a_choice_is_one_of_those_that_were_offered(tmp_path: Path) -> None:
    async with a_world(tmp_path, answer=None) as world:
        receipt = await world.http.send(Outgoing(FAMILY, "k", "Which?", choices=(Choice("Tea", "tea"),)))
        press = {"kind": "choice", "reply_to": receipt.native_id}
        assert (await post(world, a_post("tea", **press))).status_code == 202
        assert world.daemon.received[0].kind is Kind.CHOICE
        assert world.daemon.received[0].text == "tea"
        assert (await post(world, a_post("beer", id="m2", **press))).json()["error"]["field"] == "text"
        missing = await post(world, a_post("tea", id="m3", kind="choice", reply_to="bot:none"))
        assert missing.json()["error"]["field"] == "reply_to"


async def test_nobody_can_choose_or_quote_what_was_said_to_another_in_private(tmp_path: Path) -> None:
    async with a_world(tmp_path, answer=None) as world:
        ben = MemberRef("http", "main", "ben")
        choices = (Choice("Yes", "yes"),)
        receipt = await world.http.send(Outgoing(FAMILY, "k", "Sure?", choices=choices, private_to=ben))
        answer = await post(world, a_post("yes", kind="choice", reply_to=receipt.native_id))
        assert answer.status_code == 400
        await post(world, a_post("what?", id="m2", reply_to=receipt.native_id))
        quoted = world.daemon.received[0].reply_to
        assert quoted is not None
        assert quoted.text == ""


async def test_a_dm_is_no_group_and_a_program_sees_what_is_private(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await post(world, a_post("tell me a secret"), path="/api/v1/chats/dm-u1/messages")
        assert not world.daemon.received[0].is_group
        (event,) = (await polled(world, path="/api/v1/chats/dm-u1/events"))["events"]
        assert (event["text"], event["private_to"]) == ("Only for you.", "u1")


async def test_texts_are_cleaned_and_the_mention_is_stripped(tmp_path: Path) -> None:
    async with a_world(tmp_path, answer=None) as world:
        await post(world, a_post("@rollcall\x00 cafe\u0301\r\nnow", sender={"id": "u1", "name": " A\u202en\nn "}))
        (context,) = world.daemon.received
        assert (context.text, context.mentions_bot, context.sender.name) == ("caf\u00e9\nnow", True, "An n")


async def test_a_platform_that_does_not_run_yet_takes_nothing(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        running = asyncio.create_task(world.http.run(world.daemon.deliver))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        answer = await post(world, a_post())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")


async def test_a_send_that_the_store_refuses_fails_as_a_platform_does(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        with pytest.raises(SendFailed) as bad:
            await world.http.send(Outgoing(FAMILY, "k", "x", private_to=MemberRef("http", "main", "\ud800")))
        assert not bad.value.retryable


async def test_more_streams_than_allowed_are_told_to_come_back(tmp_path: Path) -> None:
    limits = type(QUICK)(streams=1, poll_seconds=0.05)
    async with a_world(tmp_path, limits=limits) as world, world.client() as client:
        async with client.stream("GET", EVENTS, headers=BEARER) as response:
            await anext(response.aiter_lines())
            await until(lambda: world.http.feed.listening == 1)
            assert (await client.get(EVENTS, headers=BEARER)).status_code == 503
        await until(lambda: world.http.feed.listening == 0)
        assert (await polled(world))["events"] == []


async def test_a_client_that_reads_nothing_is_cut_off_and_bounded(tmp_path: Path) -> None:
    limits = type(QUICK)(poll_seconds=0.05, stalled_seconds=0.2)
    async with a_world(tmp_path, limits=limits) as world:
        for number in range(900):
            await world.http.send(Outgoing(FAMILY, f"k{number}", "x" * 8000))
        _, writer = await asyncio.open_connection("127.0.0.1", int(world.base.rpartition(":")[2]), limit=1)
        request = f"GET {EVENTS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {BEARER['authorization']}\r\n\r\n"
        writer.write(request.encode())
        await until(lambda: world.http.feed.listening == 1)
        await until(lambda: world.http.feed.listening == 0)
        writer.close()


async def test_no_reader_jumps_over_an_event_that_is_still_being_committed(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        with world.http.feed.taking("family"):
            await world.http.send(Outgoing(FAMILY, "later", "later"))
            assert (await polled(world))["events"] == []
        assert [event["text"] for event in (await polled(world))["events"]] == ["later"]


async def test_no_reader_of_another_process_jumps_over_an_event_that_is_committed_within_two_seconds(
    tmp_path: Path,
) -> None:
    async with a_world(tmp_path) as world:
        clock = VirtualClock(datetime.now(UTC))
        elsewhere = ChatFeed("http", "main", world.store, Ids(clock, 2))

        async def read() -> list[int]:
            return [event.id for event in await elsewhere.after("family", 0, 10, Viewer("", sees_all=True))]

        with world.http.feed.taking("family") as earlier:
            await world.http.send(Outgoing(FAMILY, "later", "later"))
            assert await read() == []
            await world.store.commit(world.http.feed.writes("family", "m1", Event(earlier, "{}")))
        await clock.advance(5)
        ids = await read()
        assert (len(ids), ids[0]) == (2, earlier)


async def test_ten_thousand_posts_leave_memory_flat(tmp_path: Path) -> None:
    async with a_world(tmp_path, answer=None) as world:
        world.daemon.keep_received = False
        port = int(world.base.rpartition(":")[2])
        await asyncio.gather(*(_post_each(port, range(start, 6000, 8)) for start in range(8)))
        gc.collect()
        before = _resident_bytes()
        await asyncio.gather(*(_post_each(port, range(6000 + start, 10_000, 8)) for start in range(8)))
        gc.collect()
        assert _resident_bytes() - before < 1_200_000


async def _post_each(port: int, numbers: range) -> None:
    """Post ten thousand messages over one connection, with few operations each."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in numbers:
        body = orjson.dumps(a_post("x" * 500, id=f"m{number}", sender={"id": f"u{number:0>190}", "name": "Ann"}))
        writer.write(
            f"POST /api/v1/chats/room{number % 500}/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 202")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
    writer.close()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
