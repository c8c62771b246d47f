"""Wire format of the HTTP platform: posted messages, errors and events."""

from __future__ import annotations

import unicodedata
from base64 import b64decode
from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bot.platforms.base import Outgoing
from function_calls.context import Attachment, MessageContext
from function_calls.spec import Choice
from services.refs import ChatRef, JsonObject, Role

MAX_BODY_BYTES = 64 * 1024
MAX_TEXT_CHARS = 8000
FILE_PREFIX = "network:"
"""Prefix of the URL of a stored file, before its id."""
_MOST_FILES = 10
BOT_ID_PREFIX = "bot:"
"""Prefix of the ids of the bot's messages; no other message may use it."""

_DIRECTION_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


Body = TypeVar("Body", bound=BaseModel)


class RequestError(Exception):
    """A rejected request: HTTP status, a code for programs and a sentence for people."""

    def __init__(
        self, status: int, code: str, message: str, *, field: str = "", retry_after_seconds: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.retry_after_seconds = retry_after_seconds

    def as_json(self) -> JsonObject:
        """The body of the response: `error` with `code`, `message`, and `field` if it is known."""
        body = {"code": self.code, "message": self.message}
        return {"error": body | ({"field": self.field} if self.field else {})}


def clean_text(text: str) -> str:
    """NFC, line ends as `\\n`, without other control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isprintable():
        text = "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs"))
    return unicodedata.normalize("NFC", text)


def clean_name(name: str) -> str:
    """A display name on one line: without control characters, direction marks and redundant spaces."""
    visible = "".join(" " if char.isspace() else char for char in name if char not in _DIRECTION_MARKS)
    return clean_text(" ".join(visible.split()))


def _an_id(value: str) -> str:
    if value != value.strip() or any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise ValueError("must not hold control characters or begin or end with a space")
    return value


Id = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_an_id)]
Name = Annotated[str, StringConstraints(max_length=80), AfterValidator(clean_name)]


class PostedSender(BaseModel):
    """The sender of a posted message; the rights of the caller limit its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id | None = None
    name: Name = ""
    role: Role = Role.MEMBER


def _in_base64(data: str) -> str:
    try:
        b64decode(data, validate=True)
    except ValueError:
        raise ValueError("must be base64") from None
    return data


class PostedFile(BaseModel):
    """A file as posted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(clean_name)]
    type: Annotated[str, StringConstraints(pattern=r"^[\w.+-]{1,60}/[\w.+-]{1,60}$")] = "application/octet-stream"
    data: Annotated[str, StringConstraints(min_length=1), AfterValidator(_in_base64)]
    """The content in base64."""

    @property
    def size(self) -> int:
        """Size of the content in bytes."""
        return len(self.data) * 3 // 4 - self.data[-2:].count("=")


class Posted(BaseModel):
    """The body of `POST …/messages`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id
    sender: PostedSender = PostedSender()
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS), AfterValidator(clean_text)]
    kind: Literal["message", "choice"] = "message"
    mentions_bot: Annotated[bool, Field(strict=True)] = False
    mentions: Annotated[tuple[Id, ...], Field(max_length=50)] = ()
    reply_to: Id | None = None
    attachments: Annotated[tuple[PostedFile, ...], Field(max_length=_MOST_FILES)] = ()


def read_posted(body: bytes, most_file_bytes: int = 0) -> Posted:
    """The message in `body`, with files of at most `most_file_bytes` together. Raises RequestError with the first
    invalid field."""
    posted = read_body(Posted, body)
    if posted.attachments and not most_file_bytes:
        text = "attachments: no model that is given files is configured"
        raise RequestError(400, "no_files", text, field="attachments")
    if sum(one.size for one in posted.attachments) > most_file_bytes:
        text = f"attachments: more than {most_file_bytes} bytes (media.upload_bytes)"
        raise RequestError(413, "too_large", text, field="attachments")
    if posted.id.startswith(BOT_ID_PREFIX):
        raise RequestError(400, "bad_request", f"id: must not begin with {BOT_ID_PREFIX!r}", field="id")
    if posted.kind == "choice" and posted.reply_to is None:
        raise RequestError(400, "bad_request", "reply_to: a choice names the message it belongs to", field="reply_to")
    return posted


def read_body(model: type[Body], body: bytes) -> Body:
    """The JSON object in `body` as `model`. Raises RequestError with the first invalid field."""
    try:
        return model.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RequestError(400, "invalid_json", f"the body is not JSON: {error.msg}") from error
    except ValidationError as error:
        raise _refusal_of(error) from error


def _refusal_of(error: ValidationError) -> RequestError:
    fault = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in fault["loc"])
    if field == "text" and fault["type"] == "string_too_long":
        return RequestError(413, "too_large", f"text: more than {MAX_TEXT_CHARS} characters", field=field)
    where = f"{field}: " if field else ""
    return RequestError(400, "bad_request", where + fault["msg"], field=field)


def member_message_body(context: MessageContext, shown: str) -> str:
    """The event of a member's message, as JSON; `shown` is its text as written."""
    return _compact(
        {
            "type": "said",
            "id": context.key.native_id,
            "at": context.sent_at.isoformat(timespec="milliseconds"),
            "kind": context.kind.value,
            "sender": {"id": context.sender.ref.native, "name": context.sender.name, "role": context.sender.role.value},
            "text": shown,
            "mentions": [member.native for member in context.mentions],
            "reply_to": context.reply_to.native_id if context.reply_to else None,
            **_files(context.chat, context.attachments),
        }
    )


def message_body(outgoing: Outgoing, at: str, files: Sequence[Attachment] = ()) -> str:
    """The event of a message of the bot with these stored files, as JSON: `type`, `id`, `at`, `text`, `reply_to`,
    `mentions`, `choices`, `private_to`, and optionally `closes`, `format` and `attachments`."""
    more: JsonObject = {"closes": list(outgoing.closes)} if outgoing.closes else {}
    if outgoing.markdown:
        more["format"] = "markdown"
    return _compact(
        {
            "type": "message",
            "id": bot_id(outgoing.key),
            "at": at,
            "text": outgoing.text + outgoing.links,
            "reply_to": outgoing.reply_to,
            "mentions": [member.native for member in outgoing.mentions],
            "choices": [_choice(one) for one in outgoing.choices],
            "private_to": outgoing.private_to.native if outgoing.private_to else None,
            **more,
            **_files(outgoing.chat, files),
        }
    )


def edited_body(native_id: str, outgoing: Outgoing, at: str) -> str:
    """The event of a change of the bot's message `native_id`, as JSON: `type`, `id`, `at`, and the new `text`,
    `choices` and `format`, which is absent for plain text."""
    more: JsonObject = {"format": "markdown"} if outgoing.markdown else {}
    choices = [_choice(one) for one in outgoing.choices]
    return _compact({"type": "edited", "id": native_id, "at": at, "text": outgoing.text, "choices": choices, **more})


def deleted_body(native_id: str) -> str:
    """The event of the deletion of the bot's message `native_id`, as JSON."""
    return _compact({"type": "deleted", "id": native_id})


def _files(chat: ChatRef, files: Sequence[Attachment]) -> JsonObject:
    """The field `attachments` of an event; none without files."""
    return {"attachments": [_file(chat, one) for one in files]} if files else {}


def _file(chat: ChatRef, file: Attachment) -> JsonObject:
    file_id = file.url.removeprefix(FILE_PREFIX)
    url = f"/api/v1/chats/{quote(chat.native, safe='')}/files/{file_id}"
    return {"id": file_id, "name": file.name, "type": file.media_type, "size": file.size_bytes, "url": url}


def _choice(choice: Choice) -> JsonObject:
    stays = {"stays": True} if choice.stays else {}
    return {"label": choice.label, "value": choice.value, **stays}


def status_body(text: str) -> str:
    """The event of a status line, as JSON; an empty text clears it."""
    return _compact({"type": "status", "text": text})


def bot_id(key: str) -> str:
    """The native id of the bot's message with an idempotency key."""
    return BOT_ID_PREFIX + key


def with_cursor(body: str, cursor: int) -> str:
    """A stored event with `cursor` added in front."""
    return f'{{"cursor":"{cursor}",{body[1:]}'


def _compact(value: JsonObject) -> str:
    return orjson.dumps(value).decode()
