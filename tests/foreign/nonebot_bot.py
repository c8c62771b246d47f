"""A bot with nonebot that connects to an implementation. Prints each event, and the results of its calls on the message
"call", as JSON lines. Arguments: URL, token."""

import json
import sys
from typing import Any

import nonebot
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    Adapter,
    Bot,
    Event,
    GroupMessageEvent,
    GroupRequestEvent,
    Message,
    MessageEvent,
    MessageSegment,
)
from nonebot.log import logger
from nonebot.message import event_preprocessor

logger.remove()
nonebot.init(driver="~aiohttp", onebot_ws_urls=[sys.argv[1]], onebot_access_token=sys.argv[2])
nonebot.get_driver().register_adapter(Adapter)


def note(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201 - the output of this program


@event_preprocessor
async def on_event(bot: Bot, event: Event) -> None:
    facts: dict[str, Any] = {"event": type(event).__name__, "name": event.get_event_name()}
    if isinstance(event, MessageEvent):
        segments = [[one.type, one.data] for one in event.message]
        facts |= {"text": event.get_plaintext(), "to_me": event.to_me, "segments": segments}
        facts["reply"] = event.reply.sender.nickname if event.reply else None
    note(**facts)
    if isinstance(event, GroupMessageEvent) and event.get_plaintext().strip() == "call":
        await call(bot, event)
    if isinstance(event, GroupRequestEvent):
        await event.approve(bot)
        note(groups=[one["group_id"] for one in await bot.get_group_list()])


async def call(bot: Bot, event: GroupMessageEvent) -> None:
    sent = await bot.send(event, MessageSegment.at(event.user_id) + " [CQ:at,qq=all]", reply_message=True)
    private = await bot.send_private_msg(user_id=event.user_id, message=Message([MessageSegment.text("hi")]))
    member = await bot.get_group_member_info(group_id=event.group_id, user_id=event.user_id)
    history = await bot.call_api("get_group_msg_history", group_id=event.group_id, count=2)
    await bot.delete_msg(message_id=private["message_id"])
    try:
        await bot.send_group_msg(group_id=1, message="nowhere")
    except ActionFailed as failed:
        note(failed=failed.info["retcode"])
    await bot.set_group_leave(group_id=event.group_id)
    note(sent=sent, member=member["role"], history=len(history["messages"]), login=await bot.get_login_info())


nonebot.run()
