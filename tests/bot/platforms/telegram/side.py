"""The members of the fake Telegram, for the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from bot.platforms.adapter import Host
from bot.platforms.base import ChatPlatform
from bot.platforms.contract import Failure, Network, Shown, a_host
from bot.platforms.telegram.platform import ADAPTER, TelegramSettings
from services.refs import Role
from tests.fakes.telegram_server import BOT, GROUP, TOKEN, USERS, FakeTelegram, Rejected, keyboard

_FAILURES: dict[Failure, Rejected | str] = {
    Failure.RATE_LIMITED: Rejected(429, "Too Many Requests: retry after 7", retry_after=7),
    Failure.SERVER_ERROR: Rejected(500, "Internal Server Error"),
    Failure.DELIVERED_WITHOUT_ANSWER: "lost",
    Failure.REMOVED: Rejected(403, "Forbidden: bot was kicked from the supergroup chat"),
    Failure.NO_SUCH_CHAT: Rejected(400, "Bad Request: chat not found"),
    Failure.REPLY_IS_GONE: Rejected(400, "Bad Request: message to be replied not found"),
    Failure.BAD_MARKUP: Rejected(400, "Bad Request: can't parse entities: Can't find end of the entity"),
}
_STATUSES = {Role.OWNER: "creator", Role.ADMIN: "administrator", Role.MEMBER: "member"}


def settings(server: FakeTelegram, **more: object) -> TelegramSettings:
    """The account of the fake's bot."""
    return TelegramSettings.model_validate({"token": SecretStr(TOKEN), "api_url": server.url, **more})


@asynccontextmanager
async def on_telegram(home: Path) -> AsyncIterator[tuple[Network, FakeTelegram, Host]]:
    """A platform that is not connected yet."""
    async with FakeTelegram() as server, a_host(home) as host:
        opened = [ADAPTER.open(settings(server), host)]

        def reopen() -> ChatPlatform:
            opened.append(ADAPTER.open(settings(server), host))
            return opened[-1]

        network = Network(
            opened[0],
            Side(server),
            group=str(GROUP),
            **{name: str(USERS[name]["id"]) for name in ("ann", "ben", "robot")},  # type: ignore[arg-type]
            reopen=reopen,
        )
        try:
            yield network, server, host
        finally:
            for platform in opened:
                await platform.close()


class Side:
    """Members by native id; `carl` by name."""

    def __init__(self, server: FakeTelegram) -> None:
        self._server = server

    async def say(
        self,
        who: str,
        text: str,
        *,
        chat: str = "",
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
    ) -> str:
        name = _name(who)
        if file is not None:
            return str(self._server.say_file(name, text, *file)["message_id"])
        place = int(chat) if chat else GROUP
        more = {"reply_to_message": self._server.messages[place][int(reply_to)]} if reply_to else {}
        message = self._server.say(name, f"@{BOT['username']} {text}" if mention else text, place, **more)
        return str(message["message_id"])

    async def edit(self, who: str, native_id: str, text: str) -> None:
        self._server.edit(GROUP, int(native_id), text)

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        self._server.react(_name(who), GROUP, int(native_id), emoji)

    async def press(self, who: str, native_id: str, label: str) -> None:
        self._server.press(_name(who), GROUP, int(native_id), label)

    async def enter(self, who: str) -> None:
        user = USERS[_name(who)]
        self._server.update(message=self._server.message(GROUP, user, new_chat_members=[user]))
        self._server.change_member(user, "member", by=_name(who))

    async def leave(self, who: str) -> None:
        user = USERS[_name(who)]
        self._server.change_member(user, "left", by=_name(who))
        self._server.update(message=self._server.message(GROUP, user, left_chat_member=user))

    async def add_bot(self, who: str) -> str:
        self._server.add_chat(-500, "group", "Work")
        self._server.change_member(BOT, "member", -500, by=_name(who))
        return "-500"

    async def empower(self) -> None:
        """See OtherSide: the bot has the rights from the start."""

    async def promote(self, who: str, role: Role) -> None:
        self._server.change_member(USERS[_name(who)], _STATUSES[role])

    async def repeat(self) -> None:
        self._server.repeat()

    async def send_garbage(self) -> None:
        self._server.update(message={"chat": "?", "text": 7})

    async def disconnect(self) -> None:
        await self._server.polling.wait()
        self._server.disconnect()

    async def fail_next(self, failure: Failure) -> None:
        self._server.failures.append(_FAILURES[failure])

    async def open_thread(self, who: str, text: str) -> str:
        topic = self._server.message(GROUP, USERS[_name(who)], forum_topic_created={"name": "Tea", "icon_color": 1})
        topic |= {"message_thread_id": topic["message_id"], "is_topic_message": True}
        self._server.update(message=topic)
        self._server.say(_name(who), text, thread=topic["message_id"])
        return f"{GROUP},{topic['message_id']}"

    async def shown(self, chat: str = "") -> list[Shown]:
        place, _, thread = (chat or str(GROUP)).partition(",")
        files = self._server.files
        return [
            Shown(
                one.get("text") or one.get("caption") or "",
                str(one["message_id"]),
                tuple(button["text"] for row in keyboard(one) for button in row),
                str(one["reply_to_message"]["message_id"]) if one.get("reply_to_message") else "",
                tuple(
                    files[file["file_id"]]
                    for file in (one.get("photo") or []) + [one[k] for k in ("document",) if k in one]
                ),
            )
            for one in self._server.sent(int(place), int(thread or 0))
        ]

    async def reactions(self, native_id: str) -> list[str]:
        return self._server.reactions.get((GROUP, int(native_id)), [])

    async def delete(self, who: str, native_id: str) -> None:
        raise NotImplementedError


def _name(who: str) -> str:
    return next((name for name, user in USERS.items() if str(user["id"]) == who), who)
