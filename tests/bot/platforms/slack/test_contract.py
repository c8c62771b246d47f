"""The contract of networks, against a fake of Slack that slack_bolt works with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.platforms.adapter import Host
from bot.platforms.contract import Network, a_host
from bot.platforms.slack.platform import ADAPTER, SlackSettings
from tests.contracts.described import DescribedContract
from tests.fakes.slack_server import ANN, APP_TOKEN, BEN, BOT_TOKEN, GROUP, PRIVATE, ROBOT, FakeSlack


def settings(slack: FakeSlack) -> SlackSettings:
    """Settings of an account at the fake."""
    return SlackSettings.model_validate(
        {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "api_url": f"{slack.url}/api/"}
    )


@asynccontextmanager
async def a_network(home: Path) -> AsyncIterator[tuple[Network, Host]]:
    """Slack with an account of the bot."""
    async with FakeSlack().running() as slack, a_host(home) as host:
        platform = ADAPTER.open(settings(slack), host)
        network = Network(
            platform,
            slack,
            group=GROUP,
            private=PRIVATE,
            ann=ANN,
            ben=BEN,
            robot=ROBOT,
            reopen=lambda: ADAPTER.open(settings(slack), host),
        )
        try:
            yield network, host
        finally:
            await platform.close()


class TestSlack(DescribedContract):
    """Slack."""

    open = staticmethod(a_network)  # type: ignore[assignment]
