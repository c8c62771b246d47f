from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from bot.cli.schema import settings_schema
from config.yaml_document import read_yaml, read_yaml_file

SHIPPED = Path(__file__).parents[2] / "config" / "bot.yaml"


@pytest.fixture(scope="module")
def editor() -> Any:
    """A validator with the schema."""
    return jsonschema.Draft202012Validator(settings_schema())


def is_right(editor: Any, text: str) -> bool:
    """Whether the schema accepts `text`."""
    return bool(editor.is_valid(read_yaml(text, "x.yaml").value))


def test_the_schema_is_one() -> None:
    schema = settings_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_shipped_file_is_right_for_an_editor() -> None:
    jsonschema.Draft202012Validator(settings_schema()).validate(read_yaml_file(SHIPPED).value)


@pytest.mark.parametrize(
    "text",
    [
        "platforms: {web: {port: 0}}",
        'platforms: {web: {port: "${PORT:-8080}", page: "${PAGE}"}}',
        'logging: {level: "${LEVEL:-info}"}',
        "functions: {weather: {roles: admin}}",
        "functions: {weather: {roles: [admin, owner], timeout_seconds: 5}}",
        'chats: {settings: {"web:*": {language: zh, enabled: false}}}',
        'members: {"web:main:ann": owner}',
    ],
)
def test_an_editor_accepts_what_the_daemon_accepts(editor: Any, text: str) -> None:
    assert is_right(editor, text)


@pytest.mark.parametrize(
    "text",
    [
        "plattforms: {}",
        "platforms: {web: {port: 99999}}",
        "platforms: {web: {port: http}}",
        "logging: {level: loud}",
        "functions: {weather: {roles: boss}}",
        "functions: {weather: {timeout_seconds: 0}}",
        "chats: {settings: {family: {language: zh}}}",
        'members: {"web:main:*": owner}',
        "bots: {Foo: {}}",
        "models: [{name: a}]",
    ],
)
def test_an_editor_refuses_what_the_daemon_refuses(editor: Any, text: str) -> None:
    assert not is_right(editor, text)


def test_every_key_is_described() -> None:
    schema = settings_schema()
    sections = {"Settings": schema, **schema["$defs"]}
    nameless = {f"{name}.{key}" for name, section in sections.items() for key in _undescribed(section, schema["$defs"])}
    assert nameless == set()


def _undescribed(section: dict[str, Any], definitions: dict[str, Any]) -> Iterator[str]:
    for key, value in section.get("properties", {}).items():
        referred = definitions.get(value.get("$ref", "").removeprefix("#/$defs/"), {})
        if not value.get("description") and not referred.get("description"):
            yield key
