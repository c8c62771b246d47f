"""Chats and members have one key, however they were created."""

from __future__ import annotations

import pickle
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.refs import ChatRef, MemberRef

NAMES = st.text(st.characters(exclude_characters=":"))
REFS = pytest.mark.parametrize("ref", [ChatRef, MemberRef])


@dataclass
class Holder:
    chat: ChatRef


@REFS
@given(platform=NAMES, account=NAMES, native=st.text())
def test_a_key_names_what_it_was_made_of(
    ref: type[ChatRef | MemberRef], platform: str, account: str, native: str
) -> None:
    one = ref(platform, account, native)
    assert ref.parse(one.key) == one
    assert (one.platform, one.account, one.native) == (platform, account, native)


@REFS
def test_a_copy_with_another_name_has_another_key(ref: type[ChatRef | MemberRef]) -> None:
    one = ref("irc", "bot", "#club")
    changed = one._replace(native="#choir")
    assert (changed, changed.key) == (ref("irc", "bot", "#choir"), "irc:bot:#choir")
    assert pickle.loads(pickle.dumps(one)) == one


def test_what_holds_one_can_be_copied_field_by_field() -> None:
    chat = ChatRef("irc", "bot", "#club")
    assert asdict(Holder(chat)) == {"chat": chat}


def test_too_few_parts_name_nothing() -> None:
    with pytest.raises(ValueError, match="unpack"):
        ChatRef.parse("irc:bot")
