"""FORMAT … AS: the function FORMAT, as many scripts write it."""

from __future__ import annotations

from random import Random

from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.scripts.session import ChatWorld
from services.clock import Clock

_JSON = "JSON"


@basic_keyword("FORMAT {value} [AS {pattern:word}]")
async def format_as(run: ScriptRun, value: Value, pattern: Value = None, *, clock: Clock, chance: Random) -> Value:
    """A number, date or text as the pattern wants it: `FORMAT NOW() AS "yyyy-MM-dd"`, `FORMAT total AS "0.00"`; and
    anything as JSON: `FORMAT order AS JSON`. Without a pattern it is the text that TALK would say."""
    world = ChatWorld(clock, run.call, chance)
    if pattern is None:
        return FUNCTIONS["format"].run(world, [value])
    if text_of(pattern).strip().upper() == _JSON:
        return FUNCTIONS["tojson"].run(world, [value])
    return FUNCTIONS["format"].run(world, [value, pattern])
