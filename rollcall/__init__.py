"""The public interface.

Names for authors of functions and for programs that embed the router; docs/api.md describes each. No other package
imports this one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import Choice, FunctionResult, FunctionSpec, Message, ToolError
from services.clock import Clock
from services.llm.model import ModelAnswer, ModelError
from services.refs import ChatRef, Effect, ErrorCode, MemberRef, Role

if TYPE_CHECKING:
    from bot.testing import a_group, call
    from function_calls.encodings import anthropic_tool, imported_definition, mcp_tool, openai_bare, openai_tool
    from function_calls.filters.call import Invocation, Proceed
    from function_calls.filters.round import Ask, Round
    from function_calls.outcome import Dispatch, TurnOutcome
    from function_calls.registry import FunctionRegistry
    from function_calls.router import FunctionCallRouter
    from function_calls.schema.mappings import spec_from_mapping
    from function_calls.turn import Turn
    from rollcall.embedding import Router, a_message
    from services.llm.profile import ModelProfile
    from services.llm.protocols.own_provider import OwnProvider

_LATE = {
    "bot.testing": ("a_group", "call"),
    "function_calls.encodings": ("anthropic_tool", "imported_definition", "mcp_tool", "openai_bare", "openai_tool"),
    "function_calls.filters.call": ("Invocation", "Proceed"),
    "function_calls.filters.round": ("Ask", "Round"),
    "function_calls.outcome": ("Dispatch", "TurnOutcome"),
    "function_calls.registry": ("FunctionRegistry",),
    "function_calls.router": ("FunctionCallRouter",),
    "function_calls.schema.mappings": ("spec_from_mapping",),
    "function_calls.turn": ("Turn",),
    "rollcall.embedding": ("Router", "a_message"),
    "services.llm.profile": ("ModelProfile",),
    "services.llm.protocols.own_provider": ("OwnProvider",),
}
"""Names imported on first use, because a module of functions needs neither the daemon, its test helpers, nor models."""

__all__ = [
    "Ask",
    "Attachment",
    "Call",
    "ChatRef",
    "Choice",
    "Clock",
    "Dispatch",
    "Effect",
    "ErrorCode",
    "FunctionCallRouter",
    "FunctionRegistry",
    "FunctionResult",
    "FunctionSpec",
    "Invocation",
    "MemberRef",
    "Message",
    "MessageContext",
    "ModelAnswer",
    "ModelError",
    "ModelProfile",
    "OwnProvider",
    "Proceed",
    "Role",
    "Round",
    "Router",
    "ToolError",
    "Turn",
    "TurnOutcome",
    "a_group",
    "a_message",
    "anthropic_tool",
    "call",
    "imported_definition",
    "mcp_tool",
    "openai_bare",
    "openai_tool",
    "spec_from_mapping",
    "tool_function",
]


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> object:
        for module, names in _LATE.items():
            if name in names:
                return globals().setdefault(name, getattr(importlib.import_module(module), name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
