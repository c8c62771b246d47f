"""Registry of function specs. Each turn uses one immutable snapshot."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
from function_calls.schema.model_schema import schema_for_model
from function_calls.spec import (
    Activatable,
    Activation,
    FunctionResult,
    FunctionSpec,
    OfferedTo,
    ToolGroup,
    Touch,
    source_of,
)
from services.llm.model import Offer, OfferedFunction
from services.llm.offline.function_search import FunctionSearch, search_of
from services.refs import Effect
from services.text_index import is_unspaced


class NameIndex:
    """Index of taken names and command words. Functions of different bots may share them."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], list[FunctionSpec | ToolGroup]] = {}

    def clashes(self, one: FunctionSpec | ToolGroup) -> list[str]:
        """Names and commands of `one` that are already taken, with both locations. Empty if it can be registered."""
        keys = _reserved_keys(one)
        if self._owners.keys().isdisjoint(keys):
            return []
        return [
            f"{kind} {word!r} is taken twice: by {_place(other)} and by {_place(one)}"
            for kind, word in keys
            for other in self._owners.get((kind, word), ())
            if None in (_bot(other), _bot(one)) or _bot(other) == _bot(one)
        ]

    def reserve(self, one: FunctionSpec | ToolGroup) -> None:
        """Reserve the names and commands of `one`."""
        for key in _reserved_keys(one):
            self._owners.setdefault(key, []).append(one)


def _reserved_keys(one: FunctionSpec | ToolGroup) -> Sequence[tuple[str, str]]:
    """Reserved keys. Functions and groups share one namespace, since both are called by name."""
    commands = one.command.words if isinstance(one, FunctionSpec) else ()
    return [("name", one.name), *(("command", word) for word in commands)]


def _bot(one: FunctionSpec | ToolGroup) -> str | None:
    return one.access.bot if isinstance(one, FunctionSpec) else one.bot


def _place(one: FunctionSpec | ToolGroup) -> str:
    source = source_of(one)
    return f"{one.name} ({source})" if source else one.name


_NOTHING: frozenset[str] = frozenset()


class ActivationIndex:
    """Immutable index of the functions and groups of a bot that chats can activate on request."""

    def __init__(self, specs: Sequence[FunctionSpec], groups: Iterable[ToolGroup]) -> None:
        self._specs = specs
        by_request = [spec for spec in specs if spec.prompt.activation is Activation.ON_REQUEST]
        found = [self._of_group(group) for group in groups]
        named = {one.name for one in found}
        # A group that only functions refer to is valid without a definition.
        implied = dict.fromkeys(name for spec in by_request for name in sorted(spec.prompt.groups) if name not in named)
        found += [self._of_group(ToolGroup(name, "", ())) for name in implied]
        grouped = {one.name for one in found}
        found += [
            Activatable(spec.name, spec.description, (spec.name,), is_group=False)
            for spec in by_request
            if spec.name not in grouped and OfferedTo.MODEL in spec.access.offered_to
        ]
        self.activatable: Mapping[str, Activatable] = MappingProxyType({one.name: one for one in found})
        """Groups, then functions, by name."""
        self._by_word = {one.name.casefold(): one for one in reversed(found)}
        activators: dict[str, set[str]] = {spec.name: {spec.name} for spec in by_request}
        for one in found:
            for name in one.functions:
                activators.get(name, set()).add(one.name)
        self._activators = {name: frozenset(by) for name, by in activators.items()}

    def find(self, word: str) -> Activatable | None:
        """Function or group of that name, matched without regard to case; None if unknown."""
        return self.activatable.get(word) or self._by_word.get(word.casefold())

    def is_active(self, spec: FunctionSpec, active: Collection[str]) -> bool:
        """Whether `spec` is offered to models in a chat with these active names."""
        return spec.prompt.activation is Activation.ALWAYS or not self._activators.get(spec.name, _NOTHING).isdisjoint(
            active
        )

    def prompts(self, active: Collection[str]) -> str:
        """Joined system prompts of the active groups, or empty."""
        if not active:
            return ""
        shown = (one for name, one in self.activatable.items() if name in active and one.system_prompt.strip())
        return "\n\n".join(f"### {one.name}\n{one.system_prompt.strip()}" for one in shown)

    def _of_group(self, group: ToolGroup) -> Activatable:
        listed = frozenset(group.functions)
        members = tuple(spec.name for spec in self._specs if spec.name in listed or group.name in spec.prompt.groups)
        return Activatable(group.name, group.description, members, group.system_prompt)


NAME = "find_functions"
FOUND = "found_functions"
"""Key of the turn state that holds the names of found functions, which are on offer in later rounds."""
_MOST = 8
_LONGEST_LIST = 1200
"""Limit of the list of names, in characters."""
_DESCRIPTION = (
    "Find functions that are not listed here; what is found can be called afterwards. "
    "Search before saying that something cannot be done."
)


class FindArguments(BaseModel, frozen=True):
    query: str = Field(max_length=300, description="What is to be done, in a few words")


async def _find(context: MessageContext, args: FindArguments, call: Call) -> FunctionResult:
    """Search the functions that the sender may call here for `query`."""
    functions = call.find(args.query, _MOST)
    if not functions:
        return FunctionResult.say(call.say("find_functions.nothing"))
    names = dict.fromkeys((*call.state.get(FOUND, ()), *(function.name for function in functions)))
    found = [{"name": function.name, "description": function.description} for function in functions]
    return FunctionResult(data=found, context_updates={FOUND: list(names)})


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
    """Description of `find_functions` for models. A short list of all names is included, because a name is often enough
    to know what to search for."""
    listed = ", ".join(names)
    return f"{_DESCRIPTION} All there are: {listed}." if len(listed) <= _LONGEST_LIST else _DESCRIPTION


_CACHED_OFFERS = 1024


class CommandLine(NamedTuple):
    """A parsed command: function, command word and the text after it."""

    spec: FunctionSpec
    plan: CommandPlan
    word: str
    rest: str
    """Text after the command word, as typed."""
    is_bare: bool
    """Typed without a slash, so it may be an ordinary sentence that starts with this word."""


class BotFunctions:
    """Immutable snapshot of a bot's functions, with constant-time lookup by name and command word."""

    def __init__(self, specs: Iterable[FunctionSpec], groups: Iterable[ToolGroup] = (), bot: str = "") -> None:
        self._bot = bot
        self.specs = tuple(specs)
        """In registration order, which is also the order on offer."""
        self.groups: Mapping[str, ToolGroup] = {group.name: group for group in groups}
        """Tool groups by name."""
        self.activation = ActivationIndex(self.specs, self.groups.values())
        """Functions and groups that chats can activate."""
        self.start_function = next((spec for spec in self.specs if spec.is_start_function), None)
        """The start function, which runs once per chat; None if the bot has none."""
        self._by_name = {spec.name: spec for spec in self.specs}
        self._offered_names = offered_names([spec.name for spec in self.specs])
        self._by_offered_name = {offered: self._by_name[name] for name, offered in self._offered_names.items()}
        self._offered = {spec.name: self._as_offered(spec) for spec in self.specs}
        self.for_models = Offer(
            [self._offered[spec.name] for spec in self.specs if OfferedTo.MODEL in spec.access.offered_to]
        )
        """All functions that models may be offered, whether or not they are configured."""
        self._configurable = [spec for spec in self.specs if spec.execution.configured]
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
        self._unspaced = {word.replace(" ", ""): word for word in self._commands if is_unspaced(word)}
        """Command words of languages without spaces between words, by their characters alone."""
        self._longest_unspaced = max(map(len, self._unspaced), default=0)
        self._offers: dict[tuple[int, ...], Offer] = {}
        self._offers_for: dict[tuple[Hashable, int], tuple[Mapping[str, object], Offer]] = {}

    def find(self, name: str) -> FunctionSpec | None:
        """Function of that name, or offered under that name; None if unknown."""
        found = self._by_name.get(name) or self._by_offered_name.get(name)
        return FIND_FUNCTIONS if found is None and name == FIND_FUNCTIONS.name else found

    def by_tag(self, tag: str) -> list[FunctionSpec]:
        """Functions with `tag`, in order; empty if there are none."""
        return [spec for spec in self.specs if tag in spec.origin.tags]

    def command_line(self, text: str, *, bare: bool) -> CommandLine | None:
        """Command at the start of `text`: `/word …`, and also `word …` if `bare`; None if there is none. Case is
        ignored; two-word commands take precedence; after a slash, Chinese words need no spaces; invisible characters
        never form a command. Bare words count as speech if the function sends data out, or if it changes something or
        controls the queue and text follows a single command word."""
        is_bare = not text.startswith("/")
        if is_bare and not bare:
            return None
        line = text if is_bare else text[1:]
        pieces = line.split(None, 1)  # `_first_word` inlined for speed: this runs twice per message
        if not pieces or line[0].isspace():
            return None
        rest = pieces[1] if len(pieces) == 2 else ""
        # Only case is folded: a word with invisible characters matches no command.
        folded = pieces[0].casefold()
        if folded in self._first_words:
            second, after = _first_word(rest)
            pair = f"{folded} {second.casefold()}"
            found = self._commands.get(pair)
            if found is not None and not (is_bare and _is_speech(found[0], after, is_clear=True)):
                return CommandLine(found[0], found[1], pair, after, is_bare)
        found = self._commands.get(folded)
        if found is None:
            return None if is_bare else self._unspaced_command_line(line)
        spec, plan = found
        if is_bare and _is_speech(spec, rest, is_clear=False):
            return None
        return CommandLine(spec, plan, folded, rest, is_bare)

    def _unspaced_command_line(self, line: str) -> CommandLine | None:
        """Command at the start of a line without spaces between words, as in Chinese: the longest of at least two
        characters."""
        if not is_unspaced(line):
            return None
        for length in range(min(self._longest_unspaced, len(line)), 1, -1):
            word = self._unspaced.get(line[:length])
            if word is not None:
                spec, plan = self._commands[word]
                return CommandLine(spec, plan, word, line[length:].lstrip(), is_bare=False)
        return None

    def near_commands(self, word: str) -> Sequence[str]:
        """At most three command words that are spelled like `word`, of functions that are set up."""
        near = difflib.get_close_matches(word.casefold(), self._commands, n=10, cutoff=0.6)
        return [one for one in near if self._commands[one][0].is_set_up(self._bot)][:3]

    def one_edit_from(self, word: str) -> Sequence[str]:
        """Command words that differ from `word` by one missing, added or wrong character, or by two swapped ones. Words
        of less than three characters are similar to too many others."""
        folded = word.casefold()
        return [one for one in self._commands if len(one) >= 3 <= len(folded) and _is_one_edit(folded, one)]

    def offer(self, specs: Sequence[FunctionSpec]) -> Offer:
        """`specs` as offered to a model. The same set returns the same object, which caches its encoded bytes."""
        return self.offer_of([self._offered[spec.name] for spec in specs])

    def offer_of(self, functions: Sequence[OfferedFunction]) -> Offer:
        """Offer of these functions of this snapshot. The same functions in the same order return the same object."""
        key = tuple(map(id, functions))
        offer = self._offers.get(key)
        if offer is None:
            if len(self._offers) >= _CACHED_OFFERS:
                self._offers.clear()
            offer = self._offers[key] = Offer(functions)
        return offer

    @property
    def finder(self) -> OfferedFunction | None:
        """The search function as offered to a model; None if a registered function has its name."""
        return None if FIND_FUNCTIONS.name in self._by_offered_name else self._as_offered(FIND_FUNCTIONS)

    def offered_name(self, name: str) -> str:
        """Name under which function `name` is offered to models."""
        return self._offered_names.get(name, name)

    @property
    def search(self) -> FunctionSearch:
        """Index of all functions that models may be offered, built on first use."""
        if self._search is None:
            self._search = search_of(self.for_models.functions)
        return self._search

    def is_set_up(self, spec: FunctionSpec) -> bool:
        """Whether all services that `spec` needs are configured."""
        return spec.is_set_up(self._bot)

    def set_up_state(self) -> tuple[bool, ...]:
        """For each function that needs a configured service: whether it can be used now."""
        return tuple(spec.is_set_up(self._bot) for spec in self._configurable)

    def offer_for(
        self, cache_key: Hashable, settings: Mapping[str, object], choose: Callable[[], Sequence[FunctionSpec]]
    ) -> Offer:
        """Offer of the specs that `choose` returns, cached per `cache_key` and `settings`. Settings are compared by
        identity, since a chat keeps the object until they change; all empty ones are equal."""
        key = (cache_key, id(settings) if settings else 0)
        known = self._offers_for.get(key)
        if known is not None and (known[0] is settings or not settings):
            return known[1]
        if len(self._offers_for) >= _CACHED_OFFERS:
            self._offers_for.clear()
        offer = self.offer(choose())
        self._offers_for[key] = (settings, offer)
        return offer

    def _as_offered(self, spec: FunctionSpec) -> OfferedFunction:
        return OfferedFunction(
            name=self._offered_names.get(spec.name, spec.name),
            original=spec.name,
            description=spec.description,
            parameters=schema_for_model(spec.parameters),
            examples=spec.prompt.examples,
            writes=spec.execution.effect is not Effect.READ,
            commands=spec.command.words,
            system_prompt=spec.prompt.system_prompt,
            is_built_in=spec.origin.built_in,
            is_set_up=partial(spec.is_set_up, self._bot),
        )


def _is_one_edit(word: str, other: str) -> bool:
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    differ = (at for at, (one, another) in enumerate(zip(word, other, strict=False)) if one != another)
    same = next(differ, min(len(word), len(other)))
    left, right = word[same:], other[same:]
    return left[1:] in (right, right[1:]) or left == right[1:] or left == right[1::-1] + right[2:]


class FunctionRegistry:
    """Functions of all sources. Within a bot, a clashing name or command belongs to the first function in source order;
    later ones are left out until the first is withdrawn."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[list[FunctionSpec], tuple[ToolGroup, ...]]] = {}
        self._arranged: set[str] = set()
        self._names = NameIndex()
        self._specs: list[FunctionSpec] = []
        self._groups: list[ToolGroup] = []
        self._bots: dict[str, BotFunctions] = {}
        self._left_out: Sequence[Diagnostic] = ()

    def register_function(self, spec: FunctionSpec, source: str = "code") -> None:
        """Add a spec. Raises DefinitionError (a ValueError) if its name or a command is taken."""
        self.register_functions([spec], source)

    def register_functions(self, specs: Iterable[FunctionSpec], source: str = "code") -> None:
        """Add all specs, or none if one is a duplicate. Raises DefinitionError in that case."""
        added, fresh = list(specs), NameIndex()
        problems: list[str] = []
        for spec in added:
            problems += [*self._names.clashes(spec), *fresh.clashes(spec)]
            fresh.reserve(spec)
        if problems:
            raise DefinitionError("functions", problems)
        for spec in added:
            self._names.reserve(spec)
        published = self._sources.setdefault(source, ([], ()))
        published[0].extend(added)
        self._specs.extend(added)
        self._bots = {}

    def register_module(self, module: ModuleType) -> None:
        """Add the functions of a module with `tools()`. Raises DefinitionError."""
        self.register_functions(specs_of_module(module), module.__name__)

    def publish(
        self, source: str, specs: Iterable[FunctionSpec] = (), groups: Iterable[ToolGroup] = ()
    ) -> Sequence[Diagnostic]:
        """Replace all functions and groups of `source`, which keeps its position from its first publication. Returns
        diagnostics for the definitions of all sources that are left out because their names are taken."""
        published = (list(specs), tuple(groups))
        if self._sources.get(source) == published:
            return self._left_out
        self._sources[source] = published
        return self._rebuild()

    def withdraw(self, source: str) -> Sequence[Diagnostic]:
        """Remove `source` and its position. Returns diagnostics for the definitions that are left out."""
        self._sources.pop(source, None)
        self._arranged.discard(source)
        return self._rebuild()

    def arrange(self, sources: Sequence[str]) -> Sequence[Diagnostic]:
        """Set the order of the configured sources, which precede functions registered in code, and remove configured
        sources that are not listed. Returns diagnostics for the definitions that are left out."""
        others = {name: published for name, published in self._sources.items() if name not in self._arranged}
        arranged = {name: self._sources.get(name, ([], ())) for name in sources}
        self._sources = {**arranged, **{name: one for name, one in others.items() if name not in arranged}}
        self._arranged = set(sources)
        return self._rebuild()

    def _rebuild(self) -> Sequence[Diagnostic]:
        """Assign each name to the first definition that uses it. Returns diagnostics of the definitions left out, and
        as warnings of default commands that were dropped because of a clash."""
        names = NameIndex()
        specs: list[FunctionSpec] = []
        groups: list[ToolGroup] = []
        left_out: list[Diagnostic] = []
        for published, named in self._sources.values():
            everything: list[FunctionSpec | ToolGroup] = [*published, *named]
            for one in everything:
                clashes = names.clashes(one)
                if clashes and isinstance(one, FunctionSpec) and one.command.words == (one.name.casefold(),):
                    # Only its default command, equal to its name, clashes: keep it for models and other functions.
                    without = replace(one, command=replace(one.command, words=()))
                    if not names.clashes(without):
                        problems = [problem_at(one.origin.source, clash, Code.TAKEN) for clash in clashes]
                        left_out += [replace(problem, severity="warning") for problem in problems]
                        one, clashes = without, []
                if clashes:
                    left_out += [problem_at(source_of(one), clash, Code.TAKEN) for clash in clashes]
                    continue
                names.reserve(one)
                if isinstance(one, FunctionSpec):
                    specs.append(one)
                else:
                    groups.append(one)
        self._names, self._specs, self._groups, self._bots = names, specs, groups, {}
        self._left_out = left_out
        return left_out

    def of(self, bot: str) -> BotFunctions:
        """Snapshot for a bot: its own and the shared functions. Cached until the functions change."""
        functions = self._bots.get(bot)
        if functions is None:
            functions = BotFunctions(
                (spec for spec in self._specs if spec.access.bot is None or spec.access.bot == bot),
                (group for group in self._groups if group.bot is None or group.bot == bot),
                bot,
            )
            self._bots[bot] = functions
        return functions

    @property
    def specs(self) -> tuple[FunctionSpec, ...]:
        """All specs in registration order."""
        return tuple(self._specs)

    def serves_of(self, file: str) -> bool:
        """Whether any registered function is defined in `file`."""
        return any(spec.origin.source.rpartition(":")[0] == file for spec in self._specs)

    @property
    def groups(self) -> tuple[ToolGroup, ...]:
        """All groups in source order."""
        return tuple(self._groups)


def _is_speech(spec: FunctionSpec, rest: str, *, is_clear: bool) -> bool:
    """Whether bare words of `spec`, followed by `rest`, are speech rather than a command. `is_clear`: two command
    words, which rarely start an ordinary sentence."""
    if Touch.SENDS_OUT in spec.execution.touches:
        return True
    if not rest.strip():
        return False
    if spec.execution.effect is not Effect.READ or spec.command.immediate:
        return not is_clear
    return is_speech(rest)


def _first_word(text: str) -> tuple[str, str]:
    """First word of `text`, up to white space of any script, and the text after it."""
    pieces = text.split(None, 1)
    if not pieces or text[0].isspace():
        return "", ""
    return pieces[0], pieces[1] if len(pieces) == 2 else ""
