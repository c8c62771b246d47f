"""Changes of documents by handlers, and the decorator of functions that make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.chats.documents import Documents, State
from services.chats.members import KnownMember

changes_document = partial(tool_function, effect="idempotent", touches=("reads_outside", "stays_here"))
reads_document = partial(tool_function, effect="read", touches="reads_outside")


async def changed(
    context: MessageContext,
    kind: type[State],
    change: Callable[[State, int], Sequence[str | int]],
    documents: Documents,
    call: Call,
) -> tuple[State, Sequence[str | int]]:
    """As `Documents.change`, for the sender."""
    me = KnownMember(context.sender.ref, context.sender.name)
    return await documents.change(context.chat, kind, change, by=me, call_key=call.key)
