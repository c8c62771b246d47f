"""Shortlist: selects the functions that a model is offered if there are many. It limits requests, not permissions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
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
from services.llm.model import Offer, OfferedFunction
from services.refs import ChatRef

_MOST_CHATS = 5000
_WELL_SHARE = 0.4
"""Share of the best score from which a function is a good match; below it is a weak match."""
_RAN_FIRST = 4
"""Number of recently run functions that precede weak matches, because follow-up messages often mean them."""


_MOST_ACTIVE = 60
"""Maximum number of activated functions in every request; functions of larger groups must be searched for."""


class Offered(NamedTuple):
    """Functions on offer in a round."""

    sent: Offer
    """The offer in the request."""
    everything: Offer
    """All functions that the sender may call here."""


@dataclass(slots=True)
class _ChatList:
    """Functions on offer in a chat after the pinned ones, in order of addition. The order is stable, so that providers
    can cache the beginning of requests."""

    turn_id: str = ""
    turns: int = 0
    names: dict[str, None] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    """Number of the turn when each of `names` last matched or ran."""
    ran: dict[str, int] = field(default_factory=dict)
    """Number of the turn when a function last ran, latest last."""
    sent: Offer | None = None
    """The latest offer; None after a change of `names`."""
    sent_by: Mapping[str, OfferedFunction] | None = None
    """Functions before `names` in that offer."""
    sent_of: ref[Offer] | None = None
    """Permitted functions of that offer. Weak, so that inactive chats do not keep removed functions alive."""

    def note_run(self, name: str) -> None:
        """Record that a function ran or was found here, and list it."""
        self.ran.pop(name, None)
        self.ran[name] = self.wanted[name] = self.turns
        if name not in self.names:
            self.names[name] = None
            self.sent = None

    def choose(
        self, good_matches: Sequence[str], weak_matches: Sequence[str], is_free: Callable[[str], bool], most: int
    ) -> None:
        """List the functions that match the message, well or weakly, and previous ones up to `most` in total. `is_free`
        selects the functions that may be listed."""
        fresh = dict.fromkeys(filter(is_free, (*good_matches, *weak_matches)), self.turns)
        self.wanted.update(fresh)
        if len(self.names) <= most and all(name in self.names for name in fresh):
            return
        lately = islice(filter(is_free, reversed(self.ran)), _RAN_FIRST)
        held = sorted(self.names, key=lambda name: -self.wanted[name])
        names = dict.fromkeys(
            islice(filter(is_free, dict.fromkeys((*good_matches, *lately, *weak_matches, *held))), most)
        )
        self.names = {name: None for name in (*self.names, *names) if name in names}
        wanted = {**self.ran, **self.wanted}
        self.wanted = {name: wanted[name] for name in names}
        self.sent = None

    def forget(self, before: int) -> None:
        """Remove functions that have neither matched nor run since turn number `before`."""
        if all(turn >= before for turn in (*self.wanted.values(), *self.ran.values())):
            return
        self.wanted = {name: turn for name, turn in self.wanted.items() if turn >= before}
        self.ran = {name: turn for name, turn in self.ran.items() if turn >= before}
        self.names = {name: None for name in self.names if name in self.wanted}
        self.sent = None


ChatLists = OrderedDict[ChatRef, _ChatList]
"""Lists of recently active chats, latest last."""


class Shortlist:
    """Selects the functions for each message and keeps a stable list per chat."""

    def __init__(
        self, settings: RouterSettings, *, chats_kept: int = _MOST_CHATS, lists: ChatLists | None = None
    ) -> None:
        """`lists`: existing lists of chats, which are updated in place."""
        self._most = settings.shortlist
        self._few = max(settings.shortlist, settings.shortlist_above)
        self._turns_kept = settings.shortlist_turns
        self._pinned = settings.pinned
        self._chats_kept = chats_kept
        self._chats: ChatLists = OrderedDict() if lists is None else lists
        self._heads: WeakKeyDictionary[Offer, Mapping[str, OfferedFunction]] = WeakKeyDictionary()

    def offer(self, context: MessageContext, turn: Turn, wanted: str = "") -> Offered:
        """Pinned functions, the search function and those that match the message; all functions if there are few. Also
        includes functions found in this turn and the one with the offered name `wanted`."""
        # Permissions are checked now, because functions listed earlier may no longer be permitted.
        everything = offered_here(context, turn)
        if not self._is_needed(len(everything.functions)):
            return Offered(everything, everything)
        chat, head = self._chat(context.chat), self._head(turn.input.functions, everything)
        if chat.turn_id != turn.input.id:
            chat.turn_id = turn.input.id
            self._begin_turn(chat, turn.input.functions, context.text, everything)
        permitted = everything.by_name
        for name in (*turn.memory.state.get(FOUND, ()), wanted):
            if name in permitted and name not in head and name not in chat.names:
                chat.note_run(name)
        if chat.sent is None or chat.sent_of is None or chat.sent_of() is not everything or chat.sent_by is not head:
            listed = [permitted[name] for name in chat.names if name in permitted and name not in head]
            chat.sent, chat.sent_of = turn.input.functions.offer_of((*head.values(), *listed)), ref(everything)
            chat.sent_by = head
        return Offered(chat.sent, everything)

    def note_run(self, context: MessageContext, turn: Turn, spec: FunctionSpec) -> None:
        """Record that `spec` ran in the chat, so that it stays on offer."""
        if self._is_needed(len(turn.input.functions.specs)):
            self._chat(context.chat).note_run(turn.input.functions.offered_name(spec.name))

    def prepare(self, functions: BotFunctions) -> None:
        """Build the search index before the first message."""
        if self._is_needed(len(functions.specs)):
            functions.search.rank("", 1)

    def _is_needed(self, count: int) -> bool:
        return self._most > 0 and count > self._few

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
                found[finder.name] = replace(finder, description=description_naming(others))
            found.update(islice(asked_for.items(), _MOST_ACTIVE))
            head = self._heads[everything] = found
        return head

    def _begin_turn(self, chat: _ChatList, functions: BotFunctions, text: str, everything: Offer) -> None:
        chat.turns += 1
        chat.forget(chat.turns - self._turns_kept)
        head = self._head(functions, everything)
        fitting = _fitting(functions, everything, text, self._most + len(head))
        enough = _WELL_SHARE * fitting[0][1] if fitting else 0.0
        chat.choose(
            [one.name for one, score in fitting if score >= enough],
            [one.name for one, score in fitting if score < enough],
            lambda name: name in everything.by_name and name not in head,
            self._most,
        )


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
