"""`rollcall basic`: check, run, write and recompile BASIC scripts."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
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
from bot.checks.scripts_check import Checked, check_scripts, functions_without_scripts, name_conflict
from bot.cli.options import add_config, chat_ref, has_settings, member_ref, on_database, on_settings
from bot.daemon import Daemon
from bot.overrides import Overrides
from config.sections.basic import BasicSource
from config.settings import Settings
from function_calls.basic import STOPPED_AT
from function_calls.schema.commands import value_of
from function_calls.spec import FunctionResult, FunctionSpec, Message
from services.clock import SystemClock
from services.refs import JsonObject, Role
from services.scripts.basic_tools import COUNTER
from services.store.chats import basic_tools, script_data
from services.store.port import StoreError
from services.store.reader import OperatorConnection
from services.store.turns import audit


def add_check(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `rollcall basic check`, with its options, to `subcommands`."""
    parser = subcommands.add_parser(
        "check",
        help="check scripts for errors",
        description="Check BASIC scripts and print every error with its line and a correction.",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="DIR|FILE",
        help="what to check (default: the scripts of the settings)",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as a JSON list")
    parser.add_argument(
        "--profile",
        choices=["extended", "strict"],
        help="language profile (default: that of the settings, or extended)",
    )
    # A value before the subcommand is already parsed.
    add_config(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run_check)


@on_settings
def run_check(options: argparse.Namespace, settings: Settings) -> int:
    """Print the findings. 0: no errors; 1: errors, or nothing to check; 2: a path does not exist."""
    if absent := [path for path in options.paths if not path.exists()]:
        for path in absent:
            print(f"{path}: no such file or folder; create it, or correct the path", file=sys.stderr)
        return 2
    # Folders are recognized by their names, which `.` and `..` do not have.
    paths = [path.resolve() if path.name in ("", "..") else path for path in options.paths]
    sources = [BasicSource(path=path) for path in paths] or list(settings.sources.basic)
    if not sources:
        print("Nothing to check: give a folder or a file, or add one to sources.basic in the settings.")
        return 1
    if options.profile is not None:
        sources = [one.model_copy(update={"profile": options.profile}) for one in sources]
    others = asyncio.run(functions_without_scripts(settings))
    bots = tuple(settings.bots) if has_settings(options) else ()
    checked = check_scripts(settings, sources, others, bots)
    if options.json:
        print(json.dumps([asdict(one) for one in checked.findings], indent=2, ensure_ascii=False))
    else:
        _show(checked)
    return 1 if checked.broken or checked.unread else 0


def _show(checked: Checked) -> None:
    for one in checked.findings:
        print(one if one.severity == "error" else f"{one} (warning)")
    if not checked.scripts:
        # The findings explain why no scripts were found.
        return
    warned = sum(one.severity == "warning" for one in checked.findings)
    scripts = "1 script" if checked.scripts == 1 else f"{checked.scripts} scripts"
    warnings = "1 warning" if warned == 1 else f"{warned or 'no'} warnings"
    print(f"{scripts}: {checked.broken or 'none'} broken, {warnings}")


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
    except (StoreError, OSError) as error:
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


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SUFFIX = ".bas"
STARTER = """\
' {name}.bas - text after a ' is a comment.
'
' Try it without a chat:   rollcall basic run {file} --arg who=Ann --answer yes
' Check it for errors:     rollcall basic check {file}

' A parameter, given by the member or the model. LIKE is an example value.
PARAM who AS string LIKE "Ann" DESCRIPTION "The person to greet"

' One sentence that describes the function: the model chooses it by this.
DESCRIPTION "Greet somebody by name"

' TALK sends a message to the chat; ${{...}} inserts a value.
TALK "Hello ${{who}}, it is ${{FORMAT(NOW(), "HH:mm")}} here."
TALK "Shall I greet again?"

' HEAR waits for the answer, also across a restart of the bot.
HEAR again AS BOOLEAN

IF again THEN
    TALK "Hello ${{who}}!"
ELSE
    TALK "As you like."
END IF

' The result for the model.
RETURN "greeted " + who
"""
"""Template of a new script; `{name}` and `{file}` are placeholders."""


def add_new(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `rollcall basic new`, with its options, to `commands`."""
    parser = commands.add_parser(
        "new",
        help="create a script from a template",
        description="Create a working script with comments. An existing file is not overwritten.",
    )
    parser.add_argument("name", type=_name, help="name of the function: letters, digits, _ and -")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="target folder, created if missing (default: the current one)",
    )
    add_config(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run_new)


@on_settings
def run_new(options: argparse.Namespace, settings: Settings) -> int:
    """Write the script. 0: written; 1: it could not be written, or the name is taken."""
    taken = name_conflict(options.name, None, asyncio.run(functions_without_scripts(settings)))
    if taken is not None:
        print(taken.message, file=sys.stderr)
        return 1
    file: Path = options.folder / f"{options.name}{_SUFFIX}"
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as script:
            script.write(STARTER.format(name=options.name, file=file))
    except FileExistsError:
        print(f"{file} already exists and was not changed; choose another name or folder", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot write {file}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"Created {file}. Try it with: rollcall basic run {file} --arg who=Ann --answer yes")
    return 0


def _name(text: str) -> str:
    name = text[: -len(_SUFFIX)] if text.lower().endswith(_SUFFIX) else text
    if _NAME.fullmatch(name) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid function name: a letter, followed by letters, digits, _ and -"
        )
    return name


def add_recompile(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `rollcall basic recompile`, with its options, to `subcommands`."""
    parser = subcommands.add_parser(
        "recompile",
        help="compile scripts again",
        description="Compile scripts again even if they have not changed: within seconds if a daemon is running, "
        "otherwise at its next start.",
    )
    parser.add_argument("bot", nargs="?", metavar="BOT", help="only the scripts of this bot")
    parser.add_argument("tool", nargs="?", metavar="TOOL", help="only this tool")
    # A value before the subcommand is already parsed.
    add_config(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=on_database(_recompile))


def _recompile(options: argparse.Namespace, _settings: Settings, database: OperatorConnection) -> int:
    kept = [(row["bot"], row["tool_name"]) for row in database.rows(basic_tools.EVERYTHING)]
    if not kept:
        print("No script has been compiled yet: add their folder to sources.basic and start the daemon.")
        return 1
    bots = dict.fromkeys(bot for bot, _ in kept)
    if options.bot is not None and options.bot not in bots:
        owners = [bot for bot, tool in kept if tool == options.bot]
        if owners and options.tool is None:
            right = " or ".join(f"rollcall basic recompile {bot} {options.bot}" for bot in owners)
            print(f"{options.bot!r} is a tool and needs its bot before it: {right}", file=sys.stderr)
            return 1
        return _unknown("bot with scripts", options.bot, bots)
    tools = [name for bot, name in kept if bot == options.bot]
    if options.tool is not None and options.tool not in tools:
        return _unknown(f"tool of bot {options.bot!r}", options.tool, tools)
    touched, _ = database.commit([basic_tools.outdate(options.bot, options.tool), audit.touch(COUNTER)])
    tools_said = "1 tool" if touched == 1 else f"{touched} tools"
    print(f"{tools_said} will be compiled again: within seconds if a daemon is running, otherwise at its next start.")
    return 0


def _unknown(what: str, name: str, known: Iterable[str]) -> int:
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    print(f"unknown {what} {name!r}; {hint}", file=sys.stderr)
    return 1


def add_options(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.set_defaults(run=run_check, paths=[], json=False, profile=None)
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    for add in (add_check, add_recompile, add_run, add_new):
        add(subcommands)
