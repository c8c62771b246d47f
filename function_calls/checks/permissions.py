"""Permissions of callers, policies on a run with known arguments, and data labels."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from config.chat_settings import DEFAULT_LAYER, ResolvedFunction
from function_calls.call import CallRequest, Path
from function_calls.context import MessageContext
from function_calls.failures import Refusal, switched_on
from function_calls.profile import ChatNote, ChatProfile
from function_calls.spec import Activation, FunctionResult, FunctionSpec, OfferedTo, Touch
from function_calls.turn import Turn
from services.llm.model import Offer
from services.refs import Effect, Role
from services.store.port import Write

_OFFERED_BY_PATH = {
    Path.COMMAND: OfferedTo.COMMAND,
    Path.MODEL: OfferedTo.MODEL,
    Path.TIMER: OfferedTo.TIMER,
    Path.API: OfferedTo.API,
    Path.MCP: OfferedTo.MCP,
}


def refuse_disabled(setting: ResolvedFunction) -> Refusal | None:
    """Refuse a function that the settings disable here."""
    if setting.enabled:
        return None
    return Refusal("refusals.disabled", setting=setting.layers["enabled"])


def refuse_path(spec: FunctionSpec, path: Path) -> Refusal | None:
    """Refuse a path that the function is not offered on."""
    required = _OFFERED_BY_PATH.get(path)
    if required is None or required in spec.access.offered_to:
        return None
    return Refusal("refusals.closed", path.value)


def refuse_inactive(spec: FunctionSpec, turn: Turn, profile: ChatProfile, path: Path) -> Refusal | None:
    """Refuse a model's call of a function that the chat has not activated."""
    if path is not Path.MODEL or turn.input.functions.activation.is_active(spec, profile.active):
        return None
    return Refusal("refusals.not_at_hand", spec.name, f"/use {spec.name}")


def refuse_scope(spec: FunctionSpec, setting: ResolvedFunction | None, context: MessageContext) -> Refusal | None:
    """Refuse a function outside its scope: group, private, or both."""
    scope = (setting.scope if setting else None) or spec.access.scope
    if scope == "both" or (scope == "group") == context.is_group:
        return None
    return Refusal(f"refusals.only_{scope}", scope, _key(spec, setting, "scope"))


def refuse_unaddressed(spec: FunctionSpec, setting: ResolvedFunction | None, context: MessageContext) -> Refusal | None:
    """Refuse a function that requires an addressed message in a group. Called for unaddressed messages only."""
    require_at = spec.access.require_at if setting is None or setting.require_at is None else setting.require_at
    if not require_at or not context.is_group:
        return None
    return Refusal("refusals.not_addressed", setting=_key(spec, setting, "require_at"))


def refuse_role(spec: FunctionSpec, setting: ResolvedFunction | None, role: Role) -> Refusal | None:
    """Refuse a role that may not call the function."""
    roles = spec.access.roles if setting is None else _roles(spec, setting)
    if role in roles:
        return None
    least = min(roles, key=lambda one: one.rank).value if roles else ""
    return Refusal("refusals.role", least, _key(spec, setting, "roles"))


def roles_here(spec: FunctionSpec, profile: ChatProfile) -> frozenset[Role]:
    """Roles that may call the function in this chat."""
    return _roles(spec, profile.functions.get(spec.name))


def _roles(spec: FunctionSpec, setting: ResolvedFunction | None) -> frozenset[Role]:
    return spec.access.roles if setting is None or setting.roles is None else frozenset(map(Role, setting.roles))


def is_risky(spec: FunctionSpec, profile: ChatProfile) -> bool:
    """Whether the caller's role is verified with the platform before each run: for restricted functions that have an
    effect or access more than the asker's own data."""
    return (spec.execution.effect is not Effect.READ or bool(spec.execution.touches)) and Role.MEMBER not in roles_here(
        spec, profile
    )


async def refusal_now(context: MessageContext, spec: FunctionSpec, turn: Turn, profile: ChatProfile) -> Refusal | None:
    """Refusal according to the sender's current role."""
    role = await turn.role_now(context.sender)
    return _with_unknown_role(refuse_role(spec, profile.functions.get(spec.name), role), context, turn)


def _with_unknown_role(refused: Refusal | None, context: MessageContext, turn: Turn) -> Refusal | None:
    """Refusal of the sender's role, marked as temporary if the platform did not report the role."""
    if refused is None or context.sender.ref not in turn.memory.unknown_roles:
        return refused
    return refused._replace(key="refusals.role_untold", may_pass=True)


def _key(spec: FunctionSpec, setting: ResolvedFunction | None, name: str) -> str:
    """Settings key that decided `name`; for a function's own declaration, the key that would override it."""
    layer = setting.layers.get(name, DEFAULT_LAYER) if setting else DEFAULT_LAYER
    return f"functions.{spec.name}.{name}" if layer == DEFAULT_LAYER else layer


def timeout_seconds(spec: FunctionSpec, profile: ChatProfile) -> float:
    """Timeout of a run in this chat, in seconds."""
    setting = profile.functions.get(spec.name)
    return (
        spec.execution.timeout_seconds
        if setting is None or setting.timeout_seconds is None
        else setting.timeout_seconds
    )


def refusal(
    context: MessageContext, spec: FunctionSpec, turn: Turn, profile: ChatProfile, path: Path
) -> Refusal | None:
    """First reason why the sender may not run `spec` here; None if they may."""
    setting = profile.functions.get(spec.name)
    # Runs before every call, so checks that do not apply are skipped.
    refused = (
        (None if setting is None else refuse_disabled(setting))
        or (switched_on(profile) if path is Path.MODEL else None)
        or refuse_path(spec, path)
        or (None if spec.prompt.activation is Activation.ALWAYS else refuse_inactive(spec, turn, profile, path))
        or refuse_scope(spec, setting, context)
        or (None if turn.input.addressed else refuse_unaddressed(spec, setting, context))
    )
    if refused is not None:
        return refused
    refused = refuse_role(spec, setting, context.sender.role)
    return None if refused is None else _with_unknown_role(refused, context, turn)


def offered_here(context: MessageContext, turn: Turn) -> Offer:
    """Offer of the functions that a model may call here, cached for equal inputs. Functions whose services are not
    configured are left out, and those that members may not call come last, so that the offers of all roles begin
    alike."""
    functions, profile = turn.input.functions, turn.input.profile()
    cache_key = (
        context.sender.role,
        context.is_group,
        turn.input.addressed,
        profile.functions_on,
        profile.active,
        functions.set_up_state(),
    )

    def chosen() -> list[FunctionSpec]:
        found = [spec for spec in callable_here(context, turn, Path.MODEL) if functions.is_set_up(spec)]
        return sorted(found, key=lambda spec: Role.MEMBER not in roles_here(spec, profile))

    return functions.offer_for(cache_key, profile.functions, chosen)


def callable_here(context: MessageContext, turn: Turn, path: Path) -> list[FunctionSpec]:
    """Functions that the sender may run here, in registration order. No others are offered."""
    profile = turn.input.profile()
    return [spec for spec in turn.input.functions.specs if refusal(context, spec, turn, profile, path) is None]


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """Decision of a policy on a run."""

    refusal: FunctionResult | None = None
    """Error or question instead of the run; None permits it."""
    writes: tuple[Write, ...] = ()
    """Committed in the same unit as the intent, so that a budget is charged exactly if the run starts."""


ALLOWED = PolicyDecision()


class Policy(Protocol):
    """A check of a run with parsed arguments."""

    def judge(
        self, request: CallRequest, spec: FunctionSpec, arguments: Any
    ) -> PolicyDecision | Awaitable[PolicyDecision]:
        """ALLOWED, or a refusal or question. Awaitable if the policy must read from the store."""


class Open:
    """Permits every run."""

    def judge(self, request: CallRequest, spec: FunctionSpec, arguments: Any) -> PolicyDecision:
        return ALLOWED


class Policies(NamedTuple):
    """The policies that every run passes, in this order."""

    budget: Policy
    approval: Policy
    """Rules for approvals, and whether the asker's words stand for the call."""


def reaches_out(spec: FunctionSpec) -> bool:
    """Whether the effect goes beyond the asker's own data in this chat. Without a declaration, this is assumed of
    functions with a `once` effect and of restricted ones with any effect."""
    if Touch.REACHES_OUT in spec.execution.touches:
        return True
    if spec.execution.effect is Effect.READ or Touch.STAYS_HERE in spec.execution.touches:
        return False
    return spec.execution.effect is Effect.ONCE or Role.MEMBER not in spec.access.roles


_NOTHING: frozenset[Touch] = frozenset()
_OUTSIDE = frozenset({Touch.READS_OUTSIDE})


def taint_of(context: MessageContext, notes: Sequence[ChatNote]) -> frozenset[Touch]:
    """Labels of data in the model's input apart from the asker's text: quoted messages of others than the bot, and
    notes of scripts with outside text or words of other members."""
    quoted, asker = context.reply_to, context.sender.ref.key
    if quoted is not None and quoted.text and not quoted.from_bot:
        return _OUTSIDE
    for note in notes:
        if note.from_outside or note.of_member not in ("", asker):
            return _OUTSIDE
    return _NOTHING
