"""How much a message resembles an example, from 0 to 1, once the one has been laid over the other."""

from __future__ import annotations

from services.llm.alignment import Alignment, Span
from services.llm.slot_spans import Filled
from services.llm.slot_values import TYPED, Slot, SlotKind
from services.llm.templates import FunctionFacts, Literal, Template
from services.llm.utterance import Utterance

# On the cost of an alignment.
_LOST_ACTION, _LOST_PREPOSITION = 0.8, 0.9
_LOST_QUESTION, _OTHER_QUESTION = 0.5, 0.1
_LOST_VALUE, _LOST_TYPED = 0.6, 1.2
_SHORT_WORDS, _EXTRA_WORD, _PERSONAL_WORD, _LOOSE_WORD = 3, 0.3, 0.6, 0.1
_WORDLESS = 0.15
_PERSONAL = frozenset({"my", "i", "your", "till"})
# On the score.
_MISSING, _UNUSABLE = 0.08, 0.12
_THIN, _THIN_SHARE = 0.15, 0.6
_ONE_WORD, _ONE_WORD_ENOUGH = 0.3, 2
_TAKES_AWAY, _NEGATED, _ASKS = 0.3, 0.3, 0.3


def likeness(said: Utterance, alignment: Alignment) -> float:
    """0 for nothing in common, 1 for the same words: the weight of what was found against the cost of the rest."""
    if not alignment.matched:
        return 0.0
    template = alignment.template
    cost = (
        alignment.cost + _lost_cost(said, alignment) + sum(_span_cost(said, alignment, one) for one in alignment.spans)
    )
    if not template.content_words and not alignment.spans:
        cost += _WORDLESS * (alignment.skipped + len(alignment.lost))
    return 2 * alignment.matched / (2 * alignment.matched + cost)


def score(said: Utterance, alignment: Alignment, like: float, values: Filled, facts: FunctionFacts) -> float:
    """`like` less what speaks against the function as a whole: values that are missing, words that hardly tell
    anything, a wish to delete or a question where the function does something else."""
    template = alignment.template
    if template.content_words and not alignment.content:
        return 0.0
    total = like - _MISSING * len(values.missing) - _UNUSABLE * len(values.unusable)
    if alignment.content < template.content_weight * _THIN_SHARE:
        total -= _THIN
    if len(template.items) == 1 and len(said.words) > _ONE_WORD_ENOUGH:
        total -= _ONE_WORD
    if said.is_destructive and not facts.is_destructive:
        total -= _TAKES_AWAY
    if facts.writes:
        total -= _NEGATED if said.is_negated else 0.0
        total -= _ASKS if said.is_question else 0.0
    return max(0.0, total)


def _lost_cost(said: Utterance, alignment: Alignment) -> float:
    return sum(_cost_of_loss(said, alignment.template.items[number]) for number in alignment.lost)


def _cost_of_loss(said: Utterance, item: Literal | Slot) -> float:
    """What is said without the word that makes the example an order or a question, or without the value that it
    shows, is likely something else."""
    if isinstance(item, Literal):
        if item.is_action:
            return _LOST_ACTION
        if item.is_question:
            return _OTHER_QUESTION if said.is_question else _LOST_QUESTION
        return 0.0
    if not item.required:
        return 0.0
    return _LOST_TYPED if item.kind in TYPED else _LOST_VALUE


def _span_cost(said: Utterance, alignment: Alignment, span: Span) -> float:
    """Values of few words are rarely long, rarely speak of persons, and stand after the preposition of the example."""
    template = alignment.template
    length = _length(said, span)
    if span.slot.kind is not SlotKind.SHORT:
        return _LOOSE_WORD * max(0, length - _SHORT_WORDS) if template.content_words <= 1 else 0.0
    cost = _EXTRA_WORD * max(0, length - (_SHORT_WORDS if template.content_words else 1))
    cost += _PERSONAL_WORD * sum(word.text in _PERSONAL for word in said.words[span.first : span.last + 1])
    return cost + (_LOST_PREPOSITION if _lost_its_preposition(template, alignment.lost, span.item) else 0.0)


def _lost_its_preposition(template: Template, lost: frozenset[int], number: int) -> bool:
    before = template.items[number - 1] if number else None
    return isinstance(before, Literal) and before.is_preposition and number - 1 in lost


def _length(said: Utterance, span: Span) -> int:
    """In words that are no fillers and no times; two Chinese characters count as one."""
    words = (word for word in said.words[span.first : span.last + 1] if not word.meaning.is_filler and not word.is_time)
    return round(sum(0.5 if word.is_han else 1.0 for word in words))
