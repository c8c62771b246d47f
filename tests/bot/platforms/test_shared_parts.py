"""Parts that the adapters of networks share: missing packages, URLs of servers, references to long button values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.platforms.adapter import CannotOpen, needs_extra
from bot.platforms.base import Outgoing
from bot.platforms.connection import ConnectedPlatform
from bot.platforms.contract import a_host, outbox_row
from bot.platforms.web_api import Refused
from config.sections.networks import NetworkSettings
from config.terms import SecureUrl
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Sender
from function_calls.spec import Choice
from services.recent import Recent
from services.refs import ChatRef, MemberRef


class Acme(ConnectedPlatform):
    name = "acme"


def test_a_missing_package_is_explained_for_pip_and_for_the_script() -> None:
    with pytest.raises(CannotOpen) as raised, needs_extra("xmpp"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401
    words = str(raised.value)
    assert "the package 'no_such_package' is missing" in words
    assert "install 'rollcall[xmpp]' with pip, pipx or uv" in words
    assert "./run installs it" in words


@pytest.mark.parametrize(
    "url", ["https://chat.example.org/", "http://127.0.0.1:8065", "http://localhost/x", "http://[::1]:1"]
)
def test_a_server_has_tls_or_is_on_this_machine(url: str) -> None:
    assert TypeAdapter(SecureUrl).validate_python(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url", ["http://chat.example.org", "http://127.0.0.1.example.org", "http://localhost.example.org"]
)
def test_a_server_elsewhere_without_tls_is_rejected(url: str) -> None:
    with pytest.raises(ValidationError, match="has to begin with https://"):
        TypeAdapter(SecureUrl).validate_python(url)


@pytest.mark.parametrize(
    "url", ["https://ann:secret@chat.example.org", "https://chat.example.org/?a=b", "ftp://x", "chat"]
)
def test_a_url_with_a_user_or_query_is_rejected(url: str) -> None:
    with pytest.raises(ValidationError, match="without user, query or fragment"):
        TypeAdapter(SecureUrl).validate_python(url)


FAMILY, OTHERS = ChatRef("acme", "main", "family"), ChatRef("acme", "main", "others")
ANN, BEN = MemberRef("acme", "main", "ann"), MemberRef("acme", "main", "ben")


def a_press(data: str, chat: ChatRef = FAMILY, member: MemberRef = ANN) -> MessageContext:
    key = MessageKey(chat, "1", Kind.CHOICE)
    return MessageContext(key, Kind.CHOICE, chat, True, Sender(member, "x"), data, datetime(2026, 1, 1, tzinfo=UTC))


async def test_a_button_has_its_value_or_a_reference_to_the_outbox(tmp_path: Path) -> None:
    long = "你好" * 20
    outgoing = Outgoing(FAMILY, "7:0:0", "?", choices=tuple(Choice("x", one) for one in ("yes", long, "#1", "# 2")))
    async with a_host(tmp_path) as host:
        platform: Any = Acme(NetworkSettings(), host, silence_seconds=60)
        data = [platform._button(outgoing, number, 64) for number in range(4)]
        assert data == ["yes", "#1 7:0:0", "#2 7:0:0", "#3 7:0:0"]
        assert [await platform._pressed(a_press(one)) for one in data] == ["yes", "", "", ""]
        await host.store.commit([outbox_row(outgoing)])
        assert [await platform._pressed(a_press(one)) for one in data] == ["yes", long, "#1", "# 2"]
        assert await platform._pressed(a_press("#9 7:0:0")) == ""


async def test_a_reference_reads_no_button_of_another_chat_or_member(tmp_path: Path) -> None:
    choices = (Choice("x", "long " * 20),)
    async with a_host(tmp_path) as host:
        platform: Any = Acme(NetworkSettings(), host, silence_seconds=60)
        await host.store.commit([outbox_row(Outgoing(FAMILY, "7:0:0", "?", choices=choices))])
        pressed = [await platform._pressed(a_press("#0 7:0:0", *where)) for where in ((FAMILY, BEN), (OTHERS, ANN))]
        assert pressed == ["long " * 20, ""]
    (tmp_path / "private").mkdir()
    async with a_host(tmp_path / "private") as host:
        platform = Acme(NetworkSettings(), host, silence_seconds=60)
        await host.store.commit([outbox_row(Outgoing(FAMILY, "8:0:0", "?", choices=choices, private_to=ANN))])
        pressed = [await platform._pressed(a_press("#0 8:0:0", *where)) for where in ((OTHERS, ANN), (FAMILY, BEN))]
        assert pressed == ["long " * 20, ""]


def test_files_are_uploaded_or_shown_as_links() -> None:
    files = [Attachment("a", "", "data:,x"), Attachment("b", "", "https://e.org/b"), Attachment("c", "", "network:c")]
    outgoing = Outgoing(ChatRef("acme", "main", "family"), "1:0:0", "*Hi*", attachments=tuple(files))
    assert (outgoing.uploads, outgoing.links, outgoing.plain) == (files[:1], "\nb: https://e.org/b", "*Hi*")
    assert replace(outgoing, markdown=True).plain == "Hi"


@pytest.mark.parametrize(
    ("status", "retry_after", "retryable", "seconds"),
    [
        (429, "7", True, 7),
        (429, 1.5, True, 1.5),
        (429, "soon", True, 30),
        (429, None, True, 30),
        (401, "7", True, None),
        (408, "", True, None),
        (500, "", True, None),
        (503, "", True, None),
        (501, "", False, None),
        (403, "", False, None),
        (302, "", False, None),
    ],
)
def test_a_status_says_whether_and_when_to_retry(status: int, retry_after: Any, retryable: bool, seconds: Any) -> None:
    refused = Refused("no", status, retry_after=retry_after)
    assert (refused.retryable, refused.retry_after_seconds, refused.unknown_outcome) == (retryable, seconds, False)


def test_the_oldest_entries_are_dropped() -> None:
    recent = Recent[str, int](2)
    recent["a"], recent["b"] = 1, 2
    recent["a"] = 3
    recent["c"] = 4
    assert dict(recent) == {"a": 3, "c": 4}
