"""Knowledge bases: folders of documents, cut into passages that are found by words. Changed files count with the next
search."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from config.chat_settings import matches
from config.sections.knowledge import KnowledgeBaseSettings, KnowledgeSettings
from services.clock import Clock
from services.media.documents import MOST_CHARS, UnreadableDocument, plain_text
from services.sandbox.parsing import DocumentParser, Parser, ParsingError
from services.storage import LocalFolder, StorageError
from services.text_index import Field, TextIndex, terms
from services.threads import Threads

ACTIVE_PREFIX = "kb:"
"""Begins the names of knowledge bases among the names that a chat has activated."""
_PLAIN = ("md", "markdown", "txt")
_PARSED = ("pdf", "docx", "pptx", "xlsx")
_PATTERNS = [f"*.{form}" for ending in (*_PLAIN, *_PARSED) for form in (ending, ending.upper())]
_PASSAGE_CHARS = 800
_FIELDS = {"text": Field(1.0, 0.5), "heading": Field(1.0, 0.3), "file": Field(0.7, 0.0)}
_LEAST_SHARE = 0.3
"""Passages with a smaller share of the best score are left out."""
_MOST_OF_A_FILE = 2
_BATCH = 50
_PATIENT_SECONDS = 5.0
_MOST_LOGGED = 20
_PROBLEMS = {
    "encrypted": "encrypted",
    "unknown": "no known format",
    "broken": "damaged",
    "empty": "no text",
    "bomb": "grows too much when it is unpacked",
    "not_installed": "install the extra `documents`",
}
_HEADING = re.compile(r"(#{1,6})\s+(.+?)[\s#]*")
_FENCE = re.compile(r"\s*(```|~~~)")
_BREAK = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；\n])")
_log = structlog.get_logger("knowledge")


class Passage(NamedTuple):
    """Part of a document, with its place: under a heading, or on a page, or else from a line on; numbers begin at 1."""

    base: str
    file: str
    """Path in the folder."""
    heading: str
    """Headings above it, outermost first; may be empty."""
    page: int
    """0: the document has no pages."""
    line: int
    text: str


class Summary(NamedTuple):
    """State of a knowledge base."""

    name: str
    files: int
    passages: int
    problems: Mapping[str, str]
    """Reasons by file that is left out; of the folder itself for an empty name."""


class KnowledgeBases:
    """The knowledge bases of the settings. Belongs to one event loop."""

    def __init__(self, settings: KnowledgeSettings, clock: Clock) -> None:
        self._clock = clock
        self._reader = _Reader(DocumentParser(clock))
        self._bases: dict[str, _Base] = {}
        self.use(settings)

    def use(self, settings: KnowledgeSettings) -> None:
        """Apply new settings from the next search on; a base with the same folder and limits stays indexed."""
        limits = settings.model_copy(update={"bases": {}})
        known, self._bases = self._bases, {}
        for name, one in settings.bases.items():
            base = known.pop(name, None)
            if base is None or (base.settings.path, base.limits) != (one.path, limits):
                base = _Base(name, one, limits, self._reader)
            base.settings = one
            self._bases[name] = base

    def is_configured(self, bot: str) -> bool:
        """Whether any chat of `bot` can have a knowledge base."""
        return any(base.serves(bot) for base in self._bases.values())

    def permitted(self, bot: str, chat_key: str) -> Sequence[str]:
        """Names of the bases that the settings permit here, including those on request."""
        return [
            name
            for name, base in self._bases.items()
            if base.serves(bot) and any(matches(pattern, chat_key) for pattern in base.settings.chats)
        ]

    def visible(self, bot: str, chat_key: str, active: Collection[str]) -> Sequence[str]:
        """Names of the bases that are searched here; `active`: the names that the chat has activated."""
        permitted = self.permitted(bot, chat_key)
        return [one for one in permitted if not self._bases[one].settings.on_request or ACTIVE_PREFIX + one in active]

    async def search(self, names: Iterable[str], query: str, most: int) -> Sequence[Passage]:
        """At most `most` passages of these bases that share words with `query`, best first. Reads changed files first;
        if that takes more than five seconds, it continues in the background, and those files are missing."""
        bases = await self._refreshed(names)
        words = dict.fromkeys(terms(query), 1.0)
        scored = sorted((one for base in bases for one in base.scores(words)), key=itemgetter(0), reverse=True)
        found: list[Passage] = []
        for score, passage in scored:
            if len(found) >= most or score < _LEAST_SHARE * scored[0][0]:
                break
            if sum((one.base, one.file) == (passage.base, passage.file) for one in found) < _MOST_OF_A_FILE:
                found.append(passage)
        return found

    async def files(self, names: Iterable[str]) -> Sequence[tuple[str, str]]:
        """Base and path of the documents of these bases. Reads changed files first, as `search` does."""
        return [(base.name, file) for base in await self._refreshed(names) for file in base.files()]

    async def text(self, name: str, file: str) -> str:
        """The text of a document, with the headings of Markdown; empty if there is no such file. Reads changed files
        first, as `search` does."""
        [base] = await self._refreshed([name])
        return base.text(file)

    async def _refreshed(self, names: Iterable[str]) -> Sequence[_Base]:
        """The bases, after reading changed files, or after five seconds."""
        bases = [self._bases[name] for name in names]
        refreshing = asyncio.create_task(_all_refreshed(bases))
        timer = asyncio.create_task(self._clock.sleep(_PATIENT_SECONDS))
        try:
            await asyncio.wait([refreshing, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        if refreshing.done():
            refreshing.result()
        return bases

    async def refresh(self) -> None:
        """Read the new and changed files of all bases."""
        await _all_refreshed(self._bases.values())

    def summaries(self) -> Sequence[Summary]:
        """State of all bases after the last refresh."""
        return [base.summary() for base in self._bases.values()]

    async def close(self) -> None:
        """Stop reading."""
        for base in self._bases.values():
            base.close()


class _Read(NamedTuple):
    """A file that was read."""

    etag: str
    passages: Sequence[Passage] = ()
    entries: int = 0
    """Estimated number of index entries."""
    problem: str = ""


class _Reader:
    """Reads and cuts documents, two at a time."""

    def __init__(self, parser: DocumentParser) -> None:
        self._parser = parser
        self._places = asyncio.Semaphore(2)
        self.threads = Threads()

    async def read(self, passage: Passage, etag: str, folder: Path, most_kilobytes: int) -> _Read:
        """The passages of the file of `passage`, or the problem."""
        async with self._places:
            try:
                content = await self.threads.run(_content, folder, passage.file, most_kilobytes)
                if _is_parsed(passage.file):
                    parsed = await self._parser.parse(Parser.DOCUMENT, content, "")
                    if "problem" in parsed:
                        return _Read(etag, problem=_PROBLEMS[parsed["problem"]])
                    text = parsed["text"]
                else:
                    text = plain_text(content)[:MOST_CHARS]
            except (StorageError, ParsingError) as error:
                return _Read(etag, problem=str(error))
            except UnreadableDocument as error:
                return _Read(etag, problem=_PROBLEMS[str(error)])
            # An entry for about six letters, and two for each Chinese character, which has three bytes in UTF-8.
            wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
            entries = (len(text) - wide) // 6 + 2 * wide
            return _Read(etag, await self.threads.run(_passages_of, passage, text), entries)


class _Base:
    """The index of one folder."""

    def __init__(self, name: str, settings: KnowledgeBaseSettings, limits: KnowledgeSettings, reader: _Reader) -> None:
        self.settings = settings
        self.limits = limits
        self.name = name
        self._reader = reader
        self._folder = LocalFolder(settings.path, _PATTERNS, is_deep=True)
        self._files: dict[str, _Read] = {}
        self._problem = ""
        self._built: tuple[TextIndex, Sequence[Passage]] = TextIndex([], _FIELDS), ()
        self._full = f"more than {limits.entries} index entries in all (knowledge.entries)"
        self._refreshing: asyncio.Task[None] | None = None

    def serves(self, bot: str) -> bool:
        """Whether chats of `bot` may search it."""
        return not self.settings.bots or bot in self.settings.bots

    def scores(self, words: Mapping[str, float]) -> Iterator[tuple[float, Passage]]:
        """Scores of passages with any of the words, and the passages."""
        index, passages = self._built
        for number, score in index.scores(words).items():
            yield score, passages[number]

    def files(self) -> Sequence[str]:
        """Paths of the files that were read, in order."""
        return sorted(path for path, one in self._files.items() if not one.problem)

    def text(self, file: str) -> str:
        """Text of a file that was read; empty for others."""
        parts: list[str] = []
        heading = ""
        for passage in self._files[file].passages if file in self._files else ():
            if passage.heading and passage.heading != heading:
                parts.append(passage.heading)
            heading = passage.heading
            parts.append(passage.text)
        return "\n\n".join(parts)

    def summary(self) -> Summary:
        """State after the last refresh."""
        problems = {path: one.problem for path, one in self._files.items() if one.problem}
        whole = {"": self._problem} if self._problem else {}
        return Summary(self.name, len(self._files) - len(problems), len(self._built[1]), whole | problems)

    async def refresh(self) -> None:
        """Read new and changed files, and forget removed ones. Concurrent calls share one pass, which continues if the
        caller is cancelled."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(), name=f"knowledge {self.name}")
        await asyncio.shield(self._refreshing)

    def close(self) -> None:
        """Stop reading."""
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def _refresh(self) -> None:
        before, most = self.summary().problems, self.limits.files
        try:
            listed = await self._reader.threads.run(self._folder.list)
        except StorageError as error:
            # The files that were read stay, as while a folder is replaced or its disk is away.
            self._problem = str(error)
        else:
            self._problem = f"more than {most} files (knowledge.files)" if len(listed) > most else ""
            await self._take(dict(list(listed.items())[:most]))
        new = [f"{file}: {one}" for file, one in self.summary().problems.items() if before.get(file) != one]
        if new:
            _log.warning("knowledge_left_out", base=self.name, count=len(new), problems="; ".join(new[:_MOST_LOGGED]))

    async def _take(self, listed: Mapping[str, str]) -> None:
        """Read the changed files of `listed`: texts first, because each document takes a process."""
        removed = self._files.keys() - listed.keys()
        for path in removed:
            del self._files[path]
        changed = [path for path, etag in listed.items() if path not in self._files or self._files[path].etag != etag]
        if not changed and not removed:
            return
        # There may be room for those that were left out.
        changed += [path for path, one in self._files.items() if one.problem == self._full and path not in changed]
        changed.sort(key=_is_parsed)
        for start in range(0, len(changed), _BATCH):
            batch = changed[start : start + _BATCH]
            read = await asyncio.gather(*(self._read(path, listed[path]) for path in batch))
            self._files.update(zip(batch, read, strict=True))
            self._drop_excess()
            if _is_parsed(batch[-1]):
                await self._reader.threads.run(self._build)
        await self._reader.threads.run(self._build)
        state = self.summary()
        _log.info("knowledge_indexed", base=self.name, files=state.files, passages=state.passages)

    def _read(self, path: str, etag: str) -> Coroutine[Any, Any, _Read]:
        whole = Passage(self.name, path, "", 0, 1, "")
        return self._reader.read(whole, etag, self.settings.path, self.limits.file_kilobytes)

    def _drop_excess(self) -> None:
        """Leave out the last files, by path, beyond the limit of entries."""
        entries = 0
        for path, one in sorted(self._files.items()):
            if entries + one.entries > self.limits.entries:
                self._files[path] = _Read(one.etag, problem=self._full)
            else:
                entries += one.entries

    def _build(self) -> None:
        """Index the passages of all files, in the order of their paths. Runs in a thread."""
        passages = [passage for _, one in sorted(self._files.items()) for passage in one.passages]
        self._built = TextIndex([_document(one) for one in passages], _FIELDS), passages


async def _all_refreshed(bases: Iterable[_Base]) -> None:
    await asyncio.gather(*(base.refresh() for base in bases))


def _content(folder: Path, path: str, most_kilobytes: int) -> bytes:
    """Raises StorageError, also for a link out of the folder and a file that is too large."""
    file = folder / path
    try:
        if not file.resolve().is_relative_to(folder.resolve()):
            raise StorageError("a link out of the folder")
        with file.open("rb") as opened:
            content = opened.read(most_kilobytes * 1024 + 1)
    except OSError as error:
        raise StorageError(error.strerror or str(error)) from None
    if len(content) > most_kilobytes * 1024:
        raise StorageError(f"larger than {most_kilobytes} kB (knowledge.file_kilobytes)")
    return content


def _is_parsed(path: str) -> bool:
    return Path(path).suffix[1:].lower() in _PARSED


def _document(passage: Passage) -> Mapping[str, Sequence[str]]:
    name = terms(passage.file.rpartition(".")[0])
    return {"text": terms(passage.text), "heading": terms(passage.heading), "file": name}


def _passages_of(whole: Passage, text: str) -> Sequence[Passage]:
    """Cut the text of the document of `whole` at its headings, pages and paragraphs into passages of at most
    _PASSAGE_CHARS characters."""
    ending = Path(whole.file).suffix[1:].lower()
    found: list[Passage] = []
    for number, page in enumerate(text.replace("\r\n", "\n").split("\f"), 1):
        for heading, line, section in _sections(page) if ending in ("md", "markdown") else [("", 1, page)]:
            place = whole._replace(heading=heading, page=number if ending == "pdf" else 0)
            found += [place._replace(line=line + offset, text=piece) for offset, piece in _pieces(section)]
    return found


def _sections(text: str) -> Iterator[tuple[str, int, str]]:
    """Headings above each section of Markdown, the number of its first line, and its text without the heading."""
    above: list[tuple[int, str]] = []
    lines: list[str] = []
    first, is_code = 1, False
    for number, line in enumerate(text.split("\n"), 1):
        is_code ^= _FENCE.match(line) is not None
        found = None if is_code else _HEADING.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        yield _path_of(above), first, "\n".join(lines)
        level = len(found[1])
        above = [*((depth, title) for depth, title in above if depth < level), (level, found[2])]
        lines, first = [], number + 1
    yield _path_of(above), first, "\n".join(lines)


def _path_of(headings: Iterable[tuple[int, str]]) -> str:
    return " › ".join(title for _, title in headings)[:200]


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs joined up to the limit, each with the number of lines before it."""
    start, end = 0, 0
    for found in re.finditer(r"\S(?:.|\n(?!\s*\n))*", text):
        if end and found.end() - start > _PASSAGE_CHARS:
            yield from _cut(text, start, end)
            end = 0
        start = start if end else found.start()
        end = found.end()
    yield from _cut(text, start, end)


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The text from `start` to `end`; a long paragraph in several parts, cut after sentences where possible."""
    while start < end:
        cut = end
        if end - start > _PASSAGE_CHARS:
            ends = [one.end() for one in _BREAK.finditer(text, start + _PASSAGE_CHARS // 2, start + _PASSAGE_CHARS)]
            cut = ends[-1] if ends else start + _PASSAGE_CHARS
        if piece := text[start:cut].strip():
            yield text.count("\n", 0, start), piece
        start = cut
