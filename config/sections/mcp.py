"""Settings of the Model Context Protocol: the bot as a server, and servers whose tools it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints, field_validator
from pydantic import ValidationInfo as Info

from config.terms import (
    SHORTEST_TOKEN,
    BotName,
    ChatKey,
    Count,
    Headers,
    LocalPath,
    RoleName,
    Roles,
    Seconds,
    Section,
    Word,
    described_matching,
    matching,
    settings_error,
)

PLATFORM = "mcp"
ACCOUNT = "main"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_PATH = r"(/[A-Za-z0-9_-]+)+"
_RESERVED = ("api", "static", "login", "owner", "healthz", "readyz", "metrics")
"""First path segments of the web app's other routes."""


_Name = Annotated[
    str,
    *described_matching(_NAME, "has to begin with a letter or digit and hold only letters, digits, `.`, `_` and `-`"),
]
_Path = Annotated[str, *described_matching(_PATH, "has to be a path such as /mcp, of letters, digits, `_` and `-`")]


class McpClientSettings(Section):
    """A program that may call the bot's functions."""

    name: _Name
    """Name of the program, which calls as the member `mcp:main:<name>` and is logged under it; must be unique."""
    token: SecretStr
    """Bearer token of the program, at least 16 characters; preferably a reference to the environment."""
    role: RoleName = "member"
    """Its role as a member."""
    chat: ChatKey | None = None
    """Chat where it acts, with that chat's data and settings. Missing: `mcp:main:<name>`, a private chat that needs no
    entry in `chats.allow`."""
    bot: BotName | None = None
    """Key in `bots` of the bot whose functions it gets in its private chat. Missing: `default`."""
    functions: tuple[Word, ...] = Field(default=(), max_length=1000)
    """Names or tags of the functions that it may call. Empty: all that its role permits."""
    elicitation: bool = True
    """Whether functions' questions are passed to its user, if it supports that. Switch off for programs that answer by
    themselves: then such functions are rejected."""
    sampling: bool = False
    """Whether functions may use the program's own model, if it supports that; the data they pass is sent to that model.
    Off: the bot's model is used."""

    @field_validator("token")
    @classmethod
    def _long_enough(cls, token: SecretStr) -> SecretStr:
        value = token.get_secret_value()
        if len(value) < SHORTEST_TOKEN:
            raise settings_error(f"has to have at least {SHORTEST_TOKEN} characters")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise settings_error("has to hold only ASCII characters without spaces, since it is sent in a header")
        return token

    @field_validator("bot")
    @classmethod
    def _in_a_chat_of_its_own(cls, bot: BotName | None, info: Info) -> BotName | None:
        if bot is not None and info.data.get("chat") is not None:
            raise settings_error(
                "does not go with chat, because the bot of a chat is set in chats.settings; leave one of both"
            )
        return bot

    @property
    def chat_key(self) -> str:
        """Key of the chat where it acts: `chat`, else its own chat."""
        return self.chat or f"{PLATFORM}:{ACCOUNT}:{self.name}"


class McpServeSettings(Section):
    """The bot's functions as an MCP server for other programs, on the web server."""

    enabled: bool = False
    """Whether they are served."""
    path: _Path = "/mcp"
    """Path on the web server."""
    clients: tuple[McpClientSettings, ...] = Field(default=(), max_length=1000)
    """Programs that may call."""

    @field_validator("path")
    @classmethod
    def _free(cls, path: str) -> str:
        first = path.split("/")[1]
        if first in _RESERVED:
            raise settings_error(f"begins with /{first}, where the web server has something else")
        return path

    @field_validator("clients")
    @classmethod
    def _unique_names(cls, clients: tuple[McpClientSettings, ...], info: Info) -> tuple[McpClientSettings, ...]:
        if info.data.get("enabled") and not clients:
            raise settings_error("names nobody; while mcp.serve is enabled there has to be at least one client")
        seen: dict[str, str] = {}
        for client in clients:
            token = client.token.get_secret_value()
            if token in seen:
                raise settings_error(f"gives {seen[token]} and {client.name} the same token; each needs its own")
            seen[token] = client.name
        return clients


EffectName = Literal["read", "idempotent", "once"]
"""Effect of a tool on the world."""
WayName = Literal["model", "command", "timer", "mcp", "api"]
"""A way to call functions."""
_MCP_SERVERS_NAME = r"[a-z0-9]([a-z0-9-]|_(?=[a-z0-9-])){0,31}"
_URL = r"https?://[^\s/?#@]+([/?][^\s#]*)?"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,127}"

_McpServersName = Annotated[
    str,
    *described_matching(
        _MCP_SERVERS_NAME,
        "has to hold only a-z, 0-9, - and single _, at most 32 of them, and to begin and end with none of the latter",
    ),
]
_Url = Annotated[str, *described_matching(f"({_URL})?", "has to be http(s)://host/path without user or fragment")]
_Variable = Annotated[str, *described_matching(_VARIABLE, "has to be the name of an environment variable")]
_SecretValue = Annotated[SecretStr, matching(r"[^\x00]*", "must not hold NUL")]
_Argument = Annotated[str, StringConstraints(max_length=8192), *described_matching(r"[^\x00]*", "must not hold NUL")]
_Scope = Annotated[
    str, *described_matching(r"[\x21\x23-\x5B\x5D-\x7E]{1,256}", "has to hold no spaces, quotes or backslashes")
]
_Sentences = Annotated[tuple[Word, ...], Field(max_length=100)]


class McpToolSettings(Section):
    """Settings of one tool of a server. Missing keys are as for all tools of the server."""

    enabled: bool = True
    """False: the tool is not available."""
    description: Annotated[str, Field(max_length=4000)] = ""
    """Description for models, instead of the server's."""
    examples: _Sentences = ()
    """Example sentences; may contain `{slots}` named as parameters."""
    commands: _Sentences = ()
    """Command words, without the slash."""
    effect: EffectName | None = None
    """Effect on the world: read changes nothing, idempotent may be repeated, once may not."""
    roles: Roles | None = None
    """Permitted roles: the lowest one, or a list."""
    scope: Literal["group", "private", "both"] | None = None
    """Kinds of chats where it may be called."""
    require_at: bool | None = None
    """True: in groups it runs only if the bot is addressed."""
    approval: Literal["none", "asker"] | RoleName | None = None
    """Required approval of each run: of the asker, or of a member with at least this role."""
    timeout_seconds: Seconds | None = None
    """Timeout of a run."""
    tags: _Sentences = ()
    """Additional tags."""


class McpLoginSettings(Section):
    """OAuth login at a server."""

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """authorization_code: a person logs in with a browser, by `rollcall mcp login`. client_credentials: the daemon logs
    in with the client's id and secret."""
    client_id: Annotated[str, StringConstraints(max_length=2048)] = ""
    """The client registered at the authorization server, or an https URL of its metadata. Missing: it is registered at
    the first login."""
    client_secret: SecretStr = SecretStr("")
    """The client's secret; preferably a reference to the environment."""
    issuer: _Url = ""
    """The authorization server to which `client_secret` is sent."""
    scopes: tuple[_Scope, ...] = Field(default=(), max_length=100)
    """Scopes to request in addition to those that the server requests."""

    @field_validator("issuer")
    @classmethod
    def _complete(cls, issuer: str, info: Info) -> str:
        secret = info.data.get("client_secret")
        has_secret = secret is not None and bool(secret.get_secret_value())
        if info.data.get("grant") == "client_credentials" and not (has_secret and info.data.get("client_id")):
            raise settings_error("goes with client_id and client_secret for the grant client_credentials")
        if has_secret and not issuer:
            raise settings_error("has to name the authorization server that client_secret is for")
        return issuer

    @property
    def is_metadata_url(self) -> bool:
        """Whether `client_id` is the URL of a client metadata document."""
        return self.client_id.startswith("https://") and bool(self.client_id.removeprefix("https://").partition("/")[2])


class McpServerSettings(Section):
    """An MCP server whose tools become functions."""

    name: _McpServersName
    """Prefix of its functions, as in `mcp__<name>__<tool>`; must be unique."""
    command: tuple[_Argument, ...] = Field(default=(), max_length=1000)
    """Program to start, with its arguments. It is connected by its standard input and output."""
    env: Mapping[_Variable, _SecretValue] = Field(default_factory=dict)
    """Environment of the program, in addition to PATH, HOME, LANG and TMPDIR; nothing else is inherited."""
    folder: LocalPath | None = None
    """Working directory of the program. Missing: a separate one in `home`."""
    sandbox: Literal["off", "preferred", "required"] = "off"
    """Whether the program runs in a sandbox. off: it has the daemon's rights. preferred: in a sandbox if available.
    required: it is not started without a sandbox."""
    readable: tuple[LocalPath, ...] = Field(default=(), max_length=100)
    """Files and folders that it may read in the sandbox, in addition to the system's programs."""
    network: bool = False
    """Whether it may use the network in the sandbox."""
    url: _Url = ""
    """URL of an HTTP server, instead of `command`."""
    headers: Headers = Field(default_factory=dict)
    """Headers of every request to `url`, such as Authorization."""
    login: McpLoginSettings | None = None
    """OAuth login at `url`. Missing: none."""
    connect_seconds: Seconds = 60
    """Timeout for starting it or for its first answer."""
    idle_seconds: Annotated[Count, Field(ge=0, le=604_800)] = 0
    """Idle time after which the connection is closed and the program ended; the next call opens it again. 0: never."""
    pin: Literal["first", "ask"] = "first"
    """first: tools found on the first connection may be used; later additions and changes wait for `rollcall mcp
    accept`. ask: all tools wait."""
    elicitation: bool = True
    """Whether its questions during a call are asked in the chat. Off: such calls fail."""
    resources: bool = False
    """Whether its resources can be listed and read, by the function `mcp__<name>__resources`."""
    prompts: bool = False
    """Whether its prompts can be listed and read, by the function `mcp__<name>__prompts`."""
    allow: tuple[Word, ...] = Field(default=("*",), max_length=1000)
    """Tools that become functions, by name; `*` matches any characters."""
    deny: tuple[Word, ...] = Field(default=(), max_length=1000)
    """Exceptions from `allow`."""
    trust_annotations: bool = False
    """True: the server's annotations of its tools' effects are trusted. False: the effect is once, unless `effect` is
    set."""
    effect: EffectName | None = None
    """Effect of its tools on the world. Missing: once, or the server's annotation if trusted."""
    roles: Roles = frozenset({"admin", "owner"})
    """Roles that may call its tools: the lowest one, or a list."""
    scope: Literal["group", "private", "both"] = "both"
    """Kinds of chats where its tools may be called."""
    require_at: bool = False
    """True: in groups its tools run only if the bot is addressed."""
    approval: Literal["none", "asker"] | RoleName = "none"
    """Required approval of each run, in addition to those for turns that have read text from outside."""
    timeout_seconds: Seconds = 30
    """Timeout of a run."""
    bot: BotName | None = None
    """The bot with its tools. Missing: all bots."""
    tags: _Sentences = ()
    """Tags of its tools, in addition to `mcp`."""
    offered_to: tuple[WayName, ...] = ("model", "command", "timer", "mcp", "api")
    """Ways to call its tools."""
    activation: Literal["always", "on_request"] = "always"
    """on_request: models are offered its tools only in chats that have activated them, by tool or server name."""
    tools: Mapping[Word, McpToolSettings] = Field(default_factory=dict)
    """Settings of single tools, by name."""

    @field_validator("command")
    @classmethod
    def _names_a_program(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if command and not command[0].strip():
            raise settings_error("has to begin with a program")
        return command

    @field_validator("env", "folder", "readable")
    @classmethod
    def _only_for_a_program(cls, value: object, info: Info) -> object:
        if value and "command" in info.data and not info.data["command"]:
            raise settings_error("goes with command, for a program that is started here")
        return value

    @field_validator("url")
    @classmethod
    def _one_way(cls, url: str, info: Info) -> str:
        if "command" in info.data and bool(url) == bool(info.data["command"]):
            raise settings_error("or command has to say how the server is reached: one of both")
        return url

    @field_validator("headers")
    @classmethod
    def _only_for_an_address(cls, headers: Mapping[str, SecretStr], info: Info) -> Mapping[str, SecretStr]:
        if headers and "url" in info.data and not info.data["url"]:
            raise settings_error("goes with url; a program gets its secrets in env")
        return headers


class McpSettings(Section):
    """The Model Context Protocol: functions across programs."""

    serve: McpServeSettings = McpServeSettings()
    servers: tuple[McpServerSettings, ...] = Field(default=(), max_length=100)
    """Servers whose tools the bot may use."""
