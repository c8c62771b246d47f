"""Parsing and formatting of IRC lines: any input is parsed, and no unintended line is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.base import Outgoing
from bot.platforms.irc.text import (
    ctcp,
    ctcp_answer,
    harmless,
    in_pieces,
    lines_of,
    sendable_lines,
    without_codes,
    without_spaces,
)
from bot.platforms.irc.wire import CLIENT_TAG_BYTES, Line, encode, one_word, parse
from services.refs import ChatRef

WORDS = st.text(st.characters(exclude_characters="\0\r\n ", exclude_categories=("Cs",)), min_size=1).filter(one_word)
TEXTS = st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=("Cs",)))
TAGS = st.dictionaries(st.from_regex(r"\A\+?([a-z.]+/)?[a-z-]+\Z"), TEXTS.map(lambda text: text[:50]), max_size=4)


@given(st.sampled_from(["PRIVMSG", "NOTICE", "005"]), st.lists(WORDS, max_size=5), TEXTS, TAGS)
def test_what_is_written_is_what_is_read(command: str, words: list[str], last: str, tags: dict[str, str]) -> None:
    raw = encode(command, *words, last, tags=tags)
    assert raw.endswith(b"\r\n")
    assert raw.count(b"\n") == raw.count(b"\r") == 1
    assert parse(raw[:-2]) == Line(command, (*words, last), "", tags)


@given(st.binary())
def test_whatever_a_server_sends_can_be_read(raw: bytes) -> None:
    for line in raw.split(b"\n"):
        parse(line)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"PING", Line("PING")),
        (b":irc.test 001 me :Welcome all", Line("001", ("me", "Welcome all"), "irc.test")),
        (b"  :a!b@c  PRIVMSG   #x   :  two  spaces", Line("PRIVMSG", ("#x", "  two  spaces"), "a!b@c")),
        (b"@time=1;a;c=\\:\\s\\\\\\r\\n\\q\\ :x T y", Line("T", ("y",), "x", {"time": "1", "a": "", "c": "; \\\r\nq"})),
        (b":x PRIVMSG #y :caf\xe9", Line("PRIVMSG", ("#y", "café"), "x")),
        (b":x PRIVMSG #y ::)", Line("PRIVMSG", ("#y", ":)"), "x")),
        (b"privmsg a b c", Line("PRIVMSG", ("a", "b", "c"))),
    ],
)  # fmt: skip
def test_lines_are_read_as_servers_mean_them(raw: bytes, line: Line) -> None:
    assert parse(raw) == line


@pytest.mark.parametrize("raw", [b"", b"   ", b":x", b"@a=b", b"@a=b :x "])
def test_a_line_without_a_command_is_none(raw: bytes) -> None:
    assert parse(raw) is None


@pytest.mark.parametrize(
    "params",
    [("#x", "a\r\nQUIT"), ("#x", "a\nb"), ("#x", "a\0b"), ("#x y", "a"), ("", "a"), (":x", "a"), ("#x\r\nQUIT :", "a")],
)
def test_nothing_but_one_line_can_be_written(params: tuple[str, ...]) -> None:
    with pytest.raises(ValueError):
        encode("PRIVMSG", *params)


@pytest.mark.parametrize("tags", [{"a b": ""}, {"a;b": ""}, {"": "x"}, {"a": "x" * CLIENT_TAG_BYTES}, {"a": "\0"}])
def test_tags_that_no_server_takes_are_refused(tags: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        encode("TAGMSG", "#x", tags=tags)


# Text


def test_colours_and_formatting_of_others_are_left_out() -> None:
    assert (
        without_codes("\x0304,12red\x03 \x02bold\x02 \x1ditalic\x0f \x04ff0000hex\x04 \x16\x1f\x1e\x11")
        == "red bold italic hex "
    )
    assert without_codes("\x031,2345") == "45"


def test_a_ctcp_is_told_from_text_and_its_answer_cannot_be_ended_early() -> None:
    action = ctcp("\x01ACTION waves\x01")
    assert action is not None
    assert (action.command, action.text) == ("ACTION", "waves")
    assert ctcp("hello \x01") is None
    assert ctcp_answer("PING", "1\x01\r\nQUIT") == "\x01PING 1QUIT\x01"


@pytest.mark.parametrize(
    ("markdown", "lines"),
    [
        ("# Weather\n\n**Oslo**: *cold*, __wet__ and ~~warm~~", ["Weather", "Oslo: cold, wet and warm"]),
        ("## Plan # 2 ##\n# #1\n#no", ["Plan # 2", "#1", "#no"]),
        ("2*3*4 = 24, snake_case_name, a * b * c", ["2*3*4 = 24, snake_case_name, a * b * c"]),
        ("Use `ls -l *` or ``a`b``", ["Use ls -l * or a`b"]),
        ("Before\n```python\nx = **y**\n\n# no heading\n```\nafter", ["Before", "x = **y**", "# no heading", "after"]),
        ("See [the page](https://a.test/b) and <https://c.test>.", ["See the page (https://a.test/b) and https://c.test."]),
        ("- one\n- two\n> quoted", ["- one", "- two", "> quoted"]),
        ("a\r\nb\rc\u2028d", ["a", "b", "c", "d"]),
        ("\x02bold\x02 \x0304red\x03 a\tb \x01ACTION x\x01", ["bold red a    b \ufffdACTION x\ufffd"]),
        ("\\*not bold\\*", ["*not bold*"]),
        ("这是**重点**内容, 2**3**4", ["这是重点内容, 2**3**4"]),
        ("| Who | What |\n|:---|---:|\n| Ann | **tea** |", ["| Who | What |", "| Ann | tea |"]),
        ("*unterminated _markdown", ["*unterminated _markdown"]),
        ("_See_ https://a.test/_x_/y_z?q=*b*&c=~~d~~", ["See https://a.test/_x_/y_z?q=*b*&c=~~d~~"]),
        ("**https://a.test/_x_** *(http://b.test/_)*", ["https://a.test/_x_ (http://b.test/_)"]),
        ("*see https://a.test/*x*/y now*, [it](https://a.test/_z_)", ["see https://a.test/*x*/y now, it (https://a.test/_z_)"]),
    ],
)  # fmt: skip
def test_markdown_becomes_plain_lines(markdown: str, lines: list[str]) -> None:
    assert sendable_lines(markdown, markdown=True) == lines


def test_a_links_address_is_always_shown_and_an_images_never_whole() -> None:
    assert sendable_lines("[https://bank.test](https://evil.test)", markdown=True) == [
        "https://bank.test (https://evil.test)"
    ]
    assert sendable_lines("![x](https://evil.test/?q=SECRET)", markdown=True) == ["x (image at evil.test)"]


@pytest.mark.parametrize("text", ["**" * 1500, "[" * 3000, "`" * 3000, "*a " * 1000, "![" * 1500, "_a" * 1500 + "_"])
def test_text_made_to_be_slow_is_not(text: str) -> None:
    assert sendable_lines(text, markdown=True) is not None


@pytest.mark.parametrize("line", ["/me dances", "!op ann", ".kick", "-v ann", "@all hands", "\\o"])
def test_what_others_would_take_for_a_command_begins_with_a_space(line: str) -> None:
    assert harmless(line) == f" {line}"


@pytest.mark.parametrize("line", ["-5 degrees", "- item", "... and so on", "hello", "1. one", "!"])
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert harmless(line) == line


def test_what_a_model_may_write_to_reach_everybody_stays_text(data: Callable[[str], Path]) -> None:
    rows = data("G_faults/mention_markdown.jsonl").read_text(encoding="utf-8").splitlines()
    for row in rows:
        text = json.loads(row)["llm_text"]
        said = " ".join(sendable_lines(text, markdown=True))
        assert said
        assert "SECRET" not in said


@given(st.text(max_size=300), st.integers(20, 120))
def test_pieces_are_short_enough_and_lose_nothing_but_spaces(text: str, room: int) -> None:
    for line in sendable_lines(text, markdown=True):
        pieces = list(in_pieces(line, room))
        assert all(len(piece.encode()) <= room for piece in pieces)
        assert "".join(pieces).replace(" ", "") == line.replace(" ", "")


@pytest.mark.parametrize("whole", ["👨‍👩‍👧", "🇳🇴", "👍🏽", "e\u0301", "각"])
def test_no_piece_ends_within_a_character(whole: str) -> None:
    for room in range(30, 60):
        pieces = list(in_pieces(whole * 40, room))
        assert all(piece.replace(whole, "") == "" for piece in pieces)


def test_a_line_is_cut_between_words_where_that_leaves_enough() -> None:
    assert list(in_pieces("one two three four five", 10)) == ["one two", "three four", "five"]
    assert list(in_pieces("x" * 25, 10)) == ["x" * 10, "x" * 10, "x" * 5]


ANYTHING = st.text(max_size=400)


@given(ANYTHING, st.booleans(), st.lists(st.from_regex(r"\A[a-z]{1,9}\Z"), max_size=3), st.integers(40, 300))
def test_every_line_of_a_message_is_one_line_of_text_within_its_room(
    text: str, markdown: bool, nicks: list[str], room: int
) -> None:
    outgoing = Outgoing(ChatRef("irc", "test", "#x"), "1:0:0", text, markdown=markdown)
    lines = list(lines_of(outgoing, "", nicks, lambda: room))
    assert lines
    for line, _ in lines:
        raw = encode("PRIVMSG", "#x", line)
        assert parse(raw[:-2]) == Line("PRIVMSG", ("#x", line))
        assert not line.startswith(("/", "\x01"))
        assert "\x01" not in line
        assert "\x03" not in line
    assert all(len(line.encode()) <= max(room, 90) for line, _ in lines)


@given(ANYTHING, st.integers(0, 30), st.integers(40, 90), st.integers(40, 90))
def test_a_message_that_broke_off_goes_on_where_it_did_however_its_rest_is_cut(
    text: str, arrived: int, before: int, after: int
) -> None:
    outgoing = Outgoing(ChatRef("irc", "test", "#x"), "1:0:0", text)
    first = [piece for _, piece in lines_of(outgoing, "", ["ann"], lambda: before)]
    said = "".join(map(without_spaces, first[:arrived]))
    rest = [piece for _, piece in lines_of(outgoing, said, ["ann"], lambda: after)]
    assert said + "".join(map(without_spaces, rest)) == "".join(map(without_spaces, first))
