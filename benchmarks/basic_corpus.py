"""Share of the BASIC tools of a folder that compile, and that run to their end with fake services.

python -m benchmarks.basic_corpus FOLDER [--compile-only]

A tool is a script with a PARAM or DESCRIPTION line. Fractions are printed for three definitions: unique contents,
distinct names of bot and script, and all paths. Each tool runs on a temporary database with the scripts of its folder,
with its own examples as arguments, in a chat whose member answers every question. Web, mail, model, templates and
functions of other services answer with fixed data; tables are empty."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from benchmarks.world import set_up_process
from bot.checks.scratch import scratch_daemon
from bot.checks.script_trial import Ended, Said, ScriptTrial, Trying
from bot.daemon import Daemon
from bot.overrides import Overrides
from bot.registration.basic_scripts import compiler_of, keyword_modules, spellings_of
from config.settings import Settings
from function_calls.basic import STOPPED_AT, BasicCompiler
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.schema.definition import build_spec, schema_arguments
from function_calls.spec import FunctionResult, FunctionSpec
from services.clock import SystemClock
from services.llm.model import ModelAnswer, ModelRequest
from services.refs import ChatRef, JsonObject, JsonValue, MemberRef, Role
from services.scripts.memory import ScriptMemory, of_member_in
from services.web.http import WebClient
from tests.fakes.sources import Written
from tests.harness.smtp_server import SmtpServer

_MEMBER = MemberRef("cli", "main", "ann")
_TOOL = re.compile(r"^\s*(PARAM|DESCRIPTION)\s", re.MULTILINE)
_ANSWERS = ("Ann", "1", "2027-03-01", "ann@example.com", "yes")
"""Answers to a question without choices, in turn; one of them fits each kind."""
_MOST_ANSWERS = 60
_RUN_SECONDS = 60.0
_EXAMPLES: Mapping[str, JsonValue] = {"string": "example", "number": 1.5, "integer": 1, "boolean": True}
_FORMATS: Mapping[str, JsonValue] = {
    "date": "2027-03-01", "date-time": "2027-03-01T09:00", "time": "09:00", "email": "ann@example.com",
    "uri": "https://example.com",
}  # fmt: skip


@dataclass(slots=True)
class Tool:
    """A unique script with all its copies."""

    paths: list[Path]
    errors: list[str] = field(default_factory=list)
    """`file:line code message` of each reason why it does not compile."""
    stopped: list[str] = field(default_factory=list)
    """The same for each of its functions that does not run to its end."""
    has_run: bool = False

    @property
    def path(self) -> Path:
        """The first copy."""
        return self.paths[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report. Returns 0, or 2 if the folder has no tools."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--compile-only", action="store_true", help="do not run the tools")
    options = parser.parse_args(arguments)
    tools = tools_of(options.folder)
    if not tools:
        print(f"{options.folder}: no script has a PARAM or DESCRIPTION", file=sys.stderr)
        return 2
    set_up_process()
    settings = Settings()
    compile_tools(tools, compiler_of(settings.basic, spellings_of(keyword_modules(settings))))
    if not options.compile_only:
        asyncio.run(run_tools([tool for tool in tools if not tool.errors]))
    print("\n".join(report(tools, options.folder, ran=not options.compile_only)))
    return 0


def tools_of(folder: Path) -> list[Tool]:
    """The tools below `folder`, sorted by path; scripts with the same content are one tool."""
    found: dict[str, Tool] = {}
    for path in sorted(folder.rglob("*.bas")):
        content = path.read_bytes()
        if _TOOL.search(content.decode("utf-8", "replace")):
            found.setdefault(hashlib.sha256(content).hexdigest(), Tool([])).paths.append(path)
    return list(found.values())


def compile_tools(tools: Iterable[Tool], compiler: BasicCompiler) -> None:
    """Set the `errors` of each tool."""
    for tool in tools:
        result = compiler.compile_text(tool.path.read_bytes(), str(tool.path), name=tool.path.stem)
        tool.errors = [f"{one.file}:{one.line} {one.code} {one.message}" for one in result.errors]


async def run_tools(tools: Sequence[Tool]) -> None:
    """Set `stopped` and `has_run` of each tool, and print the progress to the error output."""
    async with SmtpServer() as mail:
        for number, tool in enumerate(tools, 1):
            print(f"{number}/{len(tools)} {tool.path}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix="rollcall-corpus-") as folder:
                copied = Path(folder) / "scripts"
                shutil.copytree(tool.path.parent, copied)
                file = copied / tool.path.name
                await _run(tool, file, _settings(copied, mail.port))
                if "functions.taken" in "".join(tool.stopped):
                    # A built-in function has this name.
                    await _run(tool, file.rename(copied / f"own_{file.name}"), _settings(copied, mail.port))


def _settings(folder: Path, mail_port: int) -> Settings:
    return Settings.model_validate(
        {
            "sources": {"basic": [{"path": str(folder), "may_call": ["*"]}]},
            "chats": {"allow": ["*"]},
            "bots": {"default": {"parameters": {"admin": "admin@example.com", "useremail": "ann@example.com"}}},
            "basic": {"web": {"post_to": ["*"]}, "output_chars": 100_000},
            "mail": {
                "host": "127.0.0.1", "port": mail_port, "security": "none", "sender": "bot@example.com",
                "allowed": ["*"], "per_hour": 1000,
            },
        }
    )  # fmt: skip


async def _run(tool: Tool, file: Path, settings: Settings) -> None:
    """Run each function of the script, with other data from the web if it stops."""
    lines, clock = file.read_text(encoding="utf-8", errors="replace").splitlines(), SystemClock()
    _write_templates(file, lines)
    web = _FixedWeb()
    called = _services("\n".join(lines))
    stopped: dict[str, str] = {}
    overrides = Overrides(
        clock=clock,
        web=WebClient(resolve=_resolve, transport=lambda: web),
        model=_FixedModel(),
        sources=lambda services: [Written("services", *called)] if called else [],
    )
    async with scratch_daemon(settings, overrides) as daemon:
        starts = {}
        for spec in daemon.registry.specs:
            path, _, line = spec.origin.source.rpartition(":")
            if Path(path).name == file.name:
                starts[spec.name] = (spec, int(line) - 1)
        if not starts:
            stopped = {"": "; ".join(map(str, daemon.functions.faults))}
        for name, (spec, start) in starts.items():
            end = min((other for _, other in starts.values() if other > start), default=len(lines))
            unit = "\n".join(lines[start:end] if len(starts) > 1 else lines)
            await ScriptMemory(daemon.store, clock).put(
                of_member_in(_MEMBER, ChatRef("cli", "main", name)), "session.user_email", "ann@example.com",
                from_outside=False, seconds=None,
            )  # fmt: skip
            for web.answer in answers_for(unit):
                where = await _stopped_at(daemon, clock, spec, unit)
                stopped[name] = stopped.get(name, where) if where else ""
                if not where:
                    break
    tool.stopped = [f"{tool.path}: {name}: {where}" for name, where in stopped.items() if where]
    tool.has_run = not tool.stopped


def _services(script: str) -> list[FunctionSpec]:
    """A function for each path of a service that the script calls: `CALL "/crm/list"` is `crm_list`."""
    names = {"_".join(path.strip("/").split("/")) for path in re.findall(r'\bCALL\s+"(/\w+/[\w/]+)"', script)}
    parameters: JsonObject = {"type": "object", "properties": {name: {} for name in "abcdef"}}
    schema, arguments = schema_arguments("service", parameters)

    async def serve(context: MessageContext, args: JsonObject, call: Call) -> FunctionResult:
        return FunctionResult(data=answers_for(script)[1])

    return [
        build_spec(
            name=name, description="A service", handler=serve, arguments=arguments, parameters=schema, options={}
        )
        for name in names
    ]


def _write_templates(file: Path, lines: Iterable[str]) -> None:
    """Write a file for each name that a SEND TEMPLATE or FILL, or a parameter of such a name, may mean."""
    named = [line for line in lines if re.search("template", line, re.IGNORECASE) or "FILL" in line]
    for name in re.findall(r"[\"']([\w.-]+)[\"']", "\n".join(named)):
        if not (file.parent / name).exists():
            (file.parent / name).write_text("Subject: example\n\nexample", encoding="utf-8")


async def _stopped_at(daemon: Daemon, clock: SystemClock, spec: FunctionSpec, unit: str) -> str:
    """Where and why the function stopped; empty if it ran to its end."""
    try:
        result = await asyncio.wait_for(_result_of(daemon, clock, spec, unit), _RUN_SECONDS)
    except TimeoutError:
        return f"more than {_RUN_SECONDS:.0f} seconds"
    if result.error is not None:
        return str(result.metadata.get(STOPPED_AT) or result.error.text)
    return "" if result.question is None else "it asks more questions than it gets answers"


async def _result_of(daemon: Daemon, clock: SystemClock, spec: FunctionSpec, unit: str) -> FunctionResult:
    chat = ChatRef("cli", "main", spec.name)
    arguments = arguments_of(spec.parameters, unit)
    # A phone number among the arguments is that of the member, so that messages to it arrive.
    phone = next((str(value) for name, value in arguments.items() if "phone" in name.lower()), "Ann")
    trial = ScriptTrial(daemon, clock, Trying(_MEMBER, phone, Role.OWNER, chat))
    answers = itertools.cycle(_ANSWERS)
    choices: list[str] = []
    count = 0

    async def next_answer() -> str | None:
        nonlocal count
        count += 1
        if count > _MOST_ANSWERS:
            return None
        return choices[-1] if choices else next(answers)

    async for step in trial.steps(spec, arguments, next_answer):
        if isinstance(step, Said):
            choices = [choice.value for choice in step.message.choices]
        elif isinstance(step, Ended):
            return step.result
    raise AssertionError("a trial ends with its result")


def arguments_of(schema: JsonObject, script: str) -> JsonObject:
    """An argument for each property of `schema`: its example, first choice or default, the first text that `script`
    compares it with, or else a value of its type."""
    return {name: _argument(name, one, script) for name, one in schema["properties"].items()}


def _argument(name: str, schema: Mapping[str, JsonValue], script: str) -> JsonValue:
    for key in ("example", "default"):
        if schema.get(key) is not None:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind in ("object", "array"):
        return {} if kind == "object" else []
    cased = rf'SELECT\s+CASE[^\n]*\b{name}\b[^\n]*\s+CASE\s+"([^"]+)"'
    compared = re.search(rf'\b{name}\s*=\s*"([^"]+)"|{cased}', script, re.IGNORECASE)
    if compared and kind == "string" and "format" not in schema:
        return compared[1] or compared[2]
    return _FORMATS.get(str(schema.get("format")), _EXAMPLES.get(str(kind), "example"))


def report(tools: Sequence[Tool], folder: Path, *, ran: bool) -> list[str]:
    """Lines of the report: the refused and stopped tools, then the fractions."""
    lines = [line.replace(f"{folder}/", "") for tool in tools for line in (*tool.errors, *tool.stopped)]
    by_name: dict[tuple[str, str], list[Tool]] = {}
    for tool in tools:
        for path in tool.paths:
            by_name.setdefault((path.parent.name, path.name), []).append(tool)
    definitions = {
        "contents": [[tool] for tool in tools],
        "names": list(by_name.values()),
        "paths": [[tool] for tool in tools for _ in tool.paths],
    }
    for title, groups in definitions.items():
        count = len(groups)
        compiled = sum(not any(tool.errors for tool in group) for group in groups)
        line = f"{title:9} {count:4} tools  {compiled:4} compile ({compiled / count:.1%})"
        if ran:
            has_run = sum(all(tool.has_run for tool in group) for group in groups)
            line += f"  {has_run:4} run to their end ({has_run / count:.1%})"
        lines.append(line)
    return lines


async def _resolve(host: str, port: int) -> Sequence[str]:
    return ["93.184.216.34"]


_CHAIN = re.compile(r"(\w+)((?:\.\w+|\[[^\]\n]*\])+)")
_PART = re.compile(r"\.(\w+)|\[(\w*)")
_ALIAS = re.compile(r"^\s*(?:FOR\s+EACH\s+(\w+)\s+IN|([\w.]+)\s*=)\s*([\w.\[\]]+)\s*$", re.IGNORECASE)
_TEXTS = re.compile(r"\bJOIN\(\s*\w+(?:\.\w+)*?\.(\w+)\s*,")
_NUMBERS = re.compile(r"\.(\w+)\s*[<>/*]")
_ITEM = "[]"
_LEAF = "https://example.com/1"
_Tree = dict[str, "_Tree"]


def answers_for(script: str) -> tuple[JsonValue, ...]:
    """Data with the members and items that `script` reads, in three shapes: a map, a list of it, a list of texts."""
    root = _Reads(script).root
    leaves: JsonObject = dict.fromkeys(_NUMBERS.findall(script), 1)
    leaves |= {name: ["example"] for name in _TEXTS.findall(script)}

    def value(name: str, node: _Tree) -> JsonValue:
        if name in leaves or not node:
            return leaves.get(name, _LEAF)
        members = {key: value(key, below) for key, below in node.items() if key != _ITEM}
        item = node.get(_ITEM)
        if item is None:
            return members
        return [members | _members(value("", item))] if item else [_LEAF] * 5

    record = _members(value("", {key: below for key, below in root.items() if key != _ITEM} | root.get(_ITEM, {})))
    return record, [record], [_LEAF] * 5


class _Reads:
    """Members and items that a script reads, as a tree; variables stand for what they were assigned."""

    def __init__(self, script: str) -> None:
        self.root: _Tree = {}
        self._aliases: dict[str, _Tree] = {}
        self._counters = {"UBOUND", "LEN", "COUNT"} | set(re.findall(r"\bFOR\s+(\w+)\s*=", script, re.IGNORECASE))
        for line in script.splitlines():
            for chain in _CHAIN.finditer(line):
                self._node(chain[0])
            if alias := _ALIAS.match(line):
                self._assign(alias[1], alias[2], alias[3])

    def _assign(self, item: str | None, target: str | None, chain: str) -> None:
        node = self._node(chain)
        if target and "." in target and "." in chain:
            parent, _, member = target.rpartition(".")
            self._node(parent)[member] = node
        self._aliases[item or target or ""] = node.setdefault(_ITEM, {}) if item and "." in chain else node

    def _node(self, chain: str) -> _Tree:
        name = re.match(r"\w*", chain)
        node = self._aliases.get(name[0], self.root) if name else self.root
        for part in _PART.finditer(chain):
            if part[1] is None and not (part[2].isdigit() or part[2] in self._counters):
                node.setdefault("key", {})
                break
            node = node.setdefault(part[1] or _ITEM, {})
        return node


def _members(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


class _FixedWeb(httpx2.AsyncBaseTransport):
    """Answers every request with `answer` as JSON."""

    answer: JsonValue = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "application/json"}
        return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(json.dumps(self.answer).encode()))


class _FixedModel:
    """Answers every request with a JSON object as text."""

    name = "fixed"

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        return ModelAnswer(text=json.dumps({"score": 50, "text": "example"}), finish="stop", model=self.name)

    async def probe(self) -> str:
        return self.name

    async def close(self) -> None:
        return None


if __name__ == "__main__":
    sys.exit(main())
