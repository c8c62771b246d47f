"""The gateway of all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.satori_gateway import SatoriGateway


@pytest.fixture(scope="session")
def gateway() -> Iterator[SatoriGateway]:
    started = SatoriGateway()
    yield started
    started.stop()
