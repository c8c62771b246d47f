"""Stored OAuth logins at MCP servers, and the answers of browsers to logins that wait for them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs

import orjson

from config.sections.mcp import McpServerSettings
from services.refs import JsonObject

CALLBACK_PATH = "/login/mcp"
"""Path on the web server to which browsers return from a login."""
_MOST_BYTES = 256 * 1024


class StoredLogin:
    """Login at one server: tokens, the registered client, and the metadata that refreshing needs. A file with mode
    0600; data stored for another URL is ignored, so that no token is sent to another server."""

    def __init__(self, home: Path, settings: McpServerSettings) -> None:
        self._path = _folder(home) / f"{settings.name}.json"
        self._url = settings.url
        self.advice = f"it needs a login: `rollcall mcp login {settings.name}`"
        """Text for operators while nobody is logged in."""

    def read(self) -> JsonObject:
        """The stored data: `tokens`, `expires_at` in seconds since 1970, `client`, `authorization_server`, `resource`
        and `missing_scope`, each optional. Empty if there is none for this server."""
        try:
            stored = orjson.loads(self._path.read_bytes())
        except (FileNotFoundError, orjson.JSONDecodeError):
            return {}
        return stored if isinstance(stored, dict) and stored.get("url") == self._url else {}

    def write(self, **parts: object) -> None:
        """Store `parts` in place of the previous ones; others are kept. Raises OSError."""
        _write(self._path, orjson.dumps({**self.read(), **parts, "url": self._url}))

    @property
    def has_tokens(self) -> bool:
        """Whether somebody has logged in. The server may have withdrawn the tokens since."""
        return bool(self.read().get("tokens"))


class BrowserAnswers:
    """Answers of browsers that return from a login, from the web server's process to that of the login. A login is
    known by its secret `state`."""

    def __init__(self, home: Path) -> None:
        self._folder = _folder(home)

    @contextmanager
    def expected(self, state: str) -> Iterator[None]:
        """Context manager within which an answer to `state` is accepted. Raises OSError."""
        path = self._path(state)
        _write(path, b"")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def put(self, query: str) -> bool:
        """Store the query string of an answer. False if no login waits for it."""
        path = self._path(state_of(query))
        if not path.exists() or len(query) > _MOST_BYTES:
            return False
        _write(path, query.encode())
        return True

    def take(self, state: str) -> str:
        """The query string of the answer; empty while there is none."""
        with suppress(FileNotFoundError):
            return self._path(state).read_text()
        return ""

    def _path(self, state: str) -> Path:
        return self._folder / f"{hashlib.sha256(state.encode()).hexdigest()}.answer"


def state_of(query: str) -> str:
    """The `state` in a query string; empty if there is none."""
    return parse_qs(query).get("state", [""])[0]


def _folder(home: Path) -> Path:
    return home / "mcp-logins"


def _write(path: Path, content: bytes) -> None:
    """Replace the file; only its owner can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    new.replace(path)
