"""Texts: Markdown as mrkdwn, mrkdwn as plain text, emoji."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.base import SendFailed
from bot.platforms.emoji import COMMON
from bot.platforms.slack.text import linked, mrkdwn, plain


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**bold** and *slanted* and _slanted_ ~~gone~~", "*bold* and _slanted_ and _slanted_ ~gone~"),
        ("__bold__, snake_case and 2*3*4", "*bold*, snake_case and 2*3*4"),
        ("**a *b* c**", "*a _b_ c*"),
        ("`a*b<c` and ``x`y``", "`a*b&lt;c` and `x`y`"),
        ("# A **title**", "*A title*"),
        ("```py\na < b **x**\n```", "```\na &lt; b **x**\n```"),
        ("```\nnot closed", "```\nnot closed\n```"),
        ("[the site](https://a.example/x_y?b=1&c=2)", "<https://a.example/x_y?b=1&amp;c=2|the site>"),
        ("see https://a.example/b_c, or (https://c.example)", "see <https://a.example/b_c>, or (<https://c.example>)"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n| 1 | 2 |"),
        ("![a dot](https://a.example/secret.png)", "a dot (image at a.example)"),
        ("- one\n- two\n\n> said", "- one\n- two\n\n&gt; said"),
        (r"\*as it is\*", "*as it is*"),
    ],
)
def test_markdown_becomes_mrkdwn(markdown: str, shown: str) -> None:
    assert mrkdwn(markdown) == shown


@pytest.mark.parametrize(
    "text", ["<!channel>", "<!here|here>", "[all](!channel)", "[x](@UANN)", "**<!here>**", "`<!channel>`", "<@UANN>"]
)
def test_no_text_mentions_anybody(text: str) -> None:
    assert re.search(r"<[!@#]", mrkdwn(text)) is None
    assert re.search(r"<[!@#]", linked(text)) is None


@given(st.text(alphabet="<>!@#|&*_~`[]()\\\n hereU1:/.\x02\x01ahtps", max_size=60))
def test_every_control_sequence_of_a_sent_text_is_a_url(text: str) -> None:
    for sent in (mrkdwn(text), linked(text)):
        without = re.sub(r"<(?:https?://|mailto:)[^<>|]*(?:\|[^<>|\n]*)?>", "", sent)
        assert "<" not in without
        assert ">" not in without


@given(st.text(alphabet="<>!&;amplt hereU1:/.ahtps|", max_size=60))
def test_a_plain_text_is_read_as_it_was_sent(text: str) -> None:
    assert plain(linked(text), str) == text


def test_a_received_text_is_plain() -> None:
    text = "<@UANN|ann> &lt;b&gt; &amp;amp; <#C1|general> <#C2> <!here> <!subteam^S1|@cooks> <!date^1^{date}|today>"
    assert plain(text, {"UANN": "Ann"}.__getitem__) == "@Ann <b> &amp; #general #C2 @here @cooks today"
    links = "<https://a.example> <https://a.example|a.example> <https://a.example|the site> <mailto:a@b.c|a@b.c>"
    assert plain(links, str) == "https://a.example https://a.example the site (https://a.example) a@b.c"


def test_common_emoji_have_names() -> None:
    names = ["thumbsup", "+1::skin-tone-3", "-1", "white_check_mark", "x", "heart", "party_parrot"]
    assert [COMMON.emoji(name) for name in names] == ["👍", "👍", "👎", "✅", "❌", "❤️", ":party_parrot:"]
    named = [COMMON.name(one, "Slack") for one in ("👍🏽", "❤", "❤️", ":party_parrot:", "")]
    assert named == ["+1", "heart", "heart", "party_parrot", ""]
    with pytest.raises(SendFailed, match="Slack has no name"):
        COMMON.name("🦩", "Slack")
