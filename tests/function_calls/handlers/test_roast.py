"""Roasts: agreement of the member, the model's instruction and text, and texts without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.testing import a_group, call
from config.texts import Texts
from services.llm.offline.offline import OfflineModel
from services.refs import ChatRef

WORK = ChatRef("test", "bot", "work")


@pytest.mark.requirement("D3")
async def test_only_members_who_agreed_are_roasted_and_only_until_they_withdraw() -> None:
    lines = Texts().of("en").say("roast.lines", name="Bo").splitlines()
    async with a_group(model=OfflineModel(Texts())) as group:
        await group.hear("Bo", "hello")
        [refusal] = await group.say("Ann", "/roast Bo")
        assert refusal.startswith("I only roast members who agreed to it, and Bo hasn't.")
        [agreed] = await group.say("Bo", "/roast on")
        assert "/roast off" in agreed
        assert (await group.say("Ann", "/roast @bo"))[0] in lines
        assert (await group.say("Bo", "/roast me"))[0] in lines
        await group.say("Bo", "/roast off")
        assert await group.say("Ann", "/roast Bo") == [refusal]


async def test_an_agreement_is_for_one_chat_and_listed_among_its_grants() -> None:
    async with a_group(model=OfflineModel(Texts())) as group:
        await group.say("Bo", "/roast on")
        await group.say("Bo", "hello", chat=WORK)
        await group.hear("Bo", "hello")
        [elsewhere] = await group.say("Ann", "/roast Bo", chat=WORK)
        assert "hasn't" in elsewhere
        [listed] = await group.say("Ann", "/grants")
        assert "“roast” (Bo), allowed by Bo" in listed


async def test_an_agreement_holds_after_a_restart(tmp_path: Path) -> None:
    async with a_group(model=OfflineModel(Texts()), home=tmp_path) as group:
        await group.hear("Bo", "hello")
        await group.say("Bo", "/roast on")
    async with a_group(model=OfflineModel(Texts()), home=tmp_path) as group:
        assert "hasn't" not in (await group.say("Ann", "/roast Bo"))[0]


async def test_nobody_who_is_no_member_is_roasted() -> None:
    async with a_group() as group:
        for whom in ("the president", "Zed", "Rollcall"):
            [refusal] = await group.say("Ann", f"/roast {whom}")
            assert refusal.startswith("I only roast members who agreed to it")
        assert group.model.requests == []


async def test_the_model_gets_only_the_name_as_data_under_a_strict_instruction() -> None:
    async with a_group() as group:
        await group.hear("Bo", "my secret")
        await group.say("Bo", "/roast on")
        group.model.says("Bo is so late that\nFriday waits for him.")
        assert await group.say("Ann", "/roast Bo") == ["Bo is so late that Friday waits for him."]
        [request] = group.model.requests
    system, data = (message.content for message in request.messages)
    assert "Never about looks" in system
    assert "Bo" not in system
    assert data == 'The member\'s name: "Bo"'


@pytest.mark.parametrize("answer", ["Bo, ask @Ann.", "See https://example.org, Bo."])
async def test_a_text_of_the_model_that_mentions_others_or_links_is_replaced(answer: str) -> None:
    async with a_group() as group:
        await group.hear("Bo", "hello")
        await group.say("Bo", "/roast on")
        group.model.says(answer)
        [reply] = await group.say("Ann", "/roast Bo")
    assert reply in Texts().of("en").say("roast.lines", name="Bo").splitlines()


async def test_a_model_cannot_agree_for_a_member() -> None:
    async with a_group() as group:
        await group.hear("Bo", "hello")
        group.model.says(call("roast", member="on"))
        await group.say("Bo", "@Rollcall roast on")
        [refusal] = await group.say("Ann", "/roast Bo")
    assert "hasn't" in refusal


async def test_in_chinese_it_works_alike() -> None:
    lines = Texts().of("zh").say("roast.lines", name="小明").splitlines()
    async with a_group(model=OfflineModel(Texts()), settings={"language": "zh"}) as group:
        await group.hear("小明", "大家好")
        assert "还没有同意" in (await group.say("小红", "/吐槽 小明"))[0]
        await group.say("小明", "/吐槽 开")
        assert (await group.say("小红", "/骂一下 小明"))[0] in lines
        await group.say("小明", "/吐槽 关")
        assert "还没有同意" in (await group.say("小红", "/吐槽 小明"))[0]


async def test_roasts_are_for_groups() -> None:
    async with a_group() as group:
        [refusal] = await group.say("Ann", "/roast Ann", chat=ChatRef("test", "bot", "ann"), is_group=False)
    assert "works only in groups" in refusal
