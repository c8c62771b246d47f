"""Settings of knowledge bases: folders of documents, who searches them, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from config.terms import BotName, ChatPattern, Count, LocalPath, Section, Word


class KnowledgeBaseSettings(Section):
    """A folder of documents."""

    path: LocalPath
    """Folder with text, Markdown, PDF, Word, PowerPoint and Excel files, also in subfolders."""
    bots: tuple[BotName, ...] = Field(default=(), max_length=100)
    """Bots whose chats search it. Empty: all."""
    chats: tuple[ChatPattern, ...] = Field(default=("*",), min_length=1, max_length=1000)
    """Chats that search it, as `platform:account:chat`; `*` matches any characters."""
    on_request: bool = False
    """True: a chat searches it only after a script has said `USE KB` there."""


def _as_base(value: object) -> object:
    return value if isinstance(value, Mapping | KnowledgeBaseSettings) else {"path": value}


class KnowledgeSettings(Section):
    """Knowledge bases, and the limits of each."""

    bases: Annotated[
        Mapping[
            Word,
            Annotated[
                KnowledgeBaseSettings,
                BeforeValidator(_as_base, json_schema_input_type=KnowledgeBaseSettings | str),
            ],
        ],
        Field(max_length=50),
    ] = Field(default_factory=dict)
    """Knowledge bases by name, each a path or a mapping with options."""
    files: Count = Field(default=1000, ge=1, le=10_000)
    """Maximum number of files; further ones are left out."""
    file_kilobytes: Count = Field(default=5000, ge=1, le=50_000)
    """Maximum size of a file; larger ones are left out. Of each file, the first 100,000 characters are searched."""
    entries: Count = Field(default=500_000, ge=100, le=5_000_000)
    """Maximum number of index entries: about one for an English word and two for a Chinese character. 500,000 are 3 MB
    of English or 250,000 Chinese characters, and take 70 to 220 MB of memory. Further files are left out."""
