from __future__ import annotations

from bot.testing import a_group
from function_calls.spec import OfferedTo
from tests.function_calls.handlers.running import SLOT


async def test_every_slot_of_an_example_is_a_parameter_and_both_languages_have_examples() -> None:
    async with a_group() as group:
        specs = group.daemon.registry.of("default").specs
    for spec in specs:
        examples, words = spec.prompt.examples, spec.command.words
        slots = {slot for example in examples for slot in SLOT.findall(example)}
        assert slots <= set(spec.parameters["properties"]), spec.name
        if not {OfferedTo.MODEL, OfferedTo.COMMAND} <= spec.access.offered_to:
            continue
        chinese = [example for example in examples if any("\u4e00" <= sign <= "\u9fff" for sign in example)]
        assert len(examples) - len(chinese) >= 5, spec.name
        assert len(chinese) >= 2, spec.name
        assert any(word.isascii() for word in words), spec.name
        assert any(not word.isascii() for word in words), spec.name
