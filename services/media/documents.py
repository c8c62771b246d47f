"""Text of documents: PDF, Word, PowerPoint, Excel and plain text. Runs in a child process, started by
`services.sandbox.parsing`."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import cast
from xml.etree import ElementTree as ET
from zipfile import BadZipFile, ZipFile

from services.refs import JsonObject

MOST_CHARS = 100_000
"""Maximum length of the returned text."""
_LARGEST_PART = 100_000_000
_LARGEST_RATIO = 200
"""Largest factor by which a part of an Office file may grow when it is unpacked."""
_WORD, _SLIDE = "word/document.xml", re.compile(r"ppt/slides/slide(\d+)\.xml")
_BLOCKS = frozenset({"p", "tr"})
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n"}
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class UnreadableDocument(ValueError):
    """The document has no text that can be read. The message is `encrypted`, `unknown`, `broken`, `empty`, `bomb` or
    `not_installed`."""


def document_to_json(content: bytes, _content_type: str) -> JsonObject:
    """`text` of a document, at most MOST_CHARS long, with form feeds between pages, and whether it is `cut`; or a
    `problem`, as in UnreadableDocument. The format is recognised by the bytes, not by the declared type."""
    try:
        text = _joined(_pieces(content))
    except UnreadableDocument as problem:
        return {"problem": str(problem)}
    except ImportError:
        return {"problem": "not_installed"}
    except Exception:  # noqa: BLE001 - the libraries raise exceptions of any kind for broken documents
        return {"problem": "broken"}
    if not text.strip():
        return {"problem": "empty"}
    return {"text": text[:MOST_CHARS].rstrip(), "cut": len(text) > MOST_CHARS}


def _joined(pieces: Iterable[str]) -> str:
    """The pieces up to the first that exceeds the limit, so that the rest is never read."""
    parts: list[str] = []
    length = 0
    for piece in pieces:
        parts.append(piece)
        length += len(piece)
        if length > MOST_CHARS:
            break
    return "".join(parts)


def _pieces(content: bytes) -> Iterator[str]:
    if b"%PDF-" in content[:1024]:
        return _pdf(content)
    if content.startswith(b"PK\x03\x04"):
        return _office(content)
    if content.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        # The container of encrypted Office files, and of those before 2007.
        raise UnreadableDocument("unknown")
    return iter((plain_text(content),))


def _pdf(content: bytes) -> Iterator[str]:
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise UnreadableDocument("encrypted")
    for page in reader.pages:
        yield page.extract_text().replace("\f", "\n") + "\n\f"


def _office(content: bytes) -> Iterator[str]:
    try:
        archive = ZipFile(BytesIO(content))
    except BadZipFile:
        raise UnreadableDocument("broken") from None
    for part in archive.infolist():
        if part.file_size > _LARGEST_PART or part.file_size > _LARGEST_RATIO * max(part.compress_size, 5000):
            raise UnreadableDocument("bomb")
    names = set(archive.namelist())
    if "xl/workbook.xml" in names:
        yield from _sheets(content)
        return
    slides = sorted((int(found[1]), name) for name in names if (found := _SLIDE.fullmatch(name)))
    parts = [_WORD] if _WORD in names else [name for _, name in slides]
    if not parts:
        raise UnreadableDocument("unknown")
    for part_name in parts:
        with archive.open(part_name) as part_file:
            yield from _runs(part_file.read)
        yield "\n"


def _runs(read: Callable[[int], bytes]) -> Iterator[str]:
    """The text of WordprocessingML or DrawingML, with line ends after paragraphs."""
    parser: ET.XMLPullParser[ET.Element] = ET.XMLPullParser(("end",))
    while chunk := read(64 * 1024):
        parser.feed(chunk)
        for _, element in cast(Iterable[tuple[str, ET.Element]], parser.read_events()):
            name = str(element.tag).rpartition("}")[2]
            if name == "t":
                yield element.text or ""
            elif name in _BLOCKS or name in _BREAKS:
                yield _BREAKS.get(name, "\n")
            if name in _BLOCKS:
                element.clear()
    parser.close()  # raises ParseError if the end is missing


def _sheets(content: bytes) -> Iterator[str]:
    from openpyxl import load_workbook

    workbook = load_workbook(BytesIO(content), read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        yield f"# {sheet.title}\n"
        for row in sheet.iter_rows(values_only=True):
            cells = ["" if cell is None else str(cell) for cell in row]
            if any(cells):
                yield ",".join(cells).rstrip(",") + "\n"


def plain_text(content: bytes) -> str:
    """Text of a file in UTF-8, UTF-16 with a mark, or GB 18030. Raises UnreadableDocument for binary data."""
    content = content[: 4 * MOST_CHARS + 4]
    encoding = next((name for bom, name in _BOMS if content.startswith(bom)), "")
    if not encoding and b"\0" in content:
        raise UnreadableDocument("unknown")
    for name in (encoding,) if encoding else ("utf-8", "gb18030"):
        # A decoder that is not final ignores a character that was cut at the end.
        try:
            return codecs.getincrementaldecoder(name)().decode(content)
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1")
