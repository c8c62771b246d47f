"""What a script says of tables: filters that a member says as a whole, and which tables it reads and fills."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from function_calls.basic.codes import Code, Fault
from function_calls.basic.filter_texts import is_id, is_of_author, nodes_in
from function_calls.basic.nodes import Apply, Assign, At, Expression, FilterText, Literal, Name, Script, Want

_ASKS = "HEAR"
_LOOK_ONLY = frozenset(
    {
        "FIND", "FILTER", "SORT", "AGGREGATE", "GROUP BY", "PIVOT", "JOIN", "MAP", "FILL", "FIRST", "LAST", "UPDATE",
        "DELETE", "DELETE FROM", "TALK", "PRINT", "LOG", "DEBUG", "READ", "SEND FILE",
    }
)  # fmt: skip
"""Keywords that put no row into a table, whatever they are given."""
_FILLS = frozenset({"SAVE", "INSERT", "MERGE", "SAVE FROM UNSTRUCTURED"})


class TablesNamed(NamedTuple):
    """The tables of which a script speaks."""

    read: tuple[tuple[str, At], ...] = ()
    """What FIND names in so many words, and where."""
    filled: frozenset[str] = frozenset()
    """What other keywords may fill, in lower case."""
    fills_any: bool = False
    """Whether one of them is given a name that is known only when it runs."""


def filter_lints(script: Script) -> Iterator[Fault]:
    """Filters of which a member may say all, so that they choose the columns and comparisons too."""
    nodes = list(nodes_in(script.units + script.definitions))
    said = {param.name.lower() for unit in script.units for param in unit.params}
    for node in nodes:
        if isinstance(node, Assign) and isinstance(node.target, Name) and _is_heard(node.value):
            said.add(node.target.name)
    for node in nodes:
        if isinstance(node, FilterText) and len(node.parts) == 1 and _may_be_said(node.parts[0], said):
            told = (
                "the whole filter comes from what a member says, who can ask for any rows of the table in this chat; "
                'write WHERE column = …, or "column = \'" + … + "\'"'
            )
            yield Fault(node.at, Code.OPEN_FILTER, told, "warning")


def tables_named(script: Script) -> TablesNamed:
    """The tables of which the script speaks."""
    read: list[tuple[str, At]] = []
    filled: set[str] = set()
    fills_any = False
    for node in nodes_in(script.units + script.definitions):
        if not isinstance(node, Want):
            continue
        texts = [one for _, one in node.arguments if isinstance(one, Literal) and isinstance(one.value, str)]
        first = node.arguments[0][1] if node.arguments else None
        if node.keyword == "FIND" and isinstance(first, Literal) and isinstance(first.value, str):
            read.append((first.value, first.at))
        elif node.keyword not in _LOOK_ONLY:
            filled |= {str(one.value).strip().lower() for one in texts}
            fills_any = fills_any or (node.keyword in _FILLS and not isinstance(first, Literal))
    return TablesNamed(tuple(sorted(read, key=lambda one: one[1])), frozenset(filled), fills_any)


def _is_heard(value: Expression) -> bool:
    return isinstance(value, Want) and value.keyword == _ASKS


def _may_be_said(whole: Expression, said: Collection[str]) -> bool:
    if isinstance(whole, Name):
        return whole.name in said and not is_id(whole)
    return isinstance(whole, Apply) and bool(whole.arguments) and not is_of_author(whole)
