from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from services.chats.message_history import MOST_LINKS, MOST_QUESTIONS, MOST_WORDS, ChatLine, Overview, overview

OSLO = ZoneInfo("Europe/Oslo")
START = round(datetime(2026, 1, 5, 9, tzinfo=OSLO).timestamp() * 1000)
MINUTE = 60_000


def said(who: str, text: str, minute: float = 0, *, to: str = "", bot: bool = False) -> ChatLine:
    return ChatLine(f"id:{who}", who, text, START + round(minute * MINUTE), bot, to)


def of(*lines: ChatLine) -> Overview:
    return overview(lines, OSLO)


def test_who_wrote_most_comes_first_and_the_bot_is_nobody() -> None:
    seen = of(said("Bo", "a"), said("Ann", "b"), said("Ann", "c"), said("Rollcall", "d", bot=True))
    assert (seen.people, seen.others) == ([("Ann", 2), ("Bo", 1)], 0)
    crowd = of(*(said(f"P{number}", "x") for number in range(11)))
    assert (len(crowd.people), crowd.others) == (8, 3)


def test_a_person_who_changed_their_name_is_one_person() -> None:
    lines = [said("Ann", "a"), said("Ann", "b")._replace(name="Anna")]
    assert of(*lines).people == [("Anna", 2)]


def test_words_count_once_a_message_in_all_their_forms_and_names_and_small_words_do_not() -> None:
    seen = of(
        said("Ann", "the ticket ticket ticket is here, Bo"),
        said("Bo", "which tickets, Ann? NASA ones?"),
        said("Cy", "Bo and Ann have tickets of the NASA for the exhibition, see https://tickets.example/x"),
    )
    assert seen.words == ["tickets", "NASA"]


def test_chinese_phrases_are_found_whole() -> None:
    seen = of(said("明", "周末爬山怎么样"), said("红", "爬山好啊"), said("刚", "我也去爬山"))
    assert seen.words == ["爬山"]


def test_the_liveliest_hours_are_those_of_the_chats_zone_and_none_where_little_was_said() -> None:
    busy = [said("Ann", "x", minute) for minute in (*range(65, 75), 5, 6, 200)]
    hours = of(*busy).hours
    assert [(at.hour, count) for at, count in hours] == [(10, 10), (9, 2), (12, 1)]
    assert all(at.tzinfo is OSLO for at, _ in hours)
    assert of(*busy[:5]).hours == []


def test_links_are_given_once_the_latest_first_without_what_follows_readers() -> None:
    seen = of(
        said("Ann", "see https://a.example/x?utm_source=chat."),
        said("Bo", "(https://b.example/y) and http://www.a.example/x/"),
        said("Cy", "javascript:alert(1) ftp://c.example"),
    )
    assert seen.links == ["https://b.example/y", "http://www.a.example/x/"]


def test_a_question_is_open_unless_somebody_answered_soon_or_replied() -> None:
    lines = [
        said("Ann", "who has the key?", 0),
        said("Bo", "I do", 1),
        said("Cy", "and the map?", 60),
        said("Ann", "did you see that?", 200),
        said("Bo", "not me", 300, to="Ann"),
        said("Bo", "谁来付钱呢", 400),
        said("Cy", "yes", 401, to="Ann"),
        said("Bo", "anyone?", 500),
    ]
    assert of(*lines).questions == [("Bo", "anyone?"), ("Bo", "谁来付钱呢"), ("Cy", "and the map?")]


def test_nobody_answers_themselves_and_a_command_is_no_question() -> None:
    assert of(said("Ann", "why?"), said("Ann", "because", 1)).questions == [("Ann", "why?")]
    assert of(said("Ann", "/search why?")).questions == []


def test_the_bots_answer_is_one() -> None:
    assert of(said("Ann", "what time is it?"), said("Rollcall", "nine", 1, bot=True)).questions == []


@given(
    st.lists(
        st.builds(
            said,
            st.sampled_from(["Ann", "Bo", "明"]),
            st.text(max_size=60),
            st.floats(0, 5000),
            to=st.sampled_from(["", "Ann"]),
            bot=st.booleans(),
        ),
        max_size=30,
    )
)
def test_whatever_was_said_the_overview_stays_short(lines: list[ChatLine]) -> None:
    seen = overview(lines, OSLO)
    assert sum(count for _, count in seen.people) == sum(not line.from_bot for line in lines)
    assert len(seen.words) <= MOST_WORDS
    assert len(seen.links) <= MOST_LINKS
    assert len(seen.questions) <= MOST_QUESTIONS
    assert all(len(text) <= 160 and "\n" not in text for _, text in seen.questions)
