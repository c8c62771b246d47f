"""Plans: recorded messages under current and changed settings; and recorded turns as cases of `rollcall replay`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.checks.plan import Difference, End, Obstacle, Plan, plan
from bot.platforms.base import Limits
from bot.testing import Group, TestPlatform, a_group, call
from config.settings import Settings
from services.refs import ChatRef, ReasonCode, Role
from tests.bot.basic_group import write_scripts

PRIVATE = ChatRef("test", "bot", "ann")


def settings_of(home: Path, changes: Mapping[str, Any] | None = None) -> Settings:
    given = {"home": str(home), "chats": {"allow": ["*"]}, "timezone": "UTC", **(changes or {})}
    return Settings.model_validate(given)


def record(
    home: Path, talk: Callable[[Group], Awaitable[object]], settings: Mapping[str, Any] | None = None, **options: Any
) -> None:
    """Run a bot with its database in `home` while `talk` writes to it. `options` as in `a_group`."""

    async def scenario() -> None:
        async with a_group(home=home, settings=settings, **options) as group:
            await talk(group)

    asyncio.run(scenario())


async def everyday(group: Group) -> None:
    """One message of each kind."""
    await group.say("Ann", "/roll 2d6")
    await group.say("Bob", "who brings the cake?")
    group.model.says(call("calculate", expression="6*7"), "It is 42.")
    await group.say("Ann", "@Rollcall what is 6*7?")
    group.model.says("Hello Bob.")
    await group.say("Bob", "@Rollcall hello")


def planned(
    home: Path, new: Mapping[str, Any], current: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Plan, list[tuple[str, Difference]]]:
    """The plan, and text and difference of each changed message."""
    found = plan(settings_of(home, current), settings_of(home, new), **options)
    return found, [(change.text, change.difference) for change in found.changes]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    record(folder, everyday)
    return folder


def test_equal_settings_change_nothing(home: Path) -> None:
    found, changed = planned(home, {})
    assert (found.compared, changed, dict(found.not_compared)) == (4, [], {})


def test_a_disabled_function_is_refused_to_commands_and_models_and_the_key_is_named(home: Path) -> None:
    found, changed = planned(home, {"functions": {"roll_dice": {"enabled": False}, "calculate": {"enabled": False}}})
    assert changed == [("/roll 2d6", Difference.REFUSED), ("what is 6*7?", Difference.REFUSED)]
    assert [change.new.detail for change in found.changes] == [
        "functions.roll_dice.enabled", "functions.calculate.enabled",
    ]  # fmt: skip
    assert [call.function for change in found.changes for call in change.old.calls] == ["roll_dice", "calculate"]
    assert [change.new.calls for change in found.changes] == [(), ()]


def test_a_raised_role_refuses_members_but_not_those_who_have_shown_a_higher_role(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Ann", "/roll 2d6")
        await group.say("Boss", "/roll 1d6", role=Role.ADMIN)
        await group.say("Boss", "/poll_rights", role=Role.ADMIN)

    tool = tmp_path / "rights.yaml"
    tool.write_text(
        "tools:\n  - {name: poll_rights, description: Show rights, commands: [poll_rights], roles: [admin], "
        "effect: read, cmds: [[printf, yes]]}\n"
    )
    sources = {"sources": {"commands": [str(tool)]}}
    record(tmp_path, talk, sources)
    raised = {**sources, "functions": {"roll_dice": {"roles": ["admin", "owner"]}}}
    found, changed = planned(tmp_path, raised, sources)
    assert changed == [("/roll 2d6", Difference.REFUSED)]
    assert (found.changes[0].new.detail, found.assumed_roles) == ("functions.roll_dice.roles", 3)


def test_a_chat_that_is_not_allowed_any_more_gets_no_answer(home: Path) -> None:
    found, changed = planned(home, {"chats": {"allow": ["test:bot:work"]}})
    assert changed == [(text, Difference.SILENT) for text in ("/roll 2d6", "what is 6*7?", "hello")]
    assert {(change.new.reason, change.new.detail) for change in found.changes} == {
        (ReasonCode.CHAT_NOT_ALLOWED, "chats.allow")
    }


def test_a_chat_that_was_not_allowed_is_not_compared_because_its_texts_are_not_stored(tmp_path: Path) -> None:
    closed = {"chats": {"allow": ["test:bot:work"]}}
    record(tmp_path, everyday, closed)
    assert planned(tmp_path, closed, closed)[0].compared == 4
    found, changed = planned(tmp_path, {}, closed)
    assert (found.compared, changed, dict(found.not_compared)) == (0, [], {Obstacle.NO_TEXT: 4})


def test_the_language_changes_the_bots_own_sentences(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await everyday(group)
        await group.say("Ann", "/calc")

    record(tmp_path, talk)
    found, changed = planned(tmp_path, {"language": "zh"})
    assert changed == [("/calc", Difference.REPLY)]
    assert (found.changes[0].old.reply.isascii(), found.changes[0].new.reply.isascii()) == (True, False)


def test_a_new_name_of_the_bot_addresses_it(home: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Bob", "Robo, what is the time?")
        await group.say("Bob", "Robo, /roll")

    folder = home.parent / "named"
    record(folder, talk)
    found, changed = planned(folder, {"bots": {"default": {"aliases": ["Robo"]}}})
    assert changed[0] == ("Robo, what is the time?", Difference.ANSWERED)
    assert found.changes[0].new.is_unanswered


def test_require_at_matters_where_no_slash_command_addresses_the_bot(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Ann", "/roll 2d6")
        await group.say("Ann", "/rolll 2d6")
        await group.say("Bob", "who won?")

    record(tmp_path, talk, platform=TestPlatform(Limits(text_chars=4000, sends_are_idempotent=True, only_bot=True)))
    assert planned(tmp_path, {"functions": {"roll_dice": {"require_at": True}}})[1] == [
        ("/rolll 2d6", Difference.SILENT)
    ]


LINES = """tools:
  - name: count_lines
    description: Count the lines of a text
    parameters: {text: {type: string, required: true, description: Text}}
    commands: [COMMAND]
    effect: read
    cmds: [[printf, PRINTED]]
"""


def test_changed_commands_and_definitions_of_a_yaml_tool_are_found(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Ann", "/lines one two")
        await group.say("Bob", "so many?")

    def written(name: str, command: str, printed: str) -> Mapping[str, Any]:
        file = tmp_path / name
        file.write_text(LINES.replace("COMMAND", command).replace("PRINTED", printed))
        return {"sources": {"commands": [str(file)]}}

    old = written("old.yaml", "lines", "same")
    record(tmp_path, talk, old)
    assert planned(tmp_path, written("equal.yaml", "lines", "same"), old)[1] == []
    assert planned(tmp_path, written("other.yaml", "lines", "else"), old)[1] == [
        ("/lines one two", Difference.DEFINITION)
    ]
    assert planned(tmp_path, written("renamed.yaml", "count", "same"), old)[1] == [
        ("/lines one two", Difference.SILENT)
    ]


def test_changed_parameters_of_a_script_are_found(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Ann", "/greet Tom")

    def written(folder: str, more: str) -> Mapping[str, Any]:
        write_scripts(tmp_path / folder, {"greet": f'PARAM who AS STRING LIKE "Tom"\n{more}TALK "Hi " + who'})
        return {"sources": {"basic": [{"path": str(tmp_path / folder)}]}}

    old = written("old", "")
    record(tmp_path, talk, old)
    assert planned(tmp_path, written("equal", ""), old)[1] == []
    assert planned(tmp_path, written("other", 'TALK "Well."\n'), old)[1] == [("/greet Tom", Difference.DEFINITION)]


def test_an_answer_that_calls_a_removed_function_says_so(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        group.model.says(call("count_lines", text="a"), "One.")
        await group.say("Ann", "@Rollcall count the lines")

    file = tmp_path / "lines.yaml"
    file.write_text(LINES.replace("COMMAND", "lines").replace("PRINTED", "one"))
    old = {"sources": {"commands": [str(file)]}}
    record(tmp_path, talk, old)
    found, changed = planned(tmp_path, {}, old)
    assert changed == [("count the lines", Difference.REFUSED)]
    assert found.changes[0].new.unknown == ("count_lines",)
