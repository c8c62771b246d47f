"""Shared expenses of a group: note, list, settle, delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.reminder_results import is_mentioned
from function_calls.spec import Choice, FunctionResult, Message, ToolError
from services.chats.documents import Documents, current_names
from services.chats.expenses import (
    MOST_AMOUNT,
    BadAmount,
    BadCurrency,
    Entry,
    Expenses,
    ForeignEntry,
    NoEntry,
    Transfer,
    currency_code,
    hundredths,
    in_words,
    read_line,
)
from services.chats.members import KnownMember, KnownMembers, SeveralMembers, UnknownMember, called
from services.patterns import one_line
from services.refs import ErrorCode, JsonValue, Role
from services.times.reminder_lines import ME, US

_MOST_SHOWN = 20
_MOST_BUTTONS = 10
_Names = Mapping[str, str]


@tool_function(
    name="expense_add",
    description="Note what the sender has paid for members of this group, who share it equally. Not for what others paid",
    examples=(
        "i paid {amount} for {what}",
        "i spent {amount} {currency} on {what}",
        "note that i paid {amount} for {what}",
        "add an expense of {amount} for {what}",
        "split {amount} for {what} between {members}",
        "我付了{amount}买{what}",
        "记账{amount}{what}",
        "记一笔账：{what}{amount}元",
    ),
    commands=("expense", "记账"),
    tags=("expenses", "plan"),
    scope="group",
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
    ask={"what": "@expenses.ask_what"},
    line="what",
)
async def expense_add(
    context: MessageContext,
    what: Annotated[str, Field(description="What was paid for", max_length=300, pattern=r"\S")],
    amount: Annotated[float | None, Field(description="How much was paid; always required", gt=0)] = None,
    members: Annotated[
        list[str], Field(description="Names of those who share it; empty: everybody here", max_length=50)
    ] = [],  # noqa: B006 - never changed
    currency: Annotated[str | None, Field(description="Code such as EUR; absent: the latest", max_length=10)] = None,
    *,
    documents: Documents,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Add an expense that the sender has paid. A line such as `30 pizza for Anna, Ben` is parsed if no amount is
    given."""
    here, names, what = await _here(context, known), members, one_line(what)
    if amount is None:
        written = read_line(what)
        if written is None:
            raise ToolError(call.say("expenses.no_amount"), ErrorCode.BAD_ARGUMENTS)
        amount, currency, what = written.amount, currency or written.currency or None, written.what
        names = names or written.names
        if not members and names and not any(_is_name(name, here, context) for name in names):
            what, names = written.rest, []
    sharers = _sharers(names, here, context, call)

    def change(state: Expenses) -> list[int]:
        code = currency_code(currency) if currency else state.currency
        return [state.add(here[0].ref.key, hundredths(amount, code), code, what, [one.ref.key for one in sharers]).number]

    try:
        state, (number,) = await documents.change(context.chat, Expenses, [here[0], *sharers], call.key, change)
    except BadAmount:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("expenses.bad_amount", most=MOST_AMOUNT), ["amount"])
    except BadCurrency:
        text = call.say("expenses.bad_currency", currency=currency)
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["currency"])
    entry = next(one for one in state.entries if one.number == number)
    text = _line(entry, current_names(state, here), call)
    return FunctionResult.say(
        f"{text}\n{_shares(entry, current_names(state, here), call)}",
        data={"number": entry.number},
        choices=call.undo(f"/expense delete {number}"),
    )


@tool_function(
    name="expense_list",
    description="Show the shared expenses of this group and who owes how much",
    examples=(
        "show our expenses",
        "list the shared expenses",
        "who owes what",
        "how much do i owe",
        "what did we spend",
        "看看账单",
        "我们花了多少钱",
        "谁欠谁钱",
    ),
    commands=("expenses", "expense list", "账单"),
    tags=("expenses", "plan"),
    scope="group",
    touches="reads_outside",
    effect="read",
)
async def expense_list(
    context: MessageContext, *, documents: Documents, known: KnownMembers, call: Call
) -> FunctionResult:
    """List the latest 20 entries and the balances."""
    state = await documents.read(context.chat, Expenses)
    names = current_names(state, await _here(context, known))
    entries = [entry for entry in state.entries if not entry.is_deleted]
    if not entries:
        return FunctionResult.say(call.say("expenses.none"), data=[])
    balances = [
        call.say(f"expenses.balance.{'plus' if cents > 0 else 'minus'}", name=names[member], amount=in_words(cents, code))
        for code, members in state.balances().items()
        for member, cents in members.items()
    ]
    lines = [_line(entry, names, call) for entry in entries[-_MOST_SHOWN:]]
    head = call.say("expenses.title", count=len(entries), shown=len(lines))
    foot = [call.say("expenses.balances"), *balances] if balances else [call.say("expenses.settled")]
    return FunctionResult.say("\n".join([head, *lines, *foot]), data=[entry.number for entry in entries])


@tool_function(
    name="expense_settle",
    description="Show who has to pay whom how much, so that the shared expenses of this group are settled",
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
    tags=("expenses", "plan"),
    scope="group",
    touches="reads_outside",
    effect="read",
)
async def expense_settle(
    context: MessageContext, *, documents: Documents, known: KnownMembers, call: Call
) -> FunctionResult:
    """List the smallest number of payments, with a button for each that marks it as paid."""
    state = await documents.read(context.chat, Expenses)
    data: JsonValue = [dict(one._asdict()) for one in state.transfers()]
    return FunctionResult(True, (_board(state, current_names(state, await _here(context, known)), call),), data)


@tool_function(
    name="expense_paid",
    description="Mark a payment of the settlement as paid: one that the sender has made or received",
    examples=(
        "i paid {transfer} back",
        "{transfer} has paid me back",
        "mark payment {transfer} of the settlement as paid",
        "i settled up with {transfer}",
        "payment {transfer} is settled",
        "我已经还钱给{transfer}了",
        "{transfer}还我钱了",
    ),
    commands=("settle paid", "paid", "结算 已付"),
    tags=("expenses", "plan"),
    scope="group",
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
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
    """Record a payment. Permitted to its payer and receiver, and to moderators and above."""
    here, me = await _here(context, known), context.sender.ref.key
    number = int(transfer.strip("# ")) if transfer.strip("# ").isdecimal() else None
    other = None if number is not None else _sharers([transfer], here, context, call)[0].ref.key

    def change(state: Expenses) -> list[int]:
        found = list(enumerate(state.transfers(), 1))
        meant = [one for at, one in found if number == at or other in {one.payer, one.receiver} - {me}]
        meant = [one for one in meant if other is None or me in (one.payer, one.receiver)]
        if len(meant) != 1 or version not in (None, state.version):
            raise ToolError(call.say("expenses.no_transfer"), ErrorCode.NOT_FOUND)
        if me not in (meant[0].payer, meant[0].receiver) and not _may_all(context):
            raise ToolError(call.say("expenses.foreign_transfer"), ErrorCode.REFUSED)
        return [state.pay(meant[0]).number]

    state, (paid,) = await documents.change(context.chat, Expenses, here[:1], call.key, change)
    names = current_names(state, here)
    text = _line(next(one for one in state.entries if one.number == paid), names, call)
    board = _board(state, names, call)
    update = Message(f"{text}\n{board.text}", choices=board.choices)
    undo = call.undo(f"/expense delete {paid}")
    return FunctionResult.say(text, data={"number": paid}, choices=undo, update=update)


@tool_function(
    name="expense_delete",
    description="Delete a wrong entry from the shared expenses of this group",
    examples=(
        "delete expense {number}",
        "remove expense number {number}",
        "expense {number} is wrong, delete it",
        "cancel expense {number}",
        "take expense {number} off the bill",
        "删除账单第{number}笔",
        "第{number}笔账记错了，删掉",
    ),
    commands=("expense delete", "expense remove", "记账 删除"),
    tags=("expenses", "plan"),
    scope="group",
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
    ask={"number": "@expenses.ask_number"},
)
async def expense_delete(
    context: MessageContext,
    number: Annotated[int, Field(description="Number of the entry", ge=1, le=999_999_999)],
    restore: Annotated[bool, Field(description="Make a deleted entry valid again")] = False,
    *,
    documents: Documents,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Delete or restore an entry: the member's own, or any for moderators and above."""
    here, may_all = await _here(context, known), _may_all(context)

    def change(state: Expenses) -> list[int]:
        return [state.delete(number, here[0].ref.key, any_author=may_all, restore=restore).number]

    try:
        state, _ = await documents.change(context.chat, Expenses, here[:1], call.key, change)
    except NoEntry:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("expenses.no_entry", number=number), ["number"])
    except ForeignEntry:
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("expenses.foreign", number=number))
    line = _line(next(one for one in state.entries if one.number == number), current_names(state, here), call)
    undo = call.undo(f"/expense delete {number}{'' if restore else ' restore=true'}")
    text = call.say("expenses.restored" if restore else "expenses.deleted", line=line)
    return FunctionResult.say(text, data={"number": number}, choices=undo)


async def _here(context: MessageContext, known: KnownMembers) -> list[KnownMember]:
    """Members of the chat under their current names, the sender first."""
    me = KnownMember(context.sender.ref, one_line(context.sender.name))
    return [me, *(one for one in await known.of(context.chat) if one.ref != me.ref)]


def _is_name(name: str, here: Sequence[KnownMember], context: MessageContext) -> bool:
    try:
        return _folded(name) in ME | US or called(name, here, context.mentions, as_mention=name.startswith("@")) is not None
    except SeveralMembers:
        return True
    except UnknownMember:
        return name.startswith("@")


def _sharers(
    names: Sequence[str], here: Sequence[KnownMember], context: MessageContext, call: Call
) -> Sequence[KnownMember]:
    """The members with these names, by default all. Raises ToolError for unknown and ambiguous names."""
    found: list[KnownMember] = []
    for name in names or ["us"]:
        folded = _folded(name)
        try:
            if folded in US:
                found += here
            elif folded in ME:
                found.append(here[0])
            else:
                mentioned = is_mentioned(name, context, except_in="")
                found.append(called(name, here, context.mentions, as_mention=mentioned))
        except UnknownMember as error:
            key = "reminders.unknown_member_similar" if error.similar else "reminders.unknown_member"
            text = call.say(key, name=error.name, similar=", ".join(error.similar))
            raise ToolError(text, ErrorCode.NOT_FOUND) from None
        except SeveralMembers as error:
            text = call.say("reminders.several_members", name=error.name, names=", ".join(error.names))
            raise ToolError(text, ErrorCode.BAD_ARGUMENTS) from None
    return list({one.ref: one for one in found}.values())


def _folded(name: str) -> str:
    return one_line(name).casefold().removeprefix("@")


def _may_all(context: MessageContext) -> bool:
    return context.sender.role in Role.at_least(Role.MODERATOR)


def _line(entry: Entry, names: _Names, call: Call) -> str:
    key = "expenses.line" if entry.what else "expenses.payment"
    receiver = names[next(iter(entry.shares))]
    amount = in_words(entry.cents, entry.currency)
    return call.say(key, number=entry.number, name=names[entry.payer], amount=amount, what=entry.what, to=receiver)


def _shares(entry: Entry, names: _Names, call: Call) -> str:
    shares = [f"{names[member]} {in_words(cents, entry.currency)}" for member, cents in entry.shares.items()]
    return call.say("expenses.shared", shares=", ".join(sorted(shares)))


def _board(state: Expenses, names: _Names, call: Call) -> Message:
    """The settlement, with a button for each payment; a press is refused once the expenses have changed."""
    transfers = state.transfers()
    if not transfers:
        return Message(call.say("expenses.settled"))

    def said(one: Transfer) -> str:
        amount = in_words(one.cents, one.currency)
        return call.say("expenses.transfer", payer=names[one.payer], receiver=names[one.receiver], amount=amount)

    lines = [f"{number}. {said(one)}" for number, one in enumerate(transfers, 1)]
    buttons = [
        Choice(f"✔ {said(one)}", f"/settle paid {number} version={state.version}")
        for number, one in enumerate(transfers[:_MOST_BUTTONS], 1)
    ]
    return Message("\n".join([call.say("expenses.settle"), *lines, call.say("expenses.how_to_pay")]), choices=tuple(buttons))
