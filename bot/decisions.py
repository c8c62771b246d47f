"""What became of questions for a person's yes that wait no longer, for those who answer them too late."""

from __future__ import annotations

from dataclasses import replace

import orjson

from bot.approval_answers import quoted_id
from bot.chats import Chats
from bot.gate import Verdict
from bot.open_questions import OpenQuestions
from function_calls.answers import codes_in
from function_calls.approval_terms import ApprovalTerms, Became
from function_calls.approvals import too_late
from function_calls.context import MessageContext
from function_calls.open_question import OpenQuestion
from function_calls.questions import open_from_json
from services.store import pending
from services.store.port import Row, Store

_KNOWN = frozenset({"allowed", "refused", "expired", "withdrawn"})
_BY_CODE, _BY_MESSAGE = "approvals.no_such_code", "approvals.closed"


class Decisions:
    """Reads them from the store."""

    def __init__(self, store: Store, questions: OpenQuestions, chats: Chats) -> None:
        self._store = store
        self._questions = questions
        self._chats = chats

    async def of(self, id_: int) -> Became:
        """What became of that question. Raises StoreError."""
        rows = await self._store.read(pending.became(id_))
        return self._became(rows[0]) if rows else Became()

    async def told(self, context: MessageContext, verdict: Verdict) -> Verdict:
        """`verdict` on an answer that comes too late, with who decided and how in place of that it is so. Raises
        StoreError."""
        if verdict.told == _BY_CODE:
            row, question = await self._with_a_code_of(context)
        elif verdict.told == _BY_MESSAGE:
            row, question = await self._asked_by_the_quoted(context)
        else:
            return verdict
        if row is None or question is None:
            return verdict
        texts = self._chats.profile(context.chat).texts
        said = too_late(self._became(row), question.question.function, texts)
        closes = verdict.closes or await self._questions.messages_of(self._store, [question.id])
        return replace(verdict, says=said, closes=closes)

    async def _with_a_code_of(self, context: MessageContext) -> tuple[Row | None, OpenQuestion | None]:
        """The newest question whose code the message names and that its sender was shown."""
        for code in codes_in(context.text):
            if not code.isalnum():
                continue
            for row in await self._store.read(pending.became_with(context.chat.key, f'"code":"{code}"')):
                question = open_from_json(row["id"], orjson.loads(row["body"]))
                terms = question.question.terms
                if terms is not None and terms.code == code and _was_shown(terms, context):
                    return row, question
        return None, None

    async def _asked_by_the_quoted(self, context: MessageContext) -> tuple[Row | None, OpenQuestion | None]:
        pointed = await self._questions.asked_by(self._store, context.chat.key, quoted_id(context))
        rows = await self._store.read(pending.became(pointed.question.id)) if pointed is not None else ()
        return (rows[0], pointed.question) if rows and pointed is not None else (None, None)

    def _became(self, row: Row) -> Became:
        how = row["state"]
        if how == "open" and not self._questions.is_waiting_approval(row["id"]):
            how = "expired"
        return Became(how, row["sender_name"] or "") if how in _KNOWN else Became()


def _was_shown(terms: ApprovalTerms, context: MessageContext) -> bool:
    """What waits in private is not spoken of to anybody else."""
    return not terms.asker.private or (context.private and terms.asker.sender.ref == context.sender.ref)
