"""An app on lark_oapi, as its documentation describes one. It reports what it sees as JSON lines.

Arguments: URL of the open platform, app id, app secret, encrypt key, verification token, chat id. Ends when its
standard input does. A line on its standard input is a request of the webhook: body and headers as a JSON list.
"""

import asyncio
import io
import json
import os
import sys
import threading
import traceback

import lark_oapi as lark
from lark_oapi.api.im import v1 as im
from lark_oapi.channel.card import new_card
from lark_oapi.core.model import RawRequest
from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse

URL, APP_ID, SECRET, KEY, TOKEN, CHAT = sys.argv[1:]
CLIENT = lark.Client.builder().app_id(APP_ID).app_secret(SECRET).domain(URL).build()
MESSAGES = CLIENT.im.v1.message


def report(what, **facts):
    sys.stdout.write(json.dumps({"what": what, **facts}) + "\n")
    sys.stdout.flush()


def body_of(kind, **fields):
    built = getattr(im, kind).builder()
    for name, value in fields.items():
        built = getattr(built, name)(value)
    return built.build()


def request(kind, body=None, **fields):
    built = getattr(im, kind).builder()
    for name, value in fields.items():
        built = getattr(built, name)(value)
    return (built if body is None else built.request_body(body)).build()


def result(response):
    if not response.success():
        report("error", code=response.code)
    return getattr(response, "data", None)


def shown(handler):
    """The handler, with a traceback of its errors: the SDK hides them."""

    def handle(data):
        try:
            return handler(data)
        except Exception:
            traceback.print_exc()
            raise

    return handle


def send(kind, content, uuid=None):
    body = body_of("CreateMessageRequestBody", receive_id=CHAT, msg_type=kind, content=json.dumps(content), uuid=uuid)
    return result(MESSAGES.create(request("CreateMessageRequest", body, receive_id_type="chat_id")))


def reply(message, kind, content, in_thread):
    body = body_of("ReplyMessageRequestBody", msg_type=kind, content=json.dumps(content), reply_in_thread=in_thread)
    return result(MESSAGES.reply(request("ReplyMessageRequest", body, message_id=message)))


def card(text, *labels):
    built = new_card().config(update_multi=True).markdown(text)
    data = built.build().data
    buttons = [
        {
            "tag": "button",
            "text": {"tag": "plain_text", "content": label},
            "behaviors": [{"type": "callback", "value": {"choice": label}}],
        }
        for label in labels
    ]
    columns = [{"tag": "column", "elements": [one]} for one in buttons]
    data["body"]["elements"] += [{"tag": "column_set", "columns": columns}] if buttons else []
    return data


def post(text):
    return {"zh_cn": {"title": "", "content": [[{"tag": "text", "text": text}]]}}


def write_messages(asked):
    sent = [send("post", post("once"), uuid="the-same").message_id for _ in range(2)]
    report("sent", is_same=sent[0] == sent[1])
    body = body_of("UpdateMessageRequestBody", msg_type="post", content=json.dumps(post("changed")))
    result(MESSAGES.update(request("UpdateMessageRequest", body, message_id=sent[0])))
    answer = reply(asked, "text", {"text": "an answer"}, in_thread=False)
    inside = reply(asked, "text", {"text": "in a thread"}, in_thread=True)
    report("replied", parent=answer.parent_id, thread=inside.thread_id)
    result(MESSAGES.delete(request("DeleteMessageRequest", message_id=answer.message_id)))
    found = result(MESSAGES.get(request("GetMessageRequest", message_id=sent[0]))).items[0]
    report("message", sender=found.sender.sender_type, content=json.loads(found.body.content), chat=found.chat_id)
    return inside.thread_id


def react(asked):
    reactions, emoji = CLIENT.im.v1.message_reaction, im.Emoji.builder().emoji_type("THUMBSUP").build()
    body = body_of("CreateMessageReactionRequestBody", reaction_type=emoji)
    made = result(reactions.create(request("CreateMessageReactionRequest", body, message_id=asked)))
    (found,) = result(reactions.list(request("ListMessageReactionRequest", message_id=asked))).items
    report("reaction", by=found.operator.operator_id, is_same=made.reaction_id == found.reaction_id)
    gone = request("DeleteMessageReactionRequest", message_id=asked, reaction_id=made.reaction_id)
    result(reactions.delete(gone))


def send_files():
    picture = body_of("CreateImageRequestBody", image_type="message", image=io.BytesIO(b"picture"))
    key = result(CLIENT.im.v1.image.create(request("CreateImageRequest", picture))).image_key
    shown = send("image", {"image_key": key}).message_id
    note = body_of("CreateFileRequestBody", file_type="stream", file_name="a.txt", file=io.BytesIO(b"note"))
    file = result(CLIENT.im.v1.file.create(request("CreateFileRequest", note))).file_key
    send("file", {"file_key": file})
    got = CLIENT.im.v1.message_resource.get(
        request("GetMessageResourceRequest", message_id=shown, file_key=key, type="image")
    )
    report("files", content=got.file.read().decode())


def history(kind, container, **more):
    texts, page = [], None
    while True:
        fields = {"container_id_type": kind, "container_id": container, "page_size": 2, **more}
        fields |= {"page_token": page} if page else {}
        found = result(MESSAGES.list(request("ListMessageRequest", **fields)))
        texts += [one.message_id for one in found.items]
        if not found.has_more:
            return len(texts)
        page = found.page_token


def look_around(thread):
    chats, members = CLIENT.im.v1.chat, CLIENT.im.v1.chat_members
    listed = [one.chat_id for one in result(chats.list(request("ListChatRequest", sort_type="ByActiveTimeDesc"))).items]
    found = result(chats.get(request("GetChatRequest", chat_id=CHAT, user_id_type="open_id")))
    inside = result(members.get(request("GetChatMembersRequest", chat_id=CHAT, member_id_type="open_id"))).items
    report("chats", listed=listed, owner=found.owner_id, mode=found.chat_mode, members=[one.name for one in inside])
    counts = history("chat", CHAT, start_time="1"), history("thread", thread, sort_type="ByCreateTimeDesc")
    report("history", counts=counts)
    scopes = CLIENT.application.v6.scope.list(lark.api.application.v6.ListScopeRequest.builder().build())
    report("scopes", names=[one.scope_name for one in scopes.data.scopes if one.grant_status == 1])
    user = lark.api.contact.v3.GetUserRequest.builder().user_id("ou_ann").user_id_type("open_id").build()
    report("user", name=CLIENT.contact.v3.user.get(user).data.user.name)


def fail():
    body = body_of("CreateMessageRequestBody", receive_id="oc_none", msg_type="text", content='{"text": "x"}')
    result(MESSAGES.create(request("CreateMessageRequest", body, receive_id_type="chat_id")))
    result(MESSAGES.delete(request("DeleteMessageRequest", message_id="om_none")))


def leave():
    body = body_of("DeleteChatMembersRequestBody", id_list=[APP_ID])
    fields = {"chat_id": CHAT, "member_id_type": "app_id"}
    result(CLIENT.im.v1.chat_members.delete(request("DeleteChatMembersRequest", body, **fields)))


def received(data):
    message, content = data.event.message, json.loads(data.event.message.content)
    facts = {"kind": message.message_type, "parent": message.parent_id, "thread": message.thread_id}
    report("received", content=content, by=data.event.sender.sender_id.open_id, chat_type=message.chat_type, **facts)
    if content.get("text") == "ask":
        report("asked", id=send("interactive", card("**Sure?**", "Go", "Stay")).message_id)
    if content.get("text") == "do everything":
        thread = write_messages(message.message_id)
        react(message.message_id)
        send_files()
        look_around(thread)
        fail()
        leave()
        report("end")


def pressed(data):
    where, value = data.event.context, data.event.action.value
    body = body_of("PatchMessageRequestBody", content=json.dumps(card(f"Done: {value['choice']}")))
    result(MESSAGES.patch(request("PatchMessageRequest", body, message_id=where.open_message_id)))
    report("pressed", by=data.event.operator.open_id, chat=where.open_chat_id)
    return P2CardActionTriggerResponse({})


def handlers(key, token):
    built = lark.EventDispatcherHandler.builder(key, token)
    built.register_p2_im_message_receive_v1(shown(received))
    built.register_p2_card_action_trigger(shown(pressed))
    built.register_p2_im_message_recalled_v1(lambda one: report("recalled", id=one.event.message_id))
    built.register_p2_im_message_reaction_created_v1(
        lambda one: report("reacted", name=one.event.reaction_type.emoji_type, by=one.event.user_id.open_id)
    )
    built.register_p2_im_message_reaction_deleted_v1(lambda one: report("unreacted", id=one.event.message_id))
    built.register_p2_im_chat_member_bot_added_v1(
        lambda one: report("added", chat=one.event.chat_id, by=one.event.operator_id.open_id)
    )
    built.register_p2_im_chat_member_user_added_v1(lambda one: report("joined", name=one.event.users[0].name))
    built.register_p2_im_chat_member_user_deleted_v1(lambda one: report("left", name=one.event.users[0].name))
    return built.build()


def serve_requests():
    """Handle requests of the webhook, until the standard input ends."""
    webhook = handlers(KEY, TOKEN)
    for line in sys.stdin:
        given = RawRequest()
        given.uri, (body, given.headers) = "/event", json.loads(line)
        given.body = body.encode()
        answer = webhook.do(given)
        report("answered", status=answer.status_code, body=json.loads(answer.content))
    os._exit(0)


class App(lark.ws.Client):
    async def _connect(self):
        await super()._connect()
        report("connected")


threading.Thread(target=serve_requests, daemon=True).start()
asyncio.set_event_loop(asyncio.new_event_loop())
App(APP_ID, SECRET, event_handler=handlers("", ""), domain=URL, log_level=lark.LogLevel.CRITICAL).start()
