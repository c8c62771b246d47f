"""The daemon under test, in a separate process: network, model and effects of functions are in the test process, over a
connection; everything else is real."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from pydantic import BaseModel, Field

from bot.daemon import Daemon, build_daemon
from bot.database.opening import open_store
from bot.live.settings import Reload
from bot.overrides import Overrides
from bot.platforms.base import Deliver, Limits, Outgoing, Receipt
from bot.platforms.mentions import mention_parser
from bot.testing import SpecSource
from config.settings import Settings
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.declaration import tool_function
from function_calls.loading.source import FunctionSource
from services.clock import SystemClock
from services.fault_points import FaultPoints
from services.llm.model import ModelAnswer, ModelRequest, answer_from_json, message_to_json
from services.refs import ChatRef, JsonObject, MemberRef, Role
from services.store.ids import Ids
from services.timers.timetable import Draft, TimerKind, Timetable
from services.times.recurrence import Once, Rule
from tests.harness.wire import Peer

NETWORK = "outside"
ACCOUNT = "bot"
NAME = "Rollcall"
SOON_SECONDS = 0.1
TICK_SECONDS = 0.02
ABANDONED = 71
"""Exit status of a daemon whose test process has ended."""
BROKEN = 72
"""Exit status of a daemon whose store failed."""
Reach = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters of a process."""

    home: str
    port: int
    """Port of the test process on 127.0.0.1."""
    sends_are_idempotent: bool = True
    faults: str = ""
    """Enabled fault points, as in ROLLCALL_FAULTS."""
    store_url: str = ""
    """URL of a database server; empty: a file in `home`."""
    can_edit: bool = False
    """The network lets the bot edit and delete its messages, and turns show their status at once."""

    def to_json(self) -> JsonObject:
        return asdict(self)


class OutsideNetwork:
    """Chat network in the test process."""

    name = NETWORK
    account = ACCOUNT

    def __init__(self, peer: Peer, reach: Reach, *, sends_are_idempotent: bool) -> None:
        self.limits = Limits(
            text_chars=4000, sends_are_idempotent=sends_are_idempotent, sends_per_minute=100_000, choices=False
        )
        self._peer = peer
        self._reach = reach
        self._deliver: asyncio.Future[Deliver] = asyncio.get_running_loop().create_future()

    async def run(self, deliver: Deliver) -> None:
        self._deliver.set_result(deliver)
        await asyncio.get_running_loop().create_future()

    async def receive(self, event: JsonObject) -> None:
        """Process a message, and acknowledge it after it is durable."""
        deliver = await self._deliver
        accepted = await deliver(_context(event), ())
        self._peer.tell("acknowledged", id=event["id"], accepted=accepted.value)
        self._reach("recv.after_ack")

    async def send(self, outgoing: Outgoing) -> Receipt:
        answer = await self._peer.begin("send", chat=outgoing.chat.native, key=outgoing.key, text=outgoing.text)
        return Receipt(answer["id"])

    async def typing(self, chat: ChatRef, status: str) -> None:
        return None

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        return None

    async def close(self) -> None:
        return None


class EditableNetwork(OutsideNetwork):
    """Chat network in the test process on which the bot can edit and delete its messages."""

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        await self._peer.begin("edit", id=native_id, text=outgoing.text)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        await self._peer.begin("delete", id=native_id)


class OutsideModel:
    """Language model in the test process."""

    name = "outside"

    def __init__(self, peer: Peer, reach: Reach) -> None:
        self._peer = peer
        self._reach = reach

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self._reach(f"asked.{request.messages[-1].content.rpartition(' ')[2]}")
        asked = self._peer.begin("complete", messages=[message_to_json(one) for one in request.messages])
        self._reach("llm.after_request_sent")
        return answer_from_json(await asked)

    async def probe(self) -> str:
        return "outside"

    async def close(self) -> None:
        return None


class Item(BaseModel, frozen=True):
    """What a function is about."""

    item: str = Field(description="The thing")


class Plans(BaseModel, frozen=True):
    """What is to be done, and how soon."""

    plan: str = Field(description="A function and a thing, such as `pay tea`")


def functions_of(peer: Peer, reach: Reach) -> list[object]:
    """One function of each effect, and one that schedules another. Their effects are recorded in the test process."""

    async def act(function: str, item: str, key: str) -> None:
        done = peer.begin("effect", function=function, item=item, key=key)
        reach("tool.during_call")
        reach(f"{function}.{item}")
        await done

    @tool_function(commands=("pay",), effect="once")
    async def pay(context: MessageContext, args: Item, *, call: Call) -> str:
        """Pay for something."""
        await act("pay", args.item, call.key)
        return f"Paid for {args.item}."

    @tool_function(commands=("keep",), effect="idempotent")
    async def keep(context: MessageContext, args: Item, *, call: Call) -> str:
        """Keep something."""
        await act("keep", args.item, call.key)
        return f"Kept {args.item}."

    @tool_function(commands=("soon",), effect="idempotent")
    async def soon(context: MessageContext, args: Plans, *, call: Call, timetable: Timetable) -> str:
        """Do something in a moment."""
        function, _, item = args.plan.partition(" ")
        at = SystemClock().now() + timedelta(seconds=SOON_SECONDS)
        draft = Draft(
            kind=TimerKind.REMINDER,
            bot=context.bot,
            chat=context.chat,
            is_group=context.is_group,
            private_to=None,
            owner=context.sender.ref,
            owner_name=context.sender.name,
            members=(),
            function=function,
            arguments={"item": item},
            title=item,
            rule=Rule(Once(at.replace(tzinfo=None))),
            zone="UTC",
        )
        await timetable.add([draft], call_key=call.key, most_per_owner=1000)
        return f"Soon: {args.plan}."

    return [pay, keep, soon]


async def serve(plan: Plan) -> int:
    """Run until SIGTERM; returns the exit status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plan.port)
    peer = Peer(reader, writer)
    faults = FaultPoints.parse(plan.faults)
    kind = EditableNetwork if plan.can_edit else OutsideNetwork
    network = kind(peer, faults.reach, sends_are_idempotent=plan.sends_are_idempotent)
    daemon = await _daemon(plan, peer, network, faults)

    async def handle(name: str, fields: JsonObject) -> JsonObject:
        if name == "deliver":
            await network.receive(fields)
        elif name == "settle":
            await daemon.settle()
        elif name == "reload":
            fresh = {
                "router": {"max_rounds": 5},
                "limits": {"queue_per_chat": 150},
                "language": "en-GB",
            }
            given = {**daemon.live.now.model_dump(), **fresh}
            await Reload(daemon.live, lambda: Settings.model_validate(given), faults).now()
        return {}

    listening = asyncio.create_task(peer.run(handle))
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await daemon.start()
    serving = asyncio.create_task(daemon.run())
    ticking = asyncio.create_task(_tick(daemon))
    peer.tell("ready")
    stopping = asyncio.create_task(told.wait())
    await asyncio.wait([stopping, listening], return_when=asyncio.FIRST_COMPLETED)
    if not told.is_set():
        return ABANDONED
    serving.cancel()
    ticking.cancel()
    await asyncio.wait([serving, ticking])
    await daemon.stop()
    listening.cancel()
    peer.close()
    return 0


async def _tick(daemon: Daemon) -> None:
    """Tick more often than the daemon's own ticker, to shorten tests."""
    while True:
        await daemon.timers.tick()
        await asyncio.sleep(TICK_SECONDS)


async def _daemon(plan: Plan, peer: Peer, network: OutsideNetwork, faults: FaultPoints) -> Daemon:
    settings = Settings.model_validate(
        {
            "home": plan.home,
            "logging": {"folder": f"{plan.home}/logs", "console": "off"},
            "chats": {"allow": [f"{NETWORK}:*"]},
            "store": {"url": plan.store_url},
            "router": {"status_after_seconds": 0.1 if plan.can_edit else 0},
        }
    )
    clock = SystemClock()

    def sources(services: Mapping[type, object]) -> Sequence[FunctionSource]:
        return [SpecSource(functions_of(peer, faults.reach), services)]

    given = Overrides(clock=clock, model=OutsideModel(peer, faults.reach), sources=sources, faults=faults)
    store = await open_store(settings, clock, lambda _: os._exit(BROKEN))
    return build_daemon(settings, store, [network], Ids(clock), Texts(), given)


def _context(event: JsonObject) -> MessageContext:
    chat = ChatRef(NETWORK, ACCOUNT, event["chat"])
    heard = mention_parser([NAME])(event["text"])
    return MessageContext(
        key=MessageKey(chat, event["id"]),
        kind=Kind.MESSAGE,
        chat=chat,
        is_group=not chat.native.startswith("dm-"),
        sender=Sender(MemberRef(NETWORK, ACCOUNT, event["who"].lower()), event["who"]),
        text=heard.text,
        sent_at=SystemClock().now(),
        mentions_bot=heard.mentions_bot,
    )
