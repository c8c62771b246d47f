"""The benchmark of requests to models: the share that providers can cache, and the functions on offer."""

from __future__ import annotations

import json

import pytest

from benchmarks.prompts import LANGUAGES, Request, main, shared


def test_the_shared_beginning_is_measured_between_requests_and_between_turns() -> None:
    requests = [
        Request(b"aaaa", frozenset(), begins_turn=True),
        Request(b"aaaabbbb", frozenset(), begins_turn=False),
        Request(b"aacc", frozenset(), begins_turn=True),
    ]
    assert shared(requests) == 0.5
    assert shared(requests, between_turns=True) == 0.5


@pytest.mark.requirement("B11")
def test_most_of_a_request_is_cached_and_the_wanted_function_is_on_offer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    figures = json.loads(capsys.readouterr().out)
    assert figures["turns"] == 47
    assert figures["shared"] >= 0.88
    assert figures["shared_between_turns"] >= 0.82
    assert figures["offered"] == dict.fromkeys(LANGUAGES, 1.0)
    assert figures["found"]["en"] >= 0.93
    assert figures["found"]["zh"] >= 0.99
    assert min(figures["found"].values()) >= 0.9
