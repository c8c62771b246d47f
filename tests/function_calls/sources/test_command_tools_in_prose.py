"""Command tools with a model without function calling: they are described in text, and XML calls are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.testing import Group
from services.clock import VirtualClock
from services.llm.profile import ModelProfile
from services.llm.protocols.text_protocol import TextProtocol
from tests.fakes.command_tools import a_group_with
from tests.fakes.openai_server import OpenAIServer

RUNNER = """
    tools:
      - name: code_runner
        description: Run code
        effect: read
        schema: {name: code_runner, parameters: {inputs: {lang: python, code: "print('Hello World')"}}}
        cmds: [[printf, "%s|%s", "${inputs.lang}", "${inputs.code}"]]
        system_prompt: PROMPT
"""
SAMPLE = """```xml
<tools>
  <tool name="code_runner">
    <parameters>
      <inputs>
        <lang>python</lang>
        <code>print('Hello World')</code>
      </inputs>
    </parameters>
  </tool>
</tools>
```"""
CALL = """I run it.
```xml
<tools>
  <tool name="code_runner">
    <parameters>
      <inputs><lang>lua</lang><code><![CDATA[if a < b then ; rm -rf / end]]></code></inputs>
    </parameters>
  </tool>
</tools>
```"""


def says(text: str) -> dict[str, Any]:
    return {"body": {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}}


async def asked(tmp_path: Path, prompt: str, *answers: str, python: str = "") -> tuple[list[Any], list[str]]:
    """Model requests, and the bot's messages."""
    async with OpenAIServer([says(one) for one in answers]) as server:
        profile = ModelProfile("main", "m-1", server.base_url, SecretStr("k"))
        model = TextProtocol(profile, VirtualClock(), "xml")
        group: Group
        async with a_group_with(tmp_path, RUNNER.replace("PROMPT", prompt), python, model=model) as group:
            said = await group.say("Ann", "@Rollcall run this code for me")
        await model.close()
    return [one.json["messages"] for one in server.requests], said


@pytest.mark.requirement("C3", "C16", "C17")
@pytest.mark.parametrize(
    "prompt", ['"You have a new tool. Use it so:\\n${schema}\\nBe safe."', '{python: "./own.py:prompt"}']
)
async def test_the_model_is_told_how_with_a_sample_of_the_call(tmp_path: Path, prompt: str) -> None:
    python = """
    def prompt(schema):
        assert "<lang>python</lang>" in schema
        return f"You have a new tool. Use it so:\\n{schema}\\nBe safe."
    """
    requests, _ = await asked(tmp_path, prompt, "No need.", python=python)
    assert f"### code_runner\nYou have a new tool. Use it so:\n{SAMPLE}\nBe safe." in requests[0][0]["content"]


@pytest.mark.requirement("C4", "C5", "C7")
async def test_its_xml_runs_the_command_with_the_values_as_they_are(tmp_path: Path) -> None:
    requests, said = await asked(tmp_path, '""', CALL, "It went well.")
    assert "lua|if a \\u003c b then ; rm -rf / end" in requests[1][-1]["content"]
    assert said == ["It went well."]


@pytest.mark.requirement("C6")
async def test_malformed_xml_goes_back_to_the_model(tmp_path: Path) -> None:
    requests, said = await asked(tmp_path, '""', CALL.replace("</inputs>", ""), CALL, "It went well.")
    assert "exactly in the form of the samples" in requests[1][-1]["content"]
    assert said == ["It went well."]
