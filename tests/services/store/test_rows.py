"""Frequent writes pass their values by position: each value has to be in its column."""

from __future__ import annotations

import pytest

from services.store.chats import history
from services.store.port import Write
from services.store.turns import inbox, ledger, outbox

EVENT = inbox.Event(key="k", chat="c", native_id="n", sender="s", sender_name="S", kind="message")
ENDED = {"turn_id": None, "question_id": None, "ended_ms": 5, "epoch": 0, "attempts": 0}
KNOWN = {"id": 1, **EVENT._asdict(), "body": "", "received_ms": 5, "detail": "", **ENDED}
TURN = {**KNOWN, "body": "{}", "reason": "waiting", "turn_id": 1, "ended_ms": None, "epoch": 9}
RUN = {"chat": "c", "member": "m", "function": "f", "arguments": "{}", "effect": "once", "path": "command", "at_ms": 5}
SAID = {"id": 2, "chat": "c", "sender_name": "Bot", "text": "t", "at_ms": 5, "asked_by": "s", "answers": 1}
PUT = {"id": 3, "key": "k", "turn_id": 1, "history_id": 2, "chat": "c", "body": "{}", "epoch": 9, "at_ms": 5}
UNSENT = {"attempts": 0, "native_id": None, "problem": ""}
UNKNOWN = {"code": "", "ended_ms": None, "result": None}


def begun(**more: object) -> Write:
    return ledger.started(key="k", turn_id=1, round_number=4, taint="web", **RUN, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (inbox.accept(1, EVENT, body="{}", received_ms=5, epoch=9), TURN),
        (inbox.accept(1, EVENT, body="{}", received_ms=5, epoch=9, question_id=7), {**TURN, "question_id": 7}),
        (
            inbox.note(1, EVENT, received_ms=5, reason="from_bot", detail="why"),
            {**KNOWN, "reason": "from_bot", "detail": "why"},
        ),
        (inbox.end(1, "command", "f", 5), {"row_id": 1, "new_reason": "command", "new_detail": "f", "at_ms": 5}),
        (
            history.add_member_message(id=1, text="t", at_ms=5, reply_to=None, reply_to_name=""),
            {"id": 1, "text": "t", "at_ms": 5},
        ),
        (
            history.add_member_message(id=1, text="t", at_ms=5, reply_to="r", reply_to_name="R"),
            {"id": 1, "text": "t", "at_ms": 5, "reply_to": "r", "reply_to_name": "R"},
        ),
        (history.add_bot_message(**SAID, reply_to=None), {**SAID, "sender": "", "reply_to": None}),
        (
            history.add_bot_message(**SAID, reply_to="r", outside=True),
            {**SAID, "sender": history.OUTSIDE, "reply_to": "r"},
        ),
        (history.sent(2, "n"), {"row_id": 2, "new_native_id": "n"}),
        (begun(), {"turn_id": 1, "key": "k", **RUN, "round": 4, "taint": "web", **UNKNOWN}),
        (
            begun(code="ok", ended_ms=6),
            {"turn_id": 1, "key": "k", **RUN, "round": 4, "taint": "web", **UNKNOWN, "code": "ok", "ended_ms": 6},
        ),
        (
            ledger.result(1, "k", "ok", "{}", 6, "web"),
            {
                "of_turn": 1,
                "row_key": "k",
                "end_ms": 6,
                "new_code": "ok",
                "new_result": "{}",
                "new_taint": "web",
            },
        ),
        (outbox.put(**PUT, state="sending"), {**PUT, "state": "sending", **UNSENT}),
        (outbox.sent(3, "n"), {"row_id": 3, "new_native_id": "n"}),
    ],
    ids=lambda value: value.statement.name if isinstance(value, Write) else "",
)
def test_each_value_of_a_row_stands_under_its_name(write: Write, expected: dict[str, object]) -> None:
    assert dict(zip(write.statement.takes, write.values, strict=True)) == expected
