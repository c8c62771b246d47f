"""Minding the settings: those in force, what is wrong with them, and who is told."""

from __future__ import annotations

from dataclasses import dataclass

from bot.backups import Backups
from bot.live_settings import LiveSettings
from bot.operator_news import OperatorNews
from bot.parts.ground import Ground
from bot.parts.offering import Offering
from bot.parts.sending import Sending
from bot.reload import Reload
from bot.unknown_names import UnknownNames


@dataclass(frozen=True, slots=True)
class Minding:
    """What holds, what cannot be used, and the news of it for operators."""

    live: LiveSettings
    """Nobody takes any yet."""
    reload: Reload
    news: OperatorNews
    names: UnknownNames
    backups: Backups


def minding_of(ground: Ground, offering: Offering, sending: Sending) -> Minding:
    """Of the settings' file and the sources of functions."""
    settings, given, registry = ground.settings, ground.given, ground.registry
    live = LiveSettings(settings)
    reload = Reload(live, given.read_settings, ground.faults)
    news = OperatorNews(
        settings.operators,
        sending.notices,
        ground.chats,
        ground.store,
        ground.clock,
        ground.redact,
        registry.serves_of,
    )
    names = UnknownNames(lambda: live.now, offering.sources, lambda: registry.specs, given.settings_file)
    news.watch("settings", lambda: reload.faults)
    news.watch("functions", lambda: offering.sources.faults)
    news.watch("names", lambda: names.faults)
    backups = Backups(settings, ground.clock, news.changed)
    news.watch("backups", lambda: backups.faults)
    return Minding(live, reload, news, names, backups)
