"""Messages and buttons of approval questions that are closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.testing import Group, a_group
from config.texts import Texts
from function_calls.context import Kind, Quoted
from services.store.turns.pending import PENDING
from tests.bot.test_approvals import ADMIN, WORK, asked, needing, post
from tests.fakes.held import Held
from tests.fakes.kept import kept, last_reason

EN = Texts().of("en")


def asked_last(group: Group) -> str:
    """Message id of the latest question."""
    return f"sent-{group.platform.sent[-1].key}"


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("approve", "Bob has already allowed “post”."),
        ("always", "Bob has already allowed “post”."),
        ("reject", "Bob has already said no to “post”."),
    ],
)
async def test_who_comes_too_late_hears_who_decided_and_how(tmp_path: Path, decision: str, told: str) -> None:
    async with a_group([post().spec], settings=needing(), home=tmp_path) as group:
        code, asking = await asked(group), asked_last(group)
        before = len(group.platform.sent)
        await group.say("Bob", f"{decision} {code}", **ADMIN)
        assert group.platform.sent[before].closes == (asking,)
        assert await group.say("Olga", f"approve {code}", **ADMIN) == [told]
        assert group.platform.sent[-1].closes == (asking,)
        assert await group.say("Olga", "yes", reply_to=Quoted(asking, "Rollcall", "", True), **ADMIN) == [told]
        assert await last_reason(group) == ("question_closed", "")
        other = await group.say("Olga", f"approve {code}", chat=WORK, **ADMIN)
        assert other == [EN.say("approvals.no_such_code")]
    async with a_group([post().spec], settings=needing(), home=tmp_path) as group:
        assert await group.say("Olga", f"reject {code}", **ADMIN) == [told]


async def test_two_at_once_both_hear_what_became_of_it() -> None:
    held = Held(effect="read")
    async with a_group([post().spec, held.spec], settings=needing()) as group:
        code = await asked(group)
        await group.hear("Cleo", "/hold it")
        await held.has_begun("it")
        await group.hear("Bob", f"reject {code}", **ADMIN)
        await group.hear("Olga", f"approve {code}", **ADMIN)
        held.let_go()
        await group.settle()
        said = [one.text for one in group.platform.sent[-2:]]
        assert said == ["Bob said no to “post”.", "Bob has already said no to “post”."]


async def test_an_approval_waits_its_time_whatever_is_done_to_the_wall_clock() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        code = await asked(group)
        group.clock.jump(1800)
        assert "posted" in await group.say("Bob", f"approve {code}", **ADMIN)
        code = await asked(group)
        group.clock.jump(-1800)
        await group.clock.advance(600)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == [EN.say("approvals.late_expired", function="post")]


async def test_what_expired_can_be_clicked_no_more_and_says_whose_it_was_among_several() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        code, first = await asked(group), asked_last(group)
        await group.clock.advance(600)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == [EN.say("approvals.late_expired", function="post")]
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert group.platform.sent[-1].text == "Nobody allowed “post” in time, so I didn't run it."
        assert group.platform.sent[-1].closes == (first,)
        await asked(group)
        await asked(group, who="Cleo")
        await group.clock.advance(600)
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert [one.text for one in group.platform.sent[-2:]] == [
            f"Nobody allowed “post” for {name} in time, so I didn't run it." for name in ("Ann", "Cleo")
        ]


async def test_a_no_says_whose_request_it_was_where_others_wait() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        first, second = await asked(group), await asked(group, who="Cleo")
        assert await group.say("Bob", f"reject {first}", **ADMIN) == ["Bob said no to “post”, which Ann asked for."]
        assert await group.say("Bob", f"reject {second} because no", **ADMIN) == ["Bob said no to “post”: no"]
        third = await asked(group)
        await asked(group, who="Cleo")
        said = await group.say("Bob", f"reject {third}, too much noise", **ADMIN)
        assert said == ["Bob said no to “post”, which Ann asked for: too much noise"]


async def test_what_was_taken_back_with_its_message_is_told_so() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        code = await asked(group, id="wish")
        await group.hear("Ann", "", id="wish", kind=Kind.DELETE)
        assert await kept(group, PENDING.c.state) == [("withdrawn",)]
        said = await group.say("Bob", f"approve {code}", **ADMIN)
        assert said == ["The request for “post” was withdrawn before anybody decided."]


async def test_what_was_asked_in_private_is_spoken_of_to_nobody_else() -> None:
    async with a_group([post().spec], settings=needing("member")) as group:
        code = await asked(group, private=True)
        await group.say("Ann", f"approve {code}", private=True)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == [EN.say("approvals.no_such_code")]
        assert await group.say("Ann", f"approve {code}") == [EN.say("approvals.no_such_code")]
        assert await group.say("Ann", f"approve {code}", private=True) == ["Ann has already allowed “post”."]
