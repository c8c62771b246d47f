"""For every source of functions and every entry point: the same checks, refusals and records."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp_types import Tool
from sqlalchemy import select

from bot.direct_calls import Caller
from bot.testing import FAMILY, PLATFORM, call
from function_calls.call import Path as Way
from function_calls.declaration import parameters_of
from function_calls.schema.mappings import spec_from_mapping
from services.refs import MemberRef, Role
from services.store.port import Statement
from services.store.turns.ledger import LEDGER
from tests.harness.mcp_programs import TOKEN, Programs, programs
from tests.harness.mcp_sdk import Played, over_http
from tests.harness.mcp_servers import Script, a_tool, function, until

EVERY_RUN = Statement("every run", select(LEDGER).order_by(LEDGER.c.turn_id))
PARAMETERS = {
    "text": {"type": "string", "description": "What to say", "required": True, "maxLength": 20},
    "times": {"type": "integer", "description": "How often", "default": 1},
}
MARKED = """
from pydantic import BaseModel, Field
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

class Said(BaseModel):
    text: str = Field(description="What to say", max_length=20)
    times: int = Field(default=1, description="How often")

@tool_function(name="echo", description="Say it again.", commands=("echo",), effect="once", roles="moderator")
async def echo(context: MessageContext, args: Said) -> str:
    return " ".join([args.text] * args.times)
"""
TOOLS = f"""
def echo(args):
    return " ".join([args["text"]] * args["times"])

def tools():
    return [{{"name": "echo", "description": "Say it again.", "handler": echo, "parameters": {PARAMETERS!r},
              "commands": ["echo"], "effect": "once", "roles": "moderator"}}]
"""

KEYWORDS = """
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword

@basic_keyword("STAMP {text}", effect="once", touches=("stays_here",))
async def stamp(run: ScriptRun, text: Value) -> Value:
    return text
"""
SCRIPT = """\
PARAM text AS string LIKE "hi" DESCRIPTION "What to say"
PARAM times AS integer LIKE 2 DESCRIPTION "How often" DEFAULT 1
DESCRIPTION "Say it again."
said = text
FOR i = 2 TO times
    said = said + " " + text
NEXT i
STAMP said
TALK said
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A source of the function."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    functions: Sequence[object] = ()
    name: str = "echo"
    runs_beside: Callable[[], AbstractAsyncContextManager[Mapping[str, Any]]] | None = None
    """Context in which the source works; yields its settings."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Mapping[str, Any]]:
        """Its settings, while its context is active."""
        if self.runs_beside is None:
            yield self.settings
            return
        async with self.runs_beside() as settings:
            yield {**self.settings, **settings}


def a_file(folder: Path, text: str) -> Source:
    file = folder / "tools.py"
    file.write_text(text, encoding="utf-8")
    return Source({"sources": {"python": [str(file)]}})


def a_mapping(folder: Path) -> Source:
    def echo(args: Mapping[str, Any]) -> str:
        return " ".join([args["text"]] * args["times"])

    definition = {
        "name": "echo",
        "description": "Say it again.",
        "handler": echo,
        "parameters": PARAMETERS,
        "commands": ["echo"],
        "effect": "once",
        "roles": "moderator",
    }
    return Source(functions=[spec_from_mapping(definition)])


def a_package(folder: Path) -> Source:
    """An installed module, enabled by name."""
    package = folder / "installed" / "echoing"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MARKED, encoding="utf-8")
    return Source({"sources": {"python": [str(package)]}})


def a_command_tool(folder: Path, steps: Sequence[object]) -> Source:
    file = folder / "tools.yaml"
    tool = {
        "name": "echo",
        "description": "Say it again.",
        "parameters": PARAMETERS,
        "commands": ["echo"],
        "roles": "moderator",
        "touches": ["stays_here"],
        "cmds": steps,
        "output": {"success": "${output}"},
    }
    file.write_text(json.dumps({"tools": [tool]}), encoding="utf-8")
    return Source({"sources": {"commands": [str(file)]}})


def a_command_with_callable(folder: Path) -> Source:
    text = "def again(run, said):\n    return ' '.join([said] * run.request.arguments['times'])\n"
    (folder / "again.py").write_text(text, encoding="utf-8")
    return a_command_tool(folder, [["printf", "%s", "${text}"], {"python": "./again.py:again"}])


def a_server_of_tools(folder: Path) -> Source:
    schema = parameters_of(PARAMETERS)
    script = Script(folder, a_tool("echo", given="hi hi", inputSchema=schema))
    own = {"commands": ["echo"], "roles": "moderator"}
    return Source({"mcp": {"servers": [script.settings(tools={"echo": own})]}}, name="mcp__one__echo")


def a_script(folder: Path) -> Source:
    """The settings decide who may call a script."""
    keywords, script = folder / "keywords.py", folder / "scripts" / "echo.bas"
    keywords.write_text(KEYWORDS, encoding="utf-8")
    script.parent.mkdir()
    script.write_text(SCRIPT, encoding="utf-8")
    sources = {"basic": [str(script.parent)], "basic_keywords": [str(keywords)]}
    return Source({"sources": sources, "functions": {"echo": {"roles": "moderator"}}})


def a_server_over_http(folder: Path) -> Source:
    played = Played()
    played.says = "hi hi"
    schema = parameters_of(PARAMETERS)
    played.tools = [Tool(name="echo", description="Say it again.", input_schema=schema)]

    @asynccontextmanager
    async def served() -> AsyncIterator[Mapping[str, Any]]:
        async with over_http(played) as (url, _):
            own = {"commands": ["echo"], "roles": "moderator"}
            yield {"mcp": {"servers": [{"name": "web", "url": url, "tools": {"echo": own}}]}}

    return Source(name="mcp__web__echo", runs_beside=served)


SOURCES: dict[str, Callable[[Path], Source]] = {
    "a marked function in a file": lambda folder: a_file(folder, MARKED),
    "a file with tools()": lambda folder: a_file(folder, TOOLS),
    "a package": a_package,
    "a mapping": a_mapping,
    "a command": lambda folder: a_command_tool(folder, [["printf", "%s %s", "${text}", "${text}"]]),
    "a command with a callable": a_command_with_callable,
    "a server of tools": a_server_of_tools,
    "a script": a_script,
    "a server of tools over HTTP": a_server_over_http,
}


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of call and its outcome."""

    arguments: Mapping[str, Any] = field(default_factory=lambda: {"text": "hi", "times": 2})
    settings: Callable[[str], Mapping[str, Any]] = lambda name: {}
    role: Role = Role.MODERATOR
    ledger: str = ""
    """Code of the ledger row; empty if nothing ran."""
    outcomes: Sequence[str] = ()
    """Outcomes in the call log."""


CASES = {
    "it runs": Case(ledger="ok", outcomes=["ok"]),
    "a number comes as text": Case({"text": "hi", "times": "2"}, ledger="ok", outcomes=["ok"]),
    "what may be left out is": Case({"text": "hi"}, ledger="ok", outcomes=["ok"]),
    "a number is none": Case({"text": "hi", "times": "many"}, outcomes=["bad_arguments"]),
    "a text is too long": Case({"text": "x" * 21}, outcomes=["bad_arguments"]),
    "what is needed is missing": Case({}, outcomes=["missing_arguments"]),
    "the role is too weak": Case(role=Role.MEMBER, outcomes=["refused"]),
    "it is switched off": Case(settings=lambda name: {"functions": {name: {"enabled": False}}}, outcomes=["refused"]),
    "the scope is another": Case(
        settings=lambda name: {"functions": {name: {"scope": "private"}}}, outcomes=["refused"]
    ),
    "the share of the day is used up": Case(
        settings=lambda name: {"budgets": {"member": {"units": 1}, "functions": {name: 2}}}, outcomes=["refused"]
    ),
    "somebody else has to allow it": Case(settings=lambda name: {"functions": {name: {"approval": "admin"}}}),
}
CANNOT_SAY = {"a script": {"a text is too long"}}
"""Cases that a source's format cannot express."""


async def by_command(served: Programs, name: str, case: Case) -> None:
    line = " ".join(f"{key}={value}" for key, value in case.arguments.items())
    await served.group.say("Ann", f"/echo {line}", role=case.role)


async def by_model(served: Programs, name: str, case: Case) -> None:
    served.group.model.says(call(name, **case.arguments), "Well.", "Well.")
    words = " ".join(map(str, (name, *case.arguments.values())))
    await served.group.say("Ben", f"@Rollcall please {words}", role=case.role)


async def by_program(served: Programs, name: str, case: Case) -> None:
    await served.call(name, case.arguments)


async def by_hand(served: Programs, name: str, case: Case) -> None:
    member = MemberRef(PLATFORM, "bot", "operator")
    caller = Caller(member, "operator", case.role, FAMILY, is_group=True, path=Way.CLI)
    await served.group.daemon.direct_calls.call(caller, name, case.arguments)


WAYS: dict[str, Callable[[Programs, str, Case], Awaitable[None]]] = {
    "command": by_command,
    "model": by_model,
    "mcp": by_program,
    "cli": by_hand,
}


@dataclass(frozen=True, slots=True)
class Left:
    """Records of a call."""

    ledger: list[Any]
    log: list[Any]
    paths: set[str]


@asynccontextmanager
async def a_bot(source: Source, case: Case) -> AsyncIterator[Programs]:
    client = {"name": "editor", "token": TOKEN, "chat": FAMILY.key, "role": case.role.value}
    serve = {"serve": {"enabled": True, "clients": [client]}}
    async with source.running() as own:
        more = case.settings(source.name)
        functions = {**own.get("functions", {}).get(source.name, {}), **more.get("functions", {}).get(source.name, {})}
        settings = {**own, **more, "functions": {source.name: functions}, "mcp": {**serve, **own.get("mcp", {})}}
        async with programs(source.functions, settings=settings) as served:
            # The bot serves before a new MCP server has listed its tools.
            await until(served.group, lambda: function(served.group, source.name))
            assert served.group.daemon.functions.faults == ()
            yield served


class Records:
    """Reads new rows of the ledger and the call log."""

    def __init__(self, served: Programs) -> None:
        self._served = served
        self._rows = 0
        self._lines = 0

    async def fresh(self) -> Left:
        rows = await self._served.group.daemon.store.read(EVERY_RUN.query())
        for log in self._served.group.daemon.logs:
            log.flush()
        file = self._served.settings.logging.folder / "function_calls.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        new_rows, self._rows = rows[self._rows :], len(rows)
        new_lines, self._lines = lines[self._lines :], len(lines)
        columns = ("function", "chat", "arguments", "effect", "code")
        return Left(
            [tuple(row[column] for column in columns) for row in new_rows],
            [(one["function"], one["chat"], one["outcome"]) for one in new_lines],
            {one["path"] for one in new_lines},
        )


@pytest.mark.requirement("D6", "D29", "E35")
@pytest.mark.parametrize(
    ("source", "case"),
    [
        pytest.param(source, case, id=f"{name}-{how}")
        for name, source in SOURCES.items()
        for how, case in CASES.items()
        if how not in CANNOT_SAY.get(name, ())
    ],
)
async def test_every_way_to_every_function_is_checked_and_recorded_alike(
    tmp_path: Path, source: Callable[[Path], Source], case: Case
) -> None:
    made = source(tmp_path)
    async with a_bot(made, case) as served:
        records = Records(served)
        for way, go in WAYS.items():
            await go(served, made.name, case)
            left = await records.fresh()
            assert left.paths <= {way}, way
            assert [row[4] for row in left.ledger] == ([case.ledger] if case.ledger else []), way
            assert [outcome for _, _, outcome in left.log] == list(case.outcomes), way
            for function, chat, arguments, effect, _ in left.ledger:
                assert (function, chat, effect) == (made.name, FAMILY.key, "once"), way
                run_with = {"times": 1, **json.loads(arguments)}
                assert run_with == {"text": "hi", "times": int(case.arguments.get("times", 1))}, way


@pytest.mark.requirement("B9", "B24")
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
async def test_every_function_is_on_offer_to_models_and_programs_that_may_call_it(
    tmp_path: Path, source: Callable[[Path], Source]
) -> None:
    made = source(tmp_path)
    for role in (Role.MODERATOR, Role.MEMBER):
        case = Case(role=role)
        async with a_bot(made, case) as served:
            served.group.model.says("Hello.")
            await served.group.say("Ann", "@Rollcall echo something", role=role)
            offer = served.group.model.requests[0].offer
            assert offer is not None
            async with served.client() as client:
                listed = {tool.name for tool in (await client.list_tools()).tools}
            on_offer = {one.original for one in offer.functions}
        assert (made.name in listed, made.name in on_offer) == (role is Role.MODERATOR,) * 2, role
