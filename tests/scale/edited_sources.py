"""Changes of sources while a daemon runs: create, edit, break, repair and delete. A class for each kind of source."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.harness.mcp_servers import Script, a_tool

UNKNOWN = "I don't know the command"


@dataclass(frozen=True, slots=True)
class Seen:
    """Expected state after a change."""

    change: str
    says: str
    """Start of the command's answer."""
    place: str = ""
    """Name of the broken part in /readyz; empty: none."""
    ask: str = ""
    """The command, if different."""


class Edited(Protocol):
    """A source that is edited."""

    name: str
    ready: str
    """Entry of /readyz that reports its problems."""
    ask: str
    """The command."""

    def changes(self) -> Iterator[Seen]:
        """Make one change after the other; yields the expected state after each."""


def put(file: Path, text: str) -> None:
    """Replace the file atomically, like editors do."""
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)


class _Files:
    """A file that contains its version, and a broken form of it."""

    ready = "functions"

    def __init__(self, file: Path, text: Callable[[str], str], broken: str, delete: Callable[[], object]) -> None:
        self._file = file
        self._text = text
        self._broken = broken
        self._delete = delete

    def changes(self) -> Iterator[Seen]:
        put(self._file, self._text("first"))
        yield Seen("write", "first")
        put(self._file, self._text("second"))
        yield Seen("edit", "second")
        put(self._file, self._broken)
        yield Seen("break", "second", self._file.name)
        put(self._file, self._text("third"))
        yield Seen("mend", "third")
        self._delete()
        yield Seen("delete", UNKNOWN)


FUNCTION = '''
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
{more}

@tool_function(commands=("{name}",), effect="read")
async def {name}(context: MessageContext) -> str:
    """Say which version this is."""
    return {gives}
'''


class PythonFile(_Files):
    """A file of functions."""

    name = "file"
    ask = "/edited"

    def __init__(self, home: Path) -> None:
        file = home / "tools" / "edited.py"
        super().__init__(file, self._content, "async def edited(:\n", file.unlink)

    @staticmethod
    def _content(version: str) -> str:
        return FUNCTION.format(name="edited", more="", gives=f'"{version}"')


class PythonPackage(_Files):
    """A package of functions; the edited file contains none."""

    name = "package"
    ask = "/packed"

    def __init__(self, home: Path) -> None:
        self._folder = home / "tools" / "packed"
        file = self._folder / "_words.py"
        super().__init__(file, "VERSION = {!r}\n".format, "VERSION =\n", lambda: shutil.rmtree(self._folder))

    def changes(self) -> Iterator[Seen]:
        self._folder.mkdir()
        (self._folder / "__init__.py").write_text("")
        function = FUNCTION.format(name="packed", more="from ._words import VERSION", gives="VERSION")
        (self._folder / "functions.py").write_text(function)
        yield from super().changes()


class CommandTool(_Files):
    """A file of command tools."""

    name = "commands"
    ask = "/commanded"

    def __init__(self, home: Path) -> None:
        file = home / "commands" / "edited.yaml"
        super().__init__(file, self._content, "tools: [{name: commanded, cmds: 7}]\n", file.unlink)

    @staticmethod
    def _content(version: str) -> str:
        tool = (
            "{name: commanded, commands: [commanded], effect: read, cmds: [[printf, VERSION]], opts: {sandbox: 'off'}}"
        )
        return f"tools: [{tool.replace('VERSION', version)}]\n"


class BasicScript(_Files):
    """A script."""

    name = "script"
    ask = "/scripted"

    def __init__(self, home: Path) -> None:
        file = home / "scripts" / "scripted.bas"
        text = 'DESCRIPTION "Says which version this is"\nTALK "{}"\n'
        super().__init__(file, text.format, 'TALK "never closed\n', file.unlink)


class _InSettings:
    """A source in the settings."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = home / "bot.yaml"

    def _changes(self) -> Iterator[tuple[Seen, str]]:
        """Expected states, each with the settings for it."""
        raise NotImplementedError

    def changes(self) -> Iterator[Seen]:
        usual = self._file.read_text(encoding="utf-8")
        for seen, more in self._changes():
            if self._file.read_text(encoding="utf-8") != usual + more:
                put(self._file, usual + more)
            yield seen


class Plugins(_InSettings):
    """Modules installed with the program."""

    name = "plugins"
    ready = "functions"
    ask = "/file list"

    def _changes(self) -> Iterator[tuple[Seen, str]]:
        yield Seen("write", "There are no files"), "plugins: [file]\n"
        yield Seen("edit", "Only admins and above", ask="/shell ls"), "plugins: [file, shell]\n"
        yield Seen("break", "There are no files", "bot.yaml:"), "plugins: [file, shel]\n"
        yield Seen("mend", "There are no files"), "plugins: [file]\n"
        yield Seen("delete", UNKNOWN), ""


class ToolServer(_InSettings):
    """An MCP server whose list of tools changes, and which is removed."""

    name = "server"
    ready = "functions"
    ask = "/first"

    def _changes(self) -> Iterator[tuple[Seen, str]]:
        first, second, third = (a_tool(name, given=name) for name in ("first", "second", "third"))
        script = Script(self._home, first, second, tells=True)
        tools = {name: {"commands": [name], "effect": "read"} for name in ("first", "second")}
        server = f"mcp: {json.dumps({'servers': [script.settings(tools=tools)]})}\n"
        yield Seen("write", "first"), server
        script.write(second, third, tells=True)
        yield Seen("edit", UNKNOWN, "mcp.servers.one"), server
        script.write(second, third, tells=True, dies=True)
        yield Seen("break", "I can't reach", "mcp.servers.one", ask="/second"), server
        script.write(first, second, tells=True)
        yield Seen("mend", "first"), server
        yield Seen("delete", UNKNOWN), ""


class SettingsFile(_InSettings):
    """The settings file."""

    name = "settings"
    ready = "settings"
    ask = "/calc 6*7"

    def _changes(self) -> Iterator[tuple[Seen, str]]:
        off, on = "“/calc” is switched off", "6*7 = 42"
        yield Seen("write", off), "functions: {calculate: {enabled: false}}\n"
        yield Seen("edit", on), "functions: {calculate: {enabled: true}}\n"
        yield Seen("break", on, "bot.yaml"), "functions: {calculate: {enabled: perhaps}}\n"
        yield Seen("mend", off), "functions: {calculate: {enabled: false}}\n"

    def changes(self) -> Iterator[Seen]:
        yield from super().changes()
        self._file.unlink()
        # The previous settings remain active.
        yield Seen("delete", "“/calc” is switched off", "bot.yaml")


EDITED: list[Callable[[Path], Edited]] = [
    PythonFile,
    PythonPackage,
    CommandTool,
    BasicScript,
    Plugins,
    ToolServer,
    SettingsFile,
]
"""The settings file is last, because it is deleted."""
