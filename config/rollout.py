"""Settings of the rollout: function calling by models for a share of the chats first."""

from __future__ import annotations

import hashlib

from pydantic import Field

from config.terms import Number, Section

_SHARES = 10_000


class RolloutSettings(Section):
    """Which share of the chats has function calling by models, where neither the chat nor `chats.settings` says."""

    percent: Number = Field(default=100, ge=0, le=100)
    """Of all chats, in steps of 0.01. Whoever is in stays in while it grows. The others have commands and chat."""
    name: str = Field(default="", max_length=128)
    """Another name draws other chats."""

    def includes(self, chat_key: str) -> bool:
        """Whether the chat is among those that come first: the same on every machine and after every start."""
        if self.percent >= 100:
            return True
        drawn = hashlib.sha256(f"{self.name}\0{chat_key}".encode()).digest()
        return int.from_bytes(drawn[:8]) % _SHARES < round(self.percent * _SHARES / 100)
