"""docs/platforms/slack.md: its settings are valid, and its manifest asks for what the adapter uses."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bot.platforms.slack.platform import SCOPES
from config.loader import check_settings
from tests.docs.documents import Page
from tests.fakes.slack_server import FakeSlack

PAGE = Page("docs/platforms/slack.md")
SECRETS = {"SLACK_BOT_TOKEN": "xoxb-1-a", "SLACK_APP_TOKEN": "xapp-1-a"}
LEAVING_AND_MODERATING = {"channels:manage", "groups:write", "mpim:write", "pins:write"}


def test_settings_of_the_page_are_good(tmp_path: Path) -> None:
    [block] = PAGE.of("yaml")
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {**os.environ, **SECRETS})
    assert list(found) == []
    assert settings is not None
    [(network, account)] = [one for one in settings.platforms.networks if one[0] == "slack"]
    assert (network, account.secrets) == ("slack", ("xoxb-1-a", "xapp-1-a"))


def test_the_manifest_asks_for_the_scopes_and_events_that_are_used() -> None:
    [block] = PAGE.of("json")
    manifest = json.loads(block.text)
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == {*SCOPES, *LEAVING_AND_MODERATING}
    events = set(manifest["settings"]["event_subscriptions"]["bot_events"])
    kinds = {one.partition(".")[0] for one in events}
    assert kinds == {"app_mention", "message", "reaction_added", "member_joined_channel", "member_left_channel"}
    assert manifest["settings"]["socket_mode_enabled"]
    assert set(FakeSlack().scopes.split(",")) == set(SCOPES)
