"""What handlers lean on: services and ports, each under the type by which a function names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

from bot.at_hand import StoredAtHand
from bot.beginnings import Beginnings
from bot.chat_notes import StoredChatNotes
from bot.explanations import StoredExplanations
from bot.own_settings import StoredOwnSettings
from bot.parts.consent import Consent
from bot.parts.ground import Ground
from bot.parts.models import Models
from bot.parts.planning import Planning
from bot.ports import EngineActions, PlatformMembers
from bot.script_services import script_services_of
from bot.services import services_of
from bot.words import WordsOfModels
from function_calls.ports import (
    AtHand,
    ChatActions,
    ChatBeginnings,
    ChatNotes,
    ChatWriter,
    Explanations,
    Members,
    OwnSettings,
    Words,
)
from function_calls.rehearsal import Rehearsal
from services.basic_tools import BasicTools
from services.grants import Grants
from services.http import WebClient
from services.news import News
from services.redaction import Redactor
from services.sandbox import Sandbox
from services.schedules import Schedules
from services.search import WebSearch


@dataclass(frozen=True, slots=True)
class Leaning:
    """All of it, and by name what other parts of the daemon ask as well."""

    services: Mapping[type, object]
    actions: EngineActions
    """Bound once there is an engine."""
    members: PlatformMembers
    """Bound once there is a sender."""
    notes: StoredChatNotes
    beginnings: Beginnings
    scripts: BasicTools
    sandbox: Sandbox

    @property
    def held_open(self) -> Sequence[WebClient | News | WebSearch]:
        """What is closed at the end."""
        return [service for service in self.services.values() if isinstance(service, WebClient | News | WebSearch)]


def leaning_of(ground: Ground, consent: Consent, models: Models, planning: Planning) -> Leaning:
    """Where several have one, the same one."""
    settings, given, store, ids, clock = ground.settings, ground.given, ground.store, ground.ids, ground.clock
    chats, deadlines = ground.chats, ground.deadlines
    actions, members = EngineActions(store, consent.questions), PlatformMembers(store, chats, deadlines, clock)
    notes, beginnings = StoredChatNotes(chats, store, clock), Beginnings(store, clock, ground.registry.of)
    scripts = BasicTools(store, clock)
    ports: dict[type, object] = {
        Explanations: StoredExplanations(store),
        Members: members,
        ChatActions: actions,
        OwnSettings: StoredOwnSettings(chats, store, ids, clock),
        AtHand: StoredAtHand(chats, store, ids, clock),
        ChatNotes: notes,
        ChatBeginnings: beginnings,
        ChatWriter: models.writer,
        Words: WordsOfModels(models.writer, deadlines, clock),
    }
    shared: dict[type, object] = {
        Grants: consent.grants,
        Schedules: planning.schedules,
        Rehearsal: planning.rehearsal,
    }
    # What scripts lean on, beside the services that functions have.
    inner: dict[type, object] = {BasicTools: scripts, Random: given.rng, Redactor: ground.redact}
    own = services_of(settings, store, clock, ids, given.rng, given.web, planning.timetable)
    services = {**own, **shared, **inner, **ports}
    services |= script_services_of(settings, services, store, ids)
    return Leaning(
        services=services,
        actions=actions,
        members=members,
        notes=notes,
        beginnings=beginnings,
        scripts=scripts,
        sandbox=cast(Sandbox, own[Sandbox]),
    )
