from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.chat_settings import ResolvedChat, chat_settings, is_allowed, matches, why_ignored
from config.settings import Settings
from config.terms import ROLE_NAMES
from services.refs import Role

FAMILY = "web:main:family"


def a_chat(settings: dict[str, object], key: str = FAMILY, **stored: str) -> ResolvedChat:
    return chat_settings(Settings.model_validate(settings), key, stored)


def test_without_any_setting_everything_is_a_default() -> None:
    chat = a_chat({})
    assert (chat.bot, chat.bot_name, chat.language, chat.timezone, chat.persona) == (
        "default",
        "Rollcall",
        "en",
        "UTC",
        "",
    )
    assert chat.enabled
    assert chat.functions_on
    assert set(chat.layers.values()) == {"default"}
    of_chat = {"language", "timezone", "persona", "functions_on", "context_scope", "memory_digest", "model"}
    assert set(chat.layers) == {
        "bot",
        "enabled",
        "chime_in",
        "quiet_hours",
        "voice_answers",
        "welcome",
        "goodbye",
        *of_chat,
    }
    assert not chat.memory_digest


@pytest.mark.parametrize(
    ("name", "values"),
    [("language", ["de", "fr", "nl", "sv"]), ("timezone", ["Asia/Tokyo", "Asia/Seoul", "Asia/Dubai", "Asia/Tehran"])],
)
def test_each_layer_wins_over_those_below_and_is_named(name: str, values: list[str]) -> None:
    settings: dict[str, object] = {name: values[0]}
    chat = a_chat(settings)
    assert (getattr(chat, name), chat.layers[name]) == (values[0], name)

    settings["bots"] = {"default": {name: values[1]}}
    chat = a_chat(settings)
    assert (getattr(chat, name), chat.layers[name]) == (values[1], f"bots.default.{name}")

    settings["chats"] = {"settings": {FAMILY: {name: values[2]}}}
    chat = a_chat(settings)
    assert (getattr(chat, name), chat.layers[name]) == (values[2], f"chats.settings.{FAMILY}.{name}")

    chat = a_chat(settings, **{name: values[3]})
    assert (getattr(chat, name), chat.layers[name]) == (values[3], "chat")


@pytest.mark.parametrize("text", ["off", "chance", "chance 0.5%", "chance 25%", "judge", "judge 60"])
def test_a_chat_sets_chime_in(text: str) -> None:
    assert a_chat({}, chime_in=text).chime_in == text


@pytest.mark.parametrize("text", ["on", "chance 26%", "chance 25.1%", "chance 5", "chance -1%", "judge 0", "judge 61"])
def test_what_is_no_value_of_chime_in_is_ignored(text: str) -> None:
    assert a_chat({}, chime_in=text).ignored == {"chime_in": "bad_value"}


def test_quiet_hours_are_off_in_a_chat_that_says_so() -> None:
    settings: dict[str, object] = {"chats": {"settings": {FAMILY: {"quiet_hours": "22:00-07:00"}}}}
    assert a_chat(settings).quiet_hours == "22:00-07:00"
    assert a_chat(settings, quiet_hours="off").quiet_hours == "off"
    assert a_chat(settings, quiet_hours="22-7").ignored == {"quiet_hours": "bad_value"}


def test_a_persona_may_be_taken_back_by_a_chat() -> None:
    settings: dict[str, object] = {"bots": {"default": {"persona": "You are a pirate."}}}
    assert a_chat(settings).persona == "You are a pirate."
    chat = a_chat(settings, persona="")
    assert (chat.persona, chat.layers["persona"]) == ("", "chat")


def test_a_chat_has_the_settings_of_its_own_bot() -> None:
    chat = a_chat(
        {
            "bots": {
                "default": {"language": "de"},
                "butler": {"name": "Jeeves", "aliases": ["sir"], "persona": "Be dry."},
            },
            "chats": {"settings": {"web:*": {"bot": "butler"}}},
        }
    )
    assert (chat.bot, chat.bot_name, chat.aliases, chat.persona) == ("butler", "Jeeves", ("sir",), "Be dry.")
    assert (chat.language, chat.layers["bot"]) == ("en", "chats.settings.web:*.bot")


def test_of_several_patterns_each_setting_comes_from_the_most_precise_that_has_it() -> None:
    entries = {
        "*": {"language": "de", "persona": "a", "timezone": "Asia/Tokyo", "functions_on": False},
        "web:main:*": {"language": "fr", "persona": "b"},
        FAMILY: {"language": "nl"},
        "web:*:*": {"language": "sv", "persona": "c", "timezone": "Asia/Seoul"},
    }
    chat = a_chat({"chats": {"settings": entries}})
    assert {name: chat.layers[name] for name in ("language", "persona", "timezone", "functions_on")} == {
        "language": f"chats.settings.{FAMILY}.language",
        "persona": "chats.settings.web:main:*.persona",
        "timezone": "chats.settings.web:*:*.timezone",
        "functions_on": "chats.settings.*.functions_on",
    }


def test_nothing_is_more_precise_than_the_key_itself() -> None:
    entries = {f"{FAMILY}*": {"language": "de"}, FAMILY: {"language": "fr"}}
    assert a_chat({"chats": {"settings": entries}}).language == "fr"


def test_of_patterns_that_are_as_precise_the_first_wins() -> None:
    entries = {"web:m*:family": {"language": "de"}, "web:*n:family": {"language": "fr"}}
    assert a_chat({"chats": {"settings": entries}}).language == "de"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("language", "zh", None),
        ("language", "not a language", "bad_value"),
        ("timezone", "Asia/Shanghai", None),
        ("timezone", "Mars/Olympus", "bad_value"),
        ("functions_on", "off", None),
        ("functions_on", "perhaps", "bad_value"),
        ("persona", "x" * 2001, "bad_value"),
        ("bot", "butler", "unknown"),
        ("enabled", "on", "unknown"),
    ],
)
def test_what_a_chat_sets_for_itself_is_checked(name: str, text: str, why: str | None) -> None:
    assert why_ignored(Settings(), name, text) == why
    chat = a_chat({}, FAMILY, **{name: text})
    assert chat.ignored == ({name: why} if why else {})
    assert (chat.layers.get(name) == "chat") == (why is None)


def test_a_chat_changes_only_what_the_settings_let_it_change() -> None:
    chat = a_chat({"chats": {"changeable": ["language"]}}, language="zh", timezone="Asia/Shanghai")
    assert (chat.language, chat.timezone) == ("zh", "UTC")
    assert chat.ignored == {"timezone": "not_changeable"}


@pytest.mark.requirement("D30", "D67")
def test_the_switch_of_the_router_stands_above_every_chat() -> None:
    on: dict[str, object] = {"chats": {"settings": {FAMILY: {"functions_on": True}}}}
    assert a_chat(on, functions_on="on").functions_on
    chat = a_chat({**on, "router": {"enabled": False}}, functions_on="on")
    assert (chat.functions_on, chat.layers["functions_on"]) == (False, "router.enabled")


@pytest.mark.requirement("D40")
def test_a_function_is_off_where_the_nearest_layer_says_so() -> None:
    settings: dict[str, object] = {"functions": {"weather": {"enabled": False}}}
    weather = a_chat(settings).functions["weather"]
    assert (weather.enabled, weather.layers["enabled"]) == (False, "functions.weather.enabled")

    settings["bots"] = {"default": {"functions": {"weather": {"enabled": True}}}}
    weather = a_chat(settings).functions["weather"]
    assert (weather.enabled, weather.layers["enabled"]) == (True, "bots.default.functions.weather.enabled")

    settings["chats"] = {"settings": {FAMILY: {"functions": {"weather": {"enabled": False}}}}}
    weather = a_chat(settings).functions["weather"]
    key = f"chats.settings.{FAMILY}.functions.weather.enabled"
    assert (weather.enabled, weather.layers["enabled"]) == (False, key)
    assert a_chat(settings, "web:main:work").functions["weather"].enabled


def test_each_field_of_a_function_has_its_own_layer() -> None:
    weather = a_chat(
        {
            "functions": {"weather": {"roles": "admin", "timeout_seconds": 5, "scope": "group"}},
            "bots": {"default": {"functions": {"weather": {"timeout_seconds": 9}}}},
            "chats": {"settings": {FAMILY: {"functions": {"weather": {"require_at": True}}}}},
        }
    ).functions["weather"]
    assert (weather.enabled, weather.layers["enabled"]) == (True, "default")
    assert weather.roles == frozenset({"admin", "owner"})
    assert (weather.timeout_seconds, weather.require_at, weather.scope) == (9, True, "group")
    assert weather.layers["timeout_seconds"] == "bots.default.functions.weather.timeout_seconds"
    assert weather.layers["scope"] == "functions.weather.scope"


def test_functions_of_another_bot_do_not_matter() -> None:
    settings: dict[str, object] = {"bots": {"butler": {"functions": {"weather": {"enabled": False}}}}}
    assert a_chat(settings).functions == {}


def test_roles_are_a_list_or_the_least_of_them() -> None:
    chat = a_chat({"functions": {"a": {"roles": "moderator"}, "b": {"roles": ["member", "owner"]}}})
    assert chat.functions["a"].roles == frozenset({"moderator", "admin", "owner"})
    assert chat.functions["b"].roles == frozenset({"member", "owner"})


def test_the_ladder_of_roles_is_the_one_that_calls_are_judged_by() -> None:
    assert list(ROLE_NAMES) == [role.value for role in sorted(Role, key=lambda role: role.rank)]


def test_a_chat_that_no_pattern_names_is_not_served() -> None:
    settings = Settings.model_validate({"chats": {"allow": ["web:*", "irc:bot:#rollcall"]}})
    assert is_allowed(settings, FAMILY) == "web:*"
    assert is_allowed(settings, "irc:bot:#rollcall") == "irc:bot:#rollcall"
    assert is_allowed(settings, "irc:bot:#rollcall2") is None
    assert is_allowed(settings, "xweb:main:family") is None
    assert is_allowed(Settings(), FAMILY) is None


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("web:main:family", True),
        ("web:main:Family", False),
        ("*", True),
        ("web:*:family", True),
        ("*:*:*", True),
        ("w*b:m*n:f*y", True),
        ("web:main:family*", True),
        ("web:main:?amily", False),
        ("web:main:[f]amily", False),
        ("web:main:fam*mily", False),
    ],
)
def test_only_the_star_stands_for_other_characters(pattern: str, fits: bool) -> None:
    assert matches(pattern, FAMILY) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_a_pattern_fits_as_its_definition_says(pattern: str, text: str) -> None:
    def fits(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(fits(pattern[1:], text[skipped:]) for skipped in range(len(text) + 1))
        return text[:1] == pattern[0] and fits(pattern[1:], text[1:])

    assert matches(pattern, text) is fits(pattern, text)
