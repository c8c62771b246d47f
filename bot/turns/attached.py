"""Files of a message, read for a model: pictures for models that see, and the text of documents."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from bot.platforms.base import ChatPlatform, Files, FileUnavailable
from config.settings import Settings
from config.texts import Phrases
from function_calls.context import Attachment, MessageContext
from function_calls.profile import ChatProfile
from function_calls.turn import Attached
from services.llm.model import Image
from services.media.pictures import picture_of
from services.refs import ChatRef
from services.sandbox.parsing import DocumentParser, Parser, ParsingError

_log = structlog.get_logger("media")
_NOT_SHOWN = "(not shown)"
_CUT = "… (the rest of the document was left out)"
_SECONDS = 60.0


class Refused(Exception):
    """A file is not used. The message is a sentence for members."""


class FileReader:
    """Reads files of messages from the platforms of their chats."""

    def __init__(self, platform_of: Callable[[ChatRef], ChatPlatform | None]) -> None:
        self._platform_of = platform_of

    async def read(self, chat: ChatRef, file: Attachment, most_bytes: int, texts: Phrases) -> bytes:
        """The content of `file`. Raises Refused if it is larger than `most_bytes`, or cannot be read within a
        minute."""
        limit = f"{most_bytes / 1_000_000:g}"
        name = _name(file, texts)
        if (file.size_bytes or 0) > most_bytes:
            raise Refused(texts.say("media.too_large", name=name, limit=limit))
        platform: object = self._platform_of(chat)
        if not isinstance(platform, Files):
            raise Refused(texts.say("media.unreadable", name=name, limit=limit))
        try:
            async with asyncio.timeout(_SECONDS):
                content = await platform.read_file(file, most_bytes)
        except (FileUnavailable, TimeoutError) as problem:
            _log.warning("file_not_read", chat=chat.key, problem=str(problem))
            raise Refused(texts.say("media.unreadable", name=name, limit=limit)) from problem
        if len(content) > most_bytes:
            raise Refused(texts.say("media.too_large", name=name, limit=limit))
        return content


@dataclass(slots=True)
class _Found:
    """What has been read of the files of one message."""

    images: list[Image] = field(default_factory=list)
    documents: list[tuple[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_outside: bool = False


class AttachedFiles:
    """Reads the files of messages for models, within the limits of the settings."""

    def __init__(self, files: FileReader, settings: Settings, documents: DocumentParser) -> None:
        self._files = files
        self._documents = documents
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Apply new settings to messages that are read from now on."""
        self._media, self._seeing, self._is_on = settings.media, settings.seeing_models, settings.takes_files

    async def load(self, context: MessageContext, profile: ChatProfile) -> Attached:
        """The files that `context` has or quotes. Nothing is read for models that are not configured for it."""
        found, quoted = _Found(), context.reply_to
        if not self._is_on:
            return Attached()
        sees = bool(self._seeing if profile.models is None else self._seeing.intersection(profile.models))
        for file in context.attachments:
            await self._load(context.chat, file, found, profile.texts, sees=sees, is_quoted=False)
        for file in quoted.attachments if quoted is not None else ():
            await self._load(context.chat, file, found, profile.texts, sees=sees, is_quoted=True)
        return Attached(
            tuple(found.images), tuple(found.lines), tuple(found.documents), tuple(found.problems), found.is_outside
        )

    async def _load(
        self, chat: ChatRef, file: Attachment, found: _Found, texts: Phrases, *, sees: bool, is_quoted: bool
    ) -> None:
        line = f"{file.mark} (in the quoted message)" if is_quoted else file.mark
        try:
            if file.is_picture and sees:
                found.images.append(await self._picture(chat, file, len(found.images), texts))
                found.is_outside |= is_quoted
            elif self._media.documents and not (file.is_picture or file.is_voice):
                found.documents.append((file.name, await self._document(chat, file, len(found.documents), texts)))
                found.is_outside = True
            else:
                line = f"{line} {_NOT_SHOWN}"
        except Refused as refused:
            found.problems.append(str(refused))
            line = f"{line} {_NOT_SHOWN}"
        found.lines.append(line)

    async def _picture(self, chat: ChatRef, file: Attachment, count: int, texts: Phrases) -> Image:
        media, name = self._media, _name(file, texts)
        if count >= media.pictures_per_turn:
            raise Refused(texts.say("media.too_many_pictures", name=name, count=media.pictures_per_turn))
        content = await self._files.read(chat, file, media.picture_bytes, texts)
        picture = picture_of(content)
        if picture is None:
            raise Refused(texts.say("media.no_picture", name=name))
        if picture.pixels > media.picture_pixels:
            size = f"{picture.width}x{picture.height}"
            limit = f"{media.picture_pixels / 1_000_000:g}"
            raise Refused(texts.say("media.too_many_pixels", name=name, size=size, limit=limit))
        return Image(picture.media_type, base64.b64encode(content).decode())

    async def _document(self, chat: ChatRef, file: Attachment, count: int, texts: Phrases) -> str:
        media, name = self._media, _name(file, texts)
        if count >= media.documents_per_turn:
            raise Refused(texts.say("media.too_many_documents", name=name, count=media.documents_per_turn))
        content = await self._files.read(chat, file, media.document_bytes, texts)
        try:
            read = await self._documents.parse(Parser.DOCUMENT, content, file.media_type)
        except ParsingError as problem:
            _log.warning("document_not_read", chat=chat.key, problem=str(problem))
            raise Refused(texts.say("media.document_limits", name=name)) from problem
        if "problem" in read:
            raise Refused(texts.say(f"media.document_{read['problem']}", name=name))
        text = str(read["text"]).replace("\f", "\n").strip()
        is_cut = read["cut"] or len(text) > media.document_chars
        return text[: media.document_chars] + _CUT if is_cut else text


def _name(file: Attachment, texts: Phrases) -> str:
    """The name of a file on one line, for members."""
    return " ".join(file.name.split())[:60] or texts.say("media.unnamed")
