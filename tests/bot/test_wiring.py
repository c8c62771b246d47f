"""What wiring refuses to build."""

from __future__ import annotations

import pytest

from bot.testing import a_group
from function_calls.definition import DefinitionError
from tests.fakes.functions import Recorder


async def test_a_function_that_names_an_unknown_filter_is_refused_at_the_start() -> None:
    with pytest.raises(DefinitionError, match="names the filter 'audit', which does not exist"):
        async with a_group([Recorder("plain", filters=["audit"]).spec]):
            pass
