"""Records of model requests for operators."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from bot.testing import a_group
from services.llm.model import ModelAnswer, Usage


@pytest.mark.requirement("D47")
async def test_each_answer_is_logged_with_its_request_its_duration_and_its_tokens(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        group.model.says(ModelAnswer("Cold.", request_id="req-1", model="m", finish="stop", usage=Usage(100, 7)))
        assert await group.say("Ann", "@Rollcall how is Oslo?") == ["Cold."]
    (line,) = map(orjson.loads, (tmp_path / "logs" / "model_requests.jsonl").read_bytes().splitlines())
    assert (line["request_id"], line["model"], line["duration_ms"], line["round"]) == ("req-1", "m", 0, 0)
    assert (line["prompt_tokens"], line["completion_tokens"], line["calls"]) == (100, 7, [])
    assert "Oslo" not in str(line)
