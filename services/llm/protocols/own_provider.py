"""ChatModel over a custom Python function, for providers without a protocol here."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import cast

import orjson

from services.llm.encoding import encode_messages, encode_tools
from services.llm.model import ModelAnswer, ModelError, ModelMessage, ModelRequest
from services.llm.reading.openai import read_body
from services.refs import ErrorCode, JsonObject

CallWithFunctions = Callable[[list[JsonObject], list[JsonObject]], Awaitable[JsonObject | str]]
"""Takes messages and tools in the form of OpenAI chat completions. Returns a whole completion, its message, or a text.
May raise ModelError; any other exception counts as an outage."""

_PROBE_SECONDS = 20.0


class OwnProvider:
    """ChatModel that calls a custom function and parses its result like a server's response."""

    def __init__(self, name: str, call_with_functions: CallWithFunctions, model: str = "") -> None:
        """`model` is the model name of answers that name none."""
        self.name = name
        self._call = call_with_functions
        self._model = model

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Call the function with the request and parse its result. Raises ModelError: `timeout`,
        `malformed_by_provider` for an unusable result, `provider_error` for an exception (retryable), and those of
        `read_body`."""
        messages = orjson.loads(encode_messages(request.messages))
        offers = request.offer is not None and request.offer.functions and request.tool_choice != "none"
        tools = orjson.loads(encode_tools(request.offer)) if request.offer is not None and offers else []
        try:
            async with asyncio.timeout(request.timeout_seconds):
                body = orjson.dumps(self._completion(await self._returned(messages, tools)))
        except ModelError:
            raise
        except TimeoutError:
            raise ModelError(
                ErrorCode.TIMEOUT, f"no answer within {request.timeout_seconds:.1f} s", retryable=True
            ) from None
        except TypeError as error:
            raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, f"{self.name} returned no JSON: {error}") from error
        except (Exception, SystemExit) as error:
            text = f"{self.name} failed: {type(error).__name__}: {error}"
            raise ModelError(ErrorCode.PROVIDER_ERROR, text, retryable=True) from error
        return read_body(200, {}, body)

    async def _returned(self, messages: list[JsonObject], tools: list[JsonObject]) -> object:
        pending = self._call(messages, tools)
        if not isinstance(pending, Awaitable):
            raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, f"{self.name} has to be an `async def`")
        return await pending

    def _completion(self, returned: object) -> JsonObject:
        """A whole completion made from the function's return value. Raises ModelError for any other type."""
        if isinstance(returned, str):
            returned = {"role": "assistant", "content": returned}
        if not isinstance(returned, dict):
            wrong = f"{self.name} returned a {type(returned).__name__}"
            text = f"{wrong}: return a text, or a message or a completion as a dict"
            raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, text)
        if "choices" not in returned and "error" not in returned:
            returned = {"choices": [{"message": returned, "finish_reason": "stop"}]}
        return {"model": self._model, **returned}

    async def probe(self) -> str:
        """One line confirming that the function answers. Raises ModelError otherwise, also after 20 seconds."""
        hello = ModelMessage("user", "Say OK.")
        answer = await self.complete(ModelRequest([hello], timeout_seconds=_PROBE_SECONDS))
        return f"{answer.model or self.name} answered"

    async def close(self) -> None:
        return None


def load_function(path: str) -> CallWithFunctions:
    """Import the function `path`, as `package.module:function`. Raises ValueError with the reason if it cannot be
    imported or does not exist."""
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(f"{path}: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        raise ValueError(f"{path}: the module has no function {name!r}")
    return cast(CallWithFunctions, found)
