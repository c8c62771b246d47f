"""Services that functions and keywords name by type: found once, when what needs them is loaded."""

from __future__ import annotations

from collections.abc import Mapping

Services = Mapping[type, object]


def bound_services(wanted: Mapping[str, object], services: Services) -> tuple[dict[str, object], list[str]]:
    """The service for each parameter of `wanted`, by its type; and what is wrong with the others."""
    bound: dict[str, object] = {}
    missing: list[str] = []
    for name, kind in wanted.items():
        if isinstance(kind, type) and kind in services:
            bound[name] = services[kind]
        else:
            missing.append(f"there is no service of type {getattr(kind, '__qualname__', kind)} for parameter {name!r}")
    return bound, missing


def untyped(wanted: Mapping[str, object]) -> list[str]:
    """What is wrong with parameters that should be bound and have no type."""
    return [
        f"parameter {name!r} needs a type, so that a service can be found for it"
        for name, kind in wanted.items()
        if kind is None
    ]
