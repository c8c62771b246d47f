"""Permissions: all entry points, roles and scopes, with the current role of the member."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.testing import Group, TestPlatform, a_group, call
from function_calls.call import CallRequest, Path
from function_calls.turn import Turn, TurnInput
from services.refs import ChatRef, MemberRef, Role
from tests.fakes.functions import Recorder

ANN = MemberRef("test", "bot", "ann")
SCOPES = ("group", "private", "both")
Way = Callable[[Group, str, dict[str, Any]], Awaitable[None]]


async def by_command(group: Group, name: str, facts: dict[str, Any]) -> None:
    await group.say("Ann", f"/{name}", **facts)


async def by_model(group: Group, name: str, facts: dict[str, Any]) -> None:
    group.model.says(call(name), "Well.")
    await group.say("Ann", "@Rollcall please", **facts)


async def by_a_function(group: Group, name: str, facts: dict[str, Any]) -> None:
    await group.say("Ann", f"/outer {name}", **facts)


async def by_a_function_of_the_model(group: Group, name: str, facts: dict[str, Any]) -> None:
    group.model.says(call("outer", name=name), "Well.")
    await group.say("Ann", "@Rollcall please", **facts)


def by_hand(path: Path) -> Way:
    async def invoke(group: Group, name: str, facts: dict[str, Any]) -> None:
        daemon, context = group.daemon, group.message("Ann", "", **facts)
        given = TurnInput(
            id=context.key.native_id,
            functions=daemon.registry.of("default"),
            profile=lambda: daemon.chats.profile(context.chat),
        )
        turn = Turn(given, group.clock.monotonic() + 60)
        await daemon.invoker.invoke(CallRequest(context, name, {}, turn, path))

    return invoke


WAYS: dict[str, Way] = {
    "command": by_command,
    "model": by_model,
    "nested": by_a_function,
    "nested in the model's": by_a_function_of_the_model,
    **{path.value: by_hand(path) for path in (Path.CLI, Path.API, Path.MCP, Path.TIMER)},
}


def outer() -> Recorder:
    """A function that calls the function named in its argument."""

    async def does(context: Any, arguments: Any, own: Any) -> str:
        return str((await own.invoke(arguments["name"], {})).for_model())

    name = {"name": {"type": "string", "required": True}}
    return Recorder("outer", name, does=does, commands=["outer"], effect="idempotent")


@pytest.mark.requirement("D37", "D60", "E35")
@pytest.mark.parametrize("way", WAYS)
async def test_each_way_refuses_every_role_and_scope_that_it_must(way: str) -> None:
    functions = {
        (scope, least): Recorder(f"act_{scope}_{least}", scope=scope, roles=least, effect="once", commands=[name])
        for scope, least in itertools.product(SCOPES, Role)
        for name in [f"act_{scope}_{least}"]
    }
    specs = [outer().spec, *(one.spec for one in functions.values())]
    async with a_group(specs) as group:
        for role, is_group in itertools.product(Role, (True, False)):
            group.platform.roles[ANN] = role
            for (scope, least), function in functions.items():
                function.runs.clear()
                await WAYS[way](group, function.spec.name, {"role": role, "is_group": is_group})
                right = role.rank >= least.rank and scope in ("both", "group" if is_group else "private")
                assert len(function.runs) == right, (way, scope, least, role, is_group)


@pytest.mark.requirement("D37", "E35")
@pytest.mark.parametrize("way", ["command", "model", "nested", "nested in the model's"])
@pytest.mark.parametrize("now", [Role.MEMBER, Role.MODERATOR])
async def test_who_is_no_longer_what_the_message_says_may_not_do_what_is_risky(way: str, now: Role) -> None:
    act = Recorder("act", roles="admin", effect="once", commands=["act"])
    async with a_group([outer().spec, act.spec]) as group:
        facts = {"role": Role.ADMIN}
        await WAYS[way](group, "act", facts)
        assert len(act.runs) == 1
        group.platform.roles[ANN] = now
        await WAYS[way](group, "act", facts)
        assert len(act.runs) == 1


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"roles": "admin", "effect": "once"}, 1),
        ({"roles": "admin", "effect": "idempotent"}, 1),
        ({"roles": "admin", "touches": "reads_private"}, 1),
        ({"roles": "admin"}, 0),
        ({"effect": "once"}, 0),
    ],
)
async def test_the_platform_is_asked_only_before_what_is_risky(options: dict[str, Any], asked: int) -> None:
    act = Recorder("act", commands=["act"], **options)
    platform = CountsQuestions()
    async with a_group([act.spec], platform=platform) as group:
        assert await group.say("Ann", "/act", role=Role.ADMIN) == ["done"]
    assert platform.asked == asked


class CountsQuestions(TestPlatform):
    """Counts the role requests."""

    __test__ = False
    asked = 0

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        self.asked += 1
        return self.roles.get(member)


class NeverAnswers(TestPlatform):
    """Never answers a role request."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        self.asked.set()
        await asyncio.Event().wait()
        return Role.OWNER


class Silent(TestPlatform):
    """Cannot determine a member's role."""

    __test__ = False

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        return None


async def test_settings_that_open_a_function_to_all_leave_nothing_to_ask() -> None:
    act = Recorder("act", commands=["act"], roles="admin", effect="once")
    for roles, answer in (("member", "done"), ("moderator", "Only moderators and above can use “/act”, and")):
        settings = {"chats": {"allow": ["*"]}, "functions": {"act": {"roles": roles}}}
        async with a_group([act.spec], settings=settings, platform=Silent()) as group:
            [said] = await group.say("Ann", "/act", role=Role.ADMIN)
            assert said.startswith(answer)


@pytest.mark.requirement("D37")
async def test_a_platform_that_does_not_answer_in_time_gives_no_privilege() -> None:
    act = Recorder("act", commands=["act"], roles="admin", effect="once")
    platform = NeverAnswers()
    async with a_group([act.spec], platform=platform) as group:
        await group.hear("Ann", "/act", role=Role.ADMIN)
        await platform.asked.wait()
        await group.clock.advance(3)
        group.deadlines.expire()
        await group.settle()
        [said] = group.platform.sent
        assert (
            said.text
            == "Only admins and above can use “/act”, and I can't check right now who they are. Please try again later."
        )
    assert act.runs == []


async def test_a_role_that_the_settings_give_counts_beside_what_the_platform_says() -> None:
    act = Recorder("act", commands=["act"], roles="admin", effect="once")
    async with a_group([act.spec], settings={"chats": {"allow": ["*"]}, "members": {ANN.key: "owner"}}) as group:
        group.platform.roles[ANN] = Role.MEMBER
        assert await group.say("Ann", "/act") == ["done"]
        assert await group.say("Bob", "/act") == ["Only admins and above can use “/act”."]
