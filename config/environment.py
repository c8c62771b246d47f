"""References to environment variables in settings: `${NAME}`, `${NAME:-default}`, and `$${` for a literal `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from config.diagnostics import Code
from config.yaml_document import Location, Plain, YamlDocument

REFERENCE = r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}"
_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{")
_SURROGATE = re.compile("[\ud800-\udfff]")


def fill_references(document: YamlDocument, environment: Mapping[str, str]) -> None:
    """Replace the references in every text of `document`, after parsing, so that a value of the environment can never
    become structure. As in a shell, the default serves for an empty variable too. A value is taken as it is: what looks
    like a reference in it stays. A reference that cannot be filled is a fault there, and its value unknown."""
    document.value = _filled(document.value, (), document, environment)


def _filled(value: Plain, location: Location, document: YamlDocument, environment: Mapping[str, str]) -> Plain:
    if isinstance(value, dict):
        return {key: _filled(item, (*location, key), document, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, (*location, index), document, environment) for index, item in enumerate(value)]
    if isinstance(value, str) and "${" in value:
        return _filled_text(value, location, document, environment)
    return value


def _filled_text(text: str, location: Location, document: YamlDocument, environment: Mapping[str, str]) -> str:
    def complain(code: Code, message: str) -> str:
        document.complain(document.value_at(location), code, message)
        document.unknown.add(location)
        return ""

    def replace(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        name = found["name"]
        if name is None:
            return complain(Code.ENV_BAD_REFERENCE, "write ${NAME} or ${NAME:-default}, or $${ for a literal ${")
        value = environment.get(name, "")
        if _SURROGATE.search(value):
            return complain(Code.ENV_BAD_VALUE, f"the environment variable {name} is not UTF-8")
        if value or (name in environment and found["default"] is None):
            return value
        if found["default"] is None:
            message = f"the environment variable {name} is not set; set it, or give a default: ${{{name}:-default}}"
            return complain(Code.ENV_UNSET, message)
        return str(found["default"])

    return _TOKEN.sub(replace, text)
