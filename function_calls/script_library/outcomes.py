"""What becomes of a file that was compiled: which of its tools serve, and what is written of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from config.diagnostics import Diagnostic
from function_calls.basic.codes import Profile
from function_calls.script_library.compiling import Compiled, Compiling, text_of
from function_calls.script_library.kept_tools import LibraryTool, findings_text
from function_calls.script_library.names import Names, Taker, ToolKey, taken_twice
from function_calls.script_library.programs import Programs
from function_calls.script_library.writing import Files, Writing
from services.basic_tools import BasicTools, KeptTool
from services.clock import Clock
from services.store import basic_tools
from services.store.port import StoreError, Write


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all libraries of a source share. Belongs to one event loop."""

    compiling: Compiling
    programs: Programs
    writing: Writing
    kept: BasicTools
    names: Names
    clock: Clock


@dataclass(frozen=True, slots=True)
class KnownScript:
    """What is known of one file."""

    etag: str = ""
    content_hash: str = ""
    """Of what it was when it was compiled last."""
    tools: tuple[LibraryTool, ...] = ()
    """What serves of it."""
    findings: tuple[Diagnostic, ...] = ()
    """What was said of it then."""
    wanted: tuple[ToolKey, ...] = ()
    """The names of tools that it would have, were they not another file's."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a file becomes, and what is to be written of it."""

    path: str
    script: KnownScript
    files: tuple[Files, ...] = ()
    rows: tuple[Write, ...] = ()


class Outcomes:
    """Judges what came of the files of one library."""

    def __init__(self, key: str, profile: Profile, shop: Workshop) -> None:
        self._key = key
        self._profile = profile
        self._shop = shop

    async def of(self, one: Compiled, known: KnownScript, outdated: Sequence[KeptTool]) -> Outcome:
        """`known`: the file as it was before. `outdated`: what was kept of it by another compiler."""
        path = one.place.path
        if one.is_unread:
            # Without an etag it is read again at the next look.
            return Outcome(path, replace(known, etag="", findings=one.findings))
        if one.is_known:
            rows = basic_tools.seen(self._key, path, one.etag, findings_text(known.findings))
            return Outcome(path, replace(known, etag=one.etag), rows=(rows,))
        if one.tools:
            return self._whole(one, known)
        return await self._broken(one, known, outdated)

    def _whole(self, one: Compiled, known: KnownScript) -> Outcome:
        """Of a script without errors: all of its tools serve whose names are free."""
        place, taker = one.place, Taker(self._key, one.place.path, one.file)
        self._shop.names.free(self._key, place.path, but=[tool.key for tool, _ in one.tools])
        mine: list[tuple[LibraryTool, bytes]] = []
        wanted: list[ToolKey] = []
        findings = list(one.findings)
        for tool, program in one.tools:
            first = self._shop.names.take(tool.key, taker)
            if first is None:
                mine.append((tool, program))
            else:
                wanted.append(tool.key)
                findings.append(taken_twice(tool.key, first.file, one.file, tool.definition.line))
        tools = tuple(tool for tool, _ in mine)
        names = {tool.definition.name for tool in tools}
        gone = tuple(tool.definition.name for tool in known.tools if tool.definition.name not in names)
        said = findings_text(findings)
        rows = [basic_tools.deactivate(place.bot, name, self._key) for name in gone]
        # What wants a name that another file has is looked at again at the next start.
        etag = "" if wanted else one.etag
        rows += [self._row(one, tool, said, etag) for tool in tools]
        files = (Files(place.bot, place.name, one.content, tuple(mine), gone),) if mine or not wanted else ()
        script = KnownScript(one.etag, one.content_hash, tools, tuple(findings), tuple(wanted))
        return Outcome(place.path, script, files, tuple(rows))

    def _row(self, one: Compiled, tool: LibraryTool, said: str, etag: str) -> Write:
        return self._shop.kept.kept(
            bot=one.place.bot,
            tool=tool.definition.name,
            source=self._key,
            path=one.place.path,
            etag=etag,
            content_hash=one.content_hash,
            script=text_of(one.content),
            definition=tool.described(),
            program=tool.facts(),
            findings=said,
        )

    async def _broken(self, one: Compiled, known: KnownScript, outdated: Sequence[KeptTool]) -> Outcome:
        """Of a script with errors: what served of it goes on."""
        place = one.place
        if not known.tools and outdated:
            earlier = await self._recovered(one, outdated)
            if earlier is not None:
                rows = (*earlier.rows, basic_tools.seen(self._key, place.path, one.etag, findings_text(one.findings)))
                script = replace(earlier.script, etag=one.etag, findings=one.findings)
                files = (*earlier.files, Files(place.bot, place.name, one.content))
                return replace(earlier, script=script, files=files, rows=rows)
        files = (Files(place.bot, place.name, one.content),)
        script = KnownScript(one.etag, known.content_hash, known.tools, one.findings)
        if known.tools:
            row = basic_tools.seen(self._key, place.path, one.etag, findings_text(one.findings))
            return Outcome(place.path, script, files, (row,))
        row = self._shop.kept.kept(
            bot=place.bot,
            tool=place.name,
            source=self._key,
            path=place.path,
            etag=one.etag,
            content_hash=one.content_hash,
            script=text_of(one.content),
            definition="",
            program="",
            findings=findings_text(one.findings),
            is_active=False,
        )
        return Outcome(place.path, replace(script, content_hash=one.content_hash), files, (row,))

    async def _recovered(self, one: Compiled, outdated: Sequence[KeptTool]) -> Outcome | None:
        """What the file was before it was broken, compiled by this compiler from the text that is kept."""
        rows = [row for row in outdated if row.definition]
        try:
            texts = {await self._shop.kept.script_of(row.bot, row.tool_name, row.content_hash) for row in rows}
        except StoreError:
            return None
        if len(texts) != 1 or None in texts:
            return None
        earlier = await self._shop.compiling.from_text(one.place, one.file, self._profile, str(texts.pop()))
        return self._whole(earlier, KnownScript()) if earlier.tools else None
