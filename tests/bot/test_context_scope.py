"""Group history in model requests: all of it, the chain of replies, or the requesting member's conversation."""

from __future__ import annotations

from typing import Any

from bot.testing import Group, a_group
from function_calls.context import Quoted


def scoped(scope: str, **more: Any) -> dict[str, Any]:
    return {"chats": {"allow": ["*"], "settings": {"*": {"context_scope": scope}}}, **more}


def told(group: Group) -> str:
    return "\n".join(message.content for message in group.model.requests[-1].messages)


async def a_talk(group: Group) -> None:
    group.model.says("Tea it is.", "Coffee it is.", "Well.")
    await group.hear("Ann", "I like tea", id="a1")
    await group.say("Ann", "@Rollcall what do I like?", id="a2")
    await group.say("Bob", "@Rollcall coffee for me", id="b1")


async def test_the_whole_chat_is_shown_unless_it_is_set_otherwise() -> None:
    async with a_group() as group:
        await a_talk(group)
        await group.say("Ann", "@Rollcall and now?")
        assert all(word in told(group) for word in ("I like tea", "Tea it is.", "coffee for me", "Coffee it is."))


async def test_a_members_scope_shows_what_they_said_and_were_answered_and_nothing_of_others() -> None:
    async with a_group(settings=scoped("member")) as group:
        await a_talk(group)
        await group.say("Ann", "@Rollcall and now?")
        assert all(word in told(group) for word in ("I like tea", "what do I like?", "Tea it is."))
        assert not any(word in told(group) for word in ("coffee", "Coffee", "Bob"))


async def test_a_threads_scope_shows_the_chain_of_replies_and_nothing_beside_it() -> None:
    async with a_group(settings=scoped("thread")) as group:
        await a_talk(group)
        answer = group.platform.sent[0]
        quoted = Quoted(f"sent-{answer.key}", "Rollcall", "", from_bot=True)
        await group.say("Bob", "@Rollcall why tea?", reply_to=quoted)
        assert all(word in told(group) for word in ("what do I like?", "Tea it is."))
        assert not any(word in told(group) for word in ("coffee", "Coffee", "I like tea"))


async def test_in_a_private_chat_everything_is_shown_whatever_the_scope() -> None:
    async with a_group(settings=scoped("thread")) as group:
        group.model.says("Tea it is.", "Well.")
        await group.say("Ann", "I like tea", is_group=False)
        await group.say("Ann", "and now?", is_group=False)
        assert "Tea it is." in told(group)


async def test_the_scope_may_be_set_for_a_bot_and_otherwise_for_one_of_its_chats() -> None:
    settings = {
        "bots": {"default": {"context_scope": "member"}},
        "chats": {"allow": ["*"], "settings": {"test:bot:family": {"context_scope": "chat"}}},
    }
    async with a_group(settings=settings) as group:
        family = group.daemon.chats.of(group.chat)
        assert (family.profile.context_scope, family.settings.layers["context_scope"]) == (
            "chat",
            "chats.settings.test:bot:family.context_scope",
        )
        other = group.daemon.chats.of(type(group.chat)("test", "bot", "work"))
        assert (other.profile.context_scope, other.settings.layers["context_scope"]) == (
            "member",
            "bots.default.context_scope",
        )
