"""docs/openapi.yaml: the schemas of request bodies.

python -m tests.openapi_schemas            check that they are up to date
python -m tests.openapi_schemas --write    write them
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema
from ruamel.yaml import YAML

from bot.platforms.http.wire import Posted
from bot.web.page import NewMember, OwnerToken

DOCUMENT = Path(__file__).parent.parent / "docs" / "openapi.yaml"
_SHARED = "#/components/schemas/{model}"


def document() -> Any:
    """The document as plain data."""
    return YAML(typ="safe").load(DOCUMENT.read_text(encoding="utf-8"))


def schemas() -> dict[str, Any]:
    """JSON Schemas of the bodies, and of the types that they use, by name."""
    models = [(model, "validation") for model in (Posted, NewMember, OwnerToken)]
    _, made = models_json_schema(models, ref_template=_SHARED)
    defined: dict[str, Any] = _without_titles(made["$defs"])
    return defined


def _without_titles(schema: Any) -> Any:
    """The schema without the titles that repeat its names."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)
    }


def written() -> str:
    """The document with the current schemas."""
    yaml = YAML()
    yaml.width = 120
    yaml.preserve_quotes = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    data = yaml.load(DOCUMENT.read_text(encoding="utf-8"))
    data["components"]["schemas"].update(schemas())
    text = io.StringIO()
    yaml.dump(data, text)
    return text.getvalue()


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        DOCUMENT.write_text(written(), encoding="utf-8")
    elif written() != DOCUMENT.read_text(encoding="utf-8"):
        sys.exit(f"{DOCUMENT} is not up to date: python -m tests.openapi_schemas --write")
