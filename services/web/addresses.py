"""Rules for web addresses: which may be requested, how they are compared and shown."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit, urlunsplit

from services.patterns import lazy_pattern
from services.refs import ErrorCode

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves host and port to IP addresses; raises OSError."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = {"http": 80, "https": 443}
_UNSAFE = lazy_pattern(r"[\x00-\x20\x7f\\]")
_LABEL = lazy_pattern(r"(?!0x)[a-z]([a-z0-9_-]{0,61}[a-z0-9])?\Z")
_NAME = lazy_pattern(r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]\Z")
_SHOWN = lazy_pattern(r"[\w.:-]{1,100}\Z")
_LOCAL_NAMES = (
    ".localhost",
    ".local",
    ".localdomain",
    ".internal",
    ".intranet",
    ".lan",
    ".corp",
    ".home",
    ".home.arpa",
)
# Ranges that embed an IPv4 address, and non-public ranges that the standard library reports as global.
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "::/96",
        "::ffff:0:0/96",
        "::ffff:0:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fec0::/10",
    )
)


class WebError(Exception):
    """A web request failed. `code` says whether a retry may help; `status` is the HTTP status, 0 without a response.
    `is_unknown`: the request was sent but its answer was lost, in transit or behind a gateway (502, 504), so it may
    have taken effect. `barred`: the host that is not permitted. The text names hosts and causes, never words from a
    server."""

    def __init__(
        self, code: ErrorCode, text: str, *, status: int = 0, is_unknown: bool = False, barred: str = ""
    ) -> None:
        super().__init__(text)
        self.barred = barred
        self.code = code
        self.status = status
        self.is_unknown = is_unknown


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed and validated URL, as returned by `read_url`."""

    scheme: str
    host: str
    """Lower case; an ASCII name (IDNA), or an IP address without brackets."""
    port: int
    path: str
    """Includes the query."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: the scope of credentials."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Value of the Host header. Names the port only if it is not the scheme's default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Normalized absolute URL without fragment, and without the scheme's default port."""
        return f"{self.scheme}://{self.authority}{self.path}"

    def pinned_url(self, address: str) -> str:
        """The same URL with an IP address as its host."""
        host = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def join(self, location: str) -> str:
        """Resolve the redirect target `location` against this URL. Returns an absolute URL, not yet validated. Raises
        WebError (refused) if it is malformed."""
        try:
            return urljoin(self.url, location)
        except ValueError as error:
            raise _refused(f"{self.host} redirects to something that is not a URL") from error


def read_url(url: str, *, local_names: bool = False) -> Target:
    """Parse and validate `url`: http or https, no user name, control characters, backslashes or unusual spellings of
    hosts, and a full host name, `localhost` or an IP address. Ports below 1024 other than 80 and 443 are refused. Does
    not resolve the name or check that it is public; see `vetted`. `local_names` also permits single-label names. Raises
    WebError (refused)."""
    if _UNSAFE.search(url):
        raise _refused("the URL holds spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused("the URL cannot be read") from error
    if parts.scheme not in _PORTS:
        raise _refused("only http and https URLs are fetched")
    if "@" in parts.netloc:
        raise _refused("the URL holds a user name")
    port = _PORTS[parts.scheme] if port is None else port
    if port < 1024 and port not in _PORTS.values():
        raise _refused(f"port {port} is not a port of the web")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    host = _host(parts.hostname or "", local_names=local_names)
    return Target(parts.scheme, host, port, f"{path}?{query}" if parts.query else path)


def host_of(url: str) -> str:
    """Host of a URL that may be invalid, for messages to people; the rest of the URL may hold secrets. Empty if no host
    can be extracted."""
    try:
        host = urlsplit(url.strip()).hostname or ""
    except ValueError:
        return ""
    return host if _SHOWN.match(host) else ""


def is_public(address: Address) -> bool:
    """Whether `address` belongs to the public internet and embeds no other address."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _REFUSED if network.version == address.version)


async def vetted(target: Target, resolve: Resolver, *, allow_loopback: bool, allow_any: bool = False) -> Sequence[str]:
    """Resolve the target's host and return its addresses without duplicates. Raises WebError: refused if any address is
    not public (`allow_loopback` permits loopback, `allow_any` every address), or the name is local (`.local`,
    `.internal`, …); environment if it does not resolve."""
    if _literal(target.host) is not None:
        found: Sequence[str] = (target.host,)
    elif _is_local_name(target.host) and not (allow_any or (allow_loopback and target.host == "localhost")):
        raise _refused(f"{target.host} is a name of a local network")
    else:
        try:
            found = await resolve(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise WebError(ErrorCode.ENVIRONMENT, f"{target.host} cannot be found") from error
    if not found:
        raise WebError(ErrorCode.ENVIRONMENT, f"{target.host} has no address")
    for text in found:
        address = _literal(text)
        if address is None or not (allow_any or is_public(address) or (allow_loopback and _is_loopback(address))):
            raise _refused(f"{target.host} is not on the public internet")
    return tuple(dict.fromkeys(found))


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Resolve `host` with the system's resolver to IP addresses as texts, possibly repeated. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def _host(text: str, *, local_names: bool) -> str:
    """Canonical spelling of a host: IDNA ASCII without a final dot, or an IP address without brackets. Raises WebError
    (refused) for anything else, such as `127.1`."""
    if ":" in text:
        address = _literal(text)
        if address is None or "%" in text:
            raise _refused("the URL's host is not an address")
        return str(address)
    try:
        host = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError as error:
        raise _refused("the URL's host is not a name") from error
    if host == "localhost" or _NAME.match(host) or (local_names and _LABEL.match(host)):
        return host
    address = _literal(host)
    if address is None:
        # Parsers disagree on `0x7f.1`, `2130706433` and `127.1`.
        raise _refused("the URL's host is neither a full name nor an address")
    return str(address)


def _literal(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_local_name(host: str) -> bool:
    return "." not in host or host.endswith(_LOCAL_NAMES)


def _is_loopback(address: Address) -> bool:
    # Not `is_loopback` alone, which also accepts ::ffff:127.0.0.1.
    return str(address) == "::1" or (address.version == 4 and address.is_loopback)


def _refused(text: str) -> WebError:
    return WebError(ErrorCode.REFUSED, text)


_TRACKING = re.compile(
    r"(utm_\w+|at_(medium|campaign|custom\d|format|link_\w+|ptr_name|bbc_team)|fbclid|gclid|dclid|msclkid|yclid|igshid|"
    r"mc_[ce]id|mkt_tok|ns_(mchannel|source|campaign|linkname|fee)|cmpid|ito|ocid|wt\.\w+|spm|__twitter_impression)\Z",
    re.IGNORECASE,
)
_WEB_LINKS_UNSAFE = re.compile(r"[\x00-\x20\x7f\\<>\"]")
_LONGEST = 2000


def clean_link(url: str) -> str:
    """`url` without tracking parameters; empty unless it is an http or https URL of at most 2,000 characters without
    spaces or user name."""
    url = url.strip()
    if not url or len(url) > _LONGEST or _WEB_LINKS_UNSAFE.search(url):
        return ""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return ""
    parameters = [one for one in parts.query.split("&") if one and not _TRACKING.match(one.partition("=")[0])]
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path, "&".join(parameters), parts.fragment))


def link_key(url: str) -> str:
    """Comparison key of a link from `clean_link`: ignores the scheme, `www.`, the fragment, a trailing slash and the
    order of parameters."""
    parts = urlsplit(url)
    query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    return f"{parts.netloc.removeprefix('www.')}{parts.path.rstrip('/')}?{query}"
