"""Sign-up lists of a group: create, join, leave, show, close."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import Choice, FunctionResult, Message
from services.chats.documents import Documents, current_names
from services.chats.members import KnownMember, KnownMembers
from services.chats.signups import (
    MOST_OPEN,
    MOST_PLACES,
    NoSignup,
    NotYourSignup,
    Signup,
    SignupClosed,
    Signups,
    TooManySignups,
)
from services.patterns import lazy_pattern, one_line
from services.refs import ErrorCode, JsonObject, MemberRef, Role

_PLACES = lazy_pattern(
    r"(.*?\S)\s*[,，;；:：]?\s*(?:\b(?:for|with)\s+|限)?(\d{1,5})\s*(?:places?|spots?|seats?|people|个?(?:名额|位子?|人))", 2
)  # 2: re.IGNORECASE
_Number = Annotated[int | None, Field(description="Number of the list; absent: the latest open one", ge=1)]


@tool_function(
    name="signup_create",
    description="Start a sign-up list in this group, which members join or leave; with places, the others wait",
    examples=(
        "start a sign-up list for {title}",
        "make a sign-up for {title} with {places} places",
        "open a sign up list for {title}",
        "let people sign up for {title}",
        "create a sign-up list: {title}",
        "发起报名：{title}",
        "开一个{title}的报名，{places}个名额",
        "组织{title}报名",
    ),
    commands=("signup", "sign-up", "报名"),
    tags=("signup", "plan"),
    scope="group",
    touches="stays_here",
    effect="idempotent",
    ask={"title": "@signup.ask_title"},
    line="title",
)
async def signup_create(
    context: MessageContext,
    title: Annotated[str, Field(description="What it is for, and when", max_length=200, pattern=r"\S")],
    places: Annotated[
        int | None, Field(description="Number of places; absent: unlimited", ge=1, le=MOST_PLACES)
    ] = None,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Create a list with buttons. A line such as `Pizza night, 8 places` is parsed if no places are given."""
    title, me = one_line(title), KnownMember(context.sender.ref, context.sender.name)
    found = _PLACES.fullmatch(title) if places is None else None
    if found is not None and 1 <= int(found[2]) <= MOST_PLACES:
        title, places = found[1], int(found[2])

    def change(state: Signups) -> list[int]:
        return [state.create(title, places, me.ref, documents.now_ms).number]

    try:
        state, (number,) = await documents.change(context.chat, Signups, [me], call.key, change)
    except TooManySignups:
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("signup.too_many", most=MOST_OPEN))
    signup = state.find(int(number))
    board = _board(signup, state.names, call)
    text = f"{board.text}\n{call.say('signup.how_to')}"
    undo = call.undo(f"/signup close {number}")
    return FunctionResult.say(text, data=_data(signup, state.names), choices=(*board.choices, *undo))


@tool_function(
    name="signup_join",
    description="Sign the sender up for a sign-up list of this group",
    examples=(
        "sign me up",
        "put me on the sign-up list",
        "i want to join sign-up {number}",
        "sign me up for list {number}",
        "add me to the sign-up list",
        "我要报名",
        "给我报名",
        "报名加我一个",
    ),
    commands=("signup join", "sign-up join", "报名 参加"),
    tags=("signup", "plan"),
    scope="group",
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
)
async def signup_join(
    context: MessageContext, number: _Number = None, *, documents: Documents, known: KnownMembers, call: Call
) -> FunctionResult:
    """Add the sender at the end of the list."""
    me = context.sender.ref.key

    def change(state: Signups) -> list[int | str]:
        signup = state.find(number)
        signup.join(me)
        return [signup.number]

    return await _changed(context, change, documents, known, call)


@tool_function(
    name="signup_leave",
    description="Take the sender off a sign-up list of this group; the next waiting member gets the place",
    examples=(
        "take me off the sign-up list",
        "remove me from the sign-up",
        "cancel my sign-up",
        "i can't come, take me off list {number}",
        "sign me off list {number}",
        "取消我的报名",
        "我不去了，取消报名",
    ),
    commands=("signup leave", "sign-up leave", "报名 退出"),
    tags=("signup", "plan"),
    scope="group",
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
)
async def signup_leave(
    context: MessageContext, number: _Number = None, *, documents: Documents, known: KnownMembers, call: Call
) -> FunctionResult:
    """Remove the sender, and mention the members who get a place by it."""
    me = context.sender.ref.key

    def change(state: Signups) -> list[int | str]:
        signup = state.find(number)
        return [signup.number, *signup.leave(me)]

    return await _changed(context, change, documents, known, call)


@tool_function(
    name="signup_list",
    description="Show who is on the sign-up lists of this group",
    examples=(
        "show the sign-up list",
        "who has signed up",
        "who is on the sign-up list",
        "how many places are left on the sign-up list",
        "show sign-up {number}",
        "报名名单",
        "谁报名了",
    ),
    commands=("signups", "signup list", "报名 名单"),
    tags=("signup", "plan"),
    scope="group",
    touches="reads_outside",
    effect="read",
)
async def signup_list(
    context: MessageContext, number: _Number = None, *, documents: Documents, known: KnownMembers, call: Call
) -> FunctionResult:
    """Show a list with its buttons; without a number the latest open one, and the titles of the others."""
    state = await documents.read(context.chat, Signups)
    try:
        signup = state.find(number)
    except NoSignup:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("signup.none"))
    names = current_names(state, await known.of(context.chat))
    others = [one for one in state.lists if number is None and one.closed_ms is None and one is not signup]
    board = _board(signup, names, call)
    text = "\n".join([board.text, *(_title(one, call) for one in others)])
    return FunctionResult.say(text, data=_data(signup, names), choices=board.choices)


@tool_function(
    name="signup_close",
    description="Close a sign-up list of this group, or open it again",
    examples=(
        "close the sign-up list",
        "close sign-up {number}",
        "end the sign-up",
        "stop taking sign-ups",
        "no more sign-ups please",
        "结束报名",
        "报名截止",
    ),
    commands=("signup close", "sign-up close", "报名 结束"),
    tags=("signup", "plan"),
    scope="group",
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
)
async def signup_close(
    context: MessageContext,
    number: _Number = None,
    reopen: Annotated[bool, Field(description="Open a closed list again")] = False,
    *,
    documents: Documents,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Close or reopen a list: the member's own, or any for admins and owners."""
    at_ms, is_admin = None if reopen else documents.now_ms, context.sender.role in Role.at_least(Role.ADMIN)

    def change(state: Signups) -> list[int]:
        return [state.close(number, context.sender.ref, at_ms, any_author=is_admin).number]

    here = await known.of(context.chat)
    try:
        state, (closed,) = await documents.change(context.chat, Signups, [], call.key, change)
    except NoSignup:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("signup.none"))
    except NotYourSignup as error:
        author = current_names(await documents.read(context.chat, Signups), here)[error.author]
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("signup.not_yours", author=author))
    signup, names = state.find(int(closed)), current_names(state, here)
    board = _board(signup, names, call)
    undo = () if reopen else call.undo(f"/signup close {closed} reopen=true")
    return FunctionResult.say(
        board.text, data=_data(signup, names), choices=(*board.choices, *undo), update=board
    )


async def _changed(
    context: MessageContext,
    change: Callable[[Signups], Sequence[int | str]],
    documents: Documents,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Join or leave by `change`, which returns the number of the list and the keys of members who get a place by it."""
    me, here = KnownMember(context.sender.ref, context.sender.name), await known.of(context.chat)
    try:
        state, (number, *promoted) = await documents.change(context.chat, Signups, [me], call.key, change)
    except NoSignup:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("signup.none"))
    except SignupClosed:
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("signup.closed_before"))
    signup, names = state.find(int(number)), current_names(state, [*here, me])
    key = "joined" if me.ref.key in signup.taking_part else "waits" if me.ref.key in signup.waiting else "left"
    text = call.say(f"signup.{key}", name=names[me.ref.key], title=signup.title)
    board, undo = _board(signup, names, call), call.undo(f"/signup {'join' if key == 'left' else 'leave'} {number}")
    update = Message(f"{board.text}\n{text}", choices=board.choices)
    messages = [Message(f"{text}\n{board.text}", choices=undo, brief=text, update=update)]
    for member in map(str, promoted):
        # A message of its own, because nobody is notified of a mention in an edited one.
        promotion = call.say("signup.promoted", name=names[member], title=signup.title)
        messages.append(Message(promotion, mentions=(MemberRef.parse(member),)))
    return FunctionResult(True, tuple(messages), _data(signup, names))


def _board(signup: Signup, names: Mapping[str, str], call: Call) -> Message:
    """The list, with buttons while it is open."""
    lines = [_title(signup, call)]
    lines += [f"{place}. {names[member]}" for place, member in enumerate(signup.taking_part, 1)]
    if signup.waiting:
        waiting = ", ".join(names[member] for member in signup.waiting)
        lines.append(call.say("signup.waiting", count=len(signup.waiting), names=waiting))
    commands = {"join": f"/signup join {signup.number}", "leave": f"/signup leave {signup.number}"}
    buttons = [Choice(call.say(f"signup.button.{name}"), command) for name, command in commands.items()]
    return Message("\n".join(lines), choices=tuple(buttons) if signup.closed_ms is None else ())


def _title(signup: Signup, call: Call) -> str:
    key = "closed" if signup.closed_ms is not None else "title" if signup.places is None else "title_places"
    count, places = len(signup.taking_part), signup.places or ""
    return call.say(f"signup.{key}", number=signup.number, title=signup.title, count=count, places=places)


def _data(signup: Signup, names: Mapping[str, str]) -> JsonObject:
    return {
        "number": signup.number,
        "title": signup.title,
        "places": signup.places,
        "open": signup.closed_ms is None,
        "taking_part": [names[member] for member in signup.taking_part],
        "waiting": [names[member] for member in signup.waiting],
    }
