"""The public interface for authors of platforms: what an adapter of a chat network implements and uses.
docs/platforms/writing-one.md has a complete adapter. The contract that it must pass is `bot.platforms.contract`."""

from __future__ import annotations

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import (
    Accepted,
    ChatPlatform,
    CommandHint,
    CommandMenus,
    Deliver,
    Editing,
    Files,
    FileUnavailable,
    Limits,
    Linked,
    LinkState,
    Membership,
    Moderating,
    Outgoing,
    Reacting,
    Receipt,
    SendFailed,
    Webhooks,
    thread_of,
)
from bot.platforms.connection import Acceptance, CannotConnect, ConnectedPlatform, Connection, Cursor
from bot.platforms.markdown import plain_lines
from bot.platforms.mentions import mention_parser
from config.sections.networks import NetworkSettings
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from function_calls.ports import Measure, ModerationRequest
from services.refs import ChatRef, MemberRef, Role

__all__ = [
    "Acceptance",
    "Accepted",
    "Adapter",
    "Attachment",
    "CannotConnect",
    "CannotOpen",
    "ChatPlatform",
    "ChatRef",
    "CommandHint",
    "CommandMenus",
    "ConnectedPlatform",
    "Connection",
    "Cursor",
    "Deliver",
    "Editing",
    "FileUnavailable",
    "Files",
    "Host",
    "Kind",
    "Limits",
    "LinkState",
    "Linked",
    "Measure",
    "MemberRef",
    "Membership",
    "MessageContext",
    "MessageKey",
    "Moderating",
    "ModerationRequest",
    "NetworkSettings",
    "Outgoing",
    "Quoted",
    "Reacting",
    "Receipt",
    "Role",
    "SendFailed",
    "Sender",
    "Webhooks",
    "mention_parser",
    "plain_lines",
    "thread_of",
]
