"""Handing one letter to a mail server, in a thread: until the closing dot nothing is sent, from then on nobody knows
until the server has answered."""

from __future__ import annotations

import base64
import smtplib
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from config.mail import MailSettings
from services.mail_letters import domain_of, on_the_wire
from services.refs import ErrorCode

_READY = 220
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
            _address(smtp, parcel)
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


def _address(smtp: smtplib.SMTP, parcel: Parcel) -> None:
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
