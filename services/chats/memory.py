"""Notes that members ask the bot to keep, on themselves or on the chat. A note is read only where it was told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from config.sections.models import MemorySettings
from services.chats.members import KnownMember
from services.clock import Clock
from services.patterns import lazy_pattern, one_line
from services.refs import ErrorCode, MemberRef, RequestProblem
from services.store.chats import memory
from services.store.chats.memory import Note
from services.store.port import Conflict, Query, Store
from services.text_index import Field, TextIndex, is_unspaced, scan, stem, terms

NOTE_CHARS = 300
"""Maximum length of a note; a longer one is rejected by the functions."""
_ATTEMPTS = 5
_FIELDS = {"text": Field(1.0, 0.5)}
_NUMBER = re.compile(r"(?:#|no\.?\s*|number\s+|第)?\s*(\d{1,9})\s*(?:条|号)?", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_ALL = r"(?:everybody|everyone|(?:all of )?us|(?:this|the) (?:chat|group))"
_FOR_ALL = lazy_pattern(
    rf"\A(?:(?:for|about) {_ALL}(?: that\b|\s*[:,])?|{_ALL}\s*:)\s*(?=\S)"
    r"|\A(?:(?:给|为|替)(?:大家|所有人|全群|本群)(?:记住)?\s*[:,，：]?|(?:大家|所有人|全群|本群)\s*[:，：])\s*(?=\S)",
    re.IGNORECASE,
)
_THAT = lazy_pattern(r"\A(?:that\s+|一下\s*[:,，：]?\s*)(?=\S)", re.IGNORECASE)
_I_AM = r"(?:i am|i'm)"
_ADVERBS = r"(?: really| also| now| do not| don't| no longer| never)*"
_SUBJECTS = (
    ("name", rf"{_I_AM} (?:called|named) .+|call me .+|my name(?: is|'s) .+|我(?:的?名字(?:是|叫)|叫).+"),
    ("home", r"i (?:now |currently )?live .+|我(?:现在|目前)?住.+"),
    ("work", r"i (?:now |currently )?(?:work|study) .+|我(?:现在|目前)?在.+(?:工作|上班|上学|读书)"),
    ("age", rf"{_I_AM} (?:now )?\d+(?: years old)?|我(?:今年)?\d+岁"),
    (
        "like",
        rf"i{_ADVERBS} (?:like|love|enjoy|prefer|hate|dislike) (.+)|我(?:很|最|也|不|不再|更)*(?:喜欢|爱|讨厌)(.+)",
    ),
    ("be", rf"{_I_AM}(?: now| not| no longer)* (.+)|我(?:现在|不再|不)*是(.+)"),
    ("of", r"(?:my|our|the) (.{1,60}?)(?: is| are|'s| =|:) .+|我(?:们)?的?(..{0,20}?)(?:是|为|：|:).+"),
)
"""Forms of statements that exclude another one with the same subject: the kind, and with groups what it is about."""
_OF_CHAT = r"(.{1,60}?) (?:is|are) .+|(..{0,20}?)(?:是|改到).+"


class Place(NamedTuple):
    """Where a note is told and read: a chat, or a member's private messages to the bot in a group."""

    chat: str
    reader: str = ""
    """Key of the member who alone sees the conversation in a group, or empty."""


class SeveralNotes(Exception):
    """More than one note has such a text: `notes`."""

    def __init__(self, notes: Sequence[Note]) -> None:
        super().__init__(len(notes))
        self.notes = notes


class Remembered(NamedTuple):
    """A note, and those that it replaced."""

    note: Note
    replaced: Sequence[Note] = ()
    is_new: bool = True
    """False: it was known already."""


class Memory:
    """The notes of all chats. Every change has the key of its call; a repeated call changes nothing."""

    def __init__(self, store: Store, clock: Clock, settings: MemorySettings) -> None:
        self._store = store
        self._clock = clock
        self.settings = settings
        """May be replaced at any time."""

    async def remember(
        self, place: Place, text: str, author: KnownMember, *, on_chat: bool, replaces: int | None, at_ms: int, key: str
    ) -> Remembered:
        """Add a note on its author, or on the chat, that was said at `at_ms`; `key` is the key of the call. It replaces
        the note with the number `replaces`, and notes with the same subject. Raises RequestProblem if there are too
        many, or none with that number."""
        text, about = one_line(text), "" if on_chat else author.ref.key
        subject, name = subject_of(text, on_chat=on_chat), one_line(author.name)
        new = Note(place.chat, 0, place.reader, about, author.ref.key, name, text, subject, at_ms, key)
        most = self.settings.notes_per_chat if on_chat else self.settings.notes_per_member
        for _ in range(_ATTEMPTS):
            known = await self._read(memory.by_call(place.chat, key))
            added = [note for note in known if note.call_key == key]
            if added:
                return Remembered(added[0], [note for note in known if note.ended_by == key])
            found = await self._read(memory.about(place.chat, [about], place.reader))
            others = [note for note in found if (note.about, note.private_to) == (about, place.reader)]
            same = [note for note in others if note.text.casefold() == text.casefold()]
            if same:
                return Remembered(same[0], is_new=False)
            replaced = [note for note in others if note.number == replaces or (subject and note.subject == subject)]
            if replaces is not None and all(note.number != replaces for note in replaced):
                raise _unknown(f"#{replaces}")
            if len(others) - len(replaced) >= most:
                break
            ends = [memory.replace(note, key, self._clock.now_ms()) for note in replaced]
            with suppress(Conflict):  # another process took the number
                await self._store.commit([memory.add(new), *ends])
        raise RequestProblem("memory.full")

    async def of(self, place: Place, member: MemberRef) -> Sequence[Note]:
        """The notes on `member` and on the chat that may be shown in `place`, by number."""
        return await self._read(memory.about(place.chat, [member.key], place.reader))

    async def recall(self, place: Place, members: Sequence[str], text: str) -> Sequence[Note]:
        """The notes that may be shown in `place`, on the chat and on the members with these keys, at most eight; the
        first one asks. Notes that share words with `text` come first, then those on the asker, then new ones."""
        notes = await self._read(memory.about(place.chat, members, place.reader))
        index = TextIndex([{"text": terms(f"{note.author_name} {note.text}")} for note in notes], _FIELDS)
        scores = index.scores(dict.fromkeys(terms(text), 1.0))
        order = sorted(
            range(len(notes)),
            key=lambda at: (at not in scores, notes[at].about != members[0], -scores.get(at, 0), -notes[at].number),
        )
        return [notes[at] for at in order]

    async def forget(
        self, place: Place, which: str, *, by: MemberRef, may_forget_any: bool, restore: bool = False, key: str
    ) -> Remembered:
        """Erase the note that `which` selects, and the notes that it had replaced, or with `restore` make them valid
        again. Returns them; the note's text is empty if this call erased it earlier. `which` is a number, or words of
        one of the notes that `of` returns. Permitted to the note's author, and to restore to those of the others.
        Raises RequestProblem if there is none or it is another member's, and SeveralNotes."""
        for note in await self._read(memory.by_call(place.chat, key)):
            return Remembered(note)
        number, wanted = _NUMBER.fullmatch(which.strip()), one_line(which).casefold()
        if number is not None:
            numbered = await self._read(memory.numbered(place.chat, int(number[1])))
            found = [note for note in numbered if note.private_to in ("", place.reader)]
        else:
            found = [note for note in await self.of(place, by) if wanted in note.text.casefold()]
        if not found:
            raise _unknown(which)
        if len(found) > 1:
            raise SeveralNotes(found)
        note = found[0]
        known = await self._read(memory.by_call(place.chat, note.call_key)) if restore else []
        restored = [one for one in known if one.ended_by == note.call_key]
        if not may_forget_any and all(one.author != by.key for one in (note, *restored)):
            raise RequestProblem("memory.foreign")
        writes = [memory.restore(place.chat, note.call_key)] if restore else []
        await self._store.commit([*writes, *memory.forget(note, key, self._clock.now_ms())])
        return Remembered(note, restored)

    async def _read(self, query: Query) -> list[Note]:
        return [Note(**row) for row in await self._store.read(query)]


def _unknown(words: str) -> RequestProblem:
    return RequestProblem("memory.unknown", ErrorCode.NOT_FOUND, words=words)


def subject_of(text: str, *, on_chat: bool) -> str:
    """What a statement such as "my X is Y" or "我的X是Y" is about; two notes with the same subject contradict each
    other. Empty if the form is unknown."""
    words = one_line(text).casefold().replace("’", "'").rstrip(".!。！")
    for kind, form in (*_SUBJECTS, *([("of", _OF_CHAT)] if on_chat else [])):
        found = re.fullmatch(form, words)
        if found is not None:
            topic = " ".join(sorted(set(terms(found[found.lastindex])))) if found.lastindex else ""
            return f"{kind} {topic}" if topic or not found.re.groups else ""
    return ""


def without_request(text: str) -> tuple[str, bool]:
    """`text` without a leading "that" and "for everybody:", and whether it has the latter, so is about the chat."""
    text = _THAT.sub("", text.strip())
    fact = _FOR_ALL.sub("", text)
    return fact, fact != text


def is_in_words(text: str, said: Iterable[str], name: str) -> bool:
    """Whether all words and numbers of `text` are in `said` or in the speaker's `name`; the order may differ. False
    for a text without words."""
    spoken = " ".join((*said, name))
    # With stop words: "likes" is none, but "like" is.
    known = {*terms(spoken), *(stem(token.text) for token in scan(spoken)), *_DIGITS.findall(spoken)}
    words = {term for term in terms(text) if len(term) == 1 or not is_unspaced(term)}
    return bool(words) and known.issuperset({*words, *_DIGITS.findall(text)})
