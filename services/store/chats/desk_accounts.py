"""Accounts of the operators' desk, and their sessions in browsers."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, func, literal_column, select

from services.refs import Role
from services.store.port import Query, Statement, Write
from services.store.schema import insert_new, integer, table, text, upsert

DESK = "desk"
"""Account of operators as members of chats, on the platform of operators."""
ROLES_IN_CHATS = {"owner": Role.OWNER, "operator": Role.ADMIN, "viewer": Role.MEMBER}
"""Role of an account's holder as a member of chats, by role on the desk."""
ACCOUNTS = table(
    "desk_accounts",
    text("name", primary_key=True),
    text("role"),
    text("password"),
    integer("changed_ms"),
)
SESSIONS = table(
    "desk_sessions",
    text("token", primary_key=True),
    text("account"),
    integer("ends_ms"),
)

_PUT = Statement("desk_accounts.put", upsert(ACCOUNTS))
EVERYTHING = Statement("desk_accounts.all", select(ACCOUNTS).order_by(ACCOUNTS.c.name)).query()
"""All accounts by name: `name`, `role`, `password` (a hash), `changed_ms`."""
_OF_NAME = Statement("desk_accounts.of_name", select(ACCOUNTS).where(ACCOUNTS.c.name == bindparam("name")))
_OTHER_OWNERS = (
    select(func.count()).where(ACCOUNTS.c.role == "owner", ACCOUNTS.c.name != bindparam("of_name")).scalar_subquery()
)
_REMOVE = Statement(
    "desk_accounts.remove",
    delete(ACCOUNTS).where(ACCOUNTS.c.name == bindparam("of_name"), literal_column("0") < _OTHER_OWNERS),
)
_BEGIN = Statement("desk_sessions.begin", insert_new(SESSIONS, "token"))
_SESSION = Statement(
    "desk_sessions.find",
    select(ACCOUNTS.c.name, ACCOUNTS.c.role)
    .join(SESSIONS, SESSIONS.c.account == ACCOUNTS.c.name)
    .where(SESSIONS.c.token == bindparam("token"), SESSIONS.c.ends_ms > bindparam("now_ms")),
)
_END = Statement("desk_sessions.end", delete(SESSIONS).where(SESSIONS.c.token == bindparam("of_token")))
_END_OF = Statement("desk_sessions.end_of", delete(SESSIONS).where(SESSIONS.c.account == bindparam("of_account")))
_FORGET = Statement("desk_sessions.forget", delete(SESSIONS).where(SESSIONS.c.ends_ms <= bindparam("now_ms")))


def put(name: str, role: str, password: str, at_ms: int) -> Write:
    """Add the account, or replace its role and password hash."""
    return _PUT.write(name=name, role=role, password=password, changed_ms=at_ms)


def of_name(name: str) -> Query:
    """The account with that name; no row if there is none."""
    return _OF_NAME.query(name=name)


def remove(name: str) -> Write:
    """Remove the account. Touches no row if it does not exist or no other account is an owner."""
    return _REMOVE.write(of_name=name)


def begin(token: str, account: str, ends_ms: int) -> Write:
    """Store a session of `account` under the hash of its token."""
    return _BEGIN.write(token=token, account=account, ends_ms=ends_ms)


def session(token: str, now_ms: int) -> Query:
    """`name` and `role` of the account whose session has that token hash; no row if the session has ended."""
    return _SESSION.query(token=token, now_ms=now_ms)


def end(token: str) -> Write:
    """End the session with that token hash."""
    return _END.write(of_token=token)


def end_all(account: str) -> Write:
    """End all sessions of the account."""
    return _END_OF.write(of_account=account)


def forget(now_ms: int) -> Write:
    """Delete sessions that have ended."""
    return _FORGET.write(now_ms=now_ms)
