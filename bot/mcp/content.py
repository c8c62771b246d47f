"""Functions and results as MCP definitions and content blocks."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence

import orjson
import structlog
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import ValidationError

from bot.direct_calls import Called
from config.texts import Phrases
from function_calls.basic import KEYWORDS
from function_calls.checks.permissions import reaches_out
from function_calls.context import Attachment
from function_calls.encodings import mcp_tool
from function_calls.schema.commands import plain_name
from function_calls.spec import Choice, FunctionSpec, Message, Touch
from services.refs import ChatRef, Effect, ErrorCode, JsonObject, JsonValue
from services.web.content import data_in

_CALLS = frozenset({"CALL", "RUN TOOL", "TOOL", "USE MCP"})
"""Keywords of scripts that run other functions."""


def mcp_listed_tool(spec: FunctionSpec) -> JsonObject:
    """Entry for an MCP server's list: `mcp_tool`, with a title for people and hints. Hints in the spec's metadata take
    precedence."""
    title = plain_name(spec.name)
    listed = mcp_tool(spec)
    annotations_ = listed.get("annotations")
    hints = {**mcp_annotations(spec), **(annotations_ if isinstance(annotations_, Mapping) else {})}
    return {"title": title[:1].upper() + title[1:], **listed, "annotations": hints}


def mcp_annotations(spec: FunctionSpec) -> JsonObject:
    """MCP hints derived from effect and touches. All are set, because a missing hint has the more dangerous meaning. If
    a spec does not declare what its effect touches, the more dangerous value is used, as in `reaches_out`: clients may
    run read-only tools without asking their user."""
    changes = spec.execution.effect is not Effect.READ or bool(
        spec.execution.touches & {Touch.REACHES_OUT, Touch.SENDS_OUT}
    )
    outside = bool(spec.execution.touches & {Touch.READS_OUTSIDE, Touch.SENDS_OUT})
    keywords = spec.origin.metadata.get(KEYWORDS)
    if isinstance(keywords, Sequence):
        # A script has the effect `once` if it changes stored data, and without that it only sends messages.
        overwrites = spec.execution.effect is Effect.ONCE or not _CALLS.isdisjoint(keywords)
    else:
        # An idempotent effect may overwrite or delete. A `once` effect only adds, but possibly to others' data.
        overwrites = spec.execution.effect is Effect.IDEMPOTENT
    return {
        "readOnlyHint": not changes,
        "destructiveHint": overwrites or (changes and reaches_out(spec)),
        "idempotentHint": spec.execution.effect is not Effect.ONCE,
        "openWorldHint": outside or reaches_out(spec),
    }


_log = structlog.get_logger("mcp")
ERROR_KEY = "rollcall/error"
"""Key in the `_meta` of an error: its code and the invalid or missing arguments."""
_ASKED = "asked"
_DEFINES = ("name", "title", "description", "inputSchema", "annotations")


def tool_error(code: str, text: str, fields: Sequence[str] = ()) -> CallToolResult:
    """An error that the caller's model can read: the text, then the code and the arguments that it is about."""
    named = [name for name in fields if name]
    content = f"{text}\n[{code}: {', '.join(named)}]" if named else f"{text}\n[{code}]"
    error: JsonObject = {"code": code, "fields": named} if named else {"code": code}
    return CallToolResult(content=[TextContent(text=content)], is_error=True, _meta={ERROR_KEY: error})


def tool_result(called: Called, spec: FunctionSpec, chat: ChatRef, texts: Phrases) -> CallToolResult:
    """The result of `spec` for its caller: messages, notes and data. A question, or a message that was not handled, is
    an error here, since it cannot be answered."""
    result = called.result
    if result.error is not None:
        failed = tool_error(result.error.code.value, result.error.text, result.error.fields)
        before = [*_text_blocks(called.here, texts), *_notes(called, chat, texts)]
        return failed.model_copy(update={"content": [*before, *failed.content]})
    if result.question is not None:
        return tool_error(_ASKED, texts.say("mcp.asked", question=result.question.text))
    if not result.handled:
        return tool_error(ErrorCode.FAILED.value, texts.say("mcp.not_handled"))
    content = [*_text_blocks(called.here, texts), *_notes(called, chat, texts)]
    if result.data is not None and not _is_in_messages(result.data, called.here):
        content.append(TextContent(text=_as_json(result.data)))
    structured = _structured(result.data, spec)
    return CallToolResult(content=content or [TextContent(text=texts.say("mcp.done"))], structured_content=structured)


def tool_definition(spec: FunctionSpec, name: str) -> Tool:
    """The definition of `spec` under `name`. Author metadata is used only if the protocol defines and permits it."""
    encoded = mcp_listed_tool(spec)
    defined = {key: encoded[key] for key in _DEFINES if key in encoded}
    schema = _output_schema(spec)
    if schema is not None:
        defined["outputSchema"] = schema
    defined["name"] = name
    try:
        return Tool.model_validate(defined)
    except ValidationError:
        return Tool.model_validate({**defined, "title": None, "annotations": mcp_annotations(spec)})


def _output_schema(spec: FunctionSpec) -> JsonObject | None:
    """The schema of the structured data of `spec`; None if it is not an object schema, which the protocol requires."""
    schema = spec.prompt.result_schema
    return schema if schema is not None and schema.get("type") == "object" else None


def _text_blocks(messages: Iterable[Message], texts: Phrases) -> list[ContentBlock]:
    blocks: list[ContentBlock] = []
    for message in messages:
        text = message.text
        if message.choices:
            text = f"{text}\n{_choices(message.choices, texts)}".strip()
        if text:
            blocks.append(TextContent(text=text))
        blocks += [_file(attachment) for attachment in message.attachments]
    return blocks


def _is_in_messages(data: JsonValue, messages: Iterable[Message]) -> bool:
    """Whether `data` only repeats the text of a message."""
    return isinstance(data, str) and any(message.text == data for message in messages)


def _choices(choices: Sequence[Choice], texts: Phrases) -> str:
    return texts.say("delivery.choices", choices=" / ".join(choice.value for choice in choices))


def _notes(called: Called, chat: ChatRef, texts: Phrases) -> list[ContentBlock]:
    """Text blocks on messages that did not reach other chats, or will not when they are due; empty if there are
    none."""
    notes = [
        texts.say("mcp.unsent", to=(message.to or chat).key, text=message.text or message.attachments[0].name)
        for message in called.unsent
    ]
    if called.unheard:
        notes.append(texts.say("mcp.unheard", chat=chat.key))
    return [TextContent(text=note) for note in notes]


def _file(file: Attachment) -> ContentBlock:
    """A link, or the file itself if its URL contains the data."""
    if not file.url:
        return TextContent(text=file.name)
    if not file.url.startswith("data:"):
        return ResourceLink(uri=file.url, name=file.name, mime_type=file.media_type, size=file.size_bytes)
    data = data_in(file.url)
    if data is None:
        _log.warning("attachment_unreadable", name=file.name)
        return TextContent(text=file.name)
    encoded = base64.b64encode(data).decode("ascii")
    kind = file.media_type.partition("/")[0]
    if kind == "image":
        return ImageContent(data=encoded, mime_type=file.media_type)
    if kind == "audio":
        return AudioContent(data=encoded, mime_type=file.media_type)
    content = data.decode("utf-8", "replace") if kind == "text" else data
    return EmbeddedResource(resource=resource_contents(f"attachment:{file.name}", content, file.media_type))


def resource_contents(uri: str, content: str | bytes, media_type: str) -> TextResourceContents | BlobResourceContents:
    """Contents of a resource as text or as base64."""
    if isinstance(content, str):
        return TextResourceContents(uri=uri, mime_type=media_type, text=content)
    return BlobResourceContents(uri=uri, mime_type=media_type, blob=base64.b64encode(content).decode("ascii"))


def _structured(data: JsonValue, spec: FunctionSpec) -> JsonValue:
    """`data`, if it matches the declared schema; else None, because clients rely on the schema."""
    schema = _output_schema(spec)
    if schema is None:
        return None
    plain = orjson.loads(_as_json(data))
    # Imported here: the import is slow, and most functions return no typed data.
    import jsonschema_rs

    try:
        fits = jsonschema_rs.is_valid(schema, plain)
    except ValueError as error:
        _log.error("result_schema_unusable", function=spec.name, problem=str(error))
        return None
    if not fits:
        _log.error("result_is_not_as_declared", function=spec.name, source=spec.origin.source)
        return None
    return plain


def _as_json(data: JsonValue) -> str:
    return orjson.dumps(data, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
