"""What all tests in a browser share: they wait for what a page shows, and a busy machine takes its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.async_api import expect

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    """Nothing is taken for missing within a minute; the library's own limit is five seconds."""
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    yield
    expect.set_options(timeout=None)
