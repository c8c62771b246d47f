"""The type of JSON borders: the only place where `Any` is at home."""

from __future__ import annotations

from typing import Any

JsonValue = Any
JsonObject = dict[str, Any]
