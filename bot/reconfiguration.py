"""The parts of the daemon that apply new settings at run time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from bot.live.settings import Use, secrets_of
from bot.registration.basic_scripts import script_services_live
from bot.registration.filters import files_of
from bot.registration.functions import SECTIONS, made_of
from bot.registration.unknown_names import names_in
from bot.wiring import Wiring
from config.settings import Settings
from services.sandbox.sandbox import Sandbox
from services.sandbox.shell import Shell
from services.sandbox.workspace import Workspaces
from services.web.http import WebClient


def register_live_settings(parts: Wiring) -> None:
    """Register the parts, which apply new settings in this order."""
    live, functions = parts.live, parts.functions
    _register_chats(parts)
    live.register(
        "approvals",
        "questions",
        prepare=lambda fresh: _in_order(
            partial(parts.approvals.use, fresh.approvals),
            partial(parts.questions.use, fresh.questions.expires_seconds, fresh.approvals.expires_seconds),
        ),
    )
    live.register(
        "budgets",
        prepare=lambda fresh: _in_order(
            partial(parts.request_budgets.use, fresh.budgets), partial(parts.function_budgets.use, fresh.budgets)
        ),
    )
    _register_processes(parts)
    script_services_live(live, parts.services)
    live.register(
        "limits",
        prepare=lambda fresh: _in_order(
            partial(parts.engine.use, fresh.limits),
            partial(parts.intake.use, fresh.limits),
            partial(parts.schedules.use, fresh.limits.schedules_per_chat),
        ),
    )
    _register_turns(parts)
    if parts.overrides.model is None:
        live.register(
            "models",
            "failover",
            prepare=lambda fresh: _in_order(
                partial(parts.model.use, parts.model_of(fresh)),
                partial(parts.outages.use, fresh.failover.say_again_seconds),
            ),
        )
    live.register(
        "media",
        prepare=lambda fresh: _in_order(partial(parts.attached.use, fresh), partial(parts.voice.use, fresh)),
        depends_on=lambda fresh: (fresh.media, fresh.seeing_models, fresh.bots),
    )
    web = cast(WebClient, parts.services[WebClient])
    live.register("web_access", prepare=lambda fresh: partial(web.allow_private, fresh.web_access.private_hosts))
    live.register("knowledge", prepare=lambda fresh: partial(parts.knowledge.use, fresh.knowledge))
    # Only changed sources restart.
    live.register(
        *SECTIONS, prepare=lambda fresh: partial(functions.use, parts.configured_sources(fresh)), depends_on=made_of
    )
    live.register("operators", prepare=lambda fresh: partial(parts.operator_notices.use, fresh.operators))
    live.register(prepare=lambda fresh: partial(parts.redact.learn, secrets_of(fresh)), depends_on=secrets_of)
    # Last, after the sources have the new settings.
    live.register(prepare=lambda fresh: parts.unknown_names.look, depends_on=names_in)


def _in_order(*uses: Callable[[], None]) -> Use:
    def use() -> None:
        for one in uses:
            one()

    return use


def _register_chats(parts: Wiring) -> None:
    """Chats, bots, roles and permissions."""
    sections = ("language", "timezone", "rollout", "bots", "functions", "chats", "members", "schedules")

    def depends_on(settings: Settings) -> object:
        # The entries of mcp.serve determine the bots of their chats.
        router = settings.router
        others = (router.enabled, router.thinking, router.shadow.model, settings.models, settings.mcp.serve.clients)
        return [getattr(settings, name) for name in sections], others

    use = parts.chats.use
    parts.live.register(*sections, "router.enabled", prepare=lambda fresh: partial(use, fresh), depends_on=depends_on)


def _register_processes(parts: Wiring) -> None:
    sandbox, shell = cast(Sandbox, parts.services[Sandbox]), cast(Shell, parts.services[Shell])
    workspaces = cast(Workspaces, parts.services[Workspaces])
    parts.live.register(
        "sandbox",
        "shell",
        "files",
        prepare=lambda fresh: _in_order(
            partial(sandbox.use, fresh.sandbox), partial(shell.use, fresh.shell), partial(workspaces.use, fresh.files)
        ),
    )


def _register_turns(parts: Wiring) -> None:
    """The router, filters, summaries and notes. Filters around runs apply to running turns too; everything else to new
    turns."""

    def prepare(fresh: Settings) -> Use:
        filters = parts.filters_of(fresh)
        router = parts.router_of(fresh, filters)

        def use() -> None:
            parts.invoker.use(filters.call, filters.named)
            parts.functions.recheck()
            parts.turns.use(router, fresh.router, fresh.limits.attempts_per_turn)
            parts.summaries.use(fresh.router, fresh.memory)
            parts.memory.settings = fresh.memory

        return use

    parts.live.register(
        "filters",
        "router",
        "memory",
        "limits.attempts_per_turn",
        prepare=prepare,
        files=lambda settings: files_of(settings.filters),
    )
    # The shadow model runs after turns have ended, with limits that are fixed at the start.
    parts.live.mark_restart_only("router.shadow")
