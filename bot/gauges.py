"""What /metrics shows of the daemon's parts."""

from __future__ import annotations

from collections.abc import Sequence

from bot.backups import Backups
from bot.current_model import CurrentModel
from bot.dead_letters import DeadLetters
from bot.delivery import Delivery
from bot.engine.embedded import EmbeddedEngine
from bot.function_sources import FunctionSources
from bot.metrics import Metrics
from bot.notices import Notices
from bot.platforms.base import ChatPlatform, Linked
from bot.reload import Reload
from bot.timers import Timers
from function_calls.shadow import Shadow
from services.store.dead_letters import DeadKind
from services.store.port import Store


def show_turns(metrics: Metrics, engine: EmbeddedEngine, delivery: Delivery, notices: Notices) -> None:
    """How much there is to do, and what came to nothing."""
    metrics.gauge("rollcall_turns_waiting", "Turns that wait", lambda: engine.waiting)
    metrics.gauge("rollcall_turns_running", "Turns that run", lambda: engine.running)
    metrics.gauge(
        "rollcall_reply_lines_dropped",
        "Lines that were not sent because too many waited",
        lambda: delivery.dropped_lines,
    )
    metrics.gauge("rollcall_messages_given_up", "Messages that no network took", lambda: delivery.failed)
    metrics.counter("rollcall_messages_dropped", "Messages without a turn", "reason", lambda: notices.dropped)


def show_dead_letters(metrics: Metrics, dead: DeadLetters) -> None:
    """What was given up and may be retried."""
    metrics.gauges(
        "rollcall_dead_letters",
        "What was given up and may be retried",
        "kind",
        lambda: {kind.value: dead.counts[kind.value] for kind in DeadKind},
    )


def show_store(metrics: Metrics, store: Store) -> None:
    """Whether the database can be written, and when it was last found sound."""
    metrics.gauge("rollcall_store_usable", "1: the database can be written", lambda: store.health().problem is None)
    metrics.gauge(
        "rollcall_store_checked_timestamp_seconds",
        "When the last full check found no damage in the database; 0: not yet",
        lambda: (store.health().checked_ms or 0) / 1000,
    )


def show_links(metrics: Metrics, platforms: Sequence[ChatPlatform]) -> None:
    """The connections of networks that keep one."""
    linked = {f"{one.name}:{one.account}": one for one in platforms if isinstance(one, Linked)}
    if not linked:
        return
    metrics.gauges(
        "rollcall_platform_connected",
        "Whether there is a connection to a network",
        "platform",
        lambda: {name: float(one.link().is_up) for name, one in linked.items()},
    )
    metrics.counter(
        "rollcall_platform_losses",
        "Connections to a network that were lost or could not be made",
        "platform",
        lambda: {name: one.link().losses for name, one in linked.items()},
    )


def show_faults(metrics: Metrics, functions: FunctionSources, reload: Reload) -> None:
    """What an edit broke."""
    metrics.gauge("rollcall_functions_unusable", "Faults in files of functions", lambda: len(functions.faults))
    metrics.gauge("rollcall_settings_faulty", "Faults in the settings' file", lambda: len(reload.faults))


def show_backups(metrics: Metrics, backups: Backups) -> None:
    """The age of the newest backup, where the daemon makes them."""
    if backups.are_scheduled:
        metrics.gauge("rollcall_backup_age_seconds", "Time since the newest backup", backups.age_seconds)


def show_timers(metrics: Metrics, timers: Timers) -> None:
    """What is due, and how what was due ended."""
    metrics.gauge("rollcall_timers_overdue", "Timers that are due and wait", lambda: timers.waiting)
    metrics.gauge("rollcall_timers_held", "1: timers are held back, the clock is in doubt", lambda: timers.is_holding)
    metrics.counter("rollcall_timers_fired", "Moments that came", "outcome", lambda: timers.outcomes)


def show_shadow(metrics: Metrics, shadow: Shadow) -> None:
    """What the second model was not asked."""
    dropped = shadow.dropped
    metrics.counter("rollcall_shadow_dropped", "Questions the shadow was not asked", "reason", lambda: dropped)


def show_models(metrics: Metrics, model: CurrentModel) -> None:
    """Which models are well."""
    metrics.gauges(
        "rollcall_model_left_alone_seconds",
        "How long a model is left alone after failures",
        "model",
        lambda: {state.name: state.seconds_left for state in model.states()},
    )
    metrics.counter(
        "rollcall_model_failures",
        "Questions that a model could not be asked",
        "model",
        lambda: {state.name: state.failures for state in model.states()},
    )
