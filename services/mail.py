"""Outgoing mail to allowed recipients: address parsing, message encoding and delivery to the operator's SMTP server."""

from __future__ import annotations

import asyncio
import hashlib
import re
import socket
import ssl
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_LINES
from email.utils import format_datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import structlog

from config.sections.mail import MailSettings, recipient_fits
from services.clock import Clock
from services.patterns import one_line
from services.refs import ErrorCode, JsonValue

if TYPE_CHECKING:
    from aiosmtplib import SMTP

_LONGEST_ADDRESS = 254
_LONGEST_SUBJECT = 200
_LOCAL = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*\Z")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\Z")
_BETWEEN = re.compile(r"[,;\s]+")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_NOT_IN_TEXTS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
# ASCII only, so that servers without 8BITMIME accept it.
_PLAIN = SMTP_LINES.clone(cte_type="7bit")


@dataclass(frozen=True, slots=True)
class MailFile:
    """Attachment of a letter: name, MIME type and bytes."""

    name: str
    media_type: str
    """MIME type, such as `text/plain`."""
    content: bytes


@dataclass(frozen=True, slots=True)
class Letter:
    """Contents of a mail, not yet checked or encoded."""

    to: tuple[str, ...]
    """Addresses as returned by `addresses_in`."""
    subject: str
    body: str
    files: tuple[MailFile, ...] = ()


def addresses_in(value: JsonValue) -> tuple[str, ...]:
    """Parse mail addresses from a list of texts or a text separated by commas, semicolons or spaces: without
    duplicates, domains in ASCII. Empty if there are none. Raises ValueError with the invalid address."""
    texts = value if isinstance(value, list) else [value]
    found: list[str] = []
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(repr(text)[:80])  # noqa: TRY004 - callers report any wrong address the same way
        found += [_address(one) for one in _BETWEEN.split(text.strip()) if one]
    return tuple(dict.fromkeys(found))


def _address(text: str) -> str:
    local, at, domain = text.rpartition("@")
    try:
        ascii_domain = domain.encode("idna").decode("ascii").lower()
    except UnicodeError:
        ascii_domain = ""
    address = f"{local}@{ascii_domain}"
    if not at or not _LOCAL.match(local) or not _DOMAIN.match(ascii_domain) or len(address) > _LONGEST_ADDRESS:
        raise ValueError(_UNSEEN.sub(" ", text.encode("utf-8", "replace").decode())[:80])
    return address


def message_id(key: str, sender: str) -> str:
    """Message-ID derived from `key`, so that recipients can recognise a letter that is sent twice."""
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]
    return f"<{digest}@{sender.rpartition('@')[2]}>"


def encode_letter(letter: Letter, *, sender: str, name: str, identity: str, at: datetime) -> bytes:
    """Encode the letter as a MIME message: ASCII lines that end with CR LF, not yet dot-stuffed. `identity` is the
    Message-ID, `name` the sender's display name, `at` the date. Control characters are removed."""
    message = EmailMessage(policy=_PLAIN)
    message["From"] = Address(name, addr_spec=sender)
    message["To"] = [Address(addr_spec=one) for one in letter.to]
    message["Subject"] = subject_line(letter.subject)
    message["Date"] = format_datetime(at)
    message["Message-ID"] = identity
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(_NOT_IN_TEXTS.sub("", letter.body.replace("\r\n", "\n").replace("\r", "\n")))
    for file in letter.files:
        kind, _, detail = file.media_type.partition("/")
        message.add_attachment(
            file.content, maintype=kind, subtype=detail or "octet-stream", filename=_UNSEEN.sub(" ", file.name)
        )
    return message.as_bytes()


def subject_line(text: str) -> str:
    """`text` as one line of at most 200 characters, without control characters; a cut text ends with an ellipsis."""
    plain = _UNSEEN.sub(" ", text.encode("utf-8", "replace").decode()).strip()
    return plain if len(plain) <= _LONGEST_SUBJECT else f"{plain[: _LONGEST_SUBJECT - 1]}…"


def dot_stuffed(content: bytes) -> bytes:
    """Dot-stuff `content` for the SMTP DATA command (RFC 5321, 4.5.2), adding a final CR LF if missing; without the
    closing dot."""
    doubled = re.sub(rb"(?m)^\.", b"..", content)
    return doubled if doubled.endswith(b"\r\n") else doubled + b"\r\n"


def domain_of(address: str) -> str:
    """Domain part of an address; the whole text if it has no `@`."""
    return address.rpartition("@")[2]


def bytes_of(files: Sequence[MailFile]) -> int:
    """Total size of `files` in bytes."""
    return sum(len(file.content) for file in files)


_START_MAIL_INPUT = 354
_LATER, _NEVER = 400, 500


class MailProblem(StrEnum):
    """Reason why a letter was not sent."""

    NOT_SET = "not_set"
    NOBODY = "nobody"
    RECIPIENTS = "recipients"
    NOT_ALLOWED = "not_allowed"
    FILES = "files"
    PER_HOUR = "per_hour"
    SLOW = "slow"
    NOT_FOUND = "not_found"
    UNREACHABLE = "unreachable"
    CA_FILE = "ca_file"
    CERTIFICATE = "certificate"
    NO_STARTTLS = "no_starttls"
    NO_LOGIN = "no_login"
    LOGIN = "login"
    SENDER = "sender"
    RECIPIENT = "recipient"
    TOO_LONG = "too_long"
    LETTER = "letter"
    UNKNOWN = "unknown"  # it may have been sent


_CODES = {
    MailProblem.NOT_SET: ErrorCode.ENVIRONMENT,
    MailProblem.NOBODY: ErrorCode.BAD_ARGUMENTS,
    MailProblem.RECIPIENTS: ErrorCode.REFUSED,
    MailProblem.NOT_ALLOWED: ErrorCode.REFUSED,
    MailProblem.FILES: ErrorCode.REFUSED,
    MailProblem.PER_HOUR: ErrorCode.REFUSED,
    MailProblem.SLOW: ErrorCode.TRANSIENT,
    MailProblem.NOT_FOUND: ErrorCode.ENVIRONMENT,
    MailProblem.UNREACHABLE: ErrorCode.TRANSIENT,
    MailProblem.CA_FILE: ErrorCode.ENVIRONMENT,
    MailProblem.CERTIFICATE: ErrorCode.ENVIRONMENT,
    MailProblem.NO_STARTTLS: ErrorCode.ENVIRONMENT,
    MailProblem.NO_LOGIN: ErrorCode.ENVIRONMENT,
    MailProblem.TOO_LONG: ErrorCode.REFUSED,
    MailProblem.UNKNOWN: ErrorCode.UNKNOWN_OUTCOME,
}


class MailError(Exception):
    """A letter was not sent; with the code `unknown_outcome` it may have been. `values` fill the placeholders of the
    error text."""

    def __init__(self, problem: MailProblem, *, status: int = 0, server_text: object = "", **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.status = status
        """SMTP status code; 0 without an answer."""
        self.server_text = (
            server_text.decode("utf-8", "replace") if isinstance(server_text, bytes) else str(server_text)
        )
        """The server's own words; only for the log."""
        self.values = values
        self.may_pass = _LATER <= status < _NEVER
        """The server reported a temporary failure (4xx)."""
        self.code = ErrorCode.TRANSIENT if self.may_pass else _CODES.get(problem, ErrorCode.FAILED)


@dataclass(frozen=True, slots=True)
class EncodedLetter:
    """Encoded message (`content`) with its envelope: the addresses of sender and recipients."""

    sender: str
    to: tuple[str, ...]
    content: bytes


class SmtpDelivery:
    """One attempt to deliver a message to the configured server."""

    def __init__(self, letter: EncodedLetter, settings: MailSettings) -> None:
        self._letter = letter
        self._settings = settings
        self.may_have_been_sent = False
        """Whether the server may have accepted the letter."""

    async def run(self) -> None:
        """Deliver the message; returns when the server has accepted it. Sets no timeout. Raises MailError, with the
        problem `unknown` if the answer was lost after the message was sent. Cancelling stops sending."""
        import aiosmtplib  # imported with the first letter

        settings = self._settings
        smtp = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.port,
            local_hostname=domain_of(self._letter.sender),
            timeout=None,  # the caller sets one deadline for the whole exchange
            use_tls=settings.security == "tls",
            start_tls=False,
            tls_context=None if settings.security == "none" else _context(settings),
        )
        try:
            await smtp.connect()
            await self._greet(smtp)
            await self._address(smtp)
            await self._send(smtp)
        except aiosmtplib.SMTPAuthenticationError as error:
            raise MailError(MailProblem.LOGIN, status=_status(error.code), server_text=error.message) from error
        except aiosmtplib.SMTPSenderRefused as error:
            raise MailError(MailProblem.SENDER, status=_status(error.code), server_text=error.message) from error
        except aiosmtplib.SMTPRecipientRefused as error:
            status, address = _status(error.code), error.recipient
            raise MailError(MailProblem.RECIPIENT, status=status, server_text=error.message, address=address) from error
        except (OSError, aiosmtplib.SMTPException, ValueError) as error:
            raise self._broken(error) from error
        finally:
            smtp.close()

    def _broken(self, error: Exception) -> MailError:
        """MailError for a connection that failed or broke: `unknown` if the message may have been sent, else
        `certificate`, `not_found` or `unreachable`."""
        if self.may_have_been_sent:
            return MailError(MailProblem.UNKNOWN, server_text=error)
        cause, problem = error.__cause__ or error, MailProblem.UNREACHABLE
        if isinstance(cause, ssl.SSLError):
            problem = MailProblem.CERTIFICATE
        elif isinstance(cause, socket.gaierror):
            problem = MailProblem.NOT_FOUND
        return MailError(problem, server_text=error, host=self._settings.host)

    async def _greet(self, smtp: SMTP) -> None:
        """Send EHLO, then start TLS and log in as configured. Raises MailError if the server does not offer STARTTLS or
        a login."""
        import aiosmtplib

        settings = self._settings
        try:
            await smtp.ehlo()
        except aiosmtplib.SMTPHeloError:
            await smtp.helo()
        if settings.security == "starttls":
            if not smtp.supports_extension("starttls"):
                raise MailError(MailProblem.NO_STARTTLS)
            await smtp.starttls()
            await smtp.ehlo()
        if settings.username:
            if not smtp.supported_auth_methods:
                raise MailError(MailProblem.NO_LOGIN)
            await smtp.login(settings.username, settings.password.get_secret_value())

    async def _address(self, smtp: SMTP) -> None:
        """Send the envelope. One refused recipient fails the whole letter. Raises MailError if the message exceeds the
        server's size limit."""
        size = len(self._letter.content)
        most = smtp.esmtp_extensions.get("size", "")
        if most.isdecimal() and 0 < int(most) < size:
            raise MailError(MailProblem.TOO_LONG)
        await smtp.mail(self._letter.sender, options=[f"size={size}"] if smtp.supports_extension("size") else [])
        for one in self._letter.to:
            await smtp.rcpt(one)

    async def _send(self, smtp: SMTP) -> None:
        code, answer = await smtp.execute_command(b"DATA")
        if code != _START_MAIL_INPUT:
            raise MailError(MailProblem.LETTER, status=_status(code), server_text=answer)
        # aiosmtplib's `data` does not report whether the closing dot was sent.
        transport, protocol = smtp.transport, smtp.protocol
        assert isinstance(transport, asyncio.WriteTransport)
        assert protocol is not None
        transport.set_write_buffer_limits(0)
        writer = asyncio.StreamWriter(transport, protocol, None, asyncio.get_running_loop())
        writer.write(dot_stuffed(self._letter.content))
        await writer.drain()
        self.may_have_been_sent = True
        code, answer = await smtp.execute_command(b".")
        if not 200 <= code < 600:
            raise MailError(MailProblem.UNKNOWN, server_text=answer)
        if code >= 300:
            raise MailError(MailProblem.LETTER, status=_status(code), server_text=answer)
        with suppress(OSError, RuntimeError):
            protocol.write(b"QUIT\r\n")


def _context(settings: MailSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if settings.ca_file is None else str(settings.ca_file))
    except OSError as error:
        raise MailError(MailProblem.CA_FILE, server_text=error) from error


def _status(code: int) -> int:
    """`code`; 0 for the library's negative codes, which mean that the server did not answer."""
    return max(code, 0)


_MOST_CONNECTIONS = 4
_HOUR_SECONDS = 3600.0
_SERVER_TEXT_CHARS = 300
_log = structlog.get_logger("mail")


class Mailer:
    """Sends letters and limits them per hour. The count restarts with the process."""

    def __init__(self, settings: MailSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._places = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._sent_at: deque[float] = deque()

    def use(self, settings: MailSettings) -> None:
        """Apply `settings` from the next letter on."""
        self._settings = settings

    async def send(self, letter: Letter, key: str, within_seconds: float | None = None) -> str:
        """Send `letter` and return its Message-ID, which is the same for the same `key`. Raises MailError if the letter
        is not permitted, the server refuses it or cannot be reached; with `unknown_outcome` if the final answer was
        lost. Every attempt counts towards the hourly limit. `within_seconds` may shorten the configured timeout."""
        settings = self._settings
        self._check(letter, settings)
        identity = message_id(key, settings.sender)
        content = encode_letter(
            letter, sender=settings.sender, name=settings.sender_name, identity=identity, at=self._clock.now()
        )
        self._sent_at.append(self._clock.monotonic())
        seconds = min(settings.timeout_seconds, settings.timeout_seconds if within_seconds is None else within_seconds)
        try:
            await self._deliver(EncodedLetter(settings.sender, letter.to, content), settings, seconds)
        except MailError as error:
            _log.warning(
                "mail_failed",
                problem=error.problem.value,
                status=error.status,
                said=one_line(error.server_text)[:_SERVER_TEXT_CHARS],
            )
            raise
        return identity

    def _check(self, letter: Letter, settings: MailSettings) -> None:
        """Raises MailError if mail is not configured, or the letter exceeds the limits on recipients, attachments or
        letters per hour or has a recipient that is not allowed."""
        if not settings.host:
            raise MailError(MailProblem.NOT_SET)
        if not letter.to:
            raise MailError(MailProblem.NOBODY)
        if len(letter.to) > settings.recipients:
            raise MailError(MailProblem.RECIPIENTS, most=settings.recipients)
        for one in letter.to:
            if not recipient_fits(settings.allowed, one):
                raise MailError(MailProblem.NOT_ALLOWED, address=one)
        if bytes_of(letter.files) > settings.attachments_kilobytes * 1000:
            raise MailError(MailProblem.FILES, most=settings.attachments_kilobytes)
        earliest = self._clock.monotonic() - _HOUR_SECONDS
        while self._sent_at and self._sent_at[0] <= earliest:
            self._sent_at.popleft()
        if len(self._sent_at) >= settings.per_hour:
            raise MailError(MailProblem.PER_HOUR, most=settings.per_hour)

    async def _deliver(self, letter: EncodedLetter, settings: MailSettings, seconds: float) -> None:
        delivery = SmtpDelivery(letter, settings)
        try:
            async with asyncio.timeout(max(seconds, 0)), self._places:
                await delivery.run()
        except TimeoutError:
            raise MailError(MailProblem.UNKNOWN if delivery.may_have_been_sent else MailProblem.SLOW) from None
