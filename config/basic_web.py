"""Settings of what BASIC scripts may do on the web."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from config.terms import Count, Number, Section, described_matching

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
