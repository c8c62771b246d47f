"""A server of tools over standard input and output, without any library."""

from __future__ import annotations

import json
import sys
from typing import Any

CITY = {"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, "required": ["city"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = [
    {"name": "forecast", "description": "The weather of tomorrow in a city", "inputSchema": CITY},
    {"name": "book_room", "description": "Book a room in a city", "inputSchema": CITY},
    {"name": "broken", "description": "Fails", "inputSchema": NOTHING},
]


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "broken":
        return {"content": [{"type": "text", "text": "the backend is away"}], "isError": True}
    said = f"{arguments.get('city')}: rain" if name == "forecast" else f"Booked a room in {arguments.get('city')}."
    return {"content": [{"type": "text", "text": said}]}


def answered(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "result": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "town", "version": "1"},
                }
            }
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            return {"result": called(params["name"], params.get("arguments") or {})}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        outcome = answered(request["method"], request.get("params") or {})
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}) + "\n")
        sys.stdout.flush()
