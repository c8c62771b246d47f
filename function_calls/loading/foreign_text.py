"""Cleaning, shortening and labelling of texts and results of foreign programs."""

from __future__ import annotations

import json
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog

from config.texts import Phrases
from function_calls.context import Attachment
from function_calls.schema.arguments import validator_of
from function_calls.schema.schema import DRAFT_2020_12, UnusableSchema
from function_calls.spec import FunctionError, FunctionResult, Message
from services.mcp.tools import ToolAnswer
from services.media.pictures import picture_of
from services.refs import ErrorCode, JsonObject, JsonValue

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of control and invisible characters, including direction marks and tag characters, which can hide whole
sentences in a text."""
_SPACES = "\n\t"
_VARIATIONS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Variation selectors: invisible, and allowed in any number after any character."""
_LINE_ENDS = dict.fromkeys(map(ord, "\n\r\t"))
_DESCRIBING = ("description", "title", "$comment")
_NAMING = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""Schema keywords whose keys are names chosen by the server."""
_COUNTING = frozenset(
    {"const", "default", "dependentRequired", "enum", "format", "pattern", "required"}
    | {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema"}
)
"""Schema keywords whose values take part in validation or become arguments."""


def cleaned_text(text: str, *, lines: bool) -> str:
    """`text` without control and invisible characters; with `lines` false, on a single line."""
    cleaned = "".join(one for one in text if one in _SPACES or not _is_unseen(one))
    return cleaned if lines else " ".join(cleaned.split())


def has_unseen(text: str) -> bool:
    """Whether `text` contains invisible characters."""
    return any(_is_unseen(one) for one in text)


def capped(text: str, characters: int) -> str:
    """`text` cleaned and truncated to `characters`."""
    cleaned = cleaned_text(text, lines=True).strip()
    return cleaned if len(cleaned) <= characters else cleaned[: characters - 1].rstrip() + "…"


def cleaned_value(value: JsonValue) -> JsonValue:
    """`value` with all its texts and keys cleaned. Keys that become equal get a numeric suffix."""
    if isinstance(value, str):
        return cleaned_text(value, lines=True)
    if isinstance(value, list):
        return [cleaned_value(one) for one in value]
    if not isinstance(value, dict):
        return value
    cleaned: JsonObject = {}
    for key, one in value.items():
        name = plain = cleaned_text(key, lines=True)
        number = 1
        while name in cleaned or (name != key and name in value):
            number += 1
            name = f"{plain} ({number})"
        cleaned[name] = cleaned_value(one)
    return cleaned


class UnseenIn(ValueError):
    """A schema has invisible characters in a value or name whose meaning they may change. The text is the location,
    with escapes."""


def described(schema: Mapping[str, Any], characters: int) -> JsonObject:
    """`schema` with cleaned annotations and truncated descriptions. Raises UnseenIn if names or significant values,
    such as those of an enum, contain invisible characters."""
    cleaned: JsonObject = _described(dict(schema), characters, ())
    return cleaned


def _described(node: Any, characters: int, at: tuple[str, ...], *, names: bool = False) -> Any:
    """Copy of a schema with cleaned texts, descriptions of at most `characters`. `names`: the keys of `node` are names
    instead of schema keywords. Raises UnseenIn for invisible characters in keys and in values that validate."""
    if isinstance(node, list):
        return [_described(one, characters, at) for one in node]
    if isinstance(node, str):
        return cleaned_text(node, lines=True)
    if not isinstance(node, dict):
        return node
    cleaned: JsonObject = {}
    for key, value in node.items():
        place = (*at, key)
        if has_unseen(key):
            raise UnseenIn(_place(place))
        if names:
            cleaned[key] = _described(value, characters, place)
        elif key in _DESCRIBING and isinstance(value, str):
            cleaned[key] = capped(value, characters)
        elif key in _COUNTING:
            if not _is_seen(value):
                raise UnseenIn(_place(place))
            cleaned[key] = value
        else:
            cleaned[key] = _described(value, characters, place, names=key in _NAMING)
    return cleaned


def _is_seen(value: Any) -> bool:
    """Whether a significant value has no invisible characters. Line ends are permitted: readers see them escaped."""
    if isinstance(value, str):
        return not has_unseen(value.translate(_LINE_ENDS))
    if isinstance(value, list):
        return all(map(_is_seen, value))
    if isinstance(value, dict):
        return all(_is_seen(key) and _is_seen(one) for key, one in value.items())
    return True


def _place(keys: Sequence[str]) -> str:
    return ascii(".".join(keys))


def _is_unseen(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    point = ord(character)
    return unicodedata.category(character) in _UNSEEN or any(point in one for one in _VARIATIONS)


_TEXT_CHARS = 200_000
"""Limit of the text for models; the settings may lower it."""
_READ_CHARS = 4_000
"""Limit of a read's text in a chat where no model rephrases it."""
_EFFECT_CHARS = 1_000
"""Limit of an effect's text, which every chat gets."""
_NAME_CHARS = 200
_BYTES_PER_KB = 1000
_MOST_FILES = 4
_MOST_FILE_CHARS = 2_000_000
"""Limit of a file in base64."""
_RECORDINGS = frozenset({"audio/mpeg", "audio/ogg", "audio/wav", "audio/mp4", "audio/webm"})
MISMATCH = "does_not_fit_its_schema"
"""Metadata key of a result that does not match its tool's schema."""
_log = structlog.get_logger("mcp")


class ResultSchema:
    """Validator for the declared schema of a tool's structured results."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._is_valid: Callable[[Any], bool] | None = None
        if schema is not None:
            with suppress(UnusableSchema):
                self._is_valid, _ = validator_of(dict(schema), draft=DRAFT_2020_12, has_formats=False)

    def fits(self, answer: ToolAnswer) -> bool:
        """Whether `answer` matches the schema; always true without a usable schema."""
        if self._is_valid is None or answer.is_error:
            return True
        try:
            return answer.structured is not None and self._is_valid(answer.structured)
        except ValueError:
            return False


def result_of(answer: ToolAnswer, *, name: str, is_read: bool, fits: bool, texts: Phrases) -> FunctionResult:
    """Result of the function `name`. If the tool reports an error, the chat gets a neutral text; only the model gets
    the tool's message."""
    text = _capped_text("\n".join(part for block in answer.blocks if (part := _text_of(block, texts))), texts)
    if answer.is_error:
        return failed(name, text or answer.structured, texts)
    structured = _structured(answer.structured, text)
    shown = _shortened(text, _READ_CHARS if is_read else _EFFECT_CHARS, texts)
    data: JsonValue = structured
    if data is None and shown != text:
        data = text
    files = tuple(_files(answer.blocks))
    messages = (Message(shown, attachments=files),) if shown or files else ()
    if not fits:
        _log.warning("mcp_result_unfit", function=name)
    return FunctionResult(messages=messages, data=data, metadata={} if fits else {MISMATCH: True})


def failed(name: str, details: JsonValue, texts: Phrases) -> FunctionResult:
    """Failed result of the function `name`; `details` from the server are only for a model."""
    error = FunctionError(ErrorCode.FAILED, texts.say("foreign_tools.failed", name=name))
    return FunctionResult(error=error, data=cleaned_value(details) or None)


def _structured(value: JsonValue, text: str) -> JsonValue:
    """The cleaned structured result; None if the text is equivalent or if it exceeds the limit."""
    if value is None:
        return None
    cleaned = cleaned_value(value)
    try:
        dumped = json.dumps(cleaned, ensure_ascii=False)
        same = bool(text) and cleaned_value(json.loads(text)) == cleaned
    except ValueError:
        same = False
    return None if same or len(dumped) > _TEXT_CHARS else cleaned


def _text_of(block: JsonObject, texts: Phrases) -> str:
    """A content block as text. Resources that it links to are not fetched."""
    match block.get("type"):
        case "text":
            return cleaned_text(str(block.get("text", "")), lines=True)
        case "image" | "audio" as kind:
            media_type = _named(block.get("mimeType"))
            return texts.say(f"foreign_tools.{kind}", type=media_type, size=_size(block.get("data")))
        case "resource_link":
            name = _named(block.get("title")) or _named(block.get("name"))
            return texts.say("foreign_tools.link", name=name, uri=_named(block.get("uri")))
        case "resource":
            return _embedded(block.get("resource") or {}, texts)
    return ""


def _files(blocks: Sequence[JsonObject]) -> Iterator[Attachment]:
    """Pictures and recordings of a result, at most _MOST_FILES, without those that are damaged or too long."""
    kept = 0
    for block in blocks:
        data, declared = block.get("data"), block.get("mimeType")
        if block.get("type") not in ("image", "audio") or not isinstance(data, str) or kept == _MOST_FILES:
            continue
        try:
            content = b64decode(data, validate=True) if len(data) <= _MOST_FILE_CHARS else b""
        except ValueError:
            continue
        picture = picture_of(content) if block["type"] == "image" else None
        media_type = picture.media_type if picture is not None else declared
        if not content or not isinstance(media_type, str) or (picture is None and media_type not in _RECORDINGS):
            continue
        kept += 1
        name = f"{block['type']}-{kept}.{media_type.partition('/')[2]}"
        yield Attachment(name, media_type, f"data:{media_type};base64,{b64encode(content).decode()}", len(content))


def _embedded(resource: JsonObject, texts: Phrases) -> str:
    uri, text = _named(resource.get("uri")), resource.get("text")
    if isinstance(text, str):
        return f"{uri}\n{cleaned_text(text, lines=True)}"
    return texts.say(
        "foreign_tools.file", name=uri, type=_named(resource.get("mimeType")), size=_size(resource.get("blob"))
    )


def _named(value: object) -> str:
    return cleaned_text(value, lines=False)[:_NAME_CHARS] if isinstance(value, str) else ""


def _size(base64: object) -> str:
    """Decoded size of a base64-encoded file as text, such as `12.3 kB`."""
    size = len(base64) * 3 // 4 if isinstance(base64, str) else 0
    return f"{size} B" if size < _BYTES_PER_KB else f"{size / _BYTES_PER_KB:.1f} kB"


def _capped_text(text: str, texts: Phrases) -> str:
    return _shortened(text.strip(), _TEXT_CHARS, texts)


def _shortened(text: str, characters: int, texts: Phrases) -> str:
    if len(text) <= characters:
        return text
    return f"{text[:characters].rstrip()}\n{texts.say('foreign_tools.cut', characters=len(text))}"


def progress_text(name: str, done: float, total: float | None, texts: Phrases) -> str:
    """Progress of the function `name`: a percentage if the server reports a total, else the count."""
    if total is not None and total > 0 and 0 <= done <= total:
        return texts.say("foreign_tools.percent", name=name, percent=int(100 * done / total))
    return texts.say("foreign_tools.step", name=name, done=f"{done:g}")
