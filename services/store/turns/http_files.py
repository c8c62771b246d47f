"""Files of the messages of the HTTP platform, from members and from the bot."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, delete, or_, select

from services.store.port import Query, Statement, Write
from services.store.schema import beyond_newest, insert_new, integer, table, text
from services.store.turns.http_events import Viewer

FILES = table(
    "http_files",
    integer("id", primary_key=True),
    text("chat"),
    text("native_id"),
    integer("place"),
    text("private_to", nullable=True),
    text("name"),
    text("media_type"),
    text("data"),
)
Index("http_files_by_chat", FILES.c.chat, FILES.c.id)
Index("http_files_once", FILES.c.chat, FILES.c.native_id, FILES.c.place, unique=True)

_COLUMNS = tuple(column.name for column in FILES.columns)
_ADD = Statement("http_files.add", insert_new(FILES, "chat", "native_id", "place"))
_PRUNE = Statement("http_files.prune", delete(FILES).where(*beyond_newest(FILES)))
_CONTENT = select(FILES.c.name, FILES.c.media_type, FILES.c.data).where(FILES.c.id == bindparam("file_id"))
_FIND = Statement(
    "http_files.find",
    _CONTENT.where(
        FILES.c.chat == bindparam("chat"),
        or_(FILES.c.private_to.is_(None), FILES.c.private_to == bindparam("viewer"), bindparam("sees_all", 0) == 1),
    ),
)
_DATA = Statement("http_files.data", _CONTENT)


def add(
    id: int, chat: str, native_id: str, place: int, private_to: str | None, name: str, type: str, data: str
) -> Write:
    """Store the file at `place` of the message `native_id`, with its content in base64; touches no row if it is stored
    already. `private_to`: the only member who may read it."""
    values = (id, chat, native_id, place, private_to, name, type, data)
    return _ADD.write(**dict(zip(_COLUMNS, values, strict=True)))


def prune(chat: str, keep: int) -> Write:
    """Delete all files of `chat` except the newest `keep`."""
    return _PRUNE.write(chat=chat, keep=keep)


def find(chat: str, file_id: int, viewer: Viewer) -> Query:
    """The file of `chat`, if `viewer` may see it, else no row: `name`, `media_type`, `data`."""
    return _FIND.query(chat=chat, file_id=file_id, viewer=viewer.member, sees_all=int(viewer.sees_all))


def data(file_id: int) -> Query:
    """The file with this id, for the daemon itself: `name`, `media_type`, `data`."""
    return _DATA.query(file_id=file_id)
