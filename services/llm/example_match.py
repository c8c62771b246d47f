"""The functions whose examples a message resembles, best first, with the arguments read from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

from services.json_values import JsonObject
from services.llm.alignment import TYPED_BONUS, Aligner, Alignment
from services.llm.model import OfferedFunction
from services.llm.resemblance import likeness, score
from services.llm.slot_spans import Filled, filled
from services.llm.templates import Lexicon, Literal, Template, templates_of
from services.llm.utterance import MOST_SKIP_COST, Utterance, read

WORTH_A_LOOK = 0.40
"""A template that cannot reach this score is not aligned at all."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Match:
    """One function that a message may mean."""

    function: OfferedFunction
    score: float
    """From 0 to 1: how much the message resembles the closest example, less what speaks against it."""
    arguments: JsonObject
    """The values that the message gives; required ones may be missing."""
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

    def matches(self, text: str, limit: int = 3, *, among: Container[str] | None = None) -> list[Match]:
        """Up to `limit` functions that `text` resembles, best first; the earlier registered of equals first. `among`
        leaves out all functions but those of these names."""
        said = read(text)
        if not said.words:
            return []
        best: dict[int, tuple[float, Alignment, Filled]] = {}
        aligner = Aligner(said, self._lexicon)
        last = 0.0  # the score of the last one that is within the limit so far
        for bound, number in self._candidates(said, aligner.leftover_cost, among):
            if bound < last - _ROUNDING:
                break
            function = self._templates[number].function
            known = best[function][0] if function in best else 0.0
            if known >= bound:
                continue
            found = self._compared(said, aligner, self._templates[number], known)
            if found is not None:
                best[function] = found
                if len(best) >= limit:
                    last = nlargest(limit, (one[0] for one in best.values()))[-1]
        ranked = sorted(best.items(), key=lambda found: (-found[1][0], found[0]))[:limit]
        return [self._match(number, *found) for number, found in ranked]

    def _compared(
        self, said: Utterance, aligner: Aligner, template: Template, known: float
    ) -> tuple[float, Alignment, Filled] | None:
        """The score of `template` with what it rests on; None when it is not above `known`."""
        alignment = aligner.align(template)
        like = likeness(said, alignment)
        if like <= max(WORTH_A_LOOK, known):
            return None
        facts = self._lexicon.facts[template.function]
        values = filled(said, alignment, facts)
        total = score(said, alignment, like, values, facts)
        return (total, alignment, values) if total > known else None

    def _match(self, number: int, score: float, alignment: Alignment, values: Filled) -> Match:
        return Match(self.functions[number], score, values.arguments, alignment.template.example)

    def _post(self, number: int, template: Template) -> None:
        literals = [item for item in template.items if isinstance(item, Literal) and item.tells]
        if not literals:
            self._wordless.append(number)
        for literal in literals:
            self._postings[literal.stem].append((number, literal.weight))
            for concept in literal.concepts:
                self._postings[f"={concept}"].append((number, literal.weight))

    def _candidates(
        self, said: Utterance, leftover_cost: float, among: Container[str] | None
    ) -> list[tuple[float, int]]:
        """The templates worth aligning with the most that each can score, highest first."""
        shared: defaultdict[int, float] = defaultdict(float)
        for key in self._keys(said):
            for number, weight in self._postings.get(key, ()):
                shared[number] += weight
        for number in self._wordless:
            shared[number] += 0.0
        bounds = (
            (_bound(self._templates[number], found, leftover_cost), number)
            for number, found in shared.items()
            if among is None or self.functions[self._templates[number].function].name in among
        )
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


def _bound(template: Template, shared: float, leftover_cost: float) -> float:
    """No alignment scores more: every shared word found, every slot filled, and nothing in the message left over but
    what a template without slots has no place for. `leftover_cost` is that of a message that answers nothing."""
    content = min(shared, template.content_weight)
    matched = content + template.filler_weight + TYPED_BONUS * template.typed_slots
    if not matched:
        return 0.0
    cost = template.content_weight - content
    if not template.has_slots:
        cost += max(0.0, leftover_cost - MOST_SKIP_COST * len(template.items))
    return 2 * matched / (2 * matched + cost)
