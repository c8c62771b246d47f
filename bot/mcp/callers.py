"""Callers over MCP and their rights; check for the SDK and redirection of its log."""

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
from services.extras import missing_extra
from services.refs import ChatRef, MemberRef, Role


class Unserved(NamedTuple):
    """The chat of a program is not served by the bot."""

    chat: str
    setting: str


@dataclass(frozen=True, slots=True)
class McpCaller:
    """A program that calls over MCP, and its rights."""

    caller: Caller
    functions: Collection[str] = ()
    """Names and tags of the functions that it may call; empty: all that its role permits."""
    has_own_chat: bool = True
    """The chat belongs to the program, so it does not have to be in `chats.allow`."""
    may_be_asked: bool = True
    """Whether questions of functions may go to its user, if its client supports elicitation."""
    may_lend: bool = False
    """Whether its model may write text for functions, if its client supports sampling."""
    role_now: Callable[[MemberRef, Role], Role] = lambda _member, role: role
    """Returns the current role from the settings."""

    @property
    def now(self) -> Caller:
        """The caller with its current role."""
        caller = self.caller
        return replace(caller, role=self.role_now(caller.member, caller.role))

    def may_name(self, spec: FunctionSpec) -> bool:
        """Whether the settings let the program call the function: by its name or a tag, or because they name none."""
        return not self.functions or spec.name in self.functions or not spec.origin.tags.isdisjoint(self.functions)

    def unserved(self, chats: Chats) -> Unserved | None:
        """Why the program's chat is not served; None if it is."""
        chat = self.caller.chat
        served = chats.of(chat)
        if not self.has_own_chat and served.allowed_by is None:
            return Unserved(chat.key, "chats.allow")
        return None if served.settings.enabled else Unserved(chat.key, served.settings.layers["enabled"])


def program(client: McpClientSettings, chats: Chats) -> McpCaller:
    """The caller described by an entry of the settings. Its own chat is used unless the entry names a chat; `role_now`
    reads the current role from `chats`."""
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
        # Errors of requests; our own failures are already logged by `bot.mcp.server`.
        log.warning("mcp_library", said=record.getMessage()[:300], exc_info=error)


def into_our_log() -> None:
    """Send warnings of the SDK to the log. Idempotent."""
    logger = logging.getLogger(_NAME)
    if not any(isinstance(handler, _IntoOurLog) for handler in logger.handlers):
        logger.addHandler(_IntoOurLog(logging.WARNING))
        logger.propagate = False


MISSING = missing_extra("mcp", "mcp")


def is_installed() -> bool:
    """Whether the SDK is installed. It is not imported, which takes half a second."""
    return importlib.util.find_spec("mcp") is not None
