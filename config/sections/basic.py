"""Settings of BASIC scripts: folders, limits of a run, and permitted hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, model_validator

from config.terms import (
    BaseUrl,
    BotName,
    Count,
    LocalPath,
    Number,
    Seconds,
    Section,
    Word,
    described_matching,
    matching,
    settings_error,
)

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = rf"\*|(\*\.)?{_LABEL}(\.{_LABEL})*"
HostPattern = Annotated[
    str,
    *described_matching(
        _HOST, "has to be a host in small letters such as api.example.com, *.example.com, or * for every host"
    ),
]
"""A host, all subdomains of a domain, or all hosts."""


class BasicWebSettings(Section):
    """Web access of scripts. Private networks are blocked, except for `web_access.private_hosts`."""

    get_from: tuple[HostPattern, ...] = Field(default=("*",), max_length=1000)
    """Hosts that scripts may read from, with GET and DOWNLOAD."""
    post_to: tuple[HostPattern, ...] = Field(default=(), max_length=1000)
    """Hosts to which scripts may send changes, with POST, PUT, PATCH, DELETE and GRAPHQL; none by default."""
    timeout_seconds: Number = Field(default=40, gt=0, le=300)
    """Timeout of a request."""
    answer_kilobytes: Count = Field(default=1024, ge=1, le=65_536)
    """Maximum size of a response."""
    requests: Count = Field(default=20, ge=0, le=1000)
    """Maximum number of requests per run."""


def host_fits(patterns: tuple[str, ...], host: str) -> bool:
    """Whether one of `patterns` matches `host`, which is in lower case: `*` matches every host, `*.name` every
    subdomain of name, others only themselves."""
    return any(
        pattern in ("*", host) or (pattern.startswith("*.") and host.endswith(pattern[1:])) for pattern in patterns
    )


_PARAMETER = r"[A-Za-z]\w{0,63}"


_S3_URL = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s?#]*)?"


class S3Settings(Section):
    """A bucket of Amazon S3 or a compatible server, or a prefix in one."""

    url: Annotated[str, *described_matching(_S3_URL, "has to be s3://bucket or s3://bucket/prefix")]
    """Bucket, with an optional prefix that takes the place of a folder."""
    endpoint: BaseUrl = ""
    """URL of the server. Empty: Amazon S3."""
    region: Word = "us-east-1"
    """Region of the bucket."""
    access_key: SecretStr = SecretStr("")
    """Access key; preferably a reference to the environment. Empty: requests are not signed, for a public bucket."""
    secret_key: SecretStr = SecretStr("")
    """Secret key of `access_key`."""
    poll_seconds: Seconds = 30
    """Interval at which changes are looked for."""

    @model_validator(mode="after")
    def _both_keys(self) -> Self:
        if bool(self.access_key.get_secret_value()) != bool(self.secret_key.get_secret_value()):
            raise settings_error("needs both access_key and secret_key, or neither")
        return self


class BasicSource(Section):
    """A folder of scripts, one file, or a bucket."""

    path: LocalPath | None = None
    """A folder with `<bot>.gbai/<bot>.gbdialog/*.bas`, a folder of `*.bas`, or one file."""
    s3: S3Settings | None = None
    """The same folders in a bucket, instead of `path`."""
    bot: BotName = "default"
    """Owner of the scripts that are not in a bot's folder."""
    profile: Literal["extended", "strict"] = "extended"
    """strict: only the documented language."""
    may_call: tuple[str, ...] = Field(default=(), max_length=100)
    """Functions with effects beyond the chat that the scripts may CALL; patterns such as `file_*`. Functions without
    such effects may always be called, with the rights of the script's caller."""
    shared_tables: tuple[str, ...] = Field(default=(), max_length=100)
    """Tables shared by all chats of the bot; patterns such as `products*`. Other tables are separate for each chat."""
    shared_memory: tuple[str, ...] = Field(default=(), max_length=100)
    """Names whose BOT MEMORY is shared by all chats of the bot, and USER MEMORY by all chats of the member; patterns
    such as `analytics_*`. Other names are separate for each chat."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.s3 is None):
            raise settings_error("needs either path or s3")
        return self

    @property
    def where(self) -> str:
        """The path, or the URL of the bucket."""
        return self.s3.url if self.s3 else str(self.path)


class BasicSettings(Section):
    """Limits of one run of a script."""

    steps: Count = Field(default=1_000_000, ge=1000, le=100_000_000)
    """Maximum number of operations of the language."""
    cpu_seconds: Number = Field(default=2, gt=0, le=60)
    """Maximum CPU time."""
    memory_megabytes: Count = Field(default=16, ge=1, le=1024)
    """Maximum memory of all its values."""
    depth: Count = Field(default=64, ge=4, le=1000)
    """Maximum nesting of SUB and FUNCTION calls."""
    output_chars: Count = Field(default=4000, ge=100, le=100_000)
    """Maximum length of its whole output."""
    source_kilobytes: Count = Field(default=64, ge=1, le=1024)
    """Maximum size of a script."""
    web: BasicWebSettings = BasicWebSettings()


def _as_source(value: object) -> object:
    return value if isinstance(value, Mapping | BasicSource) else {"path": value}


def _keyword_module(name: str, info: ValidationInfo) -> str:
    if not isinstance(info.context, Path) or name.startswith("~"):
        return name
    path = info.context / name
    return str(path) if "/" in name or name.endswith(".py") or path.exists() else name


KeywordModules = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_keyword_module)], ...],
    Field(max_length=100),
]
"""Python files and packages by path, or installed modules by dotted name."""

Parameters = Annotated[
    Mapping[
        Annotated[
            str,
            matching(_PARAMETER, "has to begin with a letter and hold only letters, digits and _, at most 64 of them"),
        ],
        Annotated[str, Field(max_length=8000)] | bool | int | float,
    ],
    Field(max_length=500),
]
"""Values by variable name."""

BasicSources = Annotated[
    tuple[
        Annotated[BasicSource, BeforeValidator(_as_source, json_schema_input_type=BasicSource | str)],
        ...,
    ],
    Field(max_length=100),
]
"""A list of folders, each a path or a mapping with options."""
