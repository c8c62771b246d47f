"""One daemon on Matrix, XMPP and IRC at once, with real servers, a scripted model and broken connections."""

from __future__ import annotations

from pathlib import Path

from benchmarks.three_networks import Faults, Irc, Matrix, Xmpp, numbered, replayed
from tests.bot.platforms.matrix.other_side import World
from tests.harness.irc_servers import an_irc_server
from tests.harness.xmpp_servers import an_xmpp_server


async def test_three_networks_lose_and_repeat_nothing_when_their_connections_break(
    world: World, tmp_path: Path
) -> None:
    texts = numbered(["just talking"] * 80, 8)
    home, prosody = tmp_path / "daemon", tmp_path / "prosody"
    home.mkdir()
    prosody.mkdir()
    xmpp_server = an_xmpp_server(prosody)
    try:
        async with (
            an_irc_server("inspircd", tmp_path) as inspircd,
            Irc.open(inspircd) as irc,
            Matrix.open(world.server) as matrix,
            Xmpp.open(xmpp_server) as xmpp,
        ):
            day = await replayed(home, [irc, matrix, xmpp], texts)
    finally:
        xmpp_server.stop()
    assert list(day.faults.values()) == [Faults()] * 3
    assert list(day.answers.values()) == [10] * 3
