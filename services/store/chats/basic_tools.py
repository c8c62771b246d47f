"""Tools compiled from BASIC scripts, by bot and name."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, or_, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text, upsert

BASIC_TOOLS = table(
    "basic_tools",
    text("bot", primary_key=True),
    text("tool_name", primary_key=True),
    text("source"),  # settings key of the source that has its file
    text("path"),  # of the file in its storage
    text("etag"),
    text("content_hash"),  # of the file's text, the profile and the compiler together; empty: to be recompiled
    text("script"),  # the text in use
    text("definition"),  # JSON of the tool's definition; empty if the file was never a valid tool
    text("program"),  # JSON of facts about its code, so that it need not be parsed
    text("findings"),  # JSON of the findings of the last compilation
    integer("is_active"),
    integer("compiled_ms"),
)
_TOOLS = BASIC_TOOLS.c
_THIS = (_TOOLS.bot == bindparam("of_bot")) & (_TOOLS.tool_name == bindparam("of_tool"))
_FILE = (_TOOLS.source == bindparam("of_source")) & (_TOOLS.path == bindparam("of_path"))
_OUTDATED = {"etag": "", "content_hash": ""}

# If two files define the same tool, the first one has precedence.
_KEEP = Statement(
    "basic_tools.keep",
    upsert(
        BASIC_TOOLS,
        where=lambda new: or_(_TOOLS.is_active == 0, and_(_TOOLS.source == new.source, _TOOLS.path == new.path)),
    ),
)
_SEEN = Statement(
    "basic_tools.seen",
    update(BASIC_TOOLS)
    .where(_FILE, _TOOLS.is_active == 1)
    .values(etag=bindparam("new_etag"), findings=bindparam("new_findings")),
)
_DEACTIVATE = Statement(
    "basic_tools.deactivate",
    update(BASIC_TOOLS).where(_THIS, _TOOLS.source == bindparam("of_source")).values(is_active=0),
)
_OUTDATE = Statement("basic_tools.outdate", update(BASIC_TOOLS).where(_THIS).values(_OUTDATED))
_OUTDATE_BOT = Statement(
    "basic_tools.outdate_bot", update(BASIC_TOOLS).where(_TOOLS.bot == bindparam("of_bot")).values(_OUTDATED)
)
_OUTDATE_ALL = Statement("basic_tools.outdate_all", update(BASIC_TOOLS).values(_OUTDATED))
EVERYTHING = Statement(
    "basic_tools.all",
    select(*(column for column in BASIC_TOOLS.columns if column.name != "script")).order_by(
        _TOOLS.source, _TOOLS.path, _TOOLS.bot, _TOOLS.tool_name
    ),
).query()
"""All columns except `script` of all tools, active or not, ordered by file."""
OUTDATED = Statement(
    "basic_tools.outdated",
    select(_TOOLS.source, _TOOLS.path).where(_TOOLS.content_hash == "", _TOOLS.etag == "").distinct(),
).query()
"""`source` and `path` of the files to be recompiled."""
_SCRIPT = Statement("basic_tools.script", select(_TOOLS.script, _TOOLS.content_hash).where(_THIS))


def keep(**values: str | int) -> Write:
    """Store a compiled tool, a value for each column. Touches no row if another file defines that tool."""
    return _KEEP.write(**values)


def seen(source: str, path: str, etag: str, findings: str) -> Write:
    """Record the new etag and findings of a changed file whose active tools have not changed."""
    return _SEEN.write(of_source=source, of_path=path, new_etag=etag, new_findings=findings)


def deactivate(bot: str, tool_name: str, source: str) -> Write:
    """Deactivate a tool; its row stays. Touches no row if it belongs to another source by now."""
    return _DEACTIVATE.write(of_bot=bot, of_tool=tool_name, of_source=source)


def outdate(bot: str | None = None, tool_name: str | None = None) -> Write:
    """Mark the tool, all tools of the bot, or all tools for recompilation, by clearing their hashes, whether or not
    their files have changed."""
    if bot is None:
        return _OUTDATE_ALL.write()
    if tool_name is None:
        return _OUTDATE_BOT.write(of_bot=bot)
    return _OUTDATE.write(of_bot=bot, of_tool=tool_name)


def script_of(bot: str, tool_name: str) -> Query:
    """`script` and `content_hash` of one tool, active or not; no row if there is no such tool."""
    return _SCRIPT.query(of_bot=bot, of_tool=tool_name)
