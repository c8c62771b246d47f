"""Unfinished work in a database of earlier code is continued. `python -m tests.golden.starting_database --write`
records the conversation again."""

from __future__ import annotations

import json

from tests.golden.conversations.player import play
from tests.golden.conversations.recordings import difference_of
from tests.golden.conversations.shared import Shared
from tests.golden.starting_database.before_and_after import EXPECTED, SHARED, conversation


async def test_everything_that_an_earlier_daemon_left_open_comes_to_its_end() -> None:
    recorded = await play(conversation("afterwards"), Shared(SHARED, is_open=False))
    difference = difference_of(json.loads(EXPECTED.read_text(encoding="utf-8")), recorded)
    assert not difference, difference
