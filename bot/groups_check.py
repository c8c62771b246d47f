"""What is doubtful about groups of functions: that they list what there is not. It does no harm, and is most likely
misspelt, or comes from a program that is not running."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from bot.function_findings import Code, finding
from config.diagnostics import Diagnostic
from function_calls.groups import ToolGroup
from function_calls.spec import FunctionSpec


def check_groups(groups: Iterable[ToolGroup], specs: Iterable[FunctionSpec]) -> list[Diagnostic]:
    """A warning for each function that a group lists and the bots of the group do not have."""
    everything = list(specs)
    found: list[Diagnostic] = []
    for group in groups:
        known = [one.name for one in everything if one.bot is None or group.bot is None or one.bot == group.bot]
        for name in group.functions:
            if name in known:
                continue
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            text = f"group {group.name!r}: there is no function {name!r}{hint}"
            found.append(finding(group.source, Code.GROUP_MEMBER, text))
    return found
