"""Keywords available to scripts: marked functions of modules, validated against their forms when loaded."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, get_type_hints

from function_calls.basic.codes import RunError
from function_calls.basic.keywords import (
    Asks,
    KeywordDeclaration,
    KeywordHandler,
    ScriptRun,
    Value,
    marked_functions,
)
from function_calls.basic.language.form_parts import Form, SlotKind, slots_of, usage_of
from function_calls.basic.language.forms import BadForm, Forms, form_of
from function_calls.declaration import place_of
from function_calls.loading.module_loading import Services, bound_services, untyped
from function_calls.schema.definition import DefinitionError
from function_calls.spec import ToolError, Touch
from services.refs import Effect

_STRENGTH = {Effect.READ: 0, Effect.IDEMPOTENT: 1, Effect.ONCE: 2}


@dataclass(frozen=True, slots=True)
class BoundKeyword:
    """A keyword with its services."""

    name: str
    """First words of its forms: `SEND MAIL`."""
    handler: KeywordHandler
    effect: Effect
    touches: frozenset[Touch]
    description: str
    usage: tuple[str, ...]
    """Its forms as script authors write them."""
    source: str
    """`file:line` of the function."""


class KeywordTable:
    """The keywords of a set of modules, by name."""

    def __init__(self, modules: Iterable[ModuleType], services: Services, *, hide: Callable[[str], str] = str) -> None:
        """Services are bound by the types of keyword-only parameters. `hide` removes secrets from error texts, which
        scripts can send to the chat. Raises DefinitionError with every invalid keyword, and with both places of a
        duplicate name."""
        self._keywords: dict[str, BoundKeyword] = {}
        self._hide = hide
        forms: list[Form] = []
        problems: list[str] = []
        for function, declaration in marked_functions(modules):
            try:
                of_one = self._add(function, declaration, services)
            except DefinitionError as error:
                problems += [f"{problem} ({error.where})" for problem in error.problems]
            else:
                forms += of_one
        if problems:
            raise DefinitionError("keywords of scripts", problems)
        self.forms = Forms(forms)
        """For the parser."""

    @property
    def keywords(self) -> tuple[BoundKeyword, ...]:
        """All keywords, sorted by name."""
        return tuple(self._keywords[name] for name in sorted(self._keywords))

    def find(self, name: str) -> BoundKeyword | None:
        """The keyword with this name; None if it does not exist or was removed."""
        return self._keywords.get(name)

    def effect_of(self, keywords: Iterable[str]) -> Effect:
        """Effect of a script with these keywords: the strongest, and `once` if one changes stored data. An
        unknown keyword counts as `once`."""
        found = [self._keywords.get(name) for name in keywords]
        effects = [Effect.ONCE if one is None or changes_stored_data(one) else one.effect for one in found]
        return max(effects, key=_STRENGTH.__getitem__, default=Effect.READ)

    def touches_of(self, keywords: Iterable[str]) -> frozenset[Touch]:
        """Touches of a script with these keywords. If one reaches out, so does the script, even if another declares
        `stays_here`."""
        found = [one for one in map(self._keywords.get, keywords) if one is not None]
        touches = frozenset(touch for one in found for touch in one.touches)
        if any(map(_reaches_out, found)):
            return (touches | {Touch.REACHES_OUT}) - {Touch.STAYS_HERE}
        return touches

    def _add(self, function: Callable[..., Any], declaration: KeywordDeclaration, services: Services) -> Sequence[Form]:
        where = place_of(function)
        forms, problems = _forms(declaration)
        effect, touches = _effect(declaration, problems), _touches(declaration, problems)
        signature = _signature(function, problems)
        for form in forms:
            problems += _misfits(form, signature)
        bound, missing = bound_services(signature.services, services)
        problems += missing
        names = dict.fromkeys(form.name for form in forms)
        problems += [
            f"{name} is already a keyword of {self._keywords[name].source}" for name in names if name in self._keywords
        ]
        if problems:
            raise DefinitionError(where, problems)
        handler = _handler(function, bound, self._hide)
        for name in names:
            usage = tuple(usage_of(form) for form in forms if form.name == name)
            self._keywords[name] = BoundKeyword(name, handler, effect, touches, declaration.description, usage, where)
        return forms


@dataclass(frozen=True, slots=True)
class _Signature:
    """Parameters of a marked function after the run."""

    slots: Mapping[str, bool]
    """Whether a value is required, by name."""
    services: Mapping[str, object]


def _forms(declaration: KeywordDeclaration) -> tuple[list[Form], list[str]]:
    forms: list[Form] = []
    problems: list[str] = [] if declaration.forms else ['no form is given; write @basic_keyword("MY WORD {value}")']
    for text in declaration.forms:
        try:
            forms.append(replace(form_of(text), checks=declaration.checks))
        except BadForm as error:
            problems.append(f"invalid form `{text}`: {error}")
    slots = {name for form in forms for name in form.slots}
    problems += [f"check: no form has the slot {{{name}}}" for name in declaration.checks if name not in slots]
    return forms, problems


def _effect(declaration: KeywordDeclaration, problems: list[str]) -> Effect:
    try:
        return Effect(declaration.effect)
    except ValueError:
        problems.append(f"effect must be one of {', '.join(Effect)}, not {declaration.effect!r}")
        return Effect.ONCE


def _touches(declaration: KeywordDeclaration, problems: list[str]) -> frozenset[Touch]:
    try:
        touches = frozenset(map(Touch, declaration.touches))
    except ValueError:
        problems.append(f"touches must be among {', '.join(Touch)}, not {', '.join(declaration.touches)}")
        return frozenset()
    if {Touch.REACHES_OUT, Touch.STAYS_HERE} <= touches:
        problems.append("touches: an effect cannot both reach out and stay here")
    return touches


def _signature(function: Callable[..., Any], problems: list[str]) -> _Signature:
    try:
        hints = get_type_hints(function)
    except NameError as error:
        problems.append(f"unknown type in the signature: {error}")
        return _Signature({}, {})
    if not inspect.iscoroutinefunction(function):
        problems.append("it must be an `async def`")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or hints.get(parameters[0].name) is not ScriptRun:
        problems.append("the first parameter must be the ScriptRun")
    others = parameters[1:]
    slots = {
        one.name: one.default is one.empty
        for one in others
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    }
    wanted = {one.name: hints.get(one.name) for one in others if one.kind is one.KEYWORD_ONLY}
    problems += untyped(wanted)
    typed = {name: kind for name, kind in wanted.items() if kind is not None}
    return _Signature(slots, typed)


def _misfits(form: Form, signature: _Signature) -> list[str]:
    """Descriptions of mismatches between a form's slots and the function's parameters: slots without a parameter, and
    optional slots whose parameter has no default."""
    # A variable that receives the result is not passed to the function.
    given = dict.fromkeys(slot.name for slot in slots_of(form.parts) if slot.kind is not SlotKind.VARIABLE)
    problems = [
        f"the form `{form.text}` has the slot {{{slot}}}, but the function has no parameter {slot!r}"
        for slot in given
        if slot not in signature.slots
    ]
    problems += [
        f"the form `{form.text}` may leave out {name!r}, so the parameter needs a default"
        for name, is_needed in signature.slots.items()
        if is_needed and name not in form.required
    ]
    return problems


def _handler(function: Callable[..., Any], bound: Mapping[str, object], hide: Callable[[str], str]) -> KeywordHandler:
    run = functools.partial(function, **bound) if bound else function

    async def handle(script: ScriptRun, arguments: Mapping[str, Value]) -> Value | Asks:
        try:
            given: Value | Asks = await run(script, **arguments)
        except RunError as fault:
            raise RunError(fault.code, hide(fault.detail)) from None
        except ToolError as error:
            error.text = hide(error.text)
            raise
        return given

    return handle


def changes_stored_data(keyword: BoundKeyword) -> bool:
    """Whether it changes data for later runs. Repeating such a statement is safe, but repeating the script is not: the
    stored value may depend on an earlier read, as for a visit counter."""
    return keyword.effect is not Effect.READ and bool(keyword.touches & {Touch.REACHES_OUT, Touch.STAYS_HERE})


def _reaches_out(keyword: BoundKeyword) -> bool:
    if Touch.REACHES_OUT in keyword.touches:
        return True
    return keyword.effect is Effect.ONCE and Touch.STAYS_HERE not in keyword.touches
