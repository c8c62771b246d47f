"""Mails, delivered to a real mail server on 127.0.0.1."""

from __future__ import annotations

import asyncio
import smtplib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from config.sections.mail import MailSettings, recipient_fits
from config.terms import secrets_in
from services.clock import VirtualClock
from services.mail import Letter, Mailer, MailError, MailFile, MailProblem, addresses_in, dot_stuffed, encode_letter
from services.refs import ErrorCode
from tests.harness.smtp_server import BODY, DOT, DROP, HANG, SmtpServer, a_certificate

HELLO = Letter(("ann@club.example",), "Hello", "How are you?\n")
SECRET = "s3cret-пароль"


def settings(server: SmtpServer, **changes: Any) -> MailSettings:
    given = {
        "host": "127.0.0.1",
        "port": server.port,
        "security": "none",
        "sender": "bot@club.example",
        "allowed": ["*@club.example"],
        "timeout_seconds": 5,
    }
    return MailSettings.model_validate({**given, **changes})


async def send(server: SmtpServer, letter: Letter = HELLO, **changes: Any) -> str:
    return await Mailer(settings(server, **changes), VirtualClock()).send(letter, "turn-1:0")


async def failure(server: SmtpServer, letter: Letter = HELLO, **changes: Any) -> MailError:
    with pytest.raises(MailError) as caught:
        await send(server, letter, **changes)
    return caught.value


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_certificate(tmp_path_factory.mktemp("tls"), "mail")


# Content


async def test_a_letter_arrives_as_it_was_written() -> None:
    async with SmtpServer() as server:
        identity = await send(server, Letter(("ann@club.example", "bo@club.example"), "Grüße 你好", "Hæ!\n.\n..x\n"))
    [mail] = server.delivered
    assert mail.sender == "bot@club.example"
    assert mail.to == ("ann@club.example", "bo@club.example")
    assert mail.text == "Hæ!\n.\n..x\n"
    assert mail.message["Subject"] == "Grüße 你好"
    assert mail.message["From"] == "Rollcall <bot@club.example>"
    assert mail.message["To"] == "ann@club.example, bo@club.example"
    assert mail.message["Date"] == "Mon, 05 Jan 2026 09:00:00 +0000"
    assert mail.message["Message-ID"] == identity
    assert mail.message["Auto-Submitted"] == "auto-generated"
    assert mail.raw.isascii()


async def test_the_same_call_gives_a_letter_the_same_id_and_another_call_another_one() -> None:
    async with SmtpServer() as server:
        mailer = Mailer(settings(server), VirtualClock())
        first, again, other = [await mailer.send(HELLO, key) for key in ("turn-1:0", "turn-1:0", "turn-1:1")]
    assert first == again != other


async def test_files_go_along() -> None:
    files = (MailFile("liste ä.csv", "text/csv", b"a;b\r\n1;2"), MailFile("p.png", "image/png", b"\x89PNG\0"))
    async with SmtpServer() as server:
        await send(server, Letter(("ann@club.example",), "Files", "See below.", files))
    parts = list(server.delivered[0].message.iter_attachments())
    assert [part.get_filename() for part in parts] == ["liste ä.csv", "p.png"]
    assert parts[1].get_payload(decode=True) == b"\x89PNG\0"


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=40))
@effort(max_examples=150)
def test_nothing_that_is_written_becomes_a_header_or_an_end(subject: str, body: str, name: str) -> None:
    letter = Letter(
        ("ann@club.example",), subject, body, (MailFile(name, "text/plain", body.encode("utf-8", "replace")),)
    )
    raw = encode_letter(letter, sender="b@c.example", name="R", identity="<1@c.example>", at=VirtualClock().now())
    head = raw.split(b"\r\n\r\n")[0]
    names = {line.split(b":")[0] for line in head.split(b"\r\n") if not line.startswith((b" ", b"\t"))}
    assert names == {
        b"From", b"To", b"Subject", b"Date", b"Message-ID", b"Auto-Submitted", b"MIME-Version", b"Content-Type",
    }  # fmt: skip
    wire = dot_stuffed(raw)
    assert b"\r\n.\r\n" not in wire
    assert wire.isascii()
    assert b"\n" not in wire.replace(b"\r\n", b"")


# Recipients


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ann@club.example", ("ann@club.example",)),
        ("a@x.example, b@x.example;c@x.example", ("a@x.example", "b@x.example", "c@x.example")),
        (["a@X.example", "a@x.example"], ("a@x.example",)),
        ("ann@bücher.example", ("ann@xn--bcher-kva.example",)),
        ("", ()),
    ],
)
def test_addresses_are_read_from_texts_and_lists(written: Any, meant: tuple[str, ...]) -> None:
    assert addresses_in(written) == meant


@pytest.mark.parametrize(
    "written",
    ["ann", "@x.example", "ann@", "a@b@c.example", "a@x..example", "a b", "ann@x.example\r\nRCPT TO:<e@x>", "<a@x.y>",
     '"a b"@x.example', "a@-x.example", "a@[127.0.0.1]", "ä@x.example", "a" * 65 + "@x.example",
     5, ["a@x.example", None]],
)  # fmt: skip
def test_what_is_no_address_is_none(written: Any) -> None:
    with pytest.raises(ValueError):
        addresses_in(written)


def test_patterns_stand_for_addresses() -> None:
    assert recipient_fits(("*@club.example",), "Ann@Club.Example")
    assert recipient_fits(("*@*.club.example",), "a@mail.club.example")
    assert recipient_fits(("*",), "a@b.example")
    assert recipient_fits(("ann@club.example",), "ann@club.example")
    for others in ("*@club.example", "ann@club.example", "*@*.club.example"):
        assert not recipient_fits((others,), "ann@evilclub.example")
        assert not recipient_fits((others,), "bo@club.example.evil.example")
    assert not recipient_fits((), "ann@club.example")


async def test_nobody_gets_mail_until_the_settings_say_who() -> None:
    async with SmtpServer() as server:
        error = await failure(server, allowed=[])
        assert (error.code, error.problem) == (ErrorCode.REFUSED, MailProblem.NOT_ALLOWED)
        assert error.values == {"address": "ann@club.example"}
        mixed = Letter(("ann@club.example", "eve@evil.example"), "x", "x")
        assert (await failure(server, mixed)).values == {"address": "eve@evil.example"}
    assert server.heard == []


async def test_what_is_too_much_is_not_sent() -> None:
    many = Letter(tuple(f"a{number}@club.example" for number in range(11)), "x", "x")
    big = Letter(HELLO.to, "x", "x", (MailFile("a", "text/plain", b"x" * 2000),))
    async with SmtpServer() as server:
        assert (await failure(server, many)).problem is MailProblem.RECIPIENTS
        assert (await failure(server, big, attachments_kilobytes=1)).problem is MailProblem.FILES
        assert (await failure(server, Letter((), "x", "x"))).problem is MailProblem.NOBODY
    assert server.heard == []


async def test_an_hour_has_its_share_of_mails() -> None:
    clock = VirtualClock()
    async with SmtpServer() as server:
        mailer = Mailer(settings(server, per_hour=2), clock)
        for _ in range(2):
            await mailer.send(HELLO, "k")
        with pytest.raises(MailError, match="per_hour"):
            await mailer.send(HELLO, "k")
        await clock.advance(3600)
        await mailer.send(HELLO, "k")
    assert len(server.delivered) == 3


async def test_without_a_server_it_says_so() -> None:
    with pytest.raises(MailError, match="not_set"):
        await Mailer(MailSettings(), VirtualClock()).send(HELLO, "k")


# Connection


@pytest.mark.parametrize("ways", ["PLAIN LOGIN", "LOGIN"])
async def test_it_logs_in_over_starttls(certificate: Path, ways: str) -> None:
    login = {"username": "bot", "password": SecretStr(SECRET)}
    async with SmtpServer(certificate=certificate, users={"bot": SECRET}, ways=ways) as server:
        await send(server, security="starttls", ca_file=certificate, **login)
    [mail] = server.delivered
    assert (mail.was_encrypted, mail.user) == (True, "bot")
    assert [line.split()[0] for line in server.heard[:4]] == ["EHLO", "STARTTLS", "EHLO", "AUTH"]


async def test_it_speaks_tls_from_the_first_byte(certificate: Path) -> None:
    async with SmtpServer(certificate=certificate, is_tls=True) as server:
        await send(server, security="tls", ca_file=certificate)
    assert server.delivered[0].was_encrypted


async def test_a_certificate_that_nobody_trusts_ends_it_before_the_password(certificate: Path) -> None:
    async with SmtpServer(certificate=certificate, users={"bot": SECRET}) as server:
        error = await failure(server, security="starttls", username="bot", password=SecretStr(SECRET))
    assert (error.code, error.problem) == (ErrorCode.ENVIRONMENT, MailProblem.CERTIFICATE)
    assert [line for line in server.heard if line.startswith("AUTH")] == []


async def test_a_server_that_offers_no_encryption_is_told_nothing() -> None:
    async with SmtpServer(users={"bot": SECRET}) as server:
        error = await failure(server, security="starttls", username="bot", password=SecretStr(SECRET))
    assert error.problem is MailProblem.NO_STARTTLS
    assert [line.split()[0] for line in server.heard] == ["EHLO"]


async def test_a_wrong_password_is_said_without_it() -> None:
    async with SmtpServer(users={"bot": "another"}) as server:
        error = await failure(server, username="bot", password=SecretStr(SECRET))
    assert (error.code, error.status) == (ErrorCode.FAILED, 535)
    assert SECRET not in f"{error} {error.server_text}"
    assert error.problem is MailProblem.LOGIN


# Failures


@pytest.mark.parametrize(
    ("answers", "code", "status"),
    [
        ({"CONNECT": "554 go away"}, ErrorCode.TRANSIENT, 0),
        ({"MAIL": "451 later"}, ErrorCode.TRANSIENT, 451),
        ({"MAIL": "550 no"}, ErrorCode.FAILED, 550),
        ({"RCPT bo@club.example": "550 no such user <script>"}, ErrorCode.FAILED, 550),
        ({"DATA": "452 full"}, ErrorCode.TRANSIENT, 452),
        ({DOT: "554 it is spam"}, ErrorCode.FAILED, 554),
        ({DOT: "451 try again"}, ErrorCode.TRANSIENT, 451),
        ({"EHLO": DROP}, ErrorCode.TRANSIENT, 0),
        ({"RCPT ann@club.example": DROP}, ErrorCode.TRANSIENT, 0),
        ({"DATA": "250 what"}, ErrorCode.FAILED, 250),
    ],
)
async def test_a_no_of_the_server_is_told_in_our_words(answers: dict[str, str], code: ErrorCode, status: int) -> None:
    async with SmtpServer(answers=answers) as server:
        error = await failure(server, Letter(("ann@club.example", "bo@club.example"), "x", "x"))
    assert (error.code, error.status) == (code, status)
    assert "script" not in f"{error} {error.values}"
    assert server.delivered == []


async def test_one_recipient_who_is_refused_stops_it_for_all() -> None:
    async with SmtpServer(answers={"RCPT bo@club.example": "550 no"}) as server:
        error = await failure(server, Letter(("ann@club.example", "bo@club.example"), "x", "x"))
    assert (error.problem, error.values) == (MailProblem.RECIPIENT, {"address": "bo@club.example"})
    assert "DATA" not in server.heard


async def test_a_letter_longer_than_the_server_takes_is_not_begun() -> None:
    async with SmtpServer(most_bytes=1000) as server:
        assert (await failure(server, Letter(HELLO.to, "x", "x" * 2000))).code is ErrorCode.REFUSED
        await send(server)
    assert [line for line in server.heard if line.startswith("MAIL") and "size=" in line]


async def test_nobody_there_is_told_so() -> None:
    async with SmtpServer() as server:
        port = server.port
    gone = MailSettings(host="127.0.0.1", port=port, security="none", sender="b@c.example", allowed=("*",))
    with pytest.raises(MailError) as caught:
        await Mailer(gone, VirtualClock()).send(HELLO, "k")
    assert caught.value.code is ErrorCode.TRANSIENT


@pytest.mark.parametrize("where", ["CONNECT", "EHLO", "RCPT ann@club.example", "DATA"])
async def test_a_server_that_falls_silent_before_the_letter_has_sent_nothing(where: str) -> None:
    async with SmtpServer(answers={where: HANG}) as server:
        error = await failure(server, timeout_seconds=0.2)
    assert error.code is ErrorCode.TRANSIENT
    assert server.delivered == []


@pytest.mark.parametrize("how", [HANG, DROP])
async def test_when_the_answer_to_the_letter_is_lost_nobody_knows_and_it_says_so(how: str) -> None:
    async with SmtpServer(answers={DOT: how}) as server:
        error = await failure(server, timeout_seconds=0.3)
    assert error.code is ErrorCode.UNKNOWN_OUTCOME
    assert error.problem is MailProblem.UNKNOWN
    assert len(server.delivered) == 1


async def test_a_long_letter_that_breaks_off_in_the_midst_has_not_been_sent() -> None:
    async with SmtpServer(answers={BODY: DROP}) as server:
        error = await failure(server, Letter(HELLO.to, "x", "word " * 2_000_000), timeout_seconds=10)
    assert error.code is ErrorCode.TRANSIENT
    assert server.delivered == []


async def test_whoever_gives_up_waiting_leaves_nothing_behind_that_sends_later() -> None:
    async with SmtpServer(answers={"RCPT ann@club.example": HANG}) as server:
        waiting = asyncio.create_task(send(server))
        await asyncio.wait_for(server.reached[HANG].wait(), 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert server.delivered == []
    assert "DATA" not in server.heard


async def test_two_letters_at_once_do_not_wait_for_each_other() -> None:
    async with SmtpServer(answers={"RCPT ann@club.example": HANG}) as server:
        mailer = Mailer(settings(server), VirtualClock())
        slow = asyncio.create_task(mailer.send(HELLO, "k"))
        await asyncio.wait_for(server.reached[HANG].wait(), 5)
        await mailer.send(Letter(("bo@club.example",), "x", "x"), "l")
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
    assert [mail.to for mail in server.delivered] == [("bo@club.example",)]


async def test_the_server_takes_letters_of_others_too() -> None:
    """The tests' server works with the standard library's client, including pipelined commands."""
    async with SmtpServer() as server:
        await asyncio.to_thread(_sent_by_the_library, server.port)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"EHLO x\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n")
        await reader.readuntil(b"354 end with a dot\r\n")
        writer.write(b"Subject: two\r\n\r\n..dot\r\n.\r\nQUIT\r\n")
        assert (await reader.read()).endswith(b"250 taken\r\n221 bye\r\n")
        writer.close()
    assert [mail.message["Subject"] for mail in server.delivered] == ["one", "two"]
    assert server.delivered[1].raw.endswith(b".dot\r\n")


def _sent_by_the_library(port: int) -> None:
    with smtplib.SMTP("127.0.0.1", port, "x.example", timeout=5) as smtp:
        smtp.sendmail("a@x.example", ["b@x.example"], "Subject: one\r\n\r\nx")


# The settings


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"security": "none", "host": "mail.club.example"}, "security"),
        ({"sender": ""}, "sender"),
        ({"username": "bot"}, "username"),
        ({"password": "x"}, "username"),
        ({"allowed": ["club.example"]}, "address"),
        ({"allowed": ["*club.example"]}, "address"),
        ({"sender": "Bot <bot@club.example>"}, "address"),
        ({"sender_name": "a\nBcc: x"}, "name"),
        ({"host": "http://mail"}, "server"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], word: str) -> None:
    given = {"host": "127.0.0.1", "sender": "bot@club.example"}
    with pytest.raises(ValidationError, match=word):
        MailSettings.model_validate({**given, **changes})


def test_the_password_is_among_the_secrets() -> None:
    given = MailSettings(host="127.0.0.1", sender="b@c.example", username="b", password=SecretStr(SECRET))
    assert list(secrets_in(given)) == [SECRET]
    assert SECRET not in repr(given)
