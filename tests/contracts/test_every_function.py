"""One contract for every built-in function: a command and a model reach the same result, and both are refused alike."""

from __future__ import annotations

import pytest

from bot.testing import Group, a_group
from function_calls.spec import FunctionResult, FunctionSpec, OfferedTo
from services.refs import ErrorCode, Role
from tests.contracts.every_function import ALONE, CASES, Case, Runs, a_chat, by_command, by_model, say
from tests.fakes.kept import last_reason

STATE_HAS_CHANGED = (ErrorCode.NOT_FOUND, ErrorCode.BAD_ARGUMENTS, ErrorCode.REFUSED)
BY_COMMAND = [name for name, case in CASES.items() if case.command]
BY_MODEL = [name for name, case in CASES.items() if case.by_model]


def facts(result: FunctionResult) -> tuple[object, list[str], ErrorCode | None]:
    """Data, texts and error of a result. Buttons differ: what a model called can be undone."""
    return result.data, [message.text for message in result.messages], result.error and result.error.code


def spec_of(group: Group, name: str) -> FunctionSpec:
    spec = group.daemon.registry.of("default").find(name)
    assert spec is not None
    return spec


async def test_every_function_that_a_member_or_a_model_can_call_has_a_case() -> None:
    async with a_group() as group:
        specs = {spec.name: spec for spec in group.daemon.registry.of("default").specs}
    callable_by = {OfferedTo.MODEL, OfferedTo.COMMAND}
    assert set(CASES) == {name for name, spec in specs.items() if spec.access.offered_to & callable_by}
    for name, case in CASES.items():
        assert bool(case.command) == (OfferedTo.COMMAND in specs[name].access.offered_to), name
        assert case.by_model == (OfferedTo.MODEL in specs[name].access.offered_to), name


@pytest.mark.requirement("D2", "D3")
@pytest.mark.parametrize("name", BY_COMMAND)
async def test_a_command_and_a_model_reach_the_same_result(name: str) -> None:
    case = CASES[name]
    commanded, called = Runs(name), Runs(name)
    async with a_chat(case, commanded) as group:
        assert await by_command(group, case)
    assert [result.error and result.error.code for result in commanded.results] == [case.error]
    if case.by_model:
        async with a_chat(case, called) as group:
            assert await by_model(group, case, name, case.arguments)
        assert [*map(facts, called.results)] == [*map(facts, commanded.results)]


@pytest.mark.requirement("D37", "D12")
@pytest.mark.parametrize("name", list(CASES))
async def test_a_member_without_the_role_or_in_the_wrong_place_is_refused(name: str) -> None:
    case, runs = CASES[name], Runs(name)
    async with a_chat(case, runs) as group:
        access = spec_of(group, name).access
        refused: list[tuple[Case, Role]] = []
        if Role.MEMBER not in access.roles:
            refused.append((case, Role.MEMBER))
        if access.scope != "both":
            refused.append((case.elsewhere(), Role.OWNER))
        for place, role in refused:
            if case.command:
                assert await say(group, place, f"/{case.command}", "Tom", role)
                assert (await last_reason(group))[0] not in ("direct", "asked")
            if case.by_model:
                assert await by_model(group, place, name, case.arguments, who="Tom", role=role)
                offer = group.model.requests[-2].offer
                assert offer is None or name not in {one.name for one in offer.functions}
    assert runs.results == []


@pytest.mark.requirement("D29")
@pytest.mark.parametrize("name", BY_MODEL)
async def test_bad_arguments_are_explained_to_the_model_and_nothing_runs(name: str) -> None:
    case, runs = CASES[name], Runs(name)
    async with a_chat(case, runs) as group:
        await by_model(group, case, name, {**case.arguments, "nonsense": [1]})
        answer = group.model.requests[-1].messages[-1].content
    assert runs.results == []
    assert ErrorCode.BAD_ARGUMENTS.value in answer
    assert "nonsense" in answer


@pytest.mark.parametrize("name", BY_COMMAND)
async def test_three_members_at_once_are_each_answered(name: str) -> None:
    case, runs = CASES[name], Runs(name)
    members = ("Ann", "Ben", "Cleo")
    where = {"chat": ALONE, "is_group": False} if case.private else {}
    async with a_chat(case, runs) as group:
        group.model.says(*case.writes * 3)
        before = len(group.platform.sent)
        for who in members:
            await group.hear(who, f"/{case.command}", role=Role.OWNER, **where)
        await group.settle()
        assert len(group.platform.sent) - before >= 3
        for who in members:
            await group.hear(who, "@Rollcall yes", role=Role.OWNER, **where)
        await group.settle()
    assert len(runs.results) == 3
    assert {result.error.code for result in runs.results if result.error} <= {case.error, *STATE_HAS_CHANGED}
