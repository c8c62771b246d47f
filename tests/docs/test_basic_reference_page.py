"""docs/basic-reference.md is up to date, and its examples have the stated results."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.testing import Group, a_group, call
from function_calls.basic.functions import FUNCTIONS
from services.clock import VirtualClock
from services.refs import ChatRef
from services.web.http import WebClient
from tests import basic_reference_page
from tests.basic_reference_page import faults, keywords, read_examples
from tests.docs.documents import Block, Page
from tests.fakes.functions import Recorder
from tests.fakes.web_server import Page as WebPage
from tests.fakes.web_server import WebServer
from tests.harness.smtp_server import SmtpServer

PAGE = Page("docs/basic-reference.md")
SITE = "https://club.example"
MODEL_SAYS = "[the model's answer]"
ZONE = {"zone": {"type": "string", "description": "Where"}}
_PAUSE = re.compile(r"^WAIT (\d+)$", re.MULTILINE)
_HEARD = re.compile(r"' ([→←]) (.*)$", re.MULTILINE)


def test_the_page_is_up_to_date() -> None:
    assert basic_reference_page.main([]) == 0, "run: python -m tests.basic_reference_page --write"


def test_a_keyword_without_an_example_is_named() -> None:
    examples = read_examples()
    del examples["keywords"]["TALK"]
    examples["keywords"]["SHOUT"] = 'SHOUT "hi"'
    assert faults(examples) == [
        "docs/basic-reference.yaml has no example of TALK",
        "docs/basic-reference.yaml has an example of SHOUT, which is no keyword",
    ]


def test_every_keyword_uses_itself_in_its_example() -> None:
    examples = read_examples()["keywords"]
    assert [
        one.name
        for one in keywords()
        if not any(name in examples[one.name] for name in (one.name, one.name.replace("CREATE", "NEW")))
    ] == []


@asynccontextmanager
async def a_group_with_everything(folder: Path) -> AsyncIterator[tuple[Group, str]]:
    """A group with the examples as scripts, named by their lines, and with all services for keywords; and the URL of
    the web site that they use."""
    pages = {
        "/menu.txt": WebPage(b"soup", headers={"Content-Type": "text/plain"}),
        "/sun.json": WebPage.json({"sets": "15:34"}),
        "/orders": WebPage.json({"number": 7}),
        "/graphql": WebPage.json({"data": {"orders": [{"number": 7}]}}),
    }
    functions = [
        Recorder("sonar", {}, activation="on_request", gives="ping").spec,
        Recorder("mcp__time__now", ZONE, gives={"at": "12:00"}).spec,
    ]
    async with WebServer(pages) as web, SmtpServer() as mail:
        site = web.url("")
        (folder / "welcome.txt").write_text("Hello {{name}}!", encoding="utf-8")
        for block in PAGE.of("basic"):
            header = "" if "DESCRIPTION" in block.text else 'DESCRIPTION "An example"\n'
            (folder / f"{name_of(block)}.bas").write_text(header + block.text.replace(SITE, site), encoding="utf-8")
        (folder / "club").mkdir()
        (folder / "club" / "rules.md").write_text("# Boats\n\nThe kayak key hangs by the door.\n", encoding="utf-8")
        settings = {
            "knowledge": {"bases": {"club": {"path": str(folder / "club"), "on_request": True}}},
            "sources": {"basic": [{"path": str(folder), "may_call": ["mcp__time__*"]}]},
            "mail": {"host": "127.0.0.1", "port": mail.port, "security": "none", "sender": "bot@club.example",
                     "allowed": ["*"]},
            "basic": {"web": {"post_to": ["*"]}},
        }  # fmt: skip
        async with a_group(functions, settings=settings, web=WebClient(allow_loopback=True)) as group:
            assert [str(one) for one in group.daemon.functions.faults if one.severity == "error"] == []
            yield group, site


def name_of(block: Block) -> str:
    return f"line_{block.line}"


async def test_every_example_says_what_stands_behind_it(tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    async with a_group_with_everything(tmp_path) as (group, site):
        for block in PAGE.of("basic"):
            shown = [text.strip() for arrow, text in _HEARD.findall(block.text) if arrow == "→"]
            if MODEL_SAYS in shown:
                group.model.says(MODEL_SAYS)
            said = [line.replace(site, SITE) for line in await said_in(group, block)]
            if said != shown and (shown or any("stopped" in line for line in said)):
                wrong[f"{block.where} {block.heading}"] = said
    assert wrong == {}


async def said_in(group: Group, block: Block) -> list[str]:
    """Messages of the script, whose questions are answered as in its notes. Each example runs in a separate chat, so
    that none depends on data of another."""
    chat, command = ChatRef("test", "bot", name_of(block)), f"/{name_of(block)}"
    running = asyncio.create_task(group.say("Ann", command, chat=chat))
    for seconds in map(float, _PAUSE.findall(block.text)):
        # The clock must not advance before the script has reached the wait.
        while not running.done() and not group.clock.is_slept(seconds):  # noqa: ASYNC110  # it is not told
            await asyncio.sleep(0)
        await group.clock.advance(seconds)
    said = await running
    for arrow, answer in _HEARD.findall(block.text):
        if arrow == "←":
            said += await group.say("Ann", answer.strip(), chat=chat)
    return "\n".join(said).splitlines()


@pytest.mark.requirement("B27")
async def test_the_examples_of_functions_give_in_a_script_what_the_page_says(tmp_path: Path) -> None:
    values = ",\n".join(one.example for one in FUNCTIONS.values())
    (tmp_path / "all.bas").write_text(f'DESCRIPTION "All functions"\nRETURN [\n{values}\n]\n', encoding="utf-8")
    settings = {
        "sources": {"basic": [str(tmp_path)]},
        "timezone": "Europe/Berlin",
        "router": {"result_chars": 100_000},
    }
    clock = VirtualClock(datetime(2026, 11, 20, 21, 15, tzinfo=UTC))
    async with a_group(settings=settings, clock=clock) as group:
        group.model.says(call("all"), "Done.")
        await group.say("Ann", "@Rollcall all of them")
        told = json.loads(group.model.requests[-1].messages[-1].content)["result"]
    given = {
        one.usage: (value, one.gives) for one, value in zip(FUNCTIONS.values(), told, strict=True)
    }  # fmt: skip
    assert {usage: both for usage, both in given.items() if both[0] != both[1]} == {}
