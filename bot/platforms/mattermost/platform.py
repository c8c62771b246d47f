"""Mattermost as a network: events over its WebSocket, everything else over the REST API."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

import aiohttp
import structlog

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed, thread_of
from bot.platforms.connection import CannotConnect, ConnectedPlatform
from bot.platforms.mattermost.adapter import MattermostSettings
from bot.platforms.mattermost.inbound import PLATFORM, Reader, adds, record_of, usernames
from bot.platforms.mattermost.text import emoji_name, message_of
from function_calls.context import Attachment
from services.refs import ChatRef, JsonObject, MemberRef, Role
from services.web.content import data_in

_log = structlog.get_logger("platforms")
_ANSWER_SECONDS, _SILENCE_SECONDS = 30.0, 120.0
_PROFILE_SECONDS = 3600.0
_FOR_FILES = aiohttp.ClientTimeout(300.0)
_MOST_CACHED, _MOST_MENTIONS = 2000, 50
_LONGEST_GAP_MS, _CLOCKS_DIFFER_MS = 7 * 86_400_000, 60_000
_FILES, _PAGE, _POSTS_SINCE = 10, 200, 1000
"""Files of a post, items of a page, and posts of an answer to `since`."""
_Value = TypeVar("_Value")


class MattermostError(SendFailed):
    """The server answered a request with an error. `status`: of HTTP."""

    def __init__(self, answer: aiohttp.ClientResponse, code: str, *, is_post: bool) -> None:
        """`code`: name of the error; empty if there is none. `is_post`: the request makes a post."""
        self.status, is_limited = answer.status, answer.status == 429
        seconds = str(answer.headers.get("Retry-After") or answer.headers.get("X-RateLimit-Reset"))
        super().__init__(
            f"Mattermost answered HTTP {self.status}"
            + (f", {code}" if re.fullmatch(r"[a-z0-9_.]{1,99}", code) else ""),
            retryable=is_limited or self.status in (408, 500) or self.status > 501,
            retry_after_seconds=(float(seconds) if seconds.isdecimal() else _ANSWER_SECONDS) if is_limited else None,
            unknown_outcome=is_post and self.status in (502, 504),
            for_account=is_limited,
        )


class _Web:
    """The REST API with the token of one account. Opens its session with the first request."""

    def __init__(self, settings: MattermostSettings) -> None:
        self._url, self._token = settings.url, settings.token.get_secret_value()
        self._session: aiohttp.ClientSession | None = None

    def request(self, method: str, path: str, **options: Any) -> Any:
        """A request; `path` is below the API. Raises SendFailed if a part of it is no id."""
        if self._session is None:
            # A session cookie would have precedence over the token.
            jar, limit = aiohttp.DummyCookieJar(), aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
            headers = {"Authorization": f"Bearer {self._token}"}
            self._session = aiohttp.ClientSession(headers=headers, cookie_jar=jar, timeout=limit)
        if re.fullmatch(r"[\w/+-]+", path, re.ASCII) is None:
            raise SendFailed("not an id of Mattermost", retryable=False)
        return self._session.request(method, f"{self._url}/api/v4/{path}", allow_redirects=False, **options)

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """The answer to a request. Raises SendFailed, MattermostError for one of the server."""
        is_post = (method, path) == ("POST", "posts")
        try:
            async with self.request(method, path, **options) as answer:
                if answer.status >= 300:
                    raise MattermostError(answer, await _error_code(answer), is_post=is_post)
                return await answer.json()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise SendFailed("Mattermost is unreachable", retryable=True) from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise SendFailed("Mattermost did not answer", retryable=True, unknown_outcome=is_post) from None

    async def found(self, path: str) -> Any:
        """The answer to a GET request; empty if the server does not show it to the bot. Raises SendFailed."""
        try:
            return await self.call("GET", path)
        except SendFailed as problem:
            if problem.retryable:
                raise
            return {}

    async def socket(self) -> aiohttp.ClientWebSocketResponse:
        """A new WebSocket after its greeting. Raises CannotConnect."""
        assert self._session is not None
        limit = aiohttp.ClientWSTimeout(ws_close=2.0)
        try:
            socket = await self._session.ws_connect(
                f"{self._url.replace('http', 'ws', 1)}/api/v4/websocket",
                heartbeat=_ANSWER_SECONDS,
                autoping=False,
                timeout=limit,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise CannotConnect(f"{type(error).__name__} at the WebSocket") from None
        problem, is_greeted = "the WebSocket rejects the token", False
        try:
            await socket.send_json({"seq": 1, "action": "authentication_challenge", "data": {"token": self._token}})
            frame: JsonObject = {}
            while not is_greeted and frame.get("status") != "FAIL":
                frame = _parsed(await socket.receive_str(timeout=_ANSWER_SECONDS))
                is_greeted = frame.get("event") == "hello" and frame.get("seq") == 0
        except (aiohttp.ClientError, OSError) as error:
            problem = f"{type(error).__name__} at the WebSocket"
        except TypeError:  # it was closed instead
            pass
        finally:
            if not is_greeted:
                await socket.close()
        if not is_greeted:
            raise CannotConnect(problem)
        return socket

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


class MattermostPlatform(ConnectedPlatform):
    """One account of the bot on a server."""

    name = PLATFORM
    limits = Limits(
        text_chars=4000,
        # The server remembers `pending_post_id` for 30 seconds only.
        sends_are_idempotent=False,
        sends_per_minute=120,
        choices=False,
        attachments=True,
        clients_keep_slashes=True,
        markdown=True,
        catches_up=True,
        file_bytes=50_000_000,
    )

    def __init__(self, settings: MattermostSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self._clock, self._web = host.clock, _Web(settings)
        self._reader = Reader(settings.account, self._hear, host.names[0])
        self._read_at: dict[str, float] = {}
        """Time of reading of each cached user."""
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._latest, self._requests = 0, 1
        """Time of the latest accepted post, as in the cursor, and number of requests over the WebSocket."""

    async def _connected(self, deliver: Deliver) -> None:
        """Accept the events of one connection, after those of the gap before it. Raises what ends it."""
        try:
            await self._fill_gap(deliver)
            socket = self._socket = await self._web.socket()
            try:
                # Again, for what came while the gap was filled.
                await self._fill_gap(deliver)
                self._connection.up()
                await self._receive(deliver, socket)
            finally:
                self._socket = None
                await socket.close()
        except SendFailed as problem:
            raise CannotConnect(str(problem)) from None

    async def _receive(self, deliver: Deliver, socket: aiohttp.ClientWebSocketResponse) -> None:
        expected = 1
        while True:
            frame = await socket.receive()
            self._connection.heard()
            if frame.type is aiohttp.WSMsgType.PING:
                await socket.pong(frame.data)
            elif frame.type is aiohttp.WSMsgType.TEXT:
                event = _parsed(frame.data)
                if "seq_reply" in event:
                    continue
                if event.get("seq", expected) != expected:
                    raise CannotConnect("Mattermost has left out events")
                expected += "seq" in event
                await self._take(deliver, event)
            elif frame.type is not aiohttp.WSMsgType.PONG:
                raise CannotConnect("Mattermost closed the connection")

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
            _keep(reader.posts, record["id"], {key: record.get(key) for key in ("root_id", "user_id", "channel_id")})
        if user == reader.me["id"] or event["event"] not in _EVENTS:
            return
        post = record.get("root_id") or record.get("post_id")
        if post and post not in reader.posts and (found := await self._web.found(f"posts/{post}")):
            _keep(reader.posts, post, {key: found.get(key) for key in ("root_id", "user_id", "channel_id")})
        channel = record.get("channel_id") or (event.get("broadcast") or {}).get("channel_id")
        if channel and channel not in reader.channels and (found := await self._web.found(f"channels/{channel}")):
            _keep(reader.channels, channel, found)
        if user and self._clock.monotonic() - self._read_at.get(user, -_PROFILE_SECONDS) >= _PROFILE_SECONDS:
            self._know(await self._web.found(f"users/{user}"))
        names = [one for one in dict.fromkeys(usernames(record.get("message") or "")) if one not in reader.ids]
        if names:
            for found in await self._web.call("POST", "users/usernames", json=names[:_MOST_MENTIONS]):
                self._know(found)

    def _know(self, user: JsonObject) -> None:
        if user:
            _keep(self._reader.users, user["id"], user)
            _keep(self._reader.ids, user["username"], user["id"])
            _keep(self._read_at, user["id"], self._clock.monotonic())

    async def _me(self) -> str:
        """The bot's id. Raises SendFailed."""
        if not self._reader.me:
            self._reader.me = await self._web.call("GET", "users/me")
            self._reader.ids[self._reader.me["username"]] = self._reader.me["id"]
        return str(self._reader.me["id"])

    # Gaps

    async def _fill_gap(self, deliver: Deliver) -> None:
        """Accept what came since the cursor, in order. At the first start, set the cursor to the latest post."""
        known, channels = await self._cursor.read(), await self._web.call("GET", f"users/{await self._me()}/channels")
        self._reader.channels.update((one["id"], one) for one in channels)
        if known is None:
            known = str(max((one["last_post_at"] for one in channels), default=0) + 1)
            await self._cursor.keep(known)
        self._latest = int(known)
        since, missed = max(self._latest, self._clock.now_ms() - _LONGEST_GAP_MS), list[JsonObject]()
        for channel in channels:
            if channel["last_post_at"] >= since:
                try:
                    missed += await self._missed(channel["id"], since)
                except MattermostError as problem:
                    if problem.retryable:
                        raise
                    _log.error("gap_not_filled", network=PLATFORM, channel=channel["id"], problem=str(problem))
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
            self._connection.heard()
            try:
                posts = (await self._web.call("GET", f"channels/{channel}/posts", params=query))["posts"]
            except MattermostError as problem:
                if problem.retry_after_seconds is None:
                    raise
                await self._clock.sleep(min(problem.retry_after_seconds, _SILENCE_SECONDS / 2))
                continue
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
        """See ChatPlatform. Administrators of the server are OWNER, those of the team or the channel ADMIN; bots and
        guests are MEMBER."""
        channel, _ = thread_of(chat.native)
        with suppress(SendFailed, LookupError, TypeError):
            inside = await self._web.call("GET", f"channels/{channel}/members/{member.native}")
            user = await self._web.call("GET", f"users/{member.native}")
            if user.get("delete_at") or user["id"] != member.native:
                return None
            if user.get("is_bot") or "system_guest" in user["roles"].split():
                return Role.MEMBER
            if "system_admin" in user["roles"].split():
                return Role.OWNER
            team = (await self._web.call("GET", f"channels/{channel}")).get("team_id")
            both = [inside, await self._web.found(f"teams/{team}/members/{member.native}") if team else {}]
            is_admin = any(
                one.get("scheme_admin") or re.search(r"\b(?:team|channel)_admin\b", one.get("roles") or "")
                for one in both
            )
            return Role.ADMIN if is_admin else Role.MEMBER
        return None

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        """See Membership."""
        path, me, listed = f"channels/{thread_of(chat.native)[0]}/members", await self._me(), list[str]()
        for page in range(_MOST_CACHED // _PAGE):
            found = await self._web.call("GET", path, params={"page": page, "per_page": _PAGE})
            listed += [one["user_id"] for one in found]
            if len(found) < _PAGE:
                break
        return [MemberRef(PLATFORM, self.account, one) for one in listed if one != me]

    async def leave(self, chat: ChatRef) -> None:
        """See Membership."""
        channel, _ = thread_of(chat.native)
        await self._unless_gone("DELETE", f"channels/{channel}/members/{await self._me()}")

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        """See ChatPlatform. Mattermost has no replies except threads, so `reply_to` has no effect."""
        me, (channel, root) = await self._me(), thread_of(outgoing.chat.native)
        if outgoing.private_to is not None:
            ids, root = [me, outgoing.private_to.native], ""
            channel = (await self._web.call("POST", "channels/direct", json=ids))["id"]
        files = [await self._uploaded(channel, one) for one in outgoing.attachments if one.url.startswith("data:")]
        if len(files) > _FILES:
            raise SendFailed(f"a post has at most {_FILES} files", retryable=False)
        post = {"channel_id": channel, "root_id": root, "message": await self._text(outgoing), "file_ids": files}
        sent = await self._web.call("POST", "posts", json={**post, "pending_post_id": f"{me}:{outgoing.key}"})
        return Receipt(str(sent["id"]))

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        """See Editing."""
        await self._web.call("PUT", f"posts/{native_id}/patch", json={"message": await self._text(outgoing)})

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        """See Editing."""
        try:
            await self._unless_gone("DELETE", f"posts/{native_id}")
        except MattermostError as problem:
            # The server does not say of a missing post that it is missing.
            if problem.status != 403 or await self._web.found(f"posts/{native_id}"):
                raise

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        """See Reacting. Only common emoji, and `:name:`, have a name at Mattermost."""
        me, name = await self._me(), emoji_name(emoji)
        if name:
            await self._web.call("POST", "reactions", json={"user_id": me, "post_id": native_id, "emoji_name": name})
        elif emoji:
            raise SendFailed("Mattermost has no name for this emoji", retryable=False)
        else:
            for one in await self._web.call("GET", f"posts/{native_id}/reactions") or ():
                if one["user_id"] == me:
                    await self._unless_gone("DELETE", f"users/{me}/posts/{native_id}/reactions/{one['emoji_name']}")

    async def typing(self, chat: ChatRef, status: str) -> None:
        """See ChatPlatform."""
        if self._socket is not None and status:
            self._requests += 1
            channel, root = thread_of(chat.native)
            data = {"channel_id": channel, "parent_id": root}
            with suppress(aiohttp.ClientError, OSError):
                await self._socket.send_json({"seq": self._requests, "action": "user_typing", "data": data})

    async def close(self) -> None:
        """See ChatPlatform."""
        await self._web.close()

    async def _unless_gone(self, method: str, path: str) -> None:
        try:
            await self._web.call(method, path)
        except MattermostError as problem:
            if problem.status != 404:
                raise

    async def _text(self, outgoing: Outgoing) -> str:
        """The message of a post, with its mentions and links. Raises SendFailed."""
        links = [f"{one.name}: {one.url}" for one in outgoing.attachments if one.url.startswith("https:")]
        names = []
        for member in () if outgoing.private_to else outgoing.mentions:
            if member.native not in self._reader.users:
                self._know(await self._web.found(f"users/{member.native}"))
            if member.native in self._reader.users:
                names.append(f"@{self._reader.users[member.native]['username']} ")
        return "".join(names) + message_of("\n".join(filter(None, [outgoing.text, *links])), markdown=outgoing.markdown)

    # Files

    async def _uploaded(self, channel: str, attachment: Attachment) -> str:
        """The id of a file on the server. Raises SendFailed."""
        form = aiohttp.FormData({"channel_id": channel})
        content = data_in(attachment.url) or b""
        form.add_field("files", content, filename=attachment.name, content_type=attachment.media_type or None)
        return str((await self._web.call("POST", "files", data=form, timeout=_FOR_FILES))["file_infos"][0]["id"])

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        """See Files."""
        path, content = f"files/{attachment.url.partition(':')[2]}", bytearray()
        try:
            size = (await self._web.call("GET", f"{path}/info"))["size"]
            if size > max_bytes:
                raise FileUnavailable(f"the file has {size} bytes, more than {max_bytes}")
            async with self._web.request("GET", path, timeout=_FOR_FILES) as answer:
                if answer.status != 200:
                    raise FileUnavailable(f"Mattermost answered HTTP {answer.status}")
                async for chunk in answer.content.iter_chunked(65_536):
                    content += chunk
                    if len(content) > max_bytes:
                        raise FileUnavailable(f"the file has more than {max_bytes} bytes")
        except (SendFailed, aiohttp.ClientError, OSError, LookupError) as error:
            words = str(error) if isinstance(error, SendFailed) else type(error).__name__
            raise FileUnavailable(f"the file cannot be read: {words}") from None
        return bytes(content)


_EVENTS = ("posted", "post_edited", "post_deleted", "reaction_added", "user_added", "user_removed")


def _keep(cache: dict[str, _Value], key: str, value: _Value) -> None:
    """Put `value` at the end of a cache, dropping the oldest entries above its limit."""
    cache.pop(key, None)
    cache[key] = value
    if len(cache) > _MOST_CACHED:
        del cache[next(iter(cache))]


def _parsed(frame: str) -> JsonObject:
    """A frame as an object; one that is none becomes an event that cannot be read."""
    with suppress(ValueError):
        if isinstance(event := json.loads(frame), dict):
            return event
    return {"unreadable": frame}


async def _error_code(answer: aiohttp.ClientResponse) -> str:
    with suppress(ValueError, TypeError, LookupError, aiohttp.ClientError):
        return str((await answer.json())["id"])
    return ""


async def probe(settings: MattermostSettings) -> str:
    """See `Adapter.probe`."""
    web = _Web(settings)
    try:
        me = await web.call("GET", "users/me")
        teams = await web.call("GET", "users/me/teams")
        await (await web.socket()).close()
    except (SendFailed, CannotConnect) as problem:
        raise CannotOpen(f"{problem}. Check url and token, and that tokens are enabled on the server") from None
    finally:
        await web.close()
    kind = "" if me.get("is_bot") else "; this is a member's account, and a bot account is better"
    places = f" in {', '.join(one['display_name'] for one in teams)}" if teams else "; it is in no team: add it to one"
    return f"connected as @{me['username']}{places}{kind}"
