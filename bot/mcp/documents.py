"""Resources and prompts of the MCP server: help pages, other documents, and the examples of functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol
from urllib.parse import unquote

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
from services.text_index import is_unspaced

_HELP = "help"
_HELP_URI = "rollcall://help"
_SLOT = re.compile(r"\{(\w+)\}")
_MOST_CHARS = 2000


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
        callable_ = self._calls.callable_by(caller.now)
        is_callable = any(spec.name == _HELP and caller.may_name(spec) for spec in callable_)
        return [Resource(uri=_HELP_URI, name=_HELP, title=title, mime_type="text/plain")] if is_callable else []

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
