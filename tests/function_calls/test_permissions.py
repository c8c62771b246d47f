"""Permissions: all combinations of role, scope and entry point, and consistency of offers and refusals."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from config.chat_settings import ResolvedFunction
from config.texts import Texts
from function_calls.call import Path
from function_calls.checks.permissions import callable_here, refusal
from function_calls.context import MessageContext
from services.refs import ErrorCode, MemberRef, ReasonCode, Role
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import Recorder
from tests.fakes.model import call, calls, says
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.fakes.wired_model import not_over, over_each_protocol
from tests.function_calls.routing import Routing, said
from tests.function_calls.test_rounds import told

EN = Texts().of("en")
DOORS = {Path.COMMAND: "command", Path.MODEL: "model", Path.TIMER: "timer", Path.API: "api", Path.MCP: "mcp"}


def a_setting(*, enabled: bool = True, **fields: object) -> ResolvedFunction:
    """The settings of one function."""
    values: dict[str, Any] = {"roles": None, "timeout_seconds": None, "require_at": None, "scope": None}
    values.update(fields)
    layers = {"enabled": "functions.act.enabled", **values.pop("layers", {})}
    return ResolvedFunction(enabled=enabled, layers=layers, **values)


def a_message_from(role: Role, *, is_group: bool) -> MessageContext:
    """A message from a member with that role."""
    return a_message(sender=a_member("Ann", role), is_group=is_group)


MATRIX = list(
    itertools.product(
        ("group", "private", "both"), (True, False), ("member", "admin"), (True, False), (True, False), tuple(Role)
    )
)


@pytest.mark.requirement("D37", "D60")
@pytest.mark.parametrize("path", list(DOORS))
async def test_what_may_not_be_called_here_is_neither_offered_nor_run(path: Path) -> None:
    for scope, require_at, least, is_group, addressed, role in MATRIX:
        act = Recorder("act", scope=scope, require_at=require_at, roles=least)
        routing = Routing(act)
        context = a_message_from(role, is_group=is_group)
        turn = routing.a_turn(addressed=addressed)
        right = (
            scope in ("both", "group" if is_group else "private")
            and (addressed or not is_group or not require_at)
            and role.rank >= Role(least).rank
        )
        offered = [spec.name for spec in callable_here(context, turn, path)]
        result = await routing.invoke("act", message=context, turn=turn, path=path)
        case = (path, scope, require_at, least, is_group, addressed, role)
        assert offered == (["act"] if right else []), case
        assert len(act.runs) == right, case
        assert right or (result.error is not None and result.error.code is ErrorCode.REFUSED), case


@pytest.mark.requirement("D37")
@pytest.mark.parametrize("opened", [*DOORS, None])
@pytest.mark.parametrize("path", [*DOORS, Path.CLI, Path.NESTED])
async def test_a_function_can_be_reached_only_by_the_ways_that_it_opens(path: Path, opened: Path | None) -> None:
    act = Recorder("act", offered_to=[DOORS[opened]] if opened else [])
    routing = Routing(act)
    turn = routing.a_turn()
    result = await routing.invoke("act", turn=turn, path=path)
    may = path not in DOORS or path is opened
    assert (result.ok, len(act.runs), len(callable_here(a_message(), turn, path))) == (may, may, may)


@pytest.mark.requirement("D28", "D37", "D60")
@not_over("json_text", "xml_text", because="where nothing is on offer no call is read from a text")
async def test_the_model_is_not_offered_what_it_is_refused_and_is_told_why() -> None:
    for is_group in (True, False):
        act = Recorder("act", scope="private" if is_group else "group", effect="once")
        routing = Routing(act, script=[calls(call("act")), says("No.")])
        await routing.hears(a_message("please act", is_group=is_group))
        offer = routing.model.requests[0].offer
        assert offer is not None
        assert (offer.functions, act.runs, routing.turn.memory.effects) == ((), [], 0)
        assert '"error":"refused"' in routing.model.requests[1].messages[-1].content


@pytest.mark.parametrize("is_configured", [True, False])
async def test_a_function_is_offered_only_if_its_services_are_configured(is_configured: bool) -> None:
    spec = Recorder("act").spec
    spec = replace(spec, execution=replace(spec.execution, configured=(lambda bot: is_configured,)))
    routing = Routing(spec, script=[says("Hm.")])
    await routing.hears(a_message("please act"))
    offer = routing.model.requests[0].offer
    assert [one.name for one in (offer.functions if offer else ())] == (["act"] if is_configured else [])


async def test_a_function_on_request_is_offered_to_a_model_only_when_active_and_may_always_be_a_command() -> None:
    act = Recorder("act", activation="on_request", groups=["some"])
    routing = Routing(act)
    assert callable_here(a_message(), routing.a_turn(), Path.MODEL) == []
    refused = await routing.invoke("act", path=Path.MODEL)
    assert (refused.error and refused.error.code, act.runs) == (ErrorCode.REFUSED, [])
    assert (await routing.invoke("act", path=Path.COMMAND)).ok
    assert callable_here(a_message(), routing.a_turn(), Path.COMMAND) == [act.spec]
    for name in ("act", "some"):
        routing.set_profile(active=frozenset([name]))
        assert callable_here(a_message(), routing.a_turn(), Path.MODEL) == [act.spec]
        assert (await routing.invoke("act", path=Path.MODEL)).ok


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (a_setting(enabled=False), "“/act” is switched off in this chat."),
        (a_setting(scope="private"), "“/act” works only in a private chat."),
        (a_setting(require_at=True), "Mention me to use “/act”."),
        (a_setting(roles=frozenset({"owner"})), "Only owners and above can use “/act”."),
    ],
)
@pytest.mark.requirement("D37", "D40")
async def test_settings_of_a_chat_narrow_what_the_function_declares(setting: ResolvedFunction, text: str) -> None:
    act = Recorder("act", commands=["act"])
    routing = Routing(act, functions={"act": setting})
    outcome = await routing.hears("/act", addressed=False)
    assert (said(outcome), outcome.reason, act.runs) == ([text], ReasonCode.REFUSED, [])
    assert callable_here(a_message(), routing.a_turn(addressed=False), Path.MODEL) == []


@pytest.mark.requirement("D37")
async def test_settings_that_say_one_thing_leave_the_rest_as_the_function_declares_it() -> None:
    act = Recorder("act", commands=["act"], require_at=True, scope="group", roles="admin")
    routing = Routing(act, functions={"act": a_setting(timeout_seconds=5)})
    admin = a_member("Ann", Role.ADMIN)
    for message, addressed in (
        (a_message("/act", admin), False),
        (a_message("/act", admin, is_group=False), True),
        (a_message("/act"), True),
    ):
        outcome = await routing.hears(message, addressed=addressed)
        assert (outcome.reason, act.runs) == (ReasonCode.REFUSED, [])


@pytest.mark.parametrize(
    ("options", "setting", "decided_by"),
    [
        ({"scope": "private"}, None, "functions.act.scope"),
        ({}, a_setting(scope="private"), "functions.act.scope"),
        ({}, a_setting(scope="private", layers={"scope": "chats.settings.test:*.functions.act.scope"}), None),
        ({"require_at": True}, None, "functions.act.require_at"),
        ({"roles": "owner"}, None, "functions.act.roles"),
        ({"roles": "owner"}, a_setting(timeout_seconds=5, layers={"roles": "default"}), "functions.act.roles"),
    ],
)
def test_a_refusal_names_the_key_that_decided_or_that_would_change_it(
    options: dict[str, Any], setting: ResolvedFunction | None, decided_by: str | None
) -> None:
    act = Recorder("act", **options)
    routing = Routing(act, functions={"act": setting} if setting else {})
    turn = routing.a_turn(addressed=False)
    found = refusal(a_message("/act"), act.spec, turn, routing.profile, Path.COMMAND)
    assert found is not None
    assert found.setting == (decided_by or "chats.settings.test:*.functions.act.scope")


async def test_where_settings_let_nobody_it_is_refused_to_owners_too() -> None:
    act = Recorder("act", commands=["act"])
    routing = Routing(act, functions={"act": a_setting(roles=frozenset())})
    outcome = await routing.hears(a_message("/act", a_member("Olga", Role.OWNER)))
    assert (outcome.reason, act.runs) == (ReasonCode.REFUSED, [])


async def test_settings_may_also_widen_it() -> None:
    act = Recorder("act", commands=["act"], scope="private", require_at=True, roles="owner")
    setting = a_setting(scope="both", require_at=False, roles=frozenset({"member"}))
    assert said(await Routing(act, functions={"act": setting}).hears("/act", addressed=False)) == ["done"]


async def test_a_list_of_roles_means_exactly_those() -> None:
    act = Recorder("act", roles=["moderator"])
    for role in Role:
        result = await Routing(act).invoke("act", message=a_message_from(role, is_group=True))
        assert result.ok is (role is Role.MODERATOR)


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_rights_are_asked_at_each_call_and_not_once_a_turn() -> None:
    async def off(*_: object) -> str:
        routing.set_profile(functions={"second": a_setting(enabled=False)})
        return "off"

    second = Recorder("second", effect="once")
    routing = Routing(
        Recorder("first", does=off), second, script=[calls(call("first", "a"), call("second", "b")), says("Hm.")]
    )
    await routing.hears("first and second")
    assert second.runs == []


async def test_the_timeout_of_a_chat_wins_over_the_functions() -> None:
    act = Recorder("act", timeout_seconds=5)
    await Routing(act, functions={"act": a_setting(timeout_seconds=2.0)}).invoke("act")
    assert act.calls[0].deadline == 2.0


@pytest.mark.requirement("D30", "D67", "D28")
@over_each_protocol
async def test_switching_function_calling_off_holds_at_once_within_a_turn_too() -> None:
    async def off(*_: object) -> str:
        routing.set_profile(functions_on=False, layers={"functions_on": "chats.family"})
        return "off"

    second = Recorder("second", effect="once")
    routing = Routing(
        Recorder("first", does=off), second, script=[calls(call("first", "a"), call("second", "b")), says("Hm.")]
    )
    await routing.hears("first and second")
    request = routing.model.requests[1]
    assert second.runs == []
    assert [one.get("error") for _, one in told(request)] == [None, "refused"]
    assert request.offer is not None
    assert request.offer.functions == ()
    assert routing.recorded[-1][1].metadata["refused_by"] == "chats.family"


async def test_whose_role_nobody_tells_may_still_call_what_is_open_to_all() -> None:
    async def nobody_tells(member: MemberRef) -> None:
        return None

    act, look = Recorder("act", roles="admin", effect="once"), Recorder("look")
    routing = Routing(act, look)
    turn, olga = routing.a_turn(live_role=nobody_tells), a_message(sender=a_member("Olga", Role.ADMIN))
    refused = await routing.invoke("act", turn=turn, message=olga)
    assert refused.error is not None
    assert refused.error.text == EN.say("refusals.role_untold", name="act", detail="admin")
    assert (await routing.invoke("look", turn=turn, message=olga)).ok
    assert callable_here(olga, turn, Path.MODEL) == [act.spec, look.spec]
    assert (act.runs, len(look.runs)) == ([], 1)


async def test_where_nobody_can_be_asked_for_a_role_the_callers_own_counts() -> None:
    act = Recorder("act", roles="admin", effect="once")
    routing = Routing(act)
    for caller in (a_member("Olga", Role.ADMIN), a_member("Ann")):
        await routing.invoke("act", path=Path.MCP, message=a_message(sender=caller))
    assert [one.sender.name for one in act.contexts] == ["Olga"]


async def test_an_admin_is_asked_for_no_more_than_the_rest_of_the_rules_allows() -> None:
    asked: list[MemberRef] = []

    async def tells(member: MemberRef) -> Role:
        asked.append(member)
        return Role.ADMIN

    olga = a_message(sender=a_member("Olga", Role.ADMIN))
    for options, runs, times in (
        ({"roles": "admin", "effect": "once", "scope": "private"}, 0, 0),
        ({"roles": "admin", "effect": "once"}, 1, 1),
        ({"roles": "admin", "effect": "read"}, 1, 0),
        ({"roles": "member", "effect": "once"}, 1, 0),
    ):
        act = Recorder("act", **options)
        routing = Routing(act)
        await routing.invoke("act", turn=routing.a_turn(live_role=tells), message=olga)
        assert (len(act.runs), len(asked)) == (runs, times), options
        asked.clear()
