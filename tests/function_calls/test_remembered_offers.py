"""The offered functions are computed once for all members with the same rights, and separately for others."""

from __future__ import annotations

from typing import Any

import pytest

from config.chat_settings import ResolvedFunction
from function_calls.checks.permissions import offered_here
from services.llm.model import Offer
from services.refs import Role
from tests.fakes.builders import a_member, a_message, a_profile
from tests.fakes.functions import Recorder
from tests.function_calls.routing import Routing

OFF = ResolvedFunction(
    enabled=False,
    roles=None,
    timeout_seconds=None,
    require_at=None,
    scope=None,
    layers={"enabled": "functions.act.enabled"},
)


def offered(routing: Routing, role: Role = Role.MEMBER, *, addressed: bool = True, **facts: Any) -> Offer:
    message = a_message(sender=a_member(role=role), **facts)
    return offered_here(message, routing.a_turn(addressed=addressed))


def names(offer: Offer) -> list[str]:
    return [function.name for function in offer.functions]


def test_two_members_who_are_alike_are_offered_the_same_object() -> None:
    routing = Routing(Recorder("act"))
    first = offered(routing)
    assert offered(routing, text="something else") is first


@pytest.mark.parametrize(
    ("option", "offered_to"),
    [
        ({"roles": "admin"}, {"role": Role.ADMIN}),
        ({"scope": "private"}, {"is_group": False}),
        ({"require_at": True}, {"addressed": True}),
    ],
)
def test_who_differs_in_what_is_checked_is_offered_something_else(
    option: dict[str, Any], offered_to: dict[str, Any]
) -> None:
    routing = Routing(Recorder("act", **option), Recorder("look"))
    usual: dict[str, Any] = {"role": Role.MEMBER, "is_group": True, "addressed": False}
    for _ in range(2):
        assert names(offered(routing, **usual)) == ["look"]
        assert sorted(names(offered(routing, **{**usual, **offered_to}))) == ["act", "look"]


def test_settings_that_change_are_heeded_at_the_next_request() -> None:
    routing = Routing(Recorder("act"))
    assert names(offered(routing)) == ["act"]
    routing.profile = a_profile(functions={"act": OFF})
    assert names(offered(routing)) == []
    routing.profile = a_profile(functions={"other": OFF})
    assert names(offered(routing)) == ["act"]
    routing.profile = a_profile()
    assert names(offered(routing)) == ["act"]
