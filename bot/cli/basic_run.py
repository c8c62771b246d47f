"""`rollcall basic run FILE`: run a script without a chat on a temporary database."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bot.checks.scratch import scratch_daemon
from bot.checks.script_trial import (
    Answer,
    Said,
    ScriptTrial,
    Trying,
    no_web,
    script_source,
    specs_of,
    trial_settings,
)
from bot.cli.options import add_config, chat_ref, member_ref, on_settings
from bot.daemon import Daemon
from bot.overrides import Overrides
from config.sections.basic import BasicSource
from config.settings import Settings
from function_calls.basic import STOPPED_AT
from function_calls.schema.commands import value_of
from function_calls.schema.definition import DefinitionError
from function_calls.spec import (
    FunctionResult,
    FunctionSpec,
    Message,
)
from services.clock import SystemClock
from services.refs import JsonObject, Role
from services.store.chats import script_data
from services.store.port import StoreError

_MOST_SHOWN_CHARS = 500
_STAYS_OFF = "was not contacted: network access needs --network"


def add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `rollcall basic run`, with its options, to `commands`."""
    parser = commands.add_parser(
        "run",
        help="run a script without a chat",
        description="Run a script and print its messages, questions, stored data and result. It runs on a temporary "
        "database and without the web, a model, mail and custom functions, unless --network is given.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the script")
    parser.add_argument("--arg", action="append", default=[], type=_argument, metavar="NAME=VALUE", help="a parameter")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="TEXT",
        help="answer to the next question; repeat it for several, in order",
    )
    parser.add_argument("--tool", default="", metavar="NAME", help="tool to run if the file has several")
    parser.add_argument(
        "--as", dest="member", type=member_ref, default="cli:main:operator", metavar="MEMBER", help="member who runs it"
    )
    parser.add_argument(
        "--role", default="owner", choices=[role.value for role in Role], help="role of the member (default: owner)"
    )
    parser.add_argument("--chat", type=chat_ref, default="cli:main:terminal", metavar="CHAT", help="chat to run it in")
    parser.add_argument("--network", action="store_true", help="allow the web, mail, the model and custom functions")
    add_config(parser)
    parser.set_defaults(run=run_script)


@on_settings
def run_script(options: argparse.Namespace, settings: Settings) -> int:
    """Print the events. 0: the script ended; 1: it failed, or waits for an answer; 2: wrong usage."""
    if not options.file.is_file():
        return _usage(f"no such file: {options.file}")
    try:
        return asyncio.run(_run(settings, options))
    except (StoreError, DefinitionError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


async def _run(settings: Settings, options: argparse.Namespace) -> int:
    clock = SystemClock()
    settings = trial_settings(settings, _source_of(settings, options), options.chat, network=options.network)
    given = Overrides(clock=clock) if options.network else Overrides(clock=clock, web=no_web(_STAYS_OFF))
    async with scratch_daemon(settings, given) as daemon:
        specs = specs_of(daemon, options.chat, options.file)
        for fault in daemon.functions.faults:
            print(fault, file=sys.stderr)
        if not specs:
            return 1
        spec = next((one for one in specs if options.tool in ("", one.name)), None)
        if spec is None or (len(specs) > 1 and not options.tool):
            return _usage(
                f"{options.file} has the tools {', '.join(one.name for one in specs)}; select one with --tool"
            )
        unknown = [name for name, _ in options.arg if name not in spec.parameters["properties"]]
        if unknown:
            known = ", ".join(spec.parameters["properties"]) or "none"
            return _usage(f"{spec.name} has no parameter {unknown[0]!r}; its parameters: {known}")
        member = options.member
        trying = Trying(member, member.native, Role(options.role), options.chat)
        result = await _tried(ScriptTrial(daemon, clock, trying), spec, options)
        await _show_kept(daemon)
        return _show_end(result)


async def _tried(trial: ScriptTrial, spec: FunctionSpec, options: argparse.Namespace) -> FunctionResult:
    """Run the function and return its result; its messages and answers are printed. Questions are answered from
    `--answer`, then from the terminal, if there is one; otherwise the result contains the question."""
    answers: Iterator[str] = iter(options.answer)

    async def next_answer() -> str | None:
        answer = next(answers, None)
        if answer is None and sys.stdin.isatty():
            try:
                return await asyncio.to_thread(input, "> ")
            except EOFError:
                return None
        return answer

    arguments: JsonObject = {name: value_of(spec.parameters["properties"][name], value) for name, value in options.arg}
    async for step in trial.steps(spec, arguments, next_answer):
        if isinstance(step, Said):
            _show_message(step.message, is_question=step.is_question)
        elif isinstance(step, Answer):
            print(f"ANSWER {step.text}")
        else:
            return step.result
    raise AssertionError("a trial ends with its result")


def _show_message(message: Message, *, is_question: bool) -> None:
    kind = "ASK" if is_question else "TALK"
    to = f" (to {message.to.key})" if message.to is not None else ""
    choices = f"  [{' | '.join(one.label for one in message.choices)}]" if message.choices else ""
    print(f"{kind}{to} {message.text}{choices}")


async def _show_kept(daemon: Daemon) -> None:
    for row in await daemon.store.read(script_data.ALL_ROWS):
        print(f"SAVED {row['table_name']}: {_short(row['fields'])}")
    for row in await daemon.store.read(script_data.ALL_VALUES):
        print(f"REMEMBERED {row['name']}: {_short(row['value'])}")


def _show_end(result: FunctionResult) -> int:
    if result.error is not None:
        where = result.metadata.get(STOPPED_AT)
        if where is not None or result.question is not None:
            # Other errors were reported in the chat.
            print(f"STOPPED {where or result.error.text}")
        return 1
    if result.question is not None:
        print("WAITING for an answer; give it with --answer TEXT")
        return 1
    if result.data is not None:
        print(f"RESULT {json.dumps(result.data, ensure_ascii=False, default=str)}")
    return 0


def _source_of(settings: Settings, options: argparse.Namespace) -> BasicSource:
    """The script as a source, with the options of the configured source that contains it."""
    named = next((one for one in settings.sources.basic if _lies_in(options.file, one)), BasicSource(path=options.file))
    return script_source(options.file, named)


def _lies_in(file: Path, source: BasicSource) -> bool:
    path = source.path
    return path is not None and (path == file or path.resolve() in file.resolve().parents)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN_CHARS else f"{text[:_MOST_SHOWN_CHARS]}…"


def _argument(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not in the form name=value")
    return name.strip(), value


def _usage(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 2
