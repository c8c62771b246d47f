"""The desk: accounts, sessions, roles and forms, the overview, and a turn with everything about it."""

from __future__ import annotations

import re

import pytest

from bot.web.desk.accounts import DeskRole
from bot.web.desk.desk import SECTIONS
from config.texts import FOLDER, Texts, placeholders
from services.store.turns import audit
from tests.harness.desk import PASSWORD, a_desk

_WRONG = {"name": "owner", "password": "not the password"}


async def test_an_owner_link_makes_one_account_and_is_used_up() -> None:
    async with a_desk() as world, world.visitor() as ann, world.visitor() as eve:
        link = await world.owner_link()
        page = await ann.get("/desk")
        assert page.url.path == "/desk/welcome"
        assert 'name="password"' not in page.text, "without the link there is no form"
        form = {"owner": link, "name": "Ann", "password": PASSWORD}
        assert (await ann.post("/desk/welcome", form)).headers["location"] == "/desk"
        assert "Ann" in (await ann.get("/desk")).text
        again = await eve.post("/desk/welcome", {**form, "name": "Eve"})
        assert again.status_code == 403
        assert [account.name for account in await world.accounts.everyone()] == ["Ann"]


async def test_a_short_password_is_explained_and_the_link_stays_usable() -> None:
    async with a_desk() as world, world.visitor() as ann:
        link = await world.owner_link()
        short = await ann.post("/desk/welcome", {"owner": link, "name": "Ann", "password": "short"})
        assert short.status_code == 422
        assert "at least 10 characters" in short.text
        assert (
            await ann.post("/desk/welcome", {"owner": link, "name": "Ann", "password": PASSWORD})
        ).status_code == 303


async def test_wrong_passwords_are_slowed_down_and_say_the_same_for_unknown_names() -> None:
    async with a_desk() as world, world.person(), world.visitor() as eve:
        answers = {(await eve.post("/desk/login", {**_WRONG, "name": name})).text for name in ("owner", "nobody")}
        assert len(answers) == 1
        for _ in range(9):
            last = await eve.post("/desk/login", _WRONG)
        assert last.status_code == 429
        await world.group.clock.advance(60)
        assert (await eve.post("/desk/login", {"name": "owner", "password": PASSWORD})).status_code == 303


async def test_a_session_ends_with_the_logout_with_time_and_with_a_new_password() -> None:
    async with a_desk() as world, world.person() as owner:
        cookie = owner.http.cookies["rollcall_desk"]
        await owner.post("/desk/logout")
        owner.http.cookies.set("rollcall_desk", cookie)
        assert (await owner.get("/desk")).url.path == "/desk/login"
    async with a_desk() as world, world.person() as owner:
        await world.group.clock.advance(7 * 24 * 3600 + 1)
        assert (await owner.get("/desk")).url.path == "/desk/login"
    async with a_desk() as world, world.person() as first, world.person():
        assert (await first.get("/desk")).url.path == "/desk/login"


@pytest.mark.parametrize("role", DeskRole)
async def test_each_role_reaches_its_own_sections_only(role: DeskRole) -> None:
    async with a_desk() as world, world.person(role) as person:
        page = await person.get("/desk")
        listed = set(re.findall(r'<a href="/desk/(\w+)"', page.text))
        for section in SECTIONS:
            assert (section.name in listed) == role.includes(section.role)
            if section.name in listed:
                continue
            assert (await person.get(f"/desk/{section.name}")).status_code in (403, 404)
        assert (await person.get("/desk/chats")).status_code == (200 if role.includes(DeskRole.OPERATOR) else 403)


async def test_a_form_needs_the_origin_and_the_token_of_its_session() -> None:
    async with a_desk() as world, world.person() as owner, world.person(DeskRole.VIEWER) as other:
        assert (await other.get("/desk")).status_code == 200
        for sent in (
            await owner.http.post("/desk/logout", data={"csrf": "0" * 64}, headers={"origin": world.address}),
            await owner.http.post("/desk/logout", data={"csrf": ""}, headers={"origin": world.address}),
            await owner.http.post("/desk/logout", data={"csrf": "0"}),
            await owner.post("/desk/logout", origin="https://evil.example"),
            await owner.post("/desk/logout", {"csrf": other._csrf}),
        ):
            assert sent.status_code == 403
        assert (await owner.get("/desk")).url.path == "/desk"


async def test_pages_are_not_cached_and_allow_no_foreign_script_or_frame() -> None:
    async with a_desk() as world, world.person() as owner:
        for path in ("/desk", "/desk/login", "/desk/nothing"):
            headers = (await owner.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert headers["cache-control"] == "no-store" or path == "/desk/nothing"
        cookie = next(iter(owner.http.cookies.jar))
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.path == "/desk"


async def test_logins_and_new_accounts_are_in_the_audit_log_without_passwords() -> None:
    async with a_desk() as world, world.person(name="Ann"):
        rows = await world.group.daemon.store.read(audit.last(10))
        assert {(row["actor"], row["action"]) for row in rows} == {("test", "desk account"), ("desk:Ann", "desk login")}
        assert PASSWORD not in str(rows)


@pytest.mark.requirement("D31")
async def test_a_turn_shows_why_it_was_answered_what_ran_and_what_was_sent() -> None:
    async with a_desk() as world, world.person(DeskRole.OPERATOR) as operator:
        await world.group.say("Ann", "/roll 1d1")
        await world.group.say("Ann", "hello all")
        await world.group.daemon.store.commit([])
        chats = await operator.get("/desk/chats")
        place = re.search(r'href="(/desk/chats/[^"]+)"', chats.text)
        assert place is not None
        chat = await operator.get(place[1])
        assert "not_addressed" in chat.text
        turns = re.findall(r'href="(/desk/turns/\d+)">command<', chat.text)
        turn = await operator.get(turns[0])
        for shown in ("/roll 1d1", "command", "<b>roll_dice</b>", "1d1", "sent", "it was a command"):
            assert shown in turn.text, shown


async def test_the_overview_counts_messages_and_runs_of_the_hour() -> None:
    async with a_desk() as world, world.person(DeskRole.VIEWER) as viewer:
        for _ in range(3):
            await world.group.say("Ann", "/roll 1d1")
        world.group.daemon.logs[0].flush()
        await world.group.daemon.store.commit([])
        page = await viewer.get("/desk")
        assert "Messages <b>3</b>" in page.text
        part = await viewer.get("/desk/overview/plots", headers={"hx-request": "true"})
        assert "Runs of functions <b>3</b>" in part.text
        assert "<html" not in part.text


async def test_texts_of_members_are_escaped() -> None:
    async with a_desk() as world, world.person(DeskRole.OPERATOR) as operator:
        await world.group.say("Ann", "<script>alert(1)</script>")
        await world.group.daemon.store.commit([])
        place = re.search(r'href="(/desk/chats/[^"]+)"', (await operator.get("/desk/chats")).text)
        assert place is not None
        page = await operator.get(place[1])
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert" in page.text


async def test_the_language_follows_the_browser_and_the_choice() -> None:
    async with a_desk() as world, world.person() as owner:
        assert "<h1>总览</h1>" in (await owner.get("/desk", headers={"accept-language": "zh-CN,zh;q=0.9"})).text
        assert "<h1>总览</h1>" in (await owner.get("/desk?language=zh")).text
        assert "<h1>总览</h1>" in (await owner.get("/desk")).text


async def test_the_last_owner_is_not_removed() -> None:
    async with a_desk() as world, world.person(), world.person(DeskRole.VIEWER):
        assert not await world.accounts.remove("owner", "test")
        assert await world.accounts.remove("viewer", "test")


def test_both_languages_have_the_same_texts() -> None:
    texts = Texts(FOLDER / "desk")
    english, chinese = (texts.of(language).templates for language in ("en", "zh"))
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert placeholders(text) == placeholders(chinese[key]), key
