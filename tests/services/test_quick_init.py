"""A quick initialiser fills frozen dataclasses exactly as their own does."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass, field, replace

import pytest

from services.quick_init import quick_init


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    count: int = 1
    tags: dict[str, int] = field(default_factory=dict)


@quick_init
@dataclass(frozen=True, slots=True)
class Quick:
    name: str
    count: int = 1
    tags: dict[str, int] = field(default_factory=dict)


@quick_init
@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    count: int = 1


def test_positions_keywords_and_defaults_are_those_of_the_dataclass() -> None:
    for given in ({"name": "a"}, {"name": "a", "count": 2}, {"name": "a", "tags": {"x": 1}}):
        assert asdict(Quick(**given)) == asdict(Plain(**given))  # type: ignore[arg-type]
    assert asdict(Quick("a", 2, {"x": 1})) == asdict(Plain("a", 2, {"x": 1}))
    assert list(inspect.signature(Quick).parameters) == list(inspect.signature(Plain).parameters)


def test_each_instance_has_a_mutable_default_of_its_own() -> None:
    assert Quick("a").tags is not Quick("b").tags


def test_it_is_comparable_hashable_and_replaceable() -> None:
    assert Quick("a") == Quick("a")
    assert Quick("a") != Quick("b")
    assert hash(Pair("a")) == hash(Pair("a"))
    assert replace(Quick("a"), count=3) == Quick("a", 3)


@pytest.mark.parametrize("given", [{}, {"name": "a", "unknown": 1}])
def test_what_does_not_fit_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Quick(**given)  # type: ignore[arg-type]


def test_a_class_that_it_could_not_fill_alike_is_refused() -> None:
    @dataclass(frozen=True)
    class WithoutSlots:
        name: str

    @dataclass(frozen=True, slots=True)
    class WithMore:
        name: str

        def __post_init__(self) -> None:
            return None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ByKeyword:
        name: str

    for one in (WithoutSlots, WithMore, ByKeyword):
        with pytest.raises(TypeError, match=one.__name__):
            quick_init(one)
