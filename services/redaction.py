"""Redaction of secrets in logs: known values in any encoding, strings that look like keys, and values that follow a
word such as `password`."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

from services.refs import JsonValue

HIDDEN = "***"
_SHORTEST_SECRET = 6
_DEEPEST = 20

_SUSPICIOUS = re.compile(r"[:=%]|-----BEGIN|[\w-]{15}|[Bb](?:earer|EARER)\b")
"""Quick check: every text with a secret matches it, and most texts do not."""
_TOKENS = re.compile(
    r"""
    (?<![A-Za-z0-9])(?:
        (?:sk|pk|rk|gsk|whsec|secret|npm|hf|glpat|github_pat|gh[opsur]|xapp|xox[a-z]|xai|pplx|nvapi|dckr_pat)
            [-_][A-Za-z0-9_-]{12,}
      | (?:AKIA|ASIA)[A-Z0-9]{12,}                                  # AWS
      | AIza[\w-]{20,} | ya29\.[\w.-]{12,}                          # Google
      | \d{6,12}(?::|%3A)[A-Za-z0-9_-]{30,}                         # Telegram
      | [MNO][\w-]{20,28}\.[\w-]{6}\.[\w-]{27,}                     # Discord
      | eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?                        # JSON web tokens
    )
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^\s/@"']{1,256}(?=@)                                 # user and password in a URL
    | (?<=%3A%2F%2F)(?:(?!%2F|%40)[^\s/@"']){1,256}(?=%40)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMES_OF_SECRETS = (
    r"api[-_ ]?key|access[-_]?key|private[-_]?key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?"
)
_NAMED = re.compile(
    rf"""
    (?P<name>(?<![A-Za-z0-9])(?:{_NAMES_OF_SECRETS})\\*(?:["']|%22)?(?:\s|%20)*(?:=|:|%3D|%3A)(?:\s|%20|\+)*)
        \\*(?:["']|%22)?(?:(?!%22|%26)[^\s"'\\,;&{{}}\[\]]){{3,}}
    | (?P<header>(?<![A-Za-z0-9])(?:(?:proxy-)?authorization|(?:set-)?cookie)\\*(?:["']|%22)?(?:\s|%20)*
        (?:=|:|%3D|%3A)(?:\s|%20|\+)*) \\*(?:["']|%22)?[^\r\n"'\\]{{3,}}
    | (?P<scheme>(?<![A-Za-z0-9])bearer(?:\s|%20|\+)+)[-._~+/A-Za-z0-9]{{8,}}=*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SAYS_KEY = re.compile(r"(?:.*[^A-Za-z0-9])?key", re.IGNORECASE)
_SECRET_KEY = re.compile(rf"(?:.*[^A-Za-z0-9])?(?:{_NAMES_OF_SECRETS}|authorization|(?:set-)?cookie)", re.IGNORECASE)
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")


class Redactor:
    """Callable that replaces secrets in texts and in JSON values: known ones and those that look like secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets`: values to hide; those with fewer than six characters are ignored, because they could be words."""
        self._forms: frozenset[str] = frozenset()
        self._known: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets to hide, in all encodings; earlier ones are kept, those under six characters are ignored."""
        forms = self._forms.union(form for one in secrets if len(one) >= _SHORTEST_SECRET for form in _forms(one))
        if forms != self._forms:
            self._known = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
            self._forms = forms

    def __call__(self, text: str) -> str:
        """`text` with every secret replaced by `***`."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        if not _SUSPICIOUS.search(text):
            return text
        return _ENCODED.sub(self._hidden_if_encoded, _without_secrets(text))

    def known(self, text: str) -> str:
        """`text` with the known secrets replaced, but not strings that only look like secrets."""
        return text if self._known is None else self._known.sub(HIDDEN, text)

    def value(self, value: JsonValue, depth: int = 0) -> JsonValue:
        """`value` with every secret replaced, and all values whose key names a secret. Other types than JSON become
        text."""
        if isinstance(value, str):
            return self(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping) and depth < _DEEPEST:
            return {
                self(str(key)): HIDDEN if one and _SECRET_KEY.fullmatch(str(key)) else self.value(one, depth + 1)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple) and depth < _DEEPEST:
            return [self.value(one, depth + 1) for one in value]
        return self(str(value))

    def _hidden_if_encoded(self, found: re.Match[str]) -> str:
        """`***` if the matched base64 string encodes a text with a secret, else the string unchanged."""
        encoded = found[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            text = base64.b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            return found[0]
        is_harmless = _without_secrets(text) == text and (self._known is None or not self._known.search(text))
        return found[0] if is_harmless else HIDDEN


def names_a_secret(name: str) -> bool:
    """Whether a setting with that name is a secret: `api_key`, `weather_key`, `password`."""
    return bool(_SECRET_KEY.fullmatch(name) or _SAYS_KEY.fullmatch(name))


def _forms(secret: str) -> Iterator[str]:
    """The encodings of `secret` that may occur in a text: plain, JSON, URL and base64 (at each of three offsets)."""
    yield secret
    for plain in (secret.upper(), secret.lower(), secret[::-1], secret.encode("utf-8", "replace").hex()):
        yield plain
        yield plain.upper()
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)
    # In a longer text each offset modulo 3 gives other characters; those at the ends depend on the neighbours.
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + secret.encode("utf-8", "replace")).decode()
        middle = encoded[(0, 2, 3)[offset] :].rstrip("=")[:-1]
        if len(middle) >= _SHORTEST_SECRET:
            yield middle
            yield middle.replace("+", "-").replace("/", "_")


def _without_secrets(text: str) -> str:
    return _NAMED.sub(_keep_the_name, _TOKENS.sub(HIDDEN, text))


def _keep_the_name(found: re.Match[str]) -> str:
    return f"{found['name'] or found['header'] or found['scheme']}{HIDDEN}"
