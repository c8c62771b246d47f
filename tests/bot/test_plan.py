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
from function_calls.context import Kind
from services.refs import ChatRef, ReasonCode, Role
from services.store.chats import outcomes
from services.store.port import Row
from tests.bot.basic_group import write_scripts
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model

ALONE = Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=100_000, only_bot=True)
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
    assert found.changes[0].new.asks_model


def test_require_at_matters_where_no_slash_command_addresses_the_bot(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Ann", "/roll 2d6")
        await group.say("Ann", "/rolll 2d6")
        await group.say("Bob", "who won?")

    record(tmp_path, talk, platform=TestPlatform(ALONE))
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


async def varied(group: Group) -> None:
    """Two hundred messages: commands, questions, approvals, private and unaddressed ones, edits and deletions."""
    for number in range(20):
        await group.say("Ann", f"/roll {number + 1}d6")
        await group.say("Bob", f"line {number} for nobody")
        group.model.says(call("calculate", expression=f"{number}*7"), f"It is {number * 7}.")
        await group.say("Ann", f"@Rollcall what is {number}*7?")
        group.model.says(f"Hello number {number}.")
        await group.say("Bob", f"@Rollcall hello {number}")
        await group.say("Ann", "/calc")
        await group.say("Ann", f"{number}+1")
        await group.say("Bob", f"/rolll {number}")
        group.model.says(call("reminder_create", text=f"tea {number}", when="in 20 minutes"), "Set.")
        await group.say("Bob", f"@Rollcall remind me of tea {number} in 20 minutes")
        group.model.says(f"Hello Carl {number}.")
        await group.say("Carl", f"hello {number}", chat=PRIVATE, is_group=False, id=f"p{number}")
        await group.hear("Bob", f"gone {number}", id=f"g{number}")
        await group.hear("Bob", "", id=f"g{number}", kind=Kind.DELETE)


def test_equal_settings_change_nothing_for_two_hundred_varied_messages(tmp_path: Path) -> None:
    record(tmp_path, varied)
    found, changed = planned(tmp_path, {})
    assert changed == []
    assert found.compared + found.not_compared.total() == 200
    assert found.unlike_recorded == 0
    assert dict(found.not_compared) == {Obstacle.QUESTION: 20, Obstacle.NO_TEXT: 20}


def test_a_message_whose_text_was_deleted_or_that_answers_a_question_is_counted_as_not_compared(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Ann", "/calc")
        await group.say("Ann", "1+1")
        await group.say("Bob", "secret", id="x")
        await group.say("Bob", "", id="x", kind=Kind.DELETE)

    record(tmp_path, talk)
    found, changed = planned(tmp_path, {})
    assert (found.compared, changed) == (1, [])
    assert dict(found.not_compared) == {Obstacle.QUESTION: 1, Obstacle.NO_TEXT: 1}
    # Of a chat that is not served any more, the end is certain all the same.
    changes = planned(tmp_path, {"chats": {"allow": []}})[1]
    assert changes == [("/calc", Difference.SILENT), ("1+1", Difference.SILENT)]


def test_a_message_that_was_answered_with_the_one_before_it_is_not_compared(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        group.model.says("Both.")
        await group.hear("Ann", "@Rollcall one")
        await group.hear("Ann", "two")
        await group.clock.advance(10)
        await group.settle()

    gathers = {"limits": {"gather_seconds": 3}}
    record(tmp_path, talk, gathers)
    found, changed = planned(tmp_path, gathers, gathers)
    assert (found.compared, changed, dict(found.not_compared)) == (1, [], {Obstacle.MOMENT: 1})


def test_a_private_chat_is_private_and_an_unknown_command_with_a_mention_stays_one(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Carl", "/roll 2d6", chat=PRIVATE, is_group=False)
        await group.say("Ann", "@Rollcall /xyzzy")
        await group.say("Bob", "/xyzzy")

    record(tmp_path, talk)
    scopes = {"functions": {"roll_dice": {"scope": "group"}}}
    found, changed = planned(tmp_path, scopes)
    assert (changed, found.unlike_recorded) == ([("/roll 2d6", Difference.REFUSED)], 0)
    assert found.changes[0].new.detail == "functions.roll_dice.scope"


def test_triggers_and_stopped_words_count(home: Path) -> None:
    changes = {
        "chats": {"allow": ["*"], "settings": {"*": {"triggers": {"cake": "Yum."}}}},
        "filters": {"turn": [{"blacklist": {"words": ["hello"]}}, {"logging": {}}]},
    }
    found, changed = planned(home, changes)
    assert changed == [("who brings the cake?", Difference.ANSWERED), ("hello", Difference.REFUSED)]
    assert found.changes[1].new.detail == "filters.turn[0].blacklist"


def test_an_approval_that_a_function_needs_now_is_a_refusal(home: Path) -> None:
    found, changed = planned(home, {"functions": {"roll_dice": {"approval": "admin"}}})
    assert changed == [("/roll 2d6", Difference.REFUSED)]
    assert (found.changes[0].new.reason, found.changes[0].new.end) == (ReasonCode.ASKED, End.REFUSED)


def test_what_a_chat_has_set_for_itself_holds_under_both_settings_while_it_may_set_it(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await group.say("Boss", "/settings language zh", role=Role.ADMIN)
        await group.say("Ann", "/calc")

    record(tmp_path, talk)
    assert planned(tmp_path, {"language": "zh"})[1] == []
    fixed = {"chats": {"allow": ["*"], "changeable": []}}
    assert ("/calc", Difference.REPLY) in planned(tmp_path, fixed)[1]


def test_a_standing_approval_of_a_chat_counts(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        [asked] = await group.say("Ann", "/todo add buy milk")
        code = asked.rpartition("#")[2][:5]
        await group.say("Boss", f"always {code}", role=Role.ADMIN)
        assert await group.say("Ann", "/todo add buy milk")
        assert await group.say("Ann", "/todo add buy bread")

    asks = {"functions": {"todo_add": {"approval": "admin"}}}
    record(tmp_path, talk, asks)
    found, changed = planned(tmp_path, {}, asks)
    assert changed == [("/todo add buy bread", Difference.ANSWERED)]
    assert (found.compared, dict(found.not_compared)) == (3, {Obstacle.QUESTION: 1})


def test_only_the_last_messages_or_those_of_a_chat_are_compared(home: Path) -> None:
    closed = {"chats": {"allow": []}}
    assert planned(home, closed, count=1)[1] == [("hello", Difference.SILENT)]
    assert planned(home, closed, chat="test:bot:work")[0].compared == 0


def test_a_plan_reads_the_database_of_a_running_daemon_without_blocking_it_and_changes_nothing(tmp_path: Path) -> None:
    async def talk(group: Group) -> None:
        await everyday(group)
        work = asyncio.create_task(asyncio.to_thread(plan, settings_of(tmp_path), settings_of(tmp_path)))
        before = await stored(group)
        answered = 0
        while not work.done():
            answered += len(await group.say("Ann", "/roll 1d1"))
        assert ((await work).changes, answered > 0) == ([], True)
        assert (await stored(group))[-len(before) :] == before

    async def stored(group: Group) -> list[Row]:
        return await group.daemon.store.read(outcomes.conversation("test:bot:family", 1000))

    record(tmp_path, talk)


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


CASES = {
    "command": lambda group: group.say("Ann", "/calc 6*7"),
    "chat": lambda group: answered(group, "Hello Ann.", text="hello"),
    "model": lambda group: answered(group, call("calculate", expression="6*7"), "It is 42.", text="what is 6*7?"),
    "effect": lambda group: answered(
        group, call("todo_add", text="buy milk"), "It is on the list.", text="put buy milk on the to-do list"
    ),
}


async def answered(group: Group, *answers: Any, text: str) -> None:
    group.model.says(*answers)
    await group.say("Bob", "nobody knows")
    await group.say("Ann", f"@Rollcall {text}")


@pytest.mark.requirement("D61")
@pytest.mark.parametrize("kind", CASES)
def test_a_recorded_turn_is_replayed_as_a_case(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    record(tmp_path / "var", CASES[kind])
    settings = a_settings_file(tmp_path)
    last = command(capsys, "why", "--count", "1", "--config", settings).out
    written = command(capsys, "why", "--case", last.rpartition("[")[2].rstrip("]\n"), "--config", settings)
    assert (written.status, written.out.count("\n")) == (0, 1)
    case = tmp_path / "case.jsonl"
    case.write_text(written.out)
    replayed = command(capsys, "replay", case, "--config", settings)
    assert replayed.status == 0, (written.out, replayed.out)


def test_what_is_no_turn_becomes_no_case(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record(tmp_path / "var", lambda group: group.say("Bob", "nobody knows"))
    settings = a_settings_file(tmp_path)
    last = command(capsys, "why", "--config", settings).out.rpartition("[")[2].rstrip("]\n")
    silent = command(capsys, "why", "--case", last, "--config", settings)
    assert (silent.status, silent.out, silent.err) == (1, "", "the bot did not answer it\n")
    assert command(capsys, "why", "--case", "5", "--config", settings).err == "there is no message with the id 5\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Settings of a bot that ran, and a changed copy."""
    record(tmp_path / "var", everyday)
    new = tmp_path / "new.yaml"
    new.write_text('config_version: 1\nchats: {allow: ["*"]}\nfunctions: {roll_dice: {enabled: false}}\n')
    return a_settings_file(tmp_path, 'chats: {allow: ["*"]}\n'), new


def test_the_command_shows_each_difference_and_ends_in_one(
    capsys: pytest.CaptureFixture[str], files: tuple[Path, Path]
) -> None:
    current, new = files
    assert command(capsys, "plan", current, "--config", current)[:2] == (0, SAME)
    printed = command(capsys, "plan", new, "--config", current)
    assert (printed.status, printed.err) == (1, "")
    lines = printed.out.splitlines()
    assert "test:bot:family  Ann: '/roll 2d6'" in lines[0]
    assert [line.strip() for line in lines[1:4]] == [
        "refused now",
        """- answered (command: it was a command, and “roll_dice” answered it.); roll_dice {"dice":"2d6"}; """
        + "'(result not stored)'",
        "+ refused (refused: it was not allowed (settings: functions.roll_dice.enabled).); "
        + "'“/roll” is switched off in this chat.'",
    ]
    assert lines[4] == "4 compared: 3 same, 1 refused now"


SAME = """\
4 compared: 4 same
3 with an assumed role of the sender, since roles in networks are not stored
"""


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str], files: tuple[Path, Path]) -> None:
    current, new = files
    shown = command(
        capsys, "plan", new, "--json", "--count", "9", "--chat", "test:bot:family", "--config", current
    ).json
    [change] = shown.pop("changes")
    assert shown == {"compared": 4, "not_compared": {}, "unlike_recorded": 0, "assumed_roles": 3}
    assert (change["difference"], change["new"]["reason"]) == ("refused now", "refused")
    assert [one["arguments"] for one in change["old"]["calls"]] == ['{"dice":"2d6"}']


def test_settings_that_cannot_be_used_are_wrong_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    current, bad = a_settings_file(tmp_path), tmp_path / "bad.yaml"
    bad.write_text("config_version: 1\nlanguage: 7\n")
    assert command(capsys, "plan", bad, "--config", current).status == 2
    assert command(capsys, "plan", tmp_path / "missing.yaml", "--config", current).status == 2
    assert command(capsys, "plan", current, "--count", "0", "--config", current).status == 2
    nothing = command(capsys, "plan", current, "--config", current)
    assert (nothing.status, nothing.out) == (1, "")
    assert "there is no database" in nothing.err
