"""Runs the console blocks of a page and compares their output.

In a block, a line `$ …` is a command, `> …` is its continuation, `› …` is input for the chat that the command opened,
and any other line is output. `…` stands for any text, and a line with only `…` for any lines. Output is compared if the
page shows output. A command that fails makes the test fail unless the page shows the failure.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.documents import ROOT, Block
from tests.harness.forked_processes import forked_command

COLD = (sys.executable, "-m", "bot")
_LONGEST_SECONDS = 120
_END = re.compile(rb"\x1e(\d+)\n")
_PROMPT = "› ".encode()
_RUN = """\
#!/usr/bin/env bash
# ./run without its installation; the daemon itself takes a free port, says where it is, and ends.
export ROLLCALL_CONFIG="${{ROLLCALL_CONFIG:-{root}/config/bot.yaml}}" ROLLCALL_HOME="${{ROLLCALL_HOME:-{house}/var}}"
if (($#)); then exec {rollcall} "$@"; fi
coproc DAEMON {{ exec {rollcall} run --port 0 --no-console 2>&1; }}
pid=$DAEMON_PID
for _ in 1 2 3 4; do read -rt 30 line <&"${{DAEMON[0]}}" && echo "$line"; done
kill -TERM "$pid"
wait "$pid"
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a block."""

    where: str
    command: str
    shown: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)

    @property
    def script(self) -> str:
        """The command as a line of bash."""
        command = f"{{ {self.command}\n}}"
        # The chat's input ends after its lines; `sed -u` reads no further.
        return f"sed -u {len(self.typed)}q | {command}" if self.typed else f"{command} </dev/null"


def steps_of(blocks: Sequence[Block]) -> list[Step]:
    """Commands of `blocks` in order."""
    steps: list[Step] = []
    for block in blocks:
        for number, line in enumerate(block.text.splitlines(), start=block.line):
            if line.startswith("$ "):
                steps.append(Step(f"{block.page}:{number}", line[2:]))
            elif line.startswith("> "):
                last = steps.pop()
                steps.append(Step(last.where, f"{last.command}\n{line[2:]}"))
            elif line.startswith("› "):
                steps[-1].typed.append(line[2:])
            else:
                steps[-1].shown.append(line)
    return steps


class Terminal:
    """A terminal in a copy of the project folder, with a separate home folder."""

    def __init__(self, folder: Path, rollcall: Sequence[str] | None = None) -> None:
        """`rollcall`: the command that `./run` starts; `COLD` to start a new Python process."""
        self.home = folder / "home"
        self.house = self.home / "rollcall"
        self.house.mkdir(parents=True)
        run = self.house / "run"
        run.write_text(
            _RUN.format(root=ROOT, house=self.house, rollcall=shlex.join(rollcall or forked_command("bot"))),
            encoding="utf-8",
        )
        run.chmod(0o755)
        for name in ("config", "tests"):
            (self.house / name).symlink_to(ROOT / name)

    def environment(self, **more: str) -> dict[str, str]:
        """Environment of the commands, without this machine's settings of the bot."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LC_ALL", "TMPDIR")}
        return {**kept, "HOME": str(self.home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **more}

    def follow(self, blocks: Sequence[Block], replace: Mapping[str, str] | None = None, **environment: str) -> None:
        """Run the commands of `blocks` in one shell and compare their output. `replace`: replacements of texts of the
        page by those of this machine. Raises AssertionError with the line of the page."""
        steps = steps_of(blocks)
        assert steps, "there is no command"
        script = "".join(f"{step.script}\nprintf '\\036%s\\n' $?\n" for step in steps)
        for theirs, ours in (replace or {}).items():
            assert theirs in script, f"no command has {theirs!r}"
            script = script.replace(theirs, ours)
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.house,
            env=self.environment(**environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        ) as shell:
            try:
                conversation = _Conversation(shell)
                for step in steps:
                    check(step, *conversation.until_done(step))
            finally:
                shell.kill()


class _Conversation:
    """Input and output of a shell."""

    def __init__(self, shell: subprocess.Popen[bytes]) -> None:
        assert shell.stdin is not None
        assert shell.stdout is not None
        self._keyboard, self._screen = shell.stdin, shell.stdout
        self._until = time.monotonic() + _LONGEST_SECONDS
        self._output = b""

    def until_done(self, step: Step) -> tuple[str, int]:
        """Type the input of `step` when it is requested. Returns the command's output and exit status."""
        typed = list(step.typed)
        answered = 0
        while (end := _END.search(self._output)) is None:
            prompt = self._output.find(_PROMPT, answered)
            if typed and prompt >= 0:
                answered = prompt + len(_PROMPT)
                self._keyboard.write(f"{typed.pop(0)}\n".encode())
                continue
            ready, _, _ = select.select([self._screen], [], [], max(0.0, self._until - time.monotonic()))
            more = os.read(self._screen.fileno(), 65536) if ready else b""
            assert more, f"{step.where}: `{step.command}` does not come to an end; so far:\n{self._output.decode()}"
            self._output += more
        shown = self._output[: end.start()].decode()
        self._output = self._output[end.end() :]
        return shown, int(end[1])


def check(step: Step, output: str, status: int) -> None:
    """Compare output and status of a command with the page. Raises AssertionError."""
    # The chat writes its answers over its prompt.
    lines = [line.rpartition("\r")[2].removeprefix("› ").rstrip() for line in output.split("\n")]
    seen = "\n".join(line for line in lines if line)
    assert status == 0, f"{step.where}: `{step.command}` ended with {status}:\n{seen}"
    expected = "\n".join(line.rstrip() for line in step.shown if line.strip())
    if expected:
        assert matches(expected, seen), f"{step.where}: the page shows\n{expected}\n\nand the terminal\n{seen}"


def matches(expected: str, seen: str) -> bool:
    """Whether `seen` matches `expected`, where `…` is any text in a line, or any lines if it is the whole line."""
    pattern = re.escape(expected)
    pattern = re.sub(r"(^|\\\n)…(?=\\\n|$)", r"\1(?s:.*)", pattern)
    return re.fullmatch(pattern.replace("…", ".*"), seen) is not None
