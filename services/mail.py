"""Mail: letters of the bot's own, through the operator's server, to those whom the settings allow."""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from config.mail import MailSettings, recipient_fits
from services.clock import Clock
from services.mail_letters import Letter, bytes_of, encoded, message_id
from services.smtp_handover import Handover, MailError, MailProblem, Parcel, hand_over
from services.threads import Threads

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
