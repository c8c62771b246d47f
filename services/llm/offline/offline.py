"""A ChatModel without a network: it knows the examples of the functions, and says so where they do not reach."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache

from config.texts import Phrases, Texts
from services.llm.model import ModelAnswer, ModelMessage, ModelRequest, Offer, SameFunctions, ToolCall
from services.llm.offline.matching import ExampleIndex, Match
from services.llm.offline.templates import Slot, SlotKind, slots_of, with_values
from services.refs import JsonValue
from services.text_index import is_unspaced

READ_THRESHOLD = 0.65
"""From this score on, a function that only reads is called."""
ASK_THRESHOLD = 0.75
"""From this score on, a function that writes is called once the person has confirmed it."""
SURE_THRESHOLD = 0.90
"""From this score on, it is called directly."""
NAME_THRESHOLD = 0.45
"""From this score on, a function is named as a guess."""
_MOST_GUESSES = 3
_MOST_INDEXES = 64
_CONTESTS_KEPT = 4
_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "ko"})
_DIVIDER = "\n---\n"


class OfflineModel:
    """Picks a function by the likeness of the message to the functions' examples. The same message and the same offer
    always give the same answer."""

    def __init__(self, texts: Texts, name: str = "offline") -> None:
        self.name = name
        self._texts = texts
        self._indexes: OrderedDict[int, tuple[Offer, ExampleIndex]] = OrderedDict()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """A call, or words that name the functions that may be meant, or words on how to connect a model."""
        phrases = self._texts.of(request.language)
        if request.messages and request.messages[-1].role == "tool":
            return self._words(_told_by_function(request.messages[-1].content) or phrases.say("offline.done"))
        offer = request.everything or request.offer
        if offer is None or request.tool_choice == "none":
            return self._words(phrases.say("offline.no_model"))
        said = spoken_text(request.messages)
        matches = self._index_of(offer).matches(said, _MOST_GUESSES)
        call = call_for(matches, said)
        if call is not None:
            return ModelAnswer(calls=(call,), finish="tool_calls", model=self.name, final=True)
        return self._words(_in_words(matches, phrases))

    async def probe(self) -> str:
        """One line; there is nothing that could be out of reach."""
        return f"{self.name}: works without a network"

    async def close(self) -> None:
        """Forget the indexes."""
        self._indexes.clear()

    def _words(self, text: str) -> ModelAnswer:
        return ModelAnswer(text=text, finish="stop", model=self.name)

    def _index_of(self, offer: Offer) -> ExampleIndex:
        """The index of `offer`, built when it is first seen. Those used last are kept, with their offers, so that an
        identity always names the same offer."""
        known = self._indexes.get(id(offer))
        if known is None:
            known = self._indexes[id(offer)] = (offer, ExampleIndex(offer.functions))
            if len(self._indexes) > _MOST_INDEXES:
                self._indexes.popitem(last=False)
        else:
            self._indexes.move_to_end(id(offer))
        return known[1]


def spoken_text(messages: Sequence[ModelMessage]) -> str:
    """What was said last: the content of the last user message, or the part after its first line `---`, since what
    stands above that line (who speaks, what is quoted) was not said now. Empty when there is no user message."""
    content = next((message.content for message in reversed(messages) if message.role == "user"), "")
    above, divider, below = content.partition(_DIVIDER)
    return (below if divider else above).strip()


def call_for(matches: Sequence[Match], said: str, shift: float = 0.0) -> ToolCall | None:
    """The call that the best of `matches` justifies, or None. One of a function that writes is `uncertain` unless
    hardly anything speaks against it. `shift` is added to every threshold."""
    if not matches:
        return None
    best = matches[0]
    writes = best.function.writes
    if best.score < (ASK_THRESHOLD if writes else READ_THRESHOLD) + shift:
        return None
    raw = json.dumps(best.arguments, ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(f"{best.function.name}\n{raw}\n{said}".encode()).hexdigest()
    return ToolCall(
        id=f"call_{digest[:16]}",
        name=best.function.name,
        arguments=best.arguments,
        raw=raw,
        uncertain=writes and best.score < SURE_THRESHOLD + shift,
    )


def contested_examples(offer: Offer) -> Sequence[tuple[str, str, str, float]]:
    """Every example that another function wins, as (function, example, winner, winner's score); the winner is empty
    where nothing resembles the example, not even its own function. Slots are filled with neutral values. Of several
    bots with the same functions they are looked for once."""
    return _contested(SameFunctions(offer.functions))


@lru_cache(maxsize=_CONTESTS_KEPT)
def _contested(functions: SameFunctions) -> Sequence[tuple[str, str, str, float]]:
    index = ExampleIndex(functions)
    contested: list[tuple[str, str, str, float]] = []
    for function in functions:
        samples = {name: _sample(slot) for name, slot in slots_of(function.parameters).items()}
        for example in function.examples:
            best = next(iter(index.matches(with_values(example, samples), 1)), None)
            if best is None:
                contested.append((function.original, example, "", 0.0))
            elif best.function is not function:
                contested.append((function.original, example, best.function.original, best.score))
    return tuple(contested)


def _sample(slot: Slot) -> str:
    """A value for `slot` that no function is known by."""
    match slot.kind:
        case SlotKind.CHOICE:
            return slot.choices[-1][0]
        case SlotKind.NUMBER:
            return str(max(3, int(slot.schema.get("minimum", 3))))
        case SlotKind.TIME:
            return "17:30"
        case SlotKind.EXPRESSION:
            return "2 + 3"
        case SlotKind.LIST:
            return "apples, pears"
        case _:
            return "zanzibar"


def _in_words(matches: Sequence[Match], phrases: Phrases) -> str:
    """The functions that may be meant, by the command that starts them; else how to connect a model."""
    guesses = [
        match.function.commands for match in matches if match.score >= NAME_THRESHOLD and match.function.commands
    ]
    if not guesses:
        return phrases.say("offline.no_model")
    words = dict.fromkeys(_command_in(phrases.language, commands) for commands in guesses)
    return phrases.say("offline.did_you_mean", commands=", ".join(f"/{word}" for word in words))


def _command_in(language: str, commands: Sequence[str]) -> str:
    """The first of `commands` in the script of `language`, or simply the first."""
    unspaced = language in _UNSPACED_LANGUAGES
    return next((command for command in commands if is_unspaced(command) == unspaced), commands[0])


def _told_by_function(content: str) -> str:
    """What the function has said in the chat, or the message of its error; empty when it said nothing."""
    try:
        told: JsonValue = json.loads(content)
    except ValueError:
        return content.strip()
    if not isinstance(told, dict):
        return ""
    said = told.get("said_in_chat")
    if isinstance(said, list):
        return "\n".join(str(line) for line in said)
    return str(told.get("message") or told.get("asked") or "")
