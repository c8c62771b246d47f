"""The contract of networks, against a fake of Feishu that Feishu's SDK works with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.platforms.adapter import Host
from bot.platforms.contract import Network, a_host
from bot.platforms.feishu.adapter import ADAPTER, FeishuSettings
from tests.contracts.described import DescribedContract
from tests.fakes.feishu_server import ANN, APP_ID, APP_SECRET, BEN, GROUP, PRIVATE, ROBOT, FakeFeishu


def settings(feishu: FakeFeishu, **more: Any) -> FeishuSettings:
    """Settings of an account at the fake."""
    return FeishuSettings.model_validate(
        {"app_id": APP_ID, "app_secret": APP_SECRET, "domain": feishu.url or "feishu.cn", **more}
    )


@asynccontextmanager
async def a_network(home: Path) -> AsyncIterator[tuple[Network, Host]]:
    """Feishu with an account of the bot."""
    async with FakeFeishu().running() as feishu, a_host(home) as host:
        platform = ADAPTER.open(settings(feishu), host)
        network = Network(
            platform,
            feishu,
            group=GROUP,
            private=PRIVATE,
            ann=ANN,
            ben=BEN,
            robot=ROBOT,
            reopen=lambda: ADAPTER.open(settings(feishu), host),
        )
        try:
            yield network, host
        finally:
            await platform.close()


class TestFeishu(DescribedContract):
    """Feishu sends no event when a member edits a message."""

    lacks = frozenset({"edit"})
    open = staticmethod(a_network)  # type: ignore[assignment]
