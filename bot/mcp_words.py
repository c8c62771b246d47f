"""The model of a client of the Model Context Protocol, asked for a function that wants words (sampling)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

import structlog
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    SamplingMessage,
    TextContent,
)
from pydantic import ValidationError

from bot.mcp_callers import McpCaller
from bot.mcp_questions import Context, Waiting, comes_in_rounds, unless_gone
from function_calls.words import Unwritten, WordsWanted, Written
from services.llm.model import ModelMessage

WORDS = "words"
"""The key of the request where requests have one."""
MOST_REQUESTS = 10
"""Of one call, with all that runs within it: many clients give up then."""
_LONGEST_ANSWER = 32_768
_DECLINED = -1
"""By which a client says that its user did not want it."""
_log = structlog.get_logger("mcp")


def lends_its_model(context: Context) -> bool:
    """Whether the client says that it asks its model for servers."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return False
    return comes_in_rounds(context) or context.session.can_send_request


def request_for(wanted: WordsWanted) -> CreateMessageRequest:
    """The request for `wanted`. Nothing of the client's conversation is to be told beside it."""
    instructions = "\n\n".join(one.content for one in wanted.messages if one.role == "system")
    return CreateMessageRequest(
        params=CreateMessageRequestParams(
            messages=[_message(one) for one in wanted.messages if one.role != "system"],
            system_prompt=instructions or None,
            include_context="none",
            max_tokens=wanted.most_tokens,
        )
    )


def written_of(result: object) -> Written | Unwritten:
    """What the client's model wrote. What is no text is nothing."""
    if not isinstance(result, CreateMessageResult | CreateMessageResultWithTools):
        return Unwritten.DOWN
    blocks = result.content if isinstance(result.content, list) else [result.content]
    text = "\n".join(one.text for one in blocks if isinstance(one, TextContent)).strip()
    return Written(text[:_LONGEST_ANSWER], is_callers=True) if text else Unwritten.DOWN


class ModelOverTheStream:
    """The model of a client that is asked while its call waits: by a request on the stream of the call."""

    def __init__(self, context: Context, whose: McpCaller, waiting: Waiting, gone: Sequence[asyncio.Event]) -> None:
        """One of `gone` is set when no answer can come any more."""
        self._context = context
        self._whose = whose
        self._waiting = waiting
        self._gone = gone
        self._left = MOST_REQUESTS

    async def write(self, wanted: WordsWanted) -> Written | Unwritten:
        """Its words, or why there are none."""
        if self._left <= 0:
            return Unwritten.OVER_BUDGET
        self._left -= 1
        with self._waiting.one_more(self._whose) as may_wait:
            if not may_wait:
                return Unwritten.DOWN
            return await unless_gone(self._ask(wanted), self._gone) or Unwritten.DOWN

    async def _ask(self, wanted: WordsWanted) -> Written | Unwritten:
        where = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            result = await self._context.session.send_request(request_for(wanted), CreateMessageResult, metadata=where)
        except ValidationError:
            return Unwritten.DOWN
        except MCPError as error:
            if error.code == _DECLINED:
                return Unwritten.DECLINED
            _log.warning("model_not_asked", problem=str(error)[:300], member=self._whose.caller.member.key)
            return Unwritten.DOWN
        return written_of(result)


def _message(one: ModelMessage) -> SamplingMessage:
    role: Literal["user", "assistant"] = "assistant" if one.role == "assistant" else "user"
    return SamplingMessage(role=role, content=TextContent(type="text", text=one.content))
