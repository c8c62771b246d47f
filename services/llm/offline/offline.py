"""ChatModel without a network: matches messages with the functions' examples, and explains how to connect a model
otherwise."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache

from config.texts import Phrases, Texts
from services.llm.model import ModelAnswer, ModelMessage, ModelRequest, Offer, SameFunctions, ToolCall
from services.llm.offline.matching import NAME_THRESHOLD, ExampleIndex, Match
from services.llm.offline.templates import Slot, SlotKind, slots_of, with_values
from services.llm.offline.utterance import SpokenTimes
from services.patterns import lazy_pattern
from services.refs import JsonValue
from services.text_index import is_unspaced

SURE_THRESHOLD = 0.90
"""Minimum score for calling it without confirmation."""
_MOST_GUESSES = 3
_MOST_INDEXES = 64
_CONTESTS_KEPT = 4
_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "ko"})
_DIVIDER = "\n---\n"
_STATEMENT = lazy_pattern(
    r"""
      \s*(?:(?:the|all|my|your|these)\s+)?
      (?:
        (?:weather|forecasts?|reminders?|news|headlines|time|dates?|dice|polls?|todos?|search|help|summary|summaries)
        (?!\s*(?:number\s+|\#)?\d)
        (?:\s+(?!(?:in|for|to|at|on|that|the|my|our|a|if|what|who|how|when|where)\b)[\w'’-]+){0,2}?
        \s+(?:is|are|was|were|has|have|had|does|did|(?:is|are|was|were|has|have|do|does|did)n['’]t|never|always)\b
      | (?:forecasts|reminders|polls|todos|summaries|(?:weather|news|dice|poll|todo|search|reminder)\s+[a-z]+s)
        \s+[a-z]+\s+(?:me|us|him|them|everybody|everyone|people)\b
      | help\s+(?:yourself|himself|herself|themselves)\b
      | (?:roll|flip|search|time)\s+(?:with|over|up|out|down|away|back|off)\b(?=[^\d?？]*$)
      )(?![^?？]*[?？])
    | \s*(?:提醒|天气|新闻|帮助|投票|搜索|时间|总结|待办|日期)[^\s，,。:：我他她你大给在]{0,4}?
      (?:太|很|真是?|好(?!不)|越来越|总是|从来|都[是不]|没有?用)[^?？吗呢]*$
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A statement that starts with the subject of a function, such as `reminders annoy me`."""


@lru_cache(maxsize=1)
def spoken_times() -> SpokenTimes:
    """The shared finder of times, by the system's clock."""
    return SpokenTimes()


class OfflineModel:
    """Picks the function whose examples are most similar to the message. Deterministic for a message and an offer."""

    def __init__(self, texts: Texts, name: str = "offline") -> None:
        self.name = name
        self._texts = texts
        self._indexes: OrderedDict[int, tuple[Offer, asyncio.Future[ExampleIndex]]] = OrderedDict()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer with a call, with suggestions of functions, or with how to connect a model. After a function's result,
        returns the texts that it sent. Never raises ModelError."""
        phrases = self._texts.of(request.language)
        if request.messages and request.messages[-1].role == "tool":
            return self._words(_function_texts(request.messages[-1].content) or phrases.say("offline.done"))
        offer = request.everything or request.offer
        if offer is None or request.tool_choice == "none":
            return self._words(phrases.say("offline.no_model"))
        text = user_text(request.messages)
        matches = (await self._index_of(offer, text)).best(text, _MOST_GUESSES)
        call = call_for(matches, text)
        if call is not None:
            return ModelAnswer(calls=(call,), finish="tool_calls", model=self.name, final=True)
        return self._words(_in_words(matches, phrases))

    async def probe(self) -> str:
        """Fixed line; this model is always reachable."""
        return f"{self.name}: works without a network"

    async def close(self) -> None:
        """Drop the cached indexes; they are rebuilt on use."""
        self._indexes.clear()

    def _words(self, text: str) -> ModelAnswer:
        return ModelAnswer(text=text, finish="stop", model=self.name)

    async def _index_of(self, offer: Offer, text: str) -> ExampleIndex:
        """Index of `offer`, built in a thread on first use, for the message `text`. The most recent ones are cached
        together with their offers, so that ids stay unique."""
        known = self._indexes.get(id(offer))
        if known is None:
            building = asyncio.ensure_future(asyncio.to_thread(_index_for, offer, text))
            known = self._indexes[id(offer)] = (offer, building)
            if len(self._indexes) > _MOST_INDEXES:
                self._indexes.popitem(last=False)
        else:
            self._indexes.move_to_end(id(offer))
        return await asyncio.shield(known[1])


def _index_for(offer: Offer, text: str) -> ExampleIndex:
    """The index of `offer`. Matches `text` once, because the first match loads units, places and patterns."""
    index = ExampleIndex(offer.functions, spoken_times())
    index.best(text, _MOST_GUESSES)
    return index


def user_text(messages: Sequence[ModelMessage]) -> str:
    """Content of the last user message, or its part after the first line `---`: the part above names the speaker and
    quotes. Empty without a user message."""
    content = next((message.content for message in reversed(messages) if message.role == "user"), "")
    above, divider, below = content.partition(_DIVIDER)
    return (below if divider else above).strip()


def call_for(matches: Sequence[Match], text: str, shift: float = 0.0) -> ToolCall | None:
    """Call justified by the best of `matches`; None if its score is below the threshold for its kind, or if `text` is a
    statement about a function's subject. A call of a function with effects is `uncertain` unless its score is near
    certain. `shift` is added to every threshold."""
    if not matches or not matches[0].is_callable(shift) or _STATEMENT.match(text):
        return None
    best = matches[0]
    raw = json.dumps(best.arguments, ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(f"{best.function.name}\n{raw}\n{text}".encode()).hexdigest()
    return ToolCall(
        id=f"call_{digest[:16]}",
        name=best.function.name,
        arguments=best.arguments,
        raw=raw,
        uncertain=best.function.writes and best.score < SURE_THRESHOLD + shift,
    )


def sure_match(offer: Offer, text: str) -> Match | None:
    """The function of `offer` that `text` certainly asks for, with all required arguments; None if unsure."""
    best = next(iter(_index(SameFunctions(offer.functions)).matches(text, 1)), None)
    if best is None or best.score < SURE_THRESHOLD or _STATEMENT.match(text):
        return None
    return best if best.arguments.keys() >= set(best.function.parameters.get("required", ())) else None


@lru_cache(maxsize=_CONTESTS_KEPT)
def _index(functions: SameFunctions) -> ExampleIndex:
    return ExampleIndex(functions)


def contested_examples(offer: Offer) -> Sequence[tuple[str, str, str, float]]:
    """Examples won by another function, as (function, example, winner, winner's score); the winner is empty if nothing
    resembles the example. Slots are filled with neutral values. Cached for bots with the same functions."""
    return _contested(SameFunctions(offer.functions))


@lru_cache(maxsize=_CONTESTS_KEPT)
def _contested(functions: SameFunctions) -> Sequence[tuple[str, str, str, float]]:
    index = ExampleIndex(functions, spoken_times())
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


_SAMPLES = {
    SlotKind.TIME: "17:30",
    SlotKind.EXPRESSION: "2 + 3",
    SlotKind.LIST: "apples, pears",
    SlotKind.UNIT: "feet",
    SlotKind.PLACE: "Kyoto",
    SlotKind.DICE: "3d8",
    SlotKind.FUNCTION: "roll",
}


def _sample(slot: Slot) -> str:
    """Value for `slot` that is not characteristic of any function."""
    if slot.kind is SlotKind.CHOICE:
        return slot.choices[-1][0]
    if slot.kind is SlotKind.NUMBER:
        return str(max(3, int(slot.schema.get("minimum", 3))))
    return _SAMPLES.get(slot.kind, "quokkas")


def _in_words(matches: Sequence[Match], phrases: Phrases) -> str:
    """Text that suggests functions that score at least NAME_THRESHOLD, have commands and are set up, by their commands;
    without suggestions explain how to connect a model."""
    guesses = [
        match.function.commands
        for match in matches
        if match.score >= NAME_THRESHOLD and match.function.commands and match.function.is_set_up()
    ]
    if not guesses:
        return phrases.say("offline.no_model")
    words = dict.fromkeys(_command_in(phrases.language, commands) for commands in guesses)
    return phrases.say("offline.did_you_mean", commands=", ".join(f"/{word}" for word in words))


def _command_in(language: str, commands: Sequence[str]) -> str:
    """First of `commands` in the script of `language`, else the first."""
    unspaced = language in _UNSPACED_LANGUAGES
    return next((command for command in commands if is_unspaced(command) == unspaced), commands[0])


def _function_texts(content: str) -> str:
    """Messages that the function sent to the chat, or the message of its error; may be empty."""
    try:
        result: JsonValue = json.loads(content)
    except ValueError:
        return content.strip()
    if not isinstance(result, dict):
        return ""
    texts = result.get("said_in_chat")
    if isinstance(texts, list):
        return "\n".join(str(line) for line in texts)
    return str(result.get("message") or result.get("asked") or "")
