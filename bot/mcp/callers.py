"""Callers over MCP and their rights; and whether the SDK is installed, with its log output."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import structlog

from bot.chats.chats import Chats
from bot.direct_calls import Caller
from config.sections.mcp import ACCOUNT, PLATFORM, McpClientSettings
from function_calls.call import Path
from function_calls.spec import FunctionSpec
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
        return not self.functions or spec.name in self.functions or not spec.origin.tags.isdisjoint(self.functions)

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


_NAME = "mcp"


class _IntoOurLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger("mcp")
        error = record.exc_info[1] if record.exc_info else None
        # Requests of others: nothing there is a failure of ours that `bot.mcp.server` has not told.
        log.warning("mcp_library", said=record.getMessage()[:300], exc_info=error)


def into_our_log() -> None:
    """Lead warnings of the library into the log; a second call does nothing."""
    logger = logging.getLogger(_NAME)
    if not any(isinstance(handler, _IntoOurLog) for handler in logger.handlers):
        logger.addHandler(_IntoOurLog(logging.WARNING))
        logger.propagate = False


MISSING = "this installation lacks the package `mcp`: install Rollcall with its extra, as in `rollcall[mcp]`"


def is_installed() -> bool:
    """Without loading it, which takes half a second."""
    return importlib.util.find_spec("mcp") is not None
