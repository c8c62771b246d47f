"""The work folder: of each bot the scripts as they were fetched, what models are told of their tools, and their
programs. An operator can look at all of it; what is loaded from it again is checked first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import orjson

from function_calls.basic.program import Program
from function_calls.basic.tool_definition import ToolDefinition
from services.json_values import JsonObject

_ENDINGS = (".mcp.json", ".tool.json", ".program.json")


class WorkFolder:
    """`<root>/<bot>.gbai/<bot>.gbdialog/`. Each file is whole or not there, whenever the process ends."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(self, bot: str) -> Path:
        """The folder of `bot`; perhaps not there yet."""
        return self._root / f"{bot}.gbai" / f"{bot}.gbdialog"

    def put_script(self, bot: str, name: str, content: bytes) -> None:
        """The script as it was fetched. Raises OSError."""
        self._put(self.of(bot) / f"{name}.bas", content)

    def put_tool(self, bot: str, definition: ToolDefinition, program: bytes) -> None:
        """What a tool was compiled to; `program` as `packed` gives it. Raises OSError."""
        contents = (_shown(definition.mcp()), _shown(definition.openai()), program)
        for ending, content in zip(_ENDINGS, contents, strict=True):
            self._put(self.of(bot) / f"{definition.name}{ending}", content)

    def program(self, bot: str, tool: str, checksum: str) -> Program | None:
        """The program of a tool; None where it is not there, or is not the one with that checksum."""
        try:
            packed_program = (self.of(bot) / f"{tool}{_ENDINGS[-1]}").read_bytes()
        except OSError:
            return None
        if checksum_of(packed_program) != checksum:
            return None
        return Program.of_json(orjson.loads(packed_program))

    def drop(self, bot: str, scripts: Iterable[str], tools: Iterable[str]) -> None:
        """What there was of scripts and tools that are gone. Raises OSError."""
        folder = self.of(bot)
        names = [*(f"{one}.bas" for one in scripts), *(f"{one}{ending}" for one in tools for ending in _ENDINGS)]
        for name in names:
            (folder / name).unlink(missing_ok=True)

    def _put(self, file: Path, content: bytes) -> None:
        beside = file.with_name(f".{file.name}.new")
        try:
            written = beside.open("wb")
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True)
            written = beside.open("wb")
        with written:
            written.write(content)
        os.replace(beside, file)


def packed(program: Program) -> bytes:
    """The program as it is kept."""
    return orjson.dumps(program.to_json())


def checksum_of(packed_program: bytes) -> str:
    """By which it is known again."""
    return hashlib.sha256(packed_program).hexdigest()


def _shown(value: JsonObject) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
