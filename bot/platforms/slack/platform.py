"""Slack as a network: events over Socket Mode, everything else over the Web API.

The SDK's socket client, and Bolt on it, handle events concurrently, acknowledge them before they are durable, and hide
lost connections. Here the events of a socket are accepted one after the other and acknowledged afterwards.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

import aiohttp
from pydantic import SecretStr

from bot.platforms.adapter import Adapter, Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed, thread_of
from bot.platforms.connection import CannotConnect, ConnectedPlatform, probing
from bot.platforms.emoji import COMMON
from bot.platforms.slack.inbound import PLATFORM, Profile, Reader, profile_of
from bot.platforms.slack.text import linked, mrkdwn, urls
from bot.platforms.web_api import Refused, WebApi, bearer, check_size, objects_of, unless
from config.sections.networks import NetworkSettings
from config.terms import SecureUrl, is_loopback, matching
from function_calls.context import Attachment
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, JsonObject, MemberRef, Role
from services.web.content import data_in

SCOPES = re.findall(
    r"\S+",
    "app_mentions:read channels:history channels:read chat:write files:read files:write groups:history groups:read "
    "im:history im:read im:write mpim:history mpim:read reactions:read reactions:write users:read",
)
"""Scopes that the bot token needs; leaving channels and moderation also need `channels:manage`, `groups:write` and
`pins:write`."""

_ANSWER_SECONDS, _SILENCE_SECONDS = 30.0, 120.0
_NAME_SECONDS, _ROLE_SECONDS = 3600.0, 60.0
"""Time for which a profile is cached, for names in texts and for the role of a sender."""
_MOST_USERS, _MOST_MENTIONS = 2000, 50
_DAY_SECONDS = 86_400.0
_LONGEST_GAP_DAYS = 7
_VALUE_CHARS, _LABEL_CHARS, _BUTTONS = 2000, 75, 25
_BAD_MARKUP = ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long")
_TRANSIENT = ("internal_error", "fatal_error", "service_unavailable", "request_timeout")
_CODE = re.compile(r"[a-z_:,.]{1,99}")
_CHANGES = ("message_changed", "message_deleted")
_SECRETS = ("token", "trigger_id", "response_url", "response_urls")
_SENDER = re.compile(r'"(?:user|inviter|id)": "([UW][A-Z0-9]+)"')
_MENTIONED = re.compile(r"<@([UW][A-Z0-9]+)")
_BOT_TOKEN = matching("xoxb-[A-Za-z0-9-]+", "has to be a token that begins with xoxb-")
_APP_TOKEN = matching("xapp-[A-Za-z0-9-]+", "has to be a token that begins with xapp-")


class SlackSettings(NetworkSettings):
    """One workspace."""

    bot_token: Annotated[SecretStr, _BOT_TOKEN]
    """Bot token of the app in the workspace (`xoxb-…`); preferably a reference to the environment."""
    app_token: Annotated[SecretStr, _APP_TOKEN]
    """App-level token with the scope `connections:write` (`xapp-…`); preferably a reference to the environment. Each
    account needs its own app: Slack sends an event to only one of the connections of an app."""
    api_url: SecureUrl = "https://slack.com/api"
    """URL of the Web API; `https://slack-gov.com/api` for GovSlack."""


class _Api:
    """The Web API with the tokens of one account."""

    def __init__(self, settings: SlackSettings) -> None:
        self._app_token, self._host = settings.app_token.get_secret_value(), urlsplit(settings.api_url).hostname or ""
        self._web = WebApi("Slack", f"{settings.api_url}/", bearer(settings.bot_token.get_secret_value()))
        self.granted = ""
        """Scopes of the token of the latest call."""
        self.close = self._web.close

    async def call(self, method: str, /, *, token: str = "", **arguments: Any) -> JsonObject:
        """Call a method of the API with the arguments that are not None. Raises SendFailed, mostly Refused."""
        given = {name: value for name, value in arguments.items() if value is not None}
        # Methods that read take no JSON.
        texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in given.items()}
        options: JsonObject = {"json": given} if "chat." in method else {"data": texts}
        status, headers, content = await self._web.call("POST", method, headers=bearer(token), **options)
        answer: JsonObject = content if isinstance(content, dict) else {}
        if answer.get("ok"):
            self.granted = headers.get("x-oauth-scopes", "")
            return answer
        code, needed = str(answer.get("error")), str(answer.get("needed", ""))
        words = f"Slack answered {code if _CODE.fullmatch(code) else f'HTTP {status}'}"
        words += f", needs {needed}" if _CODE.fullmatch(needed) else ""
        is_transient = code in _TRANSIENT
        status = 429 if code == "ratelimited" else 500 if is_transient else status
        raise Refused(words, status, code=code, retry_after=headers.get("Retry-After"), unknown_outcome=is_transient)

    async def pages(self, field: str, method: str, ask: Any = None, **arguments: Any) -> AsyncIterator[Any]:
        """The items in `field` of all pages. `ask`: returns the answer to a request. Raises SendFailed."""
        more: Any = True
        while more:
            request = partial(self.call, method, **arguments)
            page = await (ask(request) if ask else request())
            for item in page[field]:
                yield item
            arguments["cursor"] = more = (page.get("response_metadata") or {}).get("next_cursor")

    async def download(self, url: str, max_bytes: int) -> bytes:
        """A file of Slack's file server. Raises FileUnavailable."""
        address = urlsplit(url)
        is_safe = address.scheme == "https" or is_loopback(self._host)
        if not is_safe or address.hostname not in (self._host, f"files.{self._host}"):
            raise FileUnavailable("the file is not on Slack's file server")
        return await self._web.download(url, max_bytes)

    async def upload(self, file: Attachment) -> Mapping[str, str]:
        """A file at Slack that is not shown yet. Raises SendFailed."""
        content = data_in(file.url) or b""
        place = await self.call("files.getUploadURLExternal", filename=file.name, length=len(content))
        try:
            async with self._web.http.post(place["upload_url"], data=content, allow_redirects=False) as answer:
                if answer.status != 200:
                    raise Refused(f"Slack answered HTTP {answer.status}", answer.status)
        except (aiohttp.ClientError, OSError):
            raise SendFailed("Slack did not take the file", retryable=True) from None
        return {"id": place["file_id"], "title": file.name}

    async def socket(self) -> aiohttp.ClientWebSocketResponse:
        """A new connection in Socket Mode, after Slack's greeting. Raises CannotConnect and SendFailed."""
        url = (await self.call("apps.connections.open", token=self._app_token))["url"]
        if not url.startswith("wss://") and not is_loopback(self._host):
            raise CannotConnect("Slack named an address without TLS")

        async def greet(socket: aiohttp.ClientWebSocketResponse) -> None:
            greeting = await socket.receive_json()
            if greeting["type"] != "hello":
                raise CannotConnect(f"Slack closes new connections: {greeting.get('reason')}")

        return await self._web.socket(url, greet, heartbeat=10.0, autoping=False)


class SlackPlatform(ConnectedPlatform):
    """One account of the bot in a workspace."""

    name = PLATFORM
    limits = Limits(
        text_chars=3900,
        sends_per_minute=60,
        choices=True,
        attachments=True,
        clients_keep_slashes=True,
        markdown=True,
        catches_up=True,
        file_bytes=50_000_000,
    )

    def __init__(self, settings: SlackSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self._api = _Api(settings)
        self.close = self._api.close
        self._reader = Reader(settings.account, self._hear, host.names[0])
        self._users = Recent[str, tuple[Profile, float]](_MOST_USERS)
        """Profiles, each with the time of reading."""
        self._ask = partial(self._patiently, most_seconds=_SILENCE_SECONDS / 2)
        self._behind: dict[str, asyncio.Lock] = {}
        """Channels with a gap that is filled before their next event."""
        self._latest: dict[str, str] = {}
        """The `ts` of the latest accepted message of each channel, as in its cursor."""

    async def _connected(self, deliver: Deliver) -> None:
        """Accept events of one connection, and of those that replace it when Slack asks for it. Raises what ends it."""
        self._reader.me = await self._api.call("auth.test")
        await self._find_gaps()
        socket = await self._api.socket()
        self._connection.up()
        filling = asyncio.create_task(self._fill_gaps(deliver))

        def heard() -> None:
            self._connection.heard()
            if filling.done():
                filling.result()

        try:
            while True:
                async for envelope in objects_of(socket, heard):
                    if envelope.get("type") == "disconnect" and envelope.get("reason") != "link_disabled":
                        break
                    await self._accept(deliver, envelope)
                    if envelope.get("envelope_id"):
                        await socket.send_str(json.dumps({"envelope_id": envelope["envelope_id"]}))
                else:
                    raise CannotConnect("Slack closed the connection; is Socket Mode on?")
                # Slack repeats events that arrive only on the old connection.
                old, socket = socket, await self._api.socket()
                await old.close()
        finally:
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)
            await socket.close()

    async def _accept(self, deliver: Deliver, envelope: JsonObject) -> None:
        """Accept the event of an envelope. Raises StoreError if it was not accepted."""
        payload = envelope.get("payload", envelope)
        if envelope.get("type") not in ("events_api", "interactive") and "unreadable" not in envelope:
            return
        event = payload.get("event", payload) if isinstance(payload, dict) else payload
        event = event if isinstance(event, dict) else {"unreadable": event}
        if self._position(event) and event["channel"] in self._behind:
            await self._fill_gap(deliver, event["channel"])
        await self._take(deliver, {key: value for key, value in event.items() if key not in _SECRETS})

    async def _take(self, deliver: Deliver, event: JsonObject) -> None:
        """Accept one event, with the cursor of its channel."""
        raw, ts = json.dumps(event, ensure_ascii=False), self._position(event)
        is_next = bool(ts) and ts > self._latest.get(event["channel"], "")
        cursor = self._stored(event["channel"]).at(ts) if is_next else None
        me = self._reader.me["user_id"]
        if event.get("type") == "reaction_added" and event.get("item_user", me) == me:
            # Slack does not name the thread of the message.
            with suppress(SendFailed, LookupError, TypeError):
                item = event["item"]
                found = await self._api.call("conversations.replies", channel=item["channel"], ts=item["ts"], limit=1)
                event = {**event, "item": {**item, "thread_ts": found["messages"][0].get("thread_ts")}}
        users = await self._profiles(raw)
        await self._acceptance.take(deliver, lambda: filter(None, [self._reader.read(event, users)]), raw, cursor)
        if cursor is not None:
            self._latest[event["channel"]] = ts

    def _position(self, event: JsonObject) -> str:
        """The `ts` up to which the channel of `event` is read after it; empty if that does not change."""
        is_message = event.get("type") in ("message", "app_mention") and event.get("subtype") not in _CHANGES
        is_entry = event.get("type") == "member_joined_channel" and event.get("user") == self._reader.me["user_id"]
        ts = event.get("ts") if is_message else event.get("event_ts") if is_entry else ""
        return ts if isinstance(ts, str) and isinstance(event.get("channel"), str) else ""

    # Gaps

    async def _find_gaps(self) -> None:
        """Set `_behind` to the channels that have a cursor, and give the others one. A private chat without a cursor
        was opened after the last connection, and has a gap since then."""
        now, last = f"{self._clock.now_ms() / 1000:.6f}", await self._cursor.read()
        writes = [self._cursor.at(now)]
        self._behind, self._latest = {}, {}
        kinds = "public_channel,private_channel,mpim,im"
        listed = {"ask": self._ask, "types": kinds, "exclude_archived": True, "limit": 200}
        async for channel in self._api.pages("channels", "users.conversations", **listed):
            cursor = self._stored(channel["id"])
            known = await cursor.read()
            latest = known or (last if channel["id"].startswith("D") else None)
            if known is None:
                writes.append(cursor.at(latest or now))
            if latest is not None:
                self._behind[channel["id"]], self._latest[channel["id"]] = asyncio.Lock(), latest
        await self._host.store.commit(writes)

    async def _fill_gaps(self, deliver: Deliver) -> None:
        for channel in list(self._behind):
            await self._fill_gap(deliver, channel)

    async def _fill_gap(self, deliver: Deliver, channel: str) -> None:
        """Accept the messages of the gap, oldest first, unless another task has."""
        async with self._behind.get(channel) or asyncio.Lock():
            missed = list[JsonObject]()
            with self._leaving_gaps(channel):
                missed = await self._missed(channel) if channel in self._behind else []
            for message in missed:
                await self._take(deliver, {**message, "channel": channel})
            self._behind.pop(channel, None)

    async def _missed(self, channel: str) -> list[JsonObject]:
        """Messages after the cursor, at most a week old, oldest first, with replies in threads that began up to a day
        before. Raises SendFailed."""
        week_ago = self._clock.now_ms() / 1000 - _LONGEST_GAP_DAYS * _DAY_SECONDS
        since, found = max(self._latest[channel], f"{week_ago:.6f}"), dict[str, JsonObject]()
        place: dict[str, Any] = {"ask": self._ask, "channel": channel, "limit": 200}
        oldest = f"{float(since) - _DAY_SECONDS:.6f}"
        for top in [one async for one in self._api.pages("messages", "conversations.history", oldest=oldest, **place)]:
            found.setdefault(top["ts"], top)
            if top.get("latest_reply", "") > since:
                thread = {"ts": top["ts"], "oldest": since, **place}
                async for reply in self._api.pages("messages", "conversations.replies", **thread):
                    found[reply["ts"]] = reply
        return [found[ts] for ts in sorted(found) if ts > since]

    # Users

    async def _profiles(self, raw: str) -> Mapping[str, Profile]:
        """Profiles of the users that an event names, as far as Slack provides them."""
        found = dict.fromkeys(_MENTIONED.findall(raw)[:_MOST_MENTIONS], _NAME_SECONDS)
        found |= dict.fromkeys(_SENDER.findall(raw)[:_MOST_MENTIONS], _ROLE_SECONDS)
        profiles = {user: await self._profile(user, seconds) for user, seconds in found.items()}
        return {user: profile for user, profile in profiles.items() if profile is not None}

    async def _profile(self, user: str, seconds: float) -> Profile | None:
        """The profile, read at most `seconds` ago; an older one without its role, or None, if Slack has no answer."""
        known, at = self._users.get(user, (None, 0.0))
        if known is not None and self._clock.monotonic() - at < seconds:
            return known
        try:
            profile = await self._current(user)
        except (SendFailed, LookupError, TypeError):
            return known and replace(known, role=None)
        self._users[user] = (profile, self._clock.monotonic())
        return profile

    async def _current(self, user: str) -> Profile:
        self._reader.me = self._reader.me or await self._api.call("auth.test")
        found = await self._api.call("users.info", user=user, include_locale=True)
        return profile_of(found["user"], self._reader.me["team_id"])

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """None for users who are not in the channel."""
        with suppress(SendFailed, LookupError, TypeError):
            profile = await self._current(member.native)
            return profile.role if member in await self.members(chat) else None
        return None

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        self._reader.me = self._reader.me or await self._api.call("auth.test")
        listed = {"channel": thread_of(chat.native)[0], "limit": 1000}
        users = [one async for one in self._api.pages("members", "conversations.members", **listed)]
        return [self._member(one) for one in users if one != self._reader.me["user_id"]]

    async def leave(self, chat: ChatRef) -> None:
        channel, _ = thread_of(chat.native)
        with unless("not_in_channel", "channel_not_found"):
            await self._api.call("conversations.leave", channel=channel)

    measures = frozenset({Measure.KICK, Measure.PIN, Measure.INVITE})

    async def moderate(self, request: ModerationRequest) -> str:
        channel, _ = thread_of(request.chat.native)
        match request.measure:
            case Measure.KICK:
                await self._api.call("conversations.kick", channel=channel, user=request.who)
            case Measure.INVITE:
                with unless("already_in_channel"):
                    await self._api.call("conversations.invite", channel=channel, users=request.who)
            case _:
                with unless("already_pinned"):
                    await self._api.call("pins.add", channel=channel, timestamp=request.message_id)
        return ""

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Slack has no replies, so `reply_to` has no effect."""
        channel, thread = await self._place(outgoing)
        files = [await self._api.upload(one) for one in outgoing.uploads]
        options = {"channel": channel, "thread_ts": thread or None, "unfurl_links": False, "unfurl_media": False}
        sent = await self._write("chat.postMessage", outgoing, **options)
        if files:
            shared: Any = {"files": json.dumps(files), "channel_id": channel, "thread_ts": thread or None}
            try:
                await self._api.call("files.completeUploadExternal", **shared)
            except SendFailed as problem:
                # Another attempt would show the text twice.
                raise SendFailed(f"the text is shown without its files: {problem}", retryable=False) from None
        for native_id in outgoing.closes:
            with suppress(SendFailed):
                await self._close_choices(channel, thread, native_id)
        return Receipt(sent["ts"])

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        channel, _ = await self._place(outgoing)
        await self._write("chat.update", outgoing, channel=channel, ts=native_id)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        with unless("message_not_found"):
            await self._api.call("chat.delete", channel=thread_of(chat.native)[0], ts=native_id)

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        """Only common emoji, and `:name:`, have a name at Slack."""
        place = {"channel": thread_of(chat.native)[0], "timestamp": native_id}
        if name := COMMON.name(emoji, "Slack"):
            with unless("already_reacted"):
                await self._api.call("reactions.add", name=name, **place)
        else:
            me = self._reader.me or await self._api.call("auth.test")
            found = await self._api.call("reactions.get", full=True, **place)
            for reaction in found["message"].get("reactions", ()):
                if me["user_id"] in reaction["users"]:
                    with unless("no_reaction"):
                        await self._api.call("reactions.remove", name=reaction["name"], **place)

    async def _place(self, outgoing: Outgoing) -> tuple[str, str]:
        """Ids of the channel and thread for a message. Raises SendFailed."""
        if outgoing.private_to is None:
            return thread_of(outgoing.chat.native)
        return (await self._api.call("conversations.open", users=outgoing.private_to.native))["channel"]["id"], ""

    async def _write(self, method: str, outgoing: Outgoing, **place: Any) -> JsonObject:
        """Post or update a message, as plain text if its formatting is rejected. Raises SendFailed."""
        try:
            return await self._api.call(method, **place, **_content(outgoing, is_edit="ts" in place))
        except Refused as problem:
            if problem.code not in _BAD_MARKUP or not outgoing.markdown:
                raise
        outgoing = replace(outgoing, text=outgoing.plain, markdown=False)
        return await self._api.call(method, **place, **_content(outgoing, is_edit="ts" in place))

    async def _close_choices(self, channel: str, thread: str, ts: str) -> None:
        """Remove the buttons of a message. Raises SendFailed."""
        place: Any = {"channel": channel, "oldest": ts, "latest": ts, "inclusive": True, "ts": thread or None}
        found = await self._api.call("conversations.replies" if thread else "conversations.history", **place)
        for message in found["messages"]:
            if message["ts"] == ts:
                blocks = [block for block in message.get("blocks", ()) if block["type"] != "actions"]
                facts: Any = {"text": message["text"], "blocks": blocks, "parse": "none", "link_names": False}
                await self._api.call("chat.update", channel=channel, ts=ts, **facts)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        try:
            file = (await self._api.call("files.info", file=attachment.url.partition(":")[2]))["file"]
        except SendFailed as problem:
            raise FileUnavailable(f"{problem}; is the scope files:read missing?") from None
        check_size(file.get("size"), max_bytes)
        return await self._api.download(file.get("url_private_download") or "", max_bytes)


def _content(outgoing: Outgoing, *, is_edit: bool) -> JsonObject:
    """Text and blocks of a message. Where Slack would format a text that is not Markdown, it is a block of its own."""
    text = outgoing.text + outgoing.links or ", ".join(one.name for one in outgoing.attachments)
    mentioned = [] if outgoing.private_to else [one.native for one in outgoing.mentions]
    shown = "".join(f"<@{user}> " for user in mentioned) + (mrkdwn(text) if outgoing.markdown else linked(text))
    choices = [one for one in outgoing.choices if len(one.value) <= _VALUE_CHARS]
    blocks: list[JsonObject] = []
    if outgoing.markdown and choices:
        # Slack rejects more than 3,000 characters, and the message is sent as plain text.
        blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": shown}, "expand": True}]
    elif choices or (is_edit and not outgoing.markdown):
        parts = [{"type": "user", "user_id": user} for user in mentioned]
        parts += [
            {"type": "link", "url": one} if is_url else {"type": "text", "text": one} for one, is_url in urls(text)
        ]
        blocks = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": parts}]}]
    buttons = [
        {"type": "button", "action_id": f"choice-{number}", "value": one.value, "text": label}
        for number, one in enumerate(choices)
        if (label := {"type": "plain_text", "text": one.label[:_LABEL_CHARS]})
    ]
    for first in range(0, len(buttons), _BUTTONS):
        blocks.append({"type": "actions", "elements": buttons[first : first + _BUTTONS]})
    # `chat.update` has no option against formatting.
    form = {"blocks": blocks} if is_edit else {"blocks": blocks or None, "mrkdwn": outgoing.markdown}
    return {"text": shown, "parse": "none", "link_names": False, **form}


async def probe(settings: SlackSettings, _clock: Clock) -> str:
    """See `Adapter.probe`."""
    api = _Api(settings)
    async with probing(api.close, "Check bot_token and app_token, and that Socket Mode is on"):
        me = await api.call("auth.test")
        missing = ", ".join(sorted(set(SCOPES) - set(api.granted.replace(" ", "").split(","))))
        await (await api.socket()).close()
    return f"connected as @{me['user']} in {me['team']}" + (f"; scopes are missing: {missing}" if missing else "")


ADAPTER = Adapter(SlackSettings, SlackPlatform, probe, asks=("bot_token", "app_token"))
