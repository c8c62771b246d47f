"""docs/basic.md: its commands, scripts, settings and conversations work as shown."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.testing import Group, a_group
from function_calls.basic.compiler import SESSION_VARIABLES
from function_calls.basic.keyword_modules._rows import MOST_UNASKED
from function_calls.basic.language.param_types import type_names
from function_calls.basic.run.session import session_variables
from services.refs import Role
from services.scripts.files import MOST_BYTES, MOST_ROWS
from services.scripts.tables import MOST_RESULTS, TableLimits
from services.web.http import WebClient
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.bot.test_mcp_questions import User, asking
from tests.config.files import settings_of
from tests.docs.documents import Block, Page
from tests.docs.terminal import Terminal
from tests.docs.test_readme import calls, says
from tests.fakes.builders import a_call, a_message
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.sources import ToldChanges
from tests.fakes.timers import pass_time
from tests.fakes.web_server import Page as WebPage
from tests.fakes.web_server import WebServer
from tests.harness.mcp_programs import texts
from tests.harness.smtp_server import SmtpServer

PAGE = Page("docs/basic.md")
SUN = "https://sun.example"
_FILE = re.compile(r"' ~/my-bot/scripts/(\S+)\n")
_SHOWN = re.compile(r"' → (.*)$", re.MULTILINE)
SCRIPTS = {named[1]: block.text for block in PAGE.of("basic") if (named := _FILE.match(block.text))}
TALKS = [block for block in PAGE.of("text") if block.text.startswith("Ann: ")]
SNIPPETS = [block for block in PAGE.of("basic") if not _FILE.match(block.text)]


def written(folder: Path, *names: str, sun: str = SUN) -> Path:
    """Write the scripts of the page, or some of them, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or SCRIPTS:
        (folder / name).write_text(SCRIPTS[name].replace(SUN, sun), encoding="utf-8")
    (folder / "prices.csv").write_text("name,price\ntea,2.50\ncake,3\n", encoding="utf-8")
    return folder


def exchanges(block: Block) -> list[tuple[str, list[str]]]:
    """Messages and the bot's answers in a conversation."""
    talk: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        who, _, said = line.partition(": ")
        if who == "Rollcall":
            talk[-1][1].append(said)
        elif who == "Ann":
            talk.append((said, []))
        else:
            talk[-1][1][-1] += f"\n{line}"
    return talk


@asynccontextmanager
async def a_group_of_the_page(folder: Path) -> AsyncIterator[Group]:
    """A group with all scripts of the page except the start script, with mail and a web page."""
    sunset = WebPage.json({"results": [{"sunset": "15:34"}]})
    async with WebServer({"/api": sunset}) as web, SmtpServer() as mail:
        given = {
            "sources": {"basic": [str(written(folder, *(SCRIPTS.keys() - {"start.bas"}), sun=web.url("")))]},
            "mail": {"host": "127.0.0.1", "port": mail.port, "security": "none", "sender": "bot@club.example",
                     "allowed": ["*@club.example"]},
        }  # fmt: skip
        async with a_group(settings=given, web=WebClient(allow_loopback=True)) as group:
            assert [str(one) for one in group.daemon.functions.faults] == []
            yield group


@pytest.mark.parametrize("block", TALKS, ids=[block.where for block in TALKS])
async def test_the_bot_says_what_the_page_shows(tmp_path: Path, block: Block) -> None:
    async with a_group_of_the_page(tmp_path) as group:
        group.model.says("An early and cosy evening.")
        for said, answers in exchanges(block):
            assert await group.say("Ann", said) == answers, said


def test_no_script_of_the_page_gives_cause_for_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    number = len(SCRIPTS)
    checked = command(capsys, "basic", "check", written(tmp_path))
    assert checked == (0, f"{number} scripts: none broken, no warnings\n", "")


@pytest.mark.parametrize("block", SNIPPETS, ids=[block.where for block in SNIPPETS])
async def test_the_lines_of_the_page_give_what_stands_behind_them(tmp_path: Path, block: Block) -> None:
    (tmp_path / "snippet.bas").write_text('DESCRIPTION "A snippet"\n' + block.text, encoding="utf-8")
    async with a_group(settings={"sources": {"basic": [str(tmp_path)]}}) as group:
        said = "\n".join(await group.say("Ann", "/snippet")).splitlines()
    shown = [line.strip() for line in _SHOWN.findall(block.text)]
    assert shown
    assert sorted(said) == sorted(shown)


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal with the page's settings in its home."""
    made = Terminal(tmp_path)
    (made.home / "my-bot").mkdir()
    (made.home / "my-bot" / "bot.yaml").write_text(PAGE.of("yaml", "Five minutes")[0].text, encoding="utf-8")
    return made


@pytest.mark.requirement("A1", "A49", "A51", "A52")
async def test_five_minutes_lead_from_nothing_to_a_function(terminal: Terminal) -> None:
    by_hand, by_command, in_words, broken = PAGE.of("console", "Five minutes")
    await asyncio.to_thread(terminal.follow, [by_hand, by_command])
    settings = {"ROLLCALL_CONFIG": str(terminal.home / "my-bot" / "bot.yaml")}
    model = [calls("hello", '{"who": "Dora"}'), says("I have greeted Dora.")]
    async with OpenAIServer(model) as provider:
        keys = {"OPENAI_API_KEY": "a-key", "OPENAI_BASE_URL": provider.base_url}
        await asyncio.to_thread(terminal.follow, [in_words], None, **settings, **keys)
    await asyncio.to_thread(terminal.follow, [broken], None, **settings)


@pytest.mark.requirement("A49", "A50", "A52", "A56", "A57")
def test_the_other_commands_of_the_page_show_what_it_says(terminal: Terminal) -> None:
    written(terminal.home / "my-bot" / "scripts", *(SCRIPTS.keys() - {"start.bas"}))
    others = [block for block in PAGE.of("console") if block.heading != "Five minutes"]
    settings = str(terminal.home / "my-bot" / "bot.yaml")
    terminal.follow(others, ROLLCALL_CONFIG=settings)


@pytest.mark.requirement("A29", "A63")
async def test_an_edit_is_live_with_the_next_message_and_a_broken_one_leaves_the_last(tmp_path: Path) -> None:
    file, changes = written(tmp_path, "rent.bas") / "rent.bas", ToldChanges()
    good = file.read_text()
    async with a_group(changes=changes, settings={"sources": {"basic": [str(tmp_path)]}}) as group:
        for text, said in (
            (good.replace("price = 80", "price = 90"), "3 days cost 270 euros."),
            (good.replace("END IF", "END OF"), "3 days cost 270 euros."),
            (good, "3 days cost 240 euros."),
        ):
            file.write_text(text)
            await changes.told_and_heard()
            assert await group.say("Ann", "/rent 3 no") == [said]


async def test_the_script_that_begins_a_chat_does_what_the_page_says(tmp_path: Path) -> None:
    folder = written(tmp_path, "start.bas", "rent.bas")
    async with a_group(settings={"sources": {"basic": [str(folder)]}}) as group:
        group.model.says("From 16:00 on.")
        assert await group.say("Ann", "@Rollcall when?") == ["Hello, I look after the boats here.", "From 16:00 on."]
        told = "\n".join(message.content for message in group.model.requests[0].messages)
        assert "You speak for the rowing club." in group.model.requests[0].messages[0].content
        assert "boathouse: The boathouse is open on Fridays" in told
        [hello] = [one for one in group.platform.sent if one.text.startswith("Hello")]
        assert [one.label for one in hello.choices] == ["Opening hours", "Rent the hall"]


async def test_a_script_runs_by_the_clock_once_an_admin_has_called_it(tmp_path: Path) -> None:
    folder = written(tmp_path, "tidy.bas")
    async with a_group(settings={"sources": {"basic": [str(folder)]}}) as group:
        assert await group.say("Olga", "/tidy", role=Role.ADMIN) == ["Cid cleans this week."]
        before = len(group.platform.sent)
        await pass_time(group, 8 * 24 * 3600, 1800)
        assert [one.text for one in group.platform.sent[before:]] == ["Cid cleans this week.", "Ann cleans this week."]


@pytest.mark.requirement("A37")
def test_every_variable_that_a_script_finds_is_known_when_it_is_checked() -> None:
    [said] = re.findall(r"^A script finds these variables.*?:$", PAGE.text, re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", said)) - {"id", "name"}
    found = session_variables(a_message(), a_call(), "default")
    assert named <= set(found)
    assert set(found) <= SESSION_VARIABLES


def test_the_settings_of_the_page_are_good(tmp_path: Path) -> None:
    for block in PAGE.of("yaml"):
        settings = settings_of(tmp_path, block.text)
        assert settings.sources.basic or settings.bots["default"].parameters, block.where


@pytest.mark.requirement("A27", "A28", "A32", "A35")
async def test_what_models_are_told_lies_in_the_work_folder_as_the_page_shows(tmp_path: Path) -> None:
    folder = written(tmp_path / "scripts", "rent.bas")
    settings = a_settings_file(tmp_path, f"sources: {{basic: [{folder}]}}\n")
    async with a_group(settings={"sources": {"basic": [str(folder)]}}, home=tmp_path / "var"):
        pass
    assert settings.is_file()
    work = tmp_path / "var" / "work" / "default.gbai" / "default.gbdialog"
    mcp, openai = (json.loads(block.text) for block in PAGE.of("json"))
    assert json.loads((work / "rent.mcp.json").read_text()) == mcp
    assert json.loads((work / "rent.tool.json").read_text()) == openai
    assert (work / "rent.bas").read_text() == SCRIPTS["rent.bas"]
    shutil.rmtree(work)


def test_the_limits_of_rows_are_those_of_the_program() -> None:
    [tables] = re.findall(r"^\*\*Tables\*\* .*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    [files] = re.findall(r"^\*\*CSV files\*\*.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    limits = TableLimits()
    tables, files = " ".join(tables.split()), " ".join(files.split())
    for said in (
        f"Without `LIMIT` it returns at most {MOST_UNASKED:,} rows",
        f"With `LIMIT` it returns at most {MOST_RESULTS:,};",
        f"A table holds {limits.rows:,} rows and {limits.table_bytes // 10**6} MB, ",
        f"a row {limits.row_bytes // 1000} kB, and a chat has {limits.tables} tables.",
    ):
        assert said in tables
    assert f"at most {MOST_ROWS:,} rows and {MOST_BYTES // 10**6} MB" in files


def test_the_table_of_types_has_them_all() -> None:
    [table] = re.findall(r"^\| types \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(type_names())


async def test_over_mcp_the_user_of_a_client_answers_a_script_but_can_send_no_file(tmp_path: Path) -> None:
    folder = written(tmp_path, "booking.bas")
    (folder / "photo.bas").write_text(
        'DESCRIPTION "Take a photo"\nTALK "Which one?"\nHEAR shot AS FILE\nTALK "Thanks"\n'
    )
    user = User("4", "outside", "tomorrow")
    async with asking([], user, settings={"sources": {"basic": [str(folder)]}}) as (_, client):
        booked = await client.call_tool("booking", {})
        listed = {tool.name: tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools}
        user.answers = ["this"] * 4
        photo = await client.call_tool("photo", {})
    assert user.messages[:3] == ["How many are you?", "Inside or outside?", "On which day?"]
    assert texts(booked)[-1].startswith("4 guests outside on ")
    assert photo.is_error
    # More than `functions --format mcp` prints, and without the script's keywords.
    assert listed["booking"]["title"] == "Booking"
    assert listed["booking"]["annotations"]["readOnlyHint"] is False
    assert "keywords" not in listed["booking"]
