"""What a question for a person's yes shows, and to whom: secrets to nobody, and what is private to no group."""

from __future__ import annotations

from bot.testing import a_group
from services.store.grants import GRANTS
from tests.bot.test_approvals import ADMIN, asked, code_in, needing, post
from tests.fakes.functions import Recorder
from tests.fakes.kept import kept


async def test_a_sensitive_argument_is_neither_shown_nor_kept_with_what_is_allowed_for_always() -> None:
    parameters = {
        "key": {"type": "string", "description": "The key", "required": True},
        "place": {"type": "string", "description": "Where", "required": True},
    }
    function = Recorder("enter", parameters, commands=["enter"], effect="idempotent", gives="in", sensitive=["key"])
    rules = {"approvals": {"required": [{"sensitive": True, "by": "admin"}]}}
    async with a_group([function.spec], settings=rules) as group:
        question = await group.say("Ann", "/enter hunter2 Oslo")
        assert "(key = ***, place = Oslo)" in question[0]
        assert await group.say("Bob", f"always {code_in(question)}", **ADMIN) == ["in"]
        assert function.runs == [{"key": "hunter2", "place": "Oslo"}]
        assert await kept(group, GRANTS.c.arguments) == [("key = ***, place = Oslo",)]
        [shown] = await group.say("Cleo", "/grants")
        assert "key = ***" in shown
        assert await group.say("Cleo", "/enter hunter2 Oslo") == ["in"]
        # It is still this one key that is allowed.
        assert code_in(await group.say("Cleo", "/enter hunter3 Oslo"))


async def test_nothing_is_allowed_for_always_in_private() -> None:
    function = post()
    async with a_group([function.spec], settings=needing("member")) as group:
        code = await asked(group, "Hideaway", private=True)
        assert [one.value for one in group.platform.sent[-1].choices] == [f"approve {code}", f"reject {code}"]
        assert await group.say("Ann", f"always {code}", private=True) == ["posted"]
        assert await group.say("Cleo", "/grants") == ["Nothing is allowed here without asking that would need a yes."]
        assert code_in(await group.say("Ann", "/post Hideaway", private=True))
        await group.say("Ann", f"always {await asked(group, 'Rome')}")
        assert await group.say("Ann", "/post Rome", private=True) == ["posted"]
