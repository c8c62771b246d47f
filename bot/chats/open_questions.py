"""Open questions in memory. The store has the authoritative copy; both are changed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import orjson

from function_calls.context import MessageContext
from function_calls.questions.open_questions import open_from_json, open_to_json
from function_calls.spec import ApprovalQuestion, Question
from function_calls.turn import OpenQuestion
from services.clock import Clock
from services.refs import JsonObject
from services.store.ids import first_id_at
from services.store.port import Row, Store, Write
from services.store.turns import pending

Asked = tuple[OpenQuestion, float]
"""A question and its expiry on the clock's `monotonic()`."""


class QuotedQuestion(NamedTuple):
    """A question, open or not, found by the message that asked it."""

    question: OpenQuestion
    member: str
    """The asked member; for an approval it has no meaning."""
    is_answered: bool


class OpenQuestions:
    """Open questions: at most one per member and chat, and any number of approval questions, which several members may
    answer. If a question of a running function is not answered, it is kept as left over until the function has been
    notified."""

    def __init__(self, clock: Clock, expires_seconds: int, approvals_expire_seconds: int) -> None:
        self._clock = clock
        self.use(expires_seconds, approvals_expire_seconds)
        self._waiting: dict[tuple[str, str], Asked] = {}
        self._approvals: dict[str, dict[int, Asked]] = {}
        self._unanswered: list[OpenQuestion] = []
        self._claimed: set[int] = set()
        """Ids of own questions whose answer is being accepted or used."""

    def use(self, expires_seconds: int, approvals_expire_seconds: int) -> None:
        """Set how long new questions stay open; open ones keep their expiry."""
        self._expires_seconds = expires_seconds
        self._approvals_expire_seconds = approvals_expire_seconds

    @property
    def count(self) -> int:
        """Number of open questions."""
        return len(self._waiting) + sum(len(asked) for asked in self._approvals.values())

    def seconds_for(self, question: Question) -> int:
        """How long `question` stays open if it is asked now, in seconds."""
        is_approval = isinstance(question, ApprovalQuestion)
        return self._approvals_expire_seconds if is_approval else self._expires_seconds

    async def load(self, store: Store, account: str = "") -> None:
        """Load the questions that were open when the daemon stopped, with their remaining time; in a cluster, those in
        the chats of one account (`network:account`). Raises StoreError."""
        for row in await store.read(pending.OPEN_QUESTIONS):
            if row["chat"].startswith(account):
                self._load(row)

    async def sync(self, store: Store, chat: str) -> None:
        """Reload the questions of `chat`, which another process may have changed. Raises StoreError."""
        rows = await store.read(pending.open_in(chat))
        if rows or self.any_waiting:
            self.drop(chat)
            for row in rows:
                if row["id"] not in self._claimed:
                    self._load(row)

    def drop(self, chat: str) -> None:
        """Forget the questions of `chat` in this process."""
        self._approvals.pop(chat, None)
        for place in [place for place in self._waiting if place[0] == chat]:
            del self._waiting[place]

    def _load(self, row: Row) -> None:
        question = open_from_json(row["id"], orjson.loads(row["body"]))
        # A row has no member if a newer question must not close it.
        member = row["member"] if question.asker is None else question.asker.sender.ref.key
        self._keep(row["chat"], member, question, self._seconds_left(row))

    def _seconds_left(self, row: Row) -> float:
        # The wall clock may have been set back since.
        left_ms: int = row["expires_ms"] - max(self._clock.now_ms(), row["asked_ms"])
        return left_ms / 1000

    async def claimed_for(self, store: Store, question: OpenQuestion) -> Asked | None:
        """The own question that a turn of another process has claimed; None for an approval. Raises StoreError."""
        rows = await store.read(pending.find(question.id)) if question.terms is None else []
        return (question, self._clock.monotonic() + self._seconds_left(rows[0])) if rows else None

    def claim_ended(self, question: OpenQuestion | None) -> None:
        """The turn that claimed the question has ended: the store says whether the question is open again."""
        if question is not None:
            self._claimed.discard(question.id)

    def of(self, chat: str, member: str) -> OpenQuestion | None:
        """The question that `member` may answer in `chat`, or None."""
        if not self._waiting:
            return None
        asked = self._waiting.get((chat, member))
        # An expired question stays until `expire` closes it in the store too.
        if asked is None or asked[1] <= self._clock.monotonic():
            return None
        return asked[0]

    @property
    def any_waiting(self) -> bool:
        """Whether any question may be open."""
        return bool(self._waiting or self._approvals)

    def any_in(self, chat: str, member: str) -> bool:
        """Whether `chat` has an open question that `member` may answer."""
        return self.of(chat, member) is not None or bool(self.approvals_in(chat))

    def approvals_in(self, chat: str) -> list[OpenQuestion]:
        """The open approval questions of `chat`, oldest first; empty if there are none."""
        if not self._approvals:
            return []
        now = self._clock.monotonic()
        return [one for one, until in self._approvals.get(chat, {}).values() if until > now]

    def is_waiting_approval(self, id_: int) -> bool:
        """Whether the approval question with that id is open."""
        now = self._clock.monotonic()
        return any(id_ in of_chat and of_chat[id_][1] > now for of_chat in self._approvals.values())

    def asked_for_by(self, chat: str, native_id: str) -> list[int]:
        """Ids of the open approval questions that the message with that id led to."""
        return [
            one.id
            for one, _ in self._approvals.get(chat, {}).values()
            if one.terms is not None and one.terms.asker.key.native_id == native_id
        ]

    def withdraw_writes(self, chat: str, ids: Sequence[int]) -> list[Write]:
        """Writes that withdraw these approval questions; call `withdraw` once they are durable. A question of a waiting
        run becomes left over."""
        of_chat, now_ms = self._approvals.get(chat, {}), self._clock.now_ms()
        return [
            pending.expire_now(id_, now_ms)
            if id_ in of_chat and _has_waiting_run(of_chat[id_][0])
            else pending.withdraw(id_)
            for id_ in ids
        ]

    def withdraw(self, chat: str, ids: Sequence[int]) -> None:
        """Remove these approval questions, which are withdrawn in the store."""
        for id_ in ids:
            asked = self._approvals.get(chat, {}).get(id_)
            self._drop(chat, id_)
            if asked is not None:
                self._add_unanswered(asked[0])

    async def asked_by(self, store: Store, chat: str, native_id: str) -> QuotedQuestion | None:
        """The question asked by the message with that id; None if it asked none. Raises StoreError."""
        # Native ids are posted, so an empty commit makes sure that they can be read.
        await store.commit([])
        rows = await store.read(pending.asked_by_message(chat, native_id))
        if not rows:
            return None
        row = rows[0]
        question = open_from_json(row["id"], orjson.loads(row["body"]))
        member = row["member"] if question.asker is None else question.asker.sender.ref.key
        return QuotedQuestion(question, member, row["state"] == "answered")

    async def messages_of(self, store: Store, ids: Sequence[int]) -> tuple[str, ...]:
        """The known native ids of the messages that asked these questions. Raises StoreError."""
        if not ids:
            return ()
        await store.commit([])
        return tuple([row["native_id"] for id_ in ids for row in await store.read(pending.messages(id_))])

    async def claim(self, store: Store, chat: str, id_: int, turn_id: int, *, allows: bool) -> bool:
        """Durably claim the approval question for that turn; False if another turn was faster or the question is
        closed. Raises StoreError."""
        touched = await store.commit([pending.answer(id_, turn_id, "allowed" if allows else "refused")])
        self._drop(chat, id_)
        return bool(touched[0]) or await self.claimed(store, id_, turn_id)

    async def claimed(self, store: Store, id_: int, turn_id: int) -> bool:
        """Whether that turn answered the approval question. Raises StoreError."""
        rows = await store.read(pending.find(id_))
        return bool(rows) and rows[0]["answered_by"] == turn_id

    async def find(self, store: Store, id_: int) -> OpenQuestion | None:
        """The question with that id, open or not; None if there is no such question. Raises StoreError."""
        rows = await store.read(pending.find(id_))
        return open_from_json(id_, orjson.loads(rows[0]["body"])) if rows else None

    async def allowed(
        self, store: Store, asker: MessageContext, function: str, since: datetime
    ) -> Sequence[JsonObject]:
        """Arguments of the approvals of `function` that were requested by the sender of `asker` in its chat since that
        time, and given. Raises StoreError."""
        rows = await store.read(pending.allowed(asker.chat.key, first_id_at(round(since.timestamp() * 1000))))
        found = [open_from_json(row["id"], orjson.loads(row["body"])) for row in rows]
        return [
            one.question.arguments
            for one in found
            if one.terms is not None
            and one.terms.asker.sender.ref == asker.sender.ref
            and one.question.function == function
        ]

    def claim_own(self, chat: str, member: str) -> Asked | None:
        """Claim and return the member's question, so that no other message answers it; None without an open
        question."""
        claimed = self._waiting.pop((chat, member), None)
        if claimed is not None:
            self._claimed.add(claimed[0].id)
        return claimed

    def reopen(self, chat: str, member: str, claimed: Asked | None) -> None:
        """Reopen a question whose answer was not accepted, unless there is a newer one."""
        if claimed is None:
            return
        self._claimed.discard(claimed[0].id)
        newer = self._waiting.setdefault((chat, member), claimed)
        if newer is not claimed:
            self._add_unanswered(claimed[0])

    def close_write(self, claimed: Asked) -> Write:
        """The write that closes a claimed question without an answer; call `claimed_unanswered` once it is durable."""
        question = claimed[0]
        return (
            pending.expire_now(question.id, self._clock.now_ms())
            if _has_waiting_run(question)
            else pending.withdraw(question.id)
        )

    def claimed_unanswered(self, claimed: Asked) -> None:
        """Mark a claimed question as left over, if a run waits for it."""
        self._add_unanswered(claimed[0])

    def reopen_writes(self, chat: str, member: str, claimed: Asked, turn_id: int) -> list[Write]:
        """Writes that reopen a question whose turn did not use the answer; empty if there is a newer one. Call
        `reopen` once they are durable."""
        if (chat, member) in self._waiting and not _has_waiting_run(claimed[0]):
            return []
        return [pending.reopen(claimed[0].id, turn_id)]

    def ask(self, id_: int, question: OpenQuestion, chat: str, member: str, turn_id: int) -> list[Write]:
        """Writes that store the question, and replace an older one of the member unless it is an approval; call `open`
        once they are durable."""
        now_ms, shared = self._clock.now_ms(), pending.shared_placeholder(id_)
        is_approval = question.terms is not None
        older = None if is_approval else self._waiting.get((chat, member))
        expire_writes = (
            [pending.expire_now(older[0].id, now_ms)] if older is not None and _has_waiting_run(older[0]) else []
        )
        return expire_writes + pending.ask(
            id=id_,
            chat=chat,
            member=shared if is_approval or _has_waiting_run(question) else member,
            replaces=shared if is_approval else member,
            turn_id=turn_id,
            body=orjson.dumps(open_to_json(question), default=str).decode(),
            asked_ms=now_ms,
            expires_ms=now_ms + self.seconds_for(question.question) * 1000,
        )

    def open(self, id_: int, question: OpenQuestion, chat: str, member: str) -> None:
        """Open the stored question for answers."""
        self._keep(chat, member, replace(question, id=id_), self.seconds_for(question.question))

    def expire(self) -> tuple[list[Write], list[OpenQuestion]]:
        """Remove expired questions; returns the writes that do so in the store, and the approval questions among them.
        Questions of waiting runs become left over instead."""
        now = self._clock.monotonic()
        expired = [key for key, (_, until) in self._waiting.items() if until <= now]
        writes: list[Write] = []
        for key in expired:
            question, _ = self._waiting.pop(key)
            if _has_waiting_run(question):
                self._add_unanswered(question)
            else:
                writes.append(pending.expire(question.id))
        late = [
            (chat, question)
            for chat, asked in self._approvals.items()
            for question, until in asked.values()
            if until <= now
        ]
        for chat, question in late:
            self._drop(chat, question.id)
            if _has_waiting_run(question):
                self._add_unanswered(question)
            else:
                writes.append(pending.expire(question.id))
        return writes, [question for _, question in late if not _has_waiting_run(question)]

    async def forget(self, chat: str, member: str) -> None:
        """Drop the questions to the member, whose rows are deleted, in the chat with that key or, without one, in all
        chats."""
        for place in [one for one in self._waiting if one[1] == member and chat in ("", one[0])]:
            del self._waiting[place]
        for where in [one for one in self._approvals if chat in ("", one)]:
            for question, _ in list(self._approvals[where].values()):
                if question.terms is not None and question.terms.asker.sender.ref.key == member:
                    self._drop(where, question.id)

    def take_unanswered(self) -> list[OpenQuestion]:
        """Remove and return the left-over questions. The caller has to notify their runs."""
        unanswered, self._unanswered = self._unanswered, []
        return unanswered

    def retry_unanswered(self, question: OpenQuestion) -> None:
        """Keep `question` as left over, since its run could not be notified now."""
        self._add_unanswered(question)

    def _add_unanswered(self, question: OpenQuestion) -> None:
        if _has_waiting_run(question) and all(known.id != question.id for known in self._unanswered):
            self._unanswered.append(question)

    def _keep(self, chat: str, member: str, question: OpenQuestion, seconds: float) -> None:
        """Keep `question` open for `seconds` from now. It replaces the member's older question, unless it is an
        approval."""
        until = self._clock.monotonic() + seconds
        if question.terms is None:
            older = self._waiting.get((chat, member))
            if older is not None:
                self._add_unanswered(older[0])
            self._waiting[chat, member] = (question, until)
        else:
            self._approvals.setdefault(chat, {})[question.id] = (question, until)

    def _drop(self, chat: str, id_: int) -> None:
        of_chat = self._approvals.get(chat, {})
        of_chat.pop(id_, None)
        if not of_chat:
            self._approvals.pop(chat, None)


def _has_waiting_run(question: OpenQuestion) -> bool:
    """Whether a run waits for the answer and has to be notified if none comes."""
    return question.asker is not None
