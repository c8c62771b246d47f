"""Settings of the Model Context Protocol: the bot as a server, and servers whose tools it uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, WithJsonSchema, field_validator
from pydantic import ValidationInfo as Info

from config.terms import (
    SHORTEST_TOKEN,
    BotName,
    ChatKey,
    Count,
    LocalPath,
    RoleName,
    Roles,
    Seconds,
    Section,
    Word,
    described_matching,
    fault,
)

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


EffectName = Literal["read", "idempotent", "once"]
"""What a tool does to the world."""
WayName = Literal["model", "command", "timer", "mcp", "api"]
"""A way to a function."""
_MCP_SERVERS_NAME = r"[a-z0-9]([a-z0-9-]|_(?=[a-z0-9-])){0,31}"
_URL = r"https?://[^\s/?#@]+([/?][^\s#]*)?"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
_HEADER = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}"
_OURS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "mcp-session-id"}
)


def _a_header(name: str) -> str:
    if re.fullmatch(_HEADER, name) is None or name.lower() in _OURS:
        raise fault("has to be the name of a header, and none that the connection itself needs")
    return name


def _in_one_line(secret: SecretStr) -> SecretStr:
    if re.search(r"[\x00\r\n]", secret.get_secret_value()):
        raise fault("must not hold line ends")
    return secret


def _without_nul(secret: SecretStr) -> SecretStr:
    if "\0" in secret.get_secret_value():
        raise fault("must not hold NUL")
    return secret


_McpServersName = Annotated[
    str,
    *described_matching(
        _MCP_SERVERS_NAME,
        "has to hold only a-z, 0-9, - and single _, at most 32 of them, and to begin and end with none of the latter",
    ),
]
_Url = Annotated[str, *described_matching(f"({_URL})?", "has to be http(s)://host/path without user or fragment")]
_Variable = Annotated[str, *described_matching(_VARIABLE, "has to be the name of an environment variable")]
_Header = Annotated[str, AfterValidator(_a_header), WithJsonSchema({"type": "string", "pattern": f"^{_HEADER}$"})]
_Argument = Annotated[str, StringConstraints(max_length=8192), *described_matching(r"[^\x00]*", "must not hold NUL")]
_Sentences = Annotated[tuple[Word, ...], Field(max_length=100)]


class McpToolSettings(Section):
    """What is set for one tool of a server. What is left out is as for all tools of the server."""

    enabled: bool = True
    """False: it is no function here."""
    description: Annotated[str, Field(max_length=4000)] = ""
    """What models are told that it does, instead of the server's words."""
    examples: _Sentences = ()
    """Sentences that mean it; may hold `{slots}` named as parameters."""
    commands: _Sentences = ()
    """Direct words for it, without the slash."""
    effect: EffectName | None = None
    """What it does to the world: read changes nothing, idempotent may be repeated, once may not."""
    roles: Roles | None = None
    """Who may call it: the least role, or a list of roles."""
    scope: Literal["group", "private", "both"] | None = None
    """Where it may be called."""
    require_at: bool | None = None
    """True: in a group it runs only when the bot is addressed."""
    approval: Literal["none", "asker"] | RoleName | None = None
    """Whose yes each run waits for: that of whoever asks, or of the least role."""
    timeout_seconds: Seconds | None = None
    """After this time a run is stopped."""
    tags: _Sentences = ()
    """Further tags."""


class McpServerSettings(Section):
    """A program whose tools become functions, by the Model Context Protocol."""

    name: _McpServersName
    """What its functions begin with, as `mcp__<name>__<tool>`; each once."""
    command: tuple[_Argument, ...] = Field(default=(), max_length=1000)
    """The program that is started, and its arguments. It is spoken with over its standard input and output."""
    env: Mapping[_Variable, Annotated[SecretStr, AfterValidator(_without_nul)]] = Field(default_factory=dict)
    """The environment of that program, beside PATH, HOME, LANG and TMPDIR; it inherits nothing else."""
    folder: LocalPath | None = None
    """The working folder of that program. Left out: one of its own in `home`."""
    sandbox: Literal["off", "preferred", "required"] = "off"
    """Whether that program is kept apart from this machine. off: it may do what the daemon may. preferred: it is in a
    sandbox where there is one. required: it is not started without."""
    readable: tuple[LocalPath, ...] = Field(default=(), max_length=100)
    """Files and folders that it may read in the sandbox, beside the programs of the system."""
    network: bool = False
    """Whether it has the network in the sandbox."""
    url: _Url = ""
    """Where it is, instead of `command`, for a server that is spoken with over HTTP."""
    headers: Mapping[_Header, Annotated[SecretStr, AfterValidator(_in_one_line)]] = Field(default_factory=dict)
    """Headers of every request to `url`, such as Authorization."""
    connect_seconds: Seconds = 60
    """How long it may take to start or answer at first."""
    idle_seconds: Annotated[Count, Field(ge=0, le=604_800)] = 0
    """After so long without a call the connection is closed, and the program ended; the next call opens it again. 0:
    never."""
    pin: Literal["first", "ask"] = "first"
    """first: the tools that it has when it is first seen may be used; what is added or changed later waits for
    `rollcall mcp accept`. ask: everything waits."""
    allow: tuple[Word, ...] = Field(default=("*",), max_length=1000)
    """The tools that become functions, by their names; `*` stands for any characters."""
    deny: tuple[Word, ...] = Field(default=(), max_length=1000)
    """Those of them that do not."""
    trust_annotations: bool = False
    """True: what the server says of its tools' effects is believed. False: each of them counts as once, unless `effect`
    says otherwise."""
    effect: EffectName | None = None
    """What its tools do to the world. Left out: once, or what the server says where it is trusted."""
    roles: Roles = frozenset({"admin", "owner"})
    """Who may call its tools: the least role, or a list of roles."""
    scope: Literal["group", "private", "both"] = "both"
    """Where its tools may be called."""
    require_at: bool = False
    """True: in a group its tools run only when the bot is addressed."""
    approval: Literal["none", "asker"] | RoleName = "none"
    """Whose yes each run waits for, beside what is asked anyway where words from outside may have led to it."""
    timeout_seconds: Seconds = 30
    """After this time a run is stopped."""
    bot: BotName | None = None
    """The bot that has its tools. Left out: all bots."""
    tags: _Sentences = ()
    """Tags of its tools, beside `mcp`."""
    offered_to: tuple[WayName, ...] = ("model", "command", "timer", "mcp", "api")
    """The ways by which its tools can be called."""
    activation: Literal["always", "on_request"] = "always"
    """on_request: models are offered its tools only where they were taken to hand, by their names or the server's."""
    tools: Mapping[Word, McpToolSettings] = Field(default_factory=dict)
    """What is different for single tools, by their names."""

    @field_validator("command")
    @classmethod
    def _names_a_program(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if command and not command[0].strip():
            raise fault("has to begin with a program")
        return command

    @field_validator("env", "folder", "readable")
    @classmethod
    def _only_for_a_program(cls, value: object, info: Info) -> object:
        if value and "command" in info.data and not info.data["command"]:
            raise fault("goes with command, for a program that is started here")
        return value

    @field_validator("url")
    @classmethod
    def _one_way(cls, url: str, info: Info) -> str:
        if "command" in info.data and bool(url) == bool(info.data["command"]):
            raise fault("or command has to say how the server is reached: one of both")
        return url

    @field_validator("headers")
    @classmethod
    def _only_for_an_address(cls, headers: Mapping[str, SecretStr], info: Info) -> Mapping[str, SecretStr]:
        if headers and "url" in info.data and not info.data["url"]:
            raise fault("goes with url; a program gets its secrets in env")
        return headers

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, to be kept out of logs."""
        return tuple(one.get_secret_value() for one in (*self.env.values(), *self.headers.values()))


class McpSettings(Section):
    """The Model Context Protocol: functions across programs."""

    serve: McpServeSettings = McpServeSettings()
    servers: tuple[McpServerSettings, ...] = Field(default=(), max_length=100)
    """The servers whose tools the bot may use."""
