"""Mail through the operator's server to allowed recipients: letters, their bytes and the SMTP hand-over."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import smtplib
import socket
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from enum import StrEnum

import structlog

from config.sections.mail import MailSettings, recipient_fits
from services.clock import Clock
from services.refs import ErrorCode, JsonValue
from services.threads import Threads

_LONGEST_ADDRESS = 254
_LONGEST_SUBJECT = 200
_LOCAL = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*\Z")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\Z")
_BETWEEN = re.compile(r"[,;\s]+")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_NOT_IN_TEXTS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
# Nothing but ASCII on the wire: every server takes it.
_PLAIN = SMTP.clone(cte_type="7bit")


@dataclass(frozen=True, slots=True)
class MailFile:
    """A file that goes along."""

    name: str
    media_type: str
    """Such as `text/plain`."""
    content: bytes


@dataclass(frozen=True, slots=True)
class Letter:
    """What is to be sent."""

    to: tuple[str, ...]
    """Addresses, as `addresses_in` gives them."""
    subject: str
    body: str
    files: tuple[MailFile, ...] = ()


def addresses_in(value: JsonValue) -> tuple[str, ...]:
    """The mail addresses of a text, with commas, semicolons or spaces between them, or of a list of texts; each once,
    with the domain in ASCII. Raises ValueError with the one that is none, written out."""
    texts = value if isinstance(value, list) else [value]
    found: list[str] = []
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(repr(text)[:80])  # noqa: TRY004 - to whoever reads it this is a wrong address
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
    """The same for the same `key`, so that a letter which is sent twice is recognised."""
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]
    return f"<{digest}@{sender.rpartition('@')[2]}>"


def encoded(letter: Letter, *, sender: str, name: str, identity: str, at: datetime) -> bytes:
    """The letter as it goes over the wire, without the doubled dots: lines of ASCII that end with CR LF."""
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
    """`text` as a subject: one line, not too long."""
    plain = _UNSEEN.sub(" ", text.encode("utf-8", "replace").decode()).strip()
    return plain if len(plain) <= _LONGEST_SUBJECT else f"{plain[: _LONGEST_SUBJECT - 1]}…"


def on_the_wire(content: bytes) -> bytes:
    """`content` as it stands between DATA and the closing dot."""
    doubled = re.sub(rb"(?m)^\.", b"..", content)
    return doubled if doubled.endswith(b"\r\n") else doubled + b"\r\n"


def domain_of(address: str) -> str:
    """What stands behind the @."""
    return address.rpartition("@")[2]


def bytes_of(files: Sequence[MailFile]) -> int:
    """How much all of them are together."""
    return sum(len(file.content) for file in files)


_DONE = 250
_FORWARDED = 251
_AUTHENTICATED = 235
_GO_ON = 334
_SEND_IT = 354
_LATER, _NEVER = 400, 500


class MailProblem(StrEnum):
    """Why a letter was not sent."""

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
    UNKNOWN = "unknown"  # it may have been


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
    """A letter was not sent; with the code `unknown_outcome`, nobody knows. `values` are for the sentence that says
    why."""

    def __init__(self, problem: MailProblem, *, status: int = 0, said: object = "", **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.status = status
        """What the server answered, 0 where it did not."""
        self.said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        """The server's own words, for the log alone."""
        self.values = values
        self.may_pass = _LATER <= status < _NEVER
        """The server says that it may take it later."""
        self.code = ErrorCode.TRANSIENT if self.may_pass else _CODES.get(problem, ErrorCode.FAILED)


@dataclass(frozen=True, slots=True)
class Parcel:
    """What goes over the wire."""

    sender: str
    to: tuple[str, ...]
    content: bytes


class Handover:
    """One attempt, known to the thread that carries it out and to who waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_given = False
        self._is_abandoned = False
        self._socket: socket.socket | None = None

    def watch(self, open_socket: socket.socket | None) -> None:
        """Let this socket be closed by who gives up. Raises MailError where somebody has."""
        with self._lock:
            self._socket = open_socket
            self._check()

    def give(self) -> None:
        """From now on the letter may have been sent. Raises MailError where nobody waits any more."""
        with self._lock:
            self._check()
            self._is_given = True

    def abandon(self) -> bool:
        """Nobody waits any more; whether the letter may have been sent. If it was not, it will not be."""
        with self._lock:
            self._is_abandoned = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
            return self._is_given

    @property
    def is_given(self) -> bool:
        """Whether the letter may have been sent."""
        with self._lock:
            return self._is_given

    def _check(self) -> None:
        if self._is_abandoned:
            raise MailError(MailProblem.SLOW)


def hand_over(parcel: Parcel, settings: MailSettings, handover: Handover) -> None:
    """Give `parcel` to the server of the settings. Blocks. Raises MailError."""
    host = settings.host
    try:
        smtp = _connected(parcel, settings)
        try:
            handover.watch(smtp.sock)
            _greet(smtp, settings, handover)
            _smtp_handover_address(smtp, parcel)
            _send(smtp, parcel, handover)
        finally:
            with suppress(OSError):
                smtp.close()
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise _broken(error, host, is_given=handover.is_given) from error


def _broken(error: Exception, host: str, *, is_given: bool) -> MailError:
    """What it means that a connection could not be made, or broke."""
    if is_given:
        return MailError(MailProblem.UNKNOWN, said=error)
    if isinstance(error, ssl.SSLError):
        return MailError(MailProblem.CERTIFICATE, said=error, host=host)
    if isinstance(error, socket.gaierror):
        return MailError(MailProblem.NOT_FOUND, said=error, host=host)
    return MailError(MailProblem.UNREACHABLE, said=error, host=host)


def _connected(parcel: Parcel, settings: MailSettings) -> smtplib.SMTP:
    seconds, own_name = settings.timeout_seconds, domain_of(parcel.sender)
    if settings.security == "tls":
        context = _context(settings)
        return smtplib.SMTP_SSL(settings.host, settings.port, own_name, timeout=seconds, context=context)
    return smtplib.SMTP(settings.host, settings.port, own_name, timeout=seconds)


def _context(settings: MailSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if settings.ca_file is None else str(settings.ca_file))
    except OSError as error:
        raise MailError(MailProblem.CA_FILE, said=error) from error


def _greet(smtp: smtplib.SMTP, settings: MailSettings, handover: Handover) -> None:
    """Say who we are, over a connection that is as the settings want it."""
    smtp.ehlo_or_helo_if_needed()
    if settings.security == "starttls":
        if not smtp.has_extn("starttls"):
            raise MailError(MailProblem.NO_STARTTLS)
        smtp.starttls(context=_context(settings))
        handover.watch(smtp.sock)
        smtp.ehlo()
    if settings.username:
        _log_in(smtp, settings.username, settings.password.get_secret_value())


def _log_in(smtp: smtplib.SMTP, username: str, password: str) -> None:
    ways = smtp.esmtp_features.get("auth", "").upper().split()
    if "PLAIN" in ways:
        code, said = smtp.docmd("AUTH", f"PLAIN {_base64(f'{chr(0)}{username}{chr(0)}{password}')}")
    elif "LOGIN" in ways:
        code, said = smtp.docmd("AUTH", f"LOGIN {_base64(username)}")
        if code == _GO_ON:
            code, said = smtp.docmd(_base64(password))
    else:
        raise MailError(MailProblem.NO_LOGIN)
    if code != _AUTHENTICATED:
        raise MailError(MailProblem.LOGIN, status=_status(code), said=said)


def _smtp_handover_address(smtp: smtplib.SMTP, parcel: Parcel) -> None:
    """Say from whom and to whom. One recipient who is refused stops it for all."""
    most = smtp.esmtp_features.get("size", "")
    if most.isdecimal() and 0 < int(most) < len(parcel.content):
        raise MailError(MailProblem.TOO_LONG)
    options = [f"size={len(parcel.content)}"] if smtp.has_extn("size") else []
    code, said = smtp.mail(parcel.sender, options)
    if code != _DONE:
        raise MailError(MailProblem.SENDER, status=_status(code), said=said)
    for one in parcel.to:
        code, said = smtp.rcpt(one)
        if code not in (_DONE, _FORWARDED):
            raise MailError(MailProblem.RECIPIENT, status=_status(code), said=said, address=one)


def _send(smtp: smtplib.SMTP, parcel: Parcel, handover: Handover) -> None:
    code, said = smtp.docmd("DATA")
    if code != _SEND_IT:
        raise MailError(MailProblem.LETTER, status=_status(code), said=said)
    smtp.send(on_the_wire(parcel.content))
    handover.give()
    smtp.send(b".\r\n")
    code, said = smtp.getreply()
    if not 200 <= code < 600:
        raise MailError(MailProblem.UNKNOWN, said=said)
    if code >= 300:
        raise MailError(MailProblem.LETTER, status=_status(code), said=said)
    with suppress(OSError, smtplib.SMTPException):
        smtp.putcmd("quit")


def _status(code: int) -> int:
    """What the server answered; 0 for what is no answer."""
    return max(code, 0)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


__all__ = ["MailError", "MailProblem", "Mailer"]

_AT_ONCE = 4
_HOUR_SECONDS = 3600.0
_SAID_CHARS = 300
_log = structlog.get_logger("mail")


class Mailer:
    """Sends letters. Counts those of the last hour; the count begins anew with each start."""

    def __init__(self, settings: MailSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._threads = Threads(_AT_ONCE)
        self._sent_at: deque[float] = deque()

    def use(self, settings: MailSettings) -> None:
        """From the next letter on these hold."""
        self._settings = settings

    async def send(self, letter: Letter, key: str, within_seconds: float | None = None) -> str:
        """The Message-ID of `letter`, which the server has taken; the same `key` gives the same one. Raises MailError:
        what is not allowed, what the server refuses, what is down, and `unknown_outcome` where the answer to the whole
        letter was lost. `within_seconds` may shorten the time that the settings give it."""
        settings = self._settings
        self._check(letter, settings)
        identity = message_id(key, settings.sender)
        content = encoded(
            letter, sender=settings.sender, name=settings.sender_name, identity=identity, at=self._clock.now()
        )
        self._sent_at.append(self._clock.monotonic())
        seconds = min(settings.timeout_seconds, settings.timeout_seconds if within_seconds is None else within_seconds)
        try:
            await self._handed_over(Parcel(settings.sender, letter.to, content), settings, seconds)
        except MailError as error:
            _log.warning("mail_failed", problem=error.problem.value, status=error.status, said=_line(error.said))
            raise
        return identity

    def _check(self, letter: Letter, settings: MailSettings) -> None:
        """Raises MailError for what may not be sent."""
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

    async def _handed_over(self, parcel: Parcel, settings: MailSettings, seconds: float) -> None:
        handover = Handover()
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._threads.run(hand_over, parcel, settings, handover)
        except TimeoutError:
            raise MailError(MailProblem.UNKNOWN if handover.abandon() else MailProblem.SLOW) from None
        except asyncio.CancelledError:
            handover.abandon()
            raise


def _line(said: str) -> str:
    return " ".join(said.split())[:_SAID_CHARS]
