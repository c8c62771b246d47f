"""Who calls functions by the Model Context Protocol: over HTTP a program of the settings, over a pipe whoever started
the process."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

from bot.chats import Chats
from bot.direct_calls import Caller
from config.mcp_serve import ACCOUNT, PLATFORM, McpClientSettings
from function_calls.spec import FunctionSpec
from function_calls.turn_log import Path
from services.refs import ChatRef, MemberRef, Role


class Unserved(NamedTuple):
    """The chat of a program is none of the bot's."""

    chat: str
    setting: str


@dataclass(frozen=True, slots=True)
class McpCaller:
    """One program, and what it may name."""

    caller: Caller
    functions: Collection[str] = ()
    """The names and tags of what it may call; empty: all that its role may."""
    has_own_chat: bool = True
    """Its chat is there for it alone, so nobody had to allow it."""
    may_be_asked: bool = True
    """Its user is asked what a function asks, where it can do that."""
    may_lend: bool = False
    """Its model is asked for the words that a function wants, where it can do that."""
    role_now: Callable[[MemberRef, Role], Role] = lambda _member, role: role
    """What the settings make of its role at this moment."""

    @property
    def now(self) -> Caller:
        """The caller with the rights of this moment."""
        caller = self.caller
        return replace(caller, role=self.role_now(caller.member, caller.role))

    def may_name(self, spec: FunctionSpec) -> bool:
        """Whether the function is among those that are open to this program at all."""
        return not self.functions or spec.name in self.functions or not spec.tags.isdisjoint(self.functions)

    def unserved(self, chats: Chats) -> Unserved | None:
        """Why nothing may be called in its chat; None when it is served."""
        chat = self.caller.chat
        served = chats.of(chat)
        if not self.has_own_chat and served.allowed_by is None:
            return Unserved(chat.key, "chats.allow")
        return None if served.settings.enabled else Unserved(chat.key, served.settings.layers["enabled"])


def program(client: McpClientSettings, chats: Chats) -> McpCaller:
    """The caller that an entry of the settings describes."""
    caller = Caller(
        member=MemberRef(PLATFORM, ACCOUNT, client.name),
        name=client.name,
        role=Role(client.role),
        chat=ChatRef.parse(client.chat_key),
        is_group=client.chat is not None,
        path=Path.MCP,
    )
    return McpCaller(
        caller,
        frozenset(client.functions),
        has_own_chat=client.chat is None,
        may_be_asked=client.elicitation,
        may_lend=client.sampling,
        role_now=lambda member, role: chats.role(member.key, role),
    )
