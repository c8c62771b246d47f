"""What makes a script hard to use or is probably not meant, though it runs. Warnings nearly all: a good script has
none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import get_args

from function_calls.basic.codes import Code, Fault
from function_calls.basic.filter_texts import nodes_in
from function_calls.basic.nodes import (
    Assign,
    Case,
    Define,
    Dim,
    Expression,
    ForEach,
    ForTo,
    Index,
    ListOf,
    Member,
    Name,
    OfRow,
    Param,
    Script,
    Statement,
    Target,
    Unit,
    Want,
    With,
)
from function_calls.basic.param_types import type_names
from function_calls.basic.scopes import SESSION_VARIABLES

_UNCLEAR = re.compile(r"[a-z]\d*|(foo|bar|baz|tmp|arg|param)\d*", re.IGNORECASE)
_PARTS = {
    node: tuple(field.name for field in fields(node) if field.name not in ("at", "name", "operator"))
    for node in (Script, Unit, *get_args(Expression), *get_args(Statement), Case)
}
"""What may be read below a node, by its type."""
_NONE: Mapping[str, str] = MappingProxyType({})
_NEAR = 0.75
_MOST_HINTS = 20
"""Finding what a name nearly is takes long where there are many."""


def lints_of(
    script: Script,
    *,
    variables: Collection[str] = (),
    functions: Collection[str] = (),
    usages: Mapping[str, str] = _NONE,
) -> list[Fault]:
    """Names that say nothing, parameters without an example and variables that nothing sets, in the order of their
    places. Only for a script that was read without error: what sets a variable may stand in a line that was not.
    `variables`: those that the configuration of the bot sets, such as `x` of `param-x`; `functions`: what may be
    called without parentheses; `usages`: how the keywords of one word are written that need something, by their names
    in lower case. Where no variable is called so, such a name for a value is an error: the keyword was meant. What a
    description lacks `definitions_of` tells."""
    known = {name.lower() for name in (*variables, *functions)} | SESSION_VARIABLES
    used = _Use()
    used.note(script)
    params = [param for unit in script.units for param in unit.params]
    faults = [fault for param in params for fault in _of_param(param)]
    faults += _unknown(used, known, {param.name.lower() for param in params}, usages)
    faults += _slips(used, known, {param.name.lower() for param in params})
    return sorted(faults, key=lambda fault: fault.at)


def lints_of_a_half(script: Script) -> list[Fault]:
    """What can be told of a script as well that was read with errors: of its parameters."""
    faults = [fault for unit in script.units for param in unit.params for fault in _of_param(param)]
    return sorted(faults, key=lambda fault: fault.at)


def _of_param(param: Param) -> Iterator[Fault]:
    if _UNCLEAR.fullmatch(param.name):
        told = f"PARAM {param.name}: the name says nothing to a model; call it by what it is, as in `city`"
        yield Fault(param.at, Code.UNCLEAR_NAME, told, "warning")
    if not param.has_like and not param.choices and param.type not in ("boolean", "bool"):
        told = f'PARAM {param.name} has no example; LIKE "…" shows a model how it is filled'
        yield Fault(param.at, Code.MISSING_LIKE, told, "warning")


def _unknown(used: _Use, known: set[str], params: set[str], usages: Mapping[str, str]) -> Iterator[Fault]:
    there = used.written | known | params
    unknown = [(name, node) for name, node in used.read.items() if name not in there]
    for number, (name, node) in enumerate(unknown):
        meant = sorted(used.written | params) if number < _MOST_HINTS else ()
        if name in used.heard_as:
            yield Fault(node.at, Code.UNKNOWN_VARIABLE, _no_kind(name, meant), "warning")
            continue
        if name in usages:
            told = f"{name.upper()} needs more than its name here, and no variable is called so; write {usages[name]}"
            yield Fault(node.at, Code.SYNTAX, told)
            continue
        near = difflib.get_close_matches(name, meant, n=1, cutoff=_NEAR)
        hint = f"; did you mean `{near[0]}`?" if near else "; set it first, or take it with PARAM"
        told = f"nothing gives `{name}` a value, so it is NULL here{hint}"
        yield Fault(node.at, Code.UNKNOWN_VARIABLE, told, "warning")


def _slips(used: _Use, known: set[str], params: set[str]) -> Iterator[Fault]:
    """What UPDATE takes for a column, and is written nearly as a variable is."""
    there = used.written | params
    for name, node in used.copied.items():
        near = difflib.get_close_matches(name, sorted(there), n=1, cutoff=_NEAR) if name not in there | known else ()
        if near:
            told = f"no variable is called `{name}`, so it is the column of the row here; did you mean `{near[0]}`?"
            yield Fault(node.at, Code.UNKNOWN_VARIABLE, told, "warning")


def _no_kind(name: str, variables: Collection[str]) -> str:
    """Of the word in `HEAR answer AS word`: it can name a kind, or a variable that holds what may be chosen."""
    near = difflib.get_close_matches(name, (*type_names(), *variables), n=1, cutoff=_NEAR)
    hint = (
        f"; did you mean {near[0].upper()}?"
        if near
        else ', such as EMAIL, and no variable; choices are texts: AS "Yes", "No"'
    )
    return f"HEAR knows no kind of answer `{name.upper()}`{hint}"


class _Use:
    """Which variables nodes read and write."""

    def __init__(self) -> None:
        self.read: dict[str, Name] = {}
        """Each where it is read first."""
        self.written: set[str] = set()
        self.copied: dict[str, Name] = {}
        """What UPDATE gives a column alone, each where it stands first."""
        self.heard_as: set[str] = set()
        """Single words behind the AS of a HEAR."""

    def note(self, node: object) -> None:
        """Take in a node with all below it. A loop, since scripts may be long."""
        left = [node]
        while left:
            one = left.pop()
            if isinstance(one, Name):
                known = self.read.get(one.name)
                if known is None or one.at < known.at:
                    self.read[one.name] = one
            elif isinstance(one, tuple):
                left += one
            elif type(one) in _PARTS:
                left += self._below(one)

    def _below(self, node: object) -> list[object]:
        """What is read below `node`; what it writes is noted."""
        if isinstance(node, Want) and node.keyword == "HEAR":
            lists = [value.items for _, value in node.arguments if isinstance(value, ListOf)]
            self.heard_as |= {one.name for items in lists if len(items) == 1 for one in items if isinstance(one, Name)}
        elif isinstance(node, OfRow):
            # A name in it that nothing sets is a column; one that stands alone may be a slip as well.
            if isinstance(node.value, Name):
                self.copied.setdefault(node.value.name, node.value)
            return [one for one in nodes_in((node.value,)) if isinstance(one, Want)]
        elif isinstance(node, ForEach | ForTo):
            self.written.add(node.variable)
        elif isinstance(node, Dim):
            self.written.add(node.name.lower())
        elif isinstance(node, Define):
            self.written |= {node.name, *node.parameters}
        elif isinstance(node, Assign | With):
            return [*self._indexes(node.target), node.value if isinstance(node, Assign) else node.entries]
        return [getattr(node, name) for name in _PARTS[type(node)]]

    def _indexes(self, target: Target) -> list[object]:
        """What is read to find what is written: `list[i] = 1` reads `i`."""
        read: list[object] = []
        of: object = target
        while isinstance(of, Member | Index):
            if isinstance(of, Index):
                read.append(of.index)
            of = of.of
        if isinstance(of, Name):
            self.written.add(of.name)
            return read
        return [*read, of]
