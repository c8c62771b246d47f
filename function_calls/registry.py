"""All function specs: a registry collects them, a snapshot is what one turn sees from start to end."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import NamedTuple

from config.diagnostics import Diagnostic
from function_calls.beginning import begins_chats
from function_calls.commands import CommandPlan, is_command_word, is_speech, plan_for
from function_calls.definition import DefinitionError
from function_calls.definition_faults import Code, fault
from function_calls.encodings import offered_names
from function_calls.find_functions import FIND_FUNCTIONS
from function_calls.groups import ToolGroup
from function_calls.on_request import OnRequest
from function_calls.schema_told import told
from function_calls.sources.mappings import specs_of_module
from function_calls.spec import FunctionSpec, OfferedTo, Touch
from function_calls.taken_names import TakenNames
from services.llm.function_search import FunctionSearch, search_of
from services.llm.model import Offer, OfferedFunction
from services.refs import Effect

_OFFERS_KEPT = 1024


class CommandLine(NamedTuple):
    """A message that starts with the word of a function."""

    spec: FunctionSpec
    plan: CommandPlan
    word: str
    rest: str
    """What follows the word, as typed."""
    is_bare: bool
    """Without a slash: it may also be plain speech that happens to begin with this word."""


class BotFunctions:
    """The functions of one bot, frozen: found by name or by command word in constant time."""

    def __init__(self, specs: Iterable[FunctionSpec], groups: Iterable[ToolGroup] = ()) -> None:
        self.specs = tuple(specs)
        """In the order of registration, which is the order in which they are offered."""
        self.groups: Mapping[str, ToolGroup] = {group.name: group for group in groups}
        """By their names."""
        self.on_request = OnRequest(self.specs, self.groups.values())
        """What chats may take to hand."""
        self.beginning = next(filter(begins_chats, self.specs), None)
        """The one that runs once when a chat begins; None where there is none."""
        self._by_name = {spec.name: spec for spec in self.specs}
        self._offered_names = offered_names([spec.name for spec in self.specs])
        self._by_offered_name = {offered: self._by_name[name] for name, offered in self._offered_names.items()}
        self._offered = {spec.name: self._as_offered(spec) for spec in self.specs}
        self._search: FunctionSearch | None = None
        self._commands: dict[str, tuple[FunctionSpec, CommandPlan]] = {}
        self._first_words: set[str] = set()
        for spec in self.specs:
            plan = plan_for(spec)
            for word in spec.commands:
                if not all(map(is_command_word, word.split(" "))):
                    continue
                self._commands[word] = (spec, plan)
                if " " in word:
                    self._first_words.add(word.split(" ", 1)[0])
        self._offers: dict[tuple[int, ...], Offer] = {}
        self._offers_for: dict[tuple[Hashable, int], tuple[Mapping[str, object], Offer]] = {}

    def find(self, name: str) -> FunctionSpec | None:
        """The function of that name, or offered under that name."""
        found = self._by_name.get(name) or self._by_offered_name.get(name)
        return FIND_FUNCTIONS if found is None and name == FIND_FUNCTIONS.name else found

    def by_tag(self, tag: str) -> list[FunctionSpec]:
        """The functions that bear `tag`."""
        return [spec for spec in self.specs if tag in spec.tags]

    def command_line(self, text: str, *, bare: bool) -> CommandLine | None:
        """The command that `text` starts with: `/word …`, and also `word …` where `bare` words count. Two-word
        commands win over one-word ones. Any case; invisible characters never make a command. What is bare is speech,
        not a command, where the function would send it away, and one word before others where the function would
        change something or control the queue."""
        is_bare = not text.startswith("/")
        if is_bare and not bare:
            return None
        line = text if is_bare else text[1:]
        pieces = line.split(None, 1)  # `_first_word` without a call, for each command twice
        if not pieces or line[0].isspace():
            return None
        rest = pieces[1] if len(pieces) == 2 else ""
        # Case is all that is folded: what cannot be seen stays, and is in no command.
        folded = pieces[0].casefold()
        if folded in self._first_words:
            second, after = _first_word(rest)
            pair = f"{folded} {second.casefold()}"
            found = self._commands.get(pair)
            if found is not None and not (is_bare and _is_said(found[0], after, is_clear=True)):
                return CommandLine(found[0], found[1], pair, after, is_bare)
        found = self._commands.get(folded)
        if found is None:
            return None
        spec, plan = found
        if is_bare and _is_said(spec, rest, is_clear=False):
            return None
        return tuple.__new__(CommandLine, (spec, plan, folded, rest, is_bare))  # twice as fast as its own way

    @property
    def command_words(self) -> Sequence[str]:
        """Every command word."""
        return tuple(self._commands)

    def offer(self, specs: Sequence[FunctionSpec]) -> Offer:
        """`specs` as a model is offered them; the same set gives the same object, with its encoded bytes."""
        return self.offer_of([self._offered[spec.name] for spec in specs])

    def offer_of(self, functions: Sequence[OfferedFunction]) -> Offer:
        """These functions of this snapshot on offer; the same ones in the same order give the same object."""
        key = tuple(map(id, functions))
        offer = self._offers.get(key)
        if offer is None:
            if len(self._offers) >= _OFFERS_KEPT:
                self._offers.clear()
            offer = self._offers[key] = Offer(functions)
        return offer

    @property
    def finder(self) -> OfferedFunction | None:
        """The function that finds others, as a model is offered it; None where a registered one has its name."""
        return None if FIND_FUNCTIONS.name in self._by_offered_name else self._as_offered(FIND_FUNCTIONS)

    def offered_name(self, name: str) -> str:
        """The name under which the function of that name is offered."""
        return self._offered_names.get(name, name)

    @property
    def search(self) -> FunctionSearch:
        """Finds those of all functions that models may be offered; built when it is first asked for."""
        if self._search is None:
            self._search = search_of(
                self._offered[spec.name] for spec in self.specs if OfferedTo.MODEL in spec.offered_to
            )
        return self._search

    def offer_for(
        self, alike: Hashable, settings: Mapping[str, object], choose: Callable[[], Sequence[FunctionSpec]]
    ) -> Offer:
        """The offer of what `choose` gives, which is asked once for all who are `alike` under the same `settings`.
        These are compared by identity, since a chat keeps its object until they change; empty ones are all the same."""
        key = (alike, id(settings) if settings else 0)
        known = self._offers_for.get(key)
        if known is not None and (known[0] is settings or not settings):
            return known[1]
        if len(self._offers_for) >= _OFFERS_KEPT:
            self._offers_for.clear()
        offer = self.offer(choose())
        self._offers_for[key] = (settings, offer)
        return offer

    def _as_offered(self, spec: FunctionSpec) -> OfferedFunction:
        return OfferedFunction(
            name=self._offered_names.get(spec.name, spec.name),
            original=spec.name,
            description=spec.description,
            parameters=told(spec.parameters),
            examples=spec.examples,
            writes=spec.effect is not Effect.READ,
            commands=spec.commands,
            system_prompt=spec.system_prompt,
        )


class FunctionRegistry:
    """Collects what all sources publish. Within a bot a name or command belongs to the function that comes first, in
    the order of the sources; one that would take it too is left out until the first one is gone."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[list[FunctionSpec], tuple[ToolGroup, ...]]] = {}
        self._arranged: set[str] = set()
        self._taken = TakenNames()
        self._specs: list[FunctionSpec] = []
        self._groups: list[ToolGroup] = []
        self._bots: dict[str, BotFunctions] = {}

    def register_function(self, spec: FunctionSpec, source: str = "code") -> None:
        """Add one spec. Raises DefinitionError (a ValueError) for a duplicate."""
        self.register_functions([spec], source)

    def register_functions(self, specs: Iterable[FunctionSpec], source: str = "code") -> None:
        """Add specs: all of them, or none when one is a duplicate. Raises DefinitionError."""
        added, fresh = list(specs), TakenNames()
        problems: list[str] = []
        for spec in added:
            problems += [*self._taken.clashes(spec), *fresh.clashes(spec)]
            fresh.take(spec)
        if problems:
            raise DefinitionError("functions", problems)
        for spec in added:
            self._taken.take(spec)
        published = self._sources.setdefault(source, ([], ()))
        published[0].extend(added)
        self._specs.extend(added)
        self._bots = {}

    def register_module(self, module: ModuleType) -> None:
        """Add the functions of a module that has `tools()`. Raises DefinitionError."""
        self.register_functions(specs_of_module(module), module.__name__)

    def publish(
        self, source: str, specs: Iterable[FunctionSpec] = (), groups: Iterable[ToolGroup] = ()
    ) -> Sequence[Diagnostic]:
        """What `source` has now, in place of what it had before. A source keeps the place in the order that it got
        when it first published. Returns what is left out, of all sources, because something else has its name."""
        self._sources[source] = (list(specs), tuple(groups))
        return self._settle()

    def withdraw(self, source: str) -> Sequence[Diagnostic]:
        """`source` is gone, with its place in the order. Returns what is left out of the others."""
        self._sources.pop(source, None)
        self._arranged.discard(source)
        return self._settle()

    def arrange(self, sources: Sequence[str]) -> Sequence[Diagnostic]:
        """From now on these sources in this order, with what they have published, before what was registered in code.
        Those that were arranged before and are not among them are gone. Returns what is left out."""
        others = {name: published for name, published in self._sources.items() if name not in self._arranged}
        arranged = {name: self._sources.get(name, ([], ())) for name in sources}
        self._sources = {**arranged, **{name: one for name, one in others.items() if name not in arranged}}
        self._arranged = set(sources)
        return self._settle()

    def _settle(self) -> Sequence[Diagnostic]:
        """Give every name to who comes first."""
        taken = TakenNames()
        specs: list[FunctionSpec] = []
        groups: list[ToolGroup] = []
        left_out: list[Diagnostic] = []
        for published, named in self._sources.values():
            everything: list[FunctionSpec | ToolGroup] = [*published, *named]
            for one in everything:
                clashes = taken.clashes(one)
                if clashes and isinstance(one, FunctionSpec) and one.commands == (one.name.casefold(),):
                    # Its command is but its name: without that it can be called by models and by other functions.
                    without = replace(one, commands=())
                    if not taken.clashes(without):
                        told = [fault(one.source, clash, Code.TAKEN) for clash in clashes]
                        left_out += [replace(problem, severity="warning") for problem in told]
                        one, clashes = without, []
                if clashes:
                    left_out += [fault(one.source, clash, Code.TAKEN) for clash in clashes]
                    continue
                taken.take(one)
                if isinstance(one, FunctionSpec):
                    specs.append(one)
                else:
                    groups.append(one)
        self._taken, self._specs, self._groups, self._bots = taken, specs, groups, {}
        return left_out

    def of(self, bot: str) -> BotFunctions:
        """The snapshot for one bot: its own functions and those of all bots."""
        functions = self._bots.get(bot)
        if functions is None:
            functions = BotFunctions(
                (spec for spec in self._specs if spec.bot is None or spec.bot == bot),
                (group for group in self._groups if group.bot is None or group.bot == bot),
            )
            self._bots[bot] = functions
        return functions

    @property
    def specs(self) -> tuple[FunctionSpec, ...]:
        """Every spec, in the order of registration."""
        return tuple(self._specs)

    def serves_of(self, file: str) -> bool:
        """Whether functions of `file` can be called."""
        return any(spec.source.rpartition(":")[0] == file for spec in self._specs)

    @property
    def groups(self) -> tuple[ToolGroup, ...]:
        """Every group, source after source."""
        return tuple(self._groups)


def _is_said(spec: FunctionSpec, rest: str, *, is_clear: bool) -> bool:
    """Whether bare words of `spec` before `rest` are rather speech than a command. `is_clear`: two words, with which a
    sentence that is none begins less often."""
    if Touch.SENDS_OUT in spec.touches:
        return True
    if not rest.strip():
        return False
    if spec.effect is not Effect.READ or spec.immediate:
        return not is_clear
    return is_speech(rest)


def _first_word(text: str) -> tuple[str, str]:
    """The word that `text` begins with, up to white space of any script, and what follows it."""
    pieces = text.split(None, 1)
    if not pieces or text[0].isspace():
        return "", ""
    return pieces[0], pieces[1] if len(pieces) == 2 else ""
