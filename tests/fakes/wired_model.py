"""A scripted model whose words and calls take the way over a wire: as a provider puts them, over real HTTP, through the
client of its protocol."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from services.llm.model import ChatModel, ModelAnswer, ModelRequest
from tests.fakes.model import Scripted, ScriptedModel
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.wires import Wire


class Provider:
    """The other side of a wire, for as many models as a test wants. It listens when it is first asked."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._server = OpenAIServer([])
        self._client: ChatModel | None = None

    async def complete(self, request: ModelRequest, step: ModelAnswer) -> ModelAnswer:
        """What the client of the protocol makes of `step`. The ids of calls are those of the script: what a protocol
        without ids makes up is nobody's business here."""
        wanted = [(call.name, dict(call.arguments or {})) for call in step.calls]
        self._server.script = [self.wire.calls(step.text, wanted) if wanted else self.wire.says(step.text)]
        answer = await (await self._connected()).complete(request)
        assert [call.name for call in answer.calls] == [call.name for call in step.calls]
        calls = tuple(replace(one, id=call.id) for one, call in zip(answer.calls, step.calls, strict=True))
        return replace(answer, calls=calls, request_id=step.request_id, usage=step.usage, by=step.by)

    async def _connected(self) -> ChatModel:
        if self._client is None:
            await self._server.__aenter__()
            self._client = self.wire.model(self._server.base_url)
        return self._client

    async def close(self) -> None:
        """Nobody listens any more."""
        if self._client is not None:
            await self._client.close()
            await self._server.__aexit__(None, None, None)


class WiredModel(ScriptedModel):
    """Gives what its provider makes of its script. What no provider says in so many words (an error, a call that cannot
    be read, a guess, a last word) is given as it stands in the script."""

    def __init__(self, provider: Provider, *script: Scripted) -> None:
        super().__init__(*script)
        self._provider = provider

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        step = await super().complete(request)
        return await self._provider.complete(request, step) if _is_plain(step) else step


def model_over(provider: Provider) -> Any:
    """What makes models with a script that speak to `provider`."""
    return functools.partial(WiredModel, provider)


def _is_plain(step: ModelAnswer) -> bool:
    is_said = bool(step.text or step.calls) and step.opaque is None and not step.final
    return is_said and all(one.arguments is not None and not one.uncertain and one.name for one in step.calls)
