"""Links between accounts of one person, and the codes that make them."""

from __future__ import annotations

from sqlalchemy import BindParameter, Index, ScalarSelect, and_, bindparam, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT, integer, table, text, upsert

LINKS = table(
    "member_links",
    text("member", primary_key=True),
    text("person"),
    text("name"),
    text("chat"),
    text("language"),
    Index("member_links_by_person", "person"),
)
"""`person` is the key of one of the person's accounts, and the same in all their rows."""
CODES = table(
    "link_codes",
    text("member", primary_key=True),
    text("code"),
    text("name"),
    text("chat"),
    text("language"),
    integer("expires_ms"),
    text("claimed_by", nullable=True),
    text("claimed_name", nullable=True),
    text("claimed_chat", nullable=True),
    text("claimed_language", nullable=True),
    text("claimed_in", nullable=True),
    text("ended_in", nullable=True),
    Index("link_codes_by_code", "code", unique=True),
    Index("link_codes_by_expiry", "expires_ms"),
)
"""One code per member. `claimed_in` and `ended_in` are the keys of the calls that claimed it, and accepted or rejected
the claim."""
_MEMBER = bindparam("of_member", type_=TEXT)
_CODE = bindparam("of_code", type_=TEXT)
_CALL = bindparam("in_call", type_=TEXT)
_IS_VALID = bindparam("now_ms", type_=INTEGER) < CODES.c.expires_ms


def _person(member: BindParameter[str]) -> ScalarSelect[str]:
    """The person of the bound member; null if the member has no link."""
    return select(LINKS.c.person).where(LINKS.c.member == member).scalar_subquery()


_ISSUE = Statement("link_codes.issue", upsert(CODES))
_FIND = Statement("link_codes.find", select(CODES).where(CODES.c.code == _CODE))
_CLAIM = Statement(
    "link_codes.claim",
    update(CODES)
    .where(
        CODES.c.code == _CODE,
        CODES.c.member != _MEMBER,
        or_(and_(CODES.c.claimed_by.is_(None), _IS_VALID), CODES.c.claimed_in == _CALL),
    )
    .values(
        claimed_by=_MEMBER,
        claimed_name=bindparam("new_name"),
        claimed_chat=bindparam("new_chat"),
        claimed_language=bindparam("new_language"),
        claimed_in=_CALL,
        expires_ms=bindparam("new_expires_ms"),
    ),
)
_END = Statement(
    "link_codes.end",
    update(CODES)
    .where(
        CODES.c.code == _CODE,
        CODES.c.member == _MEMBER,
        CODES.c.claimed_by.is_not(None),
        or_(and_(CODES.c.ended_in.is_(None), _IS_VALID), CODES.c.ended_in == _CALL),
    )
    .values(ended_in=_CALL),
)
_WITHDRAW = Statement(
    "link_codes.withdraw", delete(CODES).where(or_(CODES.c.member == _MEMBER, CODES.c.claimed_by == _MEMBER))
)

_OTHER = bindparam("of_other", type_=TEXT)
_NEW = {name: bindparam(f"new_{name}", type_=TEXT) for name in ("name", "chat", "language")}
_START = Statement(
    "member_links.start", insert(LINKS).values(member=_MEMBER, person=_MEMBER, **_NEW).on_conflict_do_nothing()
)
_MERGE = Statement(
    "member_links.merge", update(LINKS).where(LINKS.c.person == _person(_OTHER)).values(person=_person(_MEMBER))
)
_JOIN = Statement(
    "member_links.join",
    insert(LINKS)
    .from_select(
        ["member", "person", *_NEW], select(_OTHER, LINKS.c.person, *_NEW.values()).where(LINKS.c.member == _MEMBER)
    )
    .on_conflict_do_nothing(index_elements=["member"]),
)
_DISSOLVE = Statement("member_links.dissolve", delete(LINKS).where(LINKS.c.person == _person(_MEMBER)))
_OF_PERSON = Statement(
    "member_links.of_person", select(LINKS).where(LINKS.c.person == _person(_MEMBER)).order_by(LINKS.c.member)
)
EVERYTHING = Statement("member_links.all", select(LINKS.c.member, LINKS.c.person)).query()
"""The `member` and `person` of all linked accounts."""


def members_of_person(member: BindParameter[str]) -> ScalarSelect[str]:
    """Subquery with the keys of all accounts linked with the bound member, also its own; empty without links."""
    return select(LINKS.c.member).where(LINKS.c.person == _person(member)).scalar_subquery()


def issue(code: str, *, member: str, name: str, chat: str, language: str, expires_ms: int) -> Write:
    """Store a code of the member, which replaces an earlier one and its claim."""
    unclaimed = {column.name: None for column in CODES.columns if column.nullable}
    return _ISSUE.write(
        code=code, member=member, name=name, chat=chat, language=language, expires_ms=expires_ms, **unclaimed
    )


def find(code: str) -> Query:
    """All columns of a code, valid or not; no row if there is no such code."""
    return _FIND.query(of_code=code)


def claim(
    code: str, *, by: str, name: str, chat: str, language: str, in_call: str, now_ms: int, expires_ms: int
) -> Write:
    """Claim a valid code of another member, which then expires at `expires_ms`. The unit ends in Conflict if the code
    is unknown, expired, the member's own, or claimed in another call."""
    new = {"new_name": name, "new_chat": chat, "new_language": language, "new_expires_ms": expires_ms}
    return _CLAIM.write_expecting(1, of_code=code, of_member=by, in_call=in_call, now_ms=now_ms, **new)


def end(code: str, *, member: str, in_call: str, now_ms: int) -> Write:
    """Mark the member's claimed code as used, so that no other call can accept or reject the claim. The unit ends in
    Conflict if that is no valid, claimed code of the member."""
    return _END.write_expecting(1, of_code=code, of_member=member, in_call=in_call, now_ms=now_ms)


def link(member: tuple[str, str, str, str], other: tuple[str, str, str, str]) -> list[Write]:
    """Link two accounts, each as key, name, chat and language, and all accounts that are linked with either."""
    key, name, chat, language = member
    other_key, other_name, other_chat, other_language = other
    pair = {"of_member": key, "of_other": other_key}
    return [
        _START.write(of_member=key, new_name=name, new_chat=chat, new_language=language),
        _MERGE.write(**pair),
        _JOIN.write(**pair, new_name=other_name, new_chat=other_chat, new_language=other_language),
    ]


def dissolve(member: str) -> list[Write]:
    """Delete all links of the member's person, and the codes that the member has issued or claimed."""
    return [_DISSOLVE.write(of_member=member), _WITHDRAW.write(of_member=member)]


def of_person(member: str) -> Query:
    """All accounts of the member's person, also the member's own, by key; no row without links."""
    return _OF_PERSON.query(of_member=member)
