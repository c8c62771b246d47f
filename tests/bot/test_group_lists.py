"""Expenses, sign-ups and shopping lists of a group: commands, buttons, words, restarts, and many members at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from bot.platforms.base import Outgoing
from bot.testing import Group, TestPlatform, a_group, call
from config.texts import Texts
from function_calls.context import Kind, Quoted
from services.llm.offline.offline import OfflineModel
from services.refs import ChatRef, MemberRef, Role

WORK = ChatRef("test", "bot", "work")
WITHOUT_BUTTONS = replace(TestPlatform().limits, choices=False)
Opens = Callable[..., AbstractAsyncContextManager[Group]]


class Editing(TestPlatform):
    """A network on which the bot can change its messages."""

    def __init__(self) -> None:
        super().__init__()
        self.edits: list[tuple[str, Outgoing]] = []

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        self.edits.append((native_id, outgoing))

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        raise NotImplementedError


@pytest.fixture(params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    """Opens groups on the same database, one after another."""
    is_server = request.param == "postgresql"
    store = {"store": {"url": request.getfixturevalue("new_postgres_database")}} if is_server else {}
    return lambda: a_group(home=tmp_path, settings=store)


async def all_speak(group: Group, *names: str) -> None:
    for name in names or ("Anna", "Ben", "Cem"):
        await group.say(name, "hi")


async def press(group: Group, who: str, label: str, message: Outgoing | None = None) -> list[str]:
    """Press the button whose label begins with `label`, of the last message with buttons by default."""
    shown = message or next(one for one in reversed(group.platform.sent) if one.choices)
    value = next(choice.value for choice in shown.choices if choice.label.startswith(label))
    pressed = Quoted(f"sent-{shown.key}", "Rollcall", shown.text, from_bot=True)
    return await group.say(who, value, kind=Kind.CHOICE, reply_to=pressed)


async def test_expenses_are_shared_settled_and_paid_also_after_a_restart(home: Opens) -> None:
    async with home() as group:
        await all_speak(group)
        assert await group.say("Anna", "/expense 30 EUR pizza") == [
            "#1 Anna paid 30.00 EUR: pizza\nShares: Anna 10.00 EUR, Ben 10.00 EUR, Cem 10.00 EUR"
        ]
        assert await group.say("Ben", "/expense 12,50 taxi for Anna and me") == [
            "#2 Ben paid 12.50 EUR: taxi\nShares: Anna 6.25 EUR, Ben 6.25 EUR"
        ]
    async with home() as group:
        assert (await group.say("Cem", "/expenses"))[0].splitlines()[-3:] == [
            "Anna gets back 13.75 EUR",
            "Ben owes 3.75 EUR",
            "Cem owes 10.00 EUR",
        ]
        (settlement,) = await group.say("Cem", "/settle")
        assert settlement.splitlines()[1:3] == ["1. Cem → Anna: 10.00 EUR", "2. Ben → Anna: 3.75 EUR"]
        assert await press(group, "Cem", "✔ Cem") == ["#3 Cem paid 10.00 EUR back to Anna"]
        assert await group.say("Anna", "/settle paid Ben") == ["#4 Ben paid 3.75 EUR back to Anna"]
        assert await group.say("Ben", "/settle") == ["Everything is settled. 🎉"]


async def test_the_settlement_changes_in_place_and_an_old_button_pays_nothing() -> None:
    platform = Editing()
    async with a_group(platform=platform) as group:
        await all_speak(group)
        await group.say("Anna", "/expense 30 pizza")
        await group.say("Anna", "/settle")
        old, sent = platform.sent[-1], len(platform.sent)
        assert await press(group, "Ben", "✔ Ben", old) == []
        native_id, board = platform.edits[-1]
        assert (native_id, len(platform.sent)) == (f"sent-{old.key}", sent)
        assert "Ben paid 10.00 back to Anna" in board.text
        assert [choice.label for choice in board.choices] == ["✔ Cem → Anna: 10.00"]
        assert (await press(group, "Cem", "✔ Cem", old))[0].startswith("There is no such payment now")
        assert len((await group.say("Anna", "/expenses"))[0].splitlines()) == 5


async def test_only_its_members_or_a_moderator_mark_a_payment_or_delete_an_entry() -> None:
    async with a_group() as group:
        await all_speak(group)
        await group.say("Anna", "/expense 20 pizza for Anna, Ben")
        assert (await group.say("Cem", "/settle paid 1"))[0].startswith("Only the member who pays")
        assert (await group.say("Cem", "/expense delete 1"))[0].startswith("Only the member who paid")
        assert await group.say("Mod", "/expense delete 1", role=Role.MODERATOR) == [
            "Deleted: #1 Anna paid 20.00: pizza"
        ]
        assert (await group.say("Anna", "/expenses"))[0].startswith("No expenses yet")
        assert await group.say("Anna", "/expense delete 1 restore=true") == ["Valid again: #1 Anna paid 20.00: pizza"]


async def test_a_model_notes_an_expense_without_a_question_and_undo_deletes_it() -> None:
    async with a_group() as group:
        await all_speak(group)
        group.model.says(call("expense_add", what="pizza", amount=30, members=["Ben", "me"]), "Noted.")
        assert (await group.say("Anna", "@Rollcall I paid 30 for pizza, split it with Ben"))[0] == (
            "#1 Anna paid 30.00: pizza\nShares: Anna 15.00, Ben 15.00"
        )
        assert await press(group, "Anna", "Undo") == ["Deleted: #1 Anna paid 30.00: pizza"]
        group.model.says(call("expense_delete", number=1, restore=True), "Back.")
        assert (await group.say("Anna", "@Rollcall the pizza was right"))[0] == "Valid again: #1 Anna paid 30.00: pizza"


async def test_an_unknown_member_and_a_bad_amount_change_nothing() -> None:
    async with a_group() as group:
        await all_speak(group)
        assert "“Ana”" in (await group.say("Anna", "/expense 30 pizza for Ana"))[0]
        assert (await group.say("Anna", "/expense pizza"))[0].startswith("How much was it?")
        assert (await group.say("Anna", "/expense 0.001 pizza"))[0].startswith("The amount has to be")
        assert (await group.say("Anna", "/expenses"))[0].startswith("No expenses yet")


async def test_members_are_shown_by_their_current_names() -> None:
    async with a_group() as group:
        await all_speak(group)
        await group.say("Anna", "/expense 30 pizza")
        renamed = group.message("Anna", "hi")
        await group.daemon.intake.accept(replace(renamed, sender=replace(renamed.sender, name="Annika")))
        await group.settle()
        assert "Annika paid 30.00: pizza" in (await group.say("Ben", "/expenses"))[0]


async def test_lists_of_one_chat_are_not_seen_in_another() -> None:
    async with a_group() as group:
        await group.say("Anna", "/expense 30 pizza")
        await group.say("Anna", "/signup Pizza")
        await group.say("Anna", "/shop milk")
        assert (await group.say("Anna", "/expenses", chat=WORK))[0].startswith("No expenses yet")
        assert (await group.say("Anna", "/signup join 1", chat=WORK))[0].startswith("I can't find")
        assert (await group.say("Anna", "/shop", chat=WORK))[0].startswith("The shopping list is empty")


async def test_members_join_wait_and_are_promoted_with_a_mention(home: Opens) -> None:
    async with home() as group:
        assert (await group.say("Anna", "/signup Pizza night Friday, 2 places"))[0].splitlines() == [
            "📋 Sign-up 1: Pizza night Friday (0 of 2 places)",
            "Press a button, or send /signup join or /signup leave and the number.",
        ]
        for name in ("Anna", "Ben", "Cem"):
            await press(group, name, "Join")
    async with home() as group:
        before, *_ = await group.say("Ben", "/signups")
        assert before.splitlines()[1:] == ["1. Anna", "2. Ben", "Waiting (1): Cem"]
        left, promoted = await group.say("Anna", "/signup leave 1")
        assert left.splitlines()[2:] == ["1. Ben", "2. Cem"]
        assert promoted == "Cem, a place is free and now yours: Pizza night Friday"
        assert group.platform.sent[-1].mentions == (MemberRef("test", "bot", "cem"),)


async def test_three_members_at_once_lose_nothing(home: Opens) -> None:
    async with home() as group:
        await group.say("Anna", "/signup Pizza")
        for name in ("Anna", "Ben", "Cem"):
            await group.hear(name, "/signup join 1")
            await group.hear(name, f"/shop oat milk of {name}")
            await group.hear(name, f"/expense 10 tea for {name}")
        await group.settle()
        assert (await group.say("Anna", "/signups"))[0].splitlines()[1:] == ["1. Anna", "2. Ben", "3. Cem"]
        assert len((await group.say("Anna", "/shop"))[0].splitlines()) == 4
        assert len((await group.say("Anna", "/expenses"))[0].splitlines()) == 5


async def test_a_promotion_is_a_message_of_its_own_where_the_list_changes_in_place() -> None:
    platform = Editing()
    async with a_group(platform=platform) as group:
        await group.say("Anna", "/signup Pizza, 1 place")
        board = platform.sent[-1]
        for name in ("Anna", "Ben"):
            assert await press(group, name, "Join", board) == []
        assert await press(group, "Anna", "Leave", board) == ["Ben, a place is free and now yours: Pizza"]
        assert platform.edits[-1][1].text.splitlines() == [
            "📋 Sign-up 1: Pizza (1 of 1 places)", "1. Ben", "Anna is off the list: Pizza",
        ]  # fmt: skip
        assert [choice.label for choice in platform.edits[-1][1].choices] == ["Join", "Leave"]


async def test_a_promotion_by_a_private_request_is_said_in_the_group() -> None:
    async with a_group() as group:
        await group.say("Anna", "/signup Pizza, 1 place")
        for name in ("Anna", "Ben"):
            await group.say(name, "/signup join")
        await group.say("Anna", "/signup leave", private=True)
        left, promoted = group.platform.sent[-2:]
        assert (left.private_to, promoted.private_to) == (MemberRef("test", "bot", "anna"), None)
        assert promoted.text.startswith("Ben, a place is free")


async def test_a_private_chat_has_a_shopping_list_but_no_expenses_and_sign_ups() -> None:
    async with a_group() as group:
        alone = {"chat": ChatRef("test", "bot", "anna"), "is_group": False}
        assert "#1 milk" in (await group.say("Anna", "/shop milk", **alone))[0]
        for line in ("/expense 30 pizza", "/signup Pizza"):
            assert "30" not in (refused := (await group.say("Anna", line, **alone))[0])
            assert "group" in refused


async def test_only_its_author_or_an_admin_closes_a_list() -> None:
    async with a_group() as group:
        await group.say("Anna", "/signup Pizza")
        assert await group.say("Ben", "/signup close") == ["Only Anna or an admin can close this sign-up list."]
        assert (await group.say("Mod", "/signup close", role=Role.MODERATOR))[0].startswith("Only Anna")
        assert (await group.say("Boss", "/signup close", role=Role.ADMIN))[0].startswith("📋 Sign-up 1 is closed")
        assert await group.say("Ben", "/signup join") == ["That sign-up list is closed."]
        assert (await group.say("Anna", "/signup close 1 reopen=true"))[0].startswith("📋 Sign-up 1: Pizza")


async def test_a_model_signs_its_asker_up_without_a_question_and_undo_leaves() -> None:
    async with a_group() as group:
        await group.say("Anna", "/signup Pizza")
        group.model.says(call("signup_join"), "You are in.")
        assert (await group.say("Ben", "@Rollcall put me on the list"))[0].startswith("Ben is in: Pizza")
        assert (await press(group, "Ben", "Undo"))[0].startswith("Ben is off the list: Pizza")


async def test_a_shopping_list_is_ticked_off_by_buttons_in_place() -> None:
    platform = Editing()
    async with a_group(platform=platform) as group:
        await group.say("Anna", "/shop milk, 6 eggs")
        board = platform.sent[-1]
        assert board.text.splitlines() == ["🛒 Shopping list (2 to buy):", "#1 milk", "#2 6 eggs"]
        assert await press(group, "Ben", "milk", board) == []
        changed = platform.edits[-1][1]
        assert changed.text.splitlines()[1:] == ["#2 6 eggs", "#1 ✅ milk", "✅ Ben bought milk."]
        assert [choice.label for choice in changed.choices] == ["6 eggs", "Clear bought"]


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("/bought milk", "✅ Anna bought milk."),
        ("/bought 1, eggs", "✅ Anna bought milk, 6 eggs."),
        ("/买好 1", "✅ Anna bought milk."),
        ("/bought tea", "I found nothing like tea on the list."),
        ("/bought m", "More than one item matches m:\n#1 milk\n#3 ham"),
    ],
)
async def test_a_shopping_list_is_ticked_off_by_words_where_there_are_no_buttons(words: str, reply: str) -> None:
    async with a_group(platform=TestPlatform(WITHOUT_BUTTONS)) as group:
        await group.say("Anna", "/shop milk, 6 eggs, ham")
        assert await group.say("Anna", words) == [reply]


async def test_signing_up_and_paying_work_by_words_where_there_are_no_buttons() -> None:
    async with a_group(platform=TestPlatform(WITHOUT_BUTTONS)) as group:
        await all_speak(group)
        assert "/signup join 1" in (await group.say("Anna", "/报名 周五披萨，1个名额"))[0]
        assert (await group.say("Ben", "/报名 参加"))[0].startswith("Ben is in: 周五披萨")
        await group.say("Anna", "/记账 30元 披萨 给 Ben、Cem")
        assert "/settle paid 1" in (await group.say("Cem", "/结算"))[0]
        assert await group.say("Cem", "/结算 已付 2") == ["#2 Cem paid 15.00 CNY back to Anna"]


async def test_bought_things_are_cleared_and_undo_brings_them_back() -> None:
    async with a_group() as group:
        await group.say("Anna", "/shop milk, eggs, tea")
        await group.say("Anna", "/bought milk, tea")
        group.model.says(call("shop_remove"), "Done.")
        assert (await group.say("Ben", "@Rollcall clear the shopping list"))[0] == "Removed from the list: milk, tea"
        assert await group.say("Ben", "/shop clear") == ["The shopping list stays as it is."]
        assert await press(group, "Ben", "Undo") == ["Back on the list: milk, tea"]
        assert (await group.say("Anna", "/shop"))[0].splitlines()[1:] == ["#2 eggs", "#1 ✅ milk", "#3 ✅ tea"]


async def test_what_a_model_adds_is_removed_by_undo_and_known_items_stay() -> None:
    async with a_group() as group:
        await group.say("Anna", "/shop milk")
        group.model.says(call("shop", items="Milk, 6 eggs"), "Added.")
        assert "#2 6 eggs" in (await group.say("Ben", "@Rollcall we need milk and eggs"))[0]
        assert await press(group, "Ben", "Undo") == ["Removed from the list: 6 eggs"]
        assert (await group.say("Ben", "/shop"))[0].splitlines() == ["🛒 Shopping list (1 to buy):", "#1 milk"]


@pytest.mark.parametrize(
    ("sentence", "beginning"),
    [
        ("i paid 30 for pizza", "#1 Anna paid 30.00: pizza"),
        ("who has to pay whom", "Everything is settled"),
        ("start a sign-up list for pizza night", "📋 Sign-up 1: pizza night"),
        ("put milk and eggs on the shopping list", "🛒 Shopping list (2 to buy)"),
        ("把牛奶加到购物清单", "🛒 Shopping list (1 to buy)"),
        ("我付了30买披萨", "#1 Anna paid 30.00: 披萨"),
        ("发起报名：周五披萨", "📋 Sign-up 1: 周五披萨"),
    ],
)
async def test_sentences_work_without_a_language_model(sentence: str, beginning: str) -> None:
    async with a_group(model=OfflineModel(Texts())) as group:
        assert (await group.say("Anna", f"@Rollcall {sentence}"))[0].startswith(beginning)
