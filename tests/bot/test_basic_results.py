"""Declared results and custom properties of scripts, and statements that need a whole chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.checks.scripts_check import check_scripts
from bot.testing import a_group
from config.sections.basic import BasicSource
from config.settings import Settings
from function_calls.encodings import imported_definition, mcp_tool
from tests.bot.basic_group import a_group_with
from tests.fakes.functions import Recorder

PRICE = """\
PARAM amount AS number LIKE 2 DESCRIPTION "How many"
RETURNS price AS number DESCRIPTION "Price in euros"
META x-team "sales"
DESCRIPTION "Tell the price"
IF amount > 9 THEN RETURN "too many"
RETURN amount * 5
"""


@pytest.mark.requirement("B1", "B25")
async def test_a_declared_result_and_custom_properties_are_exported(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, price=PRICE) as group:
        spec = next(one for one in group.daemon.registry.of("default").specs if one.name == "price")
        exported = mcp_tool(spec)
    assert exported["outputSchema"] == {
        "type": "object",
        "properties": {"price": {"type": "number", "description": "Price in euros"}},
        "required": ["price"],
    }
    imported = imported_definition(exported)
    assert imported.metadata["x-team"] == "sales"
    assert imported.result_schema == exported["outputSchema"]


@pytest.mark.requirement("B1")
async def test_a_result_that_is_not_as_declared_ends_the_run_with_an_error(tmp_path: Path) -> None:
    call = 'TALK CALL("price", {})\n'.replace("{}", "12")
    async with a_group_with(tmp_path, price=PRICE, cheap='r = CALL "price", 2\nTALK r.price\n', dear=call) as group:
        assert await group.say("Ann", "/cheap") == ["10"]
        assert "price stopped at line 2" in " ".join(await group.say("Ann", "/dear"))


async def test_session_variables_of_one_member_are_not_those_of_another(tmp_path: Path) -> None:
    keep, read = 'SET "session.step" = username\nTALK "kept"\n', 'step = GET "session.step"\nTALK NVL(step, "none")\n'
    async with a_group_with(tmp_path, keep=keep, show=read) as group:
        await group.say("Ann", "/keep")
        assert await group.say("Ann", "/show") == ["Ann"]
        assert await group.say("Bo", "/show") == ["none"]


async def test_the_path_of_a_service_names_a_function(tmp_path: Path) -> None:
    service = Recorder("crm_tickets_list", {}, gives=["T-1"])
    script = 'found = CALL "/crm/tickets/list"\nTALK found[0]\n'
    async with a_group_with(tmp_path, [service.spec], find=script) as group:
        assert await group.say("Ann", "/find") == ["T-1"]


async def test_calls_of_unknown_functions_are_warned_about_at_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.bas").write_text('DESCRIPTION "A"\nx = CALL "b"\ny = CALL "/crm/list"\nUSE TOOL "gone"\n')
    (tmp_path / "b.bas").write_text('DESCRIPTION "B"\nRETURN 1\n')
    async with a_group([Recorder("other", {}).spec]) as group:
        others = group.daemon.registry.specs
    found = check_scripts(Settings(), [BasicSource(path=tmp_path)], others).findings
    assert [(one.line, one.code) for one in found] == [(3, "basic.unknown_call"), (4, "basic.unknown_call")]
