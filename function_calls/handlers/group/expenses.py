"""Shared expenses of a group: note, list, settle, delete."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.handlers.group.document_changes import changed, changes_document, reads_document
from function_calls.reminder_results import is_mentioned
from function_calls.spec import Choice, FunctionResult, Message, ToolError
from services.chats.documents import Documents
from services.chats.expenses import Expenses, Transfer, in_words, read_line
from services.chats.members import KnownMember, KnownMembers, SeveralMembers, UnknownMember, called
from services.patterns import one_line
from services.refs import ErrorCode, RequestProblem, Role
from services.times.reminder_lines import ME, US

_MOST_SHOWN = 20
_MOST_BUTTONS = 10
_changes = partial(changes_document, tags=("expenses", "plan"), scope="group")
_reads = partial(reads_document, tags=("expenses", "plan"), scope="group")
_Amount = Annotated[float | None, Field(description="How much was paid; always required", gt=0)]
_Currency = Annotated[str | None, Field(description="Code; absent: the latest one", max_length=10, examples=["EUR"])]


@_changes(
    examples=(
        "i paid {amount} for {what}",
        "i spent {amount} {currency} on {what}",
        "note that i paid {amount} for {what}",
        "add an expense of {amount} for {what}",
        "split {amount} for {what} between {members}",
        "我付了{amount}买{what}",
        "记账{amount}{what}",
    ),
    commands=("expense", "记账"),
    ask={"what": "@expenses.ask_what"},
    line="what",
)
async def expense_add(
    context: MessageContext,
    what: Annotated[str, Field(description="What was paid for", max_length=300, pattern=r"\S")],
    members: Annotated[list[str], Field(default_factory=list, description="Who shares it; empty: everybody here")],
    amount: _Amount = None,
    currency: _Currency = None,
    *,
    documents: Documents,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Note what the sender, and nobody else, has paid for members of this group, who share it equally."""
    names, what = members, one_line(what)
    if amount is None:
        written = read_line(what)
        if written is None:
            raise ToolError(call.say("expenses.no_amount"), ErrorCode.BAD_ARGUMENTS)
        amount, code, what, named = written
        names, currency = names or list(named), currency or code or None
    sharers, payer, paid = await _called(names, context, known, call), context.sender.ref.key, amount

    def change(state: Expenses, _: int) -> list[int]:
        state.names |= {one.ref.key: one_line(one.name) for one in sharers if one.ref.key not in state.names}
        return [state.add(payer, paid, currency, what, [one.ref.key for one in sharers])]

    state, (number,) = await changed(context, Expenses, change, documents, call)
    entry = state.find(number)
    shares = [f"{state.names[one]} {in_words(cents, entry.currency)}" for one, cents in entry.shares.items()]
    text = f"{_line(number, state, call)}\n{call.say('expenses.shared', shares=', '.join(sorted(shares)))}"
    return FunctionResult.say(text, data={"number": number}, choices=call.undo(f"/expense delete {number}"))


@_reads(
    examples=(
        "show our expenses",
        "list the shared expenses",
        "who owes what",
        "how much do i owe",
        "what did we spend",
        "看看账单",
        "我们花了多少钱",
    ),
    commands=("expenses", "账单"),
)
async def expense_list(context: MessageContext, *, documents: Documents, call: Call) -> FunctionResult:
    """Show the shared expenses of this group and who owes how much."""
    state = await documents.read(context.chat, Expenses)
    numbers = [entry.number for entry in state.entries if not entry.is_deleted]
    balances = [
        call.say(f"expenses.{'gets' if cents > 0 else 'owes'}", name=state.names[one], amount=in_words(cents, currency))
        for currency, members in state.balances().items()
        for one, cents in members.items()
    ]
    if not numbers and not balances:
        return FunctionResult.say(call.say("expenses.none"), data=[])
    lines = [_line(number, state, call) for number in numbers[-_MOST_SHOWN:]]
    head = call.say("expenses.title", count=len(numbers), shown=len(lines))
    return FunctionResult.say("\n".join([head, *lines, *(balances or [call.say("expenses.settled")])]), data=numbers)


@_reads(
    examples=(
        "settle our expenses",
        "who has to pay whom",
        "how do we settle up",
        "let's settle up",
        "settle the shared expenses",
        "结算账单",
        "谁该给谁转多少钱",
    ),
    commands=("settle", "结算"),
)
async def expense_settle(context: MessageContext, *, documents: Documents, call: Call) -> FunctionResult:
    """Show who has to pay whom how much, so that the shared expenses of this group are settled."""
    board = _board(await documents.read(context.chat, Expenses), call)
    return FunctionResult.say(board.text, choices=board.choices)


@_changes(
    examples=(
        "i paid {transfer} back",
        "{transfer} has paid me back",
        "mark payment {transfer} of the settlement as paid",
        "i settled up with {transfer}",
        "payment {transfer} is settled",
        "我已经还钱给{transfer}了",
        "{transfer}还我钱了",
    ),
    commands=("settle paid", "结算 已付"),
    ask={"transfer": "@expenses.ask_transfer"},
    line="transfer",
)
async def expense_paid(
    context: MessageContext,
    transfer: Annotated[str, Field(description="Its number, or name of the other member", max_length=100)],
    version: Annotated[int | None, Field(description="Version of the settlement; absent: the current one")] = None,
    *,
    documents: Documents,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Mark a payment of the settlement as paid: one that the sender has made or received."""
    me, number = context.sender.ref.key, transfer.strip(" #")
    other = "" if number.isdecimal() else (await _called([transfer], context, known, call))[0].ref.key

    def change(state: Expenses, _: int) -> list[int]:
        found = enumerate(state.transfers(), 1)
        meant = [one for at, one in found if number == str(at) or {me, other} == {one.payer, one.receiver}]
        if len(meant) != 1 or version not in (None, state.version):
            raise RequestProblem("expenses.no_transfer", ErrorCode.NOT_FOUND)
        one = meant[0]
        if me not in (one.payer, one.receiver) and not _may_change_all(context):
            raise RequestProblem("expenses.foreign_transfer")
        return [state.add(one.payer, Decimal(one.cents) / 100, one.currency, "", [one.receiver])]

    state, (paid,) = await changed(context, Expenses, change, documents, call)
    text, board = _line(paid, state, call), _board(state, call)
    update = Message(f"{text}\n{board.text}", choices=board.choices)
    undo = call.undo(f"/expense delete {paid}")
    return FunctionResult.say(text, data={"number": paid}, choices=undo, update=update)


@_changes(
    examples=(
        "delete expense {number}",
        "remove expense number {number}",
        "expense {number} is wrong, delete it",
        "cancel expense {number}",
        "take expense {number} off the bill",
        "删除账单第{number}笔",
        "第{number}笔账记错了，删掉",
    ),
    commands=("expense delete", "记账 删除"),
    ask={"number": "@expenses.ask_number"},
)
async def expense_delete(
    context: MessageContext,
    number: Annotated[int, Field(description="Number of the entry", ge=1, le=999_999_999)],
    restore: Annotated[bool, Field(description="Make a deleted entry valid again")] = False,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Delete a wrong entry of the shared expenses of this group: the sender's own, or any for moderators."""
    me = context.sender.ref.key

    def change(state: Expenses, _: int) -> list[int]:
        entry = state.find(number)
        is_own = me == entry.payer or (not entry.what and me in entry.shares)
        if not is_own and not _may_change_all(context):
            raise RequestProblem("expenses.foreign", number=number)
        entry.is_deleted = not restore
        return []

    state, _ = await changed(context, Expenses, change, documents, call)
    text = call.say(f"expenses.{'restored' if restore else 'deleted'}", line=_line(number, state, call))
    undo = call.undo(f"/expense delete {number}{'' if restore else ' restore=true'}")
    return FunctionResult.say(text, data={"number": number}, choices=undo)


async def _called(
    names: Sequence[str], context: MessageContext, known: KnownMembers, call: Call
) -> Sequence[KnownMember]:
    """The members with these names, by default all. Raises ToolError for unknown and ambiguous names."""
    me = KnownMember(context.sender.ref, context.sender.name)
    here = [me, *(one for one in await known.of(context.chat) if one.ref != me.ref)]
    found: list[KnownMember] = []
    for name in names or ["us"]:
        folded = one_line(name).casefold().removeprefix("@")
        mentioned = is_mentioned(name, context, except_in="")
        try:
            one = None if folded in ME | US else called(name, here, context.mentions, as_mention=mentioned)
        except (UnknownMember, SeveralMembers) as problem:
            problem.fields = ()  # no argument here is called `who`
            raise
        found += [one] if one is not None else here if folded in US else [me]
    return list({one.ref: one for one in found}.values())


def _may_change_all(context: MessageContext) -> bool:
    return context.sender.role in Role.at_least(Role.MODERATOR)


def _line(number: int | str, state: Expenses, call: Call) -> str:
    entry = state.find(number)
    amount, to = in_words(entry.cents, entry.currency), state.names[next(iter(entry.shares))]
    key = "line" if entry.what else "payment"
    return call.say(
        f"expenses.{key}", number=number, name=state.names[entry.payer], amount=amount, what=entry.what, to=to
    )


def _board(state: Expenses, call: Call) -> Message:
    """The settlement, with a button for each payment; a press is refused once the expenses have changed."""

    def in_text(one: Transfer) -> str:
        payer, receiver, amount = state.names[one.payer], state.names[one.receiver], in_words(one.cents, one.currency)
        return call.say("expenses.transfer", payer=payer, receiver=receiver, amount=amount)

    texts = [in_text(one) for one in state.transfers()]
    if not texts:
        return Message(call.say("expenses.settled"))
    lines = [f"{number}. {text}" for number, text in enumerate(texts, 1)]
    buttons = [Choice(f"✔ {text}", f"/settle paid {at} version={state.version}") for at, text in enumerate(texts, 1)]
    text = "\n".join([call.say("expenses.settle"), *lines, call.say("expenses.how_to_pay")])
    return Message(text, choices=tuple(buttons[:_MOST_BUTTONS]))
