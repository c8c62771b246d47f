"""Approvals: a member's consent to one exact run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from config.chat_settings import matches
from config.sections.bots import ApprovalRule, ApprovalsSettings
from config.texts import Phrases
from function_calls.call import CallRequest
from function_calls.checks.permissions import ALLOWED, PolicyDecision
from function_calls.context import MessageContext
from function_calls.failures import LASTS, refused_by
from function_calls.profile import ChatProfile
from function_calls.questions.approval_questions import approval_question, shown_arguments, shown_name
from function_calls.schema.commands import role_name
from function_calls.spec import ApprovalTerms, Approved, FunctionResult, FunctionSpec
from function_calls.turn import OpenQuestion, Turn
from services.chats.grants import CODE_CHARS, Grants
from services.refs import ChatRef, JsonObject, Role
from services.store.port import Write

_CODE_CHARS = 5
_REMEMBERED = 10_000


class Rule(NamedTuple):
    """Required role of the approving member."""

    role: Role | None
    """The lowest role. None: the asker only."""
    by_other: bool = False

    def with_all_of(self, other: Rule) -> Rule:
        """The stricter combination of this rule and `other`."""
        one, two = self.role, other.role
        role = one if two is None or (one is not None and one.rank >= two.rank) else two
        return Rule(role, self.by_other or other.by_other)


def _nothing_waits(chat: ChatRef) -> Sequence[OpenQuestion]:
    return ()


class Approvals:
    """Approval policy for the rules of the settings and for other checks that need consent."""

    def __init__(
        self,
        settings: ApprovalsSettings,
        grants: Grants,
        waiting: Callable[[ChatRef], Sequence[OpenQuestion]] = _nothing_waits,
    ) -> None:
        """`waiting` returns the open approval questions of a chat."""
        self._grants = grants
        self._waiting = waiting
        self._known: dict[tuple[ChatRef, FunctionSpec], Rule | None] = {}
        self.use(settings)

    def use(self, settings: ApprovalsSettings) -> None:
        """Apply `settings` to all later runs."""
        self._settings = settings
        self.unvouched = Rule(None if settings.unvouched == "asker" else Role(settings.unvouched))
        """Rule for calls of a model that the asker's words do not stand for."""
        self._known.clear()

    def judge(self, request: CallRequest, spec: FunctionSpec, arguments: Any) -> PolicyDecision:
        """ALLOWED if no rule applies, if this exact run was approved, or if the chat has a reusable approval."""
        rule = self.rule(request.context.chat, spec, request.turn.input.profile())
        return ALLOWED if rule is None else self.decide(request, spec, arguments, rule)

    def rule(self, chat: ChatRef, spec: FunctionSpec, profile: ChatProfile) -> Rule | None:
        """Rule for `spec` in `chat`: from a matching rule of the settings, else from the function's settings, else from
        its own declaration. None: no approval is required."""
        ruled = self._ruled(chat, spec) if self._settings.required else None
        if ruled is not None:
            return ruled
        setting = profile.functions.get(spec.name)
        approval = spec.access.approval if setting is None or setting.approval is None else setting.approval
        if not approval or approval == "none":
            return None
        return Rule(None if approval == "asker" else Role(approval))

    def _ruled(self, chat: ChatRef, spec: FunctionSpec) -> Rule | None:
        if (chat, spec) not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[chat, spec] = next(
                (Rule(Role(one.by), one.by_other) for one in self._settings.required if _fits(one, chat, spec)), None
            )
        return self._known[chat, spec]

    def decide(
        self, request: CallRequest, spec: FunctionSpec, arguments: Any, rule: Rule, *, for_always: bool = True
    ) -> PolicyDecision:
        """ALLOWED if this exact run was approved; otherwise the approval question, or a refusal to ask it.
        `for_always`: the approval may be reusable."""
        context, turn = request.context, request.turn
        values = spec.arguments.dump(arguments)
        terms = _terms(context, spec, values, rule, turn, for_always=for_always)
        is_granted = terms.grant and self._grants.holds(context.chat, terms.grant)
        if context.private:
            # The list of a chat's reusable approvals is visible to all its members.
            terms = replace(terms, grant="")
        approved, texts = turn.memory.approved, turn.input.profile().texts
        if approved is not None and approved.covers(terms.digest):
            turn.memory.approved = approved.without(terms.digest)
            if approved.always:
                turn.output.granted = terms.grant[:CODE_CHARS]
            return PolicyDecision(writes=tuple(self._allowed(context, spec, values, terms, approved, texts)))
        if is_granted:
            return ALLOWED
        if terms.digest in turn.memory.rejected:
            return PolicyDecision(refused_by("approvals", texts.say("approvals.rejected_too", function=spec.name)))
        refused = self._no_room(spec, terms, texts)
        return PolicyDecision(refused or FunctionResult(question=approval_question(spec, values, terms, texts)))

    def _no_room(self, spec: FunctionSpec, terms: ApprovalTerms, texts: Phrases) -> FunctionResult | None:
        """Refusal if a further question is not possible; None if it is."""
        asker = terms.asker
        if (asker.private or not asker.is_group) and not terms.may_allow(asker.sender.ref, asker.sender.role):
            # Only the asker sees the question, so no other member can answer it.
            text = texts.say("approvals.not_in_private", function=spec.name, role=role_name(terms.role, texts))
            refused = refused_by("approvals.required", text)
            return replace(refused, metadata={**refused.metadata, LASTS: True})
        waiting = [one.terms for one in self._waiting(asker.chat) if one.terms is not None]
        # The group is not notified of private requests.
        same = [one for one in waiting if one.digest == terms.digest and one.asker.private == asker.private]
        if same:
            return refused_by("approvals", texts.say("approvals.waits_already", function=spec.name, code=same[0].code))
        own = [one for one in waiting if one.asker.sender.ref == asker.sender.ref]
        if len(own) >= self._settings.open_per_member:
            text = texts.say("approvals.too_many_own", asker=shown_name(asker.sender), count=len(own))
            return refused_by("approvals.open_per_member", text)
        if len(waiting) >= self._settings.open_per_chat:
            return refused_by("approvals.open_per_chat", texts.say("approvals.too_many", count=len(waiting)))
        return None

    def _allowed(
        self,
        context: MessageContext,
        spec: FunctionSpec,
        values: JsonObject,
        terms: ApprovalTerms,
        approved: Approved,
        texts: Phrases,
    ) -> Sequence[Write]:
        """Records of an approval: the approving member, and the reusable approval if it was given and is possible."""
        if approved.is_noted:
            return []
        chat, by = context.chat, approved.by
        note = self._grants.allowed(chat, terms.digest, function=spec.name, by=by.ref)
        if not approved.always or not terms.grant:
            return [note]
        shown = shown_arguments(spec, values, texts)
        grant_write = self._grants.give(
            chat, terms.grant, function=spec.name, arguments=shown, by=by.ref, by_name=shown_name(by)
        )
        return [note, *grant_write]


def _fits(rule: ApprovalRule, chat: ChatRef, spec: FunctionSpec) -> bool:
    named = (
        spec.name in rule.functions
        or not spec.origin.tags.isdisjoint(rule.tags)
        or (rule.sensitive and spec.execution.sensitive)
    )
    return bool(named) and any(matches(pattern, chat.key) for pattern in rule.chats)


def _terms(
    context: MessageContext, spec: FunctionSpec, values: JsonObject, rule: Rule, turn: Turn, *, for_always: bool
) -> ApprovalTerms:
    touches = sorted(spec.execution.touches)
    grant = _digest("grant", context.chat, spec.name, spec.fingerprint, touches, values, rule.role, rule.by_other)
    digest = _digest("once", grant, context.sender.ref)
    return ApprovalTerms(
        digest=digest,
        # Not reusable if another member must approve each run, or if the asker's words do not stand for it.
        grant=grant if for_always and not rule.by_other else "",
        code=_digest("code", turn.input.id, digest)[:_CODE_CHARS],
        role=rule.role,
        by_other=rule.by_other,
        asker=context,
    )


def _digest(*facts: object) -> str:
    return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()
