"""The bot's MCP server, with the official client over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from mcp import Client, MCPError
from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink

from bot.mcp.server import SESSION_SHARE, McpServer
from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.spec import Choice, FunctionResult, Message, Prompt, ToolError
from services.refs import ChatRef, ErrorCode, MemberRef
from services.store.port import Store, StoreError, Write
from services.store.turns import ledger
from tests.fakes.functions import CITY, Recorder
from tests.fakes.sources import Written
from tests.harness.mcp_programs import ERAS, LEGACY, MODERN, Programs, code, programs, texts

OSLO = {"city": "Oslo"}
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "mcp" / "tools.json"
PIXEL = "data:image/png;base64,iVBORw0KGgo="
OTHERS = ChatRef("test", "bot", "others")


def logged(served: Programs) -> list[Any]:
    """The call log: function, path, member, chat and outcome of each line."""
    for log in served.group.daemon.logs:
        log.flush()
    path = served.settings.logging.folder / "function_calls.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(one["function"], one["path"], one["member"], one["chat"], one["outcome"]) for one in lines]


@pytest.mark.requirement("B9", "B10")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_program_finds_a_function_and_calls_it(mode: str) -> None:
    tides = Recorder("tides", CITY, description="Tides of a place", gives="4 metres")
    async with programs([tides.spec]) as served, served.client(mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("tides", OSLO)
    assert tools["tides"].description == "Tides of a place"
    assert tools["tides"].input_schema["required"] == ["city"]
    assert (result.is_error, texts(result)) == (False, ["4 metres"])
    assert tides.runs == [OSLO]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_server_says_who_it_is_and_that_only_its_tools_change(mode: str) -> None:
    async with programs() as served, served.client(mode=mode) as client:
        has = client.server_capabilities.model_dump(exclude_none=True)
        about = client.instructions
    assert has == {"tools": {"list_changed": True}, "resources": {}, "prompts": {}, "logging": {}}
    assert about is not None
    assert about.startswith("Functions of Rollcall, a bot for group chats")


async def test_a_run_is_on_the_ledger_and_in_the_call_log_like_any_other() -> None:
    act = Recorder("act", CITY, effect="once")
    async with programs([act.spec]) as served:
        await served.call("act", OSLO)
        turn = act.contexts[0]
        [row] = await served.group.daemon.store.read(ledger.of_turn(int(act.calls[0].key.split(":")[0])))
        calls = logged(served)
    assert (row["function"], row["code"]) == ("act", "ok")
    assert (turn.chat.key, turn.sender.ref.key, turn.is_group) == ("mcp:main:editor", "mcp:main:editor", False)
    assert calls == [("act", "mcp", "mcp:main:editor", "mcp:main:editor", "ok")]


@pytest.mark.requirement("B1", "B32", "A27")
async def test_a_list_of_tools_is_as_its_golden_file_shows() -> None:
    shown = {"calculate", "todo_add", "weather", "reminder_create"}
    async with programs() as served, served.client() as client:
        tools = [tool for tool in (await client.list_tools()).tools if tool.name in shown]
    listed = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
    assert listed == json.loads(GOLDEN.read_text(encoding="utf-8"))


async def test_many_tools_come_in_pages() -> None:
    many = [Recorder(f"act_{number}").spec for number in range(230)]
    clients = [{"name": "editor", "functions": [one.name for one in many]}]
    async with programs(many, clients) as served, served.client() as client:
        first = await client.list_tools()
        second = await client.list_tools(cursor=first.next_cursor)
        third = await client.list_tools(cursor=second.next_cursor)
        with pytest.raises(MCPError, match="from the beginning"):
            await client.list_tools(cursor="nobody")
    names = [tool.name for page in (first, second, third) for tool in page.tools]
    assert names == [one.name for one in many]
    assert third.next_cursor is None


async def test_a_name_that_programs_may_not_use_is_offered_as_another_and_both_can_be_called() -> None:
    act = Recorder("wetter.köln")
    async with programs([act.spec]) as served, served.client() as client:
        [name] = [tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("wetter")]
        results = [await client.call_tool(one) for one in (name, "wetter.köln")]
    assert name == "wetter_k_ln"
    assert [texts(result) for result in results] == [["done"], ["done"]]


SETTINGS_THAT_REFUSE: list[Any] = [
    pytest.param({"roles": "admin"}, {}, "refused", id="role"),
    pytest.param({"offered_to": ["command", "model"]}, {}, "refused", id="way"),
    pytest.param({"scope": "group"}, {}, "refused", id="scope"),
    pytest.param({}, {"functions": {"act": {"enabled": False}}}, "refused", id="switched off"),
    pytest.param(
        {},
        {"chats": {"allow": ["*"], "settings": {"mcp:*": {"functions": {"act": {"enabled": False}}}}}},
        "refused",
        id="switched off in the chats of programs",
    ),
]


@pytest.mark.requirement("A27")
@pytest.mark.parametrize(("options", "settings", "why"), SETTINGS_THAT_REFUSE)
async def test_what_may_not_be_called_is_not_listed_and_refused_as_for_a_command(
    options: dict[str, Any], settings: dict[str, Any], why: str
) -> None:
    act = Recorder("act", CITY, effect="once", **options)
    async with programs([act.spec], settings=settings) as served, served.client() as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("act", OSLO)
        calls = logged(served)
    assert ("act" in listed, act.runs) == (False, [])
    assert (result.is_error, code(result)) == (True, why)
    assert [(function, path, outcome) for function, path, _, _, outcome in calls] == [("act", "mcp", "refused")]


@pytest.mark.parametrize(
    ("arguments", "why", "named"),
    [({}, "missing_arguments", "city"), ({"city": 5}, "bad_arguments", "city")],
)
async def test_wrong_arguments_are_an_error_that_names_them(arguments: dict[str, Any], why: str, named: str) -> None:
    act = Recorder("act", CITY)
    async with programs([act.spec]) as served:
        result = await served.call("act", arguments)
        calls = logged(served)
    assert (result.is_error, code(result), act.runs) == (True, why, [])
    assert texts(result)[0].endswith(f"[{why}: {named}]")
    assert [outcome for *_, outcome in calls] == [why]


async def test_an_unknown_tool_is_an_error_of_the_protocol() -> None:
    async with programs() as served, served.client() as client:
        with pytest.raises(MCPError, match="Unknown tool: nothing") as raised:
            await client.call_tool("nothing")
    assert raised.value.code == -32602


async def test_a_share_of_the_day_counts_for_a_program_too() -> None:
    act = Recorder("act", effect="once")
    budgets = {"budgets": {"member": {"units": 1}, "functions": {"act": 1}}}
    async with programs([act.spec], settings=budgets) as served, served.client() as client:
        results = [await client.call_tool("act") for _ in range(2)]
    assert [code(result) for result in results] == ["", "refused"]
    assert len(act.runs) == 1


@pytest.mark.parametrize(
    ("options", "settings", "why"),
    [
        ({"confirm": "Really {city}?"}, {}, "Really Oslo?"),
        (
            {},
            {"approvals": {"required": [{"functions": ["act"], "by": "admin"}]}},
            "needs approval from admins and above",
        ),
    ],
    ids=["a yes", "an approval"],
)
async def test_what_a_person_has_to_allow_is_not_done_and_says_so(
    options: dict[str, Any], settings: dict[str, Any], why: str
) -> None:
    act = Recorder("act", CITY, effect="once", **options)
    async with programs([act.spec], [{"name": "editor", "chat": "test:bot:family"}], settings) as served:
        result = await served.call("act", OSLO)
        await served.group.settle()
        sent = list(served.group.platform.sent)
    assert (result.is_error, code(result), act.runs, sent) == (True, "asked", [], [])
    assert texts(result)[0].startswith("A person has to answer first")
    assert why in texts(result)[0]


async def test_where_nobody_could_allow_it_it_is_refused() -> None:
    act = Recorder("act", effect="once")
    rule = {"approvals": {"required": [{"functions": ["act"], "by": "admin"}]}}
    async with programs([act.spec], settings=rule) as served:
        result = await served.call("act")
    assert (code(result), act.runs) == ("refused", [])


async def test_a_failure_says_nothing_of_strangers() -> None:
    broken = Recorder("broken", gives=RuntimeError("password hunter2"))
    meant = Recorder("meant", gives=ToolError("No such city.", ErrorCode.NOT_FOUND))
    async with programs([broken.spec, meant.spec]) as served, served.client() as client:
        results = [await client.call_tool(name) for name in ("broken", "meant")]
    assert [code(result) for result in results] == ["failed", "not_found"]
    assert "hunter2" not in str(results[0])
    assert texts(results[1]) == ["No such city.\n[not_found]"]


@pytest.mark.parametrize("mode", ERAS)
async def test_data_of_a_declared_type_is_structured_and_any_data_is_text(mode: str) -> None:
    schema = {"type": "object", "properties": {"low": {"type": "integer"}}, "required": ["low"]}
    typed = replace(
        Recorder("typed", gives=FunctionResult.say("4", data={"low": 4})).spec, prompt=Prompt(result_schema=schema)
    )
    plain = Recorder("plain", gives=FunctionResult(data=[1, "two"])).spec
    async with programs([typed, plain]) as served, served.client(mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        results = [await client.call_tool(name) for name in ("typed", "plain")]
    assert (tools["typed"].output_schema, tools["plain"].output_schema) == (schema, None)
    assert [result.structured_content for result in results] == [{"low": 4}, None]
    assert [texts(result) for result in results] == [["4", '{"low":4}'], ['[1,"two"]']]


async def test_data_that_is_not_as_declared_is_not_passed_off_as_such() -> None:
    schema = {"type": "object", "properties": {"low": {"type": "integer"}}, "required": ["low"]}
    gives = FunctionResult.say("cold", data={"low": "four"})
    typed = replace(Recorder("typed", gives=gives).spec, prompt=Prompt(result_schema=schema))
    async with programs([typed]) as served, served.http() as http:
        answer = await http.post("/mcp", json=call_of("typed"), headers=headers_of("typed"))
    result = result_in(answer.text)
    assert "structuredContent" not in result
    assert [block["text"] for block in result["content"]] == ["cold", '{"low":"four"}']


async def test_files_are_links_and_what_an_address_holds_itself_is_there() -> None:
    files = (
        Attachment("map.pdf", "application/pdf", "https://maps.example/oslo.pdf", 12),
        Attachment("dot.png", "image/png", PIXEL),
        Attachment("tone.wav", "audio/wav", "data:audio/wav;base64,UklGRg=="),
        Attachment("note.txt", "text/plain", "data:text/plain,hello%20there"),
        Attachment("blob.bin", "application/x", "data:application/x;base64,AAE="),
        Attachment("broken.png", "image/png", "data:image/png;base64,!!"),
    )
    act = Recorder("act", gives=FunctionResult(messages=(Message("here", attachments=files),)))
    async with programs([act.spec]) as served:
        result = await served.call("act")
    text, link, image, sound, note, blob, broken = result.content
    assert texts(result) == ["here", "broken.png"]
    assert isinstance(link, ResourceLink)
    assert (link.uri, link.name, link.mime_type, link.size) == (files[0].url, "map.pdf", "application/pdf", 12)
    assert isinstance(image, ImageContent)
    assert (image.data, image.mime_type) == ("iVBORw0KGgo=", "image/png")
    assert isinstance(sound, AudioContent)
    assert isinstance(note, EmbeddedResource)
    assert note.resource.model_dump()["text"] == "hello there"
    assert isinstance(blob, EmbeddedResource)
    assert blob.resource.model_dump()["blob"] == "AAE="
    assert (text, broken) == (result.content[0], result.content[-1])


async def test_choices_are_words_and_silence_is_told() -> None:
    asks = Recorder(
        "asks", gives=FunctionResult(messages=(Message("Which?", choices=(Choice("A", "a"), Choice("B", "b"))),))
    )
    silent = Recorder("silent", gives=FunctionResult())
    helpless = Recorder("helpless", gives=FunctionResult(handled=False))
    async with programs([asks.spec, silent.spec, helpless.spec]) as served, served.client() as client:
        results = [await client.call_tool(name) for name in ("asks", "silent", "helpless")]
    assert [texts(result) for result in results[:2]] == [["Which?\nReply with: a / b"], ["Done."]]
    assert code(results[2]) == "failed"


async def test_what_is_for_others_is_sent_to_them_and_what_cannot_be_is_told() -> None:
    said = (
        Message("for you"),
        Message("for the others", to=OTHERS),
        Message("for you alone", to=MemberRef("mcp", "main", "editor")),
        Message("for nobody", to=ChatRef("irc", "nowhere", "#x")),
    )
    act = Recorder("act", gives=FunctionResult(messages=said), effect="once")
    async with programs([act.spec]) as served:
        result = await served.call("act")
        await served.group.settle()
        sent = [(one.chat, one.text) for one in served.group.platform.sent]
    assert sent == [(OTHERS, "for the others")]
    assert texts(result) == ["for you", "for you alone", "I couldn't pass this on to irc:nowhere:#x: “for nobody”"]


async def test_a_reminder_where_nobody_reads_along_says_so() -> None:
    async with programs() as served:
        result = await served.call("reminder_create", {"text": "tea", "when": "in 5 minutes"})
    assert "Nobody is reading mcp:main:editor" in "\n".join(texts(result))


async def test_a_program_with_a_room_acts_there_and_its_reminders_are_said_there() -> None:
    clients = [{"name": "editor", "chat": "test:bot:family"}]
    async with programs(clients=clients) as served:
        result = await served.call("reminder_create", {"text": "tea", "when": "in 5 minutes"})
        await served.group.clock.advance(301)
        await served.group.daemon.timers.tick()
        await served.group.settle()
        said = [one.text for one in served.group.platform.sent]
    assert not result.is_error
    assert "Nobody is reading" not in "\n".join(texts(result))
    assert any("tea" in text for text in said)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"allow": ["other:*"]}, "chats.allow"),
        ({"allow": ["*"], "settings": {"test:*": {"enabled": False}}}, "enabled"),
    ],
)
async def test_in_a_room_that_is_not_served_nothing_can_be_called(settings: dict[str, Any], why: str) -> None:
    act = Recorder("act")
    clients = [{"name": "editor", "chat": "test:bot:family"}]
    async with programs([act.spec], clients, {"chats": settings}) as served, served.client() as client:
        listed = (await client.list_tools()).tools
        result = await client.call_tool("act")
    assert (listed, act.runs, code(result)) == ([], [], "refused")
    assert why in texts(result)[0]


async def test_programs_differ_in_rights_and_in_what_is_open_to_them() -> None:
    act, other = Recorder("act", roles="admin", tags="work"), Recorder("other")
    clients = [
        {"name": "weak", "token": "the-token-of-the-weak"},
        {"name": "strong", "token": "the-token-of-the-strong", "role": "admin"},
        {"name": "narrow", "token": "the-token-of-the-narrow", "role": "admin", "functions": ["work"]},
        {"name": "raised", "token": "the-token-of-the-raised"},
    ]
    settings = {"members": {"mcp:main:raised": "owner"}}
    found: dict[str, set[str]] = {}
    async with programs([act.spec, other.spec], clients, settings) as served:
        for client in clients:
            async with served.client(client["token"]) as connected:
                names = {tool.name for tool in (await connected.list_tools()).tools}
                found[client["name"]] = names & {"act", "other"}
        async with served.client("the-token-of-the-narrow") as narrow:
            with pytest.raises(MCPError, match="Unknown tool"):
                await narrow.call_tool("other")
    assert found == {"weak": {"other"}, "strong": {"act", "other"}, "narrow": {"act"}, "raised": {"act", "other"}}
    assert other.runs == []


async def test_a_program_may_have_another_bots_functions() -> None:
    mine, theirs = Recorder("mine", bot="support"), Recorder("theirs", bot="default")
    clients = [{"name": "editor", "bot": "support"}]
    bots = {"bots": {"support": {}}}
    async with programs([mine.spec, theirs.spec], clients, bots) as served, served.client() as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert ("mine" in names, "theirs" in names) == (True, False)


@pytest.mark.parametrize("mode", ERAS)
async def test_what_goes_on_is_told_as_progress(mode: str) -> None:
    async def work(context: MessageContext, arguments: Any, call: Call) -> str:
        await call.status("looking")
        await call.status("almost there")
        return "done"

    told: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))

    act = Recorder("act", does=work)
    async with programs([act.spec]) as served, served.client(mode=mode) as client:
        result = await client.call_tool("act", progress_callback=progress)
    assert texts(result) == ["done"]
    assert told == [(1, "looking"), (2, "almost there")]


class Waits:
    """A function with an effect that starts and does not end by itself."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.recorder = Recorder("act", effect="once", does=self._wait, timeout_seconds=60)

    async def _wait(self, context: MessageContext, arguments: Any, call: Call) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return "never"


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_that_is_cancelled_ends_and_its_effect_stays_unknown(mode: str) -> None:
    waits = Waits()
    async with programs([waits.recorder.spec]) as served:
        async with asyncio.timeout(20), served.client(mode=mode) as client:
            calling = asyncio.create_task(client.call_tool("act"))
            await waits.began.wait()
            calling.cancel()
            await waits.ended.wait()
        turn = int(waits.recorder.calls[0].key.split(":")[0])
        [row] = await served.group.daemon.store.read(ledger.of_turn(turn))
        calls = logged(served)
    assert (row["function"], row["result"], row["code"]) == ("act", None, "")
    assert [outcome for *_, outcome in calls] == ["cancelled"]


async def test_a_bot_that_stops_ends_open_streams_and_what_still_runs() -> None:
    waits = Waits()
    async with asyncio.timeout(30), programs([waits.recorder.spec]) as served, served.http() as http:
        calling = asyncio.create_task(http.post("/mcp", json=call_of("act"), headers=headers_of("act")))
        await waits.began.wait()
        await served.web.stop()
        assert waits.ended.is_set()
        result = result_in((await calling).text)
    assert result["isError"] is True
    assert "[unknown_outcome]" in result["content"][0]["text"]


async def test_a_bot_that_stops_does_not_wait_for_clients_that_listen() -> None:
    async with asyncio.timeout(30), programs() as served, served.client(mode=LEGACY) as client:
        await client.list_tools()
        began = time.monotonic()
        await served.web.stop()
    assert time.monotonic() - began < 4


class Forgets:
    """A store that stops storing results when the test says so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_broken = False

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        return self._refuse() if self.is_broken else self._store.commit(writes)

    async def _refuse(self) -> list[int]:
        raise StoreError("the disk is gone: /dev/sda1")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_result_that_could_not_be_kept_is_no_success() -> None:
    stores: list[Forgets] = []

    async def forget(context: MessageContext, arguments: Any, call: Call) -> str:
        stores[0].is_broken = True
        return "done"

    def around(store: Store) -> Store:
        stores.append(Forgets(store))
        return cast(Store, stores[0])

    act = Recorder("act", effect="once", does=forget)
    async with programs([act.spec], around_store=around) as served:
        result = await served.call("act")
        stores[0].is_broken = False
    assert code(result) == "unknown_outcome"
    assert "/dev/sda1" not in str(result)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_failure_of_ours_is_told_by_a_number_alone(mode: str) -> None:
    def whose(_: object) -> NoReturn:
        raise RuntimeError("password hunter2")

    async with programs() as served:
        calls = served.group.daemon.direct_calls
        server = McpServer(calls, served.group.daemon.knowledge, whose, calls.chats.profile(OTHERS).texts, "Rollcall")
        async with Client(server.server, mode=mode) as client:
            with pytest.raises(MCPError, match=r"^Internal error [0-9a-f]{8}$"):
                await client.list_tools()


@pytest.mark.parametrize("mode", ERAS)
async def test_programs_are_told_when_there_are_other_functions(mode: str) -> None:
    told = asyncio.Event()
    spec, source = Recorder("later").spec, Written("others")
    source.write()

    async def hear(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            told.set()

    async with (
        asyncio.timeout(20),
        programs(sources=[source]) as served,
        served.client(mode=mode, message_handler=hear) as client,
    ):
        before = {tool.name for tool in (await client.list_tools()).tools}
        if mode == MODERN:
            async with client.listen(tools_list_changed=True) as events:
                source.write(spec)
                await anext(aiter(events))
        else:
            # The stream for server notifications is opened concurrently with the session.
            while not told.is_set():
                source.write(spec)
                await asyncio.sleep(0.02)
        after = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
    assert after - before == {"later"}


async def test_a_program_with_many_sessions_loses_its_oldest_and_takes_none_of_another() -> None:
    another = "a-token-of-another-program-0123456789"
    clients = [{"name": "editor"}, {"name": "other", "token": another}]
    async with programs(clients=clients) as served, AsyncExitStack() as stack:
        other = await stack.enter_async_context(served.client(another, mode=LEGACY))
        first, *_, last = [
            await stack.enter_async_context(served.client(mode=LEGACY)) for _ in range(SESSION_SHARE + 1)
        ]
        assert (await other.list_tools()).tools
        assert (await last.list_tools()).tools
        with pytest.raises(MCPError):
            await first.list_tools()


def headers_of(name: str) -> dict[str, str]:
    """Headers of a request with the body of `call_of`."""
    return {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }


def call_of(name: str) -> dict[str, Any]:
    """Body of a call, without the client library."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}, "_meta": meta}}


def result_in(body: str) -> Any:
    """Result in a response, which is JSON or a stream."""
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")] or [body]
    return json.loads(lines[-1])["result"]
