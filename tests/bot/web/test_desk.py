"""The desk: accounts, sessions, roles and forms, the overview, and a turn with everything about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from bot.web.desk.accounts import DeskRole
from bot.web.desk.desk import SECTIONS
from config.sections.models import FailoverSettings
from config.texts import FOLDER, Texts, placeholders
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.clock import Deadlines, VirtualClock
from services.llm.failover import Failover
from services.llm.model import ModelError
from services.refs import ErrorCode
from services.store.turns import audit
from tests.fakes.model import ScriptedModel
from tests.harness.desk import PASSWORD, a_desk


class MoveArguments(BaseModel, frozen=True):
    """Whom to give the money."""

    to: str = Field(description="Receiver")


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


async def test_a_turn_is_saved_as_a_case_of_replay() -> None:
    async with a_desk() as world, world.person(DeskRole.OPERATOR) as operator, world.person(DeskRole.VIEWER) as viewer:
        await world.group.say("Ann", "/roll 1d1")
        await world.group.daemon.store.commit([])
        place = re.search(r'href="(/desk/chats/[^"]+)"', (await operator.get("/desk/chats")).text)
        assert place is not None
        turn = re.findall(r'href="(/desk/turns/\d+)">command<', (await operator.get(place[1])).text)[0]
        case = await operator.get(f"{turn}/case")
        assert case.headers["content-disposition"].startswith("attachment")
        assert case.json()["message"]["text"] == "/roll 1d1"
        assert (await viewer.get(f"{turn}/case")).status_code == 403
        assert (await operator.get("/desk/turns/1/case")).status_code == 404


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


async def test_the_overview_counts_failed_requests_of_a_model() -> None:
    clock, down = VirtualClock(), ModelError(ErrorCode.TIMEOUT, "down")
    model = Failover([ScriptedModel(down)], FailoverSettings(), clock, Deadlines(clock))
    async with a_desk(clock=clock, model=model) as world, world.person(DeskRole.VIEWER) as viewer:
        assert "failed requests" not in (await viewer.get("/desk")).text
        await world.group.say("Ann", "@Rollcall what's new?")
        assert "ok; failed requests: 1" in (await viewer.get("/desk")).text


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


async def test_an_operator_answers_an_approval_with_the_rights_of_the_account() -> None:
    moved: list[str] = []

    @tool_function(effect="once", commands=("move",), approval="admin", description="Move money.")
    async def move_money(context: MessageContext, args: MoveArguments) -> FunctionResult:
        moved.append(args.to)
        return FunctionResult.say(f"moved to {args.to}")

    async with a_desk([move_money]) as world, world.person(DeskRole.OPERATOR) as operator:
        await world.group.say("Ann", "/move Bob")
        await world.group.daemon.store.commit([])
        page = await operator.get("/desk/waiting")
        assert "move_money" in page.text
        action = re.search(r'action="(/desk/waiting/approvals/\d+)"', page.text)
        label = re.search(r'name="answer" value="([^"]+)" class="primary"', page.text)
        assert action is not None
        assert label is not None
        answered = await operator.post(action[1], {"answer": label[1]})
        assert answered.status_code == 303, answered.text
        await world.group.settle()
        assert moved == ["Bob"]
        assert (await operator.post(action[1], {"answer": label[1]})).status_code == 409
        rows = await world.group.daemon.store.read(audit.last(5))
        assert ("desk:operator", "approval answered") in {(row["actor"], row["action"]) for row in rows}


async def test_reminders_are_listed_and_removed_and_private_ones_hide_their_text() -> None:
    async with a_desk() as world, world.person(DeskRole.OPERATOR) as operator:
        await world.group.say("Ann", "/remind in 2 hours water the plants")
        await world.group.daemon.store.commit([])
        page = await operator.get("/desk/waiting")
        assert "water the plants" in page.text
        action = re.search(r'action="(/desk/waiting/timers/\d+)"', page.text)
        assert action is not None
        assert (await operator.post(action[1])).status_code == 303
        assert "water the plants" not in (await operator.get("/desk/waiting")).text
        assert (await operator.post(action[1])).status_code == 409


async def test_notes_show_their_audience_and_private_ones_hide_their_text() -> None:
    async with a_desk() as world, world.person(DeskRole.OPERATOR) as operator:
        await world.group.say("Ann", "/remember the club room is upstairs")
        await world.group.daemon.store.commit([])
        page = await operator.get("/desk/memory?words=CLUB")
        assert "the club room is upstairs" in page.text
        assert world.group.chat.key in page.text
        assert "club room" not in (await operator.get("/desk/memory?words=unrelated")).text


async def test_a_backup_is_made_and_listed() -> None:
    async with a_desk() as world, world.person(DeskRole.OPERATOR) as operator, world.person(DeskRole.VIEWER) as viewer:
        assert (await operator.post("/desk/backups")).status_code == 303
        assert "manual" in (await viewer.get("/desk/backups")).text
        assert (await viewer.post("/desk/backups")).status_code == 403


async def test_an_owner_adds_changes_and_removes_accounts() -> None:
    async with a_desk() as world, world.person() as owner, world.visitor() as bob:
        form = {"name": "Bob", "role": "viewer", "password": PASSWORD}
        assert (await owner.post("/desk/accounts", form)).status_code == 303
        assert (await bob.post("/desk/login", form)).status_code == 303
        assert "Bob" in (await bob.get("/desk")).text
        assert (await owner.post("/desk/accounts", {**form, "role": "king"})).status_code == 422
        assert (await owner.post("/desk/accounts", {**form, "name": "owner"})).status_code == 422
        assert (await owner.post("/desk/accounts/remove", {"name": "Bob"})).status_code == 303
        assert (await bob.get("/desk")).url.path == "/desk/login"
        assert (await owner.post("/desk/accounts/remove", {"name": "owner"})).status_code == 409


async def test_the_log_shows_the_newest_lines_of_a_level_with_certain_words(tmp_path: Path) -> None:
    settings = {"timezone": "Asia/Shanghai"}
    async with a_desk(home=tmp_path, settings=settings) as world, world.person(DeskRole.OPERATOR) as operator:
        log = tmp_path / "logs" / "rollcall.jsonl"
        log.parent.mkdir(exist_ok=True)
        line = '{"event":"line_%d","level":"%s","chat":"<b>","timestamp":"2026-05-01T10:00:00Z"}\n'
        log.write_text("".join(line % (number, "error" if number % 3 else "info") for number in range(5000)))
        page = await operator.get("/desk/logs?level=warning")
        assert "line_4999" in page.text
        assert "line_4998" not in page.text, "an info line"
        assert page.text.count("<tr>") == 201
        assert page.text.count("2026-05-01 18:00:00") == 200
        assert "<b>" not in page.text.split("<tbody>")[1]
        found = await operator.get("/desk/logs/lines?words=LINE_77%22", headers={"hx-request": "true"})
        assert found.text.count("<tr>") == 2


async def test_used_budgets_are_shown() -> None:
    settings = {"budgets": {"member": {"units": 5}, "functions": {"roll_dice": 2}}}
    async with a_desk(settings=settings) as world, world.person(DeskRole.VIEWER) as viewer:
        await world.group.say("Ann", "/roll 1d1")
        await world.group.daemon.store.commit([])
        page = await viewer.get("/desk/budgets")
        assert page.status_code == 200
