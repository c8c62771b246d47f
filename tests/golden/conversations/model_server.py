"""A server of chat completions on 127.0.0.1 with scripted answers, and a SearXNG fake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.listener import Listener

Answer = Any
"""A text; `{function: arguments}`, or a list of these for parallel calls; or `{answer: …}` with `text`, `calls`,
`finish`, `status`, `body`, `held`. `{to: words, say: …}` is an answer for a request that contains the words."""
_UNSCRIPTED = {"answer": {"status": 400, "body": {"error": {"message": "the script has no more answers"}}}}


class ModelServer:
    """Returns the scripted answers in order and records the requests."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.pages: dict[str, Any] = {}
        """Search results by query; `*` for any other query."""
        self.requests: list[dict[str, Any]] = []
        """Each with `body` and `path`, and with `unscripted` if the script had ended."""
        self.asked = asyncio.Event()
        self._calls = 0
        self._released = asyncio.Event()
        self._listener = Listener(self._serve)

    @property
    def address(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._listener.port}"

    async def start(self) -> None:
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()

    def release(self) -> None:
        """Send the held answers."""
        self._released.set()
        self._released = asyncio.Event()

    async def until(self, requests: int) -> None:
        """Wait until `requests` requests have been received in total."""
        async with asyncio.timeout(60):
            while len(self.requests) < requests:
                self.asked.clear()
                await self.asked.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                while True:
                    await self._answer_one(reader, writer)
            finally:
                writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        _, path, _ = head[0].split(" ", 2)
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        status, told = self._searched(path) if path.startswith("/search") else await self._completed(path, body)
        whole = told if isinstance(told, bytes) else json.dumps(told).encode()
        fields_told = f"content-type: application/json\r\ncontent-length: {len(whole)}"
        writer.write(f"HTTP/1.1 {status} Scripted\r\n{fields_told}\r\n\r\n".encode() + whole)
        await writer.drain()

    def _searched(self, path: str) -> tuple[int, Any]:
        query = parse_qs(urlsplit(path).query).get("q", [""])[0]
        found: Sequence[Any] = self.pages.get(query, self.pages.get("*", []))
        return 200, {"query": query, "results": found}

    async def _completed(self, path: str, body: bytes) -> tuple[int, Any]:
        answer = self._next(body.decode())
        is_scripted = answer is not None
        answer = _UNSCRIPTED if answer is None else answer
        self.requests.append({"path": path, "body": json.loads(body), "unscripted": not is_scripted})
        self.asked.set()
        special = answer.get("answer", {}) if isinstance(answer, dict) else {}
        if special.get("held"):
            await self._released.wait()
        if "status" in special:
            raw = special.get("body", {})
            return special["status"], raw.encode() if isinstance(raw, str) else raw
        return 200, self._completion(answer, special)

    def _next(self, asked: str) -> Answer | None:
        """The first answer for this request: `{to: words, say: …}` needs these words in it."""
        for place, answer in enumerate(self.script):
            is_for_some = isinstance(answer, dict) and "to" in answer
            if not is_for_some or answer["to"] in asked:
                del self.script[place]
                return answer["say"] if is_for_some else answer
        return None

    def _completion(self, answer: Answer, special: dict[str, Any]) -> Any:
        if isinstance(answer, str):
            text, calls = answer, []
        elif special:
            text, calls = special.get("text"), special.get("calls", [])
        else:
            text, calls = None, answer if isinstance(answer, list) else [answer]
        wire = [self._call(name, given) for one in calls for name, given in one.items()]
        message = {"role": "assistant", "content": text} | ({"tool_calls": wire} if wire else {})
        finish = special.get("finish", "tool_calls" if wire else "stop")
        return {
            "id": f"completion-{len(self.requests)}",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }

    def _call(self, name: str, given: Any) -> Any:
        self._calls += 1
        arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
        return {"id": f"call_{self._calls}", "type": "function", "function": {"name": name, "arguments": arguments}}
