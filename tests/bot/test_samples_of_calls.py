"""Sample calls for models without function calling: they are parsed as shown and would run."""

from __future__ import annotations

import pytest

from bot.testing import a_group
from function_calls.spec import ArgumentError
from services.llm import text_calls
from services.llm.protocols.text_protocol import Form, WriteCalls, sample_arguments, text_reader

WRITTEN: dict[Form, WriteCalls] = {"json": text_calls.write_json_calls, "xml": text_calls.write_xml_calls}


@pytest.mark.requirement("C3", "C16", "D28", "D51")
@pytest.mark.parametrize("form", WRITTEN)
async def test_every_sample_is_read_back_as_exactly_that_call_and_its_arguments_are_allowed(form: Form) -> None:
    async with a_group() as group:
        functions = group.daemon.registry.of("default")
    offer = functions.offer(functions.specs)
    assert len(offer.functions) > 40
    not_allowed = {}
    for function in offer.functions:
        sample = sample_arguments(function)
        read = text_reader(form, offer)(WRITTEN[form]([(function.name, sample)]), "")
        assert [(call.name, call.arguments) for call in read.calls] == [(function.name, sample)]
        assert (read.text, read.leaked) == ("", False)
        spec = functions.find(function.original)
        assert spec is not None
        try:
            spec.arguments.parse(sample)
        except ArgumentError as fault:
            not_allowed[spec.name] = fault.problems
    assert not_allowed == {}
