"""Recorded messages of members with the stored parts of their turns, and conversion to cases of `rollcall replay`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from operator import itemgetter

import orjson

from bot.chats.summaries import line_of
from config.settings import Settings
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from function_calls.result import result_from_json
from function_calls.spec import FunctionResult
from services.llm.model import ModelAnswer, answer_from_json
from services.redaction import HIDDEN
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, ReasonCode
from services.store.chats import history
from services.store.port import Row
from services.store.reader import OperatorConnection, Outcome
from services.store.turns import ledger, turn_state

NOT_STORED = "(result not stored)"
"""Text of a result that is not stored, such as that of a read."""
_LEAST_ROWS = 1000
"""Messages that are read at least, to find out which chats are groups."""
_MARKS = re.compile(r"(?:\A|\n)\[(?:picture|voice message|file: [^\[\]\n]*)\](?=\n\[|\Z)")


class Obstacle(StrEnum):
    """Reason why a message cannot be compared."""

    NO_TEXT = "its text is not stored (deleted, private, opted out, or older than the history)"
    QUESTION = "it answers a question, whose state is not stored"
    MOMENT = "it depended on the moment (queue, time limit, joining in, message before it)"
    NO_ANSWER = "the model's answer is not stored"


_OF_THE_MOMENT = {
    **dict.fromkeys((ReasonCode.QUEUE_FULL, ReasonCode.BACKFILLED, ReasonCode.LIKE_A_BOT), Obstacle.MOMENT),
    **dict.fromkeys((ReasonCode.CHIMED_IN, ReasonCode.NOT_CHIMED_IN, ReasonCode.GATHERED), Obstacle.MOMENT),
    **dict.fromkeys((ReasonCode.QUESTION_CLOSED, ReasonCode.ANSWERED_QUESTION), Obstacle.QUESTION),
    ReasonCode.WAITING: Obstacle.MOMENT,
}


class NotRecorded(Exception):
    """The event cannot be converted to a case; the message has the reason."""


@dataclass(slots=True)
class Record:
    """A stored message with what its turn left."""

    id: int
    context: MessageContext
    """Facts that are not stored are assumed: the chat is a group if several members have written in it or a message was
    not addressed to the bot; a message with a turn mentions the bot unless it is a command; the sender is a member."""
    reason: ReasonCode
    detail: str
    has_turn: bool
    obstacle: Obstacle | None
    answers: list[ModelAnswer] = field(default_factory=list)
    """The stored answers of the model, in order."""
    runs: list[Row] = field(default_factory=list)
    """The stored runs, without nested ones, in order."""

    def results(self) -> dict[str, list[FunctionResult]]:
        """The results of the runs by function, in order; those that are not stored have the text NOT_STORED."""
        found: defaultdict[str, list[FunctionResult]] = defaultdict(list)
        for run in self.runs:
            if run["result"] is not None:
                result = result_from_json(orjson.loads(run["result"]))
            elif run["code"] in ("", "ok", "asked"):
                result = FunctionResult(data=NOT_STORED)
            else:
                result = FunctionResult.fail(ErrorCode(run["code"]), NOT_STORED)
            found[run["function"]].append(result)
        return found


def read_records(database: OperatorConnection, chat: str | None, count: int) -> list[Record]:
    """The latest `count` messages of `chat` (None: of all chats), oldest first. Raises ReaderError."""
    found = database.last_outcomes(chat, max(count, _LEAST_ROWS), only_messages=True)
    groups = _groups(found)
    return [_record(database, one, is_group=one.chat in groups) for one in reversed(found[:count])]


def _groups(found: Sequence[Outcome]) -> set[str]:
    """The chats with several senders, or with messages that were not for the bot."""
    senders: defaultdict[str, set[str]] = defaultdict(set)
    for one in found:
        senders[one.chat].add(one.sender)
        if one.turn_id is None and one.reason in ("not_addressed", "unknown_command"):
            senders[one.chat].add("")
    return {chat for chat, seen in senders.items() if len(seen) > 1}


def _record(database: OperatorConnection, found: Outcome, *, is_group: bool) -> Record:
    chat, reason, text = ChatRef.parse(found.chat), ReasonCode(found.reason), _MARKS.sub("", found.text)
    has_turn = found.turn_id is not None and reason is not ReasonCode.NOT_ADDRESSED
    obstacle = Obstacle.QUESTION if found.question_id is not None else _OF_THE_MOMENT.get(reason)
    if obstacle is None and found.change in (None, "deleted"):
        obstacle = Obstacle.NO_TEXT
    context = MessageContext(
        key=MessageKey(chat, found.native_id),
        kind=Kind(found.kind),
        chat=chat,
        is_group=is_group,
        sender=Sender(MemberRef.parse(found.sender), found.sender_name, is_bot=reason is ReasonCode.FROM_BOT),
        text=text,
        sent_at=datetime.fromtimestamp(found.received_ms / 1000, UTC),
        mentions_bot=has_turn and not text.startswith("/"),
        reply_to=Quoted(found.reply_to, found.reply_to_name or "") if found.reply_to else None,
        attachments=(Attachment("", "application/octet-stream"),) if text != found.text else (),
    )
    record = Record(found.id, context, reason, found.detail, has_turn, obstacle)
    if found.turn_id is not None:
        answers = sorted(database.rows(turn_state.of_turn(found.id)), key=itemgetter("round"))
        record.answers = [answer_from_json(orjson.loads(row["body"])) for row in answers]
        # The keys of nested runs have a number after a point.
        record.runs = [row for row in database.rows(ledger.of_turn(found.id)) if "." not in row["key"]]
    return record


def case_of_turn(database: OperatorConnection, settings: Settings, turn_id: int) -> JsonObject:
    """The turn as a case of `rollcall replay`: message, history, stored results and model answers, and the recorded
    calls, reply and reason as expectation. Raises NotRecorded if there is no such turn or its message is not stored,
    and ReaderError."""
    found = database.last_outcomes(None, 1, only_messages=True, id=turn_id)
    if not found:
        raise NotRecorded(f"there is no message with the id {turn_id}")
    chat = found[0].chat
    groups = _groups(database.last_outcomes(chat, _LEAST_ROWS, only_messages=True))
    record = _record(database, found[0], is_group=chat in groups)
    if record.obstacle is not None or not record.has_turn:
        raise NotRecorded(str(record.obstacle or "the bot did not answer it"))
    if any(HIDDEN in run["arguments"] for run in record.runs):
        raise NotRecorded("its arguments are sensitive")
    rows = database.rows(history.recent(chat, turn_id, settings.router.history_messages))[::-1]
    lines = [line_of(row) for row in rows if row["id"] < turn_id]
    said = "\n".join(database.replies(turn_id))
    # The reply contains the result of a command; after calls of a model, its answer follows.
    results = {
        name: said if result.data == NOT_STORED else result.reply or result.data
        for name, found in record.results().items()
        for result in found
    }
    return {
        "id": str(turn_id),
        "message": {
            "text": record.context.text,
            "sender": record.context.sender.name,
            "chat": chat,
            "is_group": record.context.is_group,
            "addressed": record.context.mentions_bot,
        },
        "history": [
            {"role": "assistant", "content": line.text}
            if line.from_bot
            else {"sender": line.sender_name, "text": line.text}
            for line in lines
        ],
        "results": results,
        "model": [_as_response(answer) for answer in record.answers],
        "expect": {
            "calls": [{"name": run["function"], "arguments": orjson.loads(run["arguments"])} for run in record.runs],
            "reply": said,
            "reason": record.reason.value,
        },
    }


def _as_response(answer: ModelAnswer) -> JsonObject:
    """`answer` as a response in OpenAI's format."""
    message: JsonObject = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.raw or orjson.dumps(call.arguments or {}).decode()},
            }
            for call in answer.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.calls else "stop"}
    return {"status": 200, "body": {"id": answer.request_id, "choices": [choice]}}
