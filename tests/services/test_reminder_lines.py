"""Parsing of command lines for reminders."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.text_index import listed
from services.times import Times
from services.times.reminder_lines import Line, read_line

NOW = datetime(2026, 11, 20, 16, 0, tzinfo=ZoneInfo("Europe/Oslo"))
TIMES = Times()


@pytest.mark.parametrize(
    ("line", "text", "when", "who"),
    [
        ("tomorrow at 5pm call mum", "call mum", "tomorrow at 5pm", ()),
        ("in 20 minutes tea", "tea", "in 20 minutes", ()),
        ("every weekday at 8:30 stand-up", "stand-up", "every weekday at 8:30", ()),
        ("me to call mum tomorrow at 5pm", "call mum", "tomorrow at 5pm", ("me",)),
        ("me to call mum tomorrow at 5pm, please", "call mum", "tomorrow at 5pm", ("me",)),
        ("@Ann friday 9 bring cake", "bring cake", "friday 9", ("Ann",)),
        ("@Ann and @Bob to bring cake on friday at 9", "bring cake", "on friday at 9", ("Ann", "Bob")),
        ("me and @Bob tomorrow at 9 gym", "gym", "tomorrow at 9", ("me", "Bob")),
        ("in 5 minutes @Ann tea", "tea", "in 5 minutes", ("Ann",)),
        ("Ann to bring cake friday 9", "bring cake", "friday 9", ("Ann",)),
        ("Ann tomorrow 9am bring cake", "bring cake", "tomorrow 9am", ("Ann",)),
        ("Ann's birthday tomorrow", "Ann's birthday", "tomorrow", ()),
        ("Ann birthday cake tomorrow", "Ann birthday cake", "tomorrow", ()),
        ("小王 下周一交房租", "交房租", "下周一", ("小王",)),
        ("tomorrow Ann has her exam", "Ann has her exam", "tomorrow", ()),
        ("Zoe to bring cake friday 9", "Zoe to bring cake", "friday 9", ()),
        ("us to order pizza at 7pm", "order pizza", "at 7pm", ("us",)),
        ("everyone about the meeting on Monday at 10", "the meeting", "on Monday at 10", ("everyone",)),
        ("tomorrow call mum at 5pm", "call mum", "tomorrow at 5pm", ()),
        ("friday meeting at 5pm", "meeting", "friday at 5pm", ()),
        ("that the meeting is at 5pm in 20 minutes", "the meeting is at 5pm", "in 20 minutes", ()),
        ("in 20 minutes that the meeting is at 5pm", "the meeting is at 5pm", "in 20 minutes", ()),
        ("at 5pm ask Bob about tomorrow", "ask Bob about tomorrow", "at 5pm", ()),
        ("about the may festival on friday", "the may festival", "on friday", ()),
        ("buy 2 tickets for the 8pm show on Friday", "buy 2 tickets for the 8pm show", "on Friday", ()),
        ("water the plants every second Friday at 18:00", "water the plants", "every second Friday at 18:00", ()),
        ("us today at 7pm dinner", "dinner", "today at 7pm", ("us",)),
        ("at noon lunch with Bob", "lunch with Bob", "at noon", ()),
        ("dinner at 7pm", "dinner", "at 7pm", ()),
        ("in 300 days dinner", "dinner", "in 300 days", ()),
        ("tomorrow dinner with Bob", "dinner with Bob", "tomorrow", ()),
        ("我明天下午3点开会", "开会", "明天下午3点", ("我",)),
        ("20分钟后关火", "关火", "20分钟后", ()),
        ("每天晚上10点睡觉", "睡觉", "每天晚上10点", ()),
        ("大家周五上午9点投票", "投票", "周五上午9点", ("大家",)),
        ("@小明和@小红 明天9点 打扫", "打扫", "明天9点", ("小明", "小红")),
        ("给妈妈打电话 明天下午5点", "给妈妈打电话", "明天下午5点", ()),
        ("明天大家一起吃饭", "大家一起吃饭", "明天", ()),
        ("关于周五的会议", "关于周五的会议", "", ()),
        ("call mum", "call mum", "", ()),
        ("to ask about friday", "ask about friday", "", ()),
        ("tomorrow at 5pm", "", "tomorrow at 5pm", ()),
        ("me", "", "", ("me",)),
        ("", "", "", ()),
    ],
)
def test_a_line_has_whom_what_and_when(line: str, text: str, when: str, who: tuple[str, ...]) -> None:
    assert read_line(line, NOW, TIMES, ["Ann", "Bob", "小王"]) == Line(text, when, who)


_WORDS = st.sampled_from(
    listed("me us @Ann to about at on friday 5pm in 20 minutes every day tomorrow call mum , and 我 大家 明天")
)


@given(line=st.text(max_size=80) | st.lists(_WORDS, max_size=12).map(" ".join))
def test_every_line_can_be_taken_apart_into_a_time_that_reads(line: str) -> None:
    parts = read_line(line, NOW, TIMES, ["Ann"])
    assert not parts.when or TIMES.read(parts.when, NOW) is not None
    assert "\n" not in parts.text
