"""What keywords of scripts lean on, beside the services that functions have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from bot.live_settings import LiveSettings, Use
from config.settings import Settings
from function_calls.ports import ChatWriter
from function_calls.scripts.model import ModelOfScripts
from function_calls.scripts.ports import ScriptModel, ScriptWeb
from function_calls.scripts.web import WebOfScripts
from services.clock import Clock
from services.http import WebClient
from services.mail import Mailer


def script_services_of(settings: Settings, services: Mapping[type, object]) -> dict[type, object]:
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
    }


def script_services_live(live: LiveSettings, services: Mapping[type, object]) -> None:
    """Where scripts may reach, and how their mail goes."""
    web, mailer = cast(WebOfScripts, services[WebOfScripts]), cast(Mailer, services[Mailer])

    def prepare_web(fresh: Settings) -> Use:
        return partial(web.use, fresh.basic.web)

    def prepare_mail(fresh: Settings) -> Use:
        return partial(mailer.use, fresh.mail)

    # `basic` is taken by the source of scripts; this is a part of it.
    live.take(prepare=prepare_web, hears_of=lambda settings: settings.basic.web)
    live.take("mail", prepare=prepare_mail)
