"""The handler of a command tool, which sees to it that `on_exit` is called once, however a run ends."""

from __future__ import annotations

import asyncio

from function_calls.call import Call
from function_calls.command_tools.definition import Definition, Ending
from function_calls.command_tools.machine import Machine
from function_calls.command_tools.request import Given
from function_calls.command_tools.run import Run
from function_calls.context import MessageContext
from function_calls.spec import FunctionResult, FunctionSpec


class CommandToolHandler:
    """The handler of one tool."""

    def __init__(self, tool: Definition, machine: Machine) -> None:
        self.tool = tool
        self.machine = machine
        self.spec: FunctionSpec | None = None
        """Known once it has been made with this handler."""
        self._leaving: set[asyncio.Task[None]] = set()

    async def handle(self, context: MessageContext, given: Given, call: Call) -> FunctionResult:
        """What came of it, or what a person is asked before the next step."""
        if self.spec is None:
            raise RuntimeError(f"the tool {self.tool.name} runs before it has a spec")
        run = Run(self.tool, self.machine, self.spec, context, given, call)
        ending = Ending.CANCELLED
        try:
            result = await run.result()
            ending = run.ending
        except asyncio.CancelledError:
            raise
        except Exception:
            ending = Ending.ERROR
            raise
        finally:
            if not run.waits:
                await self._leave(run, ending)
        return result

    async def _leave(self, run: Run, ending: Ending) -> None:
        """`on_exit` comes to its end even when whoever waits for the run does not any more."""
        if self.tool.on_exit is None:
            return
        leaving = asyncio.create_task(run.exit(ending))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        await asyncio.shield(leaving)
