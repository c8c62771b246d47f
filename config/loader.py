"""From a YAML file and the environment to Settings. Every fault of the file is found at once, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from config.consistency import check_consistency, warn_of_surprises
from config.diagnostics import Code, Diagnostics, Position
from config.environment import fill_references
from config.settings import Settings
from config.wording import diagnostic_of
from config.yaml_document import Plain, YamlDocument, read_yaml_file

ENVIRONMENT_DEFAULTS: Mapping[str, Plain] = {
    "home": "${ROLLCALL_HOME:-./var}",
    "models": [
        {
            "name": "main",
            "api_key": "${OPENAI_API_KEY:-}",
            "base_url": "${OPENAI_BASE_URL:-}",
            "model": "${OPENAI_MODEL:-gpt-5-mini}",
        }
    ],
}
"""What a file that leaves these keys out gets: the environment decides, as it does in the shipped file."""


class SettingsInvalid(Exception):
    """A file of settings that cannot be used. Its text is one line for each fault."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(str(diagnostics))
        self.diagnostics = diagnostics
        """All faults, in the order of their places; warnings too."""


def load_settings(path: Path, environment: Mapping[str, str]) -> Settings:
    """The settings in the file `path`, with references filled from `environment`. Raises SettingsInvalid."""
    settings, diagnostics = check_settings(path, environment)
    if settings is None:
        raise SettingsInvalid(diagnostics)
    return settings


def check_settings(path: Path, environment: Mapping[str, str]) -> tuple[Settings | None, Diagnostics]:
    """The settings in the file `path`, or None when it has errors; and all that is wrong or doubtful in it."""
    document = read_yaml_file(path)
    if not isinstance(document.value, dict):
        if document.value is not None:
            document.complain(Position(1, 1), Code.NOT_A_MAPPING, "has to be a mapping (key: value) at the top")
        elif not document.faults:
            document.complain(Position(1, 1), Code.NOT_A_MAPPING, "is empty")
        return None, document.faults.in_order()
    document.value = {**ENVIRONMENT_DEFAULTS, **document.value}
    fill_references(document, environment)
    check_consistency(document)
    settings = _validated(document)
    if settings is not None:
        warn_of_surprises(settings, document)
    diagnostics = _without_misreadings(document.faults).in_order()
    return (None if diagnostics.errors else settings), diagnostics


def _validated(document: YamlDocument) -> Settings | None:
    try:
        return Settings.model_validate(document.value)
    except ValidationError as error:
        document.faults.extend(
            diagnostic_of(document, details)
            for details in error.errors(include_url=False)
            if not document.is_unknown(details["loc"])
        )
        return None


def _without_misreadings(faults: Diagnostics) -> Diagnostics:
    """In a file for another release what else looks wrong may be right there, so only its version is reported."""
    return Diagnostics(fault for fault in faults if fault.code == Code.WRONG_VERSION) or faults
