"""One server for all tests of XMPP; each test has its own rooms and accounts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.xmpp_servers import XmppServer, an_xmpp_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[XmppServer]:
    started = an_xmpp_server(tmp_path_factory.mktemp("prosody"))
    yield started
    started.stop()
