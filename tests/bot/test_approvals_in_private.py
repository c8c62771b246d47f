"""Content and addressees of approval questions: secrets are masked, and private data is not shown in groups."""

from __future__ import annotations

from bot.testing import a_group
from services.store.chats.chat_settings import GRANTS
from tests.bot.test_approvals import ADMIN, ANN, EN, WORK, asked, code_in, needing, post
from tests.fakes.functions import Recorder
from tests.fakes.kept import kept, last_reason


async def test_a_sensitive_argument_is_neither_shown_nor_kept_with_what_is_allowed_for_always() -> None:
    parameters = {
        "key": {"type": "string", "description": "The key", "required": True},
        "place": {"type": "string", "description": "Where", "required": True},
    }
    function = Recorder("enter", parameters, commands=["enter"], effect="idempotent", gives="in", sensitive=["key"])
    rules = {"approvals": {"required": [{"sensitive": True, "by": "admin"}]}}
    async with a_group([function.spec], settings=rules) as group:
        question = await group.say("Ann", "/enter hunter2 Oslo")
        assert "(key: ***, place: Oslo)" in question[0]
        assert (await group.say("Bob", f"always {code_in(question)}", **ADMIN))[1:] == ["in"]
        assert function.runs == [{"key": "hunter2", "place": "Oslo"}]
        assert await kept(group, GRANTS.c.arguments) == [("key: ***, place: Oslo",)]
        [shown] = await group.say("Cleo", "/grants")
        assert "key: ***" in shown
        assert await group.say("Cleo", "/enter hunter2 Oslo") == ["in"]
        # The approval is still for the first key only.
        assert code_in(await group.say("Cleo", "/enter hunter3 Oslo"))


async def test_nothing_is_allowed_for_always_in_private() -> None:
    function = post()
    async with a_group([function.spec], settings=needing("member")) as group:
        code = await asked(group, "Hideaway", private=True)
        assert [one.value for one in group.platform.sent[-1].choices] == [f"approve {code}", f"reject {code}"]
        assert await group.say("Ann", f"always {code}", private=True) == ["posted"]
        assert await group.say("Cleo", "/grants") == ["Nothing is set to “always allow” in this chat."]
        assert code_in(await group.say("Ann", "/post Hideaway", private=True))
        await group.say("Ann", f"always {await asked(group, 'Rome')}")
        assert await group.say("Ann", "/post Rome", private=True) == ["posted"]


async def test_what_only_others_may_allow_is_refused_at_once_in_private() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        [refused] = await group.say("Ann", "/post Oslo", private=True)
        assert refused.startswith(
            "“post” needs approval from admins and above, but only you can see what is said here."
        )
        assert group.platform.sent[-1].private_to == ANN
        assert await last_reason(group) == ("refused", "approvals.required")
        [refused] = await group.say("Ann", "/post Oslo", is_group=False, chat=WORK)
        assert "Please ask for it in a group" in refused
        # A requester with the role is asked and may approve.
        code = await asked(group, who="Bob", private=True, **ADMIN)
        assert await group.say("Bob", f"approve {code}", private=True, **ADMIN) == ["posted"]


async def test_not_even_an_admin_is_asked_in_private_where_another_one_has_to_agree() -> None:
    async with a_group([post().spec], settings=needing(rule={"by_other": True})) as group:
        [refused] = await group.say("Bob", "/post Oslo", private=True, **ADMIN)
        assert "Please ask for it in a group" in refused


async def test_the_reason_of_a_private_no_is_not_told_in_public() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        code = await asked(group)
        said = await group.say("Bob", f"reject {code} because her salary is 5", private=True, **ADMIN)
        assert said == ["Bob said no to “post”."]
        code = await asked(group)
        said = await group.say("Bob", f"reject {code} because it is late", **ADMIN)
        assert said == ["Bob said no to “post”: it is late"]


async def test_the_reason_of_a_private_no_is_told_where_it_was_asked_for_in_private_too() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        code = await asked(group, who="Bob", private=True, **ADMIN)
        said = await group.say("Bob", f"reject {code} because it is late", private=True, **ADMIN)
        assert said == ["Bob said no to “post”: it is late"]


async def test_whose_request_was_refused_is_said_where_others_wait_unless_they_took_it_back_themselves() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        codes = [await asked(group, city) for city in ("Oslo", "Rome", "Bonn")]
        assert await group.say("Ann", f"no {codes[0]}") == ["Ann said no to “post”."]
        assert await group.say("Bob", f"no {codes[1]}", **ADMIN) == ["Bob said no to “post”, which Ann asked for."]
        assert await group.say("Bob", f"no {codes[2]}", **ADMIN) == ["Bob said no to “post”."]


async def test_what_waits_in_private_is_not_spoken_of_in_the_group() -> None:
    async with a_group([post().spec], settings=needing()) as group:
        private = await asked(group, who="Bob", private=True, **ADMIN)
        assert await asked(group, who="Bob", **ADMIN) != private
        [refused] = await group.say("Bob", "/post Oslo", **ADMIN)
        assert refused == EN.say("approvals.waits_already", function="post", code=code_in([refused]))
        assert private not in refused
