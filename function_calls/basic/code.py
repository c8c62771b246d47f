"""Code of a script: from its tree to a program, and what can only be seen to be wrong on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from function_calls.basic.code_expressions import Found
from function_calls.basic.code_statements import StatementCode
from function_calls.basic.codes import Code, Fault, ScriptFault
from function_calls.basic.nodes import Define, Unit
from function_calls.basic.program import Procedure, Program, made
from function_calls.basic.scopes import own_scope, top_scope


@dataclass(frozen=True, slots=True)
class _Made:
    procedure: Procedure
    found: Found


def program_of(unit: Unit, definitions: Sequence[Define]) -> Program:
    """The program of one unit of a file, with those of the file's SUBs and FUNCTIONs that it may come to. Raises
    ScriptFault for the first of `faults_of`."""
    parts = _parts(unit, definitions)
    faults = _faults(parts, definitions)
    if faults:
        raise ScriptFault(*faults[0][:3])
    wanted, reached = [""], dict[str, _Made]()
    while wanted:
        name = wanted.pop()
        if name not in reached:
            reached[name] = parts[name]
            wanted.extend(parts[name].found.procedures)
    procedures = {name: reached[name].procedure for name in sorted(reached)}
    keywords = [keyword for part in reached.values() for keyword in part.found.keywords]
    return made(procedures, keywords, [name for part in reached.values() for name in part.found.calls])


def faults_of(unit: Unit, definitions: Sequence[Define]) -> list[Fault]:
    """What is wrong with GOTO and labels, EXIT and CONTINUE, calls with too few or too many values and functions that
    do not exist, in the unit and in all definitions; in the order of the script."""
    return _faults(_parts(unit, definitions), definitions)


def _parts(unit: Unit, definitions: Sequence[Define]) -> dict[str, _Made]:
    by_name = {definition.name: definition for definition in reversed(definitions)}
    scope = top_scope(unit.body, (param.name.lower() for param in unit.params), by_name)
    found = Found()
    parts = {"": _Made(StatementCode(scope, "", found).procedure(unit.at, (), unit.body), found)}
    for definition in by_name.values():
        found = Found()
        code = StatementCode(own_scope(definition, scope), definition.name, found)
        parts[definition.name] = _Made(code.procedure(definition.at, definition.parameters, definition.body), found)
    return parts


def _faults(parts: dict[str, _Made], definitions: Sequence[Define]) -> list[Fault]:
    faults = [fault for part in parts.values() for fault in part.found.faults]
    lines: dict[str, int] = {}
    for definition in definitions:
        first = lines.setdefault(definition.name, definition.at.line)
        if first != definition.at.line:
            message = f"there is a SUB or FUNCTION {definition.name.upper()} in line {first} already"
            faults.append(Fault(definition.at, Code.DUPLICATE_NAME, message))
        doubles = {name for name in definition.parameters if definition.parameters.count(name) > 1}
        faults += [
            Fault(definition.at, Code.DUPLICATE_NAME, f"{definition.name.upper()} has two parameters {name.upper()}")
            for name in sorted(doubles)
        ]
    return sorted(set(faults), key=lambda fault: fault.at)
