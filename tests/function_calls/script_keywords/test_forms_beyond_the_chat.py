"""Keywords that access external services: their forms, and their permissions in a whole daemon."""

from __future__ import annotations

from typing import Any

import pytest

from bot.testing import a_group
from config.sections.basic import BasicWebSettings
from config.sections.mail import MailSettings
from function_calls.basic.codes import RunError
from function_calls.basic.keyword_modules import calls, files, mail, web
from function_calls.basic.language.tokens import Cursor
from function_calls.basic.nodes import Literal
from function_calls.basic.run.keyword_table import KeywordTable
from function_calls.basic.run.model import ModelOfScripts
from function_calls.basic.run.web import WebOfScripts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import ActiveFunctions
from function_calls.spec import FunctionResult, Touch
from services.chats.members import KnownMembers
from services.clock import Clock, VirtualClock
from services.llm.model import ModelAnswer, Usage
from services.mail import Mailer
from services.refs import Effect, ErrorCode
from services.sandbox.workspace import Workspaces
from services.scripts.files import LocalScriptFiles
from services.scripts.memory import ScriptMemory
from services.web.http import WebClient
from tests.fakes.script_runs import a_run
from tests.function_calls.basic.small_reader import SmallExpressions, small_tokens


class NotAsked:
    """A service that must not be used."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> KeywordTable:
    clock = VirtualClock()
    services: dict[type, Any] = {
        Clock: clock,
        ActiveFunctions: NotAsked(),
        WebOfScripts: WebOfScripts(WebClient(), BasicWebSettings(), clock),
        ModelOfScripts: ModelOfScripts(NotAsked(), clock),  # type: ignore[arg-type]
        Mailer: Mailer(MailSettings(), clock),
        Workspaces: Workspaces(tmp_path_factory.mktemp("chats")),
        **dict.fromkeys((KnownMembers, LocalScriptFiles, ScriptMemory), NotAsked()),
    }
    return KeywordTable([web, mail, files, calls], services)


@pytest.mark.parametrize(
    ("written", "keyword", "given"),
    [
        ('GET "https://a.example"', "GET", {"url": "https://a.example"}),
        ('GET("https://a.example")', "GET", {"url": "https://a.example"}),
        ('POST "https://a.example", data', "POST", {"url": "https://a.example", "data": ...}),
        ('POST "https://a.example"', "POST", {"url": "https://a.example"}),
        ('SET HEADER "X-Api-Key" = "k"', "SET HEADER", {"name": "X-Api-Key", "value": "k"}),
        ('SET HEADER "X-Api-Key", "k"', "SET HEADER", {"name": "X-Api-Key", "value": "k"}),
        ('SET HEADER Accept = "text/csv"', "SET HEADER", {"name": "Accept", "value": "text/csv"}),
        ("CLEAR HEADERS", "CLEAR HEADERS", {}),
        ('GRAPHQL "https://a.example", q, v', "GRAPHQL", {"url": "https://a.example", "query": ..., "variables": ...}),
        ('LLM "Hi"', "LLM", {"prompt": "Hi"}),
        ('LLM "In short:", page', "LLM", {"prompt": "In short:", "about": ...}),
        ("REWRITE draft", "REWRITE", {"text": ...}),
        ('SEND MAIL whom, "Hi", body', "SEND MAIL", {"to": ..., "subject": "Hi", "body": ...}),
        ('SEND EMAIL whom, "Hi", body, f', "SEND EMAIL", {"to": ..., "subject": "Hi", "body": ..., "files": ...}),
        ("BEGIN MAIL whom\n«Subject: x\n»", "BEGIN MAIL", {"to": ..., "letter": "Subject: x\n"}),
        ('BEGIN MAIL "a@b.example" «Subject: x\n»', "BEGIN MAIL", {"to": "a@b.example", "letter": "Subject: x\n"}),
        ('READ "a.txt"', "READ", {"path": "a.txt"}),
        ('WRITE "a.txt", text', "WRITE", {"path": "a.txt", "content": ...}),
        ('COPY "a" TO "b"', "COPY", {"source": "a", "target": "b"}),
        ('MOVE "a", "b"', "MOVE", {"source": "a", "target": "b"}),
        ('DELETE FILE "a"', "DELETE FILE", {"path": "a"}),
        ("LIST FILES", "LIST FILES", {}),
        ('LIST FILES "in"', "LIST FILES", {"folder": "in"}),
        ('DOWNLOAD link, "a.csv"', "DOWNLOAD", {"url": ..., "path": "a.csv"}),
        ("DOWNLOAD link", "DOWNLOAD", {"url": ...}),
        ('SEND FILE "a.csv", "Here"', "SEND FILE", {"file": "a.csv", "caption": "Here"}),
        ('USE MCP "time", "now", args', "USE MCP", {"server": "time", "tool": "now", "arguments": ...}),
    ],
)
def test_each_is_written_as_its_documents_say(
    table: KeywordTable, written: str, keyword: str, given: dict[str, Any]
) -> None:
    cursor = Cursor(small_tokens(written))
    matched = table.forms.match(cursor, SmallExpressions(table.forms), inside=False)
    assert matched is not None
    assert cursor.is_line_end
    assert matched.keyword_call.keyword == keyword
    read = {name: one.value if isinstance(one, Literal) else ... for name, one in matched.keyword_call.arguments}
    assert read == given


def test_a_script_is_as_strong_as_the_strongest_of_its_keywords(table: KeywordTable) -> None:
    assert table.effect_of(["GET", "LLM"]) is Effect.READ
    assert table.touches_of(["GET", "LLM"]) == {Touch.READS_OUTSIDE, Touch.SENDS_OUT}
    assert table.effect_of(["GET", "SEND MAIL"]) is Effect.ONCE
    assert Touch.REACHES_OUT in table.touches_of(["GET", "SEND MAIL"])


@tool_function(name="haiku", commands=("haiku",), effect="read")
async def haiku(context: MessageContext, *, model: ModelOfScripts, call: Call) -> FunctionResult:
    """Ask the model as a script does."""
    try:
        return FunctionResult.say(await model.ask(a_run(context, call=call), "Write a haiku"))
    except RunError as fault:
        return FunctionResult.fail(ErrorCode.FAILED, fault.detail)


async def test_whoever_calls_a_script_pays_for_its_questions_to_the_model() -> None:
    async with a_group([haiku], settings={"budgets": {"member": {"requests": 1}}}) as group:
        group.model.says(ModelAnswer("Five, seven, five", usage=Usage(10, 5)), ModelAnswer("Again"))
        assert await group.say("Ann", "/haiku") == ["Five, seven, five"]
        assert await group.say("Ann", "/haiku") == ["The share of my language model for today is used up."]
        assert await group.say("Bob", "/haiku") == ["Again"]
    [first, _] = group.model.requests
    assert first.offer is None
    assert first.tool_choice == "none"


async def test_the_chat_pays_as_well() -> None:
    async with a_group([haiku], settings={"budgets": {"chat": {"requests": 1}}}) as group:
        group.model.says(ModelAnswer("One", usage=Usage(10, 5)))
        assert await group.say("Ann", "/haiku") == ["One"]
        assert await group.say("Bob", "/haiku") == ["The share of my language model for today is used up."]


@tool_function(name="reach", commands=("reach",), effect="read")
async def reach(context: MessageContext, *, web: WebOfScripts, call: Call) -> FunctionResult:
    """Ask this machine as a script does."""
    try:
        return FunctionResult.say(str(await web.get(a_run(context, call=call), "http://127.0.0.1:8080/")))
    except RunError as fault:
        return FunctionResult.fail(ErrorCode.FAILED, f"{fault.code}: {fault.detail}")


async def test_no_script_reaches_the_daemons_own_network() -> None:
    async with a_group([reach]) as group:
        assert await group.say("Ann", "/reach") == ["not_allowed: Scripts aren't allowed to reach 127.0.0.1."]
