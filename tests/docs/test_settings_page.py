"""docs/settings.md matches the models of the settings."""

from __future__ import annotations

import re

from config.settings import Settings
from tests import settings_page


def test_the_page_is_up_to_date() -> None:
    assert settings_page.main([]) == 0, "run: python -m tests.settings_page --write"


def test_every_key_has_a_meaning() -> None:
    rows = re.findall(r"^\| `(.+?)` \| .* \| (.*) \|$", settings_page.page(), re.MULTILINE)
    assert {name for name, _ in rows} >= set(Settings.model_fields)
    assert [name for name, meaning in rows if not meaning] == []


def test_every_link_within_the_page_leads_to_an_anchor() -> None:
    page = settings_page.page()
    anchors = re.findall(r'<a id="(.+?)">', page)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\(#(.+?)\)", page)) <= set(anchors)
