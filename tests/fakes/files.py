"""A chat network with files, and small files of each kind, made here."""

from __future__ import annotations

import io
import struct
import wave
import zipfile
import zlib
from html import escape
from typing import Any

from bot.platforms.base import FileUnavailable, Limits
from bot.testing import TestPlatform
from function_calls.context import Attachment

EYES: dict[str, Any] = {"models": [{"name": "eyes", "model": "m", "base_url": "http://127.0.0.1:1/v1", "sees": True}]}
"""Settings with a model that sees."""


class FileNetwork(TestPlatform):
    """Network in memory whose messages may have files."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(
            limits
            or Limits(
                text_chars=4000,
                sends_are_idempotent=True,
                sends_per_minute=100_000,
                choices=True,
                attachments=True,
                file_bytes=20_000_000,
            )
        )
        self.contents: dict[str, bytes] = {}
        self.reads: list[str] = []

    def file(self, name: str, media_type: str, content: bytes, *, size: int | None = None) -> Attachment:
        """A file on the network; `size`: its declared size."""
        url = f"network:{len(self.contents)}"
        self.contents[url] = content
        return Attachment(name, media_type, url, size)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        self.reads.append(attachment.name)
        content = self.contents.get(attachment.url)
        if content is None or len(content) > max_bytes:
            raise FileUnavailable(f"{attachment.url} is gone or too large")
        return content


def png(width: int = 2, height: int = 2, comment: bytes = b"") -> bytes:
    """A grey picture; `comment` is a text in it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x80" * width) * height if width * height < 1_000_000 else b""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    text = chunk(b"tEXt", b"Comment\0" + comment) if comment else b""
    return b"\x89PNG\r\n\x1a\n" + head + text + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def gif(width: int = 2, height: int = 2) -> bytes:
    """The beginning of a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int = 2, height: int = 2) -> bytes:
    """The segments of a JPEG before its data."""
    size = struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\x01\x11\0" * 3
    return b"\xff\xd8\xff\xe0\0\x10JFIF\0" + b"\0" * 9 + b"\xff\xff\xc0" + size + b"\xff\xd9"


def webp(kind: bytes = b"VP8X", width: int = 2, height: int = 2) -> bytes:
    """The beginning of a WebP: extended (VP8X), lossless (VP8L) or simple (`VP8 `)."""
    if kind == b"VP8X":
        body = b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + b"\0" * 5
    else:
        body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


def wav(seconds: float = 0.1) -> bytes:
    """Silence as a WAV file."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\0\0" * round(8000 * seconds))
    return stream.getvalue()


def pdf(text: str = "Hello", streams: int = 1, filler: int = 0) -> bytes:
    """A PDF with a page of `text`; with `filler`, its content stream grows by so many bytes when it is unpacked."""
    content = zlib.compress(f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET\n".encode() * streams + b" " * filler, 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(content), content),
    ]
    body, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, one)
    table = b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + table + b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(body)


def docx(*paragraphs: str, more: bytes = b"") -> bytes:
    """A Word document; `more` is put before its paragraphs."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    lines = "".join(f"<w:p><w:r><w:t>{one if more else escape(one)}</w:t></w:r></w:p>" for one in paragraphs)
    xml = more + f"<w:document {space}><w:body>{lines}</w:body></w:document>".encode()
    return zipped({"word/document.xml": xml})


def pptx(*slides: str) -> bytes:
    """A presentation with a line on each slide."""
    space = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    return zipped(
        {
            f"ppt/slides/slide{number}.xml": f"<s {space}><a:p><a:r><a:t>{one}</a:t></a:r></a:p></s>".encode()
            for number, one in enumerate(slides, 1)
        }
    )


def zipped(parts: dict[str, bytes]) -> bytes:
    """A ZIP archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()
