"""Requests to models: their size, the share that a provider has cached, and whether the wanted function is offered.

    python -m benchmarks.prompts [--pool POOL.jsonl] [--misses]

Replays a group's conversation (`group_talk.yaml`), and offers functions for requests in five languages
(`utterances.yaml`), each in a new chat. Prints one JSON line:

- `bytes`: mean size of a request's functions and messages; `functions`: mean number of functions in it.
- `shared`: share of all bytes that equal the beginning of the request before. Functions come first, then the system
  message, then the others, as in the providers' caches. `shared_between_turns`: the same for the first request of each
  turn only.
- `offered`: share of the requests whose function was offered, by language.
- `found`: share of the requests whose function is among the twelve best matches, which are added if there are more
  functions than fit; with the functions of `--pool` in addition to the built-in ones.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from benchmarks.offline import built_in_offer
from benchmarks.retrieval import functions_in
from bot.testing import ACCOUNT, PLATFORM, Group, a_group
from function_calls.rounds.shortlist import MATCHES
from services.llm.encoding import encode_messages, encode_tools, guided
from services.llm.model import ModelAnswer, ModelRequest, OfferedFunction, ToolCall
from services.llm.offline.function_search import FunctionSearch
from services.refs import ChatRef, Role

_FOLDER = Path(__file__).parent
_ROLES = {"Ann": Role.OWNER, "Cy": Role.MODERATOR}
_CONFIGURED: Mapping[str, Any] = {
    "news": {"feeds": [{"name": "Town", "url": "https://news.example/feed"}]},
    "search": {"kind": "searxng", "url": "https://search.example"},
}
LANGUAGES = ("en", "zh", "de", "es", "fr")


class Request(NamedTuple):
    """A recorded request."""

    body: bytes
    functions: frozenset[str]
    begins_turn: bool


class _Recorder:
    """ChatModel that records its requests and answers as scripted."""

    name = "recorder"

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._steps: list[ModelAnswer] = []
        self._begins = True

    def will_answer(self, calls: Sequence[Mapping[str, Any]], text: str) -> None:
        """Script the answers of the next turn: one round for each call, then `text`."""
        self._begins = True
        self._steps = [_calling(name, arguments) for one in calls for name, arguments in one.items()]
        self._steps.append(ModelAnswer(text=text or "Ok.", finish="stop"))

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        tools = encode_tools(request.offer) if request.offer is not None else b""
        names = frozenset(one.original for one in request.offer.functions) if request.offer is not None else frozenset()
        self.requests.append(Request(tools + encode_messages(guided(request)), names, self._begins))
        self._begins = False
        return self._steps.pop(0)

    async def probe(self) -> str:
        return self.name

    async def close(self) -> None:
        return None


def _calling(name: str, arguments: Mapping[str, Any]) -> ModelAnswer:
    return ModelAnswer(calls=(ToolCall(f"call_{name}", name, dict(arguments)),), finish="tool_calls")


async def replayed(settings: Mapping[str, Any] | None = None) -> list[Request]:
    """The requests of the group's conversation."""
    model = _Recorder()
    async with a_group(model=model, settings={**_CONFIGURED, **(settings or {})}) as group:
        for line in _yaml("group_talk.yaml"):
            await group.clock.advance(line["after"] * 60)
            await group.settle()
            if "says" in line:
                model.will_answer(line.get("calls", ()), line["says"])
            await group.say(line["who"], line["text"], role=_ROLES.get(line["who"], Role.MEMBER))
    return model.requests


def shared(requests: Sequence[Request], *, between_turns: bool = False) -> float:
    """Share of the bytes after the first request that equal the beginning of the request before."""
    pairs = [
        (before.body, after.body)
        for before, after in itertools.pairwise(requests)
        if after.begins_turn or not between_turns
    ]
    return round(sum(_common(*pair) for pair in pairs) / sum(len(after) for _, after in pairs), 4)


def _common(first: bytes, second: bytes) -> int:
    """Length of the common beginning."""
    if second.startswith(first):
        return len(first)
    return next(place for place, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)


class Utterance(NamedTuple):
    """A request for a function."""

    function: str
    language: str
    text: str


def utterances() -> list[Utterance]:
    """All requests of `utterances.yaml`."""
    return [
        Utterance(function, language, str(text))
        for function, texts in _yaml("utterances.yaml").items()
        for language in LANGUAGES
        for text in texts[language]
    ]


async def missed(settings: Mapping[str, Any] | None = None) -> list[Utterance]:
    """Utterances whose function is not offered in a new chat."""
    model = _Recorder()
    found: list[Utterance] = []
    async with a_group(model=model, settings={**_CONFIGURED, **(settings or {})}) as group:
        for number, one in enumerate(utterances()):
            model.will_answer((), "Well.")
            await _asked(group, number, one.text)
            if one.function not in model.requests[-1].functions:
                found.append(one)
    return found


async def _asked(group: Group, number: int, text: str) -> None:
    chat = ChatRef(PLATFORM, ACCOUNT, f"chat{number}")
    await group.say("Ann", f"@Rollcall {text}", chat=chat, role=Role.OWNER)


def not_found(pool: Sequence[OfferedFunction] = ()) -> list[Utterance]:
    """Utterances whose function is not among the best matches of the built-in functions and `pool`."""
    search = FunctionSearch([*built_in_offer().functions, *pool])
    return [
        one
        for one in utterances()
        if one.function not in {found.original for found, _ in search.rank(one.text, MATCHES)}
    ]


def shares(missing: Sequence[Utterance]) -> dict[str, float]:
    """Share of the utterances that are not in `missing`, by language."""
    counts: defaultdict[str, int] = defaultdict(int)
    for one in utterances():
        counts[one.language] += 1
    lost: defaultdict[str, int] = defaultdict(int)
    for one in missing:
        lost[one.language] += 1
    return {language: round(1 - lost[language] / counts[language], 4) for language in LANGUAGES}


def _yaml(name: str) -> Any:
    return YAML(typ="safe").load(_FOLDER / name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", type=Path, help="further functions, as for benchmarks.retrieval")
    parser.add_argument("--misses", action="store_true", help="print requests without their function to stderr")
    options = parser.parse_args(arguments)
    requests = asyncio.run(replayed())
    few = asyncio.run(missed())
    lost = not_found(functions_in(options.pool) if options.pool else ())
    figures = {
        "turns": sum(one.begins_turn for one in requests),
        "requests": len(requests),
        "bytes": round(sum(len(one.body) for one in requests) / len(requests)),
        "functions": round(sum(len(one.functions) for one in requests) / len(requests), 1),
        "shared": shared(requests),
        "shared_between_turns": shared(requests, between_turns=True),
        "offered": shares(few),
        "found": shares(lost),
    }
    print(json.dumps(figures))
    if options.misses:
        for one in [*few, *lost]:
            print(f"{one.function:20} {one.language} {one.text}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
