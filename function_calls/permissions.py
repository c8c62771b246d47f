"""Who may call what, where. Plain predicates, each alone; `refusal` asks all of them in the one order."""

from __future__ import annotations

from typing import NamedTuple

from function_calls.context import MessageContext
from function_calls.profile import ChatProfile
from function_calls.spec import Activation, FunctionSpec, OfferedTo
from function_calls.turn import Path, Turn
from services.refs import ErrorCode


class Refusal(NamedTuple):
    """Why not: the text's key, and the settings key or role that decided."""

    key: str
    detail: str = ""
    code: ErrorCode = ErrorCode.REFUSED


_DOORS = {
    Path.COMMAND: OfferedTo.COMMAND,
    Path.MODEL: OfferedTo.MODEL,
    Path.TIMER: OfferedTo.TIMER,
    Path.API: OfferedTo.API,
    Path.MCP: OfferedTo.MCP,
}


def enabled(spec: FunctionSpec, profile: ChatProfile) -> Refusal | None:
    """Off here by settings?"""
    if profile.disabled and spec.name in profile.disabled:
        return Refusal("refusals.disabled", profile.disabled[spec.name])
    return None


def open_to(spec: FunctionSpec, path: Path) -> Refusal | None:
    """May this way lead to the function?"""
    door = _DOORS.get(path)
    if door is None or door in spec.offered_to:
        return None
    return Refusal("refusals.closed", path.value)


def in_scope(spec: FunctionSpec, context: MessageContext) -> Refusal | None:
    """Group, private, or both?"""
    if spec.scope == "both" or (spec.scope == "group") == context.is_group:
        return None
    return Refusal(f"refusals.only_{spec.scope}", spec.scope)


def addressed(spec: FunctionSpec, context: MessageContext, turn: Turn) -> Refusal | None:
    """Does it insist on being addressed, in a group?"""
    if not spec.require_at or turn.addressed or not context.is_group:
        return None
    return Refusal("refusals.not_addressed", "require_at")


def role_allows(spec: FunctionSpec, context: MessageContext, profile: ChatProfile) -> Refusal | None:
    """Is the sender's role among those that may?"""
    roles = profile.roles.get(spec.name, spec.roles) if profile.roles else spec.roles
    if context.sender.role in roles:
        return None
    return Refusal("refusals.role", min(roles, key=lambda role: role.rank).value if roles else "")


def refusal(
    context: MessageContext, spec: FunctionSpec, turn: Turn, profile: ChatProfile, path: Path
) -> Refusal | None:
    """The first reason why the sender may not run `spec` here; None when they may."""
    return (
        enabled(spec, profile)
        or open_to(spec, path)
        or in_scope(spec, context)
        or addressed(spec, context, turn)
        or role_allows(spec, context, profile)
    )


def callable_here(context: MessageContext, turn: Turn, path: Path) -> list[FunctionSpec]:
    """The functions that the sender may run here, in registration order. What is not in it is not offered."""
    profile = turn.profile()
    return [
        spec
        for spec in turn.functions.specs
        if (path is not Path.MODEL or spec.activation is Activation.ALWAYS)
        and refusal(context, spec, turn, profile, path) is None
    ]
