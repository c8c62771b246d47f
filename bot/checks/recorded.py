"""Recorded messages of members with the stored parts of their turns, and conversion to cases of `rollcall replay`."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import orjson

from bot.chats.summaries import line_of
from config.settings import Settings
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from function_calls.result import result_from_json
from function_calls.spec import FunctionResult
from function_calls.turn import HistoryLine
from services.llm.model import ModelAnswer, answer_from_json
from services.redaction import HIDDEN
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, ReasonCode, Role
from services.store.chats import history, outcomes
from services.store.ids import first_id_at, generated_ms
from services.store.port import Row
from services.store.reader import OperatorConnection

NOT_STORED = "(result not stored)"
"""Text of a result that is not stored, such as that of a read."""
_MARK = re.compile(r"(?:\A|\n)\[(picture|voice message|file: [^\[\]\n]*)\]\Z")
_GATHERED_MS = 60_000
_ROWS_AROUND = 1000
_OF_THE_MOMENT = frozenset(
    {
        ReasonCode.LIKE_A_BOT, ReasonCode.BACKFILLED, ReasonCode.QUEUE_FULL, ReasonCode.QUESTION_CLOSED,
        ReasonCode.OWN_MESSAGE, ReasonCode.WAITING,
    }
)  # fmt: skip
"""Reasons that depend on the state at that time, which is not stored."""
UNASKED = frozenset({ReasonCode.CHIMED_IN, ReasonCode.NOT_CHIMED_IN})
"""Reasons of messages that were not addressed to the bot although they may have a turn."""


class Obstacle(StrEnum):
    """Reason why a message cannot be compared."""

    NO_TEXT = "its text is not stored (deleted, private, opted out, or older than the history)"
    QUESTION = "it answers a question, whose state is not stored"
    MOMENT = "it depends on the state at that time (queue, gathering, late messages)"
    VOICE = "it is a voice message"
    NO_ANSWER = "the model's answer is not stored"
    CHIME_IN = "the bot may join in on its own"


class NotRecorded(Exception):
    """The event cannot be converted to a case; the message has the reason."""


@dataclass(slots=True)
class Record:
    """A stored message with what its turn left."""

    row: Row
    chat: ChatRef
    text: str
    """The text as in the history, without placeholders of files; joined if several messages were answered together."""
    files: tuple[Attachment, ...]
    obstacle: Obstacle | None
    answers: list[ModelAnswer] = field(default_factory=list)
    """The stored answers of the model, in order."""
    runs: list[Row] = field(default_factory=list)
    """The stored runs, without nested ones, in order."""

    @property
    def reason(self) -> ReasonCode:
        return ReasonCode(self.row["reason"])

    @property
    def has_turn(self) -> bool:
        """Whether the message started a turn because it was addressed to the bot or is a command."""
        return self.row["turn_id"] is not None and self.reason not in UNASKED | {ReasonCode.NOT_ADDRESSED}

    @property
    def sent_at(self) -> datetime:
        """The time of receipt, in UTC."""
        return datetime.fromtimestamp(self.row["received_ms"] / 1000, UTC)

    @property
    def line(self) -> HistoryLine:
        """The message as a line of the chat's history."""
        row = self.row
        return HistoryLine(
            row["sender_name"], self.text, row["received_ms"], False, row["reply_to_name"] or "", sender=row["sender"]
        )

    def context(self, *, is_group: bool, is_called: bool, role: Role, bot: str) -> MessageContext:
        """The message as a platform reported it. Facts that are not stored are passed: `is_called`, whether it is
        addressed to the bot other than by a command, and the sender's `role`."""
        row, member = self.row, MemberRef.parse(self.row["sender"])
        quoted = Quoted(row["reply_to"], row["reply_to_name"] or "") if row["reply_to"] else None
        is_bot = self.reason is ReasonCode.FROM_BOT
        return MessageContext(
            key=MessageKey(self.chat, row["native_id"]),
            kind=Kind(row["kind"]),
            chat=self.chat,
            is_group=is_group,
            sender=Sender(member, row["sender_name"], role, is_bot),
            text=self.text,
            sent_at=self.sent_at,
            mentions_bot=is_called,
            reply_to=quoted,
            attachments=self.files,
            bot=bot,
        )

    def results(self) -> dict[str, list[FunctionResult]]:
        """The results of the runs by function, in order; those that are not stored have the text NOT_STORED."""
        found: defaultdict[str, list[FunctionResult]] = defaultdict(list)
        for run in self.runs:
            found[run["function"]].append(_result(run))
        return found


def _result(run: Row) -> FunctionResult:
    if run["result"] is not None:
        return result_from_json(orjson.loads(run["result"]))
    if run["code"] not in ("", "ok", "asked"):
        return FunctionResult.fail(ErrorCode(run["code"]), NOT_STORED)
    return FunctionResult(data=NOT_STORED)


def read_records(database: OperatorConnection, chat: str, count: int, last_id: int = 2**62) -> list[Record]:
    """The latest `count` messages of `chat` (empty: of all chats) up to the event `last_id`, oldest first. Messages
    that were answered together are one record. Raises ReaderError."""
    rows = database.rows(outcomes.recorded(chat, count, last_id))[::-1]
    records: list[Record] = []
    latest: dict[tuple[str, str], Record] = {}
    for row in rows:
        place = row["chat"], row["sender"]
        earlier = latest.get(place)
        if row["reason"] == ReasonCode.GATHERED and earlier is not None:
            _join(earlier, row)
            continue
        record = latest[place] = _record(row)
        records.append(record)
    if records:
        by_id = {record.row["id"]: record for record in records}
        first, last = rows[0]["id"], rows[-1]["id"]
        for row in database.rows(outcomes.recorded_answers(chat, first, last)):
            if row["turn_id"] in by_id:
                by_id[row["turn_id"]].answers.append(answer_from_json(orjson.loads(row["body"])))
        for row in database.rows(outcomes.recorded_runs(chat, first, last)):
            if row["turn_id"] in by_id:
                by_id[row["turn_id"]].runs.append(row)
    return records


def _record(row: Row) -> Record:
    text, files, obstacle = row["text"] or "", [], None
    while found := _MARK.search(text):
        name = found[1].removeprefix("file: ")
        files.append(Attachment(name, "image/png" if name == "picture" else "application/octet-stream"))
        text = text[: found.start()]
        if name == "voice message":
            obstacle = Obstacle.VOICE
    reason = ReasonCode(row["reason"])
    if row["question_id"] is not None:
        obstacle = Obstacle.QUESTION
    elif row["text"] is None or row["change"] == "deleted":
        obstacle = Obstacle.NO_TEXT
    elif reason in _OF_THE_MOMENT or reason is ReasonCode.GATHERED:
        obstacle = Obstacle.MOMENT
    return Record(row, ChatRef.parse(row["chat"]), text, tuple(reversed(files)), obstacle)


def _join(record: Record, row: Row) -> None:
    joined = _record(row)
    record.text = "\n".join(filter(None, (record.text, joined.text)))
    record.files += joined.files
    if row["text"] is None or row["change"] == "deleted":
        record.obstacle = record.obstacle or Obstacle.NO_TEXT


def case_of_turn(database: OperatorConnection, settings: Settings, turn_id: int) -> JsonObject:
    """The turn as a case of `rollcall replay`: message, history, stored results and model answers, and the recorded
    calls, reply and reason as expectation. Raises NotRecorded if there is no such turn or its message is not stored,
    and ReaderError."""
    found = database.rows(outcomes.recorded("", 1, turn_id))
    if not found or found[0]["id"] != turn_id:
        raise NotRecorded(f"there is no message with the id {turn_id}")
    # Later messages may have been answered together with it.
    records = read_records(database, found[0]["chat"], _ROWS_AROUND, first_id_at(generated_ms(turn_id) + _GATHERED_MS))
    record = next((one for one in records if one.row["id"] == turn_id), None)
    if record is None:
        raise NotRecorded("it was answered together with the message before it")
    if record.obstacle is not None or not record.has_turn:
        raise NotRecorded(str(record.obstacle or "the bot did not answer it"))
    if any(orjson.dumps(HIDDEN).decode() in run["arguments"] for run in record.runs):
        raise NotRecorded("its arguments are sensitive")
    row = record.row
    groups = {found["chat"] for found in database.rows(outcomes.groups(row["chat"]))}
    lines = database.rows(history.recent(row["chat"], turn_id, settings.router.history_messages))[::-1]
    before = [line_of(line) for line in lines if line["id"] < turn_id]
    said = [reply["text"] for reply in database.rows(outcomes.recorded_replies(turn_id))]
    calls = [{"name": run["function"], "arguments": orjson.loads(run["arguments"])} for run in record.runs]
    return {
        "id": str(turn_id),
        "message": {
            "text": record.text,
            "sender": row["sender_name"],
            "chat": row["chat"],
            "is_group": row["chat"] in groups,
            "addressed": not record.text.startswith("/"),
        },
        "history": [_history_line(line) for line in before],
        "results": {run["function"]: _value(run, "\n".join(said)) for run in record.runs},
        "model": [_as_response(answer) for answer in record.answers],
        "expect": {"calls": calls, "reply": "\n".join(said), "reason": row["reason"]},
    }


def _history_line(line: HistoryLine) -> JsonObject:
    if line.from_bot:
        return {"role": "assistant", "content": line.text}
    return {"sender": line.sender_name, "text": line.text}


def _value(run: Row, said: str) -> Any:
    """Value for a recorder to return as the result of `run`: its data, else its texts, else `said`, the reply."""
    result = _result(run)
    if run["result"] is None:
        return said
    return result.data if result.data is not None and not result.messages else result.reply


def _as_response(answer: ModelAnswer) -> JsonObject:
    """`answer` as a response in OpenAI's format."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.raw or orjson.dumps(call.arguments or {}).decode()},
        }
        for call in answer.calls
    ]
    message = {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"status": 200, "body": {"id": answer.request_id, "choices": [choice]}}
