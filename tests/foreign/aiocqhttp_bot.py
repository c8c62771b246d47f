"""A bot with aiocqhttp that listens on a port. Prints each event, and the results of its calls on the message "call",
as JSON lines. Arguments: port, token."""

import json
import sys
from typing import Any

from aiocqhttp import ActionFailed, CQHttp, Event, Message, MessageSegment

PORT, TOKEN = int(sys.argv[1]), sys.argv[2]
PIXEL = "base64://iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
bot = CQHttp(access_token=TOKEN, api_timeout_sec=10, message_class=Message)


def note(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201 - the output of this program


@bot.on_message
async def on_message(event: Event) -> None:
    segments = [[one.type, one.data] for one in event.message]
    note(event=event.name, user=event.user_id, segments=segments, text=event.message.extract_plain_text())
    if event.message.extract_plain_text().strip() == "call":
        await call(event)


@bot.on_notice
@bot.on_request
@bot.on_meta_event
async def on_other(event: Event) -> None:
    note(event=event.name, user=event.user_id, operator=event.operator_id)


async def call(event: Event) -> None:
    message = MessageSegment.reply(event.message_id) + MessageSegment.at(event.user_id)
    message += MessageSegment.text(" [CQ:at,qq=all] & more")
    message.append(MessageSegment.image(PIXEL))
    sent = await bot.send(event, message)
    private = await bot.send_private_msg(user_id=event.user_id, message="in private")
    as_codes = await bot.send_group_msg(group_id=event.group_id, message=f"[CQ:at,qq={event.user_id}] in codes")
    found = await bot.get_msg(message_id=sent["message_id"])
    member = await bot.get_group_member_info(group_id=event.group_id, user_id=event.user_id, no_cache=True)
    members = await bot.get_group_member_list(group_id=event.group_id)
    history = await bot.call_action("get_group_msg_history", group_id=event.group_id, count=2)
    await bot.call_action("set_msg_emoji_like", message_id=event.message_id, emoji_id="128077", set=True)
    await bot.delete_msg(message_id=as_codes["message_id"])
    try:
        await bot.send_group_msg(group_id=1, message="nowhere")
    except ActionFailed as failed:
        note(failed=failed.retcode)
    try:
        await bot.call_action("no_such_action")
    except ActionFailed as failed:
        note(failed=failed.retcode)
    note(
        login=await bot.get_login_info(),
        groups=await bot.get_group_list(),
        friends=await bot.get_friend_list(),
        status=await bot.get_status(),
        version=await bot.get_version_info(),
        sent=sent,
        private=private,
        found=found["sender"],
        member=member,
        members=len(members),
        history=len(history["messages"]),
    )


bot.run(host="127.0.0.1", port=PORT, debug=False)
