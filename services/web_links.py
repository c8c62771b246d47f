"""Links as people are shown them and as they are compared: http and https alone, without what only follows readers."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_TRACKING = re.compile(
    r"(utm_\w+|at_(medium|campaign|custom\d|format|link_\w+|ptr_name|bbc_team)|fbclid|gclid|dclid|msclkid|yclid|igshid|"
    r"mc_[ce]id|mkt_tok|ns_(mchannel|source|campaign|linkname|fee)|cmpid|ito|ocid|wt\.\w+|spm|__twitter_impression)\Z",
    re.IGNORECASE,
)
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\<>\"]")
_LONGEST = 2000


def clean_link(url: str) -> str:
    """`url` without tracking parameters, its query otherwise as it stood; empty for what is no plain http or https
    URL."""
    url = url.strip()
    if not url or len(url) > _LONGEST or _UNSAFE.search(url):
        return ""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return ""
    kept = [one for one in parts.query.split("&") if one and not _TRACKING.match(one.partition("=")[0])]
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path, "&".join(kept), parts.fragment))


def link_key(url: str) -> str:
    """The same for links that lead to the same page: neither scheme, `www.`, fragment, a last slash nor the order of
    parameters counts. Takes what `clean_link` gives."""
    parts = urlsplit(url)
    query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    return f"{parts.netloc.removeprefix('www.')}{parts.path.rstrip('/')}?{query}"
