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

from config.mail import MailSettings
from services.mail_letters import domain_of, on_the_wire
from services.refs import ErrorCode

_READY = 220
_DONE = 250
_FORWARDED = 251
_AUTHENTICATED = 235
_GO_ON = 334
_SEND_IT = 354


class MailError(Exception):
    """A letter was not sent; with the code `unknown_outcome`, nobody knows. The text is ours, never the server's."""

    def __init__(self, code: ErrorCode, text: str, *, status: int = 0, said: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.status = status
        """What the server answered, 0 where it did not."""
        self.said = said
        """The server's own words, for the log alone."""


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
            raise MailError(ErrorCode.TRANSIENT, "the mail server took too long")


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
    except ssl.SSLError as error:
        if handover.is_given:
            raise _unknown(error) from error
        text = "the connection to the mail server cannot be encrypted, or its certificate is not trusted"
        raise MailError(ErrorCode.ENVIRONMENT, text, said=str(error)) from error
    except socket.gaierror as error:
        raise MailError(ErrorCode.ENVIRONMENT, f"the mail server {host} cannot be found", said=str(error)) from error
    except (OSError, smtplib.SMTPException, ValueError) as error:
        if handover.is_given:
            raise _unknown(error) from error
        raise MailError(
            ErrorCode.TRANSIENT,
            f"the mail server {host} cannot be reached, or the connection broke; nothing was sent",
            said=str(error),
        ) from error


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
        text = "the certificates that mail.ca_file names cannot be read"
        raise MailError(ErrorCode.ENVIRONMENT, text, said=str(error)) from error


def _greet(smtp: smtplib.SMTP, settings: MailSettings, handover: Handover) -> None:
    """Say who we are, over a connection that is as the settings want it."""
    smtp.ehlo_or_helo_if_needed()
    if settings.security == "starttls":
        if not smtp.has_extn("starttls"):
            raise MailError(ErrorCode.ENVIRONMENT, "the mail server does not offer STARTTLS; nothing was sent")
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
        raise MailError(ErrorCode.ENVIRONMENT, "the mail server offers no way to log in that is known here")
    if code != _AUTHENTICATED:
        raise _refused("the mail server does not take the login of the settings", code, said)


def _address(smtp: smtplib.SMTP, parcel: Parcel) -> None:
    """Say from whom and to whom. One recipient who is refused stops it for all."""
    most = smtp.esmtp_features.get("size", "")
    if most.isdecimal() and 0 < int(most) < len(parcel.content):
        raise MailError(ErrorCode.REFUSED, "the letter is too long for the mail server")
    options = [f"size={len(parcel.content)}"] if smtp.has_extn("size") else []
    code, said = smtp.mail(parcel.sender, options)
    if code != _DONE:
        raise _refused("the mail server does not take letters from mail.sender", code, said)
    for one in parcel.to:
        code, said = smtp.rcpt(one)
        if code not in (_DONE, _FORWARDED):
            raise _refused(f"the mail server does not take letters to {one}", code, said)


def _send(smtp: smtplib.SMTP, parcel: Parcel, handover: Handover) -> None:
    code, said = smtp.docmd("DATA")
    if code != _SEND_IT:
        raise _refused("the mail server does not take the letter", code, said)
    smtp.send(on_the_wire(parcel.content))
    handover.give()
    smtp.send(b".\r\n")
    code, said = smtp.getreply()
    if not 200 <= code < 600:
        raise _unknown(said)
    if code >= 300:
        raise _refused("the mail server does not take the letter", code, said)
    with suppress(OSError, smtplib.SMTPException):
        smtp.putcmd("quit")


def _refused(text: str, code: int, said: bytes) -> MailError:
    """The server's no; a 4xx may be a yes later."""
    if code < _READY - 20:
        return MailError(ErrorCode.TRANSIENT, "the mail server broke off; nothing was sent", said=_words(said))
    may_pass = 400 <= code < 500
    text = f"{text} now (status {code}); nothing was sent" if may_pass else f"{text} (status {code}); nothing was sent"
    return MailError(
        ErrorCode.TRANSIENT if may_pass else ErrorCode.FAILED, text, status=max(code, 0), said=_words(said)
    )


def _unknown(said: object) -> MailError:
    text = "the connection broke when the letter had been handed over: nobody knows whether it was sent"
    return MailError(ErrorCode.UNKNOWN_OUTCOME, text, said=_words(said))


def _words(said: object) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
