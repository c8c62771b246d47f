"""config/scripts: example scripts. Each is short, valid in both profiles, can be tried by hand, and works when a model
calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from config.loader import load_settings
from services.refs import Role
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.docs.documents import ROOT
from tests.harness.smtp_server import SmtpServer

FOLDER = ROOT / "config/scripts"
SCRIPTS = sorted(FOLDER.glob("*.bas"))
MOST_LINES = 39


@pytest.fixture
async def group() -> AsyncIterator[Group]:
    async with a_group(settings={"sources": {"basic": [str(FOLDER)]}}) as made:
        assert made.daemon.functions.faults == ()
        yield made


async def called(group: Group, name: str, *, role: Role = Role.MEMBER, **arguments: Any) -> list[str]:
    """Messages to the chat after Ann asks the bot and its model calls that function."""
    group.model.says(call(name, **arguments), "Anything else?")
    words = " ".join(map(str, arguments.values()))
    return await group.say("Ann", f"@Rollcall please {name} {words}", role=role)


def test_there_are_five_of_them_and_each_fits_on_a_screen() -> None:
    lines = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in SCRIPTS}
    assert set(lines) == {"birthdays", "join_club", "potluck", "quiz", "split_costs"}
    assert max(lines.values()) <= MOST_LINES


def test_they_are_not_switched_on() -> None:
    assert load_settings(ROOT / "config/bot.yaml", {}).sources.basic == ()


@pytest.mark.requirement("A51", "B27")
@pytest.mark.parametrize("profile", ["strict", "extended"])
def test_no_profile_has_anything_to_say_of_them(capsys: pytest.CaptureFixture[str], profile: str) -> None:
    checked = command(capsys, "basic", "check", FOLDER, "--profile", profile)
    assert checked == (0, "5 scripts: none broken, no warnings\n", "")


RUNS = {
    "birthdays": (["days=366"], [], ["Grandma Ruth", "Uncle Sam", "Little Mia", "RESULT 3"]),
    "join_club": (
        ["full_name=Ann Lee"],
        ["here", "ann@lee.example"],
        ["Write it like", "member number 1. The letter could not be sent", 'SAVED members: {"number":1'],
    ),
    "potluck": (["dish=Potato salad"], [], ["On the table:\n- potato salad (operator)\n", "SAVED potluck"]),
    "quiz": ([], ["Jupiter", "8", "3"], ["[Earth | Jupiter | Mars]", "No, it is Seine.", "2 of 3", "REMEMBERED quiz"]),
    "split_costs": (["amount=24.5", "purpose=tea"], [], ["Together 24.50", "operator is even", "SAVED costs"]),
}


@pytest.mark.requirement("A52")
@pytest.mark.parametrize("name", [path.stem for path in SCRIPTS])
def test_each_can_be_tried_by_hand(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    given, answers, shown = RUNS[name]
    options = [
        *(part for one in given for part in ("--arg", one)),
        *(part for one in answers for part in ("--answer", one)),
    ]
    tried = command(
        capsys, "basic", "run", FOLDER / f"{name}.bas", *options, "--config", a_settings_file(tmp_path)
    )  # fmt: skip
    assert (tried.status, tried.err) == (0, ""), tried.out
    assert [one for one in shown if one not in tried.out] == []


async def test_a_dish_that_somebody_brings_already_is_asked_about(group: Group) -> None:
    assert await group.say("Bob", "/potluck list") == ["Nobody brings anything yet. Begin with /potluck and a dish."]
    assert await group.say("Bob", "/potluck potato salad") == ["On the table:\n- potato salad (Bob)"]
    assert await called(group, "potluck", dish="Potato salad") == [
        "Bob brings potato salad already. Bring it all the same?"
    ]
    group.model.says("Fine.")
    assert (await group.say("Ann", "no"))[0] == "Then tell me something else with /potluck."


async def test_birthdays_are_told_and_an_admin_has_them_told_every_morning(group: Group) -> None:
    said = await called(group, "birthdays", days=60, role=Role.ADMIN)
    assert said[0] == "2026-03-02: Grandma Ruth (78)"
    [timer] = await group.say("Ann", "/schedules", role=Role.ADMIN)
    assert "/birthdays days=0" in timer
    assert "every day at 08:00" in timer


async def test_a_quiz_is_played_with_its_member_and_the_best_is_remembered(group: Group) -> None:
    assert await called(group, "quiz") == ["Which planet is the largest?"]
    assert (await group.say("Ann", "Mars"))[0] == "No, it is Jupiter."
    await group.say("Ann", "8")
    group.model.says("Well played.")
    assert (await group.say("Ann", "Seine"))[:3] == [
        "Right!",
        "Ann, you have 2 of 3.",
        "That is the best result so far!",
    ]
    await group.say("Bob", "/quiz")
    await group.say("Bob", "Jupiter")
    await group.say("Bob", "10")
    assert (await group.say("Bob", "Thames"))[-1] == "The best is Ann with 2."


async def test_costs_are_split_among_all_who_take_part(group: Group) -> None:
    await group.say("Bob", "/split_costs 60 groceries")
    await group.say("Cid", "/split_costs 0 nothing")
    [said, *_] = await called(group, "split_costs", amount=12, purpose="tea")
    assert said.splitlines() == [
        "Together 72.00, that is 24.00 for each of 3.",
        "Ann owes 12.00",
        "Bob gets back 36.00",
        "Cid owes 24.00",
    ]
    assert await group.say("Cid", "/split_costs -1 cake") == ["An amount cannot be less than 0."]


async def test_a_new_member_of_the_club_is_kept_and_gets_a_letter() -> None:
    async with SmtpServer() as server:
        mail = {
            "host": "127.0.0.1",
            "port": server.port,
            "security": "none",
            "sender": "bot@club.example",
            "allowed": ["*"],
        }
        async with a_group(settings={"sources": {"basic": [str(FOLDER)]}, "mail": mail}) as group:
            assert await called(group, "join_club", full_name="Ann Lee") == [
                "Welcome, Ann Lee! Where can we write to you?"
            ]
            group.model.says("Welcome.")
            said = await group.say("Ann", "ann@lee.example")
            assert said[0] == "You are member number 1. A letter is on its way to ann@lee.example."
            await group.say("Ann", "/join_club Ann Lee")
            assert await group.say("Ann", "ann@lee.example") == ["ann@lee.example is registered already."]
    [letter] = server.delivered
    assert (letter.to, letter.message["Subject"]) == (("ann@lee.example",), "Welcome to the club")
    assert letter.text.startswith("Dear Ann Lee,\nyou are member number 1 since 2026-01-05.")
