"""Accounts of networks in a cluster: each is held by one gateway at a time, and used by all processes."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from pydantic import ConfigDict, TypeAdapter

from bot.cluster.requests import Requests
from bot.delivery.outgoing import outgoing_from_json, outgoing_to_json
from bot.platforms.base import ChatPlatform, Deliver, FileUnavailable, Limits, LinkState, Outgoing, Receipt, SendFailed
from function_calls.context import Attachment
from function_calls.ports import ModerationRequest
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Store
from services.store.postgres import cluster

_BYTES = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
_log = structlog.get_logger("cluster")


class _Method:
    """A method that another process may call: types of its arguments and its result, and the time for an answer."""

    def __init__(self, takes: Any, gives: Any = None, seconds: float = 5.0) -> None:
        self.takes: TypeAdapter[Any] = TypeAdapter(takes)
        self.gives: TypeAdapter[Any] = TypeAdapter(gives, config=_BYTES if gives is bytes else None)
        self.seconds = seconds


_METHODS = {
    "role": _Method(tuple[ChatRef, MemberRef], Role | None),
    "edit": _Method(tuple[str, Outgoing]),
    "delete": _Method(tuple[ChatRef, str]),
    "react": _Method(tuple[ChatRef, str, str]),
    "read_file": _Method(tuple[Attachment, int], bytes, 60.0),
    "members": _Method(tuple[ChatRef], list[MemberRef]),
    "moderate": _Method(tuple[ModerationRequest], str, 20.0),
}
_HERE = ("until_reachable", "leave", "show_commands")
"""Methods that only the delivery and the menus of the holder call."""
_FAILURE = TypeAdapter(dict[str, Any])
_TYPING = 200
"""Characters of a status that a notification has room for."""


class Account:
    """ChatPlatform of one account: `network` in the process that holds it, else the same methods through requests. Has
    exactly the capabilities of `network`."""

    def __init__(
        self,
        network: ChatPlatform,
        requests: Requests,
        store: Store,
        hold: Callable[[str], Awaitable[None]],
        taken: Callable[[Account], Awaitable[None]],
    ) -> None:
        """`hold` returns when this process holds the account of that key; then `taken` takes over its work."""
        self.network = network
        self.name, self.account = network.name, network.account
        self.is_here = False
        """Whether this process holds the account."""
        self._requests = requests
        self._store = store
        self._hold = hold
        self._taken = taken
        for name in (*_METHODS, *_HERE):
            if name != "role" and hasattr(network, name):
                setattr(self, name, functools.partial(self._call, name))
        for name in ("measures", "routes"):
            if hasattr(network, name):
                setattr(self, name, getattr(network, name))
        if hasattr(network, "link"):
            self.link = self._link

    @property
    def key(self) -> str:
        """`network:account`."""
        return f"{self.name}:{self.account}"

    @property
    def limits(self) -> Limits:
        """Those of the network; before the connection, its defaults."""
        return self.network.limits

    async def run(self, deliver: Deliver) -> None:
        """Wait until this process holds the account, take over its work, and receive until cancelled."""
        await self._hold(self.key)
        self.is_here = True
        _log.info("account_held", account=self.key)
        await self._taken(self)
        await self.network.run(deliver)

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Send through the network; only the holder sends."""
        if not self.is_here:
            raise SendFailed(f"{self.key} is held by another process", retryable=True)
        return await self.network.send(outgoing)

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """As in ChatPlatform; None also without an answer of the holder."""
        role: Role | None = await self._call("role", chat, member)
        return role

    async def typing(self, chat: ChatRef, status: str) -> None:
        if self.is_here:
            await self.network.typing(chat, status)
        else:
            self._store.post([cluster.notify(cluster.GATEWAYS, f"typing {chat.key}\n{status[:_TYPING]}")])

    async def close(self) -> None:
        await self.network.close()

    def show_status(self, turn_id: int, outgoing: Outgoing) -> None:
        """Let the holder post or change the status message of a turn; best effort."""
        text = _json({"turn": turn_id, **outgoing_to_json(outgoing)})
        self._store.post([cluster.notify(cluster.GATEWAYS, f"status {text}")])

    async def answer(self, method: str, body: str) -> str:
        """Call `method` of the network for another process; returns its result or error for `_call`."""
        found = _METHODS[method]
        try:
            result = await getattr(self.network, method)(*found.takes.validate_json(body))
        except SendFailed as failed:
            facts = {name: getattr(failed, name) for name in _FLAGS}
            return f"failed {_json({'message': str(failed), 'status': failed.status, **facts})}"
        except FileUnavailable as problem:
            return f"unavailable {problem}"
        return f"ok {found.gives.dump_json(result).decode()}"

    async def _call(self, name: str, *arguments: Any) -> Any:
        if self.is_here:
            return await getattr(self.network, name)(*arguments)
        if name in _HERE:
            return None
        method = _METHODS[name]
        try:
            answer = await self._requests.ask(
                self.key, name, method.takes.dump_json(arguments).decode(), method.seconds
            )
        except TimeoutError:
            return _without_answer(name, self.key)
        how, _, body = answer.partition(" ")
        if how == "unavailable":
            raise FileUnavailable(body)
        if how == "failed":
            facts = _FAILURE.validate_json(body)
            status, failed = facts.pop("status"), SendFailed(facts.pop("message"), **facts)
            failed.status = status
            raise failed
        return method.gives.validate_json(body)

    def _link(self) -> LinkState:
        if self.is_here:
            state: LinkState = self.network.link()  # type: ignore[attr-defined]  # checked at construction
            return state
        return LinkState(True, "held by another process", 0)


_FLAGS = ("retryable", "retry_after_seconds", "unknown_outcome", "for_account")


def _without_answer(method: str, account: str) -> None:
    """Outcome of a request without an answer: no role, or the error of the method."""
    problem = f"the process that holds {account} did not answer"
    if method == "role":
        return
    if method == "read_file":
        raise FileUnavailable(problem)
    raise SendFailed(problem, retryable=False, unknown_outcome=True)


def _json(data: dict[str, Any]) -> str:
    return _FAILURE.dump_json(data).decode()


def status_of(text: str) -> tuple[int, Outgoing]:
    """Turn and message of the notification made by `Account.show_status`."""
    data = _FAILURE.validate_json(text)
    return data["turn"], outgoing_from_json("", data)
