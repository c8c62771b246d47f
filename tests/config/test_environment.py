from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import faults_of, places_and_codes, settings_of

PERSONA = 'bots: {{default: {{persona: "{}"}}}}\n'


@pytest.mark.parametrize(
    ("text", "persona"),
    [
        ("${NAME}", "Ann"),
        ("I am ${NAME}, ${NAME}.", "I am Ann, Ann."),
        ("${ABSENT:-nobody}", "nobody"),
        ("${EMPTY:-nobody}", "nobody"),
        ("${NAME:-nobody}", "Ann"),
        ("${ABSENT:-}", ""),
        ("${EMPTY}", ""),
        ("$${NAME}", "${NAME}"),
        ("$NAME and $5", "$NAME and $5"),
    ],
)
def test_a_reference_is_replaced_in_a_text(tmp_path: Path, text: str, persona: str) -> None:
    settings = settings_of(tmp_path, PERSONA.format(text), {"NAME": "Ann", "EMPTY": ""})
    assert settings.bots["default"].persona == persona


@pytest.mark.parametrize("text", ["${ABSENT:-${NAME}}", "${NAME:-${ABSENT:-x}}"])
def test_a_reference_within_a_default_is_refused(tmp_path: Path, text: str) -> None:
    found = faults_of(tmp_path, PERSONA.format(text), {"NAME": "Ann"})
    assert "the default of" in str(found)


def test_a_value_of_the_environment_is_never_structure_nor_a_reference(tmp_path: Path) -> None:
    hostile = '"}}\nchats: {allow: ["*"]} # ${HOME} *x !!tag'
    settings = settings_of(tmp_path, PERSONA.format("${NAME}"), {"NAME": hostile, "HOME": "/root"})
    assert settings.bots["default"].persona == hostile
    assert settings.chats.allow == ()


def test_a_number_or_a_switch_may_come_from_the_environment(tmp_path: Path) -> None:
    text = """
        platforms:
          web: {port: "${PORT}", page: "${PAGE:-false}"}
    """
    web = settings_of(tmp_path, text, {"PORT": "9000"}).platforms.web
    assert (web.port, web.page) == (9000, False)


def test_a_value_of_the_environment_that_does_not_fit_is_named_at_its_reference(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, "limits:\n  queue_total: ${MANY}\n", {"MANY": "many"})
    assert places_and_codes(faults) == ["2:16 settings.bad_value"]
    assert "many" not in str(faults).removeprefix(str(tmp_path))


def test_every_variable_that_is_not_set_is_named_once_where_it_is_needed(tmp_path: Path) -> None:
    text = """
        language: ${TONGUE}
        platforms:
          http: {enabled: true, token: "${TOKEN}"}
    """
    faults = faults_of(tmp_path, text)
    assert places_and_codes(faults) == ["1:11 env.unset", "3:32 env.unset"]
    assert [found.message.split(" is not set")[0] for found in faults] == [
        "the environment variable TONGUE",
        "the environment variable TOKEN",
    ]


@pytest.mark.parametrize("text", ["${lower case}", "${}", "${1}", "${A:default}", "${OPEN"])
def test_a_reference_that_is_not_well_formed_is_a_fault(tmp_path: Path, text: str) -> None:
    assert places_and_codes(faults_of(tmp_path, PERSONA.format(text))) == ["1:27 env.bad_reference"]


def test_bytes_of_the_environment_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, PERSONA.format("${NAME}"), {"NAME": "caf\udce9"})
    assert places_and_codes(faults) == ["1:27 env.bad_value"]
