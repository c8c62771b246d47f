"""Which values of the settings are secret."""

from __future__ import annotations

from config.settings import Settings
from services.redaction import names_a_secret


def secrets_of(settings: Settings) -> list[str]:
    """Every secret value of the settings, to be kept out of logs."""
    keys = [model.api_key.get_secret_value() for model in settings.models]
    keys.append(settings.search.api_key.get_secret_value())
    irc = [secret for network in settings.platforms.irc for secret in network.secrets]
    programs = [client.token.get_secret_value() for client in settings.mcp.serve.clients]
    servers = [secret for server in settings.mcp.servers for secret in server.secrets]
    mail = settings.mail.secrets
    scripts = [
        str(value)
        for one in settings.bots.values()
        for name, value in one.parameters.items()
        if isinstance(value, str | int) and names_a_secret(name)
    ]
    keys += settings.store.secrets
    web = [settings.platforms.http.token.get_secret_value(), settings.platforms.web.metrics_token.get_secret_value()]
    return [*keys, *web, *irc, *programs, *servers, *mail, *scripts]
