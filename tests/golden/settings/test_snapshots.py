"""All existing forms of settings files still load, with the same meaning. `python -m tests.golden --write` records
again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.settings import snapshots


def test_a_file_that_says_nothing_has_the_recorded_defaults() -> None:
    recorded = json.loads(snapshots.DEFAULTS.read_text(encoding="utf-8"))
    assert snapshots.difference(snapshots.defaults(), recorded) == {}


@pytest.mark.parametrize("file", snapshots.files(), ids=lambda file: file.stem)
def test_a_file_of_settings_means_what_it_meant(file: Path) -> None:
    recorded = json.loads(snapshots.EXPECTED.read_text(encoding="utf-8"))
    assert snapshots.now(file) == recorded[file.stem]


def test_what_is_recorded_is_of_the_files_that_there_are() -> None:
    recorded = json.loads(snapshots.EXPECTED.read_text(encoding="utf-8"))
    assert recorded.keys() == {file.stem for file in snapshots.files()}
