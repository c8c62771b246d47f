from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from config.diagnostics import Code, Diagnostics
from config.loader import SettingsInvalid, check_settings, load_settings
from config.settings import Settings
from tests.config.files import faults_of, places_and_codes, settings_of, written

SHIPPED = Path(__file__).parents[2] / "config" / "bot.yaml"


def test_all_faults_of_a_file_are_named_at_once_each_with_its_place(tmp_path: Path) -> None:
    text = """
        config_version: 1
        hme: x
        limits:
          queue_total: -1
          queue_per_chatt: 3
        models:
          - nme: main
            api_key: ${NOWHERE}
            base_url: ftp://models
          - name: b
            model: 1.10
            model: c
          - {name: b, model: x, temperature: hot}
        logging:
        chats:
          allow: ["web:*", web]
          settings:
            "web:a:B": {bot: defalt}
            "web:a:b": {enabled: maybe}
        bots: {Foo: {}}
        functions:
          weather: {roles: boss, timeout_seconds: true, scope: here}
        timezone: Oslo
        members: {"a:b:*": owner}
        store: *x
        router: !!map {max_rounds: 0}
        platforms: {web: {port: 99999}, http: {enabled: yes}}
    """
    faults = faults_of(tmp_path, text)
    assert places_and_codes(faults) == [
        "2:1 settings.unknown_key",
        "4:16 settings.bad_value",
        "5:3 settings.unknown_key",
        "7:5 settings.missing",
        "7:5 settings.missing",
        "7:5 settings.unknown_key",
        "8:14 env.unset",
        "9:15 settings.bad_value",
        "11:12 settings.bad_value",
        "12:5 yaml.duplicate_key",
        "13:12 settings.duplicate_name",
        "13:38 settings.bad_value",
        "14:1 settings.bad_value",
        "16:20 settings.bad_value",
        "18:22 settings.unknown_bot",
        "19:5 settings.ambiguous_key",
        "19:26 settings.bad_value",
        "20:8 settings.bad_value",
        "22:20 settings.bad_value",
        "22:43 settings.bad_value",
        "22:56 settings.bad_value",
        "23:11 settings.bad_value",
        "24:11 settings.bad_value",
        "25:8 yaml.alias",
        "26:9 yaml.tag",
        "26:28 settings.bad_value",
        "27:25 settings.bad_value",
        "27:33 settings.bad_value",
    ]


def test_a_fault_reads_as_file_line_column_code_and_what_to_do(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, "platforms:\n  web:\n    prt: 1\n")
    assert str(faults) == (
        f"{tmp_path}/bot.yaml:3:5 settings.unknown_key platforms.web.prt is not a setting; did you mean 'port'?"
    )


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("router: {max_round: 1}", "did you mean 'max_rounds'?"),
        ("models: [{name: a, model: b, timeout: 1}]", "did you mean 'timeout_seconds'?"),
        ("bots: {b: {functions: {f: {role: admin}}}}", "did you mean 'roles'?"),
        ("chats: {settings: {'a:b:c': {time-zone: UTC}}}", "did you mean 'timezone'?"),
        ("Limits: {}", "did you mean 'limits'?"),
        ("questions: {zzz: 1}", "there are: expires_seconds"),
    ],
)
def test_an_unknown_key_comes_with_the_key_that_was_probably_meant(tmp_path: Path, text: str, suggestion: str) -> None:
    (found,) = faults_of(tmp_path, text)
    assert found.code == Code.UNKNOWN_KEY
    assert found.message.endswith(suggestion)


def test_a_model_that_is_a_function_has_to_name_it(tmp_path: Path) -> None:
    (found,) = faults_of(tmp_path, "models: [{name: main, model: m, protocol: function}]")
    assert (found.code, "package.module:function" in found.message) == (Code.MISSING, True)


def test_a_price_has_to_be_that_of_a_model(tmp_path: Path) -> None:
    models = "models: [{name: main, model: m}]\n"
    (found,) = faults_of(tmp_path, f"{models}budgets: {{prices: {{mian: {{prompt: 1}}}}}}")
    assert found.code == Code.UNKNOWN_MODEL
    assert found.message.endswith("did you mean 'main'?")


@pytest.mark.parametrize(
    "text",
    ["", "# nothing yet\n", "~", "- a\n- b\n", "a word", "&x {}", "[", "{a: 1", "a: [*]"],
)
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    settings, faults = check_settings(written(tmp_path, text), {})
    assert settings is None
    assert faults.errors


def test_a_file_that_cannot_be_read_is_a_fault_like_others(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"absent\.yaml:1:1 settings\.unreadable cannot be read: No such file"):
        load_settings(tmp_path / "absent.yaml", {})
    assert check_settings(tmp_path, {})[1][0].code == Code.UNREADABLE


def test_a_file_for_another_release_is_told_so_and_nothing_else(tmp_path: Path) -> None:
    (found,) = faults_of(tmp_path, "config_version: 2\nnew_section: {a: 1}\nlimits: {queue_total: 0}\n")
    assert (found.line, found.column, found.code) == (1, 17, Code.WRONG_VERSION)
    assert "this release reads version 1: install the release" in found.message


def test_a_list_of_faults_is_what_the_error_says_and_holds(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid) as raised:
        load_settings(written(tmp_path, "a: 1\nb: 2\n"), {})
    assert str(raised.value).count("\n") == 1
    assert len(raised.value.diagnostics.errors) == 2


def test_no_fault_shows_a_secret(tmp_path: Path) -> None:
    text = """
        models: [{name: a, model: b, api_key: ["${KEY}"], base_url: "https://${KEY}@host"}]
        platforms: {http: {enabled: true, token: "${KEY}"}}
    """
    with pytest.raises(SettingsInvalid) as raised:
        load_settings(written(tmp_path, text), {"KEY": "sk-123"})
    assert len(raised.value.diagnostics) == 3
    assert "sk-123" not in f"{raised.value!r} {raised.value.diagnostics} {raised.value.__cause__!r}"


def test_a_secret_does_not_show_when_settings_are_printed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "config_version: 1", {"OPENAI_API_KEY": "sk-123"})
    assert settings.models[0].api_key.get_secret_value() == "sk-123"
    assert "sk-123" not in f"{settings!r} {settings.model_dump()} {settings.model_dump_json()}"


def test_what_pydantic_says_of_wrong_settings_shows_no_value() -> None:
    with pytest.raises(ValueError, match="api_key") as raised:
        Settings.model_validate({"models": [{"name": "a", "model": "b", "api_key": ["sk-123"]}]})
    assert "sk-123" not in str(raised.value)


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "config_version: 1")
    with pytest.raises(ValueError, match="frozen"):
        settings.router.enabled = False  # type: ignore[misc]


@pytest.mark.parametrize(
    "text",
    [
        "attempts: true",
        "attempts: 1.5",
        "attempts: many",
        "first_delay_seconds: .nan",
        "first_delay_seconds: nan",
        "longest_delay_seconds: inf",
    ],
)
def test_a_number_is_neither_a_switch_nor_infinite(tmp_path: Path, text: str) -> None:
    (found,) = faults_of(tmp_path, f"delivery: {{{text}}}")
    assert found.code == Code.BAD_VALUE


def test_the_pauses_of_delivery_cannot_shrink(tmp_path: Path) -> None:
    (found,) = faults_of(tmp_path, "delivery:\n  first_delay_seconds: 90\n")
    assert found.message == "delivery.longest_delay_seconds has to be at least first_delay_seconds"


def test_a_room_is_named_once(tmp_path: Path) -> None:
    text = "platforms: {web: {rooms: [{id: a}, {id: b}, {id: a}]}}"
    assert places_and_codes(faults_of(tmp_path, text)) == [f"1:{text.rindex('a') + 1} settings.duplicate_name"]


def test_there_is_always_a_default_bot(tmp_path: Path) -> None:
    assert set(settings_of(tmp_path, "bots: {butler: {name: Jeeves}}").bots) == {"default", "butler"}


def test_serving_every_chat_is_possible_but_warned_of(tmp_path: Path) -> None:
    settings, diagnostics = check_settings(written(tmp_path, 'chats:\n  allow:\n    - "*"\n'), {})
    assert settings is not None
    assert [(found.line, found.code, found.severity) for found in diagnostics] == [
        (3, Code.SERVES_EVERY_CHAT, "warning")
    ]
    assert diagnostics.errors == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("budgets: {member: {money: 1}}", "1:27"),
        ("budgets: {chat: {units: 5}}", "1:25"),
        ("failover: {first_answer_seconds: 90, total_seconds: 5}", "1:34"),
        ("failover: {cooldown_seconds: 100, longest_cooldown_seconds: 5}", "1:30"),
    ],
)
def test_a_limit_that_can_never_count_is_warned_of(tmp_path: Path, text: str, place: str) -> None:
    settings, found = check_settings(written(tmp_path, text), {})
    assert settings is not None
    assert places_and_codes(found) == [f"{place} settings.has_no_effect"]


def test_a_limit_that_counts_is_not_warned_of(tmp_path: Path) -> None:
    text = """
        models: [{name: main, model: m}]
        budgets: {member: {money: 1, units: 2}, prices: {main: {prompt: 1}}, functions: {weather: 1}}
    """
    assert faults_of(tmp_path, text) == []


def test_a_language_without_texts_is_warned_of_wherever_it_is_set(tmp_path: Path) -> None:
    text = """
        language: zh-TW
        bots: {b: {language: fr}}
        chats: {settings: {"a:b:c": {language: nl}}}
    """
    assert places_and_codes(faults_of(tmp_path, text)) == [
        "2:22 texts.no_such_language",
        "3:40 texts.no_such_language",
    ]


@pytest.mark.requirement("D16")
def test_a_model_is_any_server_that_speaks_the_protocol(tmp_path: Path) -> None:
    (model,) = settings_of(
        tmp_path, "config_version: 1", {"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1", "OPENAI_MODEL": "qwen3"}
    ).models
    assert (model.base_url, model.model, model.usable) == ("http://127.0.0.1:11434/v1", "qwen3", True)


def test_a_model_without_key_and_address_cannot_be_used(tmp_path: Path) -> None:
    (model,) = settings_of(tmp_path, "config_version: 1").models
    assert (model.name, model.model, model.usable) == ("main", "gpt-5-mini", False)


def test_the_home_folder_comes_from_the_environment_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    environment = {"ROLLCALL_HOME": "/srv/rollcall"}
    assert settings_of(tmp_path, "config_version: 1", environment).home == Path("/srv/rollcall")
    assert settings_of(tmp_path, "home: here", environment).home == Path("here")


def test_malformed_settings_of_the_corpus_are_refused(data: Callable[[str], Path], tmp_path: Path) -> None:
    lines = data("G_faults/yaml_config.jsonl").read_text(encoding="utf-8").splitlines()
    accepted = [case["id"] for case in map(json.loads, lines) if not faults_of(tmp_path, case["yaml"]).errors]
    assert lines
    assert accepted == []


def test_no_damage_to_a_file_does_more_than_make_it_invalid(tmp_path: Path) -> None:
    whole, dice = SHIPPED.read_text(encoding="utf-8"), random.Random(7)
    outcomes = {_is_good(*check_settings(written(tmp_path, _damaged(whole, dice)), {})) for _ in range(150)}
    assert outcomes == {True, False}


def _damaged(text: str, dice: random.Random) -> str:
    at, to = sorted(dice.sample(range(len(text)), 2))
    return dice.choice(
        [
            text[:at],
            text[:at] + dice.choice(":-[]{}\"'#&*!|>%@\t\n\x00\ud7ff${") + text[at:],
            text[:at] + text[min(to, at + 40) :],
            text[:at] + text[at : at + 60] + text[at:],
        ]
    )


def _is_good(settings: Settings | None, diagnostics: Diagnostics) -> bool:
    assert (settings is None) == bool(diagnostics.errors)
    return settings is not None


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("models: [{name: a, base_url: 'http://models.test/v1', model: m}]", True),
        ("models: [{name: a, base_url: 'https://models.test/v1', model: m}]", False),
        ("models: [{name: a, base_url: 'http://127.0.0.1:8000/v1', model: m}]", False),
        ("mcp: {servers: [{name: a, url: 'http://tools.test/mcp'}]}", True),
        ("mcp: {servers: [{name: a, url: 'http://localhost:1/mcp'}]}", False),
        ("platforms: {web: {public_url: 'http://chat.test'}}", True),
        ("platforms: {web: {public_url: 'https://chat.test'}}", False),
        ("store: {url: 'postgresql://a:hidden-word@db.test/x'}", True),
        ("store: {url: 'postgresql://a:hidden-word@db.test/x?sslmode=prefer'}", True),
        ("store: {url: 'postgresql://a:hidden-word@db.test/x?sslmode=verify-full'}", False),
        ("store: {url: 'postgresql://a:hidden-word@127.0.0.1/x'}", False),
        ("store: {url: 'postgresql:///x?host=/run/postgresql'}", False),
    ],
)
def test_secrets_sent_in_clear_to_other_machines_are_warned_of(tmp_path: Path, text: str, warned: bool) -> None:
    found = [str(one) for one in faults_of(tmp_path, text) if "secret_in_clear" in str(one)]
    assert bool(found) == warned
    assert "hidden-word" not in str(found)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("reasoning_effort: hihg", "models[0].reasoning_effort should be"),
        ("top_p: 0", "models[0].top_p should be greater than 0"),
        (
            "extra_body: {messages: []}",
            "models[0].extra_body must not contain 'messages': it is a part",
        ),
        ("extra_body: {top_p: 1}", "models[0].extra_body must not contain 'top_p': use the setting top_p"),
        ("extra_body: [1]", "models[0].extra_body has to be a mapping (key: value)"),
        ("headers: {Content-Length: '1'}", "has to be the name of a header, and none that the connection itself needs"),
        ('headers: {X-Key: "a\\nb"}', "models[0].headers.X-Key must not hold line ends"),
        ("headers: {authorization: a}", "models[0] has both api_key and a header Authorization; leave one of both"),
        ("api_version: a&b", "models[0].api_version has to be a version such as 2024-10-21"),
        ("{protocol: anthropic, reasoning_effort: low}", "cannot have reasoning_effort with the protocol anthropic"),
    ],
)
def test_a_wrong_parameter_of_a_model_is_named_with_what_it_may_be(tmp_path: Path, setting: str, message: str) -> None:
    more = setting.strip("{}") if setting.startswith("{") else setting
    text = f"config_version: 1\nmodels:\n  - {{name: main, model: m, api_key: k, {more}}}\n"
    (fault,) = faults_of(tmp_path, text)
    assert message in fault.message


def test_models_of_bots_chats_and_for_thinking_have_to_be_models_that_answer(tmp_path: Path) -> None:
    text = """
        config_version: 1
        models: [{name: main, model: m}, {name: spare, model: m}, {name: shadow, model: m}]
        router: {shadow: {model: shadow}, thinking: {model: shadow}}
        bots: {helper: {models: [mian, main]}}
        chats: {selectable_models: [spare, x], settings: {"web:main:a": {models: [main, shadow]}}}
    """
    faults = faults_of(tmp_path, text)
    assert [str(fault.message).split(",")[0] for fault in faults] == [
        "router.thinking.model names 'shadow'",
        "bots.helper.models[0] names 'mian'",
        "chats.selectable_models[1] names 'x'",
        "chats.settings.web:main:a.models[1] names 'shadow'",
    ]
    assert "did you mean 'main'" in faults[1].message
