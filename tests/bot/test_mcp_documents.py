"""Resources and prompts: those of the bot for programs, and those of servers for members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import TextContent, TextResourceContents

from bot.testing import a_group
from tests.harness.mcp_programs import ERAS, TOKEN, programs
from tests.harness.mcp_servers import function, servers, until


@pytest.mark.requirement("B9")
@pytest.mark.parametrize("mode", ERAS)
async def test_programs_read_the_help_that_they_may_use(mode: str) -> None:
    async with programs() as served, served.client(mode=mode) as client:
        [page] = (await client.list_resources()).resources
        [template] = (await client.list_resource_templates()).resource_templates
        overview = (await client.read_resource(page.uri)).contents[0]
        one = (await client.read_resource(template.uri_template.replace("{function}", "calculate"))).contents[0]
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("rollcall://help/nothing-at-all")
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("file:///etc/passwd")
    assert isinstance(overview, TextResourceContents)
    assert isinstance(one, TextResourceContents)
    assert "calculate" in one.text.lower()
    assert overview.text != one.text


async def test_a_program_without_the_function_help_has_no_pages_and_only_its_prompts() -> None:
    async with programs(clients=({"name": "editor", "functions": ["calculate"]},)) as served, served.client() as client:
        assert (await client.list_resources()).resources == []
        assert [one.name for one in (await client.list_prompts()).prompts] == ["calculate"]
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("rollcall://help")
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("roll_dice", {})


async def test_programs_read_the_documents_that_their_chat_searches(tmp_path: Path) -> None:
    for name in ("rules", "family", "later"):
        (tmp_path / name / "boats").mkdir(parents=True)
        (tmp_path / name / "boats" / "key box.md").write_text("# Boats\n\nThe key is in the box.\n\n## Canoe\n\nRed.")
    settings = {
        "knowledge": {
            "bases": {
                "rules": str(tmp_path / "rules"),
                "family": {"path": str(tmp_path / "family"), "chats": ["web:main:family"]},
                "later": {"path": str(tmp_path / "later"), "on_request": True},
            }
        }
    }
    async with programs(settings=settings) as served, served.client() as client:
        found = [one.uri for one in (await client.list_resources()).resources]
        assert found == ["rollcall://help", "rollcall://knowledge/rules/boats/key%20box.md"]
        [text] = (await client.read_resource(found[1])).contents
        for hidden in ("family/boats/key%20box.md", "later/boats/key%20box.md", "rules/../rules", "rules/none.md", "x"):
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(f"rollcall://knowledge/{hidden}")
    assert isinstance(text, TextResourceContents)
    assert text.text == "Boats\n\nThe key is in the box.\n\nBoats › Canoe\n\nRed."


async def test_a_program_that_may_not_search_documents_reads_none(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("The key is in the box.")
    settings = {"knowledge": {"bases": {"rules": str(tmp_path)}}}
    editor = {"name": "editor", "functions": ["help"]}
    async with programs(clients=(editor,), settings=settings) as served, served.client() as client:
        assert [one.uri for one in (await client.list_resources()).resources] == ["rollcall://help"]
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("rollcall://knowledge/rules/rules.md")


async def test_a_prompt_is_an_example_with_its_slots_filled() -> None:
    async with programs() as served, served.client() as client:
        prompts = {one.name: one for one in (await client.list_prompts()).prompts}
        [argument] = prompts["calculate"].arguments or ()
        got = await client.get_prompt("calculate", {argument.name: "6*7"})
        with pytest.raises(MCPError, match="missing"):
            await client.get_prompt("calculate", {})
    [message] = got.messages
    assert isinstance(message.content, TextContent)
    assert "6*7" in message.content.text


async def test_members_list_and_read_the_resources_and_prompts_of_a_server() -> None:
    async with programs() as served:
        entry: dict[str, Any] = {
            "name": "other",
            "url": served.url,
            "headers": {"Authorization": f"Bearer {TOKEN}"},
            "roles": "member",
            "resources": True,
            "prompts": True,
            "tools": {"resources": {"commands": ["pages"]}, "prompts": {"commands": ["prompts"]}},
        }
        async with a_group(settings=servers(entry)) as group:
            await until(group, lambda: function(group, "mcp__other__calculate"))
            assert "rollcall://help" in (await group.say("Ann", "/pages"))[0]
            assert "calculate" in (await group.say("Ann", "/pages rollcall://help/calculate"))[0].lower()
            assert "didn't work" in (await group.say("Ann", "/pages rollcall://nothing"))[0]
            assert "calculate(" in (await group.say("Ann", "/prompts"))[0]


async def test_resources_and_prompts_are_off_by_default() -> None:
    async with programs() as served:
        entry = {"name": "other", "url": served.url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        async with a_group(settings=servers(entry)) as group:
            await until(group, lambda: function(group, "mcp__other__calculate"))
            assert function(group, "mcp__other__resources") is None
            assert function(group, "mcp__other__prompts") is None
