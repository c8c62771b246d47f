"""Tokenized messages: words with position, stem and grammatical role, and number words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from services.clock import Clock, SystemClock
from services.llm.offline.vocabulary import (
    ACTIONS,
    ASSISTANTS,
    DESTRUCTIVE,
    FILLERS,
    FRACTIONS,
    GREETINGS,
    HAN_NUMBERS,
    HAN_SCALES,
    HAN_TIME_UNITS,
    HAN_TIMES,
    INVERTED,
    LONGEST_HAN_WORD,
    NEGATIONS,
    OPERATORS,
    PREPOSITIONS,
    QUESTION_WORDS,
    REQUESTS,
    STATES,
    THANKS,
    TIME_LINKS,
    TIME_WORDS,
    concepts_of,
    han_stem,
)
from services.patterns import lazy_pattern
from services.text_index import Token, is_unspaced, scan, stem
from services.times import Times
from services.times.en.phrases import English
from services.times.reminder_lines import read_line
from services.times.words.lexicon import NUMBERS, SCALES
from services.times.zh.reader import Chinese

_DIGITS = lazy_pattern(r"(?<![\d.])-?\d+(?:,\d{3})*(?:\.\d+)?")
_HAN = lazy_pattern(f"[{''.join(HAN_NUMBERS)}{''.join(HAN_SCALES)}]+")
_NUMBER_WORD = "|".join(sorted((*NUMBERS, *SCALES), key=len, reverse=True))
_SCALE = "|".join(SCALES)
_SPELLED = lazy_pattern(
    rf"\b(?:an?\s+(?=(?:{_SCALE})\b))?(?:{_NUMBER_WORD})(?:(?:(?<=hundred)\s+and\s+|[\s-]+)(?:{_NUMBER_WORD}))*\b",
    re.IGNORECASE,
)
_SCALED = lazy_pattern(rf"(\d+(?:\.\d+)?)\s+({_SCALE})\b", re.IGNORECASE)
_WORD = lazy_pattern(r"[a-z]+")


def is_number(word: str) -> bool:
    """Whether a lower-case word or a Chinese character is a number or part of one."""
    return word[0].isdigit() or word in NUMBERS or word in SCALES or word in HAN_NUMBERS or word in HAN_SCALES


def number_in(text: str) -> float | None:
    """The single number in `text`, in digits or words; English or Chinese; else None, also for several numbers in
    digits."""
    digits = _DIGITS.findall(text)
    if digits:
        return float(digits[0].replace(",", "")) if len(digits) == 1 else None
    han = _HAN.findall(text)
    if han:
        return _from_han(han[0]) if len(han) == 1 else None
    return _from_words(_WORD.findall(text.lower()))


def with_digits(text: str) -> str:
    """Replace English number words in `text` by digits: `two hundred` and `2 million`, too."""
    scaled = _SCALED.sub(lambda found: f"{float(found[1]) * SCALES[found[2].lower()]:.12g}", text)
    return _SPELLED.sub(lambda found: _written(_from_words(_WORD.findall(found[0].lower())), found[0]), scaled)


def _written(number: float | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:.12g}"


def _from_words(words: list[str]) -> float | None:
    total, part, seen = 0.0, 0.0, False
    for word in words:
        if word in NUMBERS:
            part += NUMBERS[word]
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in SCALES:
            total, part = total + (part or 1) * SCALES[word], 0.0
        elif word in FRACTIONS and not seen:
            part += FRACTIONS[word]
        elif not seen or word == "and":
            continue
        else:
            break
        seen = True
    return total + part if seen else None


def _from_han(characters: str) -> float:
    if not any(character in HAN_SCALES for character in characters):
        return float("".join(str(HAN_NUMBERS[character]) for character in characters))
    total, section, digit = 0, 0, 0
    for character in characters:
        if character in HAN_NUMBERS:
            digit = HAN_NUMBERS[character]
            continue
        scale = HAN_SCALES[character]
        if scale >= 10_000:
            total, section = total + (section + digit or 1) * scale, 0
        else:
            section += (digit or 1) * scale
        digit = 0
    return float(total + section + digit)


MOST_WORDS = 80
"""Limit of words per message; the rest is ignored, because requests are shorter."""
MOST_SKIP_COST = 1.3
"""Highest skip cost; of actions and negations, which change the meaning most."""
_SKIP_FILLER, _SKIP_HAN, _SKIP_QUESTION, _SKIP_THANKS = 0.08, 0.6, 0.6, 0.3
_TWO_WORDS = lazy_pattern(
    r"\b(?:(?P<todo>to[ -]do)(?=[ -]?(?:list|item|task|thing))|(?P<timezone>time[ -]zone)(?=s?\b)"
    r"|(?P<am>a(?:\. ?| )m)\b|(?P<pm>p(?:\. ?| )m)\b|(?P<oclock>o[ '’]clock)\b)"
)
_DATE = lazy_pattern(r"[0-9]{1,4}[-/][0-9]{1,2}[-/][0-9]{1,4}|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?")
_BREAKS = frozenset(":;?!\n。")
_CLITICS = {"s": "is", "re": "are", "m": "am", "ve": "have", "ll": "will", "d": "would"}
_NEGATED = {"ca": "can", "wo": "will", "sha": "shall"}
_SPELLINGS = {
    "whats": "what", "wheres": "where", "hows": "how", "whos": "who", "whens": "when", "u": "you", "ur": "your",
    "pls": "please", "plz": "please", "thx": "thanks", "ty": "thanks", "wich": "which", "wat": "what",
    "wether": "weather",
    "forcast": "forecast", "remeber": "remember", "tmrw": "tomorrow", "tmr": "tomorrow", "2moro": "tomorrow",
    "im": "i", "gimme": "give", "wheather": "weather", "remainder": "reminder",
}  # fmt: skip
_STEMS = {"reminder": "reminder", "reminders": "reminder"}
"""Stems that differ from those of the stemmer, which would confuse these words with others."""
_FORMS = ("ing", "ed", "s")
_VERBS = ACTIONS | {"remind", "search", "google", "ask", "summarize", "weather"}
_MEALS = frozenset({"breakfast", "brunch", "lunch", "dinner", "supper", "tea"})
_CALLS = frozenset({"hey", "hi", "hello", "ok", "okay"})
_SHORTHAND = (
    (lazy_pattern(r"\b(?:2moro|2morrow|tmrw|tmr)\b", re.IGNORECASE), "tomorrow"),
    (lazy_pattern(r"\b2nite\b", re.IGNORECASE), "tonight"),
    (lazy_pattern(r"\bany (?:longer|more)\b", re.IGNORECASE), "anymore"),
    (lazy_pattern(r"\bso (?:that )?(?:i|we) (?:do ?n['’]?o?t forget|remember)(?: to)?\b", re.IGNORECASE), "to"),
    (lazy_pattern(r"\bmultiply (\d[\d.]*) (?:by|and|with) (\d[\d.]*)\b", re.IGNORECASE), "calculate \\1*\\2"),
    (lazy_pattern(r"\badd (\d[\d.]*) (?:and|to) (\d[\d.]*)\b(?! )", re.IGNORECASE), "calculate \\1+\\2"),
    (lazy_pattern(r"\bsubtract (\d[\d.]*) from (\d[\d.]*)\b", re.IGNORECASE), "calculate \\2-\\1"),
    (lazy_pattern(r"(?<=day )eve\b", re.IGNORECASE), "evening"),
    (lazy_pattern(r"\b(\d*d\d+)\s+(?:dice\s+)?(?:roll\s+)?plus\s+(\d+)\b", re.IGNORECASE), "roll \\1+\\2"),
    (lazy_pattern(r"\b(\d*d\d+)\s+(?:dice\s+)?(?:roll\s+)?minus\s+(\d+)\b", re.IGNORECASE), "roll \\1-\\2"),
    (
        lazy_pattern(
            r"\b(?:split|divide)\s+[$€£]?([\d.]+)(?:\s\w+)?\s+(?:between|among|by)\s+(\d+)"
            r"(?:\s+(?:people|of us|persons|ways))?\b"
            r"|[$€£]?\b([\d.]+)(?:\s(?:dollars|euros|bucks|pounds))?,?\s+(?:split|divided|shared)"
            r"\s+(?:between|among|by)?\s*(\d+)"
            r"(?:\s+(?:people|of us|persons|ways|friends))?\b",
            re.IGNORECASE,
        ),
        "calculate \\1\\3 / \\2\\4",
    ),
    (
        lazy_pattern(
            r"(?:一共|总共|共|合计)?([\d.]+)(?:块钱|块|元|人民币)?[,，、 ]*(?:我们)?"
            r"([\d一二两三四五六七八九十]+)(?:个)?人?"
            r"(?:平摊|平分|均摊|分摊|来分|AA).*"
        ),
        "\\1/\\2等于多少",
    ),
)
_CHINESE_QUESTION = lazy_pattern(
    r"(?:哪些|哪[个天儿里]|什么|多少|怎么样|怎样|如何|是谁|几[个条项号点]|吗|呢|(?<!有)没有?)[了呢啊呀的]*[?？。!！~]*$"
    r"|^(?:请问)?(?:都?有|还有|还剩)(?:哪|什么|多少|几)|(?:有没有|是不是)"
)
_POLITE_QUESTION = lazy_pattern(r"(?:好吗|可以吗|行吗|好不好|可以不|行不行|能吗)[?？。!！]*$")
_OTHER_PERSON = lazy_pattern(
    r"(?P<name>[A-Z][a-z]+)(?:,\s|\s(?=(?:you|why|did|can|could|will|would|what|when|do|have|are)\b))"
    r"|[小老阿][\u4e00-\u9fff](?:你|[,，])"
)
_REPORT = lazy_pattern(
    r"\b(?:yesterday|ago|last (?:week|weekend|night|month|year|summer|winter|time)|was|were|had|wasn't|weren't)\b"
    r"|^\W*i(?:['’]ve| have| already| just)* (?:set|put)\b|^\W*(?:thanks|thank you|thx|what an?\b(?!.*\?))"
    r"|^(?:谢谢|多谢|感谢)|[提醒投搜选买说问]过(?:你|我|他|她|了|多少)|昨天|昨晚|昨日|前天|去年|上周|上个月|上次",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """Properties of a word that do not depend on its context."""

    stem: str
    concepts: frozenset[str]
    is_filler: bool
    is_action: bool
    is_question: bool
    is_negation: bool
    is_destructive: bool
    is_number: bool
    is_time: bool
    links_time: bool
    is_operator: bool
    form: str
    """Ending of an inflected verb that names an action: `ed`, `ing` or `s`; else empty."""
    skip_cost: float
    """Cost of skipping the word in an alignment."""


@dataclass(frozen=True, slots=True)
class Word:
    """Word, number, sign or character with its position in the text."""

    text: str
    start: int
    end: int
    is_time: bool
    """Probably part of a time, or of a remark about one."""
    is_moment: bool
    """Part of a time that can be a value."""
    continues_moment: bool
    """Not the first word of that time."""
    is_opening: bool
    """Part of the polite introduction before the request."""
    is_after_break: bool
    """Directly follows a sign that ends a clause."""
    size: float
    """Length relative to an English word: Chinese words average two characters."""
    meaning: Meaning


@dataclass(frozen=True, slots=True)
class Utterance:
    """Normalized text with its words and the kind of its request."""

    text: str
    """NFKC normalized; word positions refer to it."""
    words: tuple[Word, ...]
    is_question: bool
    """Asks for information instead of an action."""
    is_negated: bool
    is_destructive: bool
    """Asks to remove or undo something."""
    is_report: bool
    """Tells of the past instead of asking for something."""
    is_statement: bool
    """Begins with a subject and a verb: `google is …`."""
    is_for_another: bool
    """Speaks to a person by name."""

    def between(self, first: int, last: int) -> str:
        """Text from word `first` to word `last`, inclusive."""
        return self.text[self.words[first].start : self.words[last].end]


@lru_cache(maxsize=50_000)
def meaning_of(word: str) -> Meaning:
    """Meaning of a lower-case word or a Chinese character by itself: stem, concepts, roles and skip cost; cached."""
    stemmed = han_stem(word) or _STEMS.get(word) or stem(word)
    filler = word in FILLERS or (not word.isalnum())
    is_han_word = len(word) > 1 and is_unspaced(word)
    action = word in ACTIONS or (is_han_word and not filler and not ACTIONS.isdisjoint(word))
    number = is_number(word)
    if filler:
        skip = _SKIP_FILLER
    elif is_unspaced(word):
        skip = _SKIP_HAN if len(word) == 1 else 1.0
    elif word in THANKS:
        skip = _SKIP_THANKS
    elif word in QUESTION_WORDS:
        skip = _SKIP_QUESTION
    else:
        skip = MOST_SKIP_COST if action or word in NEGATIONS else 1.0
    return Meaning(
        stem=stemmed,
        concepts=frozenset() if filler and word not in PREPOSITIONS else concepts_of(stemmed),
        is_filler=filler,
        is_action=action,
        is_question=word in QUESTION_WORDS,
        is_negation=word in NEGATIONS,
        is_destructive=word in DESTRUCTIVE or stemmed in DESTRUCTIVE,
        is_number=number,
        is_time=word in TIME_WORDS,
        links_time=word in TIME_LINKS or word in HAN_TIME_UNITS,
        is_operator=word in OPERATORS or word in HAN_SCALES,
        form=_form(word),
        skip_cost=skip,
    )


def _form(word: str) -> str:
    for ending in _FORMS:
        base = word.removesuffix(ending)
        if base != word and not _VERBS.isdisjoint((base, f"{base}e", base[:-1])):
            return ending
    return ""


_USUAL_DAYS = 2
_NEXT_DAYS = lazy_pattern(
    r"\b(?:next|coming|following)\s+(\w+)\s+days\b|(?:未来|接下来|往后|之后)的?(\S+?)天", re.IGNORECASE
)


class SpokenTimes:
    """Finds times in messages, and separates them from a text."""

    _SOME_MOMENT = datetime(2026, 1, 5, 12, tzinfo=UTC)
    """The position of a time does not depend on the current time."""

    def __init__(self, clock: Clock | None = None) -> None:
        """The `clock` is only for counting days."""
        self._times = Times((Chinese(), English()))
        self._clock = clock or SystemClock()

    def days_ahead(self, text: str) -> int | None:
        """Number of days from today to the last one that `text` names, both included; None if it names none, or only
        today and tomorrow."""
        counted = _NEXT_DAYS.search(text)
        number = number_in(counted[1] or counted[2]) if counted else None
        if number is not None:
            return int(number)
        now = self._clock.now()
        today = now.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
        named = [found.reading for found in self._times.find_all(text, now)]
        ends = [one.end for one in named if one.repeats is None and one.end > today]
        days = math.ceil((max(ends) - today) / timedelta(days=1)) if ends else 0
        return days if days > _USUAL_DAYS else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each time in `text`."""
        return [(found.start, found.end) for found in self._times.find_all(text, self._SOME_MOMENT)]

    def parted(self, text: str) -> tuple[str, str]:
        """`text` without a time at its beginning or end, and the words for that time; either may be empty."""
        line = read_line(text, self._SOME_MOMENT, self._times)
        who = " and ".join(line.who)
        return (text, "") if who else (line.text, line.when)


def read(text: str, spoken_times: SpokenTimes | None = None) -> Utterance:
    """Parse `text` to at most 80 words with their roles; leading greetings are dropped. No words for an empty text.
    Times are found by `spoken_times`, or else by time words."""
    normal = _rewritten(unicodedata.normalize("NFKC", text).strip())
    tokens = list(_tokens(normal))[:MOST_WORDS]
    while len(tokens) > 1 and tokens[0].text in GREETINGS:
        if tokens.pop(0).text in _CALLS and tokens[0].text in ASSISTANTS:
            tokens.pop(0)
    times = _times(normal, tokens)
    moments = (
        _moments(normal, tokens, spoken_times)
        if spoken_times
        else [is_time or meaning_of(token.text).is_number for is_time, token in zip(times, tokens, strict=True)]
    )
    opening = _opening(tokens)
    words = tuple(
        Word(
            text=token.text,
            start=token.start,
            end=token.end,
            is_time=times[place] or (spoken_times is not None and moments[place] and token.text not in _MEALS),
            is_moment=moments[place],
            continues_moment=place > 0 and moments[place] and moments[place - 1],
            is_opening=place < opening,
            is_after_break=place > 0 and not _BREAKS.isdisjoint(normal[tokens[place - 1].end : token.start]),
            size=min(1.0, 0.5 * len(token.text)) if is_unspaced(token.text) else 1.0,
            meaning=meaning_of(token.text),
        )
        for place, token in enumerate(tokens)
    )
    negated = any(word.meaning.is_negation for word in words)
    question = _is_question(normal, tokens)
    destructive = not question and any(word.meaning.is_destructive for word in words)
    report = is_report(normal)
    return Utterance(
        normal, words, question, negated, destructive, report, _is_statement(tokens), _is_for_another(normal)
    )


def is_report(text: str) -> bool:
    """Whether `text` tells of the past, or is thanks or an exclamation."""
    return _REPORT.search(text) is not None


def _is_statement(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens]
    subject = words[1:] if words[:1] in (["the"], ["my"], ["this"], ["our"]) else words
    is_asking = any(word in QUESTION_WORDS for word in words) or words[:1] == ["it"]
    return len(subject) > 2 and subject[0] not in INVERTED and subject[1] in STATES and not is_asking


def _is_for_another(text: str) -> bool:
    found = _OTHER_PERSON.match(text)
    return found is not None and (found["name"] is None or not _is_known(found["name"].lower()))


def _is_known(word: str) -> bool:
    """Whether the word has a role, so that it is not a name."""
    meaning = meaning_of(word)
    is_role = meaning.is_filler or meaning.is_action or meaning.is_question or meaning.is_negation or meaning.is_time
    return is_role or bool(meaning.concepts) or word in REQUESTS | GREETINGS | THANKS | INVERTED


_CLAUSES = lazy_pattern(
    r"[,;.!?]+\s+|[，；。！？\n]+\s*|\s+[-–—]\s+"
    r"|\s+(?=(?:to (?:see|decide) (?:who|what|which|if|whether)|because|cause|since|so (?:that|i|we))\b)"
    r"|(?=看看?谁|[来]?决定谁)",
    re.IGNORECASE,
)
_MOST_CLAUSES = 4


def clauses(text: str) -> list[str]:
    """The clauses of `text` if it has two to four; else empty."""
    parts = [part.strip() for part in _CLAUSES.split(text) if part.strip()]
    return parts if 1 < len(parts) <= _MOST_CLAUSES else []


def _tokens(text: str) -> Iterator[Token]:
    """Tokens, with contractions split, and spelling variants such as `to do list` and Chinese words joined."""
    joined = _TWO_WORDS.sub(lambda found: str(found.lastgroup).ljust(len(found[0])), text.lower())
    for token in _with_han_words(scan(joined if len(joined) == len(text) else text)):
        if "'" in token.text or "’" in token.text:
            yield from _contraction(token)
        elif token.text in _SPELLINGS:
            yield token._replace(text=_SPELLINGS[token.text])
        else:
            yield token


def _with_han_words(tokens: list[Token]) -> Iterator[Token]:
    """The tokens, with the characters of each known Chinese word joined; the longest word wins."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        size = next((size for size in range(LONGEST_HAN_WORD, 1, -1) if _is_han_word(tokens, place, size)), 1)
        if size > 1:
            last = tokens[place + size - 1]
            token = Token("".join(one.text for one in tokens[place : place + size]), token.start, last.end)
        yield token
        place += size


def _is_han_word(tokens: list[Token], place: int, size: int) -> bool:
    group = tokens[place : place + size]
    return (
        len(group) == size
        and all(one.is_han for one in group)
        and group[-1].end - group[0].start == size
        and han_stem("".join(one.text for one in group)) is not None
    )


def _contraction(token: Token) -> Iterator[Token]:
    base, _, tail = token.text.replace("’", "'").partition("'")
    cut = token.start + len(base)
    if (base, tail) == ("let", "s"):
        yield Token("let", token.start, cut)
        yield Token("us", cut, token.end)
    elif tail == "t" and base.endswith("n"):
        yield Token(_NEGATED.get(base[:-1], base[:-1]), token.start, token.end)
        yield Token("not", token.start, token.end)
    elif tail in _CLITICS:
        yield Token(base, token.start, cut)
        yield Token(_CLITICS[tail], cut, token.end)
    else:
        yield token._replace(text=base + tail)


def _opening(tokens: list[Token]) -> int:
    """Number of polite words before the request itself; 0 if all words are such."""
    for place, token in enumerate(tokens):
        if token.text not in REQUESTS:
            return place
    return 0


def _is_question(text: str, tokens: list[Token]) -> bool:
    words = [token.text for token in tokens[:12]]
    if len(tokens) > 1 and (_CHINESE_QUESTION.search(text) or any(token.text in "吗呢" for token in tokens)):
        return not _POLITE_QUESTION.search(text)
    if not words:
        return False
    first = words[0]
    if first in ("can", "could", "will", "would", "may", "might") and words[1:2] in (["you"], ["we"]):
        words = words[2:]
    elif first in INVERTED and words[1:2] != ["not"]:
        return True
    body = next((word for word in words if word not in REQUESTS and word not in FILLERS), "")
    return body in QUESTION_WORDS


def _times(text: str, tokens: list[Token]) -> list[bool]:
    """Whether each token is part of a time: time words, and words that link them to each other or to numbers."""
    sure = [meaning_of(token.text).is_time or _DATE.fullmatch(token.text) is not None for token in tokens]
    for place, token in enumerate(tokens):
        if token.is_han:
            _mark_han_time(text, tokens, place, sure)
    marked = list(sure)
    for place in range(len(tokens)):
        if sure[place]:
            _spread(tokens, marked, place)
    return marked


def _moments(text: str, tokens: list[Token], spoken_times: SpokenTimes) -> list[bool]:
    """Whether each token is part of a time that `spoken_times` finds. A name such as Tom is not one."""
    spans = [span for span in spoken_times.spans(text) if not _is_name(text[span[0] : span[1]])]
    return [any(start < token.end and token.start < end for start, end in spans) for token in tokens]


def _rewritten(text: str) -> str:
    """`text` with shorthand written out."""
    for pattern, written in _SHORTHAND:
        text = pattern.sub(written, text)
    return text


def _is_name(phrase: str) -> bool:
    return phrase.istitle() and phrase.isalpha() and phrase.isascii() and phrase.lower() not in TIME_WORDS


def _spread(tokens: list[Token], marked: list[bool], place: int) -> None:
    """Mark numbers and links directly before a time word, and numbers directly after it."""
    for step in (-1, 1):
        at = place + step
        while 0 <= at < len(tokens) and not marked[at]:
            meaning = meaning_of(tokens[at].text)
            links = meaning.links_time and (step < 0 or _is_number_at(tokens, at + 1))
            if not (meaning.is_number or links):
                break
            marked[at] = True
            at += step


def _is_number_at(tokens: list[Token], place: int) -> bool:
    return place < len(tokens) and is_number(tokens[place].text)


def _mark_han_time(text: str, tokens: list[Token], place: int, sure: list[bool]) -> None:
    start = tokens[place].start
    for length in (4, 3, 2):
        if text[start : start + length] in HAN_TIMES:
            at = place
            while at < len(tokens) and tokens[at].start < start + length:
                sure[at] = True
                at += 1
            return
    before = tokens[place - 1].text if place else ""
    follows_number = before[:1].isdigit() or before in HAN_NUMBERS or before in HAN_SCALES or before == "半"
    if tokens[place].text in HAN_TIME_UNITS and follows_number:
        sure[place] = True
