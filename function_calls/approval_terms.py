"""What a person is asked to allow: one exact run, for whom, and who may say yes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from function_calls.context import MessageContext, Sender
from services.refs import MemberRef, Role


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """What a yes would hold for, and whose."""

    digest: str
    """Of the function, its exact arguments, the chat, the asker and the rule: a yes is for this and nothing else."""
    grant: str
    """The same for every asker: what a yes for always holds for. Empty: there is none for always."""
    code: str
    """What people write to say which question they mean."""
    role: Role | None
    """The least role that may say yes. None: the asker alone."""
    by_other: bool
    """The asker may not, whatever their role."""
    asker: MessageContext
    """The message that led here: the run is the asker's, with the asker's rights, whoever allows it."""

    def may_allow(self, member: MemberRef, role: Role) -> bool:
        """Whether the yes of `member`, who is `role` now, counts."""
        is_asker = member == self.asker.sender.ref
        if self.role is None:
            return is_asker
        return role.rank >= self.role.rank and not (self.by_other and is_asker)

    def may_refuse(self, member: MemberRef, role: Role) -> bool:
        """Whether the no of `member` counts. Askers may always take back what they asked for."""
        return member == self.asker.sender.ref or self.may_allow(member, role)


class Became(NamedTuple):
    """What became of a question for a person's yes that waits no longer."""

    how: str = ""
    """`allowed`, `refused`, `expired` or `withdrawn`; empty where that is not known."""
    by: str = ""
    """The name of who decided."""


class Approved(NamedTuple):
    """A yes. It allows one run and is gone."""

    digest: str
    by: Sender
    always: bool
    """The next such runs in the chat are not to be asked for."""
    is_noted: bool = False
    """It was given before the run asked something, and kept then: the same run goes on."""
