"""Configurations that wiring refuses."""

from __future__ import annotations

import pytest

from bot.testing import a_group
from function_calls.schema.definition import DefinitionError
from tests.fakes.functions import Recorder


async def test_a_function_that_names_an_unknown_filter_is_told_and_cannot_be_called() -> None:
    guarded, plain = Recorder("guarded", commands=["guarded"], filters=["audit"]), Recorder("plain", commands=["plain"])
    async with a_group([guarded.spec, plain.spec]) as group:
        [found] = group.daemon.functions.faults
        assert "names the filter 'audit', which does not exist" in found.message
        await group.say("Ann", "/guarded")
        await group.say("Ann", "/plain")
    assert (guarded.runs, len(plain.runs)) == ([], 1)


async def test_functions_given_in_code_that_cannot_be_used_end_the_start() -> None:
    def unmarked() -> None:
        return None

    with pytest.raises(DefinitionError, match="is not marked with @tool_function"):
        async with a_group([unmarked]):
            pass
