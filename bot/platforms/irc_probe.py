"""Whether a network can be used as it is set up: get in, look around, go."""

from __future__ import annotations

from contextlib import suppress

from bot.platforms.irc_channels import WantedChannels
from bot.platforms.irc_connection import Connection, ConnectionLost
from bot.platforms.irc_registration import Refused
from bot.platforms.irc_session import Session
from config.irc import IrcSettings
from services.clock import Clock
from services.deadlines import Deadlines

PROBE_SECONDS = 30.0


class CannotUse(Exception):
    """The network does not let the bot in; says why."""


async def probe(settings: IrcSettings, clock: Clock) -> str:
    """Connect, introduce the bot, join nothing, and leave. What the server says of itself, on one line. Raises
    CannotUse."""
    deadlines = Deadlines(clock)
    try:
        connection = await Connection.open(settings, clock, deadlines)
    except ConnectionLost as problem:
        raise CannotUse(str(problem)) from problem
    session = Session(connection, settings, WantedChannels((), settings.account, clock.monotonic), clock, deadlines)
    try:
        await deadlines.run(_let_in(session), clock.monotonic() + PROBE_SECONDS)
    except (ConnectionLost, Refused) as problem:
        raise CannotUse(str(problem)) from problem
    except TimeoutError:
        raise CannotUse(f"it did not let the bot in within {PROBE_SECONDS:g} s") from None
    finally:
        with suppress(OSError):
            await connection.close("only looking", deadlines)
    state = session.state
    network = state.features.network or settings.host
    ids = "gives messages ids" if "message-tags" in state.caps else "gives messages no ids"
    accounts = "tells accounts" if "account-tag" in state.caps else "tells no accounts, so everybody is a member"
    return f"{network} lets the bot in as {state.nick}; it {ids} and {accounts}"


async def _let_in(session: Session) -> None:
    lines = session.lines(lambda: None)
    try:
        async for _ in lines:
            if session.is_ready:
                return
    finally:
        await lines.aclose()
