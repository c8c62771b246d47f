"""Types of single settings values. Each validates one kind of value, with an error message for operators."""

from __future__ import annotations

import ast
import inspect
import ipaddress
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError

from config.diagnostics import did_you_mean


def attribute_docs(cls: type) -> dict[str, str]:
    """Docstrings of the annotated attributes of `cls` and its bases, by attribute name. Parses the source files, so it
    is slow. Attributes without a docstring are missing."""
    found: dict[str, str] = {}
    # Base classes from other top-level packages are not parsed, except sections of the settings.
    parsed = {cls.__module__.partition(".")[0], __name__.partition(".")[0]}
    for one in reversed(cls.__mro__):
        if one.__module__.partition(".")[0] in parsed:
            found.update(_own_docs(one))
    return found


@cache  # cached per base class, not per derived class
def _own_docs(cls: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return {
        attribute.target.id: inspect.cleandoc(doc.value.value)
        for attribute, doc in pairwise(tree.body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(doc, ast.Expr)
        and isinstance(doc.value, ast.Constant)
        and isinstance(doc.value.value, str)
    }


RoleName = Literal["member", "moderator", "admin", "owner"]
"""Role of a member in a chat, weakest first."""
ROLE_NAMES: tuple[RoleName, ...] = get_args(RoleName)
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
"""A day of the week."""
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)

SHORTEST_TOKEN = 16
"""Minimum length of a token for API access."""

_LANGUAGE = r"[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*"
_BOT = r"[a-z][a-z0-9_-]{0,63}"
_ROOM = r"[a-z0-9][a-z0-9_-]{0,63}"
_CLOCK_TIME = r"([01]\d|2[0-3]):[0-5]\d"
_NATIVE_KEY = r"[^\s:*]+:[^\s:*]+:[^*\x00-\x1f\x7f]+"
_PATTERN = r"[^\x00-\x1f\x7f]*\*[^\x00-\x1f\x7f]*"
_FUNCTION = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"
_MODULE = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_URL = r"https?://[^\s/?#@]+(/[^\s?#]*)?"
_WEB_URL = r"https?://[^\s/?#@]+([/?][^\s#]*)?"
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*)(?::([0-9]{1,5}))?")
_ORIGIN = r"https?://[^\s/?#@*]+/?"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ALL_ADDRESSES = ("0.0.0.0", "[::]")  # noqa: S104 - compared, not bound


class Section(BaseModel):
    """A section of the settings: immutable; unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add attribute docstrings as descriptions. They are parsed only for a schema: with pydantic's
        `use_attribute_docstrings` each start would take a tenth longer."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in attribute_docs(cls).items():
            key = cls.model_fields[name].alias or name if name in cls.model_fields else name
            if key in properties:
                properties[key].setdefault("description", text)
        return schema


def secrets_in(value: object) -> Iterator[str]:
    """All secret values in a section or a part of it, to be redacted in logs. A section may list its own: `secrets`."""
    if isinstance(value, SecretStr):
        yield from filter(None, [value.get_secret_value()])
    elif isinstance(value, BaseModel):
        has_own = isinstance(getattr(type(value), "secrets", None), property)
        yield from value.secrets if has_own else secrets_in(dict(value))  # type: ignore[attr-defined]
    elif isinstance(value, Mapping | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from secrets_in(each)


def settings_error(message: str) -> PydanticCustomError:
    """A validator's error whose `message` is shown to the operator unchanged."""
    return PydanticCustomError("settings", "{message}", {"message": message})


def is_language(text: str) -> bool:
    """Whether `text` has the form of a language tag, such as `en` or `zh-TW`."""
    return re.fullmatch(_LANGUAGE, text) is not None


def is_timezone(text: str) -> bool:
    """Whether `text` is an IANA time zone known to this machine."""
    try:
        ZoneInfo(text)
    except (ValueError, KeyError, OSError):
        return False
    return True


def host_and_port(text: str) -> tuple[str, int | None] | None:
    """Host and port of `host` or `host:port`, the host in lower case and an IPv6 address in brackets; the port is None
    if missing. None for any other text."""
    found = _AUTHORITY.fullmatch(text.lower()) if text.isascii() else None
    if found is None:
        return None
    host, port = found[1], int(found[2]) if found[2] else None
    if port is not None and not 1 <= port <= 65_535:
        return None
    if host.startswith("["):
        try:
            host = f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        except ValueError:
            return None
    return host, port


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine: `localhost` or a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def roles_from(least: RoleName) -> tuple[RoleName, ...]:
    """`least` and all higher roles, weakest first."""
    return ROLE_NAMES[ROLE_NAMES.index(least) :]


_HEADER = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}"
_CONNECTION = "accept accept-encoding connection content-length content-type host mcp-session-id transfer-encoding"


def _a_header(name: str) -> str:
    if re.fullmatch(_HEADER, name) is None or name.lower() in _CONNECTION.split():
        raise settings_error("has to be the name of a header, and none that the connection itself needs")
    return name


def _not_a_flag(value: object) -> object:
    if isinstance(value, bool):
        raise settings_error("has to be a number, not true or false")
    return value


def _timezone(text: str) -> str:
    if not is_timezone(text):
        raise settings_error(f"has to be an IANA time zone such as Europe/Oslo, Asia/Shanghai or UTC{_zone_like(text)}")
    return text


def _zone_like(text: str) -> str:
    """Suffix of a message that suggests a time zone for a misspelt zone or a city; empty without a close match."""
    zones = available_timezones()
    cities = {zone.rpartition("/")[2].lower(): zone for zone in sorted(zones, reverse=True)}
    city = cities.get(text.lower().replace(" ", "_"))
    return did_you_mean(text, zones) if city is None else f"; did you mean {city!r}?"


def not_below_first_delay(longest: float, info: ValidationInfo) -> float:
    """Validator of a longest delay after the field `first_delay_seconds`."""
    if longest < info.data.get("first_delay_seconds", 0):
        raise settings_error("has to be at least first_delay_seconds")
    return longest


def matching(pattern: str, message: str) -> AfterValidator:
    """Validator that the whole text, perhaps a secret, matches `pattern`; `message` is the error."""
    compiled = re.compile(pattern)

    def check(value: Any) -> Any:
        if compiled.fullmatch(value.get_secret_value() if isinstance(value, SecretStr) else value) is None:
            raise settings_error(message)
        return value

    return AfterValidator(check)


def described_matching(pattern: str, message: str) -> tuple[AfterValidator, WithJsonSchema]:
    """The validator of `matching`, and the pattern for the JSON schema, both to be unpacked into Annotated."""
    return matching(pattern, message), WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


def _roles(value: object) -> object:
    if isinstance(value, str):
        return [role for least in ROLE_NAMES if least == value for role in roles_from(least)] or [value]
    if isinstance(value, list) and not value:
        raise settings_error("names no role; to switch a function off, say `enabled: false`")
    return value


def _process_path(path: Path) -> Path:
    if path == Path():
        raise settings_error("has to be a path")
    try:
        return path.expanduser()
    except RuntimeError:
        raise settings_error("starts with ~, but there is no home folder to put there") from None


def _local_path(path: Path, info: ValidationInfo) -> Path:
    """`path` with `~` expanded; if relative, below the folder of the settings file, which is the validation context."""
    path = _process_path(path)
    return info.context / path if isinstance(info.context, Path) else path


def _origin(url: str) -> str:
    scheme, _, rest = url.removesuffix("/").partition("://")
    place = host_and_port(rest) if scheme.lower() in _DEFAULT_PORTS else None
    if place is None:
        raise settings_error(
            "has to be http(s)://host or http(s)://host:port as in the browser's address bar, without path, user or *"
        )
    host, port = place
    if host in _ALL_ADDRESSES:
        raise settings_error(f"has to name the address that people open, and {host} is no such address")
    scheme = scheme.lower()
    return f"{scheme}://{host}" if port in (None, _DEFAULT_PORTS[scheme]) else f"{scheme}://{host}:{port}"


def _private_host(text: str) -> str:
    place = host_and_port(text)
    if place is None or place[0] in _ALL_ADDRESSES:
        raise settings_error("has to be host or host:port, such as wiki.lan or 10.0.0.7:8080")
    host, port = place
    if port is not None and port < 1024 and port not in _DEFAULT_PORTS.values():
        raise settings_error("has to have port 80, 443 or one from 1024 on")
    return host if port is None else f"{host}:{port}"


def _secure_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise settings_error("has to begin with https://, because requests contain secrets; http only for this machine")
    return url.rstrip("/")


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return [value] if value else []
    return value


_A_NUMBER = BeforeValidator(_not_a_flag)
Count = Annotated[int, _A_NUMBER]
"""An integer, not a flag."""
Number = Annotated[float, _A_NUMBER]
"""A number, not a flag."""
Seconds = Annotated[float, Field(gt=0, le=3600), _A_NUMBER]
"""A duration of up to an hour."""
Tokens = Annotated[int, Field(ge=1, le=1_000_000), _A_NUMBER]
"""A number of tokens."""
Temperature = Annotated[float, Field(ge=0, le=2), _A_NUMBER]
"""Sampling temperature of a language model."""
Language = Annotated[str, *described_matching(_LANGUAGE, "has to be a language tag such as en, zh or pt-BR")]
"""A language tag."""
Timezone = Annotated[str, AfterValidator(_timezone)]
"""An IANA time zone."""
ClockTime = Annotated[str, *described_matching(_CLOCK_TIME, "has to be a time of day such as 09:00 or 17:30")]
"""A time of day, `HH:MM`."""
CHIME_IN = r"off|chance( ([01]?\d|2[0-4])(\.\d+)?%| 25%)?|judge( [1-9]| [1-5]\d| 60)?"
ChimeIn = Annotated[
    str, *described_matching(CHIME_IN, "has to be off, chance, chance 2% (at most 25%), judge, or judge 6 (at most 60)")
]
"""`off`, `chance` with a share of messages, or `judge` with a number per hour."""
QUIET_HOURS = rf"off|{_CLOCK_TIME}-{_CLOCK_TIME}"
QuietHours = Annotated[str, *described_matching(QUIET_HOURS, "has to be off or two times of day such as 22:00-07:00")]
"""A period of each day, `HH:MM-HH:MM`, which may pass midnight; or `off`."""
Roles = Annotated[frozenset[RoleName], BeforeValidator(_roles, json_schema_input_type=RoleName | list[RoleName])]
"""Permitted roles: in YAML a list, or the lowest permitted role."""
BotName = Annotated[str, *described_matching(_BOT, "has to begin with a small letter and hold only a-z, 0-9, _ and -")]
"""Key of a bot."""
RoomId = Annotated[str, *described_matching(_ROOM, "has to hold only a-z, 0-9, _ and -, at most 64 of them")]
"""Id of a room on the web page."""
ChatPattern = Annotated[
    str,
    *described_matching(
        f"({_NATIVE_KEY}|{_PATTERN})",
        "has to be platform:account:chat, such as web:main:family; * matches any characters",
    ),
]
"""Key of a chat, or a pattern where `*` matches any characters."""
ChatKey = Annotated[
    str, *described_matching(_NATIVE_KEY, "has to be platform:account:chat, such as web:main:family, without *")
]
"""Key of one chat."""
MemberKey = Annotated[
    str, *described_matching(_NATIVE_KEY, "has to be platform:account:member, such as web:main:ann, without *")
]
"""Key of one member."""
Word = Annotated[str, StringConstraints(min_length=1, max_length=128)]
"""A short text that is not empty."""
BaseUrl = Annotated[
    str,
    *described_matching(
        f"({_URL})?", "has to be http(s)://host/path without user, query or fragment; empty for the usual one"
    ),
]
"""URL of an API; empty: the default of its protocol."""
OneLineSecret = Annotated[SecretStr, matching(r"[^\x00\r\n]*", "must not hold line ends")]
"""A secret without line ends."""
Headers = Mapping[
    Annotated[str, AfterValidator(_a_header), WithJsonSchema({"type": "string", "pattern": f"^{_HEADER}$"})],
    OneLineSecret,
]
"""Additional headers of HTTP requests. The values are secret: they are not logged."""
WebUrl = Annotated[str, *described_matching(_WEB_URL, "has to be http(s)://host/path without user or fragment")]
"""URL on the web."""
SecureUrl = Annotated[
    str,
    matching(_URL, "has to be http(s)://host/path without user, query or fragment"),
    AfterValidator(_secure_url),
    WithJsonSchema({"type": "string", "pattern": f"^{_URL}$"}),
]
"""URL of a server that receives secrets, without a slash at the end: https, or http on this machine."""
PublicUrl = Annotated[
    str, Field(max_length=300), AfterValidator(_origin), WithJsonSchema({"type": "string", "pattern": f"^{_ORIGIN}$"})
]
"""Scheme, host and port of a web page, normalised to the form of the `Origin` header."""
PublicUrls = Annotated[
    tuple[PublicUrl, ...],
    Field(max_length=20),
    BeforeValidator(_as_list, json_schema_input_type=PublicUrl | list[PublicUrl]),
]
"""One such URL, or a list."""
PrivateHost = Annotated[str, AfterValidator(_private_host)]
"""Host of a private network, with an optional port; without one, the ports 80 and 443."""
FunctionPath = Annotated[str, *described_matching(f"({_FUNCTION})?", "has to be package.module:function")]
"""A Python function; empty: none."""
ModuleName = Annotated[
    str,
    Field(max_length=500),
    matching(_MODULE, "has to be the name of a Python module, such as package.module"),
]
"""Dotted name of a Python module."""
LocalPath = Annotated[Path, AfterValidator(_local_path)]
"""A local path, relative to the folder of the settings file; a leading `~` is the home folder."""
ProcessPath = Annotated[Path, AfterValidator(_process_path)]
"""A local path, relative to the working directory; a leading `~` is the home folder."""
