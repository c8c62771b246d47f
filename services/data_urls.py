"""Files in addresses: `data:text/plain;base64,…`."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

_MEDIA_TYPE = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)[;,]", re.IGNORECASE)


def data_in(url: str) -> bytes | None:
    """What a `data:` address holds; None where it cannot be read."""
    head, comma, body = url.removeprefix("data:").partition(",")
    if not comma:
        return None
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote_to_bytes(body), validate=True)
    except binascii.Error:
        return None


def media_type_in(url: str) -> str:
    """What a `data:` address says that it holds, such as `image/png`; empty where it does not."""
    found = _MEDIA_TYPE.match(url)
    return found[1].lower() if found else ""


def data_url(content: bytes, media_type: str) -> str:
    """The address that holds `content`."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"
