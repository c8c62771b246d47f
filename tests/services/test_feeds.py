from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.patterns import shortened
from services.web.addresses import clean_link, link_key
from services.web.content import text_of_html
from services.web.feeds import Entry, NoFeed, read_feed
from tests.fakes.feeds import ATOM, RDF, RSS


def at(entry: Entry) -> datetime | None:
    return None if entry.at_ms is None else datetime.fromtimestamp(entry.at_ms / 1000, UTC)


def test_rss_is_read_as_plain_text_with_times_in_utc_and_links_that_follow_nobody() -> None:
    bridge, rain, undated = read_feed(RSS.encode(), "application/rss+xml")
    assert (bridge.title, bridge.link) == ("Bridge opens & closes", "https://world.example/bridge?id=7")
    assert bridge.summary == "The bridge in Oslo."
    assert at(bridge) == datetime(2026, 1, 5, 7, 30, tzinfo=UTC)
    assert at(rain) == datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
    assert (undated.at_ms, undated.link) == (None, "")


def test_atom_and_rss_1_are_read_too_whatever_their_encoding() -> None:
    first, *_ = read_feed(ATOM.encode(), "application/atom+xml")
    assert (first.title, first.link) == ("A chip is <faster>", "https://tech.example/chip")
    [snow] = read_feed(RDF, "application/xml")
    assert (snow.title, at(snow)) == ("北京下雪了", datetime(2026, 1, 5, 8, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"<html><body><p>Not found</p></body></html>", b"/etc/passwd", b"http://127.0.0.1/feed"]
)
def test_what_is_no_feed_is_refused(body: bytes) -> None:
    with pytest.raises(NoFeed):
        read_feed(body, "text/html")


def test_a_feed_that_breaks_off_gives_what_is_whole_in_it() -> None:
    broken = RSS.encode()[: RSS.index("<item><title>No date")]
    assert [entry.title for entry in read_feed(broken, "application/rss+xml")][:2] == [
        "Bridge opens & closes",
        "Rain in the north",
    ]


def test_no_file_and_no_entity_from_elsewhere_gets_into_a_feed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary", encoding="utf-8")
    entity = f'<!DOCTYPE rss [<!ENTITY file SYSTEM "{secret.as_uri()}">]><rss '
    body = RSS.replace("<rss ", entity, 1).replace("Rain in the north", "x&file;y")
    assert all("canary" not in entry.title for entry in read_feed(body.encode(), "application/rss+xml"))
    with pytest.raises(NoFeed):
        read_feed(str(secret).encode(), "application/rss+xml")


def test_entities_within_entities_do_not_fill_the_memory() -> None:
    entities = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    bomb = f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a0 "lol">{entities}]>' + RSS.partition("?>")[2]
    began = time.process_time()
    entries = read_feed(bomb.replace("Rain in the north", "&a9;").encode(), "application/rss+xml")
    assert time.process_time() - began < 5
    assert all(len(entry.title) <= 200 for entry in entries)


@given(st.binary(max_size=300), st.integers(0, len(RSS)))
def test_whatever_stands_in_a_feed_it_is_read_or_refused(junk: bytes, place: int) -> None:
    body = RSS.encode()
    try:
        entries = read_feed(body[:place] + junk + body[place:], "application/rss+xml")
    except NoFeed:
        return
    for entry in entries:
        assert entry.title.isprintable()
        assert len(entry.title) <= 200
        assert entry.link == "" or entry.link.startswith(("http://", "https://"))


@given(st.text(max_size=300), st.integers(5, 50))
def test_text_of_html_is_one_line_of_visible_signs_within_its_length(markup: str, most: int) -> None:
    text = text_of_html(markup, most)
    assert len(text) <= most
    assert all(sign.isprintable() for sign in text)


@pytest.mark.parametrize("piece", ["<a ", "<a b='", "<a /", "<!--", "<![", "<![CDATA[>", "&#", "<a b='>"])
def test_malformed_markup_of_any_size_is_read_in_bounded_time(piece: str) -> None:
    began = time.process_time()
    assert len(text_of_html(piece * 50_000, 200)) <= 200
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("markup", "text"),
    [("1 < 2 &amp; 3", "1 < 2 & 3"), ("<b>a</b> <i", "a <i"), ("<script>a</b>b", ""), ("a <![x]> b &lt;", "a")],
)
def test_text_after_the_last_tag_is_visible_unless_a_script_contains_it(markup: str, text: str) -> None:
    assert text_of_html(markup, 200).startswith(text)


def test_a_text_is_cut_after_a_word() -> None:
    assert shortened("one two three", 10) == "one two…"
    assert shortened("一二三四五六七八九十", 5) == "一二三四…"
    assert shortened("short", 5) == "short"


@pytest.mark.parametrize(
    ("url", "cleaned"),
    [
        ("HTTPS://A.example/x?utm_source=rss&b=2&fbclid=1&a=%20", "https://a.example/x?b=2&a=%20"),
        ("https://a.example/x?at_medium=RSS&at_campaign=rss", "https://a.example/x"),
        ("https://user@a.example/", ""),
        ("javascript:alert(1)", ""),
        ("//a.example/x", ""),
        ("https://a.example/<script>", ""),
        ("https://[::1/", ""),
        ("ftp://a.example/", ""),
    ],
)
def test_a_link_is_shown_without_what_follows_its_readers_or_not_at_all(url: str, cleaned: str) -> None:
    assert clean_link(url) == cleaned


def test_links_to_one_page_are_the_same_however_they_are_written() -> None:
    keys = {
        link_key(clean_link(url))
        for url in (
            "http://www.a.example/x/?b=1&a=2",
            "https://a.example/x?a=2&b=1&utm_id=3",
            "https://a.example/x?a=2&b=1#c",
        )
    }
    assert len(keys) == 1
    assert link_key("https://a.example/x?a=1") not in keys


@given(st.text(max_size=80))
def test_cleaning_a_link_twice_changes_nothing(text: str) -> None:
    once = clean_link(f"https://a.example/{text}")
    assert clean_link(once) == once
    assert once == "" or link_key(once)
