"""Polls of a group: create, vote, results, close."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.handlers.group.document_changes import changes_document, reads_document
from function_calls.spec import Choice, FunctionResult, Message
from services.chats.polls import Polls, Standing
from services.pictures import Pictures, VoteChart
from services.refs import JsonObject, Role

_changes = partial(changes_document, tags="poll", scope="group")
_reads = partial(reads_document, tags="poll", scope="group")
_Poll = Annotated[int | None, Field(description="Number of the poll; absent: the latest one", ge=1)]


class CreateArguments(BaseModel, frozen=True, extra="forbid"):
    question: str = Field(description="What is asked", min_length=1, max_length=300, pattern=r"\S")
    options: list[str] = Field(description="2 to 10 answers to vote for", min_length=1, max_length=50)


class VoteArguments(BaseModel, frozen=True, extra="forbid"):
    option: str = Field(description="The option's number or text", min_length=1, max_length=200)
    poll: int | None = Field(default=None, description="Number of the poll; absent: the latest open one", ge=1)


@_changes(
    description="Start a poll in this group",
    examples=(
        "start a poll: {question} {options}",
        "create a poll asking {question} with the options {options}",
        "make a poll about {question}: {options}",
        "let's vote on {question}, the options are {options}",
        "poll the group: {question} {options}",
        "发起投票：{question}，选项有{options}",
        "投个票，{question}：{options}",
        "创建一个投票{question}，选项{options}",
    ),
    commands=("poll", "投票"),
    touches="stays_here",
    ask={"question": "@poll.ask_question", "options": "@poll.ask_options"},
)
async def poll_create(context: MessageContext, args: CreateArguments, *, polls: Polls, call: Call) -> FunctionResult:
    """Create a poll with a button for each option. Idempotent: a run repeated after a crash finds the poll by the key
    of the call."""
    poll = await polls.create(
        context.chat,
        args.question,
        args.options,
        author=context.sender.ref,
        author_name=context.sender.name,
        call_key=call.key,
    )
    lines = [call.say("poll.title", number=poll.number, question=poll.question)]
    lines += [f"{index}. {option}" for index, option in enumerate(poll.options, 1)]
    lines.append(call.say("poll.how_to_vote"))
    data = {"poll": poll.number, "question": poll.question, "options": list(poll.options)}
    undo = call.undo(f"/poll close {poll.number}")
    return FunctionResult.say("\n".join(lines), data=data, choices=(*_buttons(poll.number, poll.options), *undo))


@_changes(
    description="Vote in this group's poll, for the person asking",
    examples=(
        "i vote for {option}",
        "vote {option} in the poll",
        "my vote goes to {option}",
        "put me down for option {option}",
        "change my vote to {option}",
        "我投{option}",
        "我选第{option}项",
        "投票给{option}",
        "把我的票改成{option}",
    ),
    commands=("vote", "投"),
    ask={"option": "@poll.ask_option"},
)
async def poll_vote(context: MessageContext, args: VoteArguments, *, polls: Polls, call: Call) -> FunctionResult:
    """Record the sender's vote, replacing an earlier one."""
    standing, option = await polls.vote(context.chat, args.option, poll=args.poll, member=context.sender.ref)
    confirmation = call.say("poll.voted", name=context.sender.name, option=option)
    lines = [confirmation, *_votes(standing, call)]
    board = Message(
        f"{_report(standing, call)}\n{confirmation}", choices=_buttons(standing.poll.number, standing.poll.options)
    )
    return FunctionResult.say("\n".join(lines), data=_data(standing), update=board)


@_reads(
    examples=(
        "show the poll results",
        "who is winning the poll",
        "how is the vote going",
        "what are the results of the poll",
        "how many votes does each option have",
        "查看投票结果",
        "投票结果怎么样",
        "现在投票情况如何",
    ),
    commands=("results", "poll results", "投票 结果"),
)
async def poll_results(
    context: MessageContext, poll: _Poll = None, *, polls: Polls, pictures: Pictures, call: Call
) -> FunctionResult:
    """Show how a poll of this group stands"""
    standing = await polls.standing(context.chat, poll)
    files = await _picture(context, standing, pictures, call)
    return FunctionResult.say(_report(standing, call), data=_data(standing), attachments=files)


@_changes(
    description="Close a poll of this group and announce the result",
    examples=(
        "close the poll",
        "end the poll now",
        "stop the voting",
        "finish the poll and tell us who won",
        "the vote is over, close it",
        "结束投票",
        "关闭投票",
        "投票截止",
    ),
    commands=("poll close", "投票 结束"),
    touches="reads_outside",
)
async def poll_close(
    context: MessageContext, poll: _Poll = None, *, polls: Polls, pictures: Pictures, call: Call
) -> FunctionResult:
    """Close a poll: the member's own, or any poll for moderators and above."""
    may_close_any = context.sender.role in Role.at_least(Role.MODERATOR)
    standing = await polls.close(
        context.chat, poll, by=context.sender.ref, may_close_any=may_close_any, call_key=call.key
    )
    report = _report(standing, call)
    files = await _picture(context, standing, pictures, call)
    return FunctionResult.say(report, data=_data(standing), attachments=files, update=Message(report))


def _buttons(number: int, options: Sequence[str]) -> tuple[Choice, ...]:
    """A button for each option of the poll `number`."""
    return tuple(Choice(option, f"/vote {index} poll={number}") for index, option in enumerate(options, 1))


async def _picture(
    context: MessageContext, standing: Standing, pictures: Pictures, call: Call
) -> tuple[Attachment, ...]:
    """The votes as a picture; empty before the first vote, and where none can be sent."""
    options = tuple(zip(standing.poll.options, standing.votes, strict=True))
    chart = VoteChart(_title(standing, call), options, _verdict(standing, call))
    picture = await pictures.drawn(context.chat, chart) if standing.voters else ""
    return (Attachment("poll.png", "image/png", picture),) if picture else ()


def _title(standing: Standing, call: Call) -> str:
    poll = standing.poll
    return call.say("poll.title" if poll.is_open else "poll.title_closed", number=poll.number, question=poll.question)


def _report(standing: Standing, call: Call) -> str:
    return "\n".join([_title(standing, call), *_votes(standing, call), _verdict(standing, call)])


def _votes(standing: Standing, call: Call) -> list[str]:
    counted = enumerate(zip(standing.poll.options, standing.votes, strict=True), 1)
    everybody = max(standing.voters, 1)
    return [
        call.say("poll.line", number=number, option=option, votes=votes, percent=round(100 * votes / everybody))
        for number, (option, votes) in counted
    ]


def _verdict(standing: Standing, call: Call) -> str:
    if not standing.leaders:
        return call.say("poll.no_votes")
    if len(standing.leaders) > 1:
        return call.say("poll.tie", options=call.say("poll.and").join(standing.leaders))
    return call.say("poll.leads" if standing.poll.is_open else "poll.won", option=standing.leaders[0])


def _data(standing: Standing) -> JsonObject:
    return {
        "poll": standing.poll.number,
        "question": standing.poll.question,
        "open": standing.poll.is_open,
        "votes": dict(zip(standing.poll.options, standing.votes, strict=True)),
        "leaders": list(standing.leaders),
    }
