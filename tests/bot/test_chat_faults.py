"""Faults of chat networks: each row of `chat_platform_faults.jsonl` has a test, named here or below."""

from __future__ import annotations

import ast
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import httpx2
from starlette.applications import Starlette

from bot.platforms.base import Accepted, Webhooks
from bot.platforms.contract import a_host
from bot.platforms.telegram.platform import ADAPTER
from bot.testing import a_group
from tests.bot.platforms.telegram.side import settings
from tests.conftest import REPOSITORY
from tests.fakes.functions import Recorder
from tests.fakes.held import Held
from tests.fakes.telegram_server import FakeTelegram

CONTRACT = "bot/platforms/contract.py"
INTAKE = "tests/bot/test_intake.py"
DELIVERY = "tests/bot/test_delivery.py"
OUTGOING = "tests/bot/test_outgoing.py"
CONNECTION = "tests/bot/platforms/test_connection.py"
TELEGRAM = "tests/bot/platforms/telegram/test_telegram.py"
ONEBOT = "tests/bot/platforms/onebot/test_onebot.py"
DISCORD = "tests/bot/platforms/discord/test_discord.py"
RIGHTS = "tests/bot/test_rights.py"
HERE = "tests/bot/test_chat_faults.py"
TESTS: dict[str, tuple[tuple[str, str], ...]] = {
    "chat-dup-immediate": (
        (INTAKE, "test_duplicates_that_arrive_at_once_are_answered_once"),
        (CONTRACT, "test_an_event_that_comes_twice_has_the_same_key"),
    ),
    "chat-dup-60s": ((HERE, "test_a_duplicate_of_a_message_that_is_being_answered_runs_nothing"),),
    "chat-dup-25h": ((HERE, "test_a_duplicate_is_known_days_later"),),
    "chat-dup-newid": ((INTAKE, "test_the_same_words_twice_are_two_messages"),),
    "chat-dup-across-restart": (
        (INTAKE, "test_a_duplicate_is_known_after_a_restart"),
        ("tests/bot/test_crashes.py", "test_after_a_kill_at_any_point_every_message_is_answered_once"),
    ),
    "chat-dup-two-workers": (
        ("tests/bot/test_message_before_turn.py", "test_two_copies_that_come_at_once_are_answered_once"),
    ),
    "chat-ooo-edit-before-create": ((INTAKE, "test_an_edit_that_comes_before_its_message_is_what_gets_answered"),),
    "chat-ooo-delete-before": ((INTAKE, "test_a_message_whose_deletion_came_first_is_not_answered"),),
    "chat-ooo-two": (
        ("tests/bot/test_engine.py", "test_messages_of_a_chat_are_answered_in_the_order_of_their_arrival"),
    ),
    "chat-disconnect-recv": (
        (CONTRACT, "test_a_broken_connection_is_restored"),
        (CONTRACT, "test_messages_of_the_time_away_are_received_in_order_where_that_is_promised"),
    ),
    "chat-disconnect-send": ((CONTRACT, "test_a_send_without_an_answer_has_an_unknown_outcome"),),
    "chat-cursor-lost": (
        (CONTRACT, "test_messages_of_the_time_away_are_received_in_order_where_that_is_promised"),
        (INTAKE, "test_a_message_older_than_the_limit_is_recorded_and_not_answered"),
    ),
    "chat-send-429": ((DELIVERY, "test_the_order_in_a_chat_is_kept_and_other_chats_do_not_wait"),),
    "chat-send-429-global": (
        (DELIVERY, "test_a_rate_limit_of_the_account_pauses_all_its_chats_and_keeps_their_order"),
    ),
    "chat-send-5xx": (
        (CONTRACT, "test_a_temporary_failure_may_be_retried"),
        (DELIVERY, "test_a_failed_send_is_repeated_after_growing_pauses"),
    ),
    "chat-send-timeout-delivered": (
        (CONTRACT, "test_a_send_without_an_answer_has_an_unknown_outcome"),
        (DELIVERY, "test_after_an_unknown_outcome_it_is_sent_again_and_says_so_where_the_network_knows_no_key"),
    ),
    "chat-too-long": ((OUTGOING, "test_an_answer_of_20_000_characters_arrives_in_a_few_pieces"),),
    "chat-split-grapheme": ((OUTGOING, "test_no_character_is_torn"),),
    "chat-split-codefence": ((OUTGOING, "test_a_code_block_that_is_cut_is_closed_and_opened_again"),),
    "chat-send-403-kicked": (
        (CONTRACT, "test_a_send_to_a_chat_that_the_bot_is_not_in_is_given_up"),
        (DELIVERY, "test_what_no_network_takes_is_given_up_counted_and_does_not_hold_up_the_rest"),
    ),
    "chat-send-400-deleted-group": ((CONTRACT, "test_a_send_to_a_chat_that_the_bot_is_not_in_is_given_up"),),
    "chat-send-400-reply-deleted": ((CONTRACT, "test_a_detail_that_the_network_rejects_is_left_out"),),
    "chat-send-400-markup": ((CONTRACT, "test_a_detail_that_the_network_rejects_is_left_out"),),
    "chat-perm-revoked-mid": (
        (RIGHTS, "test_who_is_no_longer_what_the_message_says_may_not_do_what_is_risky"),
        (CONTRACT, "test_roles_are_read_when_they_are_needed"),
    ),
    "chat-perm-cache": ((CONTRACT, "test_roles_are_read_when_they_are_needed"),),
    "chat-user-renamed": (("tests/bot/test_gate.py", "test_a_member_who_is_called_like_the_owner_is_not_the_owner"),),
    "chat-user-id-reuse": ((CONTRACT, "test_roles_are_read_when_they_are_needed"),),
    "chat-group-migrated": (
        (TELEGRAM, "test_a_group_that_becomes_a_supergroup_keeps_its_id_also_after_a_restart"),
        (TELEGRAM, "test_members_cannot_claim_a_migration"),
    ),
    "chat-group-id-as-sender": (
        (TELEGRAM, "test_a_member_whose_id_is_that_of_the_chat_is_only_a_member"),
        (ONEBOT, "test_a_group_and_a_member_with_the_same_number_are_different_chats"),
    ),
    "chat-anon-admin": (
        (TELEGRAM, "test_anonymous_administrators_and_channels_have_no_role"),
        (DISCORD, "test_a_webhook_has_no_rights"),
    ),
    "chat-bot-author": (
        (CONTRACT, "test_messages_of_bots_are_marked_and_own_ones_left_out"),
        ("tests/bot/test_gate.py", "test_two_bots_do_not_talk_with_each_other"),
    ),
    "chat-two-bots-loop": (
        (
            "tests/bot/test_alternations.py",
            "test_who_answers_at_once_again_and_again_is_not_talked_with_for_ten_minutes_and_hears_it_once",
        ),
    ),
    "chat-burst-10k": (
        ("tests/bot/test_engine.py", "test_a_full_queue_is_said_once_a_minute_and_counted_always"),
        ("tests/bot/test_engine.py", "test_a_chat_that_floods_delays_nobody_by_more_than_one_turn"),
    ),
    "chat-burst-1k-groups": (
        (
            "tests/bot/test_engine.py",
            "test_every_chat_is_served_in_order_one_at_a_time_and_no_more_than_allowed_at_once",
        ),
    ),
    "chat-huge-inbound": ((INTAKE, "test_a_text_that_is_far_too_long_is_cut"),),
    "chat-attachment-2GB": ((CONTRACT, "test_files_of_members_are_read_up_to_a_limit"),),
    "chat-attachment-lies": ((CONTRACT, "test_files_of_members_are_read_up_to_a_limit"),),
    "chat-webhook-bad-sig": ((TELEGRAM, "test_a_webhook_takes_only_updates_with_the_secret"),),
    "chat-webhook-flood": ((HERE, "test_a_flood_of_unsigned_requests_is_rejected_before_it_is_read"),),
    "chat-poison": (
        (CONNECTION, "test_an_event_that_the_daemon_cannot_process_is_set_aside"),
        (CONTRACT, "test_an_event_that_cannot_be_read_holds_up_nothing"),
    ),
    "chat-clock": ((INTAKE, "test_a_time_in_the_future_is_not_believed"),),
    "chat-partial-batch": ((CONNECTION, "test_one_bad_event_of_a_batch_is_set_aside_and_the_others_are_accepted"),),
}


@cache
def _names(file: str) -> frozenset[str]:
    tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_fault_has_tests(data: Callable[[str], Path]) -> None:
    rows = data("G_faults/chat_platform_faults.jsonl").read_text(encoding="utf-8").splitlines()
    assert [id_ for id_ in (json.loads(row)["id"] for row in rows) if not TESTS.get(id_)] == []


def test_each_test_that_is_named_exists() -> None:
    named = {test for tests in TESTS.values() for test in tests}
    assert [(file, name) for file, name in sorted(named) if name not in _names(file)] == []


async def test_a_duplicate_of_a_message_that_is_being_answered_runs_nothing() -> None:
    held = Held(effect="once")
    async with a_group([held.spec]) as group:
        assert await group.hear("Ann", "/hold it", id="x1") is Accepted.NEW
        await held.has_begun("it")
        await group.clock.advance(60)
        assert await group.hear("Ann", "/hold it", id="x1") is Accepted.DUPLICATE
        held.let_go()
        await group.settle()
        assert held.begun == ["it"]
        assert len(group.platform.sent) == 1


async def test_a_duplicate_is_known_days_later() -> None:
    once = Recorder("once", commands=["once"], effect="once")
    async with a_group([once.spec]) as group:
        await group.say("Ann", "/once", id="x1")
        await group.clock.advance(72 * 3600)
        await group.daemon.housekeeping.forget()
        assert await group.hear("Ann", "/once", id="x1") is Accepted.DUPLICATE
        await group.settle()
        assert len(once.runs) == 1


async def test_a_flood_of_unsigned_requests_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    async with FakeTelegram() as server, a_host(tmp_path) as host:
        platform = ADAPTER.open(settings(server, webhook=True), replace(host, public_url="https://bot.example.org"))
        assert isinstance(platform, Webhooks)
        read: list[int] = []

        async def body() -> AsyncIterator[bytes]:
            read.append(1)
            yield b"x" * 10_000_000

        app = Starlette(routes=[*platform.routes()])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://bot") as client:
            statuses = {(await client.post("/update", content=body())).status_code for _ in range(200)}
        assert (statuses, read) == ({401}, [])
        await platform.close()
