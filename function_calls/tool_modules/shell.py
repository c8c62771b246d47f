"""Function that runs allowed programs in a chat's folder. Disabled unless the settings name this module."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import structlog
from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.patterns import visible
from services.refs import ErrorCode
from services.sandbox.processes import CannotStart
from services.sandbox.sandbox import NotIsolated
from services.sandbox.shell import MOST_CHARS, NoCommand, NotAllowed, Ran, Shell

_log = structlog.get_logger("shell")
_SHOWN_CHARS = 3000
_SHOWN_OF_A_FAILURE = 1200
_Command = Annotated[
    str,
    Field(
        description="One program with its arguments, such as grep -n milk list.txt. No shell reads it: no pipes, "
        "wildcards or variables; quotes hold words together",
        min_length=1,
        max_length=MOST_CHARS,
    ),
]


@tool_function(
    description="Run one program, of those that are allowed, on the files in this chat's folder",
    examples=(
        "run {command}",
        "run the command {command}",
        "execute {command} in the folder",
        "execute the program {command}",
        "run {command} in the shell",
        "运行命令{command}",
        "执行{command}",
    ),
    commands=("shell", "sh", "命令行"),
    tags="shell",
    scope="private",
    roles="admin",
    approval="admin",
    touches=("reaches_out", "reads_outside"),
    effect="once",
    timeout_seconds=120,
    line="command",
    ask={"command": "@shell.ask_command"},
)
async def shell_exec(context: MessageContext, command: _Command, *, shell: Shell, call: Call) -> FunctionResult:
    """Run a program. It fails where the program does, though it may have said nothing about it."""
    try:
        ran = await shell.run(context.chat, context.sender.ref, command, call.threads)
    except (NoCommand, NotAllowed) as fault:
        shown = {name: visible(str(value))[:200] for name, value in fault.values.items()}
        code = ErrorCode.BAD_ARGUMENTS if isinstance(fault, NoCommand) else ErrorCode.REFUSED
        return FunctionResult.fail(code, call.say(f"shell.problem.{fault.problem}", **shown), ["command"])
    except NotIsolated as error:
        _log.warning("shell_not_isolated", problem=str(error))
        return FunctionResult.fail(ErrorCode.ENVIRONMENT, call.say("shell.not_isolated"))
    except CannotStart as error:
        _log.warning("shell_cannot_start", problem=str(error))
        return FunctionResult.fail(ErrorCode.ENVIRONMENT, call.say("shell.cannot_start"))
    return _result(ran, call)


def _result(ran: Ran, call: Call) -> FunctionResult:
    finished = ran.finished
    out, err = _text(finished.stdout), _text(finished.stderr)
    data = {
        "stdout": out,
        "stderr": err,
        "exit_code": finished.exit_code,
        "timed_out": finished.timed_out,
        "cut": finished.cut,
    }
    if finished.exit_code == 0:
        output = "\n".join(one.rstrip("\n") for one in (out, err) if one.strip())
        return FunctionResult.say(
            _shown(output, _SHOWN_CHARS, finished.cut, call) or call.say("shell.silent"), data=data
        )
    output = _shown("\n".join(one.rstrip("\n") for one in (err, out) if one.strip()), _SHOWN_OF_A_FAILURE, False, call)
    program = visible(ran.program)
    if finished.timed_out:
        code, why = ErrorCode.TIMEOUT, call.say("shell.timed_out", program=program, seconds=f"{ran.timeout_seconds:g}")
    elif finished.exit_code < 0:
        code, why = ErrorCode.FAILED, call.say("shell.killed", program=program, signal=-finished.exit_code)
    else:
        code, why = ErrorCode.FAILED, call.say("shell.failed", program=program, code=finished.exit_code)
    return replace(FunctionResult.fail(code, f"{why}\n{output}" if output else why), data=data, outside=True)


def _text(output: bytes) -> str:
    """A program's output with control characters escaped: they would steer a terminal."""
    return visible(output.decode("utf-8", "replace"))


def _shown(text: str, most: int, is_cut: bool, call: Call) -> str:
    if len(text) <= most and not is_cut:
        return text
    return f"{text[:most]}…\n{call.say('shell.cut')}"
