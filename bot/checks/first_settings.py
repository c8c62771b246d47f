"""The first settings file: accounts and a model that are checked with their servers, written as YAML with comments.
Used by `rollcall init` and by the set-up page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bot.platforms.adapter import Adapter, CannotOpen
from bot.registration.models import online_models
from config.sections.models import ModelSettings
from config.settings import Settings
from services.clock import SystemClock
from services.llm.model import ChatModel, ModelError, ModelMessage, ModelRequest, Offer, OfferedFunction

_REFERENCE = re.compile(r"\$\{(\w+)\}")
_PROBE_SECONDS = 30.0
_WEATHER = OfferedFunction(
    name="weather",
    original="weather",
    description="Tell the weather in a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
Value = str | int | bool
"""A setting of a network."""


@dataclass(frozen=True, slots=True)
class Account:
    """One network to write: its name, settings as entered, and the chats to serve."""

    network: str
    values: Mapping[str, Value]
    allow: Sequence[str]
    docs: Mapping[str, str]


PAGE = Account("web", {}, ("*",), {})
"""The chat page with all its groups."""
BUILT_IN = (PAGE, Account("console", {}, ("*",), {}))
"""The chat page and the terminal."""


@dataclass(frozen=True, slots=True)
class FirstModel:
    """The model to write, as entered; `${NAME}` in the key stands for an environment variable."""

    model: str
    base_url: str = ""
    api_key: str = ""
    protocol: str = ""
    """Empty: function calling; `json_text` for a model without it."""


def filled(value: str) -> str:
    """`value` with references to environment variables replaced; an unknown variable is empty."""
    return _REFERENCE.sub(lambda found: os.environ.get(found[1], ""), value)


async def probe_account(adapter: Adapter, values: Mapping[str, str]) -> str:
    """A line about the account from its server. Raises ValueError with the reason if it cannot be used."""
    try:
        settings = adapter.settings.model_validate(typed({key: filled(each) for key, each in values.items()}, adapter))
        return await adapter.probe(settings, SystemClock())
    except ValidationError as error:
        raise ValueError(_first_problem(error)) from error
    except CannotOpen as problem:
        raise ValueError(str(problem)) from problem


class NoFunctionCalls(ValueError):
    """The model answers, but did not call the offered function."""


async def probe_model(entered: FirstModel) -> str:
    """The provider's name of the model, after it has called a function. Raises ValueError with the reason if it does
    not answer, and NoFunctionCalls if it answers without the call."""
    fields = {"name": "main", "model": entered.model, "base_url": entered.base_url, "api_key": filled(entered.api_key)}
    try:
        model_settings = ModelSettings.model_validate(fields)
    except ValidationError as error:
        raise ValueError(_first_problem(error)) from error
    models = online_models(Settings(models=(model_settings,)), SystemClock())
    if not models:
        raise ValueError("api_key: is empty")
    return await _called(models[0])


async def _called(model: ChatModel) -> str:
    ask = ModelMessage("user", "What is the weather in Paris? Call the function weather.")
    try:
        request = ModelRequest([ask], offer=Offer([_WEATHER]), timeout_seconds=_PROBE_SECONDS)
        answer = await model.complete(request)
    except ModelError as error:
        raise ValueError(f"{error.code.value}: {error}") from error
    finally:
        await model.close()
    if not any(call.name == _WEATHER.name for call in answer.calls):
        raise NoFunctionCalls(answer.model or model.name)
    return answer.model or model.name


def settings_text(
    name: str, language: str, accounts: Sequence[Account], model: FirstModel | None = None, timezone: str = ""
) -> str:
    """The settings file as YAML with comments."""
    lines = ["# Settings of Rollcall; `rollcall check` finds errors in this file.", "config_version: 1", ""]
    lines += [f"language: {language}", *([f"timezone: {timezone}"] if timezone else [])]
    lines += ["bots:", f"  default: {{name: {_quoted(name)}}}", ""]
    if model is not None:
        lines += ["models:", "  # The first usable model answers.", "  - name: main"]
        entries = {
            "protocol": model.protocol,
            "base_url": model.base_url,
            "model": model.model,
            "api_key": model.api_key,
        }
        lines += [*(f"    {key}: {_quoted(value)}" for key, value in entries.items() if value), ""]
    lines += ["chats:", "  # Chats that are served, as network:account:chat. Any other is left at once."]
    allow = [f"{one.network}:{one.values.get('account', 'main')}:{chat}" for one in accounts for chat in one.allow]
    lines += ["  allow:", *(f"    - {_quoted(chat)}" for chat in allow)] if allow else ["  allow: []"]
    networks = dict.fromkeys(one.network for one in accounts if one not in BUILT_IN)
    lines += ["", "platforms:", *([] if networks and PAGE not in accounts else ["  web: {page: true}"])]
    for network in networks:
        lines.append(f"  {network}:")
        for account in (one for one in accounts if one.network == network):
            for number, (key, value) in enumerate((account.values or {"account": "main"}).items()):
                indent, dash = ("    ", "- ") if number == 0 else ("      ", "")
                lines += [f"{indent}# {' '.join(account.docs.get(key, '').split())}"] if key in account.docs else []
                lines.append(f"{indent}{dash}{key}: {_quoted(value)}")
    return "\n".join(lines) + "\n"


def typed(values: Mapping[str, str], adapter: Adapter) -> dict[str, Value]:
    """The values that are not empty, with the types of their settings: numbers and booleans as YAML reads them."""
    found: dict[str, Value] = {key: value for key, value in values.items() if value}
    for key, value in values.items():
        kind = adapter.settings.model_fields[key].annotation
        if kind is bool and value in ("true", "false"):
            found[key] = value == "true"
        elif kind in (int, float) and value.isdecimal() and value.isascii():
            found[key] = int(value)
    return found


def write_private(file: Path, text: str) -> None:
    """Write the file so that only its owner can read it, because it may hold tokens."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as written:
        written.write(text)


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _quoted(value: Value) -> str:
    """`value` in YAML."""
    return json.dumps(value, ensure_ascii=False)
