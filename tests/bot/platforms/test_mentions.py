import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.mentions import ParsedText, mention_parser

HEAR = mention_parser(("Rollcall", "roll", "小助手", "Zoë"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("@Rollcall what's the weather", "what's the weather"),
        ("@ROLLCALL: list", "list"),
        ("@rollcall. hi", "hi"),
        ("what do you think, @rollcall?", "what do you think?"),
        ("ask @Rollcall about it", "ask about it"),
        ("@roll 20", "20"),
        ("@Zoe\u0308 hi", "hi"),
        ("＠rollcall，hi", "hi"),
        ("first line\n@Rollcall second", "first line\nsecond"),
        ("/weather@Rollcall Oslo", "/weather Oslo"),
        ("@Rollcall @rollcall twice", "twice"),
        ("今天@小助手天气怎么样", "今天天气怎么样"),
        ("你好@Rollcall今天", "你好今天"),
        ("@Rollcall", ""),
    ],
)
def test_an_at_mention_of_the_bot_is_found_and_stripped(text: str, left: str) -> None:
    assert HEAR(text) == ParsedText(mentions_bot=True, text=left)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Rollcall, what's the weather", "what's the weather"),
        ("  rollcall: hi", "hi"),
        ("Rollcall - hi", "hi"),
        ("ROLLCALL!", ""),
        ("Rollcall?", ""),
        ("Rollcall", ""),
        ("Rollcall... hi", "hi"),
        ("小助手，今天天气", "今天天气"),
        ("小助手 今天天气", "今天天气"),
        ("小助手：天气", "天气"),
    ],
)
def test_the_name_at_the_head_speaks_to_the_bot(text: str, left: str) -> None:
    assert HEAR(text) == ParsedText(mentions_bot=True, text=left)


@pytest.mark.parametrize(
    "text",
    [
        "@Rollcallers hi",
        "@Rollcall-dev hi",
        "@Rollcall's answer",
        "@Zoe hi",
        "me@rollcall.dev",
        "mail a@Rollcall now",
        "Rollcall is nice",
        "Rollcall's bad",
        "Rollcall:8080 is down",
        "Rollcall://x",
        "scroll, please",
        "I like Rollcall, you know",
        "小助手们好",
        "我的小助手，你好",
    ],
)
def test_the_name_inside_words_and_sentences_is_no_mention(text: str) -> None:
    assert HEAR(text) == ParsedText(mentions_bot=False, text=text)


@given(st.text())
def test_a_text_without_the_names_is_only_normalised(text: str) -> None:
    for name in ("rollcall", "roll", "小助手", "zoë"):
        if name in text.casefold():
            return
    assert not HEAR(text).mentions_bot


@given(st.lists(st.sampled_from(["@Rollcall", "@ROLL", "hello", "what", "今天"]), min_size=1))
def test_what_is_left_is_the_other_words_in_order(words: list[str]) -> None:
    others = [word for word in words if not word.startswith("@")]
    assert HEAR(" ".join(words)) == ParsedText(mentions_bot=len(others) < len(words), text=" ".join(others))


def test_a_bot_without_a_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one name"):
        mention_parser(("", "  "))
