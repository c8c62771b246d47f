"""A function whose runs wait until the test releases them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bot.testing import Step
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import FunctionSpec
from tests.fakes.functions import Recorder
from tests.fakes.wired_model import a_group


class Held:
    """Answers `<name> <text>` with `done: <text>` after its release. The text is its only argument."""

    def __init__(self, name: str = "hold", **options: Any) -> None:
        parameters = {"text": {"type": "string", "description": "Anything", "required": True}}
        self.spec: FunctionSpec = Recorder(name, parameters, does=self._wait, commands=[name], **options).spec
        self.begun: list[str] = []
        """Texts of the started runs, in order."""
        self.running: list[str] = []
        self.most_at_once = 0
        self._free: dict[str, asyncio.Event] = {}
        self._is_free = False

    def let_go(self, *texts: str) -> None:
        """Release the runs with these texts; without texts, all current and future ones."""
        if not texts:
            self._is_free = True
        for text in texts or list(self._free):
            self._event(text).set()

    async def has_begun(self, *texts: str) -> None:
        """Wait until the runs with these texts have started."""
        await until(lambda: all(text in self.begun for text in texts))

    async def _wait(self, context: MessageContext, arguments: dict[str, Any], call: Call) -> str:
        text = arguments["text"]
        self.begun.append(text)
        self.running.append(text)
        self.most_at_once = max(self.most_at_once, len(self.running))
        try:
            if not self._is_free:
                await self._event(text).wait()
        finally:
            self.running.remove(text)
        return f"done: {text}"

    def _event(self, text: str) -> asyncio.Event:
        return self._free.setdefault(text, asyncio.Event())


async def until(condition: Callable[[], bool]) -> None:
    """Let tasks run until `condition` is true; for conditions without an event. At most a minute."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the writer thread takes real time and has no event
            await asyncio.sleep(0)


async def killed_in(held: Held, *functions: Recorder, home: Path, steps: Sequence[Step], text: str = "do it") -> None:
    """Ann asks with `text`, the model answers with `steps`, and the process dies while `held` runs."""
    async with a_group([held.spec, *(one.spec for one in functions)], home=home) as group:
        group.model.says(*steps)
        await group.hear("Ann", f"@Rollcall {text}")
        await held.has_begun("it")
        await group.daemon.store.commit([])
        await group.crash()
