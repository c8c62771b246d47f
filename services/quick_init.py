"""Frozen dataclasses that are made in a third of the time, for values of which every turn makes many."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

Frozen = TypeVar("Frozen")

_ABSENT = object()


def quick_init(frozen: type[Frozen]) -> type[Frozen]:
    """`frozen`, a class made by `@dataclass(frozen=True, slots=True)`, with the same `__init__` but for the way in
    which it fills the slots: by plain assignment, where dataclasses ask `object.__setattr__` to look each one up. So
    the class is frozen for whoever checks types, and the machine no longer watches over it: what strangers are given
    to read, such as a MessageContext, is left as dataclasses make it. Raises TypeError for a class without slots, and
    for a `__post_init__` or fields that are not given by position."""
    own = fields(frozen)  # type: ignore[arg-type]  # it is a dataclass, which no type says
    are_plain = all(one.init and not one.kw_only for one in own)
    if "__slots__" not in vars(frozen) or hasattr(frozen, "__post_init__") or not are_plain:
        raise TypeError(f"{frozen.__name__} has to have slots, no __post_init__, and fields given by position alone")
    names: dict[str, Any] = {"_absent": _ABSENT}
    parameters = ", ".join(_parameter(one, names) for one in own)
    body = "\n".join(f"    {_filling(one, names)}" for one in own)
    made: dict[str, Any] = {}
    exec(f"def __init__(self, {parameters}):\n{body}", names, made)  # noqa: S102  # names of fields alone, as dataclasses do
    initialise = made["__init__"]
    initialise.__qualname__ = f"{frozen.__qualname__}.__init__"
    initialise.__annotations__ = dict(frozen.__init__.__annotations__)
    type.__setattr__(frozen, "__init__", initialise)
    for guard in ("__setattr__", "__delattr__"):
        type.__delattr__(frozen, guard)
    return frozen


def _parameter(one: Field[Any], names: dict[str, Any]) -> str:
    if one.default is not MISSING:
        names[f"_default_{one.name}"] = one.default
        return f"{one.name}=_default_{one.name}"
    return f"{one.name}=_absent" if one.default_factory is not MISSING else one.name


def _filling(one: Field[Any], names: dict[str, Any]) -> str:
    if one.default_factory is MISSING:
        return f"self.{one.name} = {one.name}"
    names[f"_make_{one.name}"] = one.default_factory
    return f"self.{one.name} = _make_{one.name}() if {one.name} is _absent else {one.name}"
