"""Load Settings from a YAML file and the environment. All errors are reported at once, with their positions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError

from config.chat_settings import is_allowed, matches
from config.diagnostics import Code, Diagnostic, Diagnostics, Position, Severity, did_you_mean
from config.sections.networks import NetworkSettings, NetworkUnavailable, network_sections
from config.settings import DEFAULT_BOT, PlatformsSettings, Settings, settings_with
from config.terms import is_loopback
from config.texts import FALLBACK, Texts
from config.wording import diagnostic_of, dotted
from config.yaml_document import Location, Plain, YamlDocument, fill_references, read_yaml_bytes, read_yaml_file

_UNIQUE: tuple[tuple[Location, str], ...] = (
    (("models",), "name"),
    (("news", "feeds"), "name"),
    (("platforms", "web", "rooms"), "id"),
    (("mcp", "servers"), "name"),
    (("mcp", "serve", "clients"), "name"),
)

_ENCRYPTED = {"require", "verify-ca", "verify-full", "true"}
"""Values of a PostgreSQL URL's `sslmode` that require TLS."""


def check_consistency(document: YamlDocument) -> None:
    """Add errors to `document` for settings that contradict each other or name unknown bots, models or chats. Needs no
    valid document."""
    _ambiguous_keys(document)
    _duplicate_names(document)
    _unknown_bots(document)
    _unknown_shadow(document)
    _unknown_models(document)
    _prices_of_unknown_models(document)
    _models_without_their_function(document)
    _unserved_operators_chat(document)


def warn_of_surprises(settings: Settings, document: YamlDocument) -> None:
    """Add warnings to `document` for settings that are valid but perhaps not intended."""
    for index, pattern in enumerate(settings.chats.allow):
        if not pattern.strip("*:"):
            words = f"{pattern!r} serves every chat that the bot is added to"
            _warn(document, ("chats", "allow", index), Code.SERVES_EVERY_CHAT, words)
    _page_without_other_machines(settings, document)
    _ineffective_limits(settings, document)
    _suspicious_irc(settings, document)
    _secrets_in_clear(settings, document)
    _schedules_for_unserved_chats(settings, document)
    _programs_for_unserved_chats(settings, document)
    _duplicate_plugins(settings, document)
    known = Texts().languages
    for location, language in _languages(settings):
        if language.lower().replace("_", "-").split("-")[0] not in known:
            message = f"{dotted(location)}: there are no texts in {language!r}, so {FALLBACK!r} is used"
            document.add_diagnostic(document.value_at(location), Code.NO_TEXTS, message, "warning")


def _report(document: YamlDocument, location: Location, code: Code, words: str, severity: Severity = "error") -> None:
    """Add a diagnostic at the value at `location`; its message is the location and `words`."""
    document.add_diagnostic(document.value_at(location), code, f"{dotted(location)} {words}", severity)


def _warn(document: YamlDocument, location: Location, code: Code, words: str) -> None:
    _report(document, location, code, words, "warning")


def _page_without_other_machines(settings: Settings, document: YamlDocument) -> None:
    """A server that listens on all addresses but accepts only loopback host names."""
    web = settings.platforms.web
    if web.host in ("0.0.0.0", "::") and not web.public_url:  # noqa: S104 - compared, not bound
        words = (
            f"{web.host} listens on all addresses, but other machines are refused until platforms.web.public_url names "
            f"what they open, such as http://192.168.1.5:{web.port or 8080}"
        )
        _warn(document, ("platforms", "web", "host"), Code.HAS_NO_EFFECT, words)


def _ineffective_limits(settings: Settings, document: YamlDocument) -> None:
    """Budgets without any costs, and waits that another setting limits further."""
    budgets, failover = settings.budgets, settings.failover
    for whose in ("member", "chat"):
        allowance = getattr(budgets, whose)
        for what, key in (("money", "prices"), ("units", "functions")):
            if getattr(allowance, what) is not None and not getattr(budgets, key):
                words = f"has no effect, because budgets.{key} is empty"
                _warn(document, ("budgets", whose, what), Code.HAS_NO_EFFECT, words)
    for shorter, longer in (
        ("first_answer_seconds", "total_seconds"),
        ("cooldown_seconds", "longest_cooldown_seconds"),
    ):
        if getattr(failover, shorter) > getattr(failover, longer):
            words = f"is longer than failover.{longer}, which applies first"
            _warn(document, ("failover", shorter), Code.HAS_NO_EFFECT, words)


def _secrets_in_clear(settings: Settings, document: YamlDocument) -> None:
    """Addresses of other machines without TLS, to which the bot sends keys, passwords or messages."""
    places: list[tuple[Location, str]] = [
        *((("models", index, "base_url"), model.base_url) for index, model in enumerate(settings.models)),
        *((("mcp", "servers", index, "url"), server.url) for index, server in enumerate(settings.mcp.servers)),
        *((("platforms", "web", "public_url"), url) for url in settings.platforms.web.public_url),
    ]
    for location, url in places:
        address = urlsplit(url)
        if address.scheme == "http" and not is_loopback(address.hostname or ""):
            words = "is http, so others on the network can read keys and messages; use https"
            _warn(document, location, Code.SECRET_IN_CLEAR, words)
    store = urlsplit(settings.store.url.get_secret_value())
    query = parse_qs(store.query)
    modes = {*query.get("sslmode", ()), *query.get("ssl", ())}
    host = store.hostname or query.get("host", [""])[0]
    is_remote = bool(host) and not host.startswith("/") and not is_loopback(host)
    if store.scheme.startswith("postgres") and is_remote and modes.isdisjoint(_ENCRYPTED):
        words = "does not require TLS for the password and data; add ?sslmode=verify-full"
        _warn(document, ("store", "url"), Code.SECRET_IN_CLEAR, words)


def _suspicious_irc(settings: Settings, document: YamlDocument) -> None:
    """Secrets sent in clear text, and channels that are joined but not served."""
    for index, network in enumerate(settings.platforms.irc):
        at: Location = ("platforms", "irc", index)
        if network.is_in_clear:
            words = f"is off, so others can read the passwords and keys for {network.host}"
            _warn(document, (*at, "tls_verify" if network.tls else "tls"), Code.SECRET_IN_CLEAR, words)
        for place, channel in enumerate(network.channels):
            key = f"irc:{network.account}:{channel.name.lower()}"
            if is_allowed(settings, key) is None:
                words = f"is joined but not served, because chats.allow does not name {key!r}"
                _warn(document, (*at, "channels", place, "name"), Code.HAS_NO_EFFECT, words)


def _schedules_for_unserved_chats(settings: Settings, document: YamlDocument) -> None:
    """Schedules for a chat on a network that is not configured."""
    platforms = settings.platforms
    known = {f"{name}:{network.account}" for name, network in platforms.networks}
    known |= {"console:main"} if platforms.console.enabled != "off" else set()
    known |= {"web:main"} if platforms.web.page else set()
    known |= {"http:main"} if platforms.http.enabled else set()
    for name, entry in settings.schedules.items():
        network = ":".join(entry.chat.split(":")[:2])
        if entry.enabled and network not in known:
            words = f"is on {network}, which is not configured under platforms, so it never runs"
            words += did_you_mean(network, known)
            _warn(document, ("schedules", name, "chat"), Code.HAS_NO_EFFECT, words)


def _programs_for_unserved_chats(settings: Settings, document: YamlDocument) -> None:
    """MCP clients whose chat is not served, so that every call would be rejected."""
    for index, client in enumerate(settings.mcp.serve.clients):
        if client.chat is not None and is_allowed(settings, client.chat) is None:
            words = f"is not served, because chats.allow does not name {client.chat!r}"
            _warn(document, ("mcp", "serve", "clients", index, "chat"), Code.HAS_NO_EFFECT, words)


def _duplicate_plugins(settings: Settings, document: YamlDocument) -> None:
    """Plugins of a bot that all bots have, duplicates, and the to-do list, which cannot be switched off."""
    lists: list[tuple[Location, Sequence[str], Sequence[str]]] = [(("plugins",), settings.plugins, ())]
    lists += [(("bots", key, "plugins"), bot.plugins, settings.plugins) for key, bot in settings.bots.items()]
    for location, plugins, of_all in lists:
        for index, name in enumerate(plugins):
            if name == "todo":
                text = "has no effect: the to-do list is built in and always active"
            elif name in plugins[:index] or name in of_all:
                text = "has no effect: it is already listed" + ("" if name in plugins[:index] else " for all bots")
            else:
                continue
            _warn(document, (*location, index), Code.HAS_NO_EFFECT, f"{name!r} {text}")


def _ambiguous_keys(document: YamlDocument) -> None:
    seen: dict[Location, str] = {}
    for location, places in document.places.items():
        key = location[-1]
        if location[0] not in ("bots", "chats") or not isinstance(key, str):
            continue
        first = seen.setdefault((*location[:-1], key.casefold()), key)
        if first != key:
            message = f"{dotted(location)} differs from {first!r} only in capital letters; rename one of them"
            document.add_diagnostic(places.key, Code.AMBIGUOUS_KEY, message)


def _duplicate_names(document: YamlDocument) -> None:
    networks = _mapping_at(document.value, ("platforms",))
    accounts = [(("platforms", name), "account") for name in networks if name not in PlatformsSettings.model_fields]
    for location, field in (*_UNIQUE, (("platforms", "irc"), "account"), *accounts):
        default = "main" if location[0] == "platforms" and field == "account" else None
        seen: set[str] = set()
        for index, item in enumerate(_list_at(document.value, location)):
            name = item.get(field, default) if isinstance(item, dict) else None
            if not isinstance(name, str):
                continue
            if name in seen:
                words = f"{name!r} is already the name of an entry above"
                _report(document, (*location, index, field), Code.DUPLICATE_NAME, words)
            seen.add(name)


def _unknown_bots(document: YamlDocument) -> None:
    bots = {DEFAULT_BOT, *_mapping_at(document.value, ("bots",))}
    chats, clients = _mapping_at(document.value, ("chats", "settings")), ("mcp", "serve", "clients")
    named: list[tuple[Location, Plain]] = [(("chats", "settings", key), entry) for key, entry in chats.items()]
    named += [((*clients, index), entry) for index, entry in enumerate(_list_at(document.value, clients))]
    for location, entry in named:
        bot = _at(entry, ("bot",))
        if isinstance(bot, str) and bot not in bots and not document.is_unknown((*location, "bot")):
            words = f"names {bot!r}, which is not in bots{did_you_mean(bot, bots)}"
            _report(document, (*location, "bot"), Code.UNKNOWN_BOT, words)


def _model_names(document: YamlDocument) -> list[str]:
    names = (item.get("name") for item in _list_at(document.value, ("models",)) if isinstance(item, dict))
    return [name for name in names if isinstance(name, str)]


def _unknown_shadow(document: YamlDocument) -> None:
    location = ("router", "shadow", "model")
    name, models = _at(document.value, location), _model_names(document)
    if not isinstance(name, str) or not name or document.is_unknown(location):
        return
    if name not in models:
        words = f"names {name!r}, which is not in models{did_you_mean(name, models)}"
        _report(document, location, Code.UNKNOWN_MODEL, words)
    elif all(known == name for known in models):
        words = "names the only model; a shadow model does not answer chats, so add another model"
        _report(document, location, Code.UNKNOWN_MODEL, words)


def _unknown_models(document: YamlDocument) -> None:
    """Names of models for bots, chats and thinking that are no answering entry of `models`."""
    value = document.value
    names = [one for one in _model_names(document) if one != _at(value, ("router", "shadow", "model"))]
    lists: list[Location] = [("chats", "selectable_models")]
    lists += [("bots", key, "models") for key in _mapping_at(value, ("bots",))]
    lists += [("chats", "settings", key, "models") for key in _mapping_at(value, ("chats", "settings"))]
    thinking: Location = ("router", "thinking", "model")
    named = [((*at, index), name) for at in lists for index, name in enumerate(_list_at(value, at))]
    for location, name in (*named, (thinking, _at(value, thinking))):
        if isinstance(name, str) and name and name not in names and not document.is_unknown(location):
            words = f"names {name!r}, which is no model that answers chats{did_you_mean(name, names)}"
            _report(document, location, Code.UNKNOWN_MODEL, words)


def _prices_of_unknown_models(document: YamlDocument) -> None:
    names = _model_names(document)
    for name in _mapping_at(document.value, ("budgets", "prices")):
        if name not in names:
            words = f"names no model in models{did_you_mean(name, names)}"
            _report(document, ("budgets", "prices", name), Code.UNKNOWN_MODEL, words)


def _unserved_operators_chat(document: YamlDocument) -> None:
    chat, allowed = _at(document.value, ("operators", "chat")), _list_at(document.value, ("chats", "allow"))
    patterns = [one for one in allowed if isinstance(one, str)]
    if isinstance(chat, str) and not any(matches(pattern, chat) for pattern in patterns):
        words = f"is {chat!r}, which chats.allow does not name: add it there"
        _report(document, ("operators", "chat"), Code.UNKNOWN_CHAT, words)


def _models_without_their_function(document: YamlDocument) -> None:
    for index, item in enumerate(_list_at(document.value, ("models",))):
        if isinstance(item, dict) and item.get("protocol") == "function" and not item.get("function"):
            words = "is function, so `function` has to name one, as package.module:function"
            _report(document, ("models", index, "protocol"), Code.MISSING, words)


def _at(value: Plain, location: Location) -> Plain:
    for step in location:
        value = value.get(str(step)) if isinstance(value, dict) else None
    return value


def _mapping_at(value: Plain, location: Location) -> dict[str, Plain]:
    found = _at(value, location)
    return found if isinstance(found, dict) else {}


def _list_at(value: Plain, location: Location) -> list[Plain]:
    found = _at(value, location)
    return found if isinstance(found, list) else []


def _languages(settings: Settings) -> Iterator[tuple[Location, str]]:
    yield ("language",), settings.language
    for name, bot in settings.bots.items():
        if bot.language is not None:
            yield ("bots", name, "language"), bot.language
    for pattern, chat in settings.chats.settings.items():
        if chat.language is not None:
            yield ("chats", "settings", pattern, "language"), chat.language


ENVIRONMENT_DEFAULTS: Mapping[str, Plain] = {
    "home": "${ROLLCALL_HOME:-./var}",
    "logging": {"folder": "${ROLLCALL_LOGS:-logs}"},
    "models": [
        {
            "name": "main",
            "api_key": "${OPENAI_API_KEY:-}",
            "base_url": "${OPENAI_BASE_URL:-}",
            "model": "${OPENAI_MODEL:-gpt-5-mini}",
        }
    ],
}
"""Defaults for missing keys, with references to the environment, as in the shipped file."""


class SettingsInvalid(Exception):
    """The settings file cannot be used. The message has one line per finding."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(str(diagnostics))
        self.diagnostics = diagnostics
        """All findings in order of position, including warnings."""


def load_settings(path: Path, environment: Mapping[str, str]) -> Settings:
    """Load the settings in the file `path`, with references filled from `environment`. Raises SettingsInvalid with all
    findings if there is an error; warnings are dropped."""
    settings, diagnostics = check_settings(path, environment)
    if settings is None:
        raise SettingsInvalid(diagnostics)
    return settings


def check_settings(
    path: Path, environment: Mapping[str, str], data: bytes | None = None
) -> tuple[Settings | None, Diagnostics]:
    """The settings in the file `path`, or None if it has errors; and all errors and warnings, sorted. Raises nothing
    for an unreadable file. `data`: read instead of the file's content."""
    document = read_yaml_file(path) if data is None else read_yaml_bytes(data, str(path))
    if not isinstance(document.value, dict):
        if document.value is not None:
            document.add_diagnostic(Position(1, 1), Code.NOT_A_MAPPING, "has to be a mapping (key: value) at the top")
        elif not document.faults:
            document.add_diagnostic(Position(1, 1), Code.NOT_A_MAPPING, "is empty")
        return None, document.faults.in_order()
    own = frozenset(document.value)
    document.value = _with_defaults(document.value)
    fill_references(document, environment)
    check_consistency(document)
    settings = _validated(document, _folder_of(path), own)
    if settings is not None:
        warn_of_surprises(settings, document)
    diagnostics = _without_misreadings(document.faults).in_order()
    return (None if diagnostics.errors else settings), diagnostics


def _with_defaults(own: Mapping[str, Plain]) -> dict[str, Plain]:
    value = {**ENVIRONMENT_DEFAULTS, **own}
    logging = own.get("logging")
    if isinstance(logging, dict):
        value["logging"] = {**_mapping_at(dict(ENVIRONMENT_DEFAULTS), ("logging",)), **logging}
    return value


def _folder_of(path: Path) -> Path:
    """The folder that relative paths in the settings file `path` count from."""
    return path.absolute().parent


def _validated(document: YamlDocument, folder: Path, own: Collection[str]) -> Settings | None:
    """The settings; None after adding a diagnostic for each error. `own`: the sections that the file has; an error in
    another one names the environment variable that it comes from."""
    kind = _settings_type(document)
    try:
        return kind.model_validate(document.value, context=folder)
    except ValidationError as error:
        document.faults.extend(
            _with_variable(diagnostic_of(document, details, kind), details["loc"], own)
            for details in error.errors(include_url=False)
            if not document.is_unknown(details["loc"])
        )
        return None


def _settings_type(document: YamlDocument) -> type[Settings]:
    """`Settings` with the networks that the document configures. One whose adapter cannot be imported is left out, with
    an error."""
    sections: dict[str, type[NetworkSettings]] = {}
    for name in _mapping_at(document.value, ("platforms",)):
        try:
            sections |= network_sections([name])
        except NetworkUnavailable as error:
            message = f"platforms.{name}: {error}"
            document.add_diagnostic(document.key_at(("platforms", name)), Code.BAD_VALUE, message)
            document.unknown.add(("platforms", name))
    return settings_with(sections)


def _with_variable(found: Diagnostic, location: Sequence[int | str], own: Collection[str]) -> Diagnostic:
    """`found`, with the environment variable that the value comes from if the file does not have it."""
    if not location or location[0] in own:
        return found
    value: Any = ENVIRONMENT_DEFAULTS
    try:
        for step in location:
            value = value[step]
    except (LookupError, TypeError):
        return found
    variable = re.match(r"\$\{(\w+)", value) if isinstance(value, str) else None
    if variable is None:
        return found
    return replace(found, message=f"{found.message}; it comes from the environment variable {variable[1]}")


def _without_misreadings(faults: Diagnostics) -> Diagnostics:
    """Only the fault of a wrong version if there is one, else all faults: other findings may be valid in the release
    that the file is for."""
    return Diagnostics(fault for fault in faults if fault.code == Code.WRONG_VERSION) or faults


_SAY_WHICH_FUNCTIONS = frozenset({"sources", "plugins", "mcp", "bots", "config_version"})
"""Sections that determine the functions; with an error in one of them the functions are unknown."""
_MOST_PASSES = 50


def usable_part(path: Path, environment: Mapping[str, str]) -> Settings | None:
    """The settings of the file `path` without every section that is invalid; the others keep their positions. None if
    the functions cannot be determined."""
    document = read_yaml_file(path)
    if not isinstance(document.value, dict) or document.faults.errors:
        return None
    document.value = _with_defaults(document.value)
    fill_references(document, environment)
    rest: Any = document.value
    kind = _settings_type(document)
    for _ in range(_MOST_PASSES):
        try:
            return kind.model_validate(rest, context=_folder_of(path))
        except ValidationError as error:
            places = [details["loc"] for details in error.errors(include_url=False, include_context=False)]
        if not all(place and place[0] not in _SAY_WHICH_FUNCTIONS for place in places):
            return None
        for place in places:
            _take_out(rest, place)
    return None


def _take_out(rest: dict[str, Any], place: Sequence[int | str]) -> None:
    """Delete the value at `place` from `rest`, or the nearest existing container. A list is deleted as a whole, because
    deleting an item would shift the positions after it."""
    held, key = rest, place[0]
    inner: Any = rest
    for one in place:
        is_there = (isinstance(inner, dict) and one in inner) or (
            isinstance(inner, list) and isinstance(one, int) and one < len(inner)
        )
        if not is_there:
            break
        if isinstance(inner, dict):
            held, key = inner, one
        inner = inner[one]
        if isinstance(inner, list):
            break
    held.pop(str(key) if key not in held else key, None)
