"""A module of functions declared as mappings, as an operator would write it."""

from __future__ import annotations

from typing import Any


def add(args: dict[str, Any]) -> int:
    return int(args["a"]) + int(args["b"])


async def whoami(args: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    return {
        "member": context["member"],
        "run": context["run_id"],
        "agent": context["agent_id"],
        "chat": context["chat"],
    }


def greet(args: dict[str, Any], context: dict[str, Any], greeting: str, mark: str) -> str:
    return f"{greeting}, {args['name']}{mark}"


NUMBERS = {"a": {"type": "integer", "required": True}, "b": {"type": "integer", "required": True}}


def tools() -> list[dict[str, Any]]:
    return [
        {"name": "add", "handler": add, "parameters": NUMBERS, "description": "Add two numbers."},
        {"name": "whoami", "handler": whoami, "tag": "people"},
    ]


def tool_info() -> dict[str, Any]:
    return {"description": "Small things", "tags": ["plain", "small"]}
