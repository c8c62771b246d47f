"""`rollcall basic`: check, write and recompile BASIC scripts."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bot.checks.scripts_check import Checked, check_scripts, functions_without_scripts, name_conflict
from bot.cli.basic_run import add_run
from bot.cli.options import add_config, has_settings, on_database, on_settings
from config.sections.basic import BasicSource
from config.settings import Settings
from function_calls.schema.definition import DefinitionError
from services.scripts.basic_tools import COUNTER
from services.store.chats import basic_tools
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
    try:
        others = asyncio.run(functions_without_scripts(settings))
        bots = tuple(settings.bots) if has_settings(options) else ()
        checked = check_scripts(settings, sources, others, bots)
    except DefinitionError as error:
        print(error, file=sys.stderr)
        return 1
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
    try:
        taken = name_conflict(options.name, None, asyncio.run(functions_without_scripts(settings)))
    except DefinitionError as error:
        print(error, file=sys.stderr)
        return 1
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
