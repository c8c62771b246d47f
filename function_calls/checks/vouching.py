"""Vouching: a call that a model wrote has an effect without a question only if the asker's own words stand for it.

Everything else in a prompt (other members' messages, pages, files, results of functions) may contain instructions of
strangers, so the check does not ask what the model has read, but what the asker wrote.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from function_calls.call import CallRequest
from function_calls.checks.approvals import Approvals
from function_calls.checks.askers_words import AskersWords, leaves, mentioned, own_text
from function_calls.checks.permissions import PolicyDecision
from function_calls.context import MessageContext
from function_calls.outcome import UNVOUCHED
from function_calls.schema.commands import spoken_name
from function_calls.spec import FunctionSpec, Touch, leaves_chat
from function_calls.turn import Turn
from services.llm.model import OfferedFunction
from services.refs import Effect, JsonObject
from services.text_index import terms

_RECENT = timedelta(minutes=10)
"""Age up to which the asker's earlier messages and approvals count."""
_CLAUSE = re.compile(r"[\n.;!?。；！？，,]|\b(?:and|then|und|dann)\b|然后|并且?|再", re.IGNORECASE)
_URL = re.compile(r"\b(?:[a-z][a-z0-9+.-]*://|www\.)\S+", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s\"'<>()\[\]{},;]+")
_LEAST_TERM = 2
"""Shorter terms are too common to be a secret."""
_ENCODED = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9+/=_-]{16,}")
"""Text that may be an encoded secret."""


Find = Callable[[MessageContext, Turn, str, int], Sequence[OfferedFunction]]
"""At most so many functions that match a text and that a model may call here for the sender, best first."""
ApprovedSince = Callable[[MessageContext, str, datetime], Awaitable[Sequence[JsonObject]]]
"""Arguments of runs of a function that were approved since a time for the sender of a message in its chat."""


class Doubt(StrEnum):
    """Reason why a call needs a question."""

    FUNCTION = "function"
    """The asker's words select another function, or none."""
    VALUE = "value"
    """The asker did not name a value."""
    MEMBERS = "members"
    """The function acts on other members."""
    NO_VALUE = "no_value"
    """The function has no value that the asker could have named."""
    ADDRESS = "address"
    """The asker did not name the host of a web address."""
    SECRET = "secret"  # noqa: S105 - not a password
    """It would send data from this chat to another service."""


class Unvouched(NamedTuple):
    """A call that the asker's words do not stand for."""

    doubt: Doubt
    parameter: str = ""


async def _none_approved(asker: MessageContext, function: str, since: datetime) -> Sequence[JsonObject]:
    return ()


class Vouching:
    """Approval policy: the rules for approvals, and vouching for calls that a model wrote."""

    def __init__(self, approvals: Approvals, find: Find, approved: ApprovedSince = _none_approved) -> None:
        self._approvals = approvals
        self._find = find
        self._approved = approved

    def judge(
        self, request: CallRequest, spec: FunctionSpec, arguments: Any
    ) -> PolicyDecision | Awaitable[PolicyDecision]:
        """ALLOWED if no rule requires an approval and the asker's words stand for the call or need not; otherwise one
        question for both, with the concrete values."""
        if is_judged(request, spec):
            return self._judged(request, spec, arguments)
        return self._approvals.judge(request, spec, arguments)

    async def _judged(self, request: CallRequest, spec: FunctionSpec, arguments: Any) -> PolicyDecision:
        turn, values = request.turn, spec.arguments.dump(arguments)
        doubt = await self.unvouched(request, spec, values)
        if doubt is None:
            turn.memory.vouched |= {spec.name}
            return self._approvals.judge(request, spec, arguments)
        rule = self._approvals.rule(request.context.chat, spec, turn.input.profile())
        rule = self._approvals.unvouched if rule is None else rule.with_all_of(self._approvals.unvouched)
        decision = self._approvals.decide(request, spec, arguments, rule, for_always=False)
        if decision.refusal is None or decision.refusal.question is None:
            return decision
        return replace(decision, refusal=replace(decision.refusal, metadata={UNVOUCHED: doubt.doubt.value}))

    async def unvouched(self, request: CallRequest, spec: FunctionSpec, values: JsonObject) -> Unvouched | None:
        """Reason why the asker's words do not stand for the call; None if they do."""
        now, words = await self._words(request)
        if spec.execution.effect is Effect.READ and Touch.REACHES_OUT not in spec.execution.touches:
            return await _leaks(request, spec, values, words)
        if Touch.AFFECTS_MEMBERS in spec.execution.touches:
            return Unvouched(Doubt.MEMBERS)
        doubt = self._doubt(now, words, request, spec, values)
        # An approval does not vouch for the run that it approves.
        if doubt is None or request.turn.memory.approved is not None:
            return doubt
        context = request.context
        approved = await self._approved(context, spec.name, context.sent_at - _RECENT)
        return self._doubt(now, replace(words, approved=approved), request, spec, values) if approved else doubt

    def _doubt(
        self, now: AskersWords, words: AskersWords, request: CallRequest, spec: FunctionSpec, values: JsonObject
    ) -> Unvouched | None:
        """Reason why an effect is in doubt: the asker's words select another function, or name not all values."""
        if not self._selects(now, request, spec) and not self._continues(now, words, request, spec, values):
            return Unvouched(Doubt.FUNCTION)
        return _unnamed(spec, values, words)

    async def _words(self, request: CallRequest) -> tuple[AskersWords, AskersWords]:
        """The asker's words of this request, and those together with their earlier words of the last ten minutes."""
        context, turn = request.context, request.turn
        zone = turn.input.profile().timezone
        at = turn.memory.asked_at or context.sent_at
        texts = [own for text in reversed(turn.memory.words) if (own := own_text(text))]
        since, asker = (at - _RECENT).timestamp() * 1000, context.sender.ref.key
        before = [
            own_text(line.text)
            for line in reversed(await turn.input.history.lines())
            if line.sender == asker and not line.from_bot and line.at_ms >= since
        ]
        members = mentioned(context)
        now = AskersWords(texts, at.astimezone(zone), members)
        return now, AskersWords([*texts, *before], now.now, members)

    def _selects(self, words: AskersWords, request: CallRequest, spec: FunctionSpec) -> bool:
        """Whether the words name the function, or the text index ranks it first for them or for a clause of them. A
        nested call is also selected by the outer function."""
        context, turn = request.context, request.turn
        language = turn.input.profile().texts.language
        specs = [spec] if request.outer is None else [spec, request.outer]
        names = {name for one in specs for name in (one.name, spoken_name(one, language), *one.command.words)}
        if any(words.contain("", name, {}) for name in names):
            return True
        for text in words.texts:
            for clause in dict.fromkeys((text, *(one.strip() for one in _CLAUSE.split(text)))):
                if clause and any(
                    one.original == spec.name for spec in specs for one in self._find(context, turn, clause, 1)
                ):
                    return True
        return False

    def _continues(
        self, now: AskersWords, words: AskersWords, request: CallRequest, spec: FunctionSpec, values: JsonObject
    ) -> bool:
        """Whether the message continues a recent request for the same function ("yes, for Tom too", "make it 9"): it
        names at least one value, and earlier words or approved arguments select the function."""
        named = [
            name
            for name, value in _sinks(spec, values)
            if value not in (None, "", [], {}) and now.contain(name, value, {})
        ]
        return bool(named) and (bool(words.approved) or self._selects(words, request, spec))


def is_judged(request: CallRequest, spec: FunctionSpec) -> bool:
    """Whether the call needs the asker's words: a model wrote it, it may affect more than this chat or send data out,
    and nobody has confirmed it or will be asked to. A run that continues was judged when it began."""
    if not request.by_model or not leaves_chat(spec) or request.key in request.turn.memory.resuming:
        return False
    if request.uncertain or spec.access.confirm or request.confirmed:
        return request.turn.memory.approved is not None
    return True


def _sinks(spec: FunctionSpec, values: JsonObject) -> Iterable[tuple[str, Any]]:
    """Arguments that say who is affected, what is moved and where it goes: the declared ones, else all texts and
    numbers."""
    declared = spec.access.sinks
    for name, value in values.items():
        if name in declared if declared else any(not isinstance(leaf, bool) for leaf in leaves(value)):
            yield name, value


def _unnamed(spec: FunctionSpec, values: JsonObject, words: AskersWords) -> Unvouched | None:
    """The first sink argument that the asker did not name; None if all are named."""
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    found = list(_sinks(spec, values))
    if not found:
        return Unvouched(Doubt.NO_VALUE)
    for name, value in found:
        if not words.contain(name, value, properties.get(name, {})):
            return Unvouched(Doubt.VALUE, name)
    return None


async def _leaks(request: CallRequest, spec: FunctionSpec, values: JsonObject, words: AskersWords) -> Unvouched | None:
    """Reason why a read that sends its arguments out may carry data of the chat with it; None if it cannot."""
    turn = request.turn
    own = " ".join(words.texts).casefold()
    found = {host for url in turn.memory.found_urls if (host := _host_of(url))}
    private: str | None = None
    for name, value in values.items():
        for leaf in leaves(value):
            text = str(leaf)
            hosts = {host for url in _URL.findall(text) if (host := _host_of(url))}
            if not hosts and _HOST.fullmatch(text):
                hosts = {text.casefold()}
            if any(host not in found and not _names_host(own, host) for host in hosts):
                return Unvouched(Doubt.ADDRESS, name)
            if any(url not in turn.memory.found_urls and url.casefold() not in own for url in _URL.findall(text)):
                # The host is known, but the path or the query may carry anything.
                text = re.sub(r"[/?&=#%+]", " ", text)
            if private is None:
                private = await _chat_data(request)
            if _repeats(text, private, own, {*hosts, *found}):
                return Unvouched(Doubt.SECRET, name)
    return None


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url if "://" in url else f"http://{url}").hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _names_host(own: str, host: str) -> bool:
    pattern = rf"(?<![\w.-]){re.escape(host.removeprefix('www.'))}(?![\w-])"
    return re.search(pattern, own.replace("www.", "")) is not None


async def _chat_data(request: CallRequest) -> str:
    """Texts that the service behind the call may not know: results of this turn, messages of others, quoted text and
    notes of scripts."""
    context, turn = request.context, request.turn
    asker = context.sender.ref.key
    lines = [line.text for line in await turn.input.history.lines() if line.sender != asker]
    quoted = [context.reply_to.text] if context.reply_to is not None else []
    notes = [note.words for note in turn.input.profile().notes]
    return "\n".join((*turn.memory.private_texts, *lines, *quoted, *notes)).casefold()


def _repeats(text: str, private: str, own: str, hosts: set[str]) -> bool:
    """Whether `text` has a word that comes from `private` data and not from the asker, or that may be encoded data."""
    known, others = set(terms(own)), set(terms(private))
    for token in _TOKEN.findall(text):
        folded = token.casefold()
        if folded in own or folded in hosts:
            continue
        if _ENCODED.fullmatch(token):
            return True
        if any(term in others and term not in known and len(term) >= _LEAST_TERM for term in terms(token)):
            return True
    return False
