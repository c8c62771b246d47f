"""Answers to approval questions, and equality of runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.sections.bots import ApprovalsSettings
from config.texts import Texts
from function_calls.call import CallRequest, Path
from function_calls.checks.approvals import Approvals
from function_calls.questions.approval_questions import codes_in, read_decision
from function_calls.questions.open_questions import Answered
from function_calls.spec import ApprovalQuestion, ApprovalTerms
from services.chats.grants import Grants
from services.clock import VirtualClock
from services.patterns import visible_line
from services.refs import Role
from services.store.ids import Ids
from tests.fakes.builders import a_message
from tests.fakes.functions import Recorder
from tests.function_calls.routing import Routing

CODE = "3fa9c"
TEXTS = Texts()
SPEC = Recorder("act", {"value": {"type": "object", "required": True}}, effect="once").spec


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("approve 3fa9c", Answered.YES, ""),
        ("3FA9C: OK!", Answered.YES, ""),
        ("Yes", Answered.YES, ""),
        ("同意", Answered.YES, ""),
        ("👍", Answered.YES, ""),
        ("always allow #3fa9c", Answered.ALWAYS, ""),
        ("no", Answered.NO, ""),
        ("No, because it is late", Answered.NO, "it is late"),
        ("no because it is late", Answered.NO, "it is late"),
        ("no - too late", Answered.NO, "too late"),
        ("reject 3fa9c too   late", Answered.NO, "too late"),
        ("refuse", Answered.NO, ""),
        ("拒绝，因为太晚了", Answered.NO, "太晚了"),
        ("拒绝 太晚了", Answered.NO, "太晚了"),
        ("拒绝太晚了", Answered.NO, "太晚了"),
        ("no idea", Answered.UNRELATED, ""),
        ("nobody knows", Answered.UNRELATED, ""),
        ("refused by whom?", Answered.NO, "by whom?"),
        ("rejection hurts", Answered.UNRELATED, ""),
        ("yes but not today", Answered.UNRELATED, ""),
        ("is it ok?", Answered.UNRELATED, ""),
        ("allowance", Answered.UNRELATED, ""),
        ("always late", Answered.UNRELATED, ""),
        ("3fa9c", Answered.UNRELATED, ""),
        ("", Answered.UNRELATED, ""),
    ],
)
def test_an_answer_is_a_clear_yes_or_no_and_all_else_is_talk(text: str, kind: Answered, reason: str) -> None:
    assert read_decision(CODE, text, TEXTS.of("en")) == (kind, reason)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(
            (text, Answered.YES)
            for text in ("yes please", "Sure, go ahead", "可以", "好的，谢谢", "ok 可以", "行", "是的")
        ),
        *((text, Answered.NO) for text in ("no thank you", "no way", "不可以", "不行", "不好", "不用了，谢谢", "算了")),
        *((text, Answered.UNRELATED) for text in ("不知道", "对不起", "好奇怪", "行李呢？", "yes and no", "可以吗？")),
    ],
)
def test_yes_and_no_are_read_in_both_languages_whichever_the_bot_speaks(
    text: str, kind: Answered, language: str
) -> None:
    assert read_decision(CODE, text, TEXTS.of(language)).kind is kind


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("同意 3fa9c", Answered.YES, ""),
        ("以后都同意", Answered.ALWAYS, ""),
        ("拒绝 3fa9c，因为太晚", Answered.NO, "太晚"),
        ("不同意：太晚", Answered.NO, "太晚"),
        ("不", Answered.NO, ""),
        ("不，太晚", Answered.NO, "太晚"),
        ("不知道", Answered.UNRELATED, ""),
        ("同意吗？", Answered.UNRELATED, ""),
        ("approve", Answered.YES, ""),
        ("好的，谢谢", Answered.YES, ""),
        ("那就可以吧", Answered.YES, ""),
        ("不用了", Answered.NO, ""),
        ("不可以", Answered.NO, ""),
        ("不用了谢谢", Answered.NO, ""),
        ("可以吗", Answered.UNRELATED, ""),
        ("好不好", Answered.UNRELATED, ""),
        ("对不起", Answered.UNRELATED, ""),
        ("好了", Answered.UNRELATED, ""),
        ("别的", Answered.UNRELATED, ""),
        ("不好意思，我晚了", Answered.UNRELATED, ""),
    ],
)
def test_it_is_understood_in_chinese_too(text: str, kind: Answered, reason: str) -> None:
    assert read_decision(CODE, text, TEXTS.of("zh")) == (kind, reason)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("approve 3fa9c", True),
        ("(#3FA9C)", True),
        ("approve 3fa9c.", True),
        ("a3fa9c", False),
        ("3fa9cd", False),
        ("https://example.org/3fa9c", False),
    ],
)
def test_a_code_is_a_word_of_its_own(text: str, named: bool) -> None:
    assert (CODE in codes_in(text)) is named


@given(st.text(max_size=60))
def test_nothing_that_is_shown_for_a_yes_hides_or_turns_around(text: str) -> None:
    assert all(
        one.isprintable() for one in visible_line(text).replace(" ", "").replace("\u3000", "") if one not in _SPACES
    )


_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), _JSON, max_size=3), st.dictionaries(st.text(max_size=4), _JSON, max_size=3))
async def test_only_the_same_arguments_are_the_same_run(one: dict[str, Any], other: dict[str, Any]) -> None:
    terms = [await terms_of(values) for values in (one, other, dict(reversed(one.items())))]
    assert terms[0].digest == terms[2].digest
    is_same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (terms[0].digest == terms[1].digest) is is_same


async def terms_of(value: dict[str, Any]) -> ApprovalTerms:
    """Approval terms of a run with this value."""
    clock = VirtualClock()
    grants = Grants(None, clock, Ids(clock))  # type: ignore[arg-type]  # nothing is read or written here
    settings = ApprovalsSettings.model_validate({"required": [{"functions": ["act"]}]})
    request = CallRequest(a_message(), "act", {"value": value}, Routing().a_turn(), Path.COMMAND)
    verdict = Approvals(settings, grants).judge(request, SPEC, {"value": value})
    assert verdict.refusal is not None
    assert isinstance(verdict.refusal.question, ApprovalQuestion)
    terms = verdict.refusal.question.terms
    assert terms.role is Role.ADMIN
    return terms
