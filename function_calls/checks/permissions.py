"""Who may call what and where, policies on a run after its arguments are known, and data labels."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from config.chat_settings import DEFAULT_LAYER, ResolvedFunction
from function_calls.call import Path
from function_calls.context import MessageContext
from function_calls.failures import Refusal, switched_on
from function_calls.profile import ChatNote, ChatProfile
from function_calls.spec import Activation, FunctionResult, FunctionSpec, OfferedTo, Touch
from function_calls.turn import Turn
from services.llm.model import Offer
from services.refs import Effect, Role
from services.store.port import Write

_DOORS = {
    Path.COMMAND: OfferedTo.COMMAND,
    Path.MODEL: OfferedTo.MODEL,
    Path.TIMER: OfferedTo.TIMER,
    Path.API: OfferedTo.API,
    Path.MCP: OfferedTo.MCP,
}


def enabled(setting: ResolvedFunction) -> Refusal | None:
    """Off here by settings?"""
    if setting.enabled:
        return None
    return Refusal("refusals.disabled", setting=setting.layers["enabled"])


def open_to(spec: FunctionSpec, path: Path) -> Refusal | None:
    """May this way lead to the function?"""
    door = _DOORS.get(path)
    if door is None or door in spec.access.offered_to:
        return None
    return Refusal("refusals.closed", path.value)


def at_hand(spec: FunctionSpec, turn: Turn, profile: ChatProfile, path: Path) -> Refusal | None:
    """Has the chat taken to hand what a model may call only then?"""
    if path is not Path.MODEL or turn.input.functions.on_request.is_at_hand(spec, profile.at_hand):
        return None
    return Refusal("refusals.not_at_hand", spec.name, f"/use {spec.name}")


def in_scope(spec: FunctionSpec, setting: ResolvedFunction | None, context: MessageContext) -> Refusal | None:
    """Group, private, or both?"""
    scope = (setting.scope if setting else None) or spec.access.scope
    if scope == "both" or (scope == "group") == context.is_group:
        return None
    return Refusal(f"refusals.only_{scope}", scope, _key(spec, setting, "scope"))


def addressed(spec: FunctionSpec, setting: ResolvedFunction | None, context: MessageContext) -> Refusal | None:
    """Does it insist on being addressed in a group, as this message is not?"""
    require_at = spec.access.require_at if setting is None or setting.require_at is None else setting.require_at
    if not require_at or not context.is_group:
        return None
    return Refusal("refusals.not_addressed", setting=_key(spec, setting, "require_at"))


def role_allows(spec: FunctionSpec, setting: ResolvedFunction | None, role: Role) -> Refusal | None:
    """Is `role` among those that may?"""
    roles = spec.access.roles if setting is None else _roles(spec, setting)
    if role in roles:
        return None
    least = min(roles, key=lambda one: one.rank).value if roles else ""
    return Refusal("refusals.role", least, _key(spec, setting, "roles"))


def roles_here(spec: FunctionSpec, profile: ChatProfile) -> frozenset[Role]:
    """Who may call it in this chat."""
    return _roles(spec, profile.functions.get(spec.name))


def _roles(spec: FunctionSpec, setting: ResolvedFunction | None) -> frozenset[Role]:
    return spec.access.roles if setting is None or setting.roles is None else frozenset(map(Role, setting.roles))


def is_risky(spec: FunctionSpec, profile: ChatProfile) -> bool:
    """Whether the platform is asked for the caller's role once more before each run: what not every member may do, and
    which changes something or touches more than the asker's own things."""
    return (spec.execution.effect is not Effect.READ or bool(spec.execution.touches)) and Role.MEMBER not in roles_here(
        spec, profile
    )


async def refusal_now(context: MessageContext, spec: FunctionSpec, turn: Turn, profile: ChatProfile) -> Refusal | None:
    """The refusal where the sender is no longer what the message says."""
    role = await turn.role_now(context.sender)
    return _as_told(role_allows(spec, profile.functions.get(spec.name), role), context, turn)


def _as_told(refused: Refusal | None, context: MessageContext, turn: Turn) -> Refusal | None:
    """A refusal for the sender's role, which says so where nobody told what that is."""
    if refused is None or context.sender.ref not in turn.memory.untold:
        return refused
    return refused._replace(key="refusals.role_untold", may_pass=True)


def _key(spec: FunctionSpec, setting: ResolvedFunction | None, name: str) -> str:
    """The key that `name` of the function comes from; of what it declares itself, the key that would change it."""
    layer = setting.layers.get(name, DEFAULT_LAYER) if setting else DEFAULT_LAYER
    return f"functions.{spec.name}.{name}" if layer == DEFAULT_LAYER else layer


def timeout_seconds(spec: FunctionSpec, profile: ChatProfile) -> float:
    """How long a run may take here."""
    setting = profile.functions.get(spec.name)
    return (
        spec.execution.timeout_seconds
        if setting is None or setting.timeout_seconds is None
        else setting.timeout_seconds
    )


def refusal(
    context: MessageContext, spec: FunctionSpec, turn: Turn, profile: ChatProfile, path: Path
) -> Refusal | None:
    """The first reason why the sender may not run `spec` here; None when they may."""
    setting = profile.functions.get(spec.name)
    # This stands before every run: a check that does not concern it is not asked.
    refused = (
        (None if setting is None else enabled(setting))
        or (switched_on(profile) if path is Path.MODEL else None)
        or open_to(spec, path)
        or (None if spec.prompt.activation is Activation.ALWAYS else at_hand(spec, turn, profile, path))
        or in_scope(spec, setting, context)
        or (None if turn.input.addressed else addressed(spec, setting, context))
    )
    if refused is not None:
        return refused
    refused = role_allows(spec, setting, context.sender.role)
    return None if refused is None else _as_told(refused, context, turn)


def offered_here(context: MessageContext, turn: Turn) -> Offer:
    """`callable_here` as a model is offered it, remembered for all who are alike in what `refusal` looks at."""
    profile = turn.input.profile()
    alike = (context.sender.role, context.is_group, turn.input.addressed, profile.functions_on, profile.at_hand)
    return turn.input.functions.offer_for(alike, profile.functions, lambda: callable_here(context, turn, Path.MODEL))


def callable_here(context: MessageContext, turn: Turn, path: Path) -> list[FunctionSpec]:
    """The functions that the sender may run here, in registration order. What is not in it is not offered."""
    profile = turn.input.profile()
    return [spec for spec in turn.input.functions.specs if refusal(context, spec, turn, profile, path) is None]


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What a policy says about one run."""

    refusal: FunctionResult | None = None
    """An error or a question instead of the run; None lets it pass."""
    writes: tuple[Write, ...] = ()
    """Executed in the same unit as the intent: a budget is taken where the run begins, or not at all."""


ALLOWED = PolicyDecision()


class Policy(Protocol):
    """Decides about one run."""

    def judge(
        self, context: MessageContext, spec: FunctionSpec, arguments: Any, turn: Turn
    ) -> PolicyDecision | Awaitable[PolicyDecision]:
        """ALLOWED, or why not; to be awaited where it has to look something up first."""


class Open:
    """Lets every run pass."""

    def judge(self, context: MessageContext, spec: FunctionSpec, arguments: Any, turn: Turn) -> PolicyDecision:
        return ALLOWED


class Policies(NamedTuple):
    """The three that every run passes, in this order."""

    budget: Policy
    taint: Policy
    approval: Policy


_NOTHING: frozenset[Touch] = frozenset()
_OUTSIDE = frozenset({Touch.READS_OUTSIDE})


def reaches_out(spec: FunctionSpec) -> bool:
    """Whether its effect goes beyond the asker's own things in this chat. A function that does not say so reaches out
    when it acts only once or may not be called by every member; what may be repeated and is open to all does not."""
    if Touch.REACHES_OUT in spec.execution.touches:
        return True
    if spec.execution.effect is Effect.READ or Touch.STAYS_HERE in spec.execution.touches:
        return False
    return spec.execution.effect is Effect.ONCE or Role.MEMBER not in spec.access.roles


def is_tainted(spec: FunctionSpec, turn: Turn) -> bool:
    """Whether words from outside may have led to this effect, or what not everybody may know may go out with it. One
    search after another asks nothing: what the first one found was known outside before."""
    if Touch.SENDS_OUT in spec.execution.touches and Touch.READS_PRIVATE in turn.memory.taint:
        return True
    return bool(turn.memory.taint) and reaches_out(spec)


def taint_of(context: MessageContext, notes: Sequence[ChatNote]) -> frozenset[Touch]:
    """What a model reads with the message beside the words of who asks: a quoted message is somebody else's, unless it
    is the bot's own, and so is what scripts have noted of others."""
    quoted, asker = context.reply_to, context.sender.ref.key
    if quoted is not None and quoted.text and not quoted.from_bot:
        return _OUTSIDE
    for note in notes:
        if note.from_outside or note.of_member not in ("", asker):
            return _OUTSIDE
    return _NOTHING
