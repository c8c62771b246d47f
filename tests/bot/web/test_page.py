"""Requests of the chat page: identity, permissions and the ownership link."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.web.app import Health
from bot.web.page import TOKEN_HEADER, Allowance, OwnerLink, Signer, page_key
from function_calls.context import Kind
from services.chats.members import MemberZones
from services.clock import SystemClock, VirtualClock
from services.refs import ChatRef, MemberRef, Role
from tests.bot.web_world import World, a_world


async def joined(client: httpx2.AsyncClient, name: str, *, fresh: bool = True) -> dict[str, Any]:
    answer = await client.post("/api/v1/members", json={"name": name, "fresh": fresh})
    assert answer.status_code == 201
    told: dict[str, Any] = answer.json()
    return told


async def said(
    client: httpx2.AsyncClient, who: dict[str, Any], text: str, room: str = "lobby", **fields: Any
) -> httpx2.Response:
    body = {"id": f"c-{who['id']}-{text}", "sender": {"name": "Ann"}, "text": text} | fields
    return await client.post(f"/api/v1/chats/{room}/messages", json=body, headers={TOKEN_HEADER: who["token"]})


async def seen(client: httpx2.AsyncClient, who: dict[str, Any], room: str = "lobby") -> list[dict[str, Any]]:
    answer = await client.get(f"/api/v1/chats/{room}/events?wait=0&token={who['token']}")
    assert answer.status_code == 200
    events: list[dict[str, Any]] = answer.json()["events"]
    return events


async def redeemed(client: httpx2.AsyncClient, world: World, who: dict[str, Any]) -> int:
    token = world.owner_link.url(world.base).partition("?owner=")[2]
    answer = await client.post("/api/v1/owner", json={"token": token}, headers={TOKEN_HEADER: who["token"]})
    return answer.status_code


async def test_what_members_say_is_an_event_as_they_wrote_it(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann, ben = await joined(client, "Ann"), await joined(client, "Ben")
        assert (await said(client, ann, "@Rollcall hi", mentions=[ben["id"]])).status_code == 202
        first, second = await seen(client, ben)
        assert (first["type"], first["text"], first["sender"]) == (
            "said",
            "@Rollcall hi",
            {"id": ann["id"], "name": "Ann", "role": "member"},
        )
        assert (second["type"], second["text"]) == ("message", "You said: hi")
        (context,) = world.daemon.received
        assert (context.text, context.mentions) == ("hi", (MemberRef("web", "main", ben["id"]),))


async def test_a_message_sent_twice_is_one_event(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann = await joined(client, "Ann")
        await said(client, ann, "hello")
        assert (await said(client, ann, "hello")).json()["duplicate"]
        assert [event["text"] for event in await seen(client, ann)] == ["hello"]


async def test_a_token_speaks_for_its_member_alone(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann, ben = await joined(client, "Ann"), await joined(client, "Ben")
        as_ben = await said(client, ann, "x", sender={"id": ben["id"], "name": "Ben"})
        assert (as_ben.status_code, as_ben.json()["error"]["field"]) == (403, "sender.id")
        as_owner = await said(client, ann, "y", sender={"name": "Ann", "role": "owner"})
        assert as_owner.status_code == 202
        assert world.daemon.received[0].sender.role is Role.MEMBER
        for forged in (ann["id"], f"{ben['id']}.{ann['token'].partition('.')[2]}", "", "é.x"):
            answer = await client.get("/api/v1/chats/lobby/events", params={"wait": "0", "token": forged})
            assert answer.status_code == 401


async def test_a_private_room_is_its_members_alone_and_no_group(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann, ben = await joined(client, "Ann"), await joined(client, "Ben")
        room = f"dm-{ann['id']}"
        assert (await said(client, ann, "hello", room)).status_code == 202
        assert not world.daemon.received[0].is_group
        assert (await said(client, ben, "hello", room)).status_code == 403
        answer = await client.get(f"/api/v1/chats/{room}/events?wait=0&token={ben['token']}")
        assert answer.status_code == 403


async def test_a_private_message_and_the_choice_made_on_it_reach_one_member(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann, ben = await joined(client, "Ann"), await joined(client, "Ben")
        await said(client, ann, "tell me a secret")
        assert [event["text"] for event in await seen(client, ann)] == ["tell me a secret", "Only for you."]
        assert [event["text"] for event in await seen(client, ben)] == ["tell me a secret"]
        reply = (await seen(client, ann))[1]["id"]
        await said(client, ann, "thanks", reply_to=reply)
        assert len(await seen(client, ann)) > 2
        assert [event["text"] for event in await seen(client, ben) if event["type"] == "said"] == ["tell me a secret"]
        assert [context.private for context in world.daemon.received] == [False, True]


async def test_a_pressed_choice_shows_its_label_and_bears_its_value(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann = await joined(client, "Ann")
        await said(client, ann, "help me choose")
        question = (await seen(client, ann))[1]
        assert question["choices"] == [{"label": "Tea", "value": "tea"}, {"label": "Coffee", "value": "coffee"}]
        await said(client, ann, "coffee", kind="choice", reply_to=question["id"])
        press = (await seen(client, ann))[2]
        assert (press["kind"], press["text"]) == ("choice", "Coffee")
        context = world.daemon.received[1]
        assert (context.kind, context.text) == (Kind.CHOICE, "coffee")


async def test_the_cookie_brings_the_same_member_back_and_a_fresh_tab_is_another(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        first = await joined(client, "Ann", fresh=False)
        again = await joined(client, "Anna", fresh=False)
        other = await joined(client, "Ben", fresh=True)
        assert first["id"] == again["id"] != other["id"]
    async with a_world(tmp_path) as world, world.client() as client:
        assert (await said(client, first, "still me")).status_code == 202


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"name": ""}, "bad_request", "name"),
        ({"name": "x" * 41}, "bad_request", "name"),
        ({"name": "ROLLCALL"}, "name_taken", "name"),
        ({"name": "小助手"}, "name_taken", "name"),
        ({"name": "Roll\u200ecall"}, "name_taken", "name"),
        ({}, "bad_request", "name"),
        ({"name": "Ann", "role": "owner"}, "bad_request", "role"),
    ],
)
async def test_a_name_is_short_and_not_the_bots(tmp_path: Path, body: dict[str, str], code: str, field: str) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        answer = await client.post("/api/v1/members", json=body)
        assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["field"]) == (
            400,
            code,
            field,
        )


IMITATIONS = [
    "R\u043ellcall",  # Cyrillic o
    "Roll\u0441\u0430ll",
    "Rollc\u03b1ll",  # Greek alpha
    "Roll\u212dall",  # black-letter C
    "Roll\u200bcall",
    "\u2060Rollcall\ufe0f",
    "Roll\u00adcall",
    "Roll\u3164call",
    "\u115fRollcall\u1160",
    "Rollcall\uffa0",
    "Rollcall\u2800",
    "Roll\U000e0063call",
    "Ro\u0308llcall",
    "R\u00f6llcall",
    "Rollcal\u0142",  # l with stroke
    "\uff32\uff4f\uff4c\uff4c\uff43\uff41\uff4c\uff4c",
    "\U0001d411\U0001d428\U0001d425\U0001d425\U0001d41c\U0001d41a\U0001d425\U0001d425",
    "rOLLcALL",
    "RoIIcaII",
    "R0llca1l",
    "Roll call",
    "Rollcall.",
    "\u5c0f\u200d\u52a9\u624b",
]


@pytest.mark.parametrize("name", IMITATIONS)
async def test_a_name_that_looks_like_the_bots_is_refused(tmp_path: Path, name: str) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        answer = await client.post("/api/v1/members", json={"name": name})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "name_taken")
        ann = await joined(client, "Ann")
        answer = await said(client, ann, "I am the bot", sender={"name": name})
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "sender.name")


@pytest.mark.parametrize(
    "name", ["\u3164", "\u200b\u2060", "\u115f \u1160", "\u0301", "\u2800", "\ufe0f\u200d", "\u00ad"]
)
async def test_a_name_that_nobody_can_see_is_refused(tmp_path: Path, name: str) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        answer = await client.post("/api/v1/members", json={"name": name})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    "name",
    [
        "Ann",
        "Rollo",
        "Call",
        "\u0410\u043d\u043d\u0430",
        "\u0395\u03bb\u03ad\u03bd\u03b7",
        "Jos\u00e9",
        "\u5c0f\u660e",
        "\u30d1\u30d1",
        "\u0e2a\u0e21\u0e0a\u0e32\u0e22",
        "\u0905\u0928\u093f\u0924\u093e",
        "\ud55c\uad6d",
        "\U0001f642",
        "Z\u0142oty",
        "007",
        "-_-",
    ],
)
async def test_names_of_any_script_are_taken(tmp_path: Path, name: str) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        await said(client, await joined(client, name), "hello", sender={"name": name})
        assert [context.sender.name for context in world.daemon.received] == [name]


async def test_two_members_of_one_name_are_told_apart_in_a_chat_across_restarts(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        first, second, third = [await joined(client, "Ann") for _ in range(3)]
        await said(client, first, "one")
        await said(client, second, "two")
        await said(client, third, "three", sender={"name": "\u0410nn"})  # Cyrillic A
        await said(client, first, "four")
        await said(client, second, "elsewhere", "kitchen")
        names = [context.sender.name for context in world.daemon.received]
        assert names == ["Ann", "Ann (2)", "\u0410nn (3)", "Ann", "Ann"]
        assert [event["sender"]["name"] for event in await seen(client, first)] == names[:4]
    async with a_world(tmp_path) as world, world.client() as client:
        await said(client, third, "five", sender={"name": "\u0410nn"})
        await said(client, second, "six")
        await said(client, first, "seven")
        await said(client, second, "eight", sender={"name": "Anna"})
        await said(client, second, "nine", sender={"name": "Ann (2)"})
        await said(client, third, "ten", sender={"name": "Ann (2)"})
        names = [context.sender.name for context in world.daemon.received]
        assert names == ["\u0410nn (3)", "Ann (2)", "Ann", "Anna", "Ann (2)", "Ann (2) (2)"]


async def test_a_member_who_takes_another_name_stays_the_same_member(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann = await joined(client, "Ann")
        proof = {TOKEN_HEADER: ann["token"]}
        answer = await client.post("/api/v1/members", json={"name": "Anna", "fresh": True}, headers=proof)
        assert (answer.json()["id"], answer.json()["token"]) == (ann["id"], ann["token"])
        answer = await client.post("/api/v1/members", json={"name": "R\u043ellcall", "fresh": True}, headers=proof)
        assert answer.json()["error"]["code"] == "name_taken"
        void = {TOKEN_HEADER: f"{ann['id']}.void"}
        answer = await client.post("/api/v1/members", json={"name": "Anna", "fresh": True}, headers=void)
        assert answer.json()["id"] != ann["id"]


async def test_the_time_zone_of_the_browser_is_the_member_s_until_the_member_sets_another(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        zones = MemberZones(world.store, SystemClock())

        async def joined_from(zone: str) -> MemberRef:
            answer = await client.post("/api/v1/members", json={"name": "Ann", "timezone": zone})
            assert answer.status_code == 201
            return MemberRef("web", "main", answer.json()["id"])

        for unknown in ("", "Mars/Olympus", "../../etc/passwd", "utc"):
            assert not await zones.is_known(await joined_from(unknown))
        ann = await joined_from("Asia/Kathmandu")
        assert await zones.of(ann) == "Asia/Kathmandu"
        await zones.set(ann, "Europe/Oslo")
        assert await joined_from("Asia/Tokyo") == ann
        assert await zones.of(ann) == "Europe/Oslo"
        await zones.clear(ann)
        await joined_from("Asia/Tokyo")
        assert await zones.of(ann) is None
        assert (await client.post("/api/v1/members", json={"name": "Ann", "timezone": "x" * 65})).status_code == 400


async def test_nobody_speaks_under_the_bots_name(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann = await joined(client, "Ann")
        answer = await said(client, ann, "I am the bot", sender={"name": "rollcall"})
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "sender.name")
        assert world.daemon.received == []


async def test_members_are_made_at_a_bounded_rate(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with a_world(tmp_path, page_clock=clock) as world, world.client() as client:
        for number in range(60):
            await joined(client, f"Ann {number}")
        answer = await client.post("/api/v1/members", json={"name": "Ann", "fresh": True})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")
        await clock.advance(2)
        await joined(client, "Ann")


async def test_an_allowance_refills_with_time() -> None:
    clock = VirtualClock()
    allowance = Allowance(clock, burst=2, seconds_each=10)
    assert [allowance.take() for _ in range(3)] == [True, True, False]
    await clock.advance(9)
    assert not allowance.take()
    await clock.advance(1)
    assert [allowance.take() for _ in range(2)] == [True, False]


async def test_the_owner_link_makes_the_first_who_opens_it_owner_for_good(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann, ben = await joined(client, "Ann"), await joined(client, "Ben")
        assert await redeemed(client, world, ann) == 200
        assert await redeemed(client, world, ben) == 403
        assert await redeemed(client, world, ann) == 403
    async with a_world(tmp_path) as world, world.client() as client:
        await said(client, ann, "hello")
        await said(client, ben, "hello")
        assert [context.sender.role for context in world.daemon.received] == [Role.OWNER, Role.MEMBER]
        lobby = ChatRef("web", "main", "lobby")
        assert await world.web.role(lobby, MemberRef("web", "main", ann["id"])) is Role.OWNER


async def test_a_new_link_voids_the_one_that_nobody_used(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        ann = await joined(client, "Ann")
        newer = await OwnerLink.make(world.store, SystemClock())
        assert await redeemed(client, world, ann) == 403
        world.owner_link = newer
        assert await redeemed(client, world, ann) == 200


async def test_opening_the_owner_link_alone_changes_nothing(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        assert (await client.get(world.owner_link.url(world.base))).status_code == 200
        assert await redeemed(client, world, await joined(client, "Ann")) == 200


async def test_the_page_is_told_the_bot_the_rooms_and_the_commands(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        page = (await client.get("/api/v1/page")).json()
        assert page["bot"] == {"name": "Rollcall", "aliases": ["小助手"]}
        assert page["rooms"][0] == {"id": "lobby", "title": "Lobby"}
        commands = (await client.get("/api/v1/commands?language=zh-CN")).json()["commands"]
        assert commands[0] == {"word": "/help", "usage": "/help [命令]", "description": "说明我会做什么"}


async def test_the_files_need_nothing_from_elsewhere(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        page, style = (await client.get("/")).text, (await client.get("/page.css")).text
        addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
        assert len(addresses) == 3
        assert all(address.startswith(("/page.", "data:")) for address in addresses)
        assert "url(" not in style
        assert "@import" not in style


async def test_a_file_is_sent_again_only_when_it_has_changed(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
            answer = await client.get(path)
            assert answer.headers["content-type"].startswith(kind)
            again = await client.get(path, headers={"if-none-match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")


async def test_probes_answer_as_the_daemon_says(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        assert (await client.get("/readyz")).json() == {"ok": True, "details": {"store": "open"}}
        world.health["ready"] = Health(ok=False, details={"store": "broken"})
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200
        metrics = await client.get("/metrics")
        assert metrics.text == "rollcall_turns_total 3\n"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("PUT", "/api/v1/members", 405)])
async def test_what_does_not_exist_is_refused_in_the_same_shape(
    tmp_path: Path, method: str, path: str, status: int
) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        answer = await client.request(method, path)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"code", "message"}


def test_the_key_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    key = page_key(tmp_path / "keys")
    assert page_key(tmp_path / "keys") == key
    (file,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"short")
    with pytest.raises(ValueError, match="is not a key"):
        page_key(tmp_path / "keys")


def test_a_signature_holds_for_one_purpose_value_and_key() -> None:
    signer = Signer(b"k" * 32)
    signed = signer.sign("cookie", "abc")
    assert signer.read("cookie", signed) == "abc"
    assert signer.read("token", signed) is None
    assert signer.read("cookie", "abd" + signed[3:]) is None
    assert Signer(b"x" * 32).read("cookie", signed) is None
    assert signer.read("cookie", "") is None
