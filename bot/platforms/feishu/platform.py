"""The ChatPlatform on Feishu and Lark."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import orjson

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed, thread_of
from bot.platforms.connection import CannotConnect, ConnectedPlatform, alongside, probing
from bot.platforms.feishu.adapter import FeishuSettings
from bot.platforms.feishu.api import ApiError, FeishuApi, Frame, Json, ping
from bot.platforms.feishu.messages import ADDED, EMOJI, MESSAGE, PRESS, Reader, as_event, body_of, without_buttons
from bot.platforms.web_api import frames_of, read_body, unless
from function_calls.context import Attachment
from services.clock import Clock
from services.extras import missing_extra
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role
from services.store.port import StoreError
from services.web.content import data_in

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

SCOPES = ("im:chat", "im:message", "im:message.group_msg", "im:message.p2p_msg:readonly", "im:resource")
"""Scopes that the app needs; names in private chats also need `contact:user.base:readonly`."""
_SILENCE_SECONDS, _CHECK_SECONDS, _STALE_SECONDS = 180.0, 60.0, 300.0
_LOOKUP_SECONDS = 1.5
"""Feishu repeats an event that is not acknowledged after three seconds."""
_REQUEST_BYTES, _MOST_PARTS = 1_000_000, 1000
_DAY_MS, _LONGEST_GAP_DAYS, _MOST_CHATS = 86_400_000, 7, 200
_GONE = ("230011", "230110", "231003")
"""The message was recalled or deleted, or never existed."""
_NO_CHAT = ("230002", "230006", "230013", "230027", "232006", "232009", "232011", "99991672")
"""The bot cannot write there at all: it is not in the chat, or the chat or a scope is missing."""
_IMAGES, _IMAGE_BYTES = ("image/jpeg", "image/png", "image/webp", "image/gif"), 10_000_000


class FeishuPlatform(ConnectedPlatform):
    """One app on Feishu or Lark."""

    name = "feishu"
    limits = Limits(
        text_chars=4000,
        sends_are_idempotent=True,  # for an hour
        sends_per_minute=120,
        choices=True,
        attachments=True,
        markdown=True,
        catches_up=True,
        edit_seconds=14 * 86_400,  # of a card
        file_bytes=30_000_000,
    )

    def __init__(self, settings: FeishuSettings, host: Host) -> None:
        """Raises CannotOpen."""
        if settings.events == "webhook" and not host.public_url.startswith("https://"):
            raise CannotOpen("events: webhook needs platforms.web.public_url with https://")
        if settings.events == "webhook" and find_spec("cryptography") is None:
            raise CannotOpen(missing_extra("feishu", "cryptography"))
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self._settings = settings
        self._api = FeishuApi(settings, host.clock)
        self._reader = Reader(settings.account, settings.app_id, self._hear, host.names[0])
        self._latest = 0
        """Time of the latest accepted message, in milliseconds, as in the cursor."""
        self._partial = Recent[str, dict[int, bytes]]()
        """Fragments of events, by message id and number."""
        self._read_at: dict[str, float] = {}
        """When names and roles of a chat are read again."""
        self._deliver: Deliver | None = None
        self._taking = asyncio.Lock()
        self.close = self._api.close

    # Receiving

    async def _connected(self, deliver: Deliver) -> None:
        try:
            await self._check()
            await self._fill_gap(deliver)
            if self._settings.events == "websocket":
                await self._listen(deliver)
            self._deliver = deliver
            self._connection.up()
            while True:
                await self._clock.sleep(_CHECK_SECONDS)
                await self._check()
        finally:
            self._deliver = None

    async def _check(self) -> None:
        """Read the bot's own id. Raises SendFailed."""
        self._reader.me = (await self._api.call("GET", "bot/v3/info"))["bot"]["open_id"]
        self._connection.heard()

    async def _listen(self, deliver: Deliver) -> None:
        """Accept the events of a long connection, in order. Raises what ends it."""
        socket, service, seconds = await self._api.link()
        async with socket, alongside(self._repeat(lambda: socket.send_bytes(ping(service)), seconds)):
            self._connection.up()
            async for data in frames_of(socket, self._connection.heard):
                if isinstance(data, bytes) and (answer := await self._take_frame(deliver, data)):
                    await socket.send_bytes(answer)
        raise CannotConnect("Feishu closed the long connection")

    async def _take_frame(self, deliver: Deliver, data: bytes) -> bytes:
        """Accept the event that a frame completes; returns the answer, empty if there is none. Raises StoreError."""
        frame, event = None, {"unreadable": repr(data)}
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            frame = Frame(data)
            payload = self._joined(frame) if frame.is_event else b""
            if not payload:
                return b""
            event = dict(orjson.loads(payload))
        answer = {"data": b64encode(b"{}").decode()} if await self._take(deliver, event) == PRESS else {}
        return frame.answered({"code": 200, **answer}) if frame else b""

    def _joined(self, frame: Frame) -> bytes:
        """The payload, joined with the event's other fragments; empty while some are missing."""
        total, number = int(frame.headers.get("sum", 1)), int(frame.headers.get("seq", 0))
        if not 0 <= number < max(total, 1) <= _MOST_PARTS:
            raise ValueError("not a fragment")
        parts = self._partial.pop(frame.headers["message_id"], {}) | {number: frame.payload}
        if len(parts) >= total:
            return b"".join(parts[one] for one in sorted(parts))
        self._partial[frame.headers["message_id"]] = parts
        return b""

    def routes(self) -> Sequence[BaseRoute]:
        from starlette.routing import Route

        return [Route("/event", self._receive, methods=["POST"])] if self._settings.events == "webhook" else []

    async def _receive(self, request: Request) -> Response:
        """Accept an event that Feishu has encrypted and signed. Its test of the URL is only encrypted."""
        from starlette.responses import JSONResponse

        if (body := await read_body(request, _REQUEST_BYTES)) is None:
            return JSONResponse({}, 413)
        try:
            event = self._decrypted(body, request.headers)
        except (ValueError, LookupError, TypeError, AttributeError):
            return JSONResponse({}, 401)
        if "challenge" in event:
            return JSONResponse({"challenge": event["challenge"]})
        with suppress(StoreError):
            async with self._taking:
                if self._deliver is not None:
                    await self._take(self._deliver, event)
                    return JSONResponse({})
        return JSONResponse({}, 503)  # Feishu sends it again

    def _decrypted(self, body: bytes, headers: Mapping[str, str]) -> Json:
        """The event in a request. Raises ValueError, LookupError, TypeError or AttributeError for others' requests."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        from cryptography.hazmat.primitives.padding import PKCS7

        key = self._settings.encrypt_key.get_secret_value()
        data = b64decode(orjson.loads(body)["encrypt"], validate=True)
        decryptor = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(data[:16])).decryptor()
        padding = PKCS7(128).unpadder()
        plain = padding.update(decryptor.update(data[16:]) + decryptor.finalize()) + padding.finalize()
        event: Json = orjson.loads(plain)
        is_test = event.get("type") == "url_verification"
        at, nonce = (headers.get(f"x-lark-request-{name}", "") for name in ("timestamp", "nonce"))
        signature = hashlib.sha256(f"{at}{nonce}{key}".encode() + body).hexdigest()
        is_signed = hmac.compare_digest(headers.get("x-lark-signature", "").encode(), signature.encode())
        is_new = at.isdecimal() and abs(self._clock.now().timestamp() - int(at)) <= _STALE_SECONDS
        token = str((event if is_test else event["header"])["token"]).encode()
        expected = self._settings.verification_token.get_secret_value().encode() or token
        is_authentic = hmac.compare_digest(token, expected) and (is_test or (is_signed and is_new))
        if not is_authentic or is_test != ("challenge" in event):
            raise ValueError("not authentic")
        return event

    async def _take(self, deliver: Deliver, event: Json) -> str:
        """Accept an event with its cursor; returns its type. Raises StoreError."""
        kind, position = "", 0
        # Without an answer, the event is read as it is; the acceptance reports those that cannot be read.
        with suppress(SendFailed, TimeoutError, LookupError, TypeError, AttributeError, ValueError):
            kind, facts = event["header"]["event_type"], event["event"]
            # Credentials are not stored.
            event["header"]["token"] = ""
            facts |= {"token": ""} if kind == PRESS else {}
            if kind == MESSAGE:
                position = int(facts["message"]["create_time"])
                is_private = facts["message"].get("chat_type") == "p2p"
                partner = facts["sender"]["sender_id"]["open_id"] if is_private else ""
                await self._know(facts["message"]["chat_id"], partner)
            elif kind == ADDED:
                self._reader.titles[facts["chat_id"]] = facts.get("name") or ""
                await self._know(facts["chat_id"], "")
            async with asyncio.timeout(_LOOKUP_SECONDS):
                await self._complete(facts)
        cursor = self._cursor.at(str(position)) if position > self._latest else None
        raw = orjson.dumps(event).decode()
        await self._acceptance.take(deliver, lambda: self._reader.contexts(event), raw, cursor)
        self._latest = max(self._latest, position)
        return kind

    async def _know(self, chat: str, partner: str) -> None:
        """Note a chat durably: Feishu does not list private ones. Raises StoreError."""
        if chat not in self._reader.chats:
            await self._save("chats", {**self._reader.chats, chat: partner})
            self._reader.chats[chat] = partner

    async def _complete(self, facts: Json) -> None:
        """Look up what an event lacks: chats and authors of messages, and the name of its sender. Raises SendFailed."""
        message, context = facts.get("message") or facts, facts.get("context") or {}
        for one in (facts.get("message_id"), message.get("parent_id"), context.get("open_message_id")):
            if one and one not in self._reader.places:
                self._reader.remember((await self._api.call("GET", f"im/v1/messages/{one}"))["items"][0])
        ids = (facts.get("sender") or {}).get("sender_id") or facts.get("operator") or facts.get("operator_id") or {}
        who, chat = ids.get("open_id"), message.get("chat_id") or context.get("open_chat_id") or ""
        now, is_private = self._clock.monotonic(), bool(self._reader.chats.get(chat))
        if not (who and chat) or self._read_at.get(chat, now) > now:
            return
        self._read_at[chat] = now + _CHECK_SECONDS
        if not is_private:
            self._reader.roles[chat] = await self._privileged(chat)
        if who not in self._reader.names and is_private:
            user = (await self._api.call("GET", f"contact/v3/users/{who}"))["user"]
            self._reader.names[who] = user["name"]
        elif who not in self._reader.names:
            await self.members(ChatRef(self.name, self.account, chat))

    # Gaps

    async def _fill_gap(self, deliver: Deliver) -> None:
        """Accept the messages since the cursor, oldest first. Raises SendFailed and StoreError."""
        known, stored = await self._saved("chats"), await self._cursor.read()
        self._latest, found = int(stored or self._clock.now_ms() + 1), dict[str, Json]()
        await self._cursor.keep(str(self._latest))
        listed = self._pages("im/v1/chats", sort_type="ByActiveTimeDesc", page_size=100)
        self._reader.titles = groups = {one["chat_id"]: one.get("name") or "" async for one in listed}
        private = {one: partner for one, partner in known.items() if partner}
        self._reader.chats = private | dict.fromkeys(groups, "")
        await self._save("chats", self._reader.chats)
        for chat in [*[one for one in groups if one in known][:_MOST_CHATS], *[*private][-_MOST_CHATS:]]:
            if stored is not None and self._host.allows(ChatRef(self.name, self.account, chat)):
                with self._leaving_gaps(chat):
                    found |= {one["message_id"]: one async for one in self._missed(chat, self._latest)}
        for message in sorted(found.values(), key=lambda one: int(one["create_time"])):
            await self._take(deliver, as_event(message, self._reader.chats[message["chat_id"]]))

    async def _missed(self, chat: str, since: int) -> AsyncIterator[Json]:
        """Messages of a chat since a time in milliseconds, at most a week ago, and those in threads that began up to a
        day earlier. Raises SendFailed."""
        since = max(since, self._clock.now_ms() - _LONGEST_GAP_DAYS * _DAY_MS)
        start, order = str((since - _DAY_MS) // 1000), "ByCreateTimeAsc"
        place = {"container_id_type": "chat", "container_id": chat, "start_time": start, "sort_type": order}
        places: list[dict[str, str]] = [place]
        for place in places:
            async for one in self._pages("im/v1/messages", page_size=50, **place):
                is_new, thread = int(one["create_time"]) >= since, str(one.get("thread_id") or "")
                if is_new and not one.get("deleted"):
                    yield one
                inside = {"container_id_type": "thread", "container_id": thread, "sort_type": "ByCreateTimeDesc"}
                if thread and inside not in places:
                    places.append(inside)
                if not is_new and place is not places[0]:
                    break

    async def _pages(self, path: str, **query: str | int) -> AsyncIterator[Json]:
        """The items of all pages of an answer. Waits at rate limits. Raises SendFailed."""
        page: Json = {"has_more": True}
        while page.get("has_more"):
            page = await self._patiently(partial(self._api.call, "GET", path, params=query), _CHECK_SECONDS)
            query["page_token"] = page.get("page_token") or ""
            for item in page.get("items") or ():
                yield item

    # Members

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        native = thread_of(chat.native)[0]
        with suppress(SendFailed, LookupError, TypeError):
            roles = {} if self._reader.chats.get(native) else await self._privileged(native)
            if member.native in roles:
                return roles[member.native]
            return Role.MEMBER if member in await self.members(chat) else None
        return None

    async def _privileged(self, chat: str) -> dict[str, Role]:
        """Roles of the owner and the administrators of a group. Raises SendFailed."""
        found = await self._api.call("GET", f"im/v1/chats/{chat}", params={"user_id_type": "open_id"})
        owner = {found["owner_id"]: Role.OWNER} if found.get("owner_id") else {}
        return dict.fromkeys(found.get("user_manager_id_list") or (), Role.ADMIN) | owner

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        native = thread_of(chat.native)[0]
        if partner := self._reader.chats.get(native):
            return [self._member(partner)]
        found = []
        async for one in self._pages(f"im/v1/chats/{native}/members", member_id_type="open_id", page_size=100):
            found.append(self._member(one["member_id"]))
            self._reader.names[one["member_id"]] = one.get("name") or one["member_id"]
        return found

    async def leave(self, chat: ChatRef) -> None:
        path, ids = f"im/v1/chats/{thread_of(chat.native)[0]}/members", {"id_list": [self._settings.app_id]}
        with unless(*_NO_CHAT):
            await self._api.call("DELETE", path, params={"member_id_type": "app_id"}, json=ids)

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        uploads = [await self._uploaded(one) for one in outgoing.uploads]
        key = hashlib.sha256(f"{outgoing.chat.key} {outgoing.key}".encode()).hexdigest()[:40]
        sent = [await self._adapted(outgoing, key)] if outgoing.text or not uploads else []
        # A repeated send repeats all of these, and Feishu drops the copies.
        for number, (kind, content) in enumerate(uploads):
            sent.append(await self._post(outgoing, None, kind, content, f"{key}-{number}"))
        for native_id in outgoing.closes:
            with suppress(SendFailed):
                if card := await self._card(native_id):
                    await self._patch(native_id, without_buttons(card))
        return Receipt(sent[0]["message_id"])

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        """A post has no buttons, and can be changed 20 times."""
        mentions = self._mentions(outgoing)
        if await self._card(native_id):
            await self._patch(native_id, body_of(outgoing, mentions, is_card=True))
        elif outgoing.choices:
            raise SendFailed("Feishu cannot add buttons to a message", retryable=False)
        else:
            content = orjson.dumps(body_of(outgoing, mentions, is_card=False)).decode()
            await self._api.call("PUT", f"im/v1/messages/{native_id}", json={"msg_type": "post", "content": content})

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        with unless(*_GONE):
            await self._api.call("DELETE", f"im/v1/messages/{native_id}")

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        """Only common emoji, and `:name:`, have a name at Feishu."""
        path = f"im/v1/messages/{native_id}/reactions"
        if name := EMOJI.name(emoji, "Feishu"):
            await self._api.call("POST", path, json={"reaction_type": {"emoji_type": name}})
        else:
            async for one in self._pages(path, page_size=50):
                if one["operator"]["operator_id"] == self._settings.app_id:
                    await self._api.call("DELETE", f"{path}/{one['reaction_id']}")

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        message, key, kind = attachment.url.removeprefix("network:").split("/")
        try:
            return await self._api.download(f"im/v1/messages/{message}/resources/{key}", kind, max_bytes)
        except SendFailed as problem:
            raise FileUnavailable(f"the file cannot be read: {problem}") from None

    def _mentions(self, outgoing: Outgoing) -> list[str]:
        is_private = outgoing.private_to or self._reader.chats.get(thread_of(outgoing.chat.native)[0])
        return [] if is_private else [one.native for one in outgoing.mentions]

    async def _adapted(self, outgoing: Outgoing, key: str) -> Json:
        """Send text and choices, again without details that Feishu rejects; returns the message. Raises SendFailed."""
        is_card, reply = bool(outgoing.choices), None if outgoing.private_to else outgoing.reply_to
        rich = body_of(outgoing, self._mentions(outgoing), is_card=is_card)
        attempts: list[tuple[str | None, Json]] = [(None, rich)]
        attempts.append((None, body_of(outgoing, (), is_card=is_card, is_plain=True)))
        if reply is not None and reply.startswith("om_"):
            attempts.insert(0, (reply, rich))
        while True:
            target, content = attempts.pop(0)
            try:
                message = await self._post(outgoing, target, "interactive" if is_card else "post", content, key)
            except ApiError as problem:
                if problem.retryable or problem.code in _NO_CHAT or not attempts:
                    raise
            else:
                if is_card:
                    await self._keep_card(message["message_id"], content)
                return message

    async def _post(self, outgoing: Outgoing, reply: str | None, kind: str, content: Json, key: str) -> Json:
        """Send a message, as a reply if one is named, and in a thread always; returns it. Raises SendFailed."""
        member, (chat, thread) = outgoing.private_to, thread_of(outgoing.chat.native)
        path, query = "im/v1/messages", {"receive_id_type": "open_id" if member else "chat_id"}
        body: Json = {"receive_id": member.native if member else chat}
        if thread and member is None and reply is None:
            newest = {"container_id_type": "thread", "container_id": thread, "sort_type": "ByCreateTimeDesc"}
            found = (await self._api.call("GET", path, params=newest)).get("items") or ()
            reply = next((one["message_id"] for one in found if not one.get("deleted")), thread)
        if reply is not None:
            path, query, body = f"{path}/{reply}/reply", {}, {"reply_in_thread": bool(thread)}
        body |= {"msg_type": kind, "content": orjson.dumps(content).decode(), "uuid": key}
        message = await self._api.call("POST", path, params=query, json=body)
        self._reader.remember({**message, "sender": {"id": self._settings.app_id}})
        if member is not None:
            with suppress(StoreError):
                await self._know(message["chat_id"], member.native)
        return message

    async def _patch(self, native_id: str, card: Json) -> None:
        """Replace the card of a message. Raises SendFailed."""
        await self._api.call("PATCH", f"im/v1/messages/{native_id}", json={"content": orjson.dumps(card).decode()})
        await self._keep_card(native_id, card)

    async def _keep_card(self, native_id: str, card: Json) -> None:
        """Store the card of a message for later changes, if possible: Feishu does not return it as it was sent."""
        with suppress(StoreError):
            await self._save(f"card:{native_id}", card)

    async def _card(self, native_id: str) -> Json:
        """The card of a message; empty if it is a post. Raises SendFailed."""
        try:
            return await self._saved(f"card:{native_id}")
        except StoreError:
            raise SendFailed("the card cannot be read from the database", retryable=True) from None

    async def _uploaded(self, file: Attachment) -> tuple[str, Json]:
        """Kind and content of a message with a new file. Raises SendFailed."""
        if file.media_type in _IMAGES and len(data_in(file.url) or b"") <= _IMAGE_BYTES:
            image = {"image_type": "message"}, "image", file
            return "image", await self._api.call("POST", "im/v1/images", upload=image)
        stream = {"file_type": "stream", "file_name": file.name}, "file", file
        return "file", await self._api.call("POST", "im/v1/files", upload=stream)

    async def _saved(self, name: str) -> Json:
        """A value of the account that survives restarts; empty if there is none. Raises StoreError."""
        value: Json = orjson.loads(await self._stored(name).read() or "{}")
        return value

    async def _save(self, name: str, value: Json) -> None:
        await self._stored(name).keep(orjson.dumps(value).decode())


async def probe(settings: FeishuSettings, clock: Clock) -> str:
    """See `Adapter.probe`."""
    api = FeishuApi(settings, clock)
    async with probing(api.close, "Check app_id, app_secret, domain and the app's bot and event settings"):
        bot, scopes = (await api.call("GET", "bot/v3/info"))["bot"], await api.call("GET", "application/v6/scopes")
        if settings.events == "websocket":
            await (await api.link())[0].close()
    granted = [one["scope_name"] for one in scopes["scopes"] if one["grant_status"] == 1]
    missing = ", ".join(one for one in SCOPES if one not in granted)
    return f"connected as @{bot['app_name']}" + (f"; scopes are missing: {missing}" if missing else "")
