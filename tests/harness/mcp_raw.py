"""An MCP server as a program that writes the protocol of 2025 by hand, so that it can also send invalid data. Its only
argument is a JSON file, which the test writes and which is read again for each request:

    {"tools": [{"name": …, "inputSchema": …, "does": "say", "with": …}], "pages": 2, "noise": "…"}

The requests are logged in a file with the suffix `.log`, one JSON value per line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

SCRIPT = Path(sys.argv[1])
DIARY = SCRIPT.with_suffix(".log")
OURS = ("does", "with")
WRITING = threading.Lock()


def script() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCRIPT.read_text(encoding="utf-8"))
    return found


def note(**facts: Any) -> None:
    with DIARY.open("a", encoding="utf-8") as diary:
        diary.write(json.dumps(facts) + "\n")


def write(line: str) -> None:
    with WRITING:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def tell(method: str, **params: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def listed(params: dict[str, Any]) -> dict[str, Any]:
    plan = script()
    tools = [{key: value for key, value in one.items() if key not in OURS} for one in plan["tools"]]
    number, size = int(params.get("cursor") or 0), max(1, -(-len(tools) // plan.get("pages", 1)))
    note(listed=number)
    page = {"tools": tools[number * size : (number + 1) * size]}
    endless = {"nextCursor": str(number + 1)}
    return page | (endless if (number + 1) * size < len(tools) or plan.get("endless") else {})


def tool_named(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in script()["tools"] if one.get("name") == name)
    return found


def called(name: str, arguments: Any) -> dict[str, Any] | None:  # noqa: C901 - a list of cases
    """Result of the call; None for no answer."""
    tool = tool_named(name)
    does, given = tool.get("does", "say"), tool.get("with")
    match does:
        case "say":
            return text(given if given is not None else json.dumps(arguments))
        case "fail":
            return text(given, isError=True)
        case "give":
            return dict(given)
        case "crash":
            os._exit(3)
        case "crash once":
            mark = SCRIPT.with_suffix(".crashed")
            if not mark.exists():
                mark.touch()
                os._exit(3)
            return text("up again")
        case "hang":
            return None
        case "change":
            SCRIPT.write_text(json.dumps({**script(), **given}), encoding="utf-8")
            tell("notifications/tools/list_changed")
            return text("changed")
        case "change in silence":
            SCRIPT.write_text(json.dumps({**script(), **given}), encoding="utf-8")
            return text("changed")
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "fork":
            sleeper = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
            child = subprocess.Popen([sys.executable, "-c", sleeper], stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
            return text(str(child.pid))
        case "look":
            there = [Path(one).exists() for one in given]
            told = {"writes": os.access(given[0], os.W_OK), "home": os.environ["HOME"], "token": os.environ["TOKEN"]}
            return text(json.dumps({"there": there, **told}))
        case "huge":
            return text("x" * int(given))
    raise ValueError(does)


ASKING: dict[str, Any] = {}
"""The id of the call that waits for the client's user, by the id of the question."""


def ask(call: Any, questions: list[Any], answers: list[Any]) -> None:
    """Ask the first of `questions`; without further ones, answer the call with all `answers`."""
    if not questions:
        write(json.dumps({"jsonrpc": "2.0", "id": call, "result": text(json.dumps(answers))}))
        return
    question = f"question-{call}-{len(answers)}"
    ASKING[question] = (call, questions[1:], answers)
    write(json.dumps({"jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": questions[0]}))


def answer(request: dict[str, Any]) -> None:
    if "method" not in request:
        call, questions, answers = ASKING.pop(request["id"])
        note(answered=request.get("result"))
        ask(call, questions, [*answers, request.get("result") or request["error"]["message"]])
        return
    method, params = request["method"], request.get("params") or {}
    if method == "notifications/cancelled":
        note(cancelled=params)
    if "id" not in request:
        return
    outcome: dict[str, Any]
    if method == "initialize":
        note(offered=params["capabilities"])
        told = {"tools": {"listChanged": True}}
        server = {"name": "raw", "version": "1"}
        outcome = {"result": {"protocolVersion": "2025-11-25", "capabilities": told, "serverInfo": server}}
    elif method == "tools/list":
        outcome = {"result": listed(params)}
    elif method == "tools/call":
        note(called=params["name"], arguments=params.get("arguments"))
        if script().get("refuses"):
            outcome = {"error": {"code": -32000, "message": script()["refuses"]}}
        elif (tool := tool_named(params["name"])).get("does") == "ask":
            ask(request["id"], tool["with"], [])
            return
        else:
            found = called(params["name"], params.get("arguments"))
            if found is None:
                return
            outcome = {"result": found}
    else:
        outcome = {"error": {"code": -32601, "message": "Method not found"}}
    write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}))


def follow() -> None:
    """Announce changed tools as soon as the file changes; exit if it says so."""
    before = script()
    while True:
        time.sleep(0.02)
        now = script()
        if now.get("dies"):
            os._exit(3)
        if now != before:
            tell("notifications/tools/list_changed")
        before = now


def main() -> None:
    note(began=os.getpid())
    plan = script()
    if plan.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if plan.get("dies"):
        sys.exit("I cannot start")
    if plan.get("tells"):
        threading.Thread(target=follow, daemon=True).start()
    if plan.get("noise"):
        write(plan["noise"])
        sys.stderr.write(plan["noise"] + "\n")
    for line in sys.stdin:
        answer(json.loads(line))
    if plan.get("stubborn"):
        threading.Event().wait(60)


if __name__ == "__main__":
    main()
