"""Sign-up lists of a group: create, join, leave, show, close."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.handlers.group.document_changes import changed, changes_document, reads_document
from function_calls.spec import Choice, FunctionResult, Message
from services.chats.documents import Documents
from services.chats.signups import MOST_PLACES, Signup, Signups
from services.patterns import lazy_pattern, one_line
from services.refs import MemberRef, RequestProblem, Role

_changes = partial(changes_document, tags=("signup", "plan"), scope="group")
_reads = partial(reads_document, tags=("signup", "plan"), scope="group")
_PLACES = lazy_pattern(
    r"(.*?\S)\s*[,，;；:：]?\s*(?:\b(?:for|with)\s+|限)?(\d{1,5})\s*(?:(?:place|spot|seat)s?|people|个?(?:名额|位子?|人))",
    re.IGNORECASE,
)
_Number = Annotated[int | None, Field(description="Number of the list; absent: the latest open one", ge=1)]
_Places = Annotated[int | None, Field(description="Number of places; absent: unlimited", ge=1, le=MOST_PLACES)]


@_changes(
    examples=(
        "start a sign-up list for {title}",
        "make a sign-up for {title} with {places} places",
        "open a sign up list for {title}",
        "let people sign up for {title}",
        "create a sign-up list: {title}",
        "发起报名：{title}",
        "组织{title}报名",
    ),
    commands=("signup", "报名"),
    ask={"title": "@signup.ask_title"},
    line="title",
)
async def signup_create(
    context: MessageContext,
    title: Annotated[str, Field(description="What it is for, and when", max_length=200, pattern=r"\S")],
    places: _Places = None,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Start a sign-up list in this group, which members join or leave; beyond the number of places, they wait."""
    title, author = one_line(title), context.sender.ref.key
    found = _PLACES.fullmatch(title) if places is None else None
    if found is not None and 1 <= int(found[2]) <= MOST_PLACES:
        title, places = found[1], int(found[2])
    state, (number,) = await changed(
        context, Signups, lambda state, now_ms: [state.create(title, places, author, now_ms)], documents, call
    )
    board = _board(state.find(number), state, call)
    text, undo = f"{board.text}\n{call.say('signup.how_to')}", call.undo(f"/signup close {number}")
    return FunctionResult.say(text, data={"number": number}, choices=(*board.choices, *undo))


@_changes(
    examples=(
        "sign me up",
        "put me on the sign-up list",
        "i want to join sign-up {number}",
        "sign me up for list {number}",
        "add me to the sign-up list",
        "我要报名",
        "给我报名",
    ),
    commands=("signup join", "报名 参加"),
)
async def signup_join(
    context: MessageContext, number: _Number = None, *, documents: Documents, call: Call
) -> FunctionResult:
    """Sign the sender up for a sign-up list of this group."""
    return await _moved(context, number, documents, call, joins=True)


@_changes(
    examples=(
        "take me off the sign-up list",
        "remove me from the sign-up",
        "cancel my sign-up",
        "i can't come, take me off list {number}",
        "sign me off list {number}",
        "取消我的报名",
        "我不去了，取消报名",
    ),
    commands=("signup leave", "报名 退出"),
)
async def signup_leave(
    context: MessageContext, number: _Number = None, *, documents: Documents, call: Call
) -> FunctionResult:
    """Take the sender off a sign-up list of this group; the next waiting member gets the place."""
    return await _moved(context, number, documents, call, joins=False)


@_reads(
    examples=(
        "show the sign-up list",
        "who has signed up",
        "who is on the sign-up list",
        "how many places are left on the sign-up list",
        "show sign-up {number}",
        "报名名单",
        "谁报名了",
    ),
    commands=("signups", "报名 名单"),
)
async def signup_list(
    context: MessageContext, number: _Number = None, *, documents: Documents, call: Call
) -> FunctionResult:
    """Show who is on a sign-up list of this group, and the titles of the other open lists."""
    state = await documents.read(context.chat, Signups)
    shown = state.find(number)
    board = _board(shown, state, call)
    others = [_title(one, call) for one in state.lists if one.closed_ms is None and one is not shown]
    return FunctionResult.say("\n".join([board.text, *others]), choices=board.choices)


@_changes(
    examples=(
        "close the sign-up list",
        "close sign-up {number}",
        "end the sign-up",
        "stop taking sign-ups",
        "no more sign-ups please",
        "结束报名",
        "报名截止",
    ),
    commands=("signup close", "报名 结束"),
)
async def signup_close(
    context: MessageContext,
    number: _Number = None,
    reopen: Annotated[bool, Field(description="Open a closed list again")] = False,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Close a sign-up list of this group: the sender's own, or any for admins."""

    def change(state: Signups, now_ms: int) -> list[int]:
        signup = state.find(number)
        if signup.author != context.sender.ref.key and context.sender.role not in Role.at_least(Role.ADMIN):
            raise RequestProblem("signup.not_yours", author=state.names[signup.author])
        signup.closed_ms = None if reopen else signup.closed_ms or now_ms
        return [signup.number]

    state, (closed,) = await changed(context, Signups, change, documents, call)
    board = _board(state.find(closed), state, call)
    undo = () if reopen else call.undo(f"/signup close {closed} reopen=true")
    return FunctionResult.say(board.text, data={"number": closed}, choices=(*board.choices, *undo), update=board)


async def _moved(
    context: MessageContext, number: int | None, documents: Documents, call: Call, *, joins: bool
) -> FunctionResult:
    """Result of joining or leaving, with a message to each member who gets a place."""
    me = context.sender.ref.key

    def change(state: Signups, _: int) -> list[str | int]:
        signup = state.find(number)
        return [signup.number, *signup.change(me, joins=joins)]

    state, (found, *promoted) = await changed(context, Signups, change, documents, call)
    signup, names = state.find(found), state.names
    key = "joined" if me in signup.taking_part else "waits" if me in signup.waiting else "left"
    text, board = call.say(f"signup.{key}", name=names[me], title=signup.title), _board(signup, state, call)
    undo = call.undo(f"/signup {'leave' if joins else 'join'} {found}")
    update = Message(f"{board.text}\n{text}", choices=board.choices)
    messages = [Message(f"{text}\n{board.text}", brief=text, choices=undo, update=update)]
    for member in map(str, promoted):
        # A message of its own: a mention in an edited message notifies nobody, and a private reply only the sender.
        text = call.say("signup.promoted", name=names[member], title=signup.title)
        to = context.chat if context.private else None
        messages.append(Message(text, to=to, mentions=(MemberRef.parse(member),)))
    return FunctionResult(True, tuple(messages), {"number": found, "is": key})


def _board(signup: Signup, state: Signups, call: Call) -> Message:
    """The list, with buttons while it is open."""
    lines = [_title(signup, call)]
    lines += [f"{place}. {state.names[member]}" for place, member in enumerate(signup.taking_part, 1)]
    if signup.waiting:
        names = ", ".join(state.names[member] for member in signup.waiting)
        lines.append(call.say("signup.waiting", count=len(signup.waiting), names=names))
    buttons = [
        Choice(call.say(f"signup.button.{what}"), f"/signup {what} {signup.number}") for what in ("join", "leave")
    ]
    return Message("\n".join(lines), choices=tuple(buttons) if signup.closed_ms is None else ())


def _title(signup: Signup, call: Call) -> str:
    key = "closed" if signup.closed_ms is not None else "title_places" if signup.places else "title"
    count, places = len(signup.taking_part), signup.places
    return call.say(f"signup.{key}", number=signup.number, title=signup.title, count=count, places=places)
