"""Selection of the functions that a model is offered. It limits requests, not permissions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple
from weakref import WeakKeyDictionary, ref

from config.settings import RouterSettings
from function_calls.checks.permissions import offered_here
from function_calls.context import MessageContext
from function_calls.registry import FOUND, BotFunctions, description_naming
from function_calls.spec import Activation, FunctionSpec
from function_calls.turn import Turn
from services.llm.encoding import offer_tokens, tokens_of
from services.llm.model import Offer, OfferedFunction
from services.refs import ChatRef

_MOST_CHATS = 5000
MATCHES = 12
"""Maximum number of functions that a message adds."""
_GOOD_SHARE = 0.25
"""Share of the best score below which a match is not added."""
_CORE_SHARE = 2 / 3
"""Share of the limits that is filled without regard to the message; the rest is left for matches."""
_UNLIMITED = 10**9
_MOST_ACTIVE = 60
"""Maximum number of activated functions in every request; functions of larger groups must be searched for."""


class Offered(NamedTuple):
    """Functions on offer in a round."""

    sent: Offer
    """The offer in the request."""
    everything: Offer
    """All functions that the sender may call here."""


class _Limits(NamedTuple):
    """Maximum number and estimated tokens of the functions after the pinned ones."""

    most: int
    tokens: int

    def fitting(self, functions: Iterable[OfferedFunction]) -> list[str]:
        """Names of the first `functions` that fit together, in order."""
        names: list[str] = []
        tokens = 0
        for one in functions:
            tokens += tokens_of(one)
            if len(names) == self.most or tokens > self.tokens:
                break
            names.append(one.name)
        return names


@dataclass(slots=True)
class _ChatList:
    """Functions on offer in a chat after the pinned ones. New ones are appended, so that providers can cache the
    beginning of requests; when the limits are reached, the list is built again from those that the chat uses most."""

    turn_id: str = ""
    names: dict[str, None] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    """Number of runs by function, latest last; halved whenever the list is built again."""
    sent: Offer | None = None
    """The latest offer; None after a change of `names`."""
    sent_by: Mapping[str, OfferedFunction] | None = None
    """Functions before `names` in that offer."""
    sent_of: ref[Offer] | None = None
    """Permitted functions of that offer. Weak, so that inactive chats do not keep removed functions alive."""

    def note_run(self, name: str) -> None:
        """Record that a function ran here, and list it."""
        self.runs[name] = self.runs.pop(name, 0) + 1
        if self.turn_id:
            self.add([name])

    def add(self, names: Iterable[str]) -> None:
        """Append those of `names` that are not listed."""
        before = len(self.names)
        self.names.update(dict.fromkeys(names))
        if len(self.names) > before:
            self.sent = None

    def choose(self, matches: Sequence[str], permitted: Mapping[str, OfferedFunction], limits: _Limits) -> None:
        """Append `matches`. If that exceeds `limits`, list the functions of `permitted` that ran most here and others
        in their order, up to two thirds of the limits, and as many of `matches` as fit."""
        names = [name for name in dict.fromkeys((*self.names, *matches)) if name in permitted]
        if self.names and len(limits.fitting(permitted[name] for name in names)) == len(names):
            self.add(matches)
            return
        most_used = sorted(self.runs, key=self.runs.__getitem__)[::-1]
        ordered = dict.fromkeys((*(name for name in most_used if name in permitted), *permitted))
        core_limits = _Limits(int(limits.most * _CORE_SHARE), int(limits.tokens * _CORE_SHARE))
        core = {*core_limits.fitting(permitted[name] for name in ordered)}
        listed = [*(name for name in permitted if name in core), *(name for name in matches if name not in core)]
        self.names = dict.fromkeys(limits.fitting(permitted[name] for name in listed))
        self.runs = {name: runs // 2 for name, runs in self.runs.items() if runs > 1}
        self.sent = None


ChatLists = OrderedDict[ChatRef, _ChatList]
"""Lists of recently active chats, latest last."""


class Shortlist:
    """Selects the functions for each message: all while they are within the limits, else a stable list per chat."""

    def __init__(
        self, settings: RouterSettings, *, chats_kept: int = _MOST_CHATS, lists: ChatLists | None = None
    ) -> None:
        """`lists`: existing lists of chats, which are updated in place."""
        self._most = settings.shortlist
        self._few = settings.shortlist_above
        self._tokens = settings.function_tokens
        self._pinned = settings.pinned
        self._chats_kept = chats_kept
        self._chats: ChatLists = OrderedDict() if lists is None else lists
        self._heads: WeakKeyDictionary[Offer, Mapping[str, OfferedFunction]] = WeakKeyDictionary()

    def offer(self, context: MessageContext, turn: Turn, wanted: str = "") -> Offered:
        """All functions if they are within the limits. Else the pinned ones, the search function, those that the chat
        uses most, and those that match its messages. Also includes functions found in this turn and the one with the
        offered name `wanted`."""
        # Permissions are checked now, because functions listed earlier may no longer be permitted.
        everything = offered_here(context, turn)
        if self._fits(everything):
            return Offered(everything, everything)
        chat, head = self._chat(context.chat), self._head(turn.input.functions, everything)
        permitted = everything.by_name
        if chat.turn_id != turn.input.id:
            chat.turn_id = turn.input.id
            # An answer to a question does not say which functions are wanted.
            if not (turn.memory.resumed and chat.names):
                self._begin_turn(chat, turn.input.functions, context.text, everything)
        found = (*turn.memory.state.get(FOUND, ()), wanted)
        chat.add(name for name in found if name in permitted and name not in head)
        if chat.sent is None or chat.sent_of is None or chat.sent_of() is not everything or chat.sent_by is not head:
            listed = [permitted[name] for name in chat.names if name in permitted and name not in head]
            chat.sent, chat.sent_of = turn.input.functions.offer_of((*head.values(), *listed)), ref(everything)
            chat.sent_by = head
        return Offered(chat.sent, everything)

    def note_run(self, context: MessageContext, turn: Turn, spec: FunctionSpec) -> None:
        """Record that `spec` ran in the chat, so that it stays on offer."""
        functions = turn.input.functions
        if not self._fits(functions.for_models):
            self._chat(context.chat).note_run(functions.offered_name(spec.name))

    def prepare(self, functions: BotFunctions) -> None:
        """Build the search index before the first message."""
        if not self._fits(functions.for_models):
            functions.search.rank("", 1)

    def _fits(self, everything: Offer) -> bool:
        is_few = not self._most or len(everything.functions) <= self._few
        return is_few or offer_tokens(everything) <= self._tokens

    def _chat(self, chat: ChatRef) -> _ChatList:
        known = self._chats.get(chat)
        if known is None:
            known = self._chats[chat] = _ChatList()
            if len(self._chats) > self._chats_kept:
                self._chats.popitem(last=False)
        else:
            self._chats.move_to_end(chat)
        return known

    def _head(self, functions: BotFunctions, everything: Offer) -> Mapping[str, OfferedFunction]:
        """Common beginning of all offers for senders who may call `everything`."""
        head = self._heads.get(everything)
        if head is None:
            names = [functions.offered_name(name) for name in self._pinned]
            found = {name: everything.by_name[name] for name in names if name in everything.by_name}
            # Activated functions come last so that the order of the others is stable.
            asked_for = {one.name: one for one in everything.functions if _is_on_request(functions, one)}
            finder = functions.finder
            if finder is not None:
                others = [name for name in everything.by_name if name not in asked_for]
                found[finder.name] = replace(finder, description=description_naming(others), encoded={})
            found.update(islice(asked_for.items(), _MOST_ACTIVE))
            head = self._heads[everything] = found
        return head

    def _begin_turn(self, chat: _ChatList, functions: BotFunctions, text: str, everything: Offer) -> None:
        head = self._head(functions, everything)
        fitting = _fitting(functions, everything, text, MATCHES + len(head))
        enough = _GOOD_SHARE * fitting[0][1] if fitting else 0.0
        matches = [one.name for one, score in fitting if score >= enough and one.name not in head]
        others = {name: one for name, one in everything.by_name.items() if name not in head}
        tokens = self._tokens - sum(map(tokens_of, head.values())) if self._tokens else _UNLIMITED
        limits = _Limits(self._most, tokens)
        chat.choose(matches[:MATCHES], others, limits)


def _is_on_request(functions: BotFunctions, one: OfferedFunction) -> bool:
    spec = functions.find(one.original)
    return spec is not None and spec.prompt.activation is Activation.ON_REQUEST


def found_here(context: MessageContext, turn: Turn, text: str, most: int) -> list[OfferedFunction]:
    """At most `most` functions that a model may call here for the sender and that match `text`, best first."""
    return [one for one, _ in _fitting(turn.input.functions, offered_here(context, turn), text, most)]


def _fitting(functions: BotFunctions, permitted: Offer, text: str, most: int) -> list[tuple[OfferedFunction, float]]:
    """Permitted functions that match `text`, with their scores, best first."""
    search, by_name = functions.search, permitted.by_name
    if len(by_name) == len(search.functions):
        return search.rank(text, most)
    return search.rank(text, most, among=lambda one: one.name in by_name)
