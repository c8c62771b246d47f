"""Linked accounts of one person on several networks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import Field

from config.texts import Phrases, Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import Choice, FunctionResult, Message
from services.chats.member_links import CODE_MINUTES, Account, MemberLinks
from services.refs import ChatRef

_private_command = partial(tool_function, tags="chat", scope="private", offered_to=["command"], effect="idempotent")
_Code = Annotated[str | None, Field(description="A code from another account; absent: get one", max_length=20)]
_Claim = Annotated[str, Field(description="The code that the other account used", min_length=1, max_length=20)]


@_private_command(
    description="Show the asker's linked accounts and give a code that links another one, or use such a code.",
    commands=("link", "绑定"),
    sensitive="code",
)
async def link(
    context: MessageContext, code: _Code = None, *, links: MemberLinks, texts: Texts, call: Call
) -> FunctionResult:
    """Give a new code and list the linked accounts; with a code, ask the account that got it to accept."""
    here = _account(context, call)
    if code is None:
        code = await links.new_code(here)
        text = call.say("links.code", code=f"{code[:4]}-{code[4:]}", minutes=CODE_MINUTES)
        others = await links.others_of(here.member)
        listed = (_listed("links.accounts", others, call.profile.texts),) if others else ()
        return FunctionResult(messages=(Message(text), *listed))
    issuer = await links.claim(code, here, call_key=call.key)
    phrases = texts.of(issuer.language)
    question = Message(
        phrases.say("links.question", name=here.name, member=here.member.key),
        to=issuer.chat,
        choices=(
            Choice(phrases.say("links.accept"), f"/link accept {code}"),
            Choice(phrases.say("links.reject"), f"/link reject {code}"),
        ),
    )
    text = call.say("links.claimed", name=issuer.name, member=issuer.member.key, minutes=CODE_MINUTES)
    return FunctionResult(messages=(Message(text), question))


@_private_command(
    description="Link the account that used the asker's code.",
    commands=("link accept", "绑定 同意"),
    sensitive="code",
    ask={"code": "@links.ask_code"},
)
async def link_accept(
    context: MessageContext, code: _Claim, *, links: MemberLinks, texts: Texts, call: Call
) -> FunctionResult:
    """Link both accounts, and notify all other accounts of the person."""
    here = _account(context, call)
    await links.accept(code, here, call_key=call.key)
    accounts = sorted([here, *await links.others_of(here.member)])
    return FunctionResult(
        messages=tuple(
            _listed(
                "links.linked",
                [other for other in accounts if other is not one],
                texts.of(one.language),
                to=None if one is here else one.chat,
            )
            for one in accounts
        )
    )


@_private_command(
    description="Reject the account that used the asker's code.",
    commands=("link reject", "绑定 拒绝"),
    sensitive="code",
    ask={"code": "@links.ask_code"},
)
async def link_reject(
    context: MessageContext, code: _Claim, *, links: MemberLinks, texts: Texts, call: Call
) -> FunctionResult:
    """Reject the claim, and notify its account."""
    here = _account(context, call)
    claimer = await links.reject(code, here.member, call_key=call.key)
    text = call.say("links.rejected", name=claimer.name)
    return FunctionResult(messages=(Message(text), _notice(claimer, "links.was_rejected", here, texts)))


@_private_command(
    description="Remove all links between the asker's accounts.",
    commands=("unlink", "link remove", "解绑", "绑定 解除"),
)
async def unlink(context: MessageContext, *, links: MemberLinks, texts: Texts, call: Call) -> FunctionResult:
    """Dissolve the person's links and withdraw the account's codes; notify the other accounts."""
    here = _account(context, call)
    others = await links.dissolve(here.member)
    if not others:
        return FunctionResult.say(call.say("links.none"))
    notices = [_notice(one, "links.were_removed", here, texts) for one in others]
    return FunctionResult(messages=(_listed("links.removed", others, call.profile.texts), *notices))


def _account(context: MessageContext, call: Call) -> Account:
    sender = context.sender
    return Account(sender.ref, sender.name, context.chat, call.profile.texts.language)


def _listed(key: str, accounts: Sequence[Account], texts: Phrases, *, to: ChatRef | None = None) -> Message:
    """The text `key` with a list of `accounts` below it."""
    lines = [texts.say("links.account", name=one.name, member=one.member.key) for one in accounts]
    return Message("\n".join([texts.say(key), *lines]), to=to)


def _notice(to: Account, key: str, about: Account, texts: Texts) -> Message:
    """The text `key` on the account `about`, in the private chat of `to` and in its language."""
    return Message(texts.of(to.language).say(key, name=about.name, member=about.member.key), to=to.chat)
