"""Tokenizer, and a full-text index that ranks documents by the terms shared with a query. Latin words are stemmed;
Chinese, Japanese and Korean text is indexed by characters and bigrams."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from services.patterns import lazy_pattern

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED = f"{_HAN}\u3040-\u30ff\uac00-\ud7af"
_RUN = lazy_pattern(rf"[{_UNSPACED}]+|[a-z]+|[0-9]+|[^\W\d_]+")
_TOKEN = lazy_pattern(
    rf"[{_UNSPACED}]|[0-9]+(?:st|nd|rd|th)\b|[0-9]{{1,4}}[-/][0-9]{{1,2}}[-/][0-9]{{1,4}}|[0-9]+(?:[.,:][0-9]+)*|[^\W\d_{_UNSPACED}]+(?:['’][^\W\d_{_UNSPACED}]+)?|[-+*/×÷^=%()$€£¥°]"
)
_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_POSSESSIVE = lazy_pattern(r"['’]s\b")
_WISHES = lazy_pattern(
    r"[.!?;\n。！？；，]+\s*|然后|另外|此外|并且|,\s+(?=(?:and|then|also|please|can|could|i|what|how|find|get|calculate|but|so)\b)"
    r"|\b(?:and\s+(?:then|also)|additionally|finally|after\s+that)\b",
    re.IGNORECASE,
)
_MOST_WISHES = 24
_COMMON, _COMMON_SHARE = 40, 0.1
"""Terms in more documents than this number and this share are dropped: they distinguish too little for their cost."""


def listed(words: str) -> tuple[str, ...]:
    """The words of a list separated by whitespace."""
    return tuple(words.split())


NUMBERS = {
    word: value
    for value, word in enumerate(
        listed("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
    """)
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
"""English number words with their values."""
STOP_WORDS = frozenset(
    listed("""
    a an the this that these those some any each every all both either other another such same
    i me my mine myself we us our ours you your yours he him his she her hers it its they them their theirs one
    am is are was were be been being do does did doing done have has had having
    will would shall should can could may might must
    not no nor and or but if then than so as because while
    at by for from in into of off on onto out over to up with within without about above across after against along
    among around before behind below between during since through toward towards under until upon via
    what which who whom whose when where why how there here
    want wants wanted need needs needed like looking look help tell give show let know please get got
    use using used provide provides specific specified given also just only very more most much many too
    thank thanks hello hi hey ok okay
    """)
)
STOP_CHARACTERS = frozenset("的了我你他她它们是在有和与就都也很吗呢吧啊呀么请帮给把被一个这那要想能可以会为从到对上下")


class Token(NamedTuple):
    """A word, number, sign, or character of a script without spaces, in lower case."""

    text: str
    start: int
    end: int

    @property
    def is_han(self) -> bool:
        """Whether it is a character of a script without spaces between words."""
        return is_unspaced(self.text)


def is_unspaced(text: str) -> bool:
    """Whether `text` begins with a Chinese character, kana or hangul; False for an empty text."""
    return bool(text) and (
        "\u3040" <= text[0] <= "\u9fff" or "\uac00" <= text[0] <= "\ud7af" or "\uf900" <= text[0] <= "\ufaff"
    )


def scan(text: str) -> list[Token]:
    """The tokens of `text` in order, with their positions; without punctuation."""
    lowered = text.lower()
    if len(lowered) != len(text):  # some capitals have two lower-case letters, which would shift the positions
        lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    return [Token(found[0], found.start(), found.end()) for found in _TOKEN.finditer(lowered)]


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    # Imported here: it loads the stemmers of forty languages, and many commands need none.
    import snowballstemmer

    stem_word: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
    return stem_word


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a lower-case English word; other words are returned unchanged."""
    return _stemmer()(word)


@lru_cache(maxsize=50_000)
def _terms_of_word(word: str) -> tuple[str, ...]:
    return () if len(word) == 1 or word in STOP_WORDS else (stem(word),)


def terms(text: str) -> list[str]:
    """Index terms of `text`, in order: stems without stop words, numbers of up to four digits, and for scripts without
    spaces characters and bigrams. `camelCase` counts as two words."""
    found: list[str] = []
    for run in _RUN.findall(_POSSESSIVE.sub("", _CAMEL.sub(" ", text)).lower()):
        if "a" <= run[0] <= "z":
            found += _terms_of_word(run)
        elif is_unspaced(run):
            found += [character for character in run if character not in STOP_CHARACTERS]
            found += [run[at : at + 2] for at in range(len(run) - 1)]
        elif run.isdigit():
            if len(run) <= 4:
                found.append(run)
        elif len(run) > 1:
            found.append(stem(run))
    return found


@dataclass(frozen=True, slots=True)
class Field:
    """Weight of a field's terms, and the share of its length in the normalisation (0 to 1)."""

    weight: float
    length_share: float


def wishes(text: str) -> list[list[str]]:
    """The terms of `text`, separately for each request that it may contain. Parts with fewer than two different terms
    are joined to their neighbours. Empty if `text` has no terms."""
    texts = _WISHES.split(text)
    if len(texts) == 1:
        found = terms(text)
        return [found] if found else []
    parts: list[list[str]] = []
    short: list[str] = []
    for part in texts:
        found = short + terms(part) if part else short
        if len(set(found)) < 2 or len(parts) >= _MOST_WISHES:
            short = found
        else:
            parts.append(found)
            short = []
    if short:
        parts = [*parts[:-1], [*parts[-1], *short]] if parts else [short]
    return parts


Postings = Sequence[tuple[int, float]]
"""Numbers of documents, each with the weight of a term."""


class TextIndex:
    """Documents with named fields, scored by the weighted terms shared with a query (BM25F). Immutable, because a new
    document changes the weight of every term."""

    def __init__(
        self,
        documents: Sequence[Mapping[str, Sequence[str]]],
        fields: Mapping[str, Field],
        *,
        covered: str = "",
        saturation: float = 0.6,
    ) -> None:
        """Each document maps field names to terms. `covered`: the field that `coverages` refers to."""
        self._postings: dict[str, Postings] = {}
        self._coverages: dict[str, Postings] = {}
        frequencies = _frequencies(documents, fields)
        count = len(documents)
        most = max(_COMMON, count * _COMMON_SHARE)
        rarities: dict[str, float] = {}
        for term, of_term in frequencies.items():
            rarities[term] = rarity = math.log(1 + (count - len(of_term) + 0.5) / (len(of_term) + 0.5))
            if len(of_term) <= most:
                self._postings[term] = [
                    (number, rarity * frequency * (saturation + 1) / (saturation + frequency))
                    for number, frequency in of_term.items()
                ]
        if covered:
            self._coverages = _coverages([document.get(covered, ()) for document in documents], rarities)

    def rarest(self, query: Iterable[str], most: int) -> set[str]:
        """At most `most` terms of `query`, those in the fewest documents. Unknown and very common terms are left
        out."""
        known = {term for term in query if term in self._postings}
        if len(known) <= most:
            return known
        return set(sorted(known, key=lambda term: (len(self._postings[term]), term))[:most])

    def scores(self, query: Mapping[str, float]) -> dict[int, float]:
        """Scores by number of each document with any of the terms; each term of `query` counts with its weight
        there."""
        totals: dict[int, float] = {}
        get = totals.get
        for term, weight in query.items():
            for number, impact in self._postings.get(term, ()):
                totals[number] = get(number, 0.0) + weight * impact
        return totals

    def coverages(self, query: Iterable[str]) -> dict[int, float]:
        """Share of the covered field that the terms make up, 0 to 1, for each document where it is not 0."""
        totals: dict[int, float] = {}
        get = totals.get
        for term in query:
            for number, share in self._coverages.get(term, ()):
                totals[number] = get(number, 0.0) + share
        return totals


def _frequencies(
    documents: Sequence[Mapping[str, Sequence[str]]], fields: Mapping[str, Field]
) -> dict[str, dict[int, float]]:
    """Weighted frequency over all fields, by term and document number, with the fields' weights and length
    normalisation."""
    frequencies: dict[str, dict[int, float]] = {}
    for name, field in fields.items():
        texts = [document.get(name, ()) for document in documents]
        lengths = [len(text) for text in texts if text]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        for number, text in enumerate(texts):
            share = field.weight / (1 - field.length_share + field.length_share * len(text) / mean)
            for term, times in Counter(text).items():
                of_term = frequencies.setdefault(term, {})
                of_term[number] = of_term.get(number, 0.0) + share * times
    return frequencies


def _coverages(texts: Sequence[Sequence[str]], rarities: Mapping[str, float]) -> dict[str, Postings]:
    """Share of each text that a term makes up, weighted by rarity; by term, as pairs of text number and share."""
    coverages: dict[str, list[tuple[int, float]]] = {}
    for number, text in enumerate(texts):
        distinct = dict.fromkeys(text)
        whole = sum(rarities[term] for term in distinct)
        for term in distinct:
            if whole:
                coverages.setdefault(term, []).append((number, rarities[term] / whole))
    return dict(coverages)
