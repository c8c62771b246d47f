"""Page of open questions and approvals, reminders, schedules and dead letters."""

from __future__ import annotations

import orjson
from starlette.responses import Response
from starlette.routing import Route

from bot.platforms.http.wire import RequestError
from bot.web.desk.accounts import DeskRole
from bot.web.desk.desk import Desk, Visit
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.questions.open_questions import open_from_json
from function_calls.turn import OpenQuestion
from services.refs import ChatRef
from services.store import listings
from services.store.chats import outcomes
from services.store.chats.desk_accounts import ROLES_IN_CHATS
from services.store.port import Row
from services.store.turns import audit, pending
from services.times.recurrence import instant_text

_MOST = 500


class WaitingPages:
    """The page, and its forms."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        """The page, answers to approvals, and changes of timers and dead letters."""
        return [
            self._desk.get("/waiting", self._page, DeskRole.OPERATOR),
            self._desk.post("/waiting/approvals/{id:int}", self._answer),
            self._desk.post("/waiting/timers/{id:int}", self._remove_timer),
            self._desk.post("/waiting/dead/{id:int}", self._change_dead),
        ]

    async def _page(self, visit: Visit) -> Response:
        store = self._desk.daemon.store
        questions = [(row, _question(row)) for row in await store.read(listings.open_questions(_MOST))]
        return visit.page(
            "waiting.html",
            "waiting",
            questions=questions,
            timers=await store.read(listings.timers(_MOST)),
            dead=await store.read(outcomes.EVERYTHING),
        )

    async def _answer(self, visit: Visit) -> Response:
        """Deliver the press of a button by the operator, so that all checks of an approval apply."""
        rows = await self._desk.daemon.store.read(pending.find(visit.path["id"]))
        question = _question(rows[0]) if rows else None
        label = visit.form.get("answer", "")
        choices = question.question.choices if question is not None and question.terms is not None else ()
        choice = next((each for each in choices if each.label == label), None)
        if question is None or choice is None or rows[0]["state"] != "open":
            raise RequestError(409, "conflict", visit.texts.say("waiting.closed"))
        daemon, account, chat = self._desk.daemon, visit.account, ChatRef.parse(rows[0]["chat"])
        detail = f"{label}: {question.question.function}"
        await daemon.intake.accept(
            MessageContext(
                key=MessageKey(chat, f"desk-{daemon.ids.next()}", Kind.MESSAGE),
                kind=Kind.CHOICE,
                chat=chat,
                is_group=True,
                sender=Sender(account.member, account.name, ROLES_IN_CHATS[account.role]),
                text=choice.value,
                sent_at=self._desk.clock.now(),
                mentions_bot=True,
            ),
            [self._desk.accounts.note(account.actor, "approval answered", detail, chat.key)],
        )
        await daemon.engine.idle()
        return visit.done("waiting", "saved")

    async def _remove_timer(self, visit: Visit) -> Response:
        daemon, actor = self._desk.daemon, visit.account.actor
        timer = await daemon.timetable.of_id(visit.path["id"])
        if timer is None:
            raise RequestError(409, "conflict", visit.texts.say("waiting.closed"))
        await daemon.timetable.remove([timer], by=visit.account.member, call_key=f"desk-{daemon.ids.next()}")
        note = self._desk.accounts.note(actor, "timer removed", f"{timer.kind.value} {timer.number}", timer.chat.key)
        await daemon.store.commit([note])
        return visit.done("waiting", "removed")

    async def _change_dead(self, visit: Visit) -> Response:
        store, do = self._desk.daemon.store, visit.form.get("do", "")
        rows = await store.read(outcomes.of_id(visit.path["id"]))
        if not rows or do not in ("retry", "drop"):
            raise RequestError(409, "conflict", visit.texts.say("waiting.closed"))
        row = rows[0]
        instant = instant_text(self._desk.clock.now())
        writes = outcomes.retry(row, instant) if do == "retry" else [outcomes.drop(row)]
        actor, detail = visit.account.actor, f"{row['kind']} {row['id']}"
        note = self._desk.accounts.note(actor, f"dead letter: {do}", detail, row["chat"])
        await store.commit([*writes, audit.touch(outcomes.COUNTER), note])
        return visit.done("waiting", "saved")


def _question(row: Row) -> OpenQuestion:
    return open_from_json(row["id"], orjson.loads(row["body"]))
