"""Settings of what needs a person's yes before it runs."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from config.terms import ChatPattern, Count, RoleName, Section, Word, fault


class ApprovalRule(Section):
    """Functions that run only after somebody of a role has said yes, to exactly what is to be done."""

    functions: tuple[Word, ...] = Field(default=(), max_length=1000)
    """The functions, by name."""
    tags: tuple[Word, ...] = Field(default=(), max_length=100)
    """Every function with one of these tags."""
    sensitive: bool = False
    """True: every function with parameters whose values stay out of logs."""
    chats: tuple[ChatPattern, ...] = Field(default=("*",), min_length=1, max_length=1000)
    """Where it holds, as `platform:account:chat`; `*` stands for any characters."""
    by: RoleName = "admin"
    """The least role that may say yes. Whoever asked may do it too, if they have the role."""
    by_other: bool = False
    """True: whoever asked may not; somebody else has to."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not (self.functions or self.tags or self.sensitive):
            raise fault("names no function: it needs functions, tags or sensitive")
        return self


class ApprovalsSettings(Section):
    """What needs a person's yes."""

    required: tuple[ApprovalRule, ...] = Field(default=(), max_length=1000)
    """What needs one always. Of several rules for a function in a chat, the first one counts."""
    tainted: Literal["asker"] | RoleName = "asker"
    """Who is asked before an effect beyond the asker's own things, when its turn has read text from outside: whoever
    asked for it, or the least role that may say yes."""
    expires_seconds: Count = Field(default=600, ge=10, le=604_800)
    """How long such a question waits for its answer."""
    open_per_member: Count = Field(default=3, ge=1, le=1000)
    """So many such questions of one member wait in a chat; the next one is not asked, and the member is told so."""
    open_per_chat: Count = Field(default=10, ge=1, le=1000)
    """The same for all members of a chat together."""
