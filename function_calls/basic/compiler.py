"""Compiler: script source to tool definitions and programs, or to all its errors."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import get_args

import function_calls.basic
from config.diagnostics import Diagnostic, Diagnostics
from function_calls.basic import nodes
from function_calls.basic.codes import Code, Profile, ScriptError, ScriptProblem
from function_calls.basic.language.filter_texts import nodes_in
from function_calls.basic.language.forms import Forms
from function_calls.basic.language.param_types import type_names
from function_calls.basic.language.parser import parse
from function_calls.basic.language.scopes import SESSION_VARIABLES
from function_calls.basic.language.unsupported import NO_EFFECT
from function_calls.basic.machine.code_statements import program_of
from function_calls.basic.machine.program import Program
from function_calls.basic.nodes import At, Expression, Script, Statement, Target, Unit
from function_calls.basic.tool_definition import ParamDecl as ParamDecl
from function_calls.basic.tool_definition import ToolDefinition as ToolDefinition
from function_calls.basic.tool_definition import parameters_of, results_of
from function_calls.spec import START_FUNCTION
from services.refs import JsonObject

LONGEST_NAME = 64
PROVIDER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Function names that model providers accept."""
_OTHER = re.compile(r"[^\w-]+")
_WORDS = re.compile(r"[a-z0-9]+")
_LITTLE = frozenset(
    {
        "a", "about", "an", "and", "at", "by", "for", "from", "in", "is", "of", "on", "or", "s", "that", "the", "to",
        "with", "your",
    }
)  # fmt: skip
_MOST_WORDS = 5
_FIRST = At(1, 1)


def stem_of(name: str) -> str:
    """The file's name without folders and `.bas`."""
    file = PurePosixPath(name.replace("\\", "/")).name
    return file[:-4] if file.lower().endswith(".bas") else file


def tool_name(
    written: str, profile: Profile, at: At = _FIRST, what: str = "the file's name"
) -> tuple[str, ScriptProblem | None]:
    """The tool's name, and a problem with it or None. If the problem is an error, the name is empty."""
    if PROVIDER_NAME.fullmatch(written):
        return written, None
    allowed = f"tool names consist of 1 to {LONGEST_NAME} letters A-Z and a-z, digits, `_` and `-`"
    name = _OTHER.sub("_", written.strip()).strip("_")
    if not name:
        return "", ScriptProblem(at, Code.BAD_NAME, f"{what} `{written}` gives no valid tool name: {allowed}")
    if len(name) > LONGEST_NAME:
        return "", ScriptProblem(at, Code.BAD_NAME, f"{what} `{written}` is too long for a tool name: {allowed}")
    if profile is Profile.STRICT:
        hint = f"; use `{name}`" if PROVIDER_NAME.fullmatch(name) else ""
        return "", ScriptProblem(at, Code.BAD_NAME, f"`{written}` is not a valid tool name: {allowed}{hint}")
    if PROVIDER_NAME.fullmatch(name):
        message = f"the tool of `{written}` is named `{name}`: {allowed}"
        return name, ScriptProblem(at, Code.BAD_NAME, message, "warning")
    message = (
        f"models see the tool `{name}` under a generated name, because they accept only A-Z, a-z, 0-9, `_` and `-`; "
        f"describe it in its DESCRIPTION, or use Latin letters in {what}"
    )
    return name, ScriptProblem(at, Code.BAD_NAME, message, "warning")


def name_among(file: str, number: int, description: str) -> str:
    """Name of an unnamed tool in a file with several: the file's name and the first words of the description, so that
    it does not change when tools are inserted; else the file's name and `number`, from 1."""
    words = [word for word in _WORDS.findall(description.lower()) if word not in _LITTLE][:_MOST_WORDS]
    while words and len(name := "_".join([file, *words])) > LONGEST_NAME:
        words.pop()
    return name if words and description.isascii() else f"{file}_{number}"


def in_words(name: str) -> str:
    """A name as words: `get-price` becomes `Get price`."""
    words = " ".join(re.split(r"[\s_-]+", name)).strip()
    return words[:1].upper() + words[1:]


SESSION_SCRIPT = "start"
"""Name of the script that runs when a conversation starts."""
_CLOCK = "SET SCHEDULE"
_MOST_DERIVED = 300
_DECORATION = re.compile(r"^[^\w]+|[=*#_~-]{3,}")


def definitions_of(
    script: Script,
    name: str,
    profile: Profile = Profile.EXTENDED,
    *,
    bot: str = "default",
    source_file: str = "",
) -> tuple[list[ToolDefinition], list[ScriptProblem]]:
    """Tool definitions of the script's units, and their problems. `name` is the file's name. A unit with errors has no
    definition; the other units do. A script without PARAM is a tool without parameters; unnamed tools of a file with
    several are named by `name_among`. `start.bas` is marked `session` in its metadata and needs no description; in the
    extended profile a script that only runs on a schedule needs none either."""
    stem = stem_of(name)
    file_name, named = tool_name(stem, profile)
    faults = [named] if named is not None else []
    if profile is Profile.STRICT and len(script.units) > 1:
        message = "the strict profile allows one tool per file; move this one to another file"
        faults.append(ScriptProblem(script.units[1].at, Code.NOT_IN_STRICT, message))
    names = _names(script.units, file_name, profile, faults)
    metadata: JsonObject = {START_FUNCTION: True} if stem.lower() == SESSION_SCRIPT else {}
    definitions: list[ToolDefinition] = []
    for number, (unit, tool) in enumerate(zip(script.units, names, strict=True)):
        parameters, wrong = parameters_of(unit, profile)
        is_needed = not metadata and not (profile is Profile.EXTENDED and _is_for_the_clock(unit))
        description, missing = _description(unit, tool, profile, is_needed=is_needed)
        results, unfit = results_of(unit)
        wrong += [*missing, *unfit]
        faults += wrong
        if tool and not any(fault.severity == "error" for fault in wrong):
            definitions.append(
                ToolDefinition(
                    tool,
                    description,
                    parameters,
                    bot,
                    source_file,
                    unit.at.line,
                    number,
                    {**metadata, **dict(unit.metadata)},
                    results,
                )
            )
    return definitions, sorted(faults, key=lambda fault: fault.at)


def _names(units: Sequence[Unit], file_name: str, profile: Profile, faults: list[ScriptProblem]) -> list[str]:
    """Tool names in order; empty if a unit has no valid name."""
    names: list[str] = []
    taken: dict[str, Unit] = {}
    for number, unit in enumerate(units, start=1):
        name = file_name
        if unit.name and len(units) > 1:
            name, named = tool_name(unit.name, profile, unit.at, "the name")
            faults += [named] if named is not None else []
        elif len(units) > 1 and file_name:
            name = name_among(file_name, number, unit.description)
            if name.lower() in taken:
                name = f"{file_name}_{number}"
        other = taken.setdefault(name.lower(), unit) if name else unit
        if other is not unit:
            message = f"the tool `{name}` is already defined on line {other.at.line}; rename one of them"
            faults.append(ScriptProblem(unit.at, Code.DUPLICATE_TOOL, message))
            name = ""
        names.append(name)
    return names


def _description(unit: Unit, name: str, profile: Profile, *, is_needed: bool) -> tuple[str, list[ScriptProblem]]:
    """The tool's description: DESCRIPTION, else the comment above it, else its name in words."""
    if unit.description.strip():
        return unit.description.strip(), []
    derived = _comment_text(unit.comment) or in_words(name)
    if not is_needed:
        return derived, []
    at = unit.description_at or unit.at
    is_strict = profile is Profile.STRICT
    message = "the DESCRIPTION is empty" if unit.description_at else "the DESCRIPTION is missing"
    message += '; write DESCRIPTION "what the tool does", so that models know when to call it'
    if derived and not is_strict:
        message += f". Until then models see: {derived}"
    return derived, [ScriptProblem(at, Code.MISSING_DESCRIPTION, message, "error" if is_strict else "warning")]


def _is_for_the_clock(unit: Unit) -> bool:
    """Whether the unit sets its own schedule and takes no parameters, so that no model has to choose it."""
    wants = (one.expression for one in unit.body if isinstance(one, nodes.Evaluate))
    return not unit.params and any(isinstance(one, nodes.KeywordCall) and one.keyword == _CLOCK for one in wants)


def _comment_text(comment: str) -> str:
    """Text of comment lines without decoration, cut between words after 300 characters."""
    lines = (_DECORATION.sub("", line).strip() for line in comment.splitlines())
    text = " ".join(line for line in lines if line)
    if len(text) <= _MOST_DERIVED:
        return text
    return text[:_MOST_DERIVED].rpartition(" ")[0] + " …"


_UNCLEAR = re.compile(r"[a-z]\d*|(foo|bar|baz|tmp|arg|param)\d*", re.IGNORECASE)
_PARTS = {
    node: tuple(field.name for field in fields(node) if field.name not in ("at", "name", "operator"))
    for node in (Script, Unit, *get_args(Expression), *get_args(Statement), nodes.Case)
}
"""Child fields of each node type."""
_NONE: Mapping[str, str] = {}
_NEAR = 0.75
_MOST_HINTS = 20
"""Limit on suggestions: searching for similar names is slow."""


def lints_of(
    script: Script,
    *,
    variables: Collection[str] = (),
    functions: Collection[str] = (),
    usages: Mapping[str, str] = _NONE,
) -> list[ScriptProblem]:
    """Unclear names, parameters without an example, and variables that are never set, in source order. Requires a
    script without errors, since a line with errors may set a variable.

    `variables`: set by the bot's configuration, such as `x` for `param-x`. `functions`: callable without parentheses.
    `usages`: forms of one-word keywords with arguments, by lower-case name; reading such a name without a variable of
    that name is an error. Missing descriptions are reported by `definitions_of`."""
    known = {name.lower() for name in (*variables, *functions)} | SESSION_VARIABLES
    used = _Use()
    used.note(script)
    params = [param for unit in script.units for param in unit.params]
    faults = [fault for param in params for fault in _of_param(param)]
    names = used.written | {param.name.lower() for param in params}
    faults += _shadowed(used, params)
    faults += _bare_braces(used, names)
    faults += _constant_conditions(used)
    faults += _without_effect(used)
    faults += _unknown(used, known, {param.name.lower() for param in params}, usages)
    faults += _slips(used, known, {param.name.lower() for param in params})
    return sorted(faults, key=lambda fault: fault.at)


def _of_param(param: nodes.Param) -> Iterator[ScriptProblem]:
    if _UNCLEAR.fullmatch(param.name):
        message = (
            f"PARAM {param.name}: models cannot infer the meaning of this name; use a descriptive one such as `city`"
        )
        yield ScriptProblem(param.at, Code.UNCLEAR_NAME, message, "warning")
    if not param.has_like and not param.choices and param.type not in ("boolean", "bool"):
        message = f'PARAM {param.name} has no example; add LIKE "…" to show models a valid value'
        yield ScriptProblem(param.at, Code.MISSING_LIKE, message, "warning")


def _unknown(used: _Use, known: set[str], params: set[str], usages: Mapping[str, str]) -> Iterator[ScriptProblem]:
    there = used.written | known | params
    unknown = [(name, node) for name, node in used.read.items() if name not in there]
    for number, (name, node) in enumerate(unknown):
        meant = sorted(used.written | params) if number < _MOST_HINTS else ()
        if name in used.heard_as:
            yield ScriptProblem(node.at, Code.UNKNOWN_VARIABLE, _no_kind(name, meant), "warning")
            continue
        if name in usages:
            message = f"{name.upper()} needs arguments, and there is no variable of this name; write {usages[name]}"
            yield ScriptProblem(node.at, Code.SYNTAX, message)
            continue
        near = difflib.get_close_matches(name, meant, n=1, cutoff=_NEAR)
        hint = f"; did you mean `{near[0]}`?" if near else "; assign it first, or declare it with PARAM"
        message = f"`{name}` is never assigned, so it is NULL here{hint}"
        yield ScriptProblem(node.at, Code.UNKNOWN_VARIABLE, message, "warning")


def _slips(used: _Use, known: set[str], params: set[str]) -> Iterator[ScriptProblem]:
    """Names that UPDATE reads as columns but that resemble a variable."""
    there = used.written | params
    for name, node in used.copied.items():
        near = difflib.get_close_matches(name, sorted(there), n=1, cutoff=_NEAR) if name not in there | known else ()
        if near:
            message = f"there is no variable `{name}`, so the column of that name is used; did you mean `{near[0]}`?"
            yield ScriptProblem(node.at, Code.UNKNOWN_VARIABLE, message, "warning")


def _no_kind(name: str, variables: Collection[str]) -> str:
    """Message for an unknown word in `HEAR answer AS word`: neither a kind nor a variable with choices."""
    near = difflib.get_close_matches(name, (*type_names(), *variables), n=1, cutoff=_NEAR)
    hint = (
        f"; did you mean {near[0].upper()}?"
        if near
        else '; use a kind such as EMAIL, a variable, or texts as choices: AS "Yes", "No"'
    )
    return f"unknown kind of answer `{name.upper()}` for HEAR{hint}"


_BARE = re.compile(r"(?<![${])\{([^\W\d]\w*)\}(?!\})")
_GIVEN = SESSION_VARIABLES - {
    "err",
    "error",
    "error_message",
    "from",
    "now",
    "rnd",
    "timer",
    "today",
    "language",
    "group",
}
"""Variables with facts of the run that a script rarely means to replace."""


def _bare_braces(used: _Use, names: set[str]) -> Iterator[ScriptProblem]:
    for text in used.texts:
        found = next((name for name in _BARE.findall(str(text.value)) if name.lower() in names), "")
        if found:
            message = f"`{{{found}}}` is sent as it is; write `${{{found}}}` to insert the variable"
            yield ScriptProblem(text.at, Code.SUSPICIOUS, message, "warning")


def _constant_conditions(used: _Use) -> Iterator[ScriptProblem]:
    for condition in used.conditions:
        if _is_constant(condition):
            message = "this condition is the same in every run; compare a variable: IF x = 1 OR x = 2"
            yield ScriptProblem(condition.at, Code.SUSPICIOUS, message, "warning")


def _is_constant(node: Expression) -> bool:
    """Whether the value is always the same, also because a literal is an operand of OR: `x = 1 OR 2`."""
    if isinstance(node, nodes.Binary):
        sides = (node.left, node.right)
        is_true = any(isinstance(side, nodes.Literal) and side.value for side in sides)
        return (node.operator == "or" and is_true) or all(map(_is_constant, sides))
    return _is_constant(node.operand) if isinstance(node, nodes.Unary) else isinstance(node, nodes.Literal)


def _shadowed(used: _Use, params: Iterable[nodes.Param]) -> Iterator[ScriptProblem]:
    """Assignments that hide a variable that the run sets."""
    declared = {param.name.lower() for param in params}
    for name, at in used.assigned.items():
        if name in _GIVEN - declared:
            message = f"`{name}` is set when the script begins; this assignment hides it: use another name"
            yield ScriptProblem(at, Code.SUSPICIOUS, message, "warning")


def _without_effect(used: _Use) -> Iterator[ScriptProblem]:
    for call in used.keywords:
        if call.keyword in NO_EFFECT:
            yield ScriptProblem(call.at, Code.SUSPICIOUS, f"{call.keyword} has no effect here; delete it", "warning")


_DESCRIPTION = re.compile(r"^[ \t]*DESCRIPTION\b", re.IGNORECASE | re.MULTILINE)
_MISSPELT = re.compile(r"^[ \t]*DE\w*C\w*N\b", re.IGNORECASE | re.MULTILINE)
_UNQUOTED = re.compile(r"^[ \t]*DESCRIPTION[ \t]+[^\s\"'“`]", re.IGNORECASE | re.MULTILINE)


def _lines(text: str, pattern: re.Pattern[str]) -> list[int]:
    """Numbers of the lines at which `pattern` matches."""
    return [text.count("\n", 0, found.start()) + 1 for found in pattern.finditer(text)]


def _unclear_descriptions(text: str, doubled: Iterable[At]) -> Iterator[ScriptProblem]:
    """Warnings of the strict profile."""
    for line in _lines(text, _UNQUOTED):
        yield ScriptProblem(At(line, 1), Code.NOT_IN_STRICT, 'put the text in quotes: DESCRIPTION "…"', "warning")
    for at in doubled:
        message = "a tool has one DESCRIPTION; the last one is used"
        yield ScriptProblem(at, Code.NOT_IN_STRICT, message, "warning")


class _Use:
    """Variables that nodes read and write, and nodes that lints examine."""

    def __init__(self) -> None:
        self.read: dict[str, nodes.Name] = {}
        """First read of each variable."""
        self.written: set[str] = set()
        self.copied: dict[str, nodes.Name] = {}
        """First use of each name that UPDATE assigns to a column by itself."""
        self.heard_as: set[str] = set()
        """Single words after the AS of a HEAR."""
        self.assigned: dict[str, At] = {}
        """First assignment of each variable by a statement of its own."""
        self.texts: list[nodes.Literal] = []
        self.conditions: list[Expression] = []
        self.keywords: list[nodes.KeywordCall] = []

    def note(self, node: object) -> None:
        """Collect from a node and all its descendants. Iterative, since scripts may be long."""
        left = [node]
        while left:
            one = left.pop()
            if isinstance(one, nodes.Name):
                known = self.read.get(one.name)
                if known is None or one.at < known.at:
                    self.read[one.name] = one
            elif isinstance(one, tuple):
                left += one
            elif type(one) in _PARTS:
                self._examine(one)
                left += self._below(one)

    def _examine(self, node: object) -> None:
        if isinstance(node, nodes.Literal) and isinstance(node.value, str):
            self.texts.append(node)
        elif isinstance(node, nodes.If):
            self.conditions += [condition for condition, _ in node.branches]
        elif isinstance(node, nodes.KeywordCall):
            self.keywords.append(node)
        elif isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
            known = self.assigned.get(node.target.name, node.at)
            self.assigned[node.target.name] = min(known, node.at)

    def _below(self, node: object) -> list[object]:
        """Descendants of `node` that are read; variables that it writes are recorded."""
        if isinstance(node, nodes.KeywordCall) and node.keyword == "HEAR":
            lists = [value.items for _, value in node.arguments if isinstance(value, nodes.ListOf)]
            self.heard_as |= {
                one.name for items in lists if len(items) == 1 for one in items if isinstance(one, nodes.Name)
            }
        elif isinstance(node, nodes.RowExpression):
            # An unset name in it is a column; a name by itself may also be a typo.
            if isinstance(node.value, nodes.Name):
                self.copied.setdefault(node.value.name, node.value)
            return [one for one in nodes_in((node.value,)) if isinstance(one, nodes.KeywordCall)]
        elif isinstance(node, nodes.ForEach | nodes.ForTo):
            self.written.add(node.variable)
        elif isinstance(node, nodes.Dim):
            self.written.add(node.name.lower())
        elif isinstance(node, nodes.Define):
            self.written |= {node.name, *node.parameters}
        elif isinstance(node, nodes.Assign | nodes.With):
            return [*self._indexes(node.target), node.value if isinstance(node, nodes.Assign) else node.entries]
        return [getattr(node, name) for name in _PARTS[type(node)]]

    def _indexes(self, target: Target) -> list[object]:
        """Expressions read to locate the target: `list[i] = 1` reads `i`. A variable at its root is added to
        `written`."""
        read: list[object] = []
        of: object = target
        while isinstance(of, nodes.Member | nodes.Index):
            if isinstance(of, nodes.Index):
                read.append(of.index)
            of = of.of
        if isinstance(of, nodes.Name):
            self.written.add(of.name)
            return read
        return [*read, of]


Arity = tuple[int, int | None]
"""Minimum and maximum number of arguments; a maximum of None is unlimited."""
_MOST_FINDINGS = 200
"""Limit on reported errors of a script, and on warnings."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CompiledTool:
    """A tool's definition for models and its program."""

    definition: ToolDefinition
    program: Program


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """Result of compiling one script."""

    tools: tuple[CompiledTool, ...] = ()
    """Empty if there are errors: part of a script is never run."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Errors and warnings in source order."""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Diagnostics that make the script unusable."""
        return tuple(one for one in self.diagnostics if one.severity == "error")


@dataclass(slots=True)
class BasicCompiler:
    """Compiles scripts; thread-safe."""

    forms: Forms
    """Forms of the available keywords."""
    functions: Mapping[str, Arity]
    """Functions of the language, by lower-case name."""
    source_bytes: int = 64 * 1024
    """Size limit of a script."""
    spellings: tuple[str, ...] = ()
    """The declared spelling of the forms."""

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
        """Compile a text or the bytes of a file. `file` is the path in diagnostics."""
        content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        try:
            script_text = self._text(content)
            parsed = parse(script_text, self.forms, self.functions)
            found = list(parsed.faults)
            definitions, faults = definitions_of(parsed.script, name, profile, bot=bot, source_file=file)
            descriptions = [At(line, 1) for line in _lines(script_text, _DESCRIPTION)]
            if _has_errors(parsed.faults) and (descriptions or _MISSPELT.search(script_text)):
                # The line with the error may be the DESCRIPTION.
                faults = [one for one in faults if one.code is not Code.MISSING_DESCRIPTION]
            found += faults
            if profile is Profile.STRICT:
                found += _unclear_descriptions(script_text, descriptions[len(parsed.script.units) :])
            if _has_errors(found):
                # Unset variables cannot be determined in a script with errors.
                found += [lint for unit in parsed.script.units for param in unit.params for lint in _of_param(param)]
            else:
                alone = [name for name, (fewest, _) in self.functions.items() if not fewest]
                found += lints_of(parsed.script, variables=variables, functions=alone, usages=self.forms.usages)
            tools = () if _has_errors(found) else self._tools(parsed.script, definitions, found)
        except ScriptError as error:
            return _result((), [error.fault], file)
        return _result(tools, found, file)

    def _text(self, content: bytes) -> str:
        """Decode the source as UTF-8, without a byte order mark. Raises ScriptError if it is larger than `source_bytes`
        or not valid UTF-8."""
        if len(content) > self.source_bytes:
            message = f"the script has {len(content):,} bytes, more than the limit of {self.source_bytes:,}; split it"
            raise ScriptError(_FIRST, Code.TOO_LONG, message)
        content = content.removeprefix(_BOM)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            before = content[: error.start]
            line_start = before.rfind(b"\n") + 1
            at = At(before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace")) + 1)
            message = "the file is not valid UTF-8 from here on; save it as UTF-8"
            raise ScriptError(at, Code.UNREADABLE, message) from None

    def _tools(
        self, script: Script, definitions: Sequence[ToolDefinition], found: list[ScriptProblem]
    ) -> tuple[CompiledTool, ...]:
        """Programs of a script without errors. Errors of code generation are added to `found`."""
        tools: list[CompiledTool] = []
        for definition in definitions:
            try:
                tools.append(CompiledTool(definition, program_of(script.units[definition.unit], script.definitions)))
            except ScriptError as error:
                found.append(error.fault)
        return () if _has_errors(found) else tuple(tools)

    def digest(self) -> str:
        """Digest of everything but the source that determines the result; programs with another digest are not
        reused."""
        summed = hashlib.sha256(repr((self.source_bytes, sorted(self.functions.items()), self.spellings)).encode())
        for folder in function_calls.basic.__path__:
            # Includes the compiler's own source files, so that a new release recompiles everything.
            for file in sorted(Path(folder).rglob("*.py")):
                summed.update(file.read_bytes())
        return summed.hexdigest()[:32]


def _has_errors(found: Iterable[ScriptProblem]) -> bool:
    return any(one.severity == "error" for one in found)


def _result(tools: tuple[CompiledTool, ...], found: Iterable[ScriptProblem], file: str) -> CompilationResult:
    diagnostics = Diagnostics(one.diagnostic(file) for one in found).in_order()
    errors = [one for one in diagnostics if one.severity == "error"]
    warnings = [one for one in diagnostics if one.severity != "error"]
    # Limited here, so that callers need not count.
    kept = (*errors[:_MOST_FINDINGS], *warnings[:_MOST_FINDINGS])
    return CompilationResult(tools, tuple(Diagnostics(kept).in_order()))
