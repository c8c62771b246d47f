"""Mattermost as a network: events over its WebSocket, everything else over the REST API."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

import aiohttp
from pydantic import AfterValidator, SecretStr

from bot.platforms.adapter import Adapter, Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed, thread_of
from bot.platforms.connection import CannotConnect, ConnectedPlatform, probing
from bot.platforms.emoji import COMMON
from bot.platforms.mattermost.inbound import MOST_CACHED, PLATFORM, Reader, adds, record_of, usernames
from bot.platforms.web_api import (
    FILE_SECONDS,
    Refused,
    WebApi,
    bearer,
    check_path,
    check_size,
    form_with,
    object_in,
    objects_of,
    unless,
)
from config.sections.networks import NetworkSettings
from config.terms import SecureUrl, matching
from function_calls.context import Attachment
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, JsonObject, MemberRef, Role

_ANSWER_SECONDS, _SILENCE_SECONDS = 30.0, 120.0
_PROFILE_SECONDS, _ROLE_SECONDS = 3600.0, 60.0
_MOST_MENTIONS = 50
_LONGEST_GAP_MS, _CLOCKS_DIFFER_MS = 7 * 86_400_000, 60_000
_FILES, _PAGE, _POSTS_SINCE = 10, 200, 1000
"""Files of a post, items of a page, and posts of an answer to `since`."""
_TOKEN = matching("[A-Za-z0-9]{26}", "has to be a token of 26 letters and digits; it is not the token's id")

_INVISIBLE = "\u200b"
"""Inserted where the server or a client would read a mention or formatting; the server reads the text behind
backslashes and character references."""
_URL = re.compile(r"(https?://[^\s<>]*[^\s<>.,;:!?()\[\]{}'\"*_~`])")
_CODE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`)", re.DOTALL)
_MENTION = r"(?<=(?<![A-Za-z0-9])@)(?=\w)"
_IN_TEXT = re.compile(rf"{_MENTION}|(?<=@)(?=&)|(?<=&)(?=#0*64;|#x0*40;|commat;)", re.IGNORECASE)
_IN_CODE = re.compile(r"(?<=@)(?=all|channel|here)", re.IGNORECASE)
_IN_PLAIN = re.compile(
    rf"{_MENTION}|(?<=&)(?=#?\w+;)|(?<=:)(?=[\w+-]+:)|(?<=<)(?=[A-Za-z/!?])|^(?=[ \t]*(?:[#>+=-]|\d+[.)])|[ ]{{4}}|\t)",
    re.MULTILINE,
)
_MARK = re.compile(r"([\\`*_~|\[\]])")
_IMAGE = re.compile(r"!(?=\[)")


class MattermostSettings(NetworkSettings):
    """One account of the bot on a Mattermost server."""

    url: Annotated[SecureUrl, AfterValidator(lambda url: url.removesuffix("/api/v4"))]
    """URL of the server, such as https://chat.example.org."""
    token: Annotated[SecretStr, _TOKEN]
    """Token of a bot account, or a personal access token; preferably a reference to the environment."""


class _Api:
    """The REST API with the token of one account."""

    def __init__(self, settings: MattermostSettings) -> None:
        self._token = settings.token.get_secret_value()
        self._web = WebApi("Mattermost", f"{settings.url}/api/v4/", bearer(self._token))
        self.close = self._web.close

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """The answer to a request; `path` is below the API. Raises SendFailed, Refused for an error of the server."""
        check_path(path, "Mattermost")
        is_post = (method, path) == ("POST", "posts")
        status, headers, content = await self._web.call(method, path, has_effect=is_post, **options)
        if status < 300:
            return content
        code = str(content.get("id")) if isinstance(content, dict) else ""
        raise Refused(
            f"Mattermost answered HTTP {status}" + (f", {code}" if re.fullmatch(r"[a-z0-9_.]{1,99}", code) else ""),
            status,
            retry_after=headers.get("Retry-After") or headers.get("X-RateLimit-Reset"),
            unknown_outcome=is_post and status in (502, 504),
            for_account=status == 429,
        )

    async def found(self, path: str) -> Any:
        """The answer to a GET request; empty if the server does not show it to the bot. Raises SendFailed."""
        try:
            return await self.call("GET", path)
        except SendFailed as problem:
            if problem.retryable:
                raise
            return {}

    async def download(self, path: str, max_bytes: int) -> bytes:
        """A file below the API. Raises FileUnavailable, and SendFailed if the path has a part that is no id."""
        check_path(path, "Mattermost")
        return await self._web.download(self._web.url + path, max_bytes)

    async def socket(self) -> aiohttp.ClientWebSocketResponse:
        """A new WebSocket after its greeting. Raises CannotConnect."""

        async def greet(socket: aiohttp.ClientWebSocketResponse) -> None:
            await socket.send_json({"seq": 1, "action": "authentication_challenge", "data": {"token": self._token}})
            frame: JsonObject = {}
            while frame.get("event") != "hello" or frame.get("seq") != 0:
                frame = object_in(await socket.receive_str())
                if frame.get("status") == "FAIL":
                    raise CannotConnect("the WebSocket rejects the token")

        return await self._web.socket("websocket", greet, heartbeat=_ANSWER_SECONDS, autoping=False)


class MattermostPlatform(ConnectedPlatform):
    """One account of the bot on a server."""

    name = PLATFORM
    limits = Limits(
        text_chars=4000,
        # The server remembers `pending_post_id` for 30 seconds only.
        sends_per_minute=120,
        attachments=True,
        clients_keep_slashes=True,
        markdown=True,
        catches_up=True,
        file_bytes=50_000_000,
    )

    def __init__(self, settings: MattermostSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self._api = _Api(settings)
        self.close = self._api.close
        self._reader = Reader(settings.account, self._hear, host.names[0])
        self._read_at = Recent[str, float](MOST_CACHED)
        """Time of reading of each cached user."""
        self._role_read_at = Recent[tuple[str, str], float](MOST_CACHED)
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._latest, self._requests = 0, 1
        """Time of the latest accepted post, as in the cursor, and number of requests over the WebSocket."""

    async def _connected(self, deliver: Deliver) -> None:
        """Accept the events of one connection, after those of the gap before it. Raises what ends it."""
        await self._fill_gap(deliver)
        async with await self._api.socket() as self._socket:
            # Again, for what came while the gap was filled.
            await self._fill_gap(deliver)
            self._connection.up()
            await self._receive(deliver, self._socket)

    async def _receive(self, deliver: Deliver, socket: aiohttp.ClientWebSocketResponse) -> None:
        expected = 1
        async for event in objects_of(socket, self._connection.heard):
            if "seq_reply" in event:
                continue
            if event.get("seq", expected) != expected:
                raise CannotConnect("Mattermost has left out events")
            expected += "seq" in event
            await self._take(deliver, event)

    async def _take(self, deliver: Deliver, event: JsonObject) -> None:
        """Accept one event, with the cursor. Raises StoreError, or SendFailed if a look-up has to be repeated."""
        at, now_ms = 0, self._clock.now_ms()
        with suppress(LookupError, TypeError, ValueError, AttributeError):
            record = record_of(event)
            # Imported posts may have any time; the cursor must not pass later ones.
            at = min(int(record["create_at"]), now_ms + _CLOCKS_DIFFER_MS) if event["event"] == "posted" else 0
            await self._learn(event, record)
        cursor = self._cursor.at(str(at)) if at > self._latest else None
        raw = json.dumps(event, ensure_ascii=False)
        await self._acceptance.take(deliver, lambda: filter(None, [self._reader.read(event, now_ms)]), raw, cursor)
        self._latest = max(self._latest, at)

    # Users, channels and posts that events refer to

    async def _learn(self, event: JsonObject, record: JsonObject) -> None:
        """Fill the caches of the reader with what an event names. Raises SendFailed."""
        data, reader = event["data"], self._reader
        user = record.get("user_id") or data.get("user_id") or ""
        if "message" in record:
            reader.posts[record["id"]] = _place(record)
        if user == reader.me["id"] or event["event"] not in _EVENTS:
            return
        post = record.get("root_id") or record.get("post_id")
        if post and post not in reader.posts and (found := await self._api.found(f"posts/{post}")):
            reader.posts[post] = _place(found)
        channel = record.get("channel_id") or (event.get("broadcast") or {}).get("channel_id")
        if channel and channel not in reader.channels and (found := await self._api.found(f"channels/{channel}")):
            reader.channels[channel] = found
        if user and self._clock.monotonic() - self._read_at.get(user, -_PROFILE_SECONDS) >= _PROFILE_SECONDS:
            self._know(await self._api.found(f"users/{user}"))
        by, now = (channel or "", user), self._clock.monotonic()
        if "message" in record and now - self._role_read_at.get(by, -_ROLE_SECONDS) >= _ROLE_SECONDS:
            chat, member = ChatRef(PLATFORM, self.account, by[0]), MemberRef(PLATFORM, self.account, user)
            reader.roles[by] = await self.role(chat, member)
            self._role_read_at[by] = now
        names = [one for one in dict.fromkeys(usernames(record.get("message") or "")) if one not in reader.ids]
        if names:
            for found in await self._api.call("POST", "users/usernames", json=names[:_MOST_MENTIONS]):
                self._know(found)

    def _know(self, user: JsonObject) -> None:
        if user:
            self._reader.users[user["id"]] = user
            self._reader.ids[user["username"]] = user["id"]
            self._read_at[user["id"]] = self._clock.monotonic()

    async def _me(self) -> str:
        """The bot's id. Raises SendFailed."""
        if not self._reader.me:
            self._reader.me = await self._api.call("GET", "users/me")
            self._reader.ids[self._reader.me["username"]] = self._reader.me["id"]
        return str(self._reader.me["id"])

    # Gaps

    async def _fill_gap(self, deliver: Deliver) -> None:
        """Accept what came since the cursor, in order. At the first start, set the cursor to the latest post."""
        known, channels = await self._cursor.read(), await self._api.call("GET", f"users/{await self._me()}/channels")
        self._reader.channels.update((one["id"], one) for one in channels)
        if known is None:
            known = str(max((one["last_post_at"] for one in channels), default=0) + 1)
            await self._cursor.keep(known)
        self._latest = int(known)
        since, missed = max(self._latest, self._clock.now_ms() - _LONGEST_GAP_MS), list[JsonObject]()
        for channel in channels:
            if channel["last_post_at"] >= since:
                with self._leaving_gaps(channel["id"]):
                    missed += await self._missed(channel["id"], since)
        for post in sorted(missed, key=lambda one: int(one["create_at"])):
            events = [] if post["create_at"] < since or post["delete_at"] else ["posted"]
            if post["create_at"] <= since and max(post["delete_at"], post["edit_at"]) >= since:
                events.append("post_deleted" if post["delete_at"] else "post_edited")
            for event in events:
                await self._take(deliver, {"event": event, "data": {"post": json.dumps(post)}})

    async def _missed(self, channel: str, since: int) -> list[JsonObject]:
        """Posts of a channel that were made, edited or deleted at `since` or later, without those made before the bot
        came into the channel. Raises SendFailed."""
        found, page = dict[str, JsonObject](), -1
        while True:
            query = {"since": since - 1} if page < 0 else {"page": page, "per_page": _PAGE, "skipFetchThreads": "true"}
            request = partial(self._api.call, "GET", f"channels/{channel}/posts", params=query)
            posts = (await self._patiently(request, _SILENCE_SECONDS / 2))["posts"]
            found |= posts
            if page < 0 and len(posts) < _POSTS_SINCE:
                break
            # An answer to `since` has a part only; the pages have all that is not deleted, the latest first.
            page += 1
            if page > 0 and min((one["create_at"] for one in posts.values()), default=0) < since:
                break
        entered = max((one["create_at"] for one in found.values() if adds(one, self._reader.me["id"])), default=0)
        return [one for one in found.values() if one["update_at"] >= since and one["create_at"] >= entered]

    # Members

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """Administrators of the server are OWNER, those of the team or the channel ADMIN; bots and
        guests are MEMBER."""
        channel, _ = thread_of(chat.native)
        with suppress(SendFailed, LookupError, TypeError):
            inside = await self._api.call("GET", f"channels/{channel}/members/{member.native}")
            user = await self._api.call("GET", f"users/{member.native}")
            if user.get("delete_at") or user["id"] != member.native:
                return None
            if user.get("is_bot") or "system_guest" in user["roles"].split():
                return Role.MEMBER
            if "system_admin" in user["roles"].split():
                return Role.OWNER
            team = (await self._api.call("GET", f"channels/{channel}")).get("team_id")
            both = [inside, await self._api.found(f"teams/{team}/members/{member.native}") if team else {}]
            is_admin = any(
                one.get("scheme_admin") or re.search(r"\b(?:team|channel)_admin\b", one.get("roles") or "")
                for one in both
            )
            return Role.ADMIN if is_admin else Role.MEMBER
        return None

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        path, me, listed = f"channels/{thread_of(chat.native)[0]}/members", await self._me(), list[str]()
        for page in range(MOST_CACHED // _PAGE):
            found = await self._api.call("GET", path, params={"page": page, "per_page": _PAGE})
            listed += [one["user_id"] for one in found]
            if len(found) < _PAGE:
                break
        return [self._member(one) for one in listed if one != me]

    async def leave(self, chat: ChatRef) -> None:
        channel, _ = thread_of(chat.native)
        with unless(404):
            await self._api.call("DELETE", f"channels/{channel}/members/{await self._me()}")

    measures = frozenset({Measure.KICK, Measure.PIN, Measure.INVITE})

    async def moderate(self, request: ModerationRequest) -> str:
        channel, _ = thread_of(request.chat.native)
        match request.measure:
            case Measure.KICK:
                await self._api.call("DELETE", f"channels/{channel}/members/{quote(request.who, safe='')}")
            case Measure.INVITE:
                await self._api.call("POST", f"channels/{channel}/members", json={"user_id": request.who})
            case _:
                await self._api.call("POST", f"posts/{quote(request.message_id, safe='')}/pin")
        return ""

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Mattermost has no replies except threads, so `reply_to` has no effect."""
        me, (channel, root) = await self._me(), thread_of(outgoing.chat.native)
        if outgoing.private_to is not None:
            ids, root = [me, outgoing.private_to.native], ""
            channel = (await self._api.call("POST", "channels/direct", json=ids))["id"]
        if len(outgoing.uploads) > _FILES:
            raise SendFailed(f"a post has at most {_FILES} files", retryable=False)
        files = [await self._uploaded(channel, one) for one in outgoing.uploads]
        post = {"channel_id": channel, "root_id": root, "message": await self._text(outgoing), "file_ids": files}
        sent = await self._api.call("POST", "posts", json={**post, "pending_post_id": f"{me}:{outgoing.key}"})
        return Receipt(str(sent["id"]))

    async def _uploaded(self, channel: str, file: Attachment) -> str:
        """The id of a file on the server. Raises SendFailed."""
        form = form_with({"channel_id": channel}, "files", file)
        return str((await self._api.call("POST", "files", data=form, seconds=FILE_SECONDS))["file_infos"][0]["id"])

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        await self._api.call("PUT", f"posts/{native_id}/patch", json={"message": await self._text(outgoing)})

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        try:
            with unless(404):
                await self._api.call("DELETE", f"posts/{native_id}")
        except Refused as problem:
            # The server does not say of a missing post that it is missing.
            if problem.status != 403 or await self._api.found(f"posts/{native_id}"):
                raise

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        """Only common emoji, and `:name:`, have a name at Mattermost."""
        me, name = await self._me(), COMMON.name(emoji, "Mattermost")
        name = name.removesuffix("_face") if name in ("thinking_face", "robot_face") else name
        if name:
            await self._api.call("POST", "reactions", json={"user_id": me, "post_id": native_id, "emoji_name": name})
        else:
            for one in await self._api.call("GET", f"posts/{native_id}/reactions") or ():
                if one["user_id"] == me:
                    with unless(404):
                        path = f"users/{me}/posts/{native_id}/reactions/{one['emoji_name']}"
                        await self._api.call("DELETE", path)

    async def typing(self, chat: ChatRef, status: str) -> None:
        if self._socket is not None and status:
            self._requests += 1
            channel, root = thread_of(chat.native)
            data = {"channel_id": channel, "parent_id": root}
            with suppress(aiohttp.ClientError, OSError):
                await self._socket.send_json({"seq": self._requests, "action": "user_typing", "data": data})

    async def _text(self, outgoing: Outgoing) -> str:
        """The message of a post, with its mentions and links. Raises SendFailed."""
        names = []
        for member in () if outgoing.private_to else outgoing.mentions:
            if member.native not in self._reader.users:
                self._know(await self._api.found(f"users/{member.native}"))
            if member.native in self._reader.users:
                names.append(f"@{self._reader.users[member.native]['username']} ")
        return "".join(names) + message_of(outgoing.text + outgoing.links, markdown=outgoing.markdown)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        path = f"files/{attachment.url.partition(':')[2]}"
        try:
            check_size((await self._api.call("GET", f"{path}/info"))["size"], max_bytes)
            return await self._api.download(path, max_bytes)
        except SendFailed as problem:
            raise FileUnavailable(str(problem)) from None


_EVENTS = ("posted", "post_edited", "post_deleted", "reaction_added", "user_added", "user_removed")


def _place(post: JsonObject) -> JsonObject:
    """The fields of a post that the reader uses."""
    return {key: post.get(key) for key in ("root_id", "user_id", "channel_id")}


def message_of(text: str, *, markdown: bool) -> str:
    """`text`, Markdown or to be shown exactly, for a post. It mentions nobody, and shows no images: clients would
    fetch them."""
    parts = _CODE.split(text) if markdown else [text]
    return "".join(
        _IN_CODE.sub(_INVISIBLE, part) if number % 2 else _outside(part, markdown) for number, part in enumerate(parts)
    )


def _outside(text: str, markdown: bool) -> str:
    shown = []
    for number, part in enumerate(_URL.split(_IMAGE.sub("", text) if markdown else text)):
        if number % 2:
            part = re.sub(r"(?<![A-Za-z0-9])@", "%40", part)
        elif markdown:
            part = _IN_TEXT.sub(_INVISIBLE, part)
        else:
            part = _MARK.sub(r"\\\1", _IN_PLAIN.sub(_INVISIBLE, part))
        shown.append(part)
    return "".join(shown)


async def probe(settings: MattermostSettings, _clock: Clock) -> str:
    """See `Adapter.probe`."""
    api = _Api(settings)
    async with probing(api.close, "Check url and token, and that tokens are enabled on the server"):
        me = await api.call("GET", "users/me")
        teams = await api.call("GET", "users/me/teams")
        await (await api.socket()).close()
    kind = "" if me.get("is_bot") else "; this is a member's account, and a bot account is better"
    places = f" in {', '.join(one['display_name'] for one in teams)}" if teams else "; it is in no team: add it to one"
    return f"connected as @{me['username']}{places}{kind}"


ADAPTER = Adapter(MattermostSettings, MattermostPlatform, probe, asks=("url", "token"))
