"""A tool of the library, and how it is kept from one start to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from config.diagnostics import Diagnostic
from function_calls.basic.compiler import CompiledTool
from function_calls.basic.tool_definition import ToolDefinition
from function_calls.script_library.places import ScriptPlace
from function_calls.script_library.work_folder import checksum_of
from services.basic_tools import KeptTool


class NotKept(ValueError):
    """A row that does not say what it should; what it stands for is compiled anew."""


@dataclass(frozen=True, slots=True, eq=False)
class LibraryTool:
    """One tool that serves. Compared by identity: when it is compiled anew it is another one."""

    definition: ToolDefinition
    place: ScriptPlace
    file: str
    """As a person is told of it."""
    content_hash: str
    """Of all that it was compiled from."""
    digest: str
    """Of its program."""
    keywords: tuple[str, ...]
    """What it may want of the world."""
    calls: tuple[str, ...]
    """The functions that it calls, where their names stand in the script."""
    checksum: str
    """Of its program as it is kept."""

    @property
    def key(self) -> tuple[str, str]:
        """Bot and name: nothing else that serves has these."""
        return self.place.bot, self.definition.name

    def facts(self) -> str:
        """What is known of the program, as it is kept."""
        return _text(
            {
                "digest": self.digest,
                "keywords": self.keywords,
                "calls": self.calls,
                "checksum": self.checksum,
            }
        )

    def described(self) -> str:
        """The definition, as it is kept."""
        return _text(self.definition.to_json())


def tool_of(compiled: CompiledTool, place: ScriptPlace, file: str, content_hash: str, program: bytes) -> LibraryTool:
    """What was compiled; `program` as it is kept."""
    return LibraryTool(
        definition=compiled.definition,
        place=place,
        file=file,
        content_hash=content_hash,
        digest=compiled.program.digest,
        keywords=compiled.program.keywords,
        calls=compiled.program.calls,
        checksum=checksum_of(program),
    )


def kept_tool(row: KeptTool, place: ScriptPlace) -> LibraryTool:
    """What the row stands for, at the place where its file is. Raises NotKept."""
    try:
        facts = orjson.loads(row.program)
        definition = ToolDefinition.of_json(orjson.loads(row.definition))
        return LibraryTool(
            definition=definition,
            place=place,
            file=definition.source_file,
            content_hash=row.content_hash,
            digest=facts["digest"],
            keywords=tuple(facts["keywords"]),
            calls=tuple(facts["calls"]),
            checksum=facts["checksum"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotKept(f"{row.bot}/{row.tool_name}: {error}") from None


def findings_text(findings: Iterable[Diagnostic]) -> str:
    """What was said of one file, as it is kept."""
    return _text([[one.line, one.column, one.code, one.message, one.severity] for one in findings])


def kept_findings(text: str, file: str) -> tuple[Diagnostic, ...]:
    """The same again. Raises NotKept."""
    try:
        return tuple(Diagnostic(file, *one) for one in orjson.loads(text))
    except (ValueError, TypeError) as error:
        raise NotKept(str(error)) from None


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
