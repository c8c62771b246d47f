"""What an MCP server says of a function beside its definition."""

from __future__ import annotations

from collections.abc import Mapping

from function_calls.encodings import mcp_tool
from function_calls.spec import FunctionSpec, Touch
from function_calls.touches import reaches_out
from function_calls.usage import plain_name
from services.json_values import JsonObject
from services.refs import Effect


def mcp_listed_tool(spec: FunctionSpec) -> JsonObject:
    """What an MCP server lists: `mcp_tool`, a title for people, and hints. What the spec's metadata say of them counts
    more."""
    title = plain_name(spec.name)
    listed = mcp_tool(spec)
    given = listed.get("annotations")
    hints = {**mcp_annotations(spec), **(given if isinstance(given, Mapping) else {})}
    return {"title": title[:1].upper() + title[1:], **listed, "annotations": hints}


def mcp_annotations(spec: FunctionSpec) -> JsonObject:
    """The hints of MCP, from effect and touches, all of them: what is left out counts as the graver one there. Where a
    spec does not say what an effect touches, the graver hint is given, as `reaches_out` takes it: clients may ask their
    user by it, and let what only reads run unasked."""
    changes = spec.effect is not Effect.READ or bool(spec.touches & {Touch.REACHES_OUT, Touch.SENDS_OUT})
    outside = bool(spec.touches & {Touch.READS_OUTSIDE, Touch.SENDS_OUT})
    return {
        "readOnlyHint": not changes,
        # What may be repeated sets and deletes; what acts only once adds, but it may be to others' things.
        "destructiveHint": spec.effect is Effect.IDEMPOTENT or (changes and reaches_out(spec)),
        "idempotentHint": spec.effect is not Effect.ONCE,
        "openWorldHint": outside or reaches_out(spec),
    }
