"""Settings of who is told how the bot itself is doing."""

from __future__ import annotations

from config.terms import ChatKey, Section


class OperatorsSettings(Section):
    """Those who run the bot."""

    chat: ChatKey | None = None
    """The chat that is told when an edit breaks settings or functions, and when all is well again, as
    `platform:account:chat`; it has to be in `chats.allow`. Without one it is told in the log alone."""
