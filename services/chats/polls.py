"""Polls in a chat: one vote for each member, changeable until the poll is closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.calc.dice import alternatives, chosen
from services.clock import Clock
from services.patterns import one_line
from services.refs import ChatRef, MemberRef
from services.store.chats import polls
from services.store.chats.polls import Poll
from services.store.port import Store

MOST_OPEN = 20
FEWEST_OPTIONS, MOST_OPTIONS = 2, 10
LONGEST_OPTION = 100
REMEMBERED_MS = 90 * 86_400_000
_ATTEMPTS = 5


class BadOptions(ValueError):
    """Fewer than 2 or more than 10 different options, or an option of more than 100 characters."""


class TooManyPolls(Exception):
    """The chat has `MOST_OPEN` open polls."""


class NoPoll(LookupError):
    """The chat has no poll with that number, or none at all."""


class PollError(Exception):
    """Something cannot be done with `poll`."""

    def __init__(self, poll: Poll) -> None:
        super().__init__(poll.number)
        self.poll = poll


class NoSuchOption(PollError):
    """No option of `poll` has that number or text."""


class PollClosed(PollError):
    """`poll` is closed and does not accept votes."""


class NotYourPoll(PollError):
    """`poll` belongs to another member, so it may not be closed."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A poll with its number of votes for each option, in the order of the options."""

    poll: Poll
    votes: tuple[int, ...]

    @property
    def voters(self) -> int:
        """Number of members who voted."""
        return sum(self.votes)

    @property
    def leaders(self) -> tuple[str, ...]:
        """The options with the most votes; several for a tie, empty before the first vote."""
        most = max(self.votes)
        return tuple(text for text, count in zip(self.poll.options, self.votes, strict=True) if most and count == most)


class Polls:
    """The polls of all chats. Closed polls are deleted after 90 days."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def create(
        self,
        chat: ChatRef,
        question: str,
        options: Sequence[str],
        *,
        author: MemberRef,
        author_name: str,
        call_key: str,
    ) -> Poll:
        """Create a poll; a repeated call returns the same one. Raises BadOptions and TooManyPolls."""
        texts = alternatives(options)
        if not FEWEST_OPTIONS <= len(texts) <= MOST_OPTIONS or any(len(text) > LONGEST_OPTION for text in texts):
            raise BadOptions(len(texts))
        now = self._clock.now_ms()
        creation = polls.create(
            texts,
            chat=chat.key,
            call_key=call_key,
            author=author.key,
            author_name=one_line(author_name),
            question=one_line(question),
            created_ms=now,
            most_open=MOST_OPEN,
        )
        for _ in range(_ATTEMPTS):  # another process may take the number between reading and writing
            await self._store.commit([*polls.forget(chat.key, now - REMEMBERED_MS), creation])
            known = await self._all(chat)
            made = next((poll for poll in known if poll.call_key == call_key), None)
            if made is not None:
                return made
            if sum(poll.is_open for poll in known) >= MOST_OPEN:
                break
        raise TooManyPolls

    async def vote(self, chat: ChatRef, option: str, *, poll: int | None, member: MemberRef) -> tuple[Standing, str]:
        """Vote for `option` (its number or text) in the poll with that number, or the latest open one. Replaces the
        member's earlier vote. Returns the votes and the option's text. Raises NoPoll, NoSuchOption and PollClosed."""
        found = await self._find(chat, poll, prefer_open=True)
        if not found.is_open:
            raise PollClosed(found)
        choice = chosen(option, found.options)
        if choice is None:
            raise NoSuchOption(found)
        vote = polls.vote(chat.key, found.number, member=member.key, choice=choice, at_ms=self._clock.now_ms())
        (touched,) = await self._store.commit([vote])
        if not touched:
            raise PollClosed(found)
        return await self._standing(chat, found), found.options[choice]

    async def standing(self, chat: ChatRef, poll: int | None) -> Standing:
        """The votes of the poll with that number, or of the latest, open or closed. Raises NoPoll."""
        return await self._standing(chat, await self._find(chat, poll, prefer_open=False))

    async def close(
        self, chat: ChatRef, poll: int | None, *, by: MemberRef, may_close_any: bool, call_key: str
    ) -> Standing:
        """Close the poll with that number, or the latest open one, and return its votes. Closing again has no effect,
        and a repeated call closes no other poll. Raises NoPoll and NotYourPoll."""
        closed = next((known for known in await self._all(chat) if known.closed_by == call_key), None)
        if closed is not None:
            return await self._standing(chat, closed)
        found = await self._find(chat, poll, prefer_open=True)
        if found.author != by.key and not may_close_any:
            raise NotYourPoll(found)
        closing = polls.close(chat.key, found.number, call_key=call_key, at_ms=self._clock.now_ms())
        await self._store.commit([closing])
        return await self.standing(chat, found.number)

    async def created_since(self, chat: ChatRef, at_ms: int) -> list[Poll]:
        """Polls created at that time (ms since 1970) or later, by number."""
        return [
            polls.poll(row) for row in await self._store.read(polls.everything(chat.key)) if row["created_ms"] >= at_ms
        ]

    async def _find(self, chat: ChatRef, number: int | None, *, prefer_open: bool) -> Poll:
        known = await self._all(chat)
        if number is not None:
            known = [poll for poll in known if poll.number == number]
        elif prefer_open:
            known = [poll for poll in known if poll.is_open] or known
        if not known:
            raise NoPoll
        return known[-1]

    async def _all(self, chat: ChatRef) -> list[Poll]:
        return [polls.poll(row) for row in await self._store.read(polls.everything(chat.key))]

    async def _standing(self, chat: ChatRef, poll: Poll) -> Standing:
        votes = polls.counts(await self._store.read(polls.tally(chat.key, poll.number)))
        return Standing(poll, tuple(votes.get(index, 0) for index in range(len(poll.options))))
