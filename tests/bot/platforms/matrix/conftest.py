"""The server of all tests of Matrix."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bot.platforms.matrix.other_side import World
from tests.harness.matrix_servers import a_matrix_server


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with a group of Ann, Ben and a bot that is not ours. Tests use bots of their own."""
    server = a_matrix_server(tmp_path_factory.mktemp("synapse"))
    server.start()
    try:
        yield World.made_on(server)
    finally:
        server.stop()
