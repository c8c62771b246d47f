"""A nested function may ask: the answer resumes all functions on the path to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.testing import FAMILY, Group, call
from services.refs import Role
from tests.bot.test_approvals import ADMIN, ANN, BOB, code_in, needing, post
from tests.fakes.functions import CITY, Recorder
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol


async def passes_on(context: Any, arguments: Any, own: Any) -> Any:
    return await own.invoke("post", {"city": "Oslo"})


def outer(**options: Any) -> Recorder:
    return Recorder("outer", does=passes_on, effect="idempotent", **options)


async def test_a_yes_to_a_commands_inner_function_runs_it_though_no_command_leads_there(tmp_path: Path) -> None:
    function = Recorder("post", CITY, effect="once", gives="posted", offered_to=["model"])
    specs = [function.spec, outer(commands=["outer"]).spec]
    async with a_group(specs, settings=needing(), home=tmp_path) as group:
        code = code_in(await group.say("Ann", "/outer"))
    # It is stored and still known after a restart.
    async with a_group(specs, settings=needing(), home=tmp_path) as group:
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]
    assert function.runs == [{"city": "Oslo"}]


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_a_yes_to_a_models_inner_function_runs_it_though_no_model_is_offered_it() -> None:
    function = post(offered_to=["command"])
    async with a_group([function.spec, outer().spec], settings=needing()) as group:
        group.model.says(call("outer"))
        code = code_in(await group.say("Ann", "@Rollcall do it now please"))
        group.model.says("Good.")
        assert "posted" in "\n".join(await group.say("Bob", f"approve {code}", **ADMIN))
    assert function.runs == [{"city": "Oslo"}]


async def test_a_confirmation_within_another_function_goes_on_too() -> None:
    function = Recorder("post", CITY, effect="once", gives="posted", offered_to=["model"], confirm="Really post?")
    async with a_group([function.spec, outer(commands=["outer"]).spec]) as group:
        assert await group.say("Ann", "/outer") == ["Really post?"]
        assert await group.say("Ann", "yes") == ["posted"]
    assert len(function.runs) == 1


async def asked_by_a_model(group: Group, **facts: Any) -> str:
    group.model.says(call("outer"))
    return code_in(await group.say("Ann", "@Rollcall do it now please", **facts))


async def test_a_right_that_the_asker_has_lost_meanwhile_keeps_it_closed() -> None:
    function = post(roles="moderator")
    async with a_group([function.spec, outer().spec], settings=needing()) as group:
        code = await asked_by_a_model(group, role=Role.MODERATOR)
        group.platform.roles[ANN] = Role.MEMBER
        group.platform.roles[BOB] = Role.ADMIN
        group.model.says("I could not.")
        await group.say("Bob", f"approve {code}", **ADMIN)
    assert function.runs == []


async def test_function_calling_that_was_switched_off_meanwhile_keeps_it_closed(tmp_path: Path) -> None:
    function = post()
    specs = [function.spec, outer().spec]
    async with a_group(specs, settings=needing(), home=tmp_path) as group:
        code = await asked_by_a_model(group)
    settings = {**needing(), "chats": {"allow": ["*"], "settings": {FAMILY.key: {"functions_on": False}}}}
    async with a_group(specs, settings=settings, home=tmp_path) as group:
        group.model.says("I could not.")
        await group.say("Bob", f"approve {code}", **ADMIN)
    assert function.runs == []


async def test_what_a_command_began_goes_on_though_models_may_call_nothing_any_more(tmp_path: Path) -> None:
    function = post()
    specs = [function.spec, outer(commands=["outer"]).spec]
    async with a_group(specs, settings=needing(), home=tmp_path) as group:
        code = code_in(await group.say("Ann", "/outer"))
    settings = {**needing(), "chats": {"allow": ["*"], "settings": {FAMILY.key: {"functions_on": False}}}}
    async with a_group(specs, settings=settings, home=tmp_path) as group:
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]
    assert function.runs == [{"city": "Oslo"}]
