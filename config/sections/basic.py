"""Settings of BASIC scripts: folders, limits of a run, and hosts that scripts may reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from config.terms import BotName, Count, LocalPath, Number, Section, described_matching, matching

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = rf"\*|(\*\.)?{_LABEL}(\.{_LABEL})*"
HostPattern = Annotated[
    str,
    *described_matching(
        _HOST, "has to be a host in small letters such as api.example.com, *.example.com, or * for every host"
    ),
]
"""A host of the web, all hosts below one, or all."""


class BasicWebSettings(Section):
    """What the scripts may do on the web. Private networks are out of reach whatever stands here."""

    get_from: tuple[HostPattern, ...] = Field(default=("*",), max_length=1000)
    """The hosts that scripts may read from, with GET and DOWNLOAD."""
    post_to: tuple[HostPattern, ...] = Field(default=(), max_length=1000)
    """The hosts at which scripts may change something, with POST, PUT, PATCH, DELETE and GRAPHQL. None, unless they are
    named."""
    timeout_seconds: Number = Field(default=40, gt=0, le=300)
    """How long one request may take."""
    answer_kilobytes: Count = Field(default=1024, ge=1, le=65_536)
    """The longest answer that is read."""
    requests: Count = Field(default=20, ge=0, le=1000)
    """Requests in one run of a script."""


def host_fits(patterns: tuple[str, ...], host: str) -> bool:
    """Whether one of `patterns` is `host`, which is in small letters, or stands for it."""
    return any(
        pattern in ("*", host) or (pattern.startswith("*.") and host.endswith(pattern[1:])) for pattern in patterns
    )


_PARAMETER = r"[A-Za-z]\w{0,63}"


class BasicSource(Section):
    """A folder of scripts, or one file."""

    path: LocalPath
    """A folder with `<bot>.gbai/<bot>.gbdialog/*.bas`, a folder of `*.bas`, or one file."""
    bot: BotName = "default"
    """Whose the scripts are that lie in no folder of a bot."""
    profile: Literal["extended", "strict"] = "extended"
    """strict: only what the documents of the language say."""
    may_call: tuple[str, ...] = Field(default=(), max_length=100)
    """Functions that the scripts may CALL though these act beyond the chat; patterns such as `file_*`. What does not
    reach beyond the chat may always be called, with the rights of whoever calls the script."""
    shared_tables: tuple[str, ...] = Field(default=(), max_length=100)
    """Tables that all chats of the bot have in common; patterns such as `products*`. The rows of any other table are
    those of the chat in which a script saved them, and no other chat sees them."""
    shared_memory: tuple[str, ...] = Field(default=(), max_length=100)
    """Names under which BOT MEMORY holds for all chats of the bot, and USER MEMORY for the member wherever they are;
    patterns such as `analytics_*`. Anything else is remembered for the chat alone."""


class BasicSettings(Section):
    """What one run of a script may use at the most."""

    steps: Count = Field(default=1_000_000, ge=1000, le=100_000_000)
    """Operations of the language."""
    cpu_seconds: Number = Field(default=2, gt=0, le=60)
    """Time of the processor."""
    memory_megabytes: Count = Field(default=16, ge=1, le=1024)
    """All its values together."""
    depth: Count = Field(default=64, ge=4, le=1000)
    """Calls of SUBs and FUNCTIONs within one another."""
    output_chars: Count = Field(default=4000, ge=100, le=100_000)
    """All that it says, together."""
    source_kilobytes: Count = Field(default=64, ge=1, le=1024)
    """The longest script."""
    web: BasicWebSettings = BasicWebSettings()


def _as_source(value: object) -> object:
    return value if isinstance(value, Mapping | BasicSource) else {"path": value}


KeywordModules = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=100)]
"""Python files and packages by their paths, or installed modules by their dotted names."""

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
"""Values by the names that scripts know them by."""

BasicSources = Annotated[
    tuple[
        Annotated[BasicSource, BeforeValidator(_as_source, json_schema_input_type=BasicSource | str)],
        ...,
    ],
    Field(max_length=100),
]
"""A list of folders, each as a path alone or with its options."""
