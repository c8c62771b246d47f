"""Letters: whom they go to, what they say, and the bytes that a mail server takes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from services.json_values import JsonValue

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
