"""Chats, their messages, and one turn with everything that is stored about it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
from starlette.responses import Response
from starlette.routing import Route

from bot.checks.recorded import NotRecorded, case_of_turn
from bot.web.desk.accounts import DeskRole
from bot.web.desk.activity import cost_of, level_of, requests_of
from bot.web.desk.desk import Desk, Visit
from function_calls.profile import reason_text
from services.refs import ChatRef, JsonValue, ReasonCode
from services.store import reports
from services.store.ids import first_id_at, generated_ms
from services.store.port import Row

_DAY_MS = 24 * 3_600_000
DAYS_LISTED = 7
"""Age of the oldest message that counts in lists of chats."""
_MOST_CHATS, _PAGE = 500, 50
_NEWEST = 2**63 - 1


class Line(NamedTuple):
    """One message in the list of a chat."""

    id: int
    at: str
    name: str
    text: str
    from_bot: bool
    change: str
    reason: str
    level: str
    """Class of the style sheet for the reason."""
    why: str
    """Explanation of the reason."""


class Round(NamedTuple):
    """One request to a model."""

    number: int
    answer: JsonValue
    """The stored answer; None if it is no longer stored."""
    request: JsonValue
    """The line of the request log; None if the log no longer has it."""
    cost: float


class ChatPages:
    """Pages of chats and turns."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        """The list, a chat, and a turn."""
        operator = DeskRole.OPERATOR
        return [
            self._desk.get("/chats", self._list, operator),
            self._desk.get("/chats/{chat:path}", self._chat, operator),
            self._desk.get("/turns/{turn:int}", self._turn, operator),
            self._desk.get("/turns/{turn:int}/case", self._case, operator),
        ]

    async def _list(self, visit: Visit) -> Response:
        since = first_id_at(self._desk.clock.now_ms() - _DAY_MS * DAYS_LISTED)
        rows = await self._desk.daemon.store.read(reports.chats(since, _MOST_CHATS))
        chats = self._desk.daemon.chats
        found = [(row, chats.of(ChatRef.parse(row["chat"]))) for row in rows]
        return visit.page("chats.html", "chats", chats=found, newest=self._newest)

    def _newest(self, row: Row) -> str:
        return self._desk.local(generated_ms(row["id"]))

    async def _chat(self, visit: Visit) -> Response:
        chat, reason = visit.path["chat"], visit.query.get("reason", "")
        before = int(asked) if (asked := visit.query.get("before", "")).isdecimal() else _NEWEST
        rows = await self._desk.daemon.store.read(reports.messages(chat, before, _PAGE, reason))
        lines = [self._line(visit, row) for row in rows]
        served = self._desk.daemon.chats.of(ChatRef.parse(chat))
        older = rows[-1]["id"] if len(rows) == _PAGE else None
        reasons = sorted(reason.value for reason in ReasonCode)
        return visit.page(
            "chat.html", "chats", chat=chat, lines=lines, served=served, older=older, reason=reason, reasons=reasons
        )

    def _line(self, visit: Visit, row: Row) -> Line:
        reason = row["reason"] or ""
        return Line(
            row["id"],
            self._desk.local(row["at_ms"]),
            row["sender_name"],
            row["text"],
            bool(row["from_bot"]),
            row["change"],
            reason,
            level_of(reason),
            why(visit, reason, row["detail"] or "") if reason else "",
        )

    async def _turn(self, visit: Visit) -> Response:
        store, turn = self._desk.daemon.store, visit.path["turn"]
        rows = await store.read(reports.event(turn))
        if not rows:
            return visit.page("problem.html", "chats", status=404, problem=visit.texts.say("problems.no_turn"))
        event = rows[0]
        rows = await store.read(reports.calls(turn))
        calls = [{**row, "arguments": pretty(row["arguments"]), "result": pretty(row["result"])} for row in rows]
        sent = [{**row, "text": _text_of(row["body"])} for row in await store.read(reports.sent(turn))]
        rounds = await self._rounds(turn, await store.read(reports.answers(turn)))
        return visit.page(
            "turn.html",
            "chats",
            event=event,
            why=why(visit, event["reason"], event["detail"]),
            level=level_of(event["reason"]),
            calls=calls,
            sent=sent,
            rounds=rounds,
            offered=next((each.request["offered"] for each in rounds if each.request), []),
            cost=sum(each.cost for each in rounds),
            questions=await store.read(reports.questions(turn)),
        )

    async def _case(self, visit: Visit) -> Response:
        """The turn as a case of `rollcall replay`, to be saved as a file."""
        turn, settings = visit.path["turn"], self._desk.settings
        try:
            case = await self._desk.report(lambda reader: case_of_turn(reader, settings, turn))
        except NotRecorded as problem:
            return visit.page("problem.html", "chats", status=404, problem=visit.texts.say("turn.no_case", why=problem))
        headers = {"content-disposition": f'attachment; filename="turn-{turn}.jsonl"', "cache-control": "no-store"}
        return Response(orjson.dumps(case) + b"\n", media_type="application/jsonl", headers=headers)

    async def _rounds(self, turn: int, answers: Sequence[Row]) -> list[Round]:
        logs, prices = Path(self._desk.settings.logging.folder), self._desk.settings.budgets.prices
        requests = {line["round"]: line for line in await asyncio.to_thread(requests_of, logs, str(turn))}
        bodies = {row["round"]: pretty(row["body"]) for row in answers}
        return [
            Round(number, bodies.get(number), line := requests.get(number), cost_of(line, prices) if line else 0.0)
            for number in sorted({*requests, *bodies})
        ]


def why(visit: Visit, reason: str, detail: str) -> str:
    """Explanation of a reason code in the language of the visit."""
    return reason_text(visit.desk.bot_texts.of(visit.texts.language), ReasonCode(reason), detail)


def pretty(body: str | None) -> str:
    """JSON text with indents; other text as it is, and empty for None."""
    if not body:
        return ""
    try:
        return json.dumps(orjson.loads(body), ensure_ascii=False, indent=2)
    except orjson.JSONDecodeError:
        return body


def _text_of(body: str) -> str:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    return str(value.get("text", "")) if isinstance(value, dict) else body
