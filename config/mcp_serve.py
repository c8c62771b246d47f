"""Settings of the bot as an MCP server: the programs that may call its functions over HTTP, each with its rights."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic import ValidationInfo as Info

from config.terms import SHORTEST_TOKEN, BotName, ChatKey, RoleName, Section, Word, described_matching, fault

PLATFORM = "mcp"
ACCOUNT = "main"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_PATH = r"(/[A-Za-z0-9_-]+)+"
_TAKEN = ("api", "static", "owner", "healthz", "readyz", "metrics")
"""What the web app's other routes begin with."""


_Name = Annotated[
    str,
    *described_matching(_NAME, "has to begin with a letter or digit and hold only letters, digits, `.`, `_` and `-`"),
]
_Path = Annotated[str, *described_matching(_PATH, "has to be a path such as /mcp, of letters, digits, `_` and `-`")]


class McpClientSettings(Section):
    """One program that may call the bot's functions."""

    name: _Name
    """What it is called: as the member `mcp:main:<name>` it calls, and stands in the logs. Each once."""
    token: SecretStr
    """The bearer token by which it is known, of at least 16 characters; best a reference to the environment."""
    role: RoleName = "member"
    """What it may do: as much as a member of that role."""
    chat: ChatKey | None = None
    """The chat in which it acts, whose data it sees and whose settings hold for it. Left out: `mcp:main:<name>`, a
    private chat of its own, which needs no entry in `chats.allow`."""
    bot: BotName | None = None
    """The bot whose functions it gets in a chat of its own, by its key in `bots`. Left out: `default`."""
    functions: tuple[Word, ...] = Field(default=(), max_length=1000)
    """The names or tags of the functions that it may call. Empty: all that its role may."""
    elicitation: bool = True
    """Whether what a function asks is put to its user, where it can do that. Off for programs that answer by
    themselves: then such a function is refused."""
    sampling: bool = False
    """Whether a function that wants a model's words has them from the program's own model, where it can do that. What
    the function passes goes to that model then. Off: the bot's own is asked."""

    @field_validator("token")
    @classmethod
    def _long_enough(cls, token: SecretStr) -> SecretStr:
        value = token.get_secret_value()
        if len(value) < SHORTEST_TOKEN:
            raise fault(f"has to have at least {SHORTEST_TOKEN} characters")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise fault("has to hold only ASCII characters without spaces, since it is sent in a header")
        return token

    @field_validator("bot")
    @classmethod
    def _in_a_chat_of_its_own(cls, bot: BotName | None, info: Info) -> BotName | None:
        if bot is not None and info.data.get("chat") is not None:
            raise fault("does not go with chat, because the bot of a chat is set in chats.settings; leave one of both")
        return bot

    @property
    def chat_key(self) -> str:
        """The key of the chat in which it acts."""
        return self.chat or f"{PLATFORM}:{ACCOUNT}:{self.name}"


class McpServeSettings(Section):
    """The bot's functions for other programs, by the Model Context Protocol over the web server."""

    enabled: bool = False
    """Whether they are served."""
    path: _Path = "/mcp"
    """Where on the web server."""
    clients: tuple[McpClientSettings, ...] = Field(default=(), max_length=1000)
    """The programs that may call."""

    @field_validator("path")
    @classmethod
    def _free(cls, path: str) -> str:
        first = path.split("/")[1]
        if first in _TAKEN:
            raise fault(f"begins with /{first}, where the web server has something else")
        return path

    @field_validator("clients")
    @classmethod
    def _told_apart(cls, clients: tuple[McpClientSettings, ...], info: Info) -> tuple[McpClientSettings, ...]:
        if info.data.get("enabled") and not clients:
            raise fault("names nobody; while mcp.serve is enabled there has to be at least one client")
        seen: dict[str, str] = {}
        for client in clients:
            token = client.token.get_secret_value()
            if token in seen:
                raise fault(f"gives {seen[token]} and {client.name} the same token; each needs one of its own")
            seen[token] = client.name
        return clients
