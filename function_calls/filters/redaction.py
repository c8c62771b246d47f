"""The filter `redaction`: secrets and personal data are replaced in what a run gives, before anybody has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from config.filters import RedactionFilter
from function_calls.filters.call import CallFilter, Invocation, Proceed
from function_calls.results import plain
from function_calls.spec import FunctionResult
from services.redaction import HIDDEN, Redactor

_EMAIL = r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])"
_PHONE = r"(?<![\w+])(?:\+|00)[1-9](?:[ ()./-]{0,2}\d){7,14}(?!\w)|(?<!\w)1[3-9]\d(?:[ -]?\d{4}){2}(?!\w)"
_CARD = r"(?<!\w)\d(?:[ -]?\d){12,18}(?!\w)"


def redaction(options: RedactionFilter, redact: Redactor) -> CallFilter:
    """A filter that hides what `options` name. `redact` knows the settings' own secrets."""
    hide = _hiding(options, redact)
    in_values: Callable[[Any], Any] = redact.value if options.secrets else lambda value: value

    async def around(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        result = await proceed(invocation)
        error = result.error
        return replace(
            result,
            messages=tuple(replace(message, text=hide(message.text)) for message in result.messages),
            data=_each_text(in_values(_as_json(result.data)), hide),
            error=None if error is None else replace(error, text=hide(error.text)),
        )

    return around


def _hiding(options: RedactionFilter, redact: Redactor) -> Callable[[str], str]:
    wanted = ((options.emails, _EMAIL), (options.phone_numbers, _PHONE))
    expressions = [re.compile(one) for one in [*(one for is_on, one in wanted if is_on), *options.patterns]]
    card = re.compile(_CARD) if options.card_numbers else None

    def hide(text: str) -> str:
        if options.secrets:
            text = redact(text)
        if card is not None:
            text = card.sub(_hidden_card, text)
        for expression in expressions:
            text = expression.sub(HIDDEN, text)
        return text

    return hide


def _hidden_card(found: re.Match[str]) -> str:
    """Only what passes the check digit of cards is one: other long numbers stay."""
    digits = [int(character) for character in found[0] if character.isdecimal()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return HIDDEN if (sum(doubled) + sum(digits[-1::-2])) % 10 == 0 else found[0]


def _as_json(data: Any) -> Any:
    """What a model would be told of `data`: nothing may hide in an object of another kind."""
    return None if data is None else orjson.loads(orjson.dumps(plain(data), default=str))


def _each_text(value: Any, hide: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {key: _each_text(one, hide) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(one, hide) for one in value]
    return value
