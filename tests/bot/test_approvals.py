"""Approvals: who may approve, how, and what an approval is valid for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from bot.testing import FAMILY, Group, call
from config.texts import Texts
from function_calls.context import Kind, Quoted
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Statement
from services.store.turns.audit import AUDIT
from services.store.turns.ledger import LEDGER
from services.store.turns.pending import PENDING
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held
from tests.fakes.kept import kept, last_reason
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

EN = Texts().of("en")
NO_SUCH_CODE = EN.say("approvals.no_such_code")
TOO_LATE = EN.say("approvals.late_expired", function="post")
WORK = ChatRef("test", "bot", "work")
OWNER, ADMIN = {"role": Role.OWNER}, {"role": Role.ADMIN}
ANN, BOB, OLGA = (MemberRef("test", "bot", name) for name in ("ann", "bob", "olga"))


def post(**options: Any) -> Recorder:
    return Recorder("post", CITY, commands=["post"], effect="once", gives="posted", **options)


def needing(role: str = "admin", **more: Any) -> dict[str, Any]:
    """Settings with a rule for `post`."""
    rule = {"functions": ["post"], "by": role, **more.pop("rule", {})}
    return {"chats": {"allow": ["*"]}, "approvals": {"required": [rule], **more}}


def code_in(texts: list[str]) -> str:
    """Code of the latest question."""
    [code] = re.findall(r"#([0-9a-f]{5})", texts[-1])
    return str(code)


async def asked(group: Group, city: str = "Oslo", who: str = "Ann", **facts: Any) -> str:
    """Request a run as `who`; returns the code of the question."""
    return code_in(await group.say(who, f"/post {city}", **facts))


async def ledger_members(group: Group) -> list[str]:
    """Members of the runs in the ledger."""
    statement = Statement("tests.members", select(LEDGER.c.member))
    return [row["member"] for row in await group.daemon.store.read(statement.query())]


@pytest.mark.requirement("C25")
async def test_a_run_waits_for_the_yes_of_an_admin_and_is_then_the_askers() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        [question] = await group.say("Ann", "/post Oslo")
        code = code_in([question])
        assert (
            question
            == f"Ann wants to run “post” (city: Oslo) – Does post. This needs approval from admins and above. #{code}"
        )
        assert [one.value for one in group.platform.sent[-1].choices] == [
            f"approve {code}",
            f"reject {code}",
            f"always {code}",
        ]
        assert await last_reason(group) == ("asked", "post")
        assert function.runs == []
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]
        assert await last_reason(group) == ("answered_question", "post")
        assert function.runs == [{"city": "Oslo"}]
        assert function.contexts[0].sender.ref == ANN
        [(actor, action, detail)] = await kept(group, AUDIT.c.actor, AUDIT.c.action, AUDIT.c.detail)
        assert (actor, action, detail.split()[0]) == ("test:bot:bob", "approve", "post")
        assert await ledger_members(group) == [ANN.key]


@pytest.mark.requirement("C25")
@pytest.mark.parametrize(
    ("who", "text", "facts", "allows"),
    [
        ("Bob", "approve {code}", ADMIN, True),
        ("Bob", "Approve #{code}.", ADMIN, True),
        ("Bob", "{code} yes", OWNER, True),
        ("Bob", "同意 {code}", ADMIN, True),
        ("Bob", "@Rollcall yes", ADMIN, True),
        ("Bob", "approve {code}", {**ADMIN, "kind": Kind.CHOICE}, True),
        ("Ann", "yes", ADMIN, True),
        ("Bob", "yes", ADMIN, False),
        ("Bob", "approve", ADMIN, False),
        ("Bob", "approve {code}", {}, False),
        ("Bob", "approve {code}", {"role": Role.MODERATOR}, False),
        ("Ann", "yes", {}, False),
        ("Ann", "approve {code}", {}, False),
        ("Bob", "@Bob yes {code}?", ADMIN, False),
        ("Bob", "approve {code}", {**ADMIN, "chat": WORK}, False),
        ("Bob", "approve {code}", {**ADMIN, "is_bot": True}, False),
        ("Bob", "{code}", ADMIN, False),
        ("Bob", "approve zzzzz", ADMIN, False),
    ],
)
async def test_only_a_clear_yes_of_the_right_person_runs_it(
    who: str, text: str, facts: Mapping[str, Any], allows: bool
) -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        await group.say(who, text.format(code=code), **facts)
        assert len(function.runs) == allows
        if not allows:
            # The question is still open in all cases.
            assert await group.say("Olga", f"approve {code}", **OWNER) == ["posted"]


async def test_the_role_of_the_moment_counts_and_not_what_the_message_says() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        group.platform.roles[BOB] = Role.MEMBER
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["Only admins and above can allow this."]
        assert await last_reason(group) == ("refused", "post")
        group.platform.roles[MemberRef("test", "bot", "cleo")] = Role.ADMIN
        assert await group.say("Cleo", f"approve {code}") == ["posted"]


async def test_the_asker_must_still_have_the_right() -> None:
    function = post(roles="moderator")
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group, role=Role.MODERATOR)
        group.platform.roles[ANN] = Role.MEMBER
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["Only moderators and above can use “/post”."]
    assert function.runs == []


async def test_a_rule_for_others_keeps_the_asker_from_allowing_it() -> None:
    function = post()
    async with a_group([function.spec], settings=needing(rule={"by_other": True})) as group:
        code = await asked(group, **OWNER)
        [refused] = await group.say("Ann", f"approve {code}", **OWNER)
        assert refused == "Only admins and above can allow this, but not Ann, who asked for it."
        assert [one.value.split()[0] for one in group.platform.sent[0].choices] == ["approve", "reject"]
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]


@pytest.mark.requirement("C26")
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("reject {code}", "Bob said no to “post”."),
        ("reject {code}, because it is Sunday", "Bob said no to “post”: it is Sunday"),
        ("no, because it is Sunday {code}", "Bob said no to “post”: it is Sunday"),
        ("no: not today {code}", "Bob said no to “post”: not today"),
        ("拒绝 {code} 今天是周日", "Bob said no to “post”: 今天是周日"),
        ("👎 {code}", "Bob said no to “post”."),
    ],
)
async def test_a_no_is_said_with_its_reason_and_is_the_end_of_it(text: str, answer: str) -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        assert await group.say("Bob", text.format(code=code), **ADMIN) == [answer]
        assert await group.say("Bob", f"@Rollcall approve {code}", **ADMIN) != ["posted"]
    assert function.runs == []


async def test_a_no_of_somebody_who_may_not_decide_changes_nothing_but_askers_may_take_it_back() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        assert await group.say("Bob", f"reject {code}") == ["Only admins and above can allow this."]
        assert await group.say("Ann", "never mind") == ["Ann said no to “post”."]
        assert await kept(group, PENDING.c.state) == [("refused",)]
    assert function.runs == []


async def test_a_yes_is_good_for_one_run() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        await group.say("Bob", f"approve {code}", **ADMIN)
        await group.say("Bob", f"@Rollcall approve {code}", **ADMIN)
        assert code_in(await group.say("Ann", "/post Oslo")) != code
        assert len(function.runs) == 1


async def test_two_yeses_at_once_run_it_once() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        await group.hear("Bob", f"approve {code}", **ADMIN)
        await group.hear("Olga", f"approve {code}", **OWNER)
        await group.settle()
        assert [one.text for one in group.platform.sent[1:]] == [
            "posted",
            "Bob has already allowed “post”.",
        ]
    assert len(function.runs) == 1


async def test_each_question_is_answered_by_its_own_code() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        first, second = await asked(group, "Oslo"), await asked(group, "Rome", "Cleo")
        assert await group.say("Bob", "@Rollcall reject", **ADMIN) != ["Bob said no to “post”."]
        assert await group.say("Bob", f"reject {first}", **ADMIN) == ["Bob said no to “post”, which Ann asked for."]
        assert await group.say("Bob", f"approve {second}", **ADMIN) == ["posted"]
    assert function.runs == [{"city": "Rome"}]


async def test_it_waits_for_ten_minutes_unless_set_otherwise(tmp_path: Path) -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        await group.clock.advance(599)
        await group.daemon.housekeeping.expire_questions()
        assert await kept(group, PENDING.c.state) == [("open",)]
        await group.clock.advance(1)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == [TOO_LATE]
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert group.platform.sent[-1].text == "Nobody allowed “post” in time, so I didn't run it."
        assert await kept(group, PENDING.c.state) == [("expired",)]
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert len(group.platform.sent) == 3
    async with a_group([function.spec], settings=needing(expires_seconds=60)) as group:
        code = await asked(group)
        await group.clock.advance(60)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == [TOO_LATE]
    assert function.runs == []


async def test_a_question_outlives_a_restart_and_so_does_its_answer(tmp_path: Path) -> None:
    function = post()
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        code = await asked(group)
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        await group.hear("Bob", f"approve {code}", **ADMIN)
        await group.crash()
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        group.platform.roles[BOB] = Role.ADMIN
        await group.settle()
        assert await group.say("Olga", f"@Rollcall approve {code}", **OWNER) != ["posted"]
    assert len(function.runs) == 1


async def test_a_crash_during_an_approved_effect_is_reported_once_as_unknown(tmp_path: Path) -> None:
    function = Held("hold", effect="once")
    settings = {"chats": {"allow": ["*"]}, "approvals": {"required": [{"functions": ["hold"]}]}}
    async with a_group([function.spec], settings=settings, home=tmp_path) as group:
        code = code_in(await group.say("Ann", "/hold a"))
        await group.hear("Bob", f"approve {code}", **ADMIN)
        await group.hear("Olga", f"approve {code}", **OWNER)
        await function.has_begun("a")
        await group.crash()
    async with a_group([function.spec], settings=settings, home=tmp_path) as group:
        # Bob may have lost his role: the run that he approved has started, so its result is sent.
        group.platform.roles.update({OLGA: Role.OWNER})
        await group.settle()
        assert [one.text for one in group.platform.sent] == [
            "I was interrupted while running “/hold” and can't tell whether it took effect. "
            "Please check before trying again.",
            "Bob has already allowed “hold”.",
        ]
    assert function.begun == ["a"]


async def test_what_may_be_repeated_is_repeated_after_a_crash_on_the_same_yes(tmp_path: Path) -> None:
    function = Held("hold", effect="idempotent")
    settings = {"chats": {"allow": ["*"]}, "approvals": {"required": [{"functions": ["hold"]}]}}
    async with a_group([function.spec], settings=settings, home=tmp_path) as group:
        code = code_in(await group.say("Ann", "/hold a"))
        await group.hear("Bob", f"approve {code}", **ADMIN)
        await function.has_begun("a")
        await group.crash()
    function.let_go()
    async with a_group([function.spec], settings=settings, home=tmp_path) as group:
        group.platform.roles[BOB] = Role.ADMIN
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: a"]


async def test_a_yes_does_not_hold_under_other_rules(tmp_path: Path) -> None:
    function = post()
    async with a_group([function.spec], settings=needing("moderator"), home=tmp_path) as group:
        code = await asked(group)
    async with a_group([function.spec], settings=needing("owner"), home=tmp_path) as group:
        [again] = await group.say("Bob", f"approve {code}", **ADMIN)
        assert "needs approval from owners and above" in again
    assert function.runs == []


async def test_a_yes_does_not_hold_for_a_function_that_has_changed(tmp_path: Path) -> None:
    async with a_group([post().spec], settings=needing(), home=tmp_path) as group:
        code = await asked(group)
    other = Recorder("post", {**CITY, "loud": {"type": "boolean"}}, commands=["post"], effect="once")
    async with a_group([other.spec], settings=needing(), home=tmp_path) as group:
        [changed] = await group.say("Bob", f"approve {code}", **ADMIN)
        assert changed.startswith("“post” has changed")
    assert other.runs == []


@pytest.mark.requirement("C25")
async def test_others_can_talk_to_the_bot_while_it_waits() -> None:
    function, rain = post(), Recorder("rain", CITY, commands=["rain"], ask={"city": "Where?"})
    async with a_group([function.spec, rain.spec], settings=needing()) as group:
        code = await asked(group)
        group.model.says("Hello Bob.", "Of course.")
        assert await group.say("Bob", "@Rollcall hello", **ADMIN) == ["Hello Bob."]
        assert await group.say("Bob", "is that allowed?", **ADMIN) == []
        assert await group.say("Ann", "no idea") == []
        assert await group.say("Ann", "@Rollcall can I do this?") == ["Of course."]
        assert await group.say("Ann", "/rain") == ["Where?"]
        assert await group.say("Ann", "Rome") == ["done"]
        assert await group.say("Bob", "/rain", **ADMIN) == ["Where?"]
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]
        assert await group.say("Bob", "Paris", **ADMIN) == ["done"]


async def reply_to(group: Group, text: str = "…") -> Quoted:
    """The bot's latest message, as quoted by a network."""
    return Quoted(f"sent-{group.platform.sent[-1].key}", "Rollcall", text, from_bot=True)


@pytest.mark.parametrize("text", ["approve 1a2b3", "always 1a2b3", "reject #12345", "yes #abcde", "no #1a2b3, late"])
async def test_a_decision_about_a_code_under_which_nothing_waits_is_told_so(text: str) -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        assert await group.say("Bob", text, **ADMIN) == [NO_SUCH_CODE]
        assert group.platform.sent[-1].reply_to is not None
        assert await group.say("Bob", text, is_group=False, **ADMIN) == [NO_SUCH_CODE]
        await asked(group)
        assert await group.say("Bob", f"@Rollcall {text}", **ADMIN) == [NO_SUCH_CODE]
        assert await group.say("Ann", text) == [NO_SUCH_CODE]
        assert await kept(group, PENDING.c.state) == [("open",)]
    assert group.model.requests == []


@pytest.mark.parametrize("text", ["ok 12345", "yes 12345", "allow added", "approve it 1a2b3 or 2b3c4", "no idea 1a2b3"])
async def test_what_people_say_to_each_other_is_no_decision_about_a_code(text: str) -> None:
    async with a_group([post().spec], settings=needing()) as group:
        assert await group.say("Bob", text, **ADMIN) == []


async def test_an_old_button_or_reply_decides_nothing_else_and_is_told_so() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group, "Oslo")
        first = await reply_to(group)
        await group.say("Bob", f"approve {code}", kind=Kind.CHOICE, reply_to=first, **ADMIN)
        assert function.runs == [{"city": "Oslo"}]
        await asked(group, "Rome", "Cleo")
        for text, kind in [(f"approve {code}", Kind.CHOICE), ("yes", Kind.MESSAGE), ("ok do it", Kind.MESSAGE)]:
            said = await group.say("Bob", text, kind=kind, reply_to=first, **ADMIN)
            assert said == ["Bob has already allowed “post”."]
        assert await last_reason(group) == ("question_closed", "")
        assert function.runs == [{"city": "Oslo"}]


async def test_a_reply_to_the_question_answers_that_one() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        await asked(group, "Oslo")
        first = await reply_to(group)
        await asked(group, "Rome", "Cleo")
        await group.say("Bob", "yes", reply_to=first, **ADMIN)
        assert function.runs == [{"city": "Oslo"}]
        group.model.says("Fine.")
        assert await group.say("Bob", "yes", reply_to=Quoted("other", "Rollcall", "It rains.", True), **ADMIN) == [
            "Fine."
        ]
    assert len(function.runs) == 1


@pytest.mark.parametrize(("sign", "runs"), [("👍", 1), ("✅", 1), ("👎", 0), ("😀", 0)])
async def test_a_reaction_to_the_question_answers_it(sign: str, runs: int) -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        await asked(group)
        native_id = (await reply_to(group)).native_id
        await group.say("Cleo", sign, kind=Kind.REACTION, id=native_id, revision="cleo")
        assert function.runs == []
        await group.say("Bob", sign, kind=Kind.REACTION, id="another", revision="bob", **ADMIN)
        assert function.runs == []
        await group.say("Bob", sign, kind=Kind.REACTION, id=native_id, revision="bob", **ADMIN)
        assert len(function.runs) == runs


@pytest.mark.parametrize(
    ("rule", "chat", "waits"),
    [
        ({"functions": ["post"]}, FAMILY, True),
        ({"functions": ["other"]}, FAMILY, False),
        ({"tags": ["loud"]}, FAMILY, True),
        ({"tags": ["quiet"]}, FAMILY, False),
        ({"sensitive": True}, FAMILY, True),
        ({"functions": ["post"], "chats": ["test:bot:w*"]}, FAMILY, False),
        ({"functions": ["post"], "chats": ["test:bot:w*"]}, WORK, True),
    ],
)
async def test_rules_name_functions_tags_and_chats(rule: dict[str, Any], chat: ChatRef, waits: bool) -> None:
    function = post(tags="loud", sensitive="city")
    settings = {"chats": {"allow": ["*"]}, "approvals": {"required": [rule]}}
    async with a_group([function.spec], settings=settings) as group:
        await group.say("Ann", "/post Oslo", chat=chat)
    assert bool(function.runs) is not waits


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_what_cannot_be_seen_is_shown_to_whoever_allows_it() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        group.model.says(call("post", city="Os\u202elo\u200b\n1"))
        [question] = await group.say("Ann", "@Rollcall post it")
        assert "city: Os<U+202E>lo<U+200B><U+000A>1" in question
        group.model.says(call("post", city="x" * 5000))
        [long] = await group.say("Ann", "@Rollcall post more")
        assert len(long) < 600
        assert "sha256" in long


@pytest.mark.requirement("C26", "D28")
@over_each_protocol
async def test_it_goes_on_in_the_midst_of_a_models_calls_across_a_restart(tmp_path: Path) -> None:
    function = post()
    first, last = (Recorder(name, effect="once", touches="stays_here") for name in ("first", "last"))
    functions = [function.spec, first.spec, last.spec, Recorder("look").spec]
    async with a_group(functions, settings=needing(), home=tmp_path) as group:
        group.model.says(call("look"), [call("first"), call("post", city="Oslo"), call("last")])
        texts = await group.say("Ann", "@Rollcall do it all")
        assert texts[0] == "done"
        assert (len(first.runs), function.runs, last.runs) == (1, [], [])
        code = code_in(texts)
    async with a_group(functions, settings=needing(), home=tmp_path) as group:
        group.model.says("All done.")
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted", "done", "All done."]
        assert (len(first.runs), len(function.runs), len(last.runs)) == (1, 1, 1)
        told = [one.content for one in group.model.requests[0].messages if one.role == "tool"]
        assert ["posted" in one for one in told] == [False, False, True, False]
        assert last.contexts[0].sender.ref == ANN


@pytest.mark.requirement("C26", "D28")
@over_each_protocol
async def test_the_model_is_told_of_a_no_and_why_and_goes_on_with_the_rest() -> None:
    function, last = post(), Recorder("last", effect="once", touches="stays_here")
    async with a_group([function.spec, last.spec], settings=needing()) as group:
        group.model.says([call("post", city="Oslo"), call("last")], "Then not.")
        code = code_in(await group.say("Ann", "@Rollcall do both"))
        answers = await group.say("Bob", f"reject {code} because it is late", **ADMIN)
        assert answers == ["Bob said no to “post”: it is late", "done", "Then not."]
        told = [one.content for one in group.model.requests[-1].messages if one.role == "tool"]
        assert "it is late" in told[0]
        assert '"error":"refused"' in told[0]
    assert (function.runs, len(last.runs)) == ([], 1)


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_a_question_of_the_run_that_was_allowed_goes_to_the_asker() -> None:
    function, rain = post(), Recorder("rain", CITY, ask={"city": "Where?"})
    async with a_group([function.spec, rain.spec], settings=needing()) as group:
        group.model.says([call("post", city="Oslo"), call("rain")], "There.")
        code = code_in(await group.say("Ann", "@Rollcall do both"))
        assert (await group.say("Bob", f"approve {code}", **ADMIN))[-1] == "Where?"
        assert await group.say("Bob", "Rome", **ADMIN) == []
        assert (await group.say("Ann", "Paris"))[-1] == "There."
    assert rain.runs == [{"city": "Paris"}]


async def test_a_yes_is_enough_for_a_function_that_wants_one_anyway() -> None:
    function = post(confirm="Really {city}?")
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]


async def test_what_was_asked_in_private_is_answered_in_private() -> None:
    function = post()
    async with a_group([function.spec], settings=needing("member")) as group:
        code = await asked(group, private=True)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]
        assert [one.private_to for one in group.platform.sent] == [ANN, ANN]


async def test_a_function_that_another_one_calls_waits_as_well() -> None:
    async def passes_on(context: Any, arguments: Any, own: Any) -> Any:
        return await own.invoke("post", {"city": "Oslo"})

    function, outer = post(), Recorder("outer", does=passes_on, commands=["outer"], effect="idempotent")
    async with a_group([function.spec, outer.spec], settings=needing()) as group:
        code = code_in(await group.say("Ann", "/outer"))
        assert function.runs == []
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]
    assert len(function.runs) == 1


async def test_always_is_for_exactly_this_in_this_chat_until_an_admin_takes_it_back(tmp_path: Path) -> None:
    function = post()
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        assert await group.say("Ann", "/grants") == ["Nothing is set to “always allow” in this chat."]
        code = await asked(group)
        [given, posted] = await group.say("Bob", f"always {code}", **ADMIN)
        assert posted == "posted"
        assert await group.say("Ann", "/post Oslo") == ["posted"]
        assert await group.say("Cleo", "/post Oslo") == ["posted"]
        assert code_in(await group.say("Ann", "/post Rome"))
        assert code_in(await group.say("Ann", "/post Oslo", chat=WORK))
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        assert await group.say("Ann", "/post Oslo") == ["posted"]
        [shown] = await group.say("Ann", "/grants")
        [grant] = re.findall(r"• ([0-9a-f]{6}): “post” \(city: Oslo\), allowed by Bob 0 days ago", shown)
        [refused] = await group.say("Ann", f"/grants revoke {grant}")
        assert "admins and above" in refused
        assert await group.say("Bob", f"/grants revoke {grant}", chat=WORK, **ADMIN) == [
            f"There is nothing with the code “{grant}” here. /grants shows the codes."
        ]
        assert given == EN.say("grants.given", code=grant)
        assert await group.say("Bob", given[given.index("/grants") :], **ADMIN) == [
            f"From now on I'll ask again before I run “post” ({grant})."
        ]
        assert code_in(await group.say("Ann", "/post Oslo"))
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        assert code_in(await group.say("Ann", "/post Oslo"))


async def test_a_grant_does_not_hold_under_other_rules(tmp_path: Path) -> None:
    function = post()
    async with a_group([function.spec], settings=needing("moderator"), home=tmp_path) as group:
        await group.say("Bob", f"always {await asked(group)}", **ADMIN)
    async with a_group([function.spec], settings=needing("owner"), home=tmp_path) as group:
        assert code_in(await group.say("Ann", "/post Oslo"))


async def test_always_is_no_more_than_a_yes_where_others_have_to_agree_each_time() -> None:
    function = post()
    async with a_group([function.spec], settings=needing(rule={"by_other": True})) as group:
        assert await group.say("Bob", f"always {await asked(group)}", **ADMIN) == ["posted"]
        assert code_in(await group.say("Ann", "/post Oslo"))


async def test_who_has_which_role_is_shown_as_it_is_now() -> None:
    async with a_group([post(roles="admin").spec]) as group:
        group.platform.roles[ANN] = Role.ADMIN
        await group.say("Bob", "hello", role=Role.MODERATOR)
        await group.say("Cleo", "hello")
        assert await group.say("Ann", "/roles", **ADMIN) == [
            "Your role in this chat: admin.\n"
            "Besides what everybody can use, you can use: /settings, /welcome, /goodbye, /trigger, /trigger delete, "
            "/persona, /forward, /forward accept, /forward remove, /clearmessages, /notes, /notes clear, /kick, /ban, "
            "/silence, /pin, /invite, /mute, /unmute, /grants revoke, /schedule, /schedule pause, /schedule resume, "
            "/schedule remove, /usage all, /post\n"
            "• Ann: admin\n• Bob: moderator\n"
            "Roles come from the chat network and from the operator's settings. Nobody can give them in the chat."
        ]
        group.platform.roles[ANN] = Role.MEMBER
        [shown] = await group.say("Ann", "/roles")
        assert shown.startswith("Your role in this chat: member.\n• Bob: moderator\n")


async def test_roles_are_named_in_the_language_of_the_chat() -> None:
    function = post()
    async with a_group([function.spec], settings={**needing(), "language": "zh"}) as group:
        group.platform.roles[ANN] = Role.ADMIN
        [shown] = await group.say("Ann", "/权限", **ADMIN)
        assert shown.startswith("你在这个聊天里的角色：管理员。")
        assert "/设置" in shown
        assert "（管理员）" in (await group.say("Ann", "/id", **ADMIN))[0]
        group.platform.roles[ANN] = Role.MEMBER
        assert await group.say("Ann", "/设置") == ["只有管理员及以上的成员可以用“/设置”。"]
        [question] = await group.say("Ann", "/post Oslo")
        assert "(city：Oslo)" in question
        assert "需要管理员及以上的成员同意" in question


@pytest.mark.parametrize("private", [True, False])
async def test_what_it_is_doing_shows_only_where_it_was_asked_for(private: bool) -> None:
    function = post(status_text="Posting …")
    async with a_group([function.spec], settings=needing("member")) as group:
        code = await asked(group, private=private)
        await group.say("Bob", f"approve {code}", **ADMIN)
        assert ((FAMILY, "Posting …") in group.platform.statuses) is not private


async def test_a_function_may_declare_whose_yes_it_needs() -> None:
    act = Recorder("act", commands=["act"], effect="once", approval="asker")
    async with a_group([act.spec]) as group:
        [asked] = await group.say("Ann", "/act")
        assert "act" in asked
        assert act.runs == []
        await group.say("Ben", "yes")
        assert act.runs == []
        await group.say("Ann", "yes")
    assert len(act.runs) == 1


@pytest.mark.parametrize(("approval", "runs"), [("none", 1), ("admin", 0)])
async def test_settings_say_otherwise_of_a_function_that_declares_whose_yes_it_needs(approval: str, runs: int) -> None:
    act = Recorder("act", commands=["act"], effect="once", approval="asker")
    async with a_group([act.spec], settings={"functions": {"act": {"approval": approval}}}) as group:
        await group.say("Ann", "/act")
        await group.say("Ann", "yes")
    assert len(act.runs) == runs
