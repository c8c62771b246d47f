"""A chat's history for its members: excerpts, search, an overview, and deletion."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from services.clock import Clock
from services.llm.encoding import estimated_tokens
from services.patterns import lazy_pattern, one_line
from services.refs import ChatRef, MemberRef
from services.store.chats import history, summaries
from services.store.ids import Ids
from services.store.port import Row, Store
from services.store.turns import audit
from services.text_index import STOP_CHARACTERS, STOP_WORDS, is_unspaced, listed, stem
from services.times import Kind, Times
from services.web.addresses import clean_link, link_key


@dataclass(frozen=True, slots=True)
class Period:
    """A period of the history by times, number of messages or both; unlimited by default."""

    since_ms: int | None = None
    """Milliseconds since 1970 UTC, inclusive."""
    until_ms: int | None = None
    """Exclusive; None: until now."""
    count: int | None = None
    """Maximum number of messages, the latest."""


_TODAY = frozenset({"today", "since today", "今天", "今日"})
_YESTERDAY = frozenset({"yesterday", "昨天", "昨日"})
_SINCE_YESTERDAY = frozenset({"since yesterday", "从昨天", "昨天以来", "从昨天开始"})
_THIS_WEEK = frozenset({"this week", "the week", "本周", "这周", "这一周", "本星期"})
_MINUTES = {
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "分钟"), 1),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时", "个小时"), 60),
    **dict.fromkeys(("d", "day", "days", "天"), 24 * 60),
}
_MESSAGES = frozenset({"", "message", "messages", "line", "lines", "条", "条消息"})
_LAST = lazy_pattern(r"(?:the )?(?:(?:last|past|latest|最近|过去|最后) ?)?(\d{1,4})? ?([a-z\u4e00-\u9fff]*)")
_LONGEST_MINUTES = 400 * 24 * 60


def read_period(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """Parse a period at the time `now` for members in `zone`: a start date or time in ISO 8601, `today`, `yesterday`,
    `since yesterday`, `this week`, `last 2 hours`, `last 100`, or the same in Chinese. None for other texts."""
    words = " ".join(text.casefold().split())
    today = now.astimezone(zone).date()
    if words in _TODAY:
        return Period(_midnight(today, zone))
    if words in _YESTERDAY:
        return Period(_midnight(today - timedelta(days=1), zone), _midnight(today, zone))
    if words in _SINCE_YESTERDAY:
        return Period(_midnight(today - timedelta(days=1), zone))
    if words in _THIS_WEEK:
        return Period(_midnight(today - timedelta(days=today.weekday()), zone))
    return _last(words, now) or _iso(text.strip().removeprefix("since "), zone)


_SINCE = lazy_pattern(r"since (.+)|(?:从|自)?(.+?)(?:以来|开始|起)", re.IGNORECASE)
_DAYS_BACK = (0, 1, 7, 31, 366)
"""A time in words that lies ahead, such as Monday, is read again as on these earlier days, until it has passed."""
_MOMENT = timedelta(hours=1)


def spoken_period(text: str, now: datetime, zone: ZoneInfo, times: Times) -> Period | None:
    """Parse a period like `read_period`, or a past time in the words that `times` knows: `yesterday evening`, `from 3
    to 5 May`, `since Monday`. A single time means the hour from then on. None for other texts."""
    found = read_period(text, now, zone)
    if found is not None or not text.strip():
        return found
    open_ended = _SINCE.fullmatch(text.strip())
    words, today = (open_ended[1] or open_ended[2]) if open_ended else text, now.astimezone(zone)
    for days in _DAYS_BACK:
        reading = times.read(words, today - timedelta(days=days))
        if reading is None or reading.repeats is not None:
            return None
        if reading.kind is Kind.DURATION:
            return since(now, (reading.end - reading.start).total_seconds() / 60)
        start = reading.start.replace(tzinfo=reading.zone or zone)
        if start <= now:
            end = max(reading.end.replace(tzinfo=start.tzinfo), start + _MOMENT)
            until_ms = None if open_ended else round(end.timestamp() * 1000)
            return Period(round(start.timestamp() * 1000), until_ms)
    return None


def since(now: datetime, minutes: float) -> Period:
    """Period of the last `minutes` (at most 400 days) before `now`, without an end."""
    return Period(round((now - timedelta(minutes=min(minutes, _LONGEST_MINUTES))).timestamp() * 1000))


def _last(words: str, now: datetime) -> Period | None:
    found = _LAST.fullmatch(words)
    if found is None or not words:
        return None
    number, unit = found[1], found[2]
    if unit in _MINUTES:
        return since(now, int(number or 1) * _MINUTES[unit])
    if unit in _MESSAGES and number and int(number):
        return Period(count=int(number))
    return None


def _iso(text: str, zone: ZoneInfo) -> Period | None:
    try:
        at = datetime.fromisoformat(text)
        return Period(round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


def _midnight(day: date, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, time(), zone).timestamp() * 1000)


_FOREVER = 2**62
_TOKENS_OF_A_LINE = 12
"""Tokens of the date, the time and the name before each line."""


class ChatLine(NamedTuple):
    """A message that was not deleted, in its present form."""

    sender: str
    name: str
    text: str
    at_ms: int
    from_bot: bool
    reply_to_name: str


class Excerpt(NamedTuple):
    """A part of the history, as returned by MessageHistory.read."""

    lines: Sequence[ChatLine]
    """Oldest first."""
    is_cut: bool
    """There are earlier messages in the period."""


def within_tokens(lines: Sequence[ChatLine], tokens: int) -> Sequence[ChatLine]:
    """The latest lines within `tokens` as a model is shown them, at least one."""
    first = len(lines)
    while first > 0:
        tokens -= estimated_tokens(lines[first - 1].text) + _TOKENS_OF_A_LINE
        if tokens < 0 and first < len(lines):
            break
        first -= 1
    return lines[first:]


class Absence(NamedTuple):
    """Messages that a member may have missed."""

    since_ms: int | None
    """Time of the member's last message; None if it is unknown."""
    excerpt: Excerpt
    """Messages of the other members since then."""
    names: frozenset[str]
    """Names under which the member wrote."""


_SEARCHED = 5000
_GREETING_MS = 10 * 60_000
"""Own messages of this time that nobody followed up do not end an absence: a greeting before the question."""


class MessageHistory:
    """History of each chat; every call is limited to one chat."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        *,
        most_lines: int,
        is_left_out: Callable[[MemberRef], Awaitable[bool]] | None = None,
    ) -> None:
        """`is_left_out`: whether the messages of a member are left out of all excerpts; None: of no member."""
        self._is_left_out = is_left_out
        self._store = store
        self._clock = clock
        self._ids = ids
        self.most_lines = most_lines
        """Maximum number of lines; of a longer period the latest are returned."""

    async def read(self, chat: ChatRef, period: Period, before_native_id: str) -> Excerpt:
        """Messages of `chat` in `period`, before the message with that id (if it is stored), without commands, deleted
        and blank ones. At most `most_lines` or the period's `count`, the latest."""
        count = self.most_lines if period.count is None else min(period.count, self.most_lines)
        rows = await self._rows(chat, period, before_native_id, count + 1)
        # For `last 100` it is obvious that there are more.
        is_cut = len(rows) > count and count == self.most_lines and period != Period(count=count)
        return Excerpt(list(reversed(await self._lines(rows[:count]))), is_cut)

    async def missed_by(
        self, chat: ChatRef, member: MemberRef, at: datetime, before_native_id: str, period: Period | None = None
    ) -> Absence:
        """Messages since the last message of `member` before the request, which was sent at `at`, or those in `period`;
        the latest ones if the member has none among the last 5000."""
        rows = await self._rows(chat, period or Period(), before_native_id)
        names = frozenset(row["sender_name"] for row in rows if row["sender"] == member.key)
        since_ms, greeted_ms, others = None, round(at.timestamp() * 1000) - _GREETING_MS, list[Row]()
        for row in rows:
            if row["sender"] != member.key:
                others += [] if row["from_bot"] else [row]
            elif period is None and (others or row["at_ms"] < greeted_ms):
                since_ms = row["at_ms"]
                break
        lines = await self._lines(others[: self.most_lines])
        return Absence(since_ms, Excerpt(lines[::-1], len(others) > self.most_lines), names)

    async def search(
        self, chat: ChatRef, words: str, period: Period, count: int, before_native_id: str, sender: MemberRef | None
    ) -> Excerpt:
        """The last `count` messages of members, or of `sender`, in `period` with all `words` in any order, also within
        longer words, ignoring case. Searches the last 5000 messages of the period."""
        wanted = words.casefold().split()
        rows = [
            row
            for row in await self._rows(chat, period, before_native_id)
            if not row["from_bot"]
            and (sender is None or row["sender"] == sender.key)
            and all(word in row["text"].casefold() for word in wanted)
        ]
        lines = await self._lines(rows)
        return Excerpt(lines[:count][::-1], len(lines) > count)

    async def _rows(
        self, chat: ChatRef, period: Period, before_native_id: str, count: int = _SEARCHED
    ) -> Sequence[Row]:
        since_ms, until_ms = period.since_ms or 0, _FOREVER if period.until_ms is None else period.until_ms
        return await self._store.read(history.period(chat.key, since_ms, until_ms, before_native_id, count))

    async def _lines(self, rows: Sequence[Row]) -> list[ChatLine]:
        """`rows` without blank ones and those of members that are left out, in their order."""
        left_out: set[str] = set()
        if self._is_left_out is not None:
            senders = {row["sender"] for row in rows if not row["from_bot"]}
            left_out = {sender for sender in senders if await self._is_left_out(MemberRef.parse(sender))}
        return [
            ChatLine(
                row["sender"],
                row["sender_name"],
                row["text"],
                row["at_ms"],
                bool(row["from_bot"]),
                row["reply_to_name"],
            )
            for row in rows
            if row["text"].strip() and (row["from_bot"] or row["sender"] not in left_out)
        ]

    async def forget(self, chat: ChatRef, until: datetime, by: MemberRef) -> int:
        """Delete the messages of `chat` up to `until`, inclusive, and all its summaries. Adds an audit row for `by`
        unless there were none. Returns the number of deleted messages."""
        until_ms = round(until.timestamp() * 1000)
        count = int((await self._store.read(history.count_until(chat.key, until_ms)))[0]["count"])
        writes = [history.forget_until(chat.key, until_ms), summaries.forget_chat(chat.key)]
        if count:
            writes.append(
                audit.note(
                    id=self._ids.next(),
                    at_ms=self._clock.now_ms(),
                    actor=by.key,
                    chat=chat.key,
                    action="history.forget",
                    detail=f"{count} messages",
                )
            )
        await self._store.commit(writes)
        return count


MOST_PEOPLE, MOST_WORDS, MOST_HOURS, MOST_LINKS, MOST_QUESTIONS = 8, 8, 3, 5, 5
_ANSWERED_WITHIN_MS = 15 * 60_000
"""Messages from others within this time count as answers to a question, unless they reply to somebody else."""
_QUESTION_CHARS = 160
_FEWEST_FOR_HOURS = 10
_LINK = re.compile(r"https?://[^\s<>\"'，。）】」]+")
_NOISE = re.compile(r"@\S+|`[^`]*`")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_HAN_RUN = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]{2,}")
_QUESTION = re.compile(r"[?？]\s*\Z|[吗呢嘛么]\s*[。.!！~～]?\s*\Z")
_DECISION = re.compile(
    r"\b(?:agreed|decided|settled|it[’']?s (?:a deal|a date|final)|we[’']?(?:ll| will)? go with"
    r"|let[’']?s (?!see\b|say\b|talk\b|wait\b))|定了|说定|敲定|决定|就这样|就这么|说好了|一言为定|那就",
    re.IGNORECASE,
)
_FILLERS = frozenset(
    listed("""
    yes yeah yep nope okay lol haha hahaha really think thing things going gonna good well maybe sure right today
    tomorrow yesterday time still even actually already back make made come came got much now don't it's i'm that's
    can't didn't i'll we'll i've you're isn't doesn't let's what's there's
    """)
)


@dataclass(frozen=True, slots=True)
class Overview:
    """Statistics of messages, highest counts first; links and questions latest first."""

    people: Sequence[tuple[str, int]]
    """Names, and their numbers of messages."""
    others: int
    """Number of other authors."""
    words: Sequence[str]
    """Words used in more than one message."""
    hours: Sequence[tuple[datetime, int]]
    """Starts of the busiest hours, in the chat's zone, with their numbers of messages."""
    links: Sequence[str]
    questions: Sequence[tuple[str, str]]
    """Author and text."""


def overview(lines: Sequence[ChatLine], zone: ZoneInfo) -> Overview:
    """Statistics of `lines`, oldest first; the bot's messages are not counted. Hours are in `zone`, and only for at
    least 10 messages."""
    member_lines = [line for line in lines if not line.from_bot]
    counts = Counter(line.sender for line in member_lines)
    # The latest name of each member.
    names = {line.sender: line.name for line in member_lines}
    people = [(names[sender], count) for sender, count in counts.most_common(MOST_PEOPLE)]
    texts = [line.text for line in member_lines if not line.text.startswith("/")]
    return Overview(
        people=people,
        others=len(counts) - len(people),
        words=_words(texts, names.values()),
        hours=_hours(member_lines, zone),
        links=_links(member_lines),
        questions=_open_questions(lines),
    )


def lines_for(lines: Sequence[ChatLine], names: Collection[str]) -> Sequence[ChatLine]:
    """The messages of members that mention one of `names`, begin with it as an address, or reply to that member."""
    spelled = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    calls = re.compile(rf"[@＠](?:{spelled})(?![^\W_])|\A(?:{spelled})[,:，：]", re.IGNORECASE)
    return [
        line
        for line in lines
        if names and not line.from_bot and (line.reply_to_name in names or calls.search(line.text))
    ]


def decisions(lines: Sequence[ChatLine]) -> Sequence[ChatLine]:
    """The messages of members with words of a decision, such as "agreed", that are no questions."""
    return [
        line for line in lines if not line.from_bot and _DECISION.search(line.text) and not _QUESTION.search(line.text)
    ]


def _words(texts: Sequence[str], names: Iterable[str]) -> Sequence[str]:
    """Up to eight words in most messages, in at least two, without names and stop words, most frequent first. Parts of
    a listed phrase are left out."""
    left_out = {stem(word.casefold()) for name in names for word in _WORD.findall(name)}
    spelled: dict[str, Counter[str]] = defaultdict(Counter)
    seen: Counter[str] = Counter()
    for text in texts:
        plain = _NOISE.sub(" ", _LINK.sub(" ", text))
        found = {(key, word) for key, word in _keys(plain) if key not in left_out}
        for key, word in sorted(found):
            spelled[key][word] += 1
        seen.update({key for key, _ in found})
    words: list[str] = []
    # Longer phrases first, so that their parts are recognised; ties in alphabetical order.
    for key, count in sorted(seen.items(), key=lambda one: (-one[1], -len(one[0]), one[0])):
        if count < 2 or len(words) == MOST_WORDS:
            break
        if not any(is_unspaced(key) and (key in other or other in key) for other in words):
            words.append(key)
    return [spelled[key].most_common(1)[0][0] for key in words]


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


def _hours(lines: Sequence[ChatLine], zone: ZoneInfo) -> Sequence[tuple[datetime, int]]:
    if len(lines) < _FEWEST_FOR_HOURS:
        return []
    hours = Counter(
        datetime.fromtimestamp(line.at_ms / 1000, zone).replace(minute=0, second=0, microsecond=0) for line in lines
    )
    return hours.most_common(MOST_HOURS)


def _links(lines: Sequence[ChatLine]) -> Sequence[str]:
    links: dict[str, str] = {}
    for line in reversed(lines):
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
