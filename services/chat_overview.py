"""What can be said about a conversation without understanding it: who wrote how much, about what, when, and which
questions nobody took up."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from services.chat_past import ChatLine
from services.html_text import one_line
from services.text_index import STOP_CHARACTERS, STOP_WORDS, is_unspaced, listed, stem
from services.web_links import clean_link, link_key

MOST_PEOPLE, MOST_WORDS, MOST_HOURS, MOST_LINKS, MOST_QUESTIONS = 8, 8, 3, 5, 5
_ANSWERED_WITHIN_MS = 15 * 60_000
"""What others write so soon after a question is taken for an answer, unless it is one to somebody else."""
_QUESTION_CHARS = 160
_FEWEST_FOR_HOURS = 10
_LINK = re.compile(r"https?://[^\s<>\"'，。）】」]+")
_NOISE = re.compile(r"@\S+|`[^`]*`")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_HAN_RUN = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]{2,}")
_QUESTION = re.compile(r"[?？]\s*\Z|[吗呢嘛么]\s*[。.!！~～]?\s*\Z")
_FILLERS = frozenset(
    listed("""
    yes yeah yep nope okay lol haha hahaha really think thing things going gonna good well maybe sure right today
    tomorrow yesterday time still even actually already back make made come came got much now don't it's i'm that's
    can't didn't i'll we'll i've you're isn't doesn't let's what's there's
    """)
)


@dataclass(frozen=True, slots=True)
class Overview:
    """The most of each first, except links and questions: the latest first."""

    people: Sequence[tuple[str, int]]
    """Names, and how many messages each wrote."""
    others: int
    """How many more people wrote something."""
    words: Sequence[str]
    """Words that came up in more than one message."""
    hours: Sequence[tuple[datetime, int]]
    """The beginnings of the liveliest hours, in the chat's zone, and how many messages each had."""
    links: Sequence[str]
    questions: Sequence[tuple[str, str]]
    """Who asked, and what."""


def overview(lines: Sequence[ChatLine], zone: ZoneInfo) -> Overview:
    """What `lines`, oldest first, tell; only what people said counts."""
    said = [line for line in lines if not line.from_bot]
    counts = Counter(line.sender for line in said)
    # Called by the name that somebody has now.
    names = {line.sender: line.name for line in said}
    people = [(names[sender], count) for sender, count in counts.most_common(MOST_PEOPLE)]
    texts = [line.text for line in said if not line.text.startswith("/")]
    return Overview(
        people=people,
        others=len(counts) - len(people),
        words=_words(texts, names.values()),
        hours=_hours(said, zone),
        links=_links(said),
        questions=_open_questions(lines),
    )


def _words(texts: Sequence[str], names: Iterable[str]) -> Sequence[str]:
    """What came up in most messages. Of a phrase its parts are left out."""
    left_out = {stem(word.casefold()) for name in names for word in _WORD.findall(name)}
    spelled: dict[str, Counter[str]] = defaultdict(Counter)
    seen: Counter[str] = Counter()
    for text in texts:
        plain = _NOISE.sub(" ", _LINK.sub(" ", text))
        found = {(key, word) for key, word in _keys(plain) if key not in left_out}
        for key, word in sorted(found):
            spelled[key][word] += 1
        seen.update({key for key, _ in found})
    kept: list[str] = []
    # A longer phrase first, so that its parts meet it; words in the order of the alphabet where nothing else tells.
    for key, count in sorted(seen.items(), key=lambda one: (-one[1], -len(one[0]), one[0])):
        if count < 2 or len(kept) == MOST_WORDS:
            break
        if not any(is_unspaced(key) and (key in other or other in key) for other in kept):
            kept.append(key)
    return [spelled[key].most_common(1)[0][0] for key in kept]


def _keys(text: str) -> Iterator[tuple[str, str]]:
    for word in _WORD.findall(text):
        lowered = word.casefold().replace("’", "'")
        if is_unspaced(word) or len(word) < 3 or lowered in STOP_WORDS or lowered in _FILLERS:
            continue
        yield stem(lowered), word if word.isupper() else lowered
    for run in _HAN_RUN.findall(text):
        for size in (4, 3, 2):
            for at in range(len(run) - size + 1):
                phrase = run[at : at + size]
                if STOP_CHARACTERS.isdisjoint(phrase):
                    yield phrase, phrase


def _hours(said: Sequence[ChatLine], zone: ZoneInfo) -> Sequence[tuple[datetime, int]]:
    if len(said) < _FEWEST_FOR_HOURS:
        return []
    hours = Counter(
        datetime.fromtimestamp(line.at_ms / 1000, zone).replace(minute=0, second=0, microsecond=0) for line in said
    )
    return hours.most_common(MOST_HOURS)


def _links(said: Sequence[ChatLine]) -> Sequence[str]:
    links: dict[str, str] = {}
    for line in reversed(said):
        for found in _LINK.findall(line.text):
            link = clean_link(found.rstrip(".,;:!?)]}"))
            if link:
                links.setdefault(link_key(link), link)
    return list(links.values())[:MOST_LINKS]


def _open_questions(lines: Sequence[ChatLine]) -> Sequence[tuple[str, str]]:
    found = [
        (line.name, one_line(line.text, _QUESTION_CHARS))
        for place, line in enumerate(lines)
        if not line.from_bot
        and not line.text.startswith("/")
        and _QUESTION.search(line.text)
        and not any(_answers(later, line) for later in lines[place + 1 :])
    ]
    return found[::-1][:MOST_QUESTIONS]


def _answers(later: ChatLine, question: ChatLine) -> bool:
    if later.sender == question.sender:
        return False
    if later.reply_to_name:
        return later.reply_to_name == question.name
    return later.at_ms - question.at_ms <= _ANSWERED_WITHIN_MS
