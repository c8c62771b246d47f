"""`rollcall basic new NAME`: a script to begin with."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path

from bot.cli.options import add_config, settings_or_faults
from bot.scripts_check import functions_beside, name_taken
from function_calls.definition import DefinitionError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SUFFIX = ".bas"
STARTER = """\
' {name}.bas - what stands behind a ' is a note to yourself.
'
' Try it without a chat:   rollcall basic run {file} --arg who=Ann --answer yes
' Look for mistakes:       rollcall basic check {file}

' What people or the model have to give. LIKE is an example of it.
PARAM who AS string LIKE "Ann" DESCRIPTION "Who is to be greeted"

' One sentence that says what this is good for: the model chooses by it.
DESCRIPTION "Greet somebody by name"

' TALK says something in the chat; ${{...}} puts in a value.
TALK "Hello ${{who}}, it is ${{FORMAT(NOW(), "HH:mm")}} here."
TALK "Shall I say it once more?"

' HEAR waits for the answer, also over a restart of the bot.
HEAR again AS BOOLEAN

IF again THEN
    TALK "Hello ${{who}}!"
ELSE
    TALK "As you like."
END IF

' What the model is told when all is done.
RETURN "greeted " + who
"""
"""What a new script begins as; `{name}` and `{file}` are filled in."""


def add_new(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "new",
        help="write a script to begin with",
        description="Write a commented script that works as it is. A file that is there already is left alone.",
    )
    parser.add_argument("name", type=_name, help="what the function is called: letters, digits, _ and -")
    parser.add_argument(
        "--folder", type=Path, default=Path(), metavar="DIR", help="where to put it; made where it is missing (here)"
    )
    add_config(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run_new)


def run_new(options: argparse.Namespace) -> int:
    """Write the script. 0: it is there; 1: it could not be written, or another function has its name."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    try:
        taken = name_taken(options.name, None, asyncio.run(functions_beside(settings)))
    except DefinitionError as error:
        print(error, file=sys.stderr)
        return 1
    if taken is not None:
        print(taken.told, file=sys.stderr)
        return 1
    file: Path = options.folder / f"{options.name}{_SUFFIX}"
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as script:
            script.write(STARTER.format(name=options.name, file=file))
    except FileExistsError:
        print(f"{file} is there already and stays as it is; choose another name or folder", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{file} cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"{file} is there. Try it with: rollcall basic run {file} --arg who=Ann --answer yes")
    return 0


def _name(text: str) -> str:
    name = text[: -len(_SUFFIX)] if text.lower().endswith(_SUFFIX) else text
    if _NAME.fullmatch(name) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be the name of a function: it begins with a letter and has letters, digits, _ and - only"
        )
    return name
