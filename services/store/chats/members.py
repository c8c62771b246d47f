"""Members' own settings, and the bot's owners on the chat page."""

from __future__ import annotations

from sqlalchemy import bindparam, case, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.chats.member_links import members_of_person
from services.store.port import Query, Statement, Write
from services.store.schema import TEXT, insert_new, integer, table, text, upsert

MEMBERS = table("members", text("member", primary_key=True), text("timezone"), integer("changed_ms"))
_SET_ZONE = Statement("members.set_zone", upsert(MEMBERS))
_SUGGEST_ZONE = Statement("members.suggest_zone", insert_new(MEMBERS))
_MEMBER = bindparam("member", type_=TEXT)
_IS_OWN = case((MEMBERS.c.member == _MEMBER, 1), else_=0)
_ONE = Statement(
    "members.one",
    select(MEMBERS)
    .where(or_(MEMBERS.c.member == _MEMBER, MEMBERS.c.member.in_(members_of_person(_MEMBER))))
    .order_by(MEMBERS.c.changed_ms.desc(), _IS_OWN.desc())
    .limit(1),
)


def set_zone(member: str, timezone: str, now_ms: int) -> Write:
    """Set the member's time zone, replacing an earlier one: an IANA name, or empty for the chat's."""
    return _SET_ZONE.write(member=member, timezone=timezone, changed_ms=now_ms)


def suggest_zone(member: str, timezone: str) -> Write:
    """Set the member's time zone (IANA name) unless the member has a row. It is older than every zone that a linked
    account has set."""
    return _SUGGEST_ZONE.write(member=member, timezone=timezone, changed_ms=0)


def one(member: str) -> Query:
    """The latest settings of the member or a linked account: `timezone`, empty for the chat's; no row if there are
    none."""
    return _ONE.query(member=member)


OWNERS = table("page_owners", text("member", primary_key=True), integer("since_ms"))
LINKS = table(
    "page_owner_links",
    text("token_hash", primary_key=True),
    integer("made_ms"),
    text("used_by", nullable=True),
)

_FORGET_UNUSED = Statement("page_owners.forget_unused_links", delete(LINKS).where(LINKS.c.used_by.is_(None)))
_ADD_LINK = Statement(
    "page_owners.add_link",
    insert(LINKS).values(token_hash=bindparam("token_hash"), made_ms=bindparam("made_ms"), used_by=None),
)
_USE_LINK = Statement(
    "page_owners.use_link",
    update(LINKS)
    .where(LINKS.c.token_hash == bindparam("hash_of_token"), LINKS.c.used_by.is_(None))
    .values(used_by=bindparam("member")),
)
_ADD_OWNER = Statement("page_owners.add", insert_new(OWNERS))
ALL_OWNERS = Statement("page_owners.all", select(OWNERS.c.member)).query()
"""The `member` key of all owners of the chat page."""


def new_link(token_hash: str, now_ms: int) -> list[Write]:
    """Add a single-use link; earlier unused links become invalid."""
    return [_FORGET_UNUSED.write(), _ADD_LINK.write(token_hash=token_hash, made_ms=now_ms)]


def use_link(token_hash: str, member: str, now_ms: int) -> list[Write]:
    """Make `member` an owner by a link. The unit ends in Conflict if the link is unknown or used."""
    return [
        _USE_LINK.write_expecting(1, hash_of_token=token_hash, member=member),
        _ADD_OWNER.write(member=member, since_ms=now_ms),
    ]
