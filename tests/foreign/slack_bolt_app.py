"""An app on slack_bolt and slack_sdk, as their documentation describes one. It reports what it sees as JSON lines.

Arguments: URL of the Web API, bot token, app-level token. Ends when its standard input does.
"""

import asyncio
import json
import logging
import sys

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient


def report(what, **facts):
    sys.stdout.write(json.dumps({"what": what, **facts}) + "\n")
    sys.stdout.flush()


async def call_everything(client, channel, root):
    """Call each method that our adapter uses, and report what the SDK makes of the answers."""
    me = await client.auth_test()
    report("auth", user=me["user_id"], bot=me["bot_id"], team=me["team_id"], scopes=me.headers["x-oauth-scopes"])
    user = (await client.users_info(user="UANN"))["user"]
    report("user", name=user["profile"]["display_name"], zone=user["tz"])
    channels = [
        one["id"]
        async for page in await client.users_conversations(types="public_channel,im")
        for one in page["channels"]
    ]
    members = [
        one async for page in await client.conversations_members(channel=channel, limit=2) for one in page["members"]
    ]
    texts = [
        one["text"]
        async for page in await client.conversations_history(channel=channel, limit=2)
        for one in page["messages"]
    ]
    report("lists", channels=channels, members=members, texts=texts)
    replied = await client.chat_postMessage(channel=channel, thread_ts=root, text="In the thread")
    replies = await client.conversations_replies(channel=channel, ts=root)
    report("replies", texts=[one["text"] for one in replies["messages"]])
    await client.reactions_add(channel=channel, timestamp=replied["ts"], name="+1")
    found = await client.reactions_get(channel=channel, timestamp=replied["ts"], full=True)
    report("reactions", reactions=found["message"]["reactions"])
    await client.reactions_remove(channel=channel, timestamp=replied["ts"], name="+1")
    await client.chat_delete(channel=channel, ts=replied["ts"])
    uploaded = await client.files_upload_v2(
        channel=channel, filename="a.txt", content=b"content", initial_comment="A file"
    )
    report("file", name=(await client.files_info(file=uploaded["file"]["id"]))["file"]["name"])
    opened = await client.conversations_open(users=["UANN"])
    await client.chat_postMessage(channel=opened["channel"]["id"], text="In private")
    for call in (
        client.chat_postMessage(channel="CNONE", text="x"),
        client.chat_update(channel=channel, ts="1.1", text="x"),
        client.users_info(user="UNONE"),
        client.chat_postMessage(
            channel=channel, text="x", blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}]
        ),
    ):
        try:
            await call
        except SlackApiError as error:
            report("error", code=error.response["error"])
    await client.conversations_leave(channel=channel)
    report("end")


def answer_questions(app):
    """Ask with a button, and update the message when it is pressed."""

    @app.message("ask")
    async def ask(message, say):
        button = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}, "value": "gone"}
        text = {"type": "section", "text": {"type": "mrkdwn", "text": f"*Sure* <@{message['user']}>?"}}
        sent = await say(text="Sure?", blocks=[text, {"type": "actions", "elements": [button]}])
        report("said", ts=sent["ts"], heard=message["text"], channel_type=message["channel_type"])

    @app.action("go")
    async def go(ack, body, action, client):
        await ack()
        channel, ts = body["channel"]["id"], body["container"]["message_ts"]
        await client.chat_update(channel=channel, ts=ts, text=f"Done: {action['value']}", blocks=[])
        report("updated", by=body["user"]["id"])


def report_events(app):
    """Report each other kind of event that our adapter handles."""

    @app.event("app_mention")
    async def mentioned(event):
        report("mentioned", text=event["text"])

    @app.event({"type": "message", "subtype": "message_changed"})
    async def changed(event):
        report("changed", text=event["message"]["text"])

    @app.event({"type": "message", "subtype": "message_deleted"})
    async def deleted(event):
        report("deleted", ts=event["deleted_ts"])

    @app.event({"type": "message", "subtype": "file_share"})
    async def shared(event):
        report("shared", files=[one["name"] for one in event["files"]])

    @app.event("reaction_added")
    async def reacted(event):
        report("reacted", name=event["reaction"])

    @app.event("member_joined_channel")
    async def joined(event):
        report("joined", user=event["user"])

    @app.event("member_left_channel")
    async def left(event):
        report("left", user=event["user"])

    @app.message("call everything")
    async def call(message, client):
        await call_everything(client, message["channel"], message["ts"])

    @app.event("message")
    async def other(event):
        pass


async def main(url, bot_token, app_token):
    client = AsyncWebClient(bot_token, base_url=url)
    client.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=1))
    app = AsyncApp(client=client, logger=logging.getLogger("app"))
    answer_questions(app)
    report_events(app)
    handler = AsyncSocketModeHandler(app, app_token, ping_interval=1)
    await handler.connect_async()
    report("connected")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await handler.close_async()


asyncio.run(main(*sys.argv[1:]))
