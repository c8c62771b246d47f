"""Formats of pictures, and texts of documents, hostile ones included."""

from __future__ import annotations

import io
from datetime import date

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.clock import SystemClock
from services.media.documents import MOST_CHARS, document_to_json
from services.media.pictures import picture_of
from services.sandbox.parsing import DocumentParser, Parser, ParsingError
from tests.fakes.files import docx, gif, jpeg, pdf, png, pptx, webp, zipped


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (png(300, 200), "image/png"),
        (gif(300, 200), "image/gif"),
        (jpeg(300, 200), "image/jpeg"),
        (webp(b"VP8X", 300, 200), "image/webp"),
        (webp(b"VP8L", 300, 200), "image/webp"),
        (webp(b"VP8 ", 300, 200), "image/webp"),
    ],
)
def test_a_picture_is_recognised_by_its_bytes(content: bytes, media_type: str) -> None:
    picture = picture_of(content)
    assert picture == (media_type, 300, 200)
    assert picture is not None
    assert picture.pixels == 60_000


@given(st.sampled_from([png(), gif(), jpeg(), webp(b"VP8X"), webp(b"VP8L"), webp(b"VP8 ")]), st.binary(), st.data())
def test_no_bytes_make_the_recognition_fail(start: bytes, rest: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(start)))
    found = picture_of(start[:at] + rest)
    assert found is None or found.pixels > 0


@pytest.mark.parametrize("content", [b"", b"<svg/>", b"%PDF-1.4", gif(0, 0), b"\xff\xd8\xff"])
def test_other_files_are_no_pictures(content: bytes) -> None:
    assert picture_of(content) is None


def xlsx() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Trip"
    sheet.append(["Name", "Day", "Cost"])
    sheet.append(["Ann", date(2026, 5, 1), 12.5])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (pdf("Rehearsal on Tuesday"), "Rehearsal on Tuesday"),
        (docx("One", "Two & three"), "One\nTwo & three"),
        (pptx("First", "Second"), "First\n\nSecond"),
        (xlsx(), "# Trip\nName,Day,Cost\nAnn,2026-05-01 00:00:00,12.5"),
        ("naïve, 名字\n".encode(), "naïve, 名字"),
        ("名字".encode("gb18030"), "名字"),
        ("hello".encode("utf-16"), "hello"),
    ],
    ids=["pdf", "docx", "pptx", "xlsx", "utf-8", "gb18030", "utf-16"],
)
async def test_a_document_becomes_text(content: bytes, text: str) -> None:
    read = await DocumentParser(SystemClock()).parse(Parser.DOCUMENT, content, "")
    assert read == {"text": text, "cut": False}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\0\1\2\3", "unknown"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old", "unknown"),
        (zipped({"readme": b"x"}), "unknown"),
        (b"PK\x03\x04 no archive", "broken"),
        (b"%PDF-1.4 no more", "broken"),
        (zipped({"word/document.xml": b"<a><b>"}), "broken"),
        (zipped({"word/document.xml": b"<a>" + b" " * 50_000_000 + b"</a>"}), "bomb"),
        (docx(), "empty"),
    ],
)
def test_a_document_without_text_has_a_problem(content: bytes, problem: str) -> None:
    assert document_to_json(content, "") == {"problem": problem}


def test_a_long_document_is_cut() -> None:
    read = document_to_json(b"word " * MOST_CHARS, "text/plain")
    assert read["cut"]
    assert len(read["text"]) <= MOST_CHARS


LAUGHS = b'<!DOCTYPE d [<!ENTITY a0 "lol">' + b"".join(
    b'<!ENTITY a%d "%b">' % (number, b"&a%d;" % (number - 1) * 10) for number in range(1, 12)
)


@pytest.mark.parametrize(
    "content",
    [
        pdf(filler=900_000_000),
        pdf("x" * 50, streams=3_000_000),
        docx("&a11;", more=LAUGHS + b"]>"),
        docx("&x;", more=b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
        b"%PDF-1.4\n" + b"[" * 5_000_000,
    ],
    ids=["unpacked size", "operators", "entities", "outside entity", "nesting"],
)
async def test_a_hostile_document_stays_within_the_limits(content: bytes) -> None:
    try:
        read = await DocumentParser(SystemClock()).parse(Parser.DOCUMENT, content, "")
    except ParsingError:
        return
    assert "problem" in read or len(read["text"]) <= MOST_CHARS
    assert "root:" not in str(read)
