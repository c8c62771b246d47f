"""Polls in a chat: one vote for each member, changeable until the poll is closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.calc.dice import alternatives, chosen
from services.clock import Clock
from services.patterns import one_line
from services.refs import ChatRef, ErrorCode, MemberRef, RequestProblem
from services.store.chats import polls
from services.store.chats.polls import Poll
from services.store.port import Store

MOST_OPEN = 20
FEWEST_OPTIONS, MOST_OPTIONS = 2, 10
LONGEST_OPTION = 100
REMEMBERED_MS = 90 * 86_400_000
_ATTEMPTS = 5


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
        """Create a poll; a repeated call returns the same one. Raises RequestProblem unless there are 2 to 10 different
        options of at most 100 characters each, and less than `MOST_OPEN` open polls."""
        texts = alternatives(options)
        if not FEWEST_OPTIONS <= len(texts) <= MOST_OPTIONS or any(len(text) > LONGEST_OPTION for text in texts):
            limits = {"fewest": FEWEST_OPTIONS, "most": MOST_OPTIONS, "longest": LONGEST_OPTION}
            raise RequestProblem("poll.bad_options", ErrorCode.BAD_ARGUMENTS, fields=["options"], **limits)
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
        raise RequestProblem("poll.too_many", most=MOST_OPEN)

    async def vote(self, chat: ChatRef, option: str, *, poll: int | None, member: MemberRef) -> tuple[Standing, str]:
        """Vote for `option` (its number or text) in the poll with that number, or the latest open one. Replaces the
        member's earlier vote. Returns the votes and the option's text. Raises RequestProblem for an unknown or closed
        poll and an unknown option."""
        found = await self._find(chat, poll, prefer_open=True)
        closed = RequestProblem("poll.closed_before", question=found.question)
        if not found.is_open:
            raise closed
        choice = chosen(option, found.options)
        if choice is None:
            options = "\n".join(f"{index}. {text}" for index, text in enumerate(found.options, 1))
            code, fields = ErrorCode.BAD_ARGUMENTS, ["option"]
            raise RequestProblem("poll.no_such_option", code, fields=fields, option=option, options=options)
        vote = polls.vote(chat.key, found.number, member=member.key, choice=choice, at_ms=self._clock.now_ms())
        (touched,) = await self._store.commit([vote])
        if not touched:
            raise closed
        return await self._standing(chat, found), found.options[choice]

    async def standing(self, chat: ChatRef, poll: int | None) -> Standing:
        """The votes of the poll with that number, or of the latest, open or closed. Raises RequestProblem without
        one."""
        return await self._standing(chat, await self._find(chat, poll, prefer_open=False))

    async def close(
        self, chat: ChatRef, poll: int | None, *, by: MemberRef, may_close_any: bool, call_key: str
    ) -> Standing:
        """Close the poll with that number, or the latest open one, and return its votes. Closing again has no effect,
        and a repeated call closes no other poll. Raises RequestProblem for an unknown poll, and for that of another
        member without `may_close_any`."""
        closed = next((known for known in await self._all(chat) if known.closed_by == call_key), None)
        if closed is not None:
            return await self._standing(chat, closed)
        found = await self._find(chat, poll, prefer_open=True)
        if found.author != by.key and not may_close_any:
            raise RequestProblem("poll.not_yours", author=found.author_name)
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
            raise RequestProblem("poll.none", ErrorCode.NOT_FOUND)
        return known[-1]

    async def _all(self, chat: ChatRef) -> list[Poll]:
        return [polls.poll(row) for row in await self._store.read(polls.everything(chat.key))]

    async def _standing(self, chat: ChatRef, poll: Poll) -> Standing:
        votes = polls.counts(await self._store.read(polls.tally(chat.key, poll.number)))
        return Standing(poll, tuple(votes.get(index, 0) for index in range(len(poll.options))))
