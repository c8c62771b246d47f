"""The functions whose examples a message resembles, best first, with the arguments read from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.json_values import JsonObject
from services.llm.alignment import Aligner, Alignment
from services.llm.model import OfferedFunction
from services.llm.slot_spans import Filled, filled
from services.llm.slot_values import TYPED, Slot
from services.llm.templates import Lexicon, Literal, Template, templates_of
from services.llm.utterance import Utterance, read

WORTH_A_LOOK = 0.40
"""A template that cannot reach this score is not aligned at all."""
_MISSING, _UNUSABLE, _THIN, _ONE_WORD = 0.08, 0.06, 0.15, 0.3
_THIN_SHARE = 0.6
_TAKES_AWAY, _NEGATED, _ASKS = 0.3, 0.3, 0.3
_TYPED_BONUS = 0.5


@dataclass(frozen=True, slots=True)
class Match:
    """One function that a message may mean."""

    function: OfferedFunction
    score: float
    """From 0 to 1: how much the message resembles the closest example, less what speaks against it."""
    arguments: JsonObject
    missing: tuple[str, ...]
    """Required parameters that the message gives no value for."""
    example: str


class ExampleIndex:
    """The examples of a set of functions, ready to be compared with messages. Immutable once built."""

    def __init__(self, functions: Sequence[OfferedFunction]) -> None:
        self.functions = tuple(functions)
        self._lexicon = Lexicon(self.functions)
        self._templates = tuple(templates_of(self.functions, self._lexicon))
        self._postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        self._wordless: list[int] = []
        for number, template in enumerate(self._templates):
            self._post(number, template)

    def matches(self, text: str, limit: int = 3) -> list[Match]:
        """Up to `limit` functions that `text` resembles, best first; the earlier registered of equals first."""
        said = read(text)
        if not said.words:
            return []
        best: dict[int, tuple[float, Alignment, Filled]] = {}
        aligner = Aligner(said, self._lexicon)
        for bound, number in self._candidates(said):
            template = self._templates[number]
            known = best.get(template.function)
            if known is not None and known[0] >= bound:
                continue
            alignment = aligner.align(template)
            if alignment.likeness < max(WORTH_A_LOOK, known[0] if known else 0.0):
                continue
            values = filled(said, alignment, self._lexicon.facts[template.function])
            score = self._score(said, alignment, values)
            if score > (known[0] if known else 0.0):
                best[template.function] = (score, alignment, values)
        ranked = sorted(best.items(), key=lambda found: (-found[1][0], found[0]))[:limit]
        return [self._match(number, *found) for number, found in ranked]

    def _match(self, number: int, score: float, alignment: Alignment, values: Filled) -> Match:
        return Match(self.functions[number], score, values.arguments, values.missing, alignment.template.example)

    def _post(self, number: int, template: Template) -> None:
        literals = [item for item in template.items if isinstance(item, Literal) and item.tells]
        if not literals:
            self._wordless.append(number)
        for literal in literals:
            self._postings[literal.stem].append((number, literal.weight))
            for concept in literal.concepts:
                self._postings[f"={concept}"].append((number, literal.weight))

    def _candidates(self, said: Utterance) -> list[tuple[float, int]]:
        """The templates worth aligning with the most that each can score, highest first."""
        shared: defaultdict[int, float] = defaultdict(float)
        for key in self._keys(said):
            for number, weight in self._postings.get(key, ()):
                shared[number] += weight
        for number in self._wordless:
            shared[number] += 0.0
        bounds = ((self._bound(said, self._templates[number], found), number) for number, found in shared.items())
        return sorted((one for one in bounds if one[0] >= WORTH_A_LOOK), key=lambda one: (-one[0], one[1]))

    def _keys(self, said: Utterance) -> Iterator[str]:
        seen: set[str] = set()
        for word in said.words:
            if word.meaning.is_filler:
                continue
            for key in (word.meaning.stem, *(f"={concept}" for concept in word.meaning.concepts)):
                if key not in seen:
                    seen.add(key)
                    yield key

    def _bound(self, said: Utterance, template: Template, shared: float) -> float:
        """No alignment scores more: every shared word found, every slot filled, nothing in the message left over."""
        content = min(shared, template.content_weight)
        typed = sum(_TYPED_BONUS for item in template.items if isinstance(item, Slot) and item.kind in TYPED)
        matched = content + template.filler_weight + typed
        if not matched:
            return 0.0
        return 2 * matched / (2 * matched + template.content_weight - content)

    def _score(self, said: Utterance, alignment: Alignment, values: Filled) -> float:
        template = alignment.template
        if template.content_words and not alignment.content:
            return 0.0
        facts = self._lexicon.facts[template.function]
        score = alignment.likeness - _MISSING * len(values.missing) - _UNUSABLE * len(values.unusable)
        if alignment.content < template.content_weight * _THIN_SHARE:
            score -= _THIN
        if len(template.items) == 1 and len(said.words) > 2:
            score -= _ONE_WORD
        if said.is_destructive and not facts.is_destructive:
            score -= _TAKES_AWAY
        if facts.writes:
            score -= _NEGATED if said.is_negated else 0.0
            score -= _ASKS if said.is_question else 0.0
        return max(0.0, score)
