"""A chat with runs that wait for an approval, built with copies of the code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import fields
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from config.sections.bots import ApprovalsSettings
from function_calls import spec
from function_calls.context import MessageContext
from function_calls.outcome import TurnOutcome
from function_calls.rounds.shortlist import found_here
from function_calls.spec import FunctionResult
from function_calls.turn import NoApproval, OpenQuestion
from services.chats.grants import Grants
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.code_copies import Code
from tests.function_calls.routing import Routing

Scenario = Callable[[Code], Awaitable[None]]
OSLO = {"city": "Oslo"}
OFFICE = ChatRef("test", "bot", "office")
ANN, BOB, OLGA = a_member("Ann"), a_member("Bob", Role.ADMIN), a_member("Olga", Role.OWNER)


class Removal(NamedTuple):
    """Removal of a check: `piece` of the module's source is replaced by `instead`."""

    check: str
    module: ModuleType
    piece: str
    instead: str
    scenario: Scenario


class Waiting(NoApproval):
    """A chat with runs that wait for an approval."""

    def __init__(self, code: Code, *functions: Recorder, script: Any = (), **settings: Any) -> None:
        clock = VirtualClock()
        # The store is not used here.
        self.grants = Grants(None, clock, Ids(clock))  # type: ignore[arg-type]
        self.code = code
        self.functions = functions
        self.claims = 0
        self.roles: dict[MemberRef, Role] = {}
        self.routing = self.with_rules(script=script, **settings)

    def with_rules(self, script: Any = (), **settings: Any) -> Routing:
        """The same chat with these approval settings."""
        read = ApprovalsSettings.model_validate(settings)
        approval = self.code.approvals.Approvals(read, self.grants)
        permissions = self.code.permissions
        policies = permissions.Policies(permissions.Open(), self.code.vouching.Vouching(approval, found_here))
        self.routing = Routing(
            *self.functions,
            script=script,
            policies=policies,
            invoker=self.code.invocation.Invoker,
            llm=self.code.llm.FunctionCallLLM,
            router=self.code.router.FunctionCallRouter,
        )
        return self.routing

    def a_turn(self, **changes: Any) -> Any:
        """A turn of the copied code with live roles, whose questions can be claimed once."""
        turn = self.routing.a_turn()
        known = {field.name for field in fields(turn.input)}
        given = {name: getattr(turn.input, name) for name in known} | {"live_role": self._live_role, "approval": self}
        given |= {name: changes.pop(name) for name in known & changes.keys()}
        copied = self.code.turn.Turn(self.code.turn.TurnInput(**given), turn.deadline)
        for name, value in changes.items():
            setattr(copied.memory, name, value)
        return copied

    async def _live_role(self, member: MemberRef) -> Role | None:
        return self.roles.get(member)

    async def claim(self, allows: bool) -> bool:
        self.claims += 1
        return self.claims == 1

    async def hears(self, text: str, sender: Any = ANN, **facts: Any) -> TurnOutcome:
        """Outcome of a message from a member with a known role."""
        self.roles[sender.ref] = sender.role
        outcome: TurnOutcome = await self.routing.router.dispatch(a_message(text, sender, **facts), self.a_turn())
        return outcome

    async def answers(self, open_question: OpenQuestion | None, text: str, sender: Any, **turn: Any) -> TurnOutcome:
        """Outcome of an answer to the question."""
        assert open_question is not None
        self.roles.setdefault(sender.ref, sender.role)
        context = a_message(text, sender)
        outcome: TurnOutcome = await self.routing.router.dispatch(
            context, self.a_turn(answering=(open_question, text), **turn)
        )
        return outcome

    async def invoke(
        self, turn: Any, raw: Any = None, message: MessageContext | None = None, **request: Any
    ) -> FunctionResult:
        """Result of a run of `act` by Ann."""
        result: FunctionResult = await self.routing.invoke(
            "act", raw=raw or OSLO, turn=turn, message=message or a_message(sender=ANN), **request
        )
        return result


def act(**options: Any) -> Recorder:
    return Recorder("act", CITY, **{"effect": "once", "touches": (), "commands": ["act"], **options})


def rule(**more: Any) -> dict[str, Any]:
    return {"required": [{"functions": ["act"], **more}]}


def approved(code: Code, question: Any, by: Any = BOB, *, always: bool = False) -> Any:
    """An approval as the answer to the question."""
    return spec.Approved(question.terms.digest, by, always)


async def is_noticed(removal: Removal) -> None:
    """Check that the scenario passes with all checks, and fails without this one."""
    await removal.scenario(Code())
    changed = Code(removal.module, removal.piece, removal.instead)
    with pytest.raises(AssertionError):
        await removal.scenario(changed)
