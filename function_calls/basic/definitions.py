"""From a script to the definitions of its tools: what the profile allows, names and descriptions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from function_calls.basic.codes import Code, Fault, Profile
from function_calls.basic.nodes import Evaluate, Script, Unit, Want
from function_calls.basic.parameters import parameters_of
from function_calls.basic.tool_definition import ParamDecl as ParamDecl
from function_calls.basic.tool_definition import ToolDefinition as ToolDefinition
from function_calls.basic.tool_names import in_words, name_among, stem_of, tool_name
from function_calls.beginning import BEGINS_CHATS
from services.json_values import JsonObject

SESSION_SCRIPT = "start"
"""The script of this name runs when a conversation starts."""
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
) -> tuple[list[ToolDefinition], list[Fault]]:
    """The definitions of the script's tools, each naming its unit, and what is wrong with them. `name` is that of its
    file. A unit with an error has no definition; the others have. A script without PARAM is a tool without parameters,
    and several tools of a file are named by it and the first words of their descriptions, where it does not name them.
    `start.bas` is marked `session` in its metadata and needs no description, and in the extended profile a script that
    runs by the clock needs none."""
    stem = stem_of(name)
    file_name, named = tool_name(stem, profile)
    faults = [named] if named is not None else []
    if profile is Profile.STRICT and len(script.units) > 1:
        told = "the strict profile has one tool in a file; put this one into a file of its own"
        faults.append(Fault(script.units[1].at, Code.NOT_IN_STRICT, told))
    names = _names(script.units, file_name, profile, faults)
    metadata: JsonObject = {BEGINS_CHATS: True} if stem.lower() == SESSION_SCRIPT else {}
    definitions: list[ToolDefinition] = []
    for number, (unit, tool) in enumerate(zip(script.units, names, strict=True)):
        parameters, wrong = parameters_of(unit, profile)
        is_needed = not metadata and not (profile is Profile.EXTENDED and _is_for_the_clock(unit))
        description, missing = _description(unit, tool, profile, is_needed=is_needed)
        wrong += missing
        faults += wrong
        if tool and not any(fault.severity == "error" for fault in wrong):
            definitions.append(
                ToolDefinition(
                    tool, description, parameters, bot, source_file, unit.at.line, number, metadata=dict(metadata)
                )
            )
    return definitions, sorted(faults, key=lambda fault: fault.at)


def _names(units: Sequence[Unit], file_name: str, profile: Profile, faults: list[Fault]) -> list[str]:
    """The names of the tools, in order; empty for one that can have none."""
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
            told = f"the tool `{name}` is there twice: in line {other.at.line} and here; give one another name"
            faults.append(Fault(unit.at, Code.DUPLICATE_TOOL, told))
            name = ""
        names.append(name)
    return names


def _description(unit: Unit, name: str, profile: Profile, *, is_needed: bool) -> tuple[str, list[Fault]]:
    """What the tool does: as it says, else by the comment above it, else by its name."""
    if unit.description.strip():
        return unit.description.strip(), []
    derived = _told_by(unit.comment) or in_words(name)
    if not is_needed:
        return derived, []
    at = unit.description_at or unit.at
    is_strict = profile is Profile.STRICT
    told = "the DESCRIPTION is empty" if unit.description_at else "the DESCRIPTION is missing"
    told += '; write DESCRIPTION "what the tool does", so that a model knows when to call it'
    if derived and not is_strict:
        told += f". Until then it is told: {derived}"
    return derived, [Fault(at, Code.MISSING_DESCRIPTION, told, "error" if is_strict else "warning")]


def _is_for_the_clock(unit: Unit) -> bool:
    """Whether it sets when it runs and takes nothing: then nobody has to find it by what it does."""
    wants = (one.expression for one in unit.body if isinstance(one, Evaluate))
    return not unit.params and any(isinstance(one, Want) and one.keyword == _CLOCK for one in wants)


def _told_by(comment: str) -> str:
    """The words of comment lines, without what only decorates them, cut between words where they are many."""
    lines = (_DECORATION.sub("", line).strip() for line in comment.splitlines())
    text = " ".join(line for line in lines if line)
    if len(text) <= _MOST_DERIVED:
        return text
    return text[:_MOST_DERIVED].rpartition(" ")[0] + " …"
