"""Members' own data: /forget me, /export me, /optout and /optin."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from bot.database.opening import DATABASE
from bot.platforms.base import SendFailed
from bot.platforms.http.wire import member_message_body
from bot.testing import PLATFORM, Group, TestPlatform, a_group, call
from config.texts import Texts
from function_calls.context import Kind, Quoted
from services.refs import ChatRef, MemberRef, Role
from services.store.all_tables import all_tables
from services.store.chats import summaries
from services.store.chats.history import HISTORY
from services.store.chats.opt_outs import OPT_OUTS
from services.store.port import Query, Statement
from services.store.turns import http_events
from services.store.turns.budgets import BUDGETS
from tests.fakes.kept import heard, kept

EN = Texts().of("en")
ANN = MemberRef(PLATFORM, "bot", "ann")
WORK = ChatRef(PLATFORM, "bot", "work")
HOME: dict[str, Any] = {"chat": ChatRef(PLATFORM, "bot", "dm-ann"), "is_group": False}
CONFIRM = EN.say("privacy.confirm")


async def contents(group: Group) -> dict[str, str]:
    """All rows of all tables, as one text per table."""
    await group.daemon.store.commit([])
    texts: dict[str, str] = {}
    for name, table in all_tables().tables.items():
        rows = await group.daemon.store.read(Query(Statement("tests.all", select(table)), {}))
        texts[name] = "\n".join(json.dumps(dict(row), ensure_ascii=False) for row in rows)
    return texts


async def tables_with(group: Group, word: str) -> set[str]:
    return {name for name, text in (await contents(group)).items() if word in text}


def prompts(group: Group, first: int = 0) -> str:
    return "\n".join(message.content for one in group.model.requests[first:] for message in one.messages)


async def forget(group: Group, **where: Any) -> str:
    (question,) = await group.say("Ann", "/forget me", **where)
    assert question.endswith(CONFIRM)
    (answer,) = await group.say("Ann", "yes", **where)
    return answer


async def leave_traces(group: Group, word: str, **where: Any) -> None:
    """Everything that Ann can leave in a chat, each with `word`; her name is the sender's in every message."""

    async def say(text: str) -> list[str]:
        context = group.message("Ann", text, **where)
        before = len(group.platform.sent)
        sender = context.sender.__class__(context.sender.ref, f"{word}name", context.sender.role)
        await group.daemon.intake.accept(context.__class__(**{**fields(context), "sender": sender}))
        await group.settle()
        return [one.text for one in group.platform.sent[before:]]

    for text in (
        f"{word}spoken to everybody",
        f"/remember my colour is {word}note",
        f"/remember for everybody: we sing {word}chatnote",
        f"/todo add {word}todo",
        f"/remind in 2 hours {word}reminder",
        f"/remind in 1 minute {word}sooner",
        f"/poll {word}question? {word}yes, {word}no",
        "/vote 1",
        f"/{word}command",
    ):
        await say(text)
    await group.clock.advance(120)
    await group.settle()
    group.model.says(f"You said {word}answered.")
    await say(f"@Rollcall please repeat {word}answered")
    group.model.says(call("remember", fact=f"{word}bymodel"), "Noted.")
    await say(f"@Rollcall remember {word}bymodel")
    group.model.says(call("todo_add", text=f"{word}modeltodo"), f"There: {word}replied.")
    await say(f"@Rollcall put {word}modeltodo on the list")
    group.model.says(call("poll_create", question=f"{word}asked"))
    await say(f"@Rollcall a poll on {word}asked")


def fields(context: Any) -> dict[str, Any]:
    return {name: getattr(context, name) for name in context.__dataclass_fields__}


MEMORY: dict[str, Any] = {"filters": {"turn": [{"memory": {"minutes": 60}}]}}


@pytest.mark.parametrize("settings", [{}, MEMORY], ids=["plain", "memory"])
async def test_after_forget_me_no_table_has_a_word_of_the_member(settings: dict[str, Any]) -> None:
    async with a_group(settings=settings) as group:
        await group.say("Bob", "hello bobword")
        await leave_traces(group, "canary")
        quote = Quoted("m1", "canaryname", "canaryspoken to everybody")
        group.model.says("Ann said canaryspoken.")
        await group.say("Bob", "@Rollcall what was that?", reply_to=quote)
        assert {"history", "inbox", "todos", "polls", "timers", "memory_notes", "outbox"} <= await tables_with(
            group, "canary"
        )
        answer = await forget(group)
        assert EN.say("privacy.rows.notes", count=3) in answer
        assert EN.say("privacy.rows.todos", count=2) in answer
        assert EN.say("privacy.rows.polls", count=1) in answer
        assert await tables_with(group, "canary") == set()
        assert "bobword" in (await contents(group))["history"]


async def test_in_a_group_only_its_data_is_forgotten_and_in_private_that_of_all_chats() -> None:
    async with a_group() as group:
        await leave_traces(group, "canary")
        await leave_traces(group, "office", chat=WORK)
        await leave_traces(group, "secret", **HOME)
        await group.say("Ann", "/timezone Oslo", **HOME)
        await group.say("Ann", "/link", **HOME)
        assert EN.say("privacy.only_here") in await forget(group)
        assert await tables_with(group, "canary") == set()
        assert {"memory_notes", "history"} <= await tables_with(group, "officenote")
        assert {"members", "link_codes"} <= await tables_with(group, ANN.key)
        assert EN.say("privacy.only_here") not in await forget(group, **HOME)
        for word in ("canary", "office", "secret", "Oslo"):
            assert await tables_with(group, word) == set(), word
        # The running turn and its question, for which the network may repeat a message.
        assert await tables_with(group, ANN.key) <= {"inbox", "ledger", "pending", "outbox", "history", "budgets"}


async def test_forgetting_twice_and_with_nothing_stored_succeeds() -> None:
    async with a_group() as group:
        await forget(group)
        assert "messages" in await forget(group)
        await group.say("Bob", "/todo add milk")
        assert "to-dos" not in await forget(group)
        assert "milk" in "".join(await group.say("Bob", "/todo"))


async def test_a_no_forgets_nothing() -> None:
    async with a_group() as group:
        await group.say("Ann", "/todo add milk")
        await group.say("Ann", "/forget me")
        await group.say("Ann", "no")
        assert "milk" in "".join(await group.say("Ann", "/todo"))


async def test_data_of_others_and_of_similar_names_stays() -> None:
    async with a_group() as group:
        for who in ("Bob", "Ann2", "Ann"):
            await group.say(who, f"/remember I like {who}food")
            await group.say(who, f"/todo add {who}todo")
            await group.say(who, f"{who}said something")
        await forget(group)
        for word in ("Bobfood", "Bobtodo", "Bobsaid", "Ann2food", "Ann2todo", "Ann2said"):
            assert await tables_with(group, word), word
        for word in ("Annfood", "Anntodo", "Annsaid"):
            assert not await tables_with(group, word), word


async def test_an_open_question_and_a_forgotten_reminder_lead_to_nothing() -> None:
    async with a_group() as group:
        await group.say("Ann", "/remind in 10 minutes tea")
        await group.say("Ann", "/poll", chat=WORK)
        await forget(group, **HOME)
        assert await group.say("Ann", "Where do we eat?", chat=WORK) == []
        await group.clock.advance(1200)
        await group.settle()
        assert all("tea" not in one.text for one in group.platform.sent[-3:])


async def test_a_redelivered_message_is_still_recognised_after_forgetting() -> None:
    async with a_group() as group:
        todo = group.message("Ann", "/todo add milk")
        await group.daemon.intake.accept(todo)
        await group.settle()
        await forget(group)
        await group.daemon.intake.accept(todo)
        await group.settle()
        assert "milk" not in "".join(await group.say("Bob", "/todo"))


async def test_a_daily_limit_is_not_reset_by_forgetting() -> None:
    async with a_group(settings={"budgets": {"member": {"requests": 1}}}) as group:
        group.model.says("One.", "Two.")
        assert await group.say("Ann", "@Rollcall hi") == ["One."]
        await forget(group, **HOME)
        assert await group.say("Ann", "@Rollcall hi again") != ["Two."]


async def test_runs_that_a_filter_counts_are_erased_but_for_those_of_today() -> None:
    settings = {"filters": {"call": [{"limits": {"calls_per_minute": 9}}]}}
    async with a_group(settings=settings) as group:
        await group.say("Ann", "/roll")
        await group.clock.advance(2 * 24 * 3600)
        await forget(group, **HOME)
        rows = await kept(group, BUDGETS.c.holder, BUDGETS.c.day)
        assert rows == [(f"rate member {ANN.key}", "2026-01-07")]


async def test_the_answer_says_how_long_backups_and_records_remain() -> None:
    settings = {"store": {"backups_kept": 4, "backup_every_hours": 12, "days_kept": 7}}
    async with a_group(settings=settings) as group:
        answer = await forget(group)
        assert EN.say("privacy.remains.backups", count=4, days=2) in answer
        assert EN.say("privacy.remains.others", days=7) in answer
    async with a_group(settings={"store": {"backup_every_hours": 0}}) as group:
        assert EN.say("privacy.remains.operators_backups") in await forget(group)


async def test_the_database_file_has_none_of_the_words_once_it_is_compacted(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await leave_traces(group, "canary")
        await forget(group)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"canary" not in (tmp_path / DATABASE).read_bytes()


def network(*, attachments: bool = True) -> TestPlatform:
    platform = TestPlatform()
    platform.limits = platform.limits.__class__(
        **{**fields(platform.limits), "attachments": attachments, "file_bytes": 1_000_000 if attachments else 0}
    )
    return platform


async def test_an_export_is_a_private_file_with_the_own_data_only() -> None:
    async with a_group(platform=network()) as group:
        await leave_traces(group, "canary")
        await leave_traces(group, "office", chat=WORK)
        await group.say("Bob", "bobword")
        group.model.says("Bob said bobword.")
        await group.say("Ann", "@Rollcall what did Bob say?")
        before = len(group.platform.sent)
        assert (await group.say("Ann", "/export me"))[-1] == EN.say("privacy.exported.sent")
        sent = group.platform.sent[before]
        assert sent.private_to == ANN
        [file] = sent.attachments
        content = base64.b64decode(file.url.partition(",")[2]).decode()
        data = json.loads(content)
        assert (file.name, data["member"], data["chat"]) == ("rollcall-data.json", ANN.key, group.chat.key)
        for word in ("spoken", "note", "chatnote", "todo", "reminder", "question", "bymodel"):
            assert f"canary{word}" in content, word
        assert all(data["tables"].values())
        assert "bobword" not in content
        assert "office" not in content
        assert "base64" not in (await contents(group))["outbox"]
        await group.say("Ann", "/export me", **HOME)
        [file] = group.platform.sent[-1].attachments
        assert "office" in base64.b64decode(file.url.partition(",")[2]).decode()


async def test_where_the_network_has_no_files_the_export_says_so() -> None:
    async with a_group(platform=network(attachments=False)) as group:
        await group.say("Ann", "/todo add canary")
        before = len(group.platform.sent)
        answers = await group.say("Ann", "/export me")
        assert "rollcall-data.json" in answers[0]
        assert "canary" not in "".join(answers)
        assert group.platform.sent[before].private_to == ANN


async def test_words_of_a_member_who_opted_out_are_in_no_prompt_and_no_table() -> None:
    settings = {"chats": {"allow": ["*"], "settings": {"*": {"chime_in": "judge", "memory_digest": True}}}}
    async with a_group(settings=settings) as group:
        await group.say("Ann", "canarybefore")
        assert EN.say("privacy.opted_out.here", count=2) in await group.say("Ann", "/optout")
        first = len(group.model.requests)
        await group.say("Ann", "canaryaside", id="m-aside")
        await group.say("Ann", "canaryaside", id="m-aside", kind=Kind.EDIT)
        await group.say("Ann", "/canaryunknown")
        group.model.says("Good morning, canaryreplied.")
        assert await group.say("Ann", "@Rollcall canaryasked?") == ["Good morning, canaryreplied."]
        asked = len(group.model.requests)
        assert asked == first + 1
        assert re.findall(r"canary\w+", prompts(group, first)) == ["canaryasked"]
        group.model.says(call("todo_add", text="kept"), "There: canaryagain.")
        await group.say("Ann", "@Rollcall put it on the list: kept, canaryagain")
        assert "canaryasked" not in prompts(group, asked)
        asked = len(group.model.requests)
        answer = group.platform.sent[-1]
        own = Quoted(f"sent-{answer.key}", "Rollcall", answer.text, from_bot=True)
        group.model.says("Sure.", "Sure.", "Sure.")
        await group.say("Bob", "@Rollcall is that so?", reply_to=Quoted("m-aside", "Ann", "canaryaside"))
        await group.say("Bob", "@Rollcall is that so?", reply_to=own)
        await group.say("Bob", "@Rollcall is that so?", reply_to=Quoted("unknown", "Ann", "canaryaside"))
        assert "canary" not in prompts(group, asked)
        assert len(group.model.requests) == asked + 3
        assert await tables_with(group, "canary") == set()


async def test_a_quotation_of_others_is_shown_although_somebody_opted_out() -> None:
    async with a_group() as group:
        await group.say("Ann", "/optout")
        await group.say("Bob", "bobword", id="m-bob")
        group.model.says("Sure.")
        await group.say("Eve", "@Rollcall is that so?", reply_to=Quoted("m-bob", "Bob", "bobword"))
        assert "bobword' " in prompts(group) or "'bobword'" in prompts(group)


async def test_further_messages_of_a_member_who_opted_out_are_not_gathered() -> None:
    async with a_group(settings={"limits": {"gather_seconds": 5}}) as group:
        await group.say("Ann", "/optout")
        group.model.says("Hello.", "Both.")
        await group.hear("Ann", "@Rollcall hi")
        await group.hear("Ann", "canary for Bob")
        await group.settle()
        assert "canary" not in prompts(group)


async def test_the_question_of_a_member_who_opted_out_is_deleted_once_answered() -> None:
    async with a_group() as group:
        await group.say("Ann", "/optout")
        group.model.says(call("todo_add"), "Done.")
        await group.say("Ann", "@Rollcall canaryrequest")
        assert "pending" in await tables_with(group, "canaryrequest")
        await group.say("Ann", "milk")
        assert await tables_with(group, "canaryrequest") == set()
        assert "milk" in "".join(await group.say("Ann", "/todo"))


async def test_an_expired_question_of_a_member_who_opted_out_is_deleted() -> None:
    async with a_group() as group:
        await group.say("Ann", "/optout")
        group.model.says(call("todo_add"), "Done.")
        await group.say("Ann", "@Rollcall canaryrequest")
        await group.clock.advance(86_400)
        await group.daemon.housekeeping.expire_questions()
        await group.daemon.housekeeping.forget()
        assert await tables_with(group, "canaryrequest") == set()


async def test_an_undeliverable_answer_to_a_member_who_opted_out_is_not_kept() -> None:
    async with a_group() as group:
        await group.say("Ann", "/optout")
        group.platform.failures.append(SendFailed("gone", retryable=False))
        group.model.says("canaryreplied")
        await group.say("Ann", "@Rollcall hi")
        assert await tables_with(group, "canary") == set()


async def test_a_model_notes_nothing_on_a_member_who_opted_out_but_the_command_does() -> None:
    async with a_group() as group:
        await group.say("Ann", "/optout")
        group.model.says(call("remember", fact="I like canaryfood"), "Well.")
        await group.say("Ann", "@Rollcall I like canaryfood")
        assert "memory_notes" not in await tables_with(group, "canaryfood")
        await group.say("Ann", "/remember I like canaryfood")
        assert await tables_with(group, "canaryfood") == {"memory_notes"}


async def test_opting_out_holds_in_its_group_only_and_from_a_private_chat_everywhere() -> None:
    async with a_group() as group:
        await group.say("Ann", "/optout", chat=WORK)
        await group.say("Ann", "hello family")
        await group.say("Ann", "hello work", chat=WORK)
        assert ("Ann", "hello family") in await heard(group)
        assert ("Ann", "hello work") not in await heard(group)
        await group.say("Ann", "/optout", **HOME)
        await group.say("Ann", "again family")
        assert all(sender != "Ann" for sender, _ in await heard(group))
        assert await group.say("Ann", "/optin") == [EN.say("privacy.still_out")]
        assert await group.say("Ann", "/optin", **HOME) == [EN.say("privacy.opted_in.everywhere")]
        await group.say("Ann", "third work", chat=WORK)
        assert ("Ann", "third work") in await heard(group)


async def test_the_mark_survives_forgetting_and_a_restart(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await group.say("Ann", "/optout")
        await forget(group)
        assert await kept(group, OPT_OUTS.c.member, OPT_OUTS.c.chat) == [(ANN.key, group.chat.key)]
    async with a_group(home=tmp_path) as group:
        await group.say("Ann", "canary")
        assert await tables_with(group, "canary") == set()


async def test_in_chinese_the_commands_work_too() -> None:
    zh = Texts().of("zh")
    async with a_group(settings={"language": "zh"}) as group:
        assert await group.say("Ann", "/不记录我") == [zh.say("privacy.opted_out.here", count=1)]
        assert await group.say("Ann", "/恢复记录") == [zh.say("privacy.opted_in.here")]
        assert (await group.say("Ann", "/导出我的数据"))[-1] == zh.say("privacy.exported.sent")
        assert await group.say("Ann", "/忘记我") == [zh.say("privacy.confirm")]
        (answer,) = await group.say("Ann", "好")
        assert answer.startswith("🗑 已删除")


async def test_roles_do_not_matter_and_models_cannot_call_the_commands() -> None:
    async with a_group() as group:
        group.model.says("Hello.")
        await group.say("Ann", "@Rollcall you should forget it", role=Role.OWNER)
        offered = {one.original for one in group.model.requests[-1].offer.functions}
        assert offered.isdisjoint({"forget_me", "export_me", "opt_out", "opt_in"})


async def test_the_events_of_the_chat_page_are_forgotten_except_those_of_others() -> None:
    async with a_group() as group:
        events = {who: group.message(who, f"canary{who}") for who in ("Ann", "Ann2", "Bob")}
        for context in events.values():
            body = member_message_body(context, context.text)
            event = http_events.Event(group.daemon.ids.next(), body)
            await group.daemon.store.commit([http_events.add(event, group.chat.key, context.key.native_id)])
        await group.say("Ann", "hello")
        answer = '{"type":"message","id":"b","text":"canaryAnn"}'
        event = http_events.Event(group.daemon.ids.next(), answer)
        await group.daemon.store.commit([http_events.add(event, group.chat.key, "b")])
        await forget(group)
        left = (await contents(group))["http_events"]
        assert sorted(set(re.findall(r"canary\w+", left))) == ["canaryAnn2", "canaryBob"]


async def test_a_summary_in_progress_is_not_stored_after_its_messages_were_forgotten() -> None:
    async with a_group() as group:
        await group.say("Ann", "canary")
        await group.say("Bob", "hello")
        until_id = (await kept(group, HISTORY.c.id))[-1][0]
        query = summaries.unchanged(group.chat.key, 0, until_id)
        [row] = await group.daemon.store.read(query)
        facts: dict[str, Any] = {"after": 0, "until_id": until_id, "unchanged": row["count"], "at_ms": 0}
        await forget(group)
        assert await group.daemon.store.commit([summaries.put(group.chat.key, "", "canary", **facts)]) == [0]


async def test_a_quotation_of_a_member_who_was_forgotten_is_left_out_while_another_opted_out() -> None:
    async with a_group() as group:
        await group.say("Ann", "canary", id="m-ann")
        await forget(group)
        await group.say("Bob", "/optout")
        group.model.says("Sure.")
        assert await group.say("Eve", "@Rollcall so?", reply_to=Quoted("m-ann", "Ann", "canary")) == ["Sure."]
        assert "canary" not in prompts(group)
