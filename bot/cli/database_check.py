"""What `rollcall doctor` says of the database."""

from __future__ import annotations

from bot.database import database_of, restore_advice
from bot.on_server import state_on_server
from config.diagnostics import Diagnostic
from config.settings import Settings
from services.store.backups import damage
from services.store.migrations.transaction import VERSIONS
from services.store.revisions import read_revisions
from services.store.side import ReaderError


def check_database(settings: Settings) -> Diagnostic | str:
    """Whether it can be used; on a server also its version, that of the schema, and who leads."""
    return _on_server(settings) if settings.store.is_on_a_server else _on_sqlite(settings)


def _on_sqlite(settings: Settings) -> Diagnostic | str:
    path = database_of(settings)
    if not path.exists():
        return f"{path} is made at the first start"
    problem = damage(path)
    if problem is None:
        return f"{path}: whole"
    text = f"{problem}; {restore_advice(settings)}"
    return Diagnostic(str(path), 1, 1, "store.damaged", text)


def _on_server(settings: Settings) -> Diagnostic | str:
    try:
        state = state_on_server(settings.store)
    except ReaderError as problem:
        return Diagnostic("store.url", 1, 1, "store.unreachable", str(problem))
    revisions = read_revisions(VERSIONS)
    if state.schema_version is None:
        schema = "its tables are made at the first start"
    elif state.schema_version == revisions.head:
        schema = f"schema {state.schema_version}, up to date"
    elif state.schema_version in revisions.known:
        schema = f"schema {state.schema_version}, brought to {revisions.head} by the next daemon that leads"
    else:
        text = f"{state.place} has schema {state.schema_version}, which only a newer version of the program knows"
        return Diagnostic("store.url", 1, 1, "store.too_new", text)
    leader = f"{state.leader.holder} leads" if state.leader else "nobody leads"
    return f"{state.place}: PostgreSQL {state.server_version}; {schema}; {leader}"
