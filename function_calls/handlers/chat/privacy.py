"""A member's own data: delete and export it, and stop or resume the recording of the member's messages."""

from __future__ import annotations

import base64
from functools import partial

import orjson

from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult, Message
from services.chats.privacy import MemberData
from services.refs import ChatRef

_FILE = "rollcall-data.json"
# Not offered to models: an erasure and a mark are the member's own decision, in the member's own command.
_own_command = partial(tool_function, tags=("memory", "this_chat"), offered_to=["command"], effect="idempotent")


@_own_command(
    description="Delete everything that is stored about the sender: in a group what belongs to it, in private all.",
    commands=("forget me", "忘记我"),
    confirm="@privacy.confirm",
)
async def forget_me(context: MessageContext, *, data: MemberData, call: Call) -> FunctionResult:
    """Erase the member's rows; report their numbers, and what remains and for how long."""
    here = _scope(context)
    counts = await data.erase(context.sender.ref, here, _turn_of(call))
    where, days = "here" if here else "everywhere", data.days_in_backups
    rows = call.say("privacy.and").join(call.say(f"privacy.rows.{kind}", count=count) for kind, count in counts.items())
    kept, until = data.settings.days_kept, "privacy.remains.backups" if days else "privacy.remains.operators_backups"
    lines = [
        call.say(f"privacy.forgotten.{where}", rows=rows) if rows else call.say(f"privacy.nothing.{where}"),
        *([call.say("privacy.only_here")] if here else []),
        call.say("privacy.remains.head"),
        call.say(until, days=days, count=data.settings.backups_kept),
        call.say("privacy.remains.others", days=kept),
    ]
    return FunctionResult.say("\n".join(lines), data=dict(counts))


@_own_command(
    description="Send the sender a file with everything that is stored about them: in a group what belongs to it.",
    commands=("export me", "导出我的数据"),
    touches="reads_private",
    effect="read",
)
async def export_me(context: MessageContext, *, data: MemberData, call: Call) -> FunctionResult:
    """Send the member's own rows as JSON, privately."""
    here = _scope(context)
    tables = await data.export(context.sender.ref, here, _turn_of(call))
    facts = {"member": context.sender.ref.key, "chat": here.key if here else "all", "at": call.now, "tables": tables}
    content = orjson.dumps(facts, option=orjson.OPT_INDENT_2)
    url = f"data:application/json;base64,{base64.b64encode(content).decode()}"
    file = Attachment(_FILE, "application/json", url, len(content))
    count = sum(map(len, tables.values()))
    text = call.say("privacy.exported.here" if here else "privacy.exported.everywhere", count=count)
    sent = Message(text, to=context.sender.ref if here else None, attachments=(file,))
    is_public = here is not None and not context.private
    return FunctionResult(messages=(sent, *([Message(call.say("privacy.exported.sent"))] if is_public else [])))


@_own_command(
    description="Do not record the sender's messages any more, in this group or, from a private chat, in all chats.",
    commands=("optout", "不记录我"),
)
async def opt_out(context: MessageContext, *, data: MemberData, call: Call) -> FunctionResult:
    """Mark the member, and delete the recorded messages."""
    here = _scope(context)
    counts = await data.erase(context.sender.ref, here, _turn_of(call), opts_out=True)
    key = "privacy.opted_out.here" if here else "privacy.opted_out.everywhere"
    return FunctionResult.say(call.say(key, count=counts.get("messages", 0)))


@_own_command(
    description="Record the sender's messages again, in this group or, from a private chat, in all chats.",
    commands=("optin", "恢复记录"),
)
async def opt_in(context: MessageContext, *, data: MemberData, call: Call) -> FunctionResult:
    """Delete the member's mark. A mark for all chats is deleted in a private chat only."""
    here = _scope(context)
    is_still_out = await data.opt_in(context.sender.ref, here)
    key = "still_out" if is_still_out else f"opted_in.{'here' if here else 'everywhere'}"
    return FunctionResult.say(call.say(f"privacy.{key}"))


def _scope(context: MessageContext) -> ChatRef | None:
    """The group, or None for all chats in a private chat."""
    return context.chat if context.is_group else None


def _turn_of(call: Call) -> int:
    """The running turn: keys of calls begin with it."""
    return int(call.key.partition(":")[0])
