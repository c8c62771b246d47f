"""What of the settings makes functions that start processes, and what of it does not work without a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bot.plugins import built_in_plugins, plugins_of
from config.settings import Settings


class ProcessUse(NamedTuple):
    """Functions that start processes."""

    name: str
    """The setting that has them."""
    needs_sandbox: bool
    """They do nothing where processes cannot be isolated."""


def processes_of(settings: Settings) -> Sequence[ProcessUse]:
    """All of them. Of command tools each says in its own file whether it needs the sandbox."""
    is_required = settings.sandbox.isolation == "required"
    built_in = built_in_plugins()
    found: list[ProcessUse] = []
    if settings.sources.commands:
        found.append(ProcessUse("sources.commands", is_required))
    if any(plugin.module == built_in["shell"] for plugin in plugins_of(settings, built_in)):
        found.append(ProcessUse("the plugin shell", needs_sandbox=True))
    for server in settings.mcp.servers:
        if server.command and (is_required or server.sandbox != "off"):
            found.append(ProcessUse(f"mcp.servers {server.name}", is_required or server.sandbox == "required"))
    return found
