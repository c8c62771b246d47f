"""Registration of the parts of the daemon that apply new settings at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from bot.chats.chats import Chats
from bot.chats.open_questions import OpenQuestions
from bot.chats.summaries import Summaries
from bot.engine.embedded import EmbeddedEngine
from bot.intake.intake import Intake
from bot.live.settings import LiveSettings, Use
from bot.registration.filters import files_of
from bot.registration.function_sources import ConfiguredSource, FunctionSources
from bot.registration.functions import SECTIONS, made_of
from bot.registration.models import CurrentModel
from bot.turns.turns import Turns
from config.settings import Settings
from function_calls.checks.approvals import Approvals
from function_calls.checks.budgets import FunctionBudgets, RequestBudgets
from function_calls.filters import Filters
from function_calls.invocation import Invoker
from function_calls.rounds.model_requests import Outages
from function_calls.router import FunctionCallRouter
from services.chats.memory import Memory
from services.llm.model import ChatModel
from services.sandbox.sandbox import Sandbox
from services.sandbox.shell import Shell
from services.sandbox.workspace import Workspaces
from services.timers.schedules import Schedules

BuildRouter = Callable[[Settings, Filters], FunctionCallRouter]
"""Builds the router from settings and filters."""


def _in_order(*uses: Use) -> Use:
    def use() -> None:
        for one in uses:
            one()

    return use


def chats_live(live: LiveSettings, chats: Chats) -> None:
    """Register the live settings of chats, bots, roles and permissions."""
    sections = ("language", "timezone", "rollout", "bots", "functions", "chats", "members", "schedules")

    def depends_on(settings: Settings) -> object:
        # The entries of mcp.serve determine the bots of their chats.
        router = settings.router
        others = (router.enabled, router.thinking, router.shadow.model, settings.models, settings.mcp.serve.clients)
        return [getattr(settings, name) for name in sections], others

    live.register(*sections, "router.enabled", prepare=lambda fresh: partial(chats.use, fresh), depends_on=depends_on)


def consent_live(live: LiveSettings, approvals: Approvals, questions: OpenQuestions) -> None:
    """Register the live settings of required approvals, and of the expiry of questions."""

    def prepare(fresh: Settings) -> Use:
        expiry = fresh.questions.expires_seconds, fresh.approvals.expires_seconds
        return _in_order(partial(approvals.use, fresh.approvals), partial(questions.use, *expiry))

    live.register("approvals", "questions", prepare=prepare)


def budgets_live(live: LiveSettings, requests: RequestBudgets, units: FunctionBudgets) -> None:
    """Register the live settings of daily budgets."""

    def prepare(fresh: Settings) -> Use:
        return _in_order(partial(requests.use, fresh.budgets), partial(units.use, fresh.budgets))

    live.register("budgets", prepare=prepare)


def processes_live(live: LiveSettings, services: Mapping[type, object]) -> None:
    """Register the live settings of the sandbox, the shell and the workspaces in `services`."""
    sandbox, shell = cast(Sandbox, services[Sandbox]), cast(Shell, services[Shell])
    workspaces = cast(Workspaces, services[Workspaces])

    def prepare(fresh: Settings) -> Use:
        return _in_order(
            partial(sandbox.use, fresh.sandbox), partial(shell.use, fresh.shell), partial(workspaces.use, fresh.files)
        )

    live.register("sandbox", "shell", "files", prepare=prepare)


def limits_live(live: LiveSettings, engine: EmbeddedEngine, intake: Intake, schedules: Schedules) -> None:
    """Register the live settings of queue and schedule limits."""

    def prepare(fresh: Settings) -> Use:
        limits = fresh.limits
        return _in_order(
            partial(engine.use, limits),
            partial(intake.use, limits),
            partial(schedules.use, limits.schedules_per_chat),
        )

    live.register("limits", prepare=prepare)


def turns_live(
    live: LiveSettings,
    filters_of: Callable[[Settings], Filters],
    router_of: BuildRouter,
    invoker: Invoker,
    functions: FunctionSources,
    turns: Turns,
    summaries: Summaries,
    memory: Memory,
) -> None:
    """Register the live settings of the router, filters, summaries and notes. Filters around runs apply to running
    turns too; everything else to new turns."""

    def prepare(fresh: Settings) -> Use:
        filters = filters_of(fresh)
        router = router_of(fresh, filters)

        def use() -> None:
            invoker.use(filters.call, filters.named)
            functions.recheck()
            turns.use(router, fresh.router, fresh.limits.attempts_per_turn)
            summaries.use(fresh.router, fresh.memory)
            memory.settings = fresh.memory

        return use

    live.register(
        "filters",
        "router",
        "memory",
        "limits.attempts_per_turn",
        prepare=prepare,
        files=lambda settings: files_of(settings.filters),
    )
    # The shadow model runs after turns have ended, with limits that are fixed at the start.
    live.mark_restart_only("router.shadow")


def models_live(
    live: LiveSettings, current: CurrentModel, model_of: Callable[[Settings], ChatModel], outages: Outages
) -> None:
    """Register the live settings of chat models and failover; `model_of` builds the new model."""

    def prepare(fresh: Settings) -> Use:
        return _in_order(partial(current.use, model_of(fresh)), partial(outages.use, fresh.failover.say_again_seconds))

    live.register("models", "failover", prepare=prepare)


def sources_live(
    live: LiveSettings, functions: FunctionSources, configured_sources: Callable[[Settings], list[ConfiguredSource]]
) -> None:
    """Register the live settings of function sources; only changed sources restart."""
    live.register(
        *SECTIONS, prepare=lambda fresh: partial(functions.use, configured_sources(fresh)), depends_on=made_of
    )
