"""What keywords of scripts lean on, beside the services that functions have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import cast

from bot.live_settings import LiveSettings, Use
from config.basic import BasicSource
from config.settings import Settings
from function_calls.ports import ChatWriter
from function_calls.script_library.places import bot_of
from function_calls.scripts.model import ModelOfScripts
from function_calls.scripts.ports import ScriptFiles, ScriptModel, ScriptWeb
from function_calls.scripts.web import WebOfScripts
from services.clock import Clock
from services.http import WebClient
from services.mail import Mailer
from services.script_files import LocalScriptFiles, ScriptFolder
from services.script_memory import ScriptMemory
from services.script_tables import ScriptTables
from services.store.ids import Ids
from services.store.port import Store


def script_services_of(
    settings: Settings, services: Mapping[type, object], store: Store, ids: Ids
) -> dict[type, object]:
    """Each under its type, made of `services`."""
    clock = cast(Clock, services[Clock])
    web = WebOfScripts(cast(WebClient, services[WebClient]), settings.basic.web, clock)
    model = ModelOfScripts(cast(ChatWriter, services[ChatWriter]), clock)
    return {
        WebOfScripts: web,
        ScriptWeb: web,
        ModelOfScripts: model,
        ScriptModel: model,
        Mailer: Mailer(settings.mail, clock),
        ScriptMemory: ScriptMemory(store, clock),
        ScriptTables: ScriptTables(store, ids, clock),
        ScriptFiles: LocalScriptFiles(folders_of(settings.sources.basic)),
    }


def script_services_live(live: LiveSettings, services: Mapping[type, object]) -> None:
    """Where scripts may reach, which files lie beside them, and how their mail goes."""
    files = cast(LocalScriptFiles, services[ScriptFiles])
    web, mailer = cast(WebOfScripts, services[WebOfScripts]), cast(Mailer, services[Mailer])

    def prepare_web(fresh: Settings) -> Use:
        return partial(web.use, fresh.basic.web)

    def prepare_mail(fresh: Settings) -> Use:
        return partial(mailer.use, fresh.mail)

    def prepare_files(fresh: Settings) -> Use:
        return partial(files.use, folders_of(fresh.sources.basic))

    # `basic` and `sources` are taken by the source of scripts; these are parts of them.
    live.take(prepare=prepare_web, hears_of=lambda settings: settings.basic.web)
    live.take("mail", prepare=prepare_mail)
    live.take(prepare=prepare_files, hears_of=lambda settings: settings.sources.basic)


def folders_of(sources: Iterable[BasicSource]) -> list[ScriptFolder]:
    """Where the files lie that scripts may read: beside the scripts."""
    return [
        ScriptFolder(source.path if source.path.is_dir() else source.path.parent, bot_of(source)) for source in sources
    ]
