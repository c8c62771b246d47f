"""Set-up in a browser: asks what a first settings file needs, checks it with the servers, and writes the file."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from bot.checks.first_settings import (
    BUILT_IN,
    Account,
    FirstModel,
    NoFunctionCalls,
    probe_account,
    probe_model,
    settings_text,
    typed,
    write_private,
)
from bot.platforms.adapter import Adapter
from bot.platforms.http.routes import answer_refusal
from bot.platforms.http.wire import RequestError
from bot.web.app import WebServer
from bot.web.desk.desk import HEADERS, HERE, posted_form, problem_with, static_routes
from bot.web.security import Guard
from config.loader import check_settings
from config.sections.networks import NetworkUnavailable, adapter_paths, import_adapter
from config.terms import attribute_docs
from config.texts import FOLDER, Phrases, Texts

_MOST_NETWORKS = 20
_SIMPLE = (str, int, bool, SecretStr)
"""Types of settings that one field can hold."""
_ROOT = "/setup"


@dataclass(frozen=True, slots=True)
class FirstOwner:
    """The first account of the desk, as entered."""

    name: str
    password: str


class Setup:
    """The page. It answers only requests with its one-time token, and is over when the file is written."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self.token = secrets.token_urlsafe(24)
        self.written: asyncio.Future[FirstOwner] = asyncio.get_running_loop().create_future()
        """The owner, after the file was written."""
        self._file = file
        self._environment = environment
        self._texts = Texts(FOLDER / "desk")
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined
        )

    def app(self) -> Starlette:
        """The web application."""
        pages = {"": self._page, "/network": self._network}
        forms = {"/model": self._check_model, "/account": self._check_account, "": self._write}
        routes = [
            *static_routes(),
            *(Route(f"{_ROOT}{path}", self._guarded(page), methods=["GET"]) for path, page in pages.items()),
            *(Route(f"{_ROOT}{path}", self._guarded(form), methods=["POST"]) for path, form in forms.items()),
        ]
        return Starlette(
            routes=routes, middleware=[Middleware(Guard)], exception_handlers={RequestError: answer_refusal}
        )

    def _guarded(
        self, answer: Callable[[Request, Mapping[str, str], Phrases], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            fields = await posted_form(request) if request.method == "POST" else dict(request.query_params)
            if not hmac.compare_digest(fields.get("token", "").encode(), self.token.encode()):
                raise RequestError(403, "forbidden", "open the link that was printed at the start")
            if request.method == "POST" and "origin" not in request.headers:
                raise RequestError(403, "forbidden", "requests from pages of other origins are not served")
            language = fields.get("language") or request.headers.get("accept-language", "")[:2]
            return await answer(request, fields, self._texts.of(language or "en"))

        return endpoint

    def _rendered(self, template: str, texts: Phrases, status: int = 200, **values: Any) -> Response:
        html = self._templates.get_template(template).render(
            t=texts.say, language=texts.language, languages=self._texts.languages, token=self.token, **values
        )
        return HTMLResponse(html, status, headers=HEADERS)

    async def _page(self, _request: Request, _fields: Mapping[str, str], texts: Phrases) -> Response:
        return self._form(texts, {})

    def _form(self, texts: Phrases, fields: Mapping[str, str], problem: str = "", status: int = 200) -> Response:
        return self._rendered(
            "setup.html",
            texts,
            status,
            fields=fields,
            problem=problem,
            networks=sorted(adapter_paths()),
            bot_languages=Texts().languages,
            zones=sorted(available_timezones()),
            chosen=[self._network_values(number, fields, texts) for number in _numbers(fields)],
            file=self._file,
        )

    async def _network(self, _request: Request, fields: Mapping[str, str], texts: Phrases) -> Response:
        """The questions of one network, to be added to the form."""
        number = fields.get("number", "0")
        if not number.isdecimal() or int(number) >= _MOST_NETWORKS:
            raise RequestError(422, "bad_request", "number: is from 0 to 19", field="number")
        named = {f"n{number}.network": fields.get("network", "")}
        return self._rendered("setup_network.html", texts, **self._network_values(int(number), named, texts))

    def _network_values(self, number: int, fields: Mapping[str, str], texts: Phrases) -> dict[str, Any]:
        network = fields.get(f"n{number}.network", "")
        try:
            adapter = _adapter(network)
        except ValueError as problem:
            return {"number": number, "network": network, "questions": [], "allow": "", "problem": str(problem)}
        docs, known = attribute_docs(adapter.settings), adapter.settings.model_fields
        questions = [
            {
                "name": f"n{number}.{key}",
                "key": key,
                "about": " ".join(docs.get(key, "").split()),
                "value": fields.get(f"n{number}.{key}", ""),
                "is_secret": known[key].annotation is SecretStr,
                "is_flag": known[key].annotation is bool,
                "is_asked": key in adapter.asks,
            }
            for key in [*adapter.asks, *(key for key in known if key not in adapter.asks)]
            if key in adapter.asks or known[key].annotation in _SIMPLE
        ]
        allow = fields.get(f"n{number}.allow", "*")
        return {"number": number, "network": network, "questions": questions, "allow": allow, "problem": ""}

    async def _check_model(self, _request: Request, fields: Mapping[str, str], texts: Phrases) -> Response:
        words, model = await _model_words(_model(fields), texts)
        return self._rendered("setup_checked.html", texts, words=words, is_good=model is not None)

    async def _check_account(self, _request: Request, fields: Mapping[str, str], texts: Phrases) -> Response:
        number = fields.get("number", "0")
        try:
            adapter = _adapter(fields.get(f"n{number}.network", ""))
            words = await probe_account(adapter, _values(adapter, number, fields))
        except ValueError as problem:
            return self._rendered("setup_checked.html", texts, words=str(problem), is_good=False)
        return self._rendered("setup_checked.html", texts, words=words, is_good=True)

    async def _write(self, _request: Request, fields: Mapping[str, str], texts: Phrases) -> Response:
        """Write the file if everything in the form can be used; what needs no server is checked first."""
        name, password = fields.get("owner", "").strip(), fields.get("password", "")
        model, language = _model(fields), fields.get("bot_language") or texts.language
        bot, zone = fields.get("name", "").strip() or "Rollcall", fields.get("timezone", "")
        problem = problem_with(texts, name, password)
        problem = problem or await self._problem(settings_text(bot, language, BUILT_IN, model, zone))
        if not problem and model is not None:
            words, model = await _model_words(model, texts)
            problem = "" if model is not None else words
        if problem:
            return self._form(texts, fields, problem, 422)
        try:
            accounts = [*BUILT_IN, *[await _account(number, fields) for number in _numbers(fields)]]
        except ValueError as error:
            return self._form(texts, fields, str(error), 422)
        text = settings_text(bot, language, accounts, model, zone)
        if problem := await self._problem(text):
            return self._form(texts, fields, problem, 422)
        if self._file.exists() or self.written.done():
            return self._form(texts, fields, texts.say("setup.exists", file=self._file), 409)
        await asyncio.to_thread(write_private, self._file, text)
        self.written.set_result(FirstOwner(name, password))
        return self._rendered("setup_done.html", texts, file=self._file)

    async def _problem(self, text: str) -> str:
        """The first error of `text` as the settings; empty without one."""
        settings, found = await asyncio.to_thread(check_settings, self._file, self._environment, text.encode())
        return "" if settings is not None else found.errors[0].message


async def set_up(file: Path, port: int, environment: Mapping[str, str], announce: Callable[[str], None]) -> FirstOwner:
    """Serve the page on this machine until the file is written; `announce` receives its link. Raises OSError if the
    port is in use."""
    setup = Setup(file, environment)
    server = WebServer(setup.app(), port=port)
    address = await server.start()
    announce(f"{address.url}{_ROOT}?token={setup.token}")
    try:
        owner = await setup.written
        # The browser still loads the style sheet of the last page.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await asyncio.Event().wait()
        return owner
    finally:
        await server.stop()


_LAST_SECONDS = 1.0


def _numbers(fields: Mapping[str, str]) -> list[int]:
    return [number for number in range(_MOST_NETWORKS) if fields.get(f"n{number}.network")]


def _adapter(network: str) -> Adapter:
    """The adapter of a known network. Raises ValueError."""
    if network not in adapter_paths():
        raise ValueError(f"there is no network {network!r}")
    try:
        adapter: Adapter = import_adapter(network)
    except NetworkUnavailable as problem:
        raise ValueError(str(problem)) from problem
    return adapter


def _values(adapter: Adapter, number: str | int, fields: Mapping[str, str]) -> dict[str, str]:
    known = adapter.settings.model_fields
    return {key: value.strip() for key in known if (value := fields.get(f"n{number}.{key}", "").strip())}


async def _account(number: int, fields: Mapping[str, str]) -> Account:
    """An account of the form, checked with its server. Raises ValueError."""
    network = fields[f"n{number}.network"]
    adapter = _adapter(network)
    values = _values(adapter, number, fields)
    try:
        await probe_account(adapter, values)
    except ValueError as problem:
        raise ValueError(f"{network}: {problem}") from problem
    allow = fields.get(f"n{number}.allow", "").split()
    return Account(network, typed(values, adapter), allow, attribute_docs(adapter.settings))


def _model(fields: Mapping[str, str]) -> FirstModel | None:
    """The entered model; None without a name."""
    model = fields.get("model", "").strip()
    return FirstModel(model, fields.get("base_url", "").strip(), fields.get("api_key", "").strip()) if model else None


async def _model_words(model: FirstModel | None, texts: Phrases) -> tuple[str, FirstModel | None]:
    """Result of a request to the model in words, and the model to write; None if it cannot be used."""
    if model is None:
        return texts.say("setup.no_model"), None
    try:
        return texts.say("setup.model_works", model=await probe_model(model)), model
    except NoFunctionCalls:
        return texts.say("setup.model_calls_nothing"), replace(model, protocol="json_text")
    except ValueError as problem:
        return str(problem), None
