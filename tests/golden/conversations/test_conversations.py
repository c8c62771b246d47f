"""Whole conversations match their recordings: replies, reason codes, model requests, rows. `python -m
tests.golden.conversations --write [NAME…]` records them again."""

from __future__ import annotations

import pytest

from tests.golden.conversations import recordings
from tests.golden.conversations.player import play
from tests.golden.conversations.shared import Shared


@pytest.mark.parametrize("name", recordings.conversations())
async def test_a_conversation_goes_as_it_was_recorded(name: str) -> None:
    recorded = await play(recordings.conversations()[name], Shared(is_open=False))
    difference = recordings.difference(name, recorded)
    assert not difference, f"{name} went otherwise:\n{difference}"


def test_every_recording_belongs_to_a_conversation() -> None:
    assert recordings.recorded_names() == set(recordings.conversations())
