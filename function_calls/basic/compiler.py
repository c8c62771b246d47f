"""From a script to its tools: each with its definition and its program, or all that is wrong with the file."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import function_calls.basic
from config.diagnostics import Diagnostic, Diagnostics
from function_calls.basic.checks import lints_of, lints_of_a_half
from function_calls.basic.code import program_of
from function_calls.basic.codes import Code, Fault, Profile, ScriptFault
from function_calls.basic.definitions import definitions_of
from function_calls.basic.forms import Forms
from function_calls.basic.nodes import At, Script
from function_calls.basic.parser import parse
from function_calls.basic.program import Program
from function_calls.basic.tool_definition import ToolDefinition

Arity = tuple[int, int | None]
"""The fewest and the most arguments; None: any number."""
_FIRST = At(1, 1)
_MOST_FINDINGS = 200
"""Errors, and as many warnings, that are told of one script."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CompiledTool:
    """What a model is told of a tool, and what runs."""

    definition: ToolDefinition
    program: Program


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """What came of one script."""

    tools: tuple[CompiledTool, ...] = ()
    """Empty where there are errors: half a script would do half of what it says."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Errors and warnings, in the order of the file."""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """What makes the script unusable."""
        return tuple(one for one in self.diagnostics if one.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What its author should look at."""
        return tuple(one for one in self.diagnostics if one.severity != "error")


@dataclass(slots=True)
class BasicCompiler:
    """Compiles one script at a time; any number of threads may use it at once."""

    forms: Forms
    """Of the keywords that scripts may use."""
    functions: Mapping[str, Arity]
    """The functions of the language, by their names in lower case."""
    source_bytes: int = 64 * 1024
    """The longest script."""
    spellings: tuple[str, ...] = ()
    """The forms as they are declared."""
    compilations: int = field(default=0, init=False)
    """How many scripts were read so far."""
    _counting: Lock = field(default_factory=Lock, init=False, repr=False)

    def compile(
        self,
        path: Path,
        *,
        name: str = "",
        bot: str = "default",
        profile: Profile = Profile.EXTENDED,
        variables: Collection[str] = (),
    ) -> CompilationResult:
        """The tools of the file. Without `name` they are called as the file is. `variables`: those that scripts of the
        bot find set. A file that cannot be read is an error of the result; nothing is raised."""
        try:
            content = path.read_bytes()
        except OSError as error:
            fault = Fault(_FIRST, Code.UNREADABLE, f"the file cannot be read: {error.strerror or type(error).__name__}")
            return CompilationResult(diagnostics=(fault.diagnostic(str(path)),))
        return self.compile_text(
            content, str(path), name=name or path.stem, bot=bot, profile=profile, variables=variables
        )

    def compile_text(
        self,
        text: str | bytes,
        file: str,
        *,
        name: str,
        bot: str = "default",
        profile: Profile = Profile.EXTENDED,
        variables: Collection[str] = (),
    ) -> CompilationResult:
        """The same of a text, or of the bytes of a file. `file` is what its faults are told of."""
        with self._counting:
            self.compilations += 1
        content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        try:
            script_text = self._text(content)
            parsed = parse(script_text, self.forms, self.functions)
            found = list(parsed.faults)
            definitions, faults = definitions_of(parsed.script, name, profile, bot=bot, source_file=file)
            if _has_errors(parsed.faults):
                # A line that could not be read may be the one that is missing.
                faults = [one for one in faults if one.code is not Code.MISSING_DESCRIPTION]
            found += faults
            if _has_errors(found):
                # Of half a script it cannot be told which variables nothing sets.
                found += lints_of_a_half(parsed.script)
            else:
                alone = [name for name, (fewest, _) in self.functions.items() if not fewest]
                found += lints_of(parsed.script, variables=variables, functions=alone, usages=self.forms.usages)
            tools = () if _has_errors(found) else self._tools(parsed.script, definitions, found)
        except ScriptFault as error:
            return _result((), [error.fault], file)
        return _result(tools, found, file)

    def _text(self, content: bytes) -> str:
        """What stands in the file. Raises ScriptFault."""
        if len(content) > self.source_bytes:
            told = (
                f"the script has {len(content):,} bytes, but {self.source_bytes:,} are allowed: divide it into several"
            )
            raise ScriptFault(_FIRST, Code.TOO_LONG, told)
        content = content.removeprefix(_BOM)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            before = content[: error.start]
            line_start = before.rfind(b"\n") + 1
            at = At(before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace")) + 1)
            told = "the file is not in UTF-8 from here on: save it in the encoding UTF-8"
            raise ScriptFault(at, Code.UNREADABLE, told) from None

    def _tools(
        self, script: Script, definitions: Sequence[ToolDefinition], found: list[Fault]
    ) -> tuple[CompiledTool, ...]:
        """Of a script without errors. What only its code shows to be wrong is added to `found`."""
        tools: list[CompiledTool] = []
        for definition in definitions:
            try:
                tools.append(CompiledTool(definition, program_of(script.units[definition.unit], script.definitions)))
            except ScriptFault as error:
                found.append(error.fault)
        return () if _has_errors(found) else tuple(tools)

    def digest(self) -> str:
        """Of all that decides what a text becomes, beside the text: another one means that nothing that was compiled
        before may be used."""
        summed = hashlib.sha256(repr((self.source_bytes, sorted(self.functions.items()), self.spellings)).encode())
        for folder in function_calls.basic.__path__:
            # The files of the compiler itself, so that no release with another one trusts what this one has made.
            for file in sorted(Path(folder).rglob("*.py")):
                summed.update(file.read_bytes())
        return summed.hexdigest()[:32]


def _has_errors(found: Iterable[Fault]) -> bool:
    return any(one.severity == "error" for one in found)


def _result(tools: tuple[CompiledTool, ...], found: Iterable[Fault], file: str) -> CompilationResult:
    diagnostics = Diagnostics(one.diagnostic(file) for one in found).in_order()
    errors = [one for one in diagnostics if one.severity == "error"]
    warnings = [one for one in diagnostics if one.severity != "error"]
    # Nobody reads thousands, and whoever shows them should not have to count.
    kept = (*errors[:_MOST_FINDINGS], *warnings[:_MOST_FINDINGS])
    return CompilationResult(tools, tuple(Diagnostics(kept).in_order()))
