"""FORMAT … AS does what the function FORMAT does."""

from __future__ import annotations

from random import Random

import pytest

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules import talk as format_keyword
from services.clock import Clock, VirtualClock
from tests.fakes.script_runs import a_run
from tests.function_calls.script_keywords.saying import Saying


@pytest.fixture
def say() -> Saying:
    return Saying([format_keyword], {Clock: VirtualClock(), Random: Random(1)})


@pytest.mark.parametrize(
    ("statement", "made"),
    [
        ('FORMAT total AS "#,##0.00"', "1,234.50"),
        ('FORMAT "2026-01-31" AS "dd/MM/yyyy"', "31/01/2026"),
        ("FORMAT order AS JSON", '{"id": 7, "open": true}'),
        ('FORMAT order AS "json"', '{"id": 7, "open": true}'),
    ],
)
async def test_a_value_is_given_as_its_pattern_wants_it(say: Saying, statement: str, made: str) -> None:
    assert await say(a_run(), statement, total=1234.5, order={"id": 7, "open": True}) == made


async def test_what_has_no_pattern_is_refused(say: Saying) -> None:
    with pytest.raises(RunError) as fault:
        await say(a_run(), 'FORMAT order AS "0.00"', order={"id": 7})
    assert fault.value.code is RunCode.WRONG_TYPE
