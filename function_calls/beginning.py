"""The function with which a chat begins: it runs once, before the first message is answered, and nobody calls it."""

from __future__ import annotations

from function_calls.spec import FunctionSpec

BEGINS_CHATS = "session"
"""True under this key in the metadata of its spec, and of the definition of the script that it is."""


def begins_chats(spec: FunctionSpec) -> bool:
    """Whether `spec` is such a function."""
    return spec.metadata.get(BEGINS_CHATS) is True
