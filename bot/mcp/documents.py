"""Resources and prompts of the MCP server: help pages, other documents, and the examples of functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote

import structlog
from mcp_types import (
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextContent,
)

from bot.direct_calls import DirectCalls
from bot.mcp.callers import McpCaller
from config.texts import Phrases
from function_calls.schema.commands import plain_name
from function_calls.spec import FunctionSpec
from services.knowledge import KnowledgeBases
from services.text_index import is_unspaced

_HELP = "help"
_HELP_URI = "rollcall://help"
_SEARCH = "knowledge_search"
_KNOWLEDGE_URI = "rollcall://knowledge/"
_SLOT = re.compile(r"\{(\w+)\}")
_MOST_CHARS = 2000
_log = structlog.get_logger("mcp")


class Content(NamedTuple):
    """Contents of a document."""

    content: str | bytes
    media_type: str = "text/plain"


class Documents(Protocol):
    """Documents that programs may read. Every method gets the caller and returns only what the caller may see."""

    async def listed(self, caller: McpCaller) -> Sequence[Resource]:
        """The documents."""

    async def templates(self, caller: McpCaller) -> Sequence[ResourceTemplate]:
        """Templates of the URIs of further documents."""

    async def read(self, uri: str, caller: McpCaller) -> Content | None:
        """The document at `uri`; None if there is none for this caller."""


class HelpPages:
    """The pages of the function `help`: an overview, and one for each function."""

    def __init__(self, calls: DirectCalls) -> None:
        self._calls = calls

    async def listed(self, caller: McpCaller) -> Sequence[Resource]:
        """The overview, if the caller may call `help`."""
        title = self._calls.chats.profile(caller.caller.chat).texts.say("mcp.help_title")
        may_read = _may_call(_HELP, self._calls, caller)
        return [Resource(uri=_HELP_URI, name=_HELP, title=title, mime_type="text/plain")] if may_read else []

    async def templates(self, caller: McpCaller) -> Sequence[ResourceTemplate]:
        """The template of the pages of functions."""
        title = self._calls.chats.profile(caller.caller.chat).texts.say("mcp.help_of_function")
        template = ResourceTemplate(uri_template=f"{_HELP_URI}/{{function}}", name="function", title=title)
        return [template] if await self.listed(caller) else []

    async def read(self, uri: str, caller: McpCaller) -> Content | None:
        """The page at `uri`, by a call of `help` with the caller's rights."""
        base, _, topic = uri.partition(f"{_HELP_URI}/")
        if (uri != _HELP_URI and (base or not topic)) or not await self.listed(caller):
            return None
        called = await self._calls.call(caller.now, _HELP, {"topic": unquote(topic)} if topic else {})
        if called.result.error is not None:
            return None
        return Content("\n".join(message.text for message in called.here))


class KnowledgeDocuments:
    """The documents that `knowledge_search` finds, for callers that may call it."""

    def __init__(self, calls: DirectCalls, knowledge: KnowledgeBases) -> None:
        self._calls = calls
        self._knowledge = knowledge

    async def listed(self, caller: McpCaller) -> Sequence[Resource]:
        """The documents of the bases that the caller's bot and chat search."""
        files = await self._knowledge.files(self._visible(caller))
        return [
            Resource(uri=f"{_KNOWLEDGE_URI}{quote(base)}/{quote(file)}", name=f"{base}/{file}", mime_type="text/plain")
            for base, file in files
        ]

    async def templates(self, caller: McpCaller) -> Sequence[ResourceTemplate]:
        """None, since all documents are listed."""
        return ()

    async def read(self, uri: str, caller: McpCaller) -> Content | None:
        """The text of the document at `uri`. The read is logged."""
        base, _, file = uri.removeprefix(_KNOWLEDGE_URI).partition("/")
        base, file = unquote(base), unquote(file)
        if not uri.startswith(_KNOWLEDGE_URI) or base not in self._visible(caller):
            return None
        text = await self._knowledge.text(base, file)
        if text:
            member, chat = caller.caller.member.key, caller.caller.chat.key
            _log.info("mcp_document_read", member=member, chat=chat, base=base, file=file)
        return Content(text) if text else None

    def _visible(self, caller: McpCaller) -> Sequence[str]:
        if not _may_call(_SEARCH, self._calls, caller):
            return ()
        chat, chats = caller.caller.chat, self._calls.chats
        return self._knowledge.visible(chats.of(chat).settings.bot, chat.key, chats.profile(chat).active)


def _may_call(name: str, calls: DirectCalls, caller: McpCaller) -> bool:
    """Whether the caller may call the function `name` now."""
    return any(spec.name == name and caller.may_name(spec) for spec in calls.callable_by(caller.now))


def prompt_of(spec: FunctionSpec, name: str, texts: Phrases) -> Prompt | None:
    """The first example of `spec` as a prompt; its slots are the arguments. None without an example."""
    example = _example(spec, texts)
    if not example:
        return None
    properties = spec.parameters.get("properties", {})
    arguments = [
        PromptArgument(name=slot, description=properties.get(slot, {}).get("description"), required=True)
        for slot in dict.fromkeys(_SLOT.findall(example))
    ]
    title = plain_name(spec.name)
    return Prompt(
        name=name, title=title[:1].upper() + title[1:], description=spec.description, arguments=arguments or None
    )


def filled_prompt(spec: FunctionSpec, arguments: dict[str, str], texts: Phrases) -> GetPromptResult | None:
    """The prompt of `spec` with `arguments`; None if one is missing or too long."""
    example = _example(spec, texts)
    slots = set(_SLOT.findall(example))
    if not slots <= arguments.keys() or any(len(arguments[slot]) > _MOST_CHARS for slot in slots):
        return None
    text = _SLOT.sub(lambda found: arguments[found[1]], example)
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(text=text))])


def _example(spec: FunctionSpec, texts: Phrases) -> str:
    """The first example in the language of `texts`, else the first one."""
    examples = spec.prompt.examples
    ours = [one for one in examples if any(map(is_unspaced, one)) == texts.language.startswith("zh")]
    return next(iter(ours or examples), "")
