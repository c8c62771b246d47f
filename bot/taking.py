"""What a message takes to hand: names of functions on request, and of groups, written as @name. They are no part of
what its sender says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

from bot.platforms.mentions import Found, finding
from function_calls.context import Kind, MessageContext
from function_calls.registry import BotFunctions

_SAID = frozenset({Kind.MESSAGE, Kind.EDIT})
_HANDLE = re.compile(r"[@＠]([^\s@＠,，:：;；!！?？()（）]+)")
_ADDRESSEE = re.compile(r"\s*[^\s@＠:,，：]+[:,，：]")


class Taking:
    """Reads messages for the functions of their bot."""

    def __init__(self) -> None:
        self._finds: WeakKeyDictionary[BotFunctions, Callable[[str], Found | None]] = WeakKeyDictionary()

    def read(self, context: MessageContext, functions: BotFunctions) -> MessageContext:
        """`context` with what it takes to hand, and without the words that say so: by them it is addressed to the
        bot. The same where it names nothing."""
        names, text = functions.on_request.takeable, context.text
        if not names or context.kind not in _SAID or ("@" not in text and "＠" not in text) or text.startswith("/"):
            # What a command is given stays as it was written.
            return context
        find = self._finds.get(functions)
        if find is None:
            find = self._finds[functions] = finding(names)
        found = find(text)
        if found is None or (context.mentions and _are_members(context, found)):
            return context
        taken = (functions.on_request.find(word) for word in found.names)
        takes = tuple(dict.fromkeys(one.name for one in taken if one is not None))
        return replace(context, text=found.text, mentions_bot=True, takes=takes)


def _are_members(context: MessageContext, found: Found) -> bool:
    """Whether members are meant by what is written so, as the network says: those that bear such a name, or as many
    as are mentioned and written nowhere else."""
    natives = {member.native.casefold() for member in context.mentions}
    if not natives.isdisjoint(found.names):
        return True
    handles = {one.casefold().rstrip(".'’") for one in _HANDLE.findall(context.text)}
    others = handles.difference(found.names)
    elsewhere = len(others) + (1 if _ADDRESSEE.match(context.text) else 0)
    return len(natives - handles) > elsewhere - len(natives & others)
