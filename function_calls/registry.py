"""Registry of function specs. A snapshot is what one turn sees from start to end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from pydantic import BaseModel, Field

from config.diagnostics import Diagnostic
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.encodings import offered_names
from function_calls.schema.arguments import ModelArguments
from function_calls.schema.commands import CommandPlan, is_command_word, is_speech, plan_for
from function_calls.schema.definition import Code, DefinitionError, build_spec, problem_at
from function_calls.schema.mappings import specs_of_module
from function_calls.schema.model_schema import told
from function_calls.spec import (
    Activation,
    FunctionResult,
    FunctionSpec,
    OfferedTo,
    Takeable,
    ToolGroup,
    Touch,
    source_of,
)
from services.llm.model import Offer, OfferedFunction
from services.llm.offline.function_search import FunctionSearch, search_of
from services.refs import Effect


class TakenNames:
    """Who has which name or command. Functions of different bots may share them."""

    def __init__(self) -> None:
        self._takers: dict[tuple[str, str], list[FunctionSpec | ToolGroup]] = {}

    def clashes(self, one: FunctionSpec | ToolGroup) -> list[str]:
        """What `one` would take that another has, each with both places. Empty: it may be taken."""
        wanted = _wanted(one)
        if self._takers.keys().isdisjoint(wanted):
            return []
        return [
            f"{kind} {word!r} is taken twice: by {_place(other)} and by {_place(one)}"
            for kind, word in wanted
            for other in self._takers.get((kind, word), ())
            if None in (_bot(other), _bot(one)) or _bot(other) == _bot(one)
        ]

    def take(self, one: FunctionSpec | ToolGroup) -> None:
        """From now on these are those of `one`."""
        for wanted in _wanted(one):
            self._takers.setdefault(wanted, []).append(one)


def _wanted(one: FunctionSpec | ToolGroup) -> Sequence[tuple[str, str]]:
    """A group is called by its name as a function is, so the two share their names."""
    commands = one.command.words if isinstance(one, FunctionSpec) else ()
    return [("name", one.name), *(("command", word) for word in commands)]


def _bot(one: FunctionSpec | ToolGroup) -> str | None:
    return one.access.bot if isinstance(one, FunctionSpec) else one.bot


def _place(one: FunctionSpec | ToolGroup) -> str:
    source = source_of(one)
    return f"{one.name} ({source})" if source else one.name


_NOTHING: frozenset[str] = frozenset()


class OnRequest:
    """All that the functions and groups of one bot give to be taken to hand. Frozen with them."""

    def __init__(self, specs: Sequence[FunctionSpec], groups: Iterable[ToolGroup]) -> None:
        self._specs = specs
        by_request = [spec for spec in specs if spec.prompt.activation is Activation.ON_REQUEST]
        found = [self._of_group(group) for group in groups]
        named = {one.name for one in found}
        # A group that is only spoken of by its functions is one all the same.
        implied = dict.fromkeys(name for spec in by_request for name in sorted(spec.prompt.groups) if name not in named)
        found += [self._of_group(ToolGroup(name, "", ())) for name in implied]
        grouped = {one.name for one in found}
        found += [
            Takeable(spec.name, spec.description, (spec.name,), is_group=False)
            for spec in by_request
            if spec.name not in grouped and OfferedTo.MODEL in spec.access.offered_to
        ]
        self.takeable: Mapping[str, Takeable] = MappingProxyType({one.name: one for one in found})
        """By their names: groups first, then functions."""
        self._by_word = {one.name.casefold(): one for one in reversed(found)}
        ways: dict[str, set[str]] = {spec.name: {spec.name} for spec in by_request}
        for one in found:
            for name in one.functions:
                ways.get(name, set()).add(one.name)
        self._ways = {name: frozenset(by) for name, by in ways.items()}

    def find(self, word: str) -> Takeable | None:
        """What is called so, in any case."""
        return self.takeable.get(word) or self._by_word.get(word.casefold())

    def is_at_hand(self, spec: FunctionSpec, at_hand: Collection[str]) -> bool:
        """Whether a model is offered `spec` where these names are at hand."""
        return spec.prompt.activation is Activation.ALWAYS or not self._ways.get(spec.name, _NOTHING).isdisjoint(
            at_hand
        )

    def prompts(self, at_hand: Collection[str]) -> str:
        """What a model is told of the groups that are at hand; empty where they have nothing to say."""
        if not at_hand:
            return ""
        told = (one for name, one in self.takeable.items() if name in at_hand and one.system_prompt.strip())
        return "\n\n".join(f"### {one.name}\n{one.system_prompt.strip()}" for one in told)

    def _of_group(self, group: ToolGroup) -> Takeable:
        listed = frozenset(group.functions)
        members = tuple(spec.name for spec in self._specs if spec.name in listed or group.name in spec.prompt.groups)
        return Takeable(group.name, group.description, members, group.system_prompt)


NAME = "find_functions"
FOUND = "found_functions"
"""The key of a turn's state under which the names of what was found stand: they are on offer in the rounds after."""
_MOST = 8
_LONGEST_LIST = 1200
"""Characters of all names together."""
_DESCRIPTION = (
    "Find functions that are not listed here; what is found can be called afterwards. "
    "Search before saying that something cannot be done."
)


class FindArguments(BaseModel, frozen=True):
    """What to find."""

    query: str = Field(max_length=300, description="What is to be done, in a few words")


async def _find(context: MessageContext, args: FindArguments, call: Call) -> FunctionResult:
    """Name the functions that fit `query`, of those that the sender may call here."""
    functions = call.find(args.query, _MOST)
    if not functions:
        return FunctionResult.say(call.say("find_functions.nothing"))
    names = dict.fromkeys((*call.state.get(FOUND, ()), *(function.name for function in functions)))
    told = [{"name": function.name, "description": function.description} for function in functions]
    return FunctionResult(data=told, context_updates={FOUND: list(names)})


_ARGUMENTS = ModelArguments(FindArguments)
FIND_FUNCTIONS = build_spec(
    name=NAME,
    description=_DESCRIPTION,
    handler=_find,
    arguments=_ARGUMENTS,
    parameters=_ARGUMENTS.schema,
    options={"effect": "read", "offered_to": ["model"]},
    source="function_calls/registry.py:1",
)


def description_naming(names: Iterable[str]) -> str:
    """What a model is told of it, with the names of all that there is where the list is short: a name is often enough
    to know what to search for."""
    listed = ", ".join(names)
    return f"{_DESCRIPTION} All there are: {listed}." if len(listed) <= _LONGEST_LIST else _DESCRIPTION


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
        self.beginning = next((spec for spec in self.specs if spec.begins_chats), None)
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
            for word in spec.command.words:
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
        return [spec for spec in self.specs if tag in spec.origin.tags]

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
        return CommandLine(spec, plan, folded, rest, is_bare)

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
                self._offered[spec.name] for spec in self.specs if OfferedTo.MODEL in spec.access.offered_to
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
            examples=spec.prompt.examples,
            writes=spec.execution.effect is not Effect.READ,
            commands=spec.command.words,
            system_prompt=spec.prompt.system_prompt,
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
        self._left_out: Sequence[Diagnostic] = ()

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
        published = (list(specs), tuple(groups))
        if self._sources.get(source) == published:
            return self._left_out
        self._sources[source] = published
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
                if clashes and isinstance(one, FunctionSpec) and one.command.words == (one.name.casefold(),):
                    # Its command is but its name: without that it can be called by models and by other functions.
                    without = replace(one, command=replace(one.command, words=()))
                    if not taken.clashes(without):
                        told = [problem_at(one.origin.source, clash, Code.TAKEN) for clash in clashes]
                        left_out += [replace(problem, severity="warning") for problem in told]
                        one, clashes = without, []
                if clashes:
                    left_out += [problem_at(source_of(one), clash, Code.TAKEN) for clash in clashes]
                    continue
                taken.take(one)
                if isinstance(one, FunctionSpec):
                    specs.append(one)
                else:
                    groups.append(one)
        self._taken, self._specs, self._groups, self._bots = taken, specs, groups, {}
        self._left_out = left_out
        return left_out

    def of(self, bot: str) -> BotFunctions:
        """The snapshot for one bot: its own functions and those of all bots."""
        functions = self._bots.get(bot)
        if functions is None:
            functions = BotFunctions(
                (spec for spec in self._specs if spec.access.bot is None or spec.access.bot == bot),
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
        return any(spec.origin.source.rpartition(":")[0] == file for spec in self._specs)

    @property
    def groups(self) -> tuple[ToolGroup, ...]:
        """Every group, source after source."""
        return tuple(self._groups)


def _is_said(spec: FunctionSpec, rest: str, *, is_clear: bool) -> bool:
    """Whether bare words of `spec` before `rest` are rather speech than a command. `is_clear`: two words, with which a
    sentence that is none begins less often."""
    if Touch.SENDS_OUT in spec.execution.touches:
        return True
    if not rest.strip():
        return False
    if spec.execution.effect is not Effect.READ or spec.command.immediate:
        return not is_clear
    return is_speech(rest)


def _first_word(text: str) -> tuple[str, str]:
    """The word that `text` begins with, up to white space of any script, and what follows it."""
    pieces = text.split(None, 1)
    if not pieces or text[0].isspace():
        return "", ""
    return pieces[0], pieces[1] if len(pieces) == 2 else ""
