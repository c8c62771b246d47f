"""Parsing of untrusted documents: each in a new child process, with limits of time, CPU, memory and output."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

import orjson

from config.sections.processes import SandboxSettings
from services.clock import Clock
from services.refs import JsonValue
from services.sandbox.processes import CannotStart, Command, Limits
from services.sandbox.sandbox import Isolation, Sandbox

_AT_ONCE = 2
_ROOT = str(Path(__file__).resolve().parents[2])
_PARSE = """
import importlib, json, sys
path, parser, content_type = json.loads(sys.stdin.buffer.readline())
sys.path[:] = path
module, name = parser.split(":")
value = getattr(importlib.import_module(module), name)(sys.stdin.buffer.read(), content_type)
sys.stdout.buffer.write(json.dumps(value).encode())
"""


class Parser(StrEnum):
    """Functions that run in the child, as `module:function`. They take the document and its content type and return a
    JSON value. Their modules import little, because every document starts a new process."""

    FEED = "services.web.feeds:feed_to_json"
    PAGE = "services.web.page_text:page_to_json"
    DOCUMENT = "services.media.documents:document_to_json"


def _limits(seconds: int) -> Limits:
    return Limits(
        timeout_seconds=float(seconds),
        output_bytes=1_000_000,
        memory_bytes=256 * 1024 * 1024,
        cpu_seconds=seconds,
        file_bytes=0,
    )


_LIMITS = {Parser.FEED: _limits(4), Parser.PAGE: _limits(10), Parser.DOCUMENT: _limits(10)}
"""The imports for pages and documents take a second."""


class ParsingError(Exception):
    """The document was not parsed. The text is for operators and contains nothing of the document."""


class DocumentParser:
    """Parses at most two documents at a time; others wait."""

    def __init__(self, clock: Clock) -> None:
        # Not the sandbox of the programs of chats: a document never waits for these.
        self._sandbox = Sandbox(clock, SandboxSettings(isolation="off", at_once=_AT_ONCE))

    async def parse(self, parser: Parser, document: bytes, content_type: str) -> JsonValue:
        """The result of `parser`. The process is killed after 4 seconds for a feed and 10 for a page, and if the caller
        is cancelled. Raises ParsingError. The caller limits the size of `document`."""
        limits = _LIMITS[parser]
        head = orjson.dumps([[*sys.path, _ROOT], parser.value, content_type])
        argv = (sys.executable, "-I", "-S", "-B", "-c", _PARSE)
        try:
            ended = await self._sandbox.run(Command(argv, head + b"\n" + document), limits, Isolation.OFF)
        except CannotStart as error:
            raise ParsingError(str(error)) from error
        if ended.timed_out:
            raise ParsingError(f"parsing it takes longer than {limits.timeout_seconds:g} seconds")
        if ended.exit_code or ended.cut:
            raise ParsingError("parsing it exceeds the limits of CPU time, memory or output, or fails")
        return orjson.loads(ended.stdout)
