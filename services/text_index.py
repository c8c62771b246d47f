"""Words of a text, and an index that ranks documents by the words they share with a query. Latin words are stemmed;
Chinese, Japanese and Korean text counts by single characters and pairs of neighbours."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED = f"{_HAN}\u3040-\u30ff\uac00-\ud7af"
_RUN = re.compile(rf"[{_UNSPACED}]+|[a-z]+|[0-9]+|[^\W\d_]+")
_TOKEN = re.compile(
    rf"[{_UNSPACED}]|[0-9]+(?:st|nd|rd|th)\b|[0-9]{{1,4}}[-/][0-9]{{1,2}}[-/][0-9]{{1,4}}|[0-9]+(?:[.,:][0-9]+)*|[^\W\d_{_UNSPACED}]+(?:['’][^\W\d_{_UNSPACED}]+)?|[-+*/×÷^=%()$€£¥°]"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_POSSESSIVE = re.compile(r"['’]s\b")


def listed(words: str) -> tuple[str, ...]:
    """The words of a list that is written with spaces and line ends between them."""
    return tuple(words.split())


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
    """One word, number, sign, or one character of a script without spaces, in lower case."""

    text: str
    start: int
    end: int

    @property
    def is_han(self) -> bool:
        """True for a character of a script that puts no spaces between words."""
        return is_unspaced(self.text)


def is_unspaced(text: str) -> bool:
    """Whether `text` begins with a Chinese character, kana or hangul."""
    return bool(text) and (
        "\u3040" <= text[0] <= "\u9fff" or "\uac00" <= text[0] <= "\ud7af" or "\uf900" <= text[0] <= "\ufaff"
    )


def scan(text: str) -> list[Token]:
    """The tokens of `text` in order, with their places in it; punctuation is left out."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capitals become two letters, which would shift the places
        lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    return [Token(found[0], found.start(), found.end()) for found in _TOKEN.finditer(lowered)]


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    stem_word: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
    return stem_word


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of an English word in lower case; other words come back as they are."""
    return _stemmer()(word)


def terms(text: str) -> list[str]:
    """What `text` is found by, in order: stems of its words without stop words, numbers of up to four digits, and
    characters and pairs of characters where words are not spaced. `camelCase` counts as two words."""
    found: list[str] = []
    for run in _RUN.findall(_POSSESSIVE.sub("", _CAMEL.sub(" ", text)).lower()):
        if is_unspaced(run):
            found += [character for character in run if character not in STOP_CHARACTERS]
            found += [run[at : at + 2] for at in range(len(run) - 1)]
        elif run.isdigit():
            if len(run) <= 4:
                found.append(run)
        elif len(run) > 1 and run not in STOP_WORDS:
            found.append(stem(run))
    return found


@dataclass(frozen=True, slots=True)
class Field:
    """How much a term in one part of a document counts, and how much that part's length takes away (0 to 1)."""

    weight: float
    length_share: float


@dataclass(frozen=True, slots=True)
class _Document:
    key: str
    counts: Mapping[str, Counter[str]]


class TextIndex:
    """Documents with named fields, ranked by the weighted terms they share with a query (BM25 over fields). Add
    everything first: the first ranking after an addition computes the weights of all terms anew."""

    def __init__(self, fields: Mapping[str, Field], *, saturation: float = 0.6, query_terms: int = 60) -> None:
        self._fields = dict(fields)
        self._saturation = saturation
        self._query_terms = query_terms
        self._documents: list[_Document] = []
        self._impacts: dict[str, list[tuple[int, float]]] | None = None

    def __len__(self) -> int:
        return len(self._documents)

    def add(self, key: str, texts: Mapping[str, str]) -> None:
        """Add a document: its text for each field, by the field's name."""
        self._documents.append(_Document(key, {name: Counter(terms(text)) for name, text in texts.items() if text}))
        self._impacts = None

    def rank(self, query: str, limit: int) -> list[tuple[str, float]]:
        """The best documents for `query` with their scores, best first, equals in the order they were added. Those
        that share no term with it are left out."""
        best = heapq.nsmallest(limit, self.scores(terms(query)).items(), key=lambda found: (-found[1], found[0]))
        return [(self._documents[number].key, score) for number, score in best]

    def scores(self, query: list[str]) -> dict[int, float]:
        """The score of each document, by its number in order of addition, that has any of the terms; how often
        a term stands in the query does not count. A very long query is cut to its rarest terms."""
        impacts = self._weighed()
        known = [impacts[term] for term in dict.fromkeys(query) if term in impacts]
        if len(known) > self._query_terms:
            known = sorted(known, key=len)[: self._query_terms]
        totals: dict[int, float] = {}
        for postings in known:
            for number, impact in postings:
                totals[number] = totals.get(number, 0.0) + impact
        return totals

    def _weighed(self) -> dict[str, list[tuple[int, float]]]:
        if self._impacts is not None:
            return self._impacts
        frequencies = self._frequencies()
        count, saturation = len(self._documents), self._saturation
        self._impacts = impacts = {}
        for term, postings in frequencies.items():
            rarity = math.log(1 + (count - len(postings) + 0.5) / (len(postings) + 0.5))
            impacts[term] = [
                (number, rarity * frequency * (saturation + 1) / (saturation + frequency))
                for number, frequency in postings.items()
            ]
        return impacts

    def _frequencies(self) -> dict[str, dict[int, float]]:
        """For each term and document: the weighted frequency, over all fields."""
        mean = {name: self._mean_length(name) for name in self._fields}
        frequencies: dict[str, dict[int, float]] = {}
        for number, document in enumerate(self._documents):
            for name, counts in document.counts.items():
                field = self._fields[name]
                length = counts.total() / mean[name] if counts else 1.0
                share = field.weight / (1 - field.length_share + field.length_share * length)
                for term, times in counts.items():
                    of_term = frequencies.setdefault(term, {})
                    of_term[number] = of_term.get(number, 0.0) + share * times
        return frequencies

    def _mean_length(self, name: str) -> float:
        lengths = [document.counts[name].total() for document in self._documents if document.counts.get(name)]
        return sum(lengths) / len(lengths) if lengths else 1.0
