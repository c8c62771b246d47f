"""Formats and sizes of pictures, recognised by their first bytes."""

from __future__ import annotations

import struct
from typing import NamedTuple

_JPEG_SIZES = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
"""Markers of JPEG segments that contain height and width."""
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers of segments without a length."""


class Picture(NamedTuple):
    """Format and size of a picture."""

    media_type: str
    width: int
    height: int

    @property
    def pixels(self) -> int:
        """Number of pixels of a frame."""
        return self.width * self.height


def picture_of(content: bytes) -> Picture | None:
    """The picture in `content`, whatever its name says; None if it is not a PNG, JPEG, GIF or WebP with a size."""
    found = None
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR" and len(content) >= 24:
        found = Picture("image/png", *struct.unpack(">II", content[16:24]))
    elif content.startswith((b"GIF87a", b"GIF89a")) and len(content) >= 10:
        found = Picture("image/gif", *struct.unpack("<HH", content[6:10]))
    elif content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        found = _webp(content)
    elif content.startswith(b"\xff\xd8\xff"):
        found = _jpeg(content)
    return found if found is not None and found.pixels else None


def _webp(content: bytes) -> Picture | None:
    kind, head = content[12:16], content[20:30]
    if len(head) < 10:
        return None
    if kind == b"VP8X":
        size = (int.from_bytes(head[4:7], "little") + 1, int.from_bytes(head[7:10], "little") + 1)
    elif kind == b"VP8L" and head[0] == 0x2F:
        bits = int.from_bytes(head[1:5], "little")
        size = ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    elif kind == b"VP8 " and head[3:6] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", head[6:10])
        size = (width & 0x3FFF, height & 0x3FFF)
    else:
        return None
    return Picture("image/webp", *size)


def _jpeg(content: bytes) -> Picture | None:
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF or marker in _JPEG_BARE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_SIZES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return Picture("image/jpeg", width, height)
        at += 2 + max(2, int.from_bytes(content[at + 2 : at + 4]))
    return None
