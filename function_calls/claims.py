"""Claims: sentences of a model that say something was done. What no run of the turn bears out is not sent.

Precision comes first: a sentence counts only in forms that tell of a change that has happened (or a reminder that will
come), about things that functions change. Questions, conditions, denials, quotations and what was earlier do not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from function_calls.claim_words import CHINESE, CHINESE_HINT, ENGLISH, HINTS, WORLD, WORLD_CHINESE, WRITING, Forms
from function_calls.spec import FunctionResult, FunctionSpec
from services.lazy_patterns import lazy_pattern
from services.refs import Effect
from services.text_index import is_unspaced, stem, terms

_SENTENCE = lazy_pattern(r"[^.!?。！？\n…]+(?:[.!?](?=[^\s.!?])[^.!?。！？\n…]*)*[.!?。！？…]*")
_QUOTED = lazy_pattern(
    r"```.*?```|`[^`\n]*`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|「[^」\n]*」|『[^』\n]*』|^>.*$", re.S | re.M
)
_LATIN_WORD = lazy_pattern("[a-z]+")
_CHINESE_LETTER = lazy_pattern("[\u3400-\u9fff]")
_LONGEST = 500
"""Characters of a sentence that are looked at."""
_GAPS = lazy_pattern(r"[ \t]{2,}")
_WORLD = frozenset(stem(word) for word in WORLD) | WORLD_CHINESE
_WRITING = frozenset(word if is_unspaced(word) else stem(word) for word in WRITING)


@dataclass(frozen=True, slots=True)
class Act:
    """A run of this turn that had an effect and went well."""

    spec: FunctionSpec
    arguments: Mapping[str, Any]
    result: FunctionResult | None = None


class Claim(NamedTuple):
    """Something that a sentence says was done."""

    start: int
    end: int
    """Of the whole sentence."""
    objects: frozenset[str]
    """What was changed, as stems; of Chinese as pairs of characters."""
    verb: frozenset[str]
    """Where the verb says enough by itself."""


def unfounded(
    text: str, specs: tuple[FunctionSpec, ...], acts: Sequence[Act], *, has_read: bool = False, told_before: str = ""
) -> list[Claim]:
    """The claims in `text` that none of `acts` bears out. `specs`: the functions there are. `has_read`: something was
    looked up in this turn, so that "the poll has been closed" may be what was found. `told_before`: what was reported
    earlier, where the past was asked for."""
    if HINTS.isdisjoint(_LATIN_WORD.findall(text.lower())) and (text.isascii() or not CHINESE_HINT.search(text)):
        return []
    vocabulary = _vocabulary(specs)
    claims = list(_claims(text, vocabulary, has_read=has_read))
    if not claims:
        return []
    done = frozenset[str]().union(*map(_words_of_act, acts))
    told = _words(told_before)
    nothing = not acts and not has_read
    return [
        claim
        for claim in claims
        if told.isdisjoint(_words(text[claim.start : claim.end]))
        and not _is_borne_out(claim, done, vocabulary, nothing=nothing)
    ]


def corrected(text: str, claims: Sequence[Claim], instead: str) -> str:
    """`text` with `instead` in place of the first sentence of `claims`, and without their others."""
    pieces: list[str] = []
    place = 0
    for number, (start, end) in enumerate(dict.fromkeys((claim.start, claim.end) for claim in claims)):
        pieces += [text[place:start], "" if number else instead]
        place = end
    return _GAPS.sub(" ", "".join([*pieces, text[place:]])).strip()


def _is_borne_out(claim: Claim, done: frozenset[str], vocabulary: frozenset[str], *, nothing: bool) -> bool:
    """`done`: the words of what was done. `nothing`: no function gave anything at all."""
    if not claim.objects | claim.verb:
        return not nothing
    if not done:
        return False
    if not _is_chinese(done) and _is_chinese(claim.objects | claim.verb):
        return True  # the functions speak another language than the chat: nothing can be compared
    if (claim.objects | claim.verb) & done:
        return True
    # Something else was done. Only what is the business of another function is surely not a way to say that.
    return not claim.objects and not claim.verb & vocabulary


def _is_chinese(words: frozenset[str]) -> bool:
    return any(is_unspaced(word) for word in words)


def _claims(text: str, vocabulary: frozenset[str], *, has_read: bool) -> Iterator[Claim]:
    unquoted = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    spans = [(found.start(), found.end()) for found in _SENTENCE.finditer(unquoted) if found[0].strip()]
    for start, end in spans:
        sentence = unquoted[start : min(end, start + _LONGEST)]
        begin = start + len(sentence) - len(sentence.lstrip())
        forms = CHINESE if _CHINESE_LETTER.search(sentence) else ENGLISH
        if sentence.rstrip().endswith(("?", "？")) or forms.no_claim.search(sentence):
            continue
        if len(spans) == 1 and forms.done.search(sentence):
            yield Claim(begin, end, frozenset(), frozenset())
            continue
        first, *more = forms.joint.split(sentence)
        claimed = _claimed(first, forms, vocabulary, has_read=has_read) if more else None
        if claimed is None:
            claimed, more = _claimed(sentence, forms, vocabulary, has_read=has_read), []
        if claimed is not None:
            yield Claim(begin, end, *claimed)
        for part in more:
            claimed = _claimed(forms.subject + part, forms, vocabulary, has_read=True)
            if claimed is not None:
                yield Claim(begin, end, *claimed)


def _claimed(
    clause: str, forms: Forms, vocabulary: frozenset[str], *, has_read: bool
) -> tuple[frozenset[str], frozenset[str]] | None:
    """What the clause says was changed, and a verb that says enough; None when it claims nothing."""
    for form in forms.promises:
        for match in form.finditer(clause):
            return _words(match["verb"]), frozenset()
    for form in forms.first_person if has_read else (*forms.first_person, *forms.passive):
        for match in form.finditer(clause):
            verb = _words(match["verb"])
            about = _words(clause[match.start() :]) - verb
            objects = about & _WORLD or about & vocabulary
            if forms.strong.fullmatch(match["verb"]) and not about & _WRITING:
                return objects | verb & _WORLD, verb
            if objects and not about & _WRITING - _WORLD:
                return objects, frozenset()
    return None


def _words(text: str) -> frozenset[str]:
    """Stems and pairs of characters, without numbers, single letters and single characters."""
    plain = text.replace("to-do", "todo").replace("To-do", "todo")
    return frozenset(word for word in terms(plain) if len(word) > 1 and not word.isdigit())


@functools.lru_cache(maxsize=64)
def _vocabulary(specs: tuple[FunctionSpec, ...]) -> frozenset[str]:
    return frozenset[str]().union(*map(_names_of, specs))


def _names_of(spec: FunctionSpec) -> frozenset[str]:
    """What a function with an effect changes, by its names, tags and description."""
    if spec.effect is Effect.READ:
        return frozenset()
    return _words(" ".join([spec.name.replace("_", " "), spec.description, *spec.commands, *spec.tags]))


@functools.lru_cache(maxsize=4096)
def _words_of(spec: FunctionSpec) -> frozenset[str]:
    return _names_of(spec) | _words(" ".join(spec.examples))


def _words_of_act(act: Act) -> frozenset[str]:
    said = [message.text for message in act.result.messages] if act.result else []
    return _words_of(act.spec) | _words(" ".join([*map(str, act.arguments.values()), *said]))
