"""Contents of messages are read and written as Satori has them."""

from __future__ import annotations

import pytest

from bot.platforms.satori.elements import parse, written


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("5 &lt; 6 &amp;&amp; &quot;a&quot; &#128075;", '5 < 6 && "a" 👋'),
        ("&lt;at id=&quot;bot&quot;/&gt;", '<at id="bot"/>'),
        ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
        ("one<br/>two<br />three", "one\ntwo\nthree"),
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<b>bold</b> <unknown:thing a='1'>text</unknown:thing>", "bold text"),
        ('<at id="ann" name="Ann"/> and <at type="all"/>', "@Ann and @all"),
        ('<sharp id="7" name="news"/>', "#news"),
        ('<a href="https://a.example/?x=1&amp;y=2">https://a.example/?x=1&amp;y=2</a>', "https://a.example/?x=1&y=2"),
        ('<a href="https://a.example">here</a>', "https://a.example here"),
        ('<face id="14" name="smile"><img src="https://a.example/14.png"/></face>', "[smile]"),
        ("unfinished <b", "unfinished <b"),
    ],
)
def test_a_content_is_read_as_text(content: str, text: str) -> None:
    assert parse(content, "bot").text == text


def test_a_mention_of_the_bot_is_removed_and_other_members_stay() -> None:
    found = parse('<at id="bot" name="Rollcall"/> tell <at id="ann" name="Ann"/> hello', "bot")
    assert (found.text, found.mentions_bot, found.mentions) == ("tell @Ann hello", True, ("ann",))
    assert not parse('<at type="all"/> hello', "bot").mentions_bot


def test_a_quoted_message_is_no_part_of_the_text() -> None:
    quote = '<quote id="9"><author id="ann" name="Ann"/>see <at id="bot"/><img src="https://a.example/b.png"/></quote>'
    found = parse(f'{quote}<at id="ben"/> yes', "bot")
    assert (found.text, found.mentions_bot, found.mentions, found.attachments) == ("@ben yes", False, ("ben",), ())
    assert (found.quote, found.quoted, found.author) == ("9", "see", "ann")


def test_files_have_names_and_types() -> None:
    files = (
        '<img src="https://a.example/p/cat.jpg?size=1"/><file src="internal:q/1/f" title="../notes.pdf"/>'
        '<audio src="https://a.example/voice"/><img src="data:image/gif;base64,AAAA"/>'
    )
    assert [(one.name, one.media_type, one.url.partition(":")[0]) for one in parse(files, "bot").attachments] == [
        ("cat.jpg", "image/jpeg", "network"),
        ("notes.pdf", "application/pdf", "network"),
        ("voice", "audio/mpeg", "network"),
        ("img", "image/gif", "data"),
    ]


def test_a_long_content_of_brackets_is_read_in_little_time() -> None:
    assert parse("<" * 200_000, "bot").text == "<" * 200_000
    assert len(parse("<a " + "b='" * 100_000 + ">", "bot").text) < 10


def test_markdown_becomes_elements_and_texts_are_escaped() -> None:
    text = '**Bold** <at type="all"/> [x](https://a.example/?a=1&b=2)\n```\n<b>\n```'
    assert written(text, is_markdown=True) == (
        '<b>Bold</b> &lt;at type="all"/&gt; <a href="https://a.example/?a=1&amp;b=2">x</a><br/><code>&lt;b&gt;</code>'
    )
    assert written("*a* <at/>\n\n b", is_markdown=False) == "*a* &lt;at/&gt;<br/><br/> b"
    assert written("**a** <b>", is_markdown=True, is_plain=True) == "a &lt;b&gt;"
