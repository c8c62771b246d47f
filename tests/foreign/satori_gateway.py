"""A gateway of satori-python-server. Arguments: port and token. Answers commands; both are lines of JSON."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import sys
from datetime import UTC, datetime
from typing import Any

from launart import Launart
from satori import (
    Api,
    Channel,
    ChannelType,
    EmojiObject,
    Event,
    EventType,
    Guild,
    Login,
    Member,
    MessageObject,
    Role,
    User,
)
from satori.exception import BadRequestException, ForbiddenException, NotFoundException, ServerException
from satori.model import ButtonInteraction, LoginStatus
from satori.parser import Element, parse
from satori.server import Adapter, Request, Response, Server, StreamingResponse

PLATFORM = "tests"
FAILURES = {
    "server error": ServerException,
    "removed": ForbiddenException,
    "no such chat": NotFoundException,
}


class Network:
    """The network as one account sees it: a group, private chats, and more groups that the account is added to."""

    def __init__(self, account: str) -> None:
        self.login = Login(platform=PLATFORM, user=User(account, name="Rollcall"), features=[])
        self.group = f"family-{account}"
        self.groups = {self.group}
        self.roles: dict[str, list[str]] = {"ann": [], "ben": [], "robot": []}
        self.messages: dict[str, MessageObject] = {}
        self.reactions: list[tuple[str, str, str]] = []
        self.failure = ""


class TestNetworks(Adapter):
    """Serves the API for all networks."""

    def __init__(self) -> None:
        super().__init__()
        self.networks: dict[str, Network] = {}
        self.numbers = itertools.count(1)
        for api in (Api.MESSAGE_CREATE, Api.MESSAGE_GET, Api.MESSAGE_UPDATE, Api.MESSAGE_DELETE, Api.REACTION_CREATE):
            self.route(api)(getattr(self, api.name.lower()))
        for api in (Api.REACTION_DELETE, Api.CHANNEL_LIST, Api.GUILD_MEMBER_GET):
            self.route(api)(getattr(self, api.name.lower()))
        self.route(Api.USER_CHANNEL_CREATE)(self.user_channel_create)

    @property
    def required(self) -> set[str]:
        return set()

    @property
    def stages(self) -> set[str]:
        return {"blocking"}

    def get_platform(self) -> str:
        return PLATFORM

    def ensure(self, platform: str, self_id: str) -> bool:
        return platform == PLATFORM and self_id in self.networks

    async def get_logins(self) -> list[Login]:
        return [one.login for one in self.networks.values()]

    async def handle_internal(self, request: Request, path: str) -> Response:
        if path == "big":
            return Response(b"x" * 100_000)
        if path == "unsized":
            return StreamingResponse(b"x" * 1000 for _ in range(100))
        if path == "moved":
            return Response(status_code=302, headers={"Location": "big"})
        return Response(base64.b64decode(path.rpartition("/")[2]))

    # API

    async def message_create(self, request: Request) -> Any:
        network, content = self.networks[request.self_id], request.params["content"]
        failure, network.failure = network.failure, ""
        if failure == "rate limited":
            return Response(status_code=429, headers={"Retry-After": "7"})
        if failure in FAILURES:
            raise FAILURES[failure](failure)
        kinds = {one.type for one in every(parse(content))}
        if (failure == "reply is gone" and "quote" in kinds) or (failure == "bad markup" and kinds & {"b", "i"}):
            network.failure = failure
            raise BadRequestException(failure)
        channel = request.params["channel_id"]
        if channel not in network.groups and not channel.startswith("private:"):
            raise NotFoundException(channel)
        message = MessageObject(f"m{next(self.numbers)}", content, place(channel), user=network.login.user)
        network.messages[message.id] = message
        if failure == "delivered without answer":

            async def broken() -> Any:
                yield b"["
                raise ConnectionError

            return StreamingResponse(broken())
        event = self.event(network, EventType.MESSAGE_CREATED, message.channel, message=message, user=message.user)
        await self.server.post(event)
        return [message]

    def found(self, request: Request) -> MessageObject:
        messages = self.networks[request.self_id].messages
        message = messages.get(request.params["message_id"])
        if message is None or message.channel.id != request.params["channel_id"]:
            raise NotFoundException("no such message")
        return message

    async def message_get(self, request: Request) -> Any:
        return self.found(request)

    async def message_update(self, request: Request) -> Any:
        self.found(request).content = request.params["content"]
        return {}

    async def message_delete(self, request: Request) -> Any:
        del self.networks[request.self_id].messages[self.found(request).id]
        return {}

    async def reaction_create(self, request: Request) -> Any:
        message = self.found(request)
        self.networks[request.self_id].reactions.append((message.id, request.self_id, request.params["emoji_id"]))
        return {}

    async def reaction_delete(self, request: Request) -> Any:
        given = (request.params["message_id"], request.params["user_id"], request.params["emoji_id"])
        self.networks[request.self_id].reactions.remove(given)
        return {}

    async def channel_list(self, request: Request) -> Any:
        group = request.params["guild_id"].removeprefix("guild-")
        return {"data": [{"id": "rooms", "type": 2}, place(group).dump(), place(f"news-{group}").dump()]}

    async def guild_member_get(self, request: Request) -> Any:
        roles = self.networks[request.self_id].roles
        who = request.params["user_id"]
        if who not in roles or not request.params["guild_id"].startswith("guild-"):
            raise NotFoundException("no such member")
        return Member(User(who, name=who.title()), roles=[Role(one, name="Group") for one in roles[who]])

    async def user_channel_create(self, request: Request) -> Any:
        if request.params["user_id"] == "stranger":
            raise ForbiddenException("no friend")
        return place(f"private:{request.params['user_id']}")

    # Commands

    def event(self, network: Network, kind: str, channel: Channel | None = None, **facts: Any) -> Event:
        guild = None
        if channel is not None and channel.type is not ChannelType.DIRECT:
            guild = Guild(f"guild-{channel.id}", "Family")
        return Event(kind, datetime.now(UTC), network.login, channel=channel, guild=guild, **facts)

    async def do(self, command: dict[str, Any]) -> Any:
        kind, account = command.pop("do"), command.pop("account")
        if kind == "open":
            self.networks[account] = Network(account)
        network = self.networks[account]
        return await getattr(self, f"do_{kind}")(network, **command)

    async def do_open(self, network: Network) -> None:
        # Event 0 must be no message, because the server repeats nothing after the number before it.
        await self.server.post(self.event(network, EventType.LOGIN_UPDATED))

    async def do_drop(self, network: Network) -> None:
        del self.networks[network.login.id]

    async def do_say(
        self,
        network: Network,
        who: str,
        text: str,
        chat: str,
        mention: bool,
        reply_to: str,
        file: list[str] | None,
        raw: str,
    ) -> str:
        elements = [Element("quote", {"id": reply_to})] if reply_to else []
        if mention:
            elements += [Element("at", {"id": network.login.id}), Element("text", {"text": " "})]
        elements.append(Element("text", {"text": text}))
        if file:
            name, content = file
            source = f"internal:{PLATFORM}/{network.login.id}/{name}/{content}"
            elements.append(Element("img", {"src": source, "title": name}))
        user = User(who, name=who.title(), is_bot=who == "robot") if who else None
        content = raw or "".join(map(str, elements))
        message = MessageObject(f"m{next(self.numbers)}", content, created_at=datetime.now(UTC))
        message.channel, message.user = place(chat or network.group), user
        network.messages[message.id] = message
        member = Member(user, roles=[Role(one) for one in network.roles.get(who, [])])
        facts = {"message": MessageObject(message.id, content, created_at=message.created_at), "user": user}
        await self.server.post(self.event(network, EventType.MESSAGE_CREATED, message.channel, member=member, **facts))
        return message.id

    async def do_edit(self, network: Network, who: str, native_id: str, text: str) -> None:
        message = MessageObject(native_id, str(Element("text", {"text": text})), updated_at=datetime.now(UTC))
        channel = place(network.group)
        await self.server.post(self.event(network, EventType.MESSAGE_UPDATED, channel, message=message, user=User(who)))

    async def do_delete(self, network: Network, who: str, native_id: str) -> None:
        message, channel = MessageObject(native_id), place(network.group)
        await self.server.post(
            self.event(network, EventType.MESSAGE_DELETED, channel, message=message, user=User(who), operator=User(who))
        )

    async def do_react(self, network: Network, who: str, native_id: str, emoji: str) -> None:
        facts = {"message": MessageObject(native_id), "user": User(who), "emoji": EmojiObject(emoji)}
        await self.server.post(self.event(network, EventType.REACTION_ADDED, place(network.group), **facts))

    async def do_press(self, network: Network, who: str, native_id: str, label: str) -> None:
        (pressed,) = [one for one in buttons(network.messages[native_id].content) if one.dumps(strip=True) == label]
        assert pressed.attrs["type"] == "action"
        facts = {
            "message": MessageObject(native_id),
            "user": User(who),
            "button": ButtonInteraction(pressed.attrs["id"]),
        }
        await self.server.post(self.event(network, EventType.INTERACTION_BUTTON, place(network.group), **facts))

    async def do_enter(self, network: Network, who: str) -> None:
        network.roles[who] = []
        await self.moved(network, EventType.GUILD_MEMBER_ADDED, User(who, name=who.title()))

    async def do_leave(self, network: Network, who: str) -> None:
        del network.roles[who]
        await self.moved(network, EventType.GUILD_MEMBER_REMOVED, User(who))

    async def moved(self, network: Network, kind: EventType, user: User) -> None:
        event = self.event(network, kind, user=user, member=Member(user))
        event.guild = Guild(f"guild-{network.group}")
        await self.server.post(event)

    async def do_add_bot(self, network: Network, who: str) -> str:
        group = f"other-{network.login.id}"
        network.groups.add(group)
        event = self.event(network, EventType.GUILD_ADDED, operator=User(who, name=who.title()))
        event.guild = Guild(f"guild-{group}")
        await self.server.post(event)
        return f"guild-{group}/{group}"

    async def do_promote(self, network: Network, who: str, roles: list[str]) -> None:
        network.roles[who] = roles

    async def do_status(self, network: Network, status: int) -> None:
        network.login.status = LoginStatus(status)
        await self.server.post(self.event(network, EventType.LOGIN_UPDATED))

    async def do_repeat(self, network: Network) -> None:
        await self.do_frame(network, {"op": 0, "body": self.server._event_cache.data[-1].dump()})

    async def do_frame(self, network: Network, frame: Any) -> None:
        """Send any frame."""
        for connection in self.server.connections:
            await connection.connection.send_text(frame if isinstance(frame, str) else json.dumps(frame))

    async def do_disconnect(self, network: Network) -> None:
        for connection in list(self.server.connections):
            await connection.connection.close(1001)
            await connection.connection_closed()

    async def do_fail_next(self, network: Network, failure: str) -> None:
        network.failure = failure

    async def do_shown(self, network: Network, chat: str) -> list[dict[str, Any]]:
        mine = [one for one in network.messages.values() if one.user and one.user.id == network.login.id]
        return [self.shown(one) for one in mine if one.channel.id == (chat or network.group)]

    async def do_reactions(self, network: Network, native_id: str) -> list[str]:
        return [emoji for message, who, emoji in network.reactions if (message, who) == (native_id, network.login.id)]

    async def do_content(self, network: Network, native_id: str) -> str:
        return network.messages[native_id].content

    def shown(self, message: MessageObject) -> dict[str, Any]:
        elements = parse(message.content)
        files = [self.server.get_local_file(one.attrs["src"]) for one in every(elements) if "src" in one.attrs]
        return {
            "text": "".join(text_of(one) for one in elements),
            "native_id": message.id,
            "buttons": [one.dumps(strip=True) for one in buttons(message.content)],
            "reply_to": next((one.attrs["id"] for one in elements if one.type == "quote"), ""),
            "files": [base64.b64encode(one).decode() for one in files if one is not None],
        }

    async def launch(self, manager: Launart) -> None:
        async with self.stage("blocking"):
            reader = asyncio.StreamReader(limit=2**24)
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
            while line := await reader.readline():
                try:
                    answer = {"result": await self.do(json.loads(line))}
                except Exception as error:  # noqa: BLE001 - the test reports it
                    answer = {"error": repr(error)}
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()


def place(channel: str) -> Channel:
    is_direct = channel.startswith("private:")
    return Channel(channel, ChannelType.DIRECT if is_direct else ChannelType.TEXT, None if is_direct else "Family")


def every(elements: list[Element]) -> list[Element]:
    return [each for one in elements for each in (one, *every(one.children))]


def buttons(content: str) -> list[Element]:
    return [one for one in every(parse(content)) if one.type == "button"]


def text_of(element: Element) -> str:
    if element.type in ("quote", "button"):
        return ""
    if element.type == "br":
        return "\n"
    if element.type == "at":
        return f"@{element.attrs.get('id') or element.attrs.get('type')}"
    return element.attrs.get("text", "") if element.type == "text" else "".join(map(text_of, element.children))


if __name__ == "__main__":
    server = Server(port=int(sys.argv[1]), token=sys.argv[2], path="satori")
    server.apply(TestNetworks())
    server.run()
