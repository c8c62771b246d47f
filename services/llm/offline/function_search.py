"""Full-text ranking of functions for a message: by words of names, descriptions, examples and parameters, by topics,
and by similarity to examples."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from services.llm.model import OfferedFunction, SameFunctions
from services.llm.offline.matching import ExampleIndex
from services.llm.offline.templates import without_slots
from services.llm.offline.translations import english_terms
from services.llm.offline.vocabulary import topics_of
from services.refs import JsonObject
from services.text_index import Field, TextIndex, terms, wishes

_FIELDS = {
    "name": Field(8.0, 0.9),
    "description": Field(2.8, 0.2),
    "examples": Field(8.0, 0.4),
    "parameters": Field(0.5, 0.4),
    "explanations": Field(0.5, 0.5),
    "choices": Field(0.35, 0.5),
}
_TOPIC_FIELDS = {
    "name": Field(2.0, 0.5),
    "description": Field(1.0, 0.5),
    "examples": Field(1.0, 0.5),
    "parameters": Field(0.3, 0.5),
    "explanations": Field(0.2, 0.5),
}
_TOPIC_SATURATION = 1.5
_WISH, _COVERAGE, _TOPIC, _EXAMPLE, _TRANSLATED = 0.3, 0.5, 0.5, 1.0, 1.0
_MOST_TERMS = 60
_MOST_CHARACTERS = 4000
_ALIGNED = 24
"""Number of top-ranked functions whose examples are aligned word by word."""
_DEEPEST = 6
_KEPT = 4


def search_of(functions: Iterable[OfferedFunction]) -> FunctionSearch:
    """Search over `functions`, cached: shared by bots and snapshots whose functions look the same to a model."""
    return _built(SameFunctions(functions))


@lru_cache(maxsize=_KEPT)
def _built(functions: SameFunctions) -> FunctionSearch:
    return FunctionSearch(functions)


class FunctionSearch:
    """Search index over the functions of one snapshot. Immutable; building takes a third of a second for 2,000
    functions."""

    def __init__(self, functions: Sequence[OfferedFunction]) -> None:
        self.functions = tuple(functions)
        documents = [_document(function) for function in self.functions]
        self._words = TextIndex(documents, _FIELDS, covered="description")
        topics = [
            {name: [topic for term in found for topic in topics_of(term)] for name, found in document.items()}
            for document in documents
        ]
        self._topics = TextIndex(topics, _TOPIC_FIELDS, saturation=_TOPIC_SATURATION)
        self._numbers = {function.name: number for number, function in enumerate(self.functions) if function.examples}
        self._examples = ExampleIndex([function for function in self.functions if function.examples])

    def rank(
        self, text: str, limit: int, *, among: Callable[[OfferedFunction], bool] | None = None
    ) -> list[tuple[OfferedFunction, float]]:
        """At most `limit` functions that match the first 4,000 characters of `text` and satisfy `among`, with their
        scores, best first; ties in registration order. Empty if nothing matches."""
        text = text[:_MOST_CHARACTERS]
        totals = self._scores(wishes(text))
        translated = dict.fromkeys(english_terms(text, self._words.has), _TRANSLATED)
        for number, score in self._words.scores(translated).items():
            totals[number] = totals.get(number, 0.0) + score
        if among is not None:
            functions = self.functions
            totals = {number: score for number, score in totals.items() if among(functions[number])}
        if self._numbers:
            self._add_examples(text, totals, among)
        best = heapq.nsmallest(limit, totals.items(), key=lambda found: (-found[1], found[0]))
        return [(self.functions[number], score) for number, score in best]

    def _scores(self, parts: Sequence[Sequence[str]]) -> dict[int, float]:
        """Score by number of each matching function: word matches overall and for its best wish, share of its
        description covered, and common topics."""
        query_terms = dict.fromkeys(term for part in parts for term in part)
        known = self._words.rarest(query_terms, _MOST_TERMS)
        totals = self._of_wishes(parts, known)
        most = max(totals.values(), default=0.0)
        get = totals.get
        for number, share in self._words.coverages(known).items():
            totals[number] = get(number, 0.0) + _COVERAGE * most * share
        for number, score in self._topics.scores(_topics(query_terms)).items():
            totals[number] = get(number, 0.0) + _TOPIC * score
        return totals

    def _of_wishes(self, parts: Sequence[Sequence[str]], known: set[str]) -> dict[int, float]:
        by_part: list[dict[int, float]] = []
        for part in parts:
            mine = {term: 1.0 for term in part if term in known}
            known = known.difference(mine)
            if mine:
                by_part.append(self._words.scores(mine))
        if len(by_part) < 2:
            return by_part[0] if by_part else {}
        totals: dict[int, float] = {}
        best: dict[int, float] = {}
        for scores in by_part:
            peak = max(scores.values())
            for number, score in scores.items():
                totals[number] = totals.get(number, 0.0) + score
                best[number] = max(best.get(number, 0.0), score / peak)
        bonus = _WISH * max(totals.values())
        for number, share in best.items():
            totals[number] += bonus * share
        return totals

    def _add_examples(
        self, text: str, totals: dict[int, float], among: Callable[[OfferedFunction], bool] | None
    ) -> None:
        """Add the example similarity of the best functions; if there are few, also of others, whose examples may
        consist of values."""
        best = heapq.nlargest(_ALIGNED, totals.items(), key=lambda found: found[1])
        most = best[0][1] if best else 1.0
        functions = [self.functions[number] for number, _ in best]
        if len(functions) < _ALIGNED:
            others = (function for function in self._examples.functions if among is None or among(function))
            functions += itertools.islice(others, _ALIGNED - len(functions))
        for match in self._examples.matches(text, _ALIGNED, among={function.name for function in functions}):
            number = self._numbers[match.function.name]
            totals[number] = totals.get(number, 0.0) + _EXAMPLE * most * match.score


def _topics(query_terms: Iterable[str]) -> dict[str, float]:
    """Topics of the words with their weights (0 to 1); a word with several topics weighs less in each."""
    weights: dict[str, float] = {}
    for term in query_terms:
        topics = topics_of(term)
        if topics:
            weight = 1 / math.sqrt(len(topics))
            for topic in topics:
                weights[topic] = max(weights.get(topic, 0.0), weight)
    return weights


def _document(function: OfferedFunction) -> dict[str, list[str]]:
    return {
        "name": terms(_spaced(function.original)),
        "description": terms(function.description),
        "examples": [
            *(term for example in function.examples for term in terms(without_slots(example))),
            *(term for command in function.commands for term in terms(command)),
        ],
        **_parameters(function.parameters),
    }


def _parameters(schema: JsonObject) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"parameters": [], "explanations": [], "choices": []}
    for field, text in _texts(schema, _DEEPEST):
        found[field] += terms(_spaced(text))
    return found


def _texts(schema: object, depth: int) -> Iterator[tuple[str, str]]:
    """Names, descriptions and enum values of parameters, nested ones included, each with its index field."""
    if not isinstance(schema, Mapping) or depth < 0:
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        yield "parameters", name
        if isinstance(inner, Mapping):
            yield "explanations", str(inner.get("description") or "")
            yield from _texts(inner, depth - 1)
    choices = schema.get("enum")
    yield from (("choices", one) for one in choices if isinstance(one, str)) if isinstance(choices, list) else ()
    yield from _texts(schema.get("items"), depth - 1)


def _spaced(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")
