"""Requests of the desk: sessions, roles, forms and the rendering of pages."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.daemon import Daemon
from bot.database.opening import operator_connection_of
from bot.live.settings import secrets_of
from bot.platforms.http.routes import body_of
from bot.platforms.http.wire import RequestError
from bot.web.connections import source_of
from bot.web.desk.accounts import SESSION_SECONDS, Account, Accounts, DeskRole, csrf_token
from bot.web.page import Allowance, Owners, PageMembers, file_route
from config.settings import Settings
from config.texts import FOLDER, Phrases, Texts
from services.clock import Clock
from services.redaction import Redactor
from services.store.port import StoreError
from services.store.reader import OperatorConnection, ReaderError

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
ROOT = "/desk"
SESSION_COOKIE, LANGUAGE_COOKIE = "rollcall_desk", "rollcall_desk_language"
FORM_BYTES = 300_000
_LOGIN_BURST, _LOGIN_SECONDS = 10, 6.0
_SOURCES_KEPT = 1_000
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
# With `no-referrer`, as elsewhere, browsers send forms with the origin `null`.
HEADERS = {"content-security-policy": _CSP, "cache-control": "no-store", "referrer-policy": "same-origin"}
_Result = TypeVar("_Result")


class Verbatim(str):
    """Text that pages show as it is, also if it looks like a secret."""

    __slots__ = ()


class Section(NamedTuple):
    """Entry of the navigation; `name` is its path below the root and the key of its text."""

    name: str
    role: DeskRole = DeskRole.VIEWER


SECTIONS = (
    Section("overview"),
    Section("chats", DeskRole.OPERATOR),
    Section("functions"),
    Section("waiting", DeskRole.OPERATOR),
    Section("budgets"),
    Section("memory", DeskRole.OPERATOR),
    Section("sources"),
    Section("logs", DeskRole.OPERATOR),
    Section("backups"),
    Section("settings"),
    Section("accounts", DeskRole.OWNER),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a logged-in person."""

    request: Request
    account: Account
    session: str
    desk: Desk
    texts: Phrases
    form: Mapping[str, str] = field(default_factory=dict)
    """Fields of a posted form; the last value of each name."""

    @property
    def path(self) -> Mapping[str, Any]:
        """Values of the placeholders in the route's path."""
        return self.request.path_params

    @property
    def query(self) -> Mapping[str, str]:
        """Values of the query string."""
        return self.request.query_params

    def may(self, role: DeskRole) -> bool:
        """Whether the person has the rights of `role`."""
        return self.account.role.includes(role)

    def page(self, template: str, section: str, *, status: int = 200, **values: object) -> Response:
        """The template rendered as a page of that section; only its block `content` for a request by htmx that is no
        navigation."""
        shown = {
            "account": self.account,
            "section": section,
            "sections": [entry for entry in SECTIONS if self.may(entry.role)],
            "csrf": Verbatim(csrf_token(self.session)),
            "may_operate": self.may(DeskRole.OPERATOR),
            "may_own": self.may(DeskRole.OWNER),
            **values,
        }
        return self.desk.rendered(template, self.texts, self.request, status=status, **shown)

    def done(self, path: str, message: str = "") -> Response:
        """Redirect to a page below the root after a change; `message`: the key of a text to show there."""
        target = f"{ROOT}/{path}" + (f"{'&' if '?' in path else '?'}done={message}" if message else "")
        if "hx-request" in self.request.headers:
            return Response(status_code=204, headers={**HEADERS, "hx-redirect": target})
        return RedirectResponse(target, 303, headers=HEADERS)


Handle = Callable[[Visit], Awaitable[Response]]


class Desk:
    """Services and helpers of all pages."""

    def __init__(
        self,
        daemon: Daemon,
        accounts: Accounts,
        owners: Owners,
        members: PageMembers,
        settings_file: Path | None,
        clock: Clock,
    ) -> None:
        """`settings_file`: the file that owners may change; None if there is none."""
        self.daemon = daemon
        self.accounts = accounts
        self.owners = owners
        self.settings_file = settings_file
        self.clock = clock
        self._members = members
        self._redact = Redactor()
        self._redacted_for: Settings | None = None
        self._texts = Texts(FOLDER / "desk")
        self.bot_texts = Texts()
        """Texts of the bot, for reason codes."""
        self._log_ins: OrderedDict[str, Allowance] = OrderedDict()

    @property
    def settings(self) -> Settings:
        """The current settings of the daemon."""
        return self.daemon.live.now

    def get(self, path: str, handle: Handle, role: DeskRole = DeskRole.VIEWER) -> Route:
        """Route of a page below the root for accounts with the rights of `role`."""
        return Route(f"{ROOT}{path}", self._guarded(handle, role), methods=["GET"])

    def post(self, path: str, handle: Handle, role: DeskRole = DeskRole.OPERATOR) -> Route:
        """Route of a form below the root for accounts with the rights of `role`."""
        return Route(f"{ROOT}{path}", self._guarded(handle, role), methods=["POST"])

    def routes(self) -> list[Route]:
        """Routes of the log-in and of the static files."""
        return [
            *static_routes(),
            Route(f"{ROOT}/login", self._open(self._show_login), methods=["GET"]),
            Route(f"{ROOT}/login", self._open(self._log_in), methods=["POST"]),
            Route(f"{ROOT}/welcome", self._open(self._show_welcome), methods=["GET"]),
            Route(f"{ROOT}/welcome", self._open(self._welcome), methods=["POST"]),
            self.post("/logout", self._log_out, DeskRole.VIEWER),
        ]

    async def report(self, make: Callable[[OperatorConnection], _Result]) -> _Result:
        """The result of `make` with a connection of its own, in a thread. Raises ReaderError."""

        def read() -> _Result:
            with operator_connection_of(self.settings) as reader:
                return make(reader)

        return await asyncio.to_thread(read)

    def local(self, at_ms: int | None) -> str:
        """A time in milliseconds since 1970 UTC in the zone of the settings, as `2026-05-01 17:03:09`; empty for
        None."""
        if at_ms is None:
            return ""
        zone = ZoneInfo(self.settings.timezone)
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone):%Y-%m-%d %H:%M:%S}"

    def rendered(
        self, template: str, texts: Phrases, request: Request, *, status: int = 200, **values: object
    ) -> Response:
        """The rendered template with the headers of the desk."""
        by_htmx = "hx-request" in request.headers and "hx-boosted" not in request.headers
        done = request.query_params.get("done", "")
        html = self._environment.get_template(template).render(
            t=texts.say,
            language=texts.language,
            languages=self._texts.languages,
            layout="fragment.html" if by_htmx else "page.html",
            bot_name=self.settings.bots["default"].name,
            here=request.url.path,
            zone=self.settings.timezone,
            done=texts.say(f"done.{done}") if texts.has(f"done.{done}") else "",
            local=self.local,
            **values,
        )
        response = HTMLResponse(html, status, headers=HEADERS)
        if (chosen := request.query_params.get("language")) in self._texts.languages:
            response.set_cookie(LANGUAGE_COOKIE, chosen, max_age=31_536_000, samesite="strict", path=ROOT)
        return response

    @cached_property
    def _environment(self) -> Environment:
        # Imported at the first visit: most starts of the daemon are not followed by one.
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        return Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=self._without_secrets,
        )

    def _without_secrets(self, value: object) -> object:
        """`value` without secrets if it is text of others; called for every value in a template."""
        if type(value) is not str:
            return value
        if self._redacted_for is not self.settings:
            self._redacted_for = self.settings
            self._redact.learn(secrets_of(self.settings))
        return self._redact(value)

    def _language(self, request: Request) -> Phrases:
        wanted = request.query_params.get("language") or request.cookies.get(LANGUAGE_COOKIE)
        if wanted not in self._texts.languages:
            wanted = request.headers.get("accept-language", "")[:2]
        return self._texts.of(wanted or "en")

    def _guarded(self, handle: Handle, role: DeskRole) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request, texts: Phrases) -> Response:
            session = request.cookies.get(SESSION_COOKIE, "")
            account = await self.accounts.of_session(session)
            if account is None:
                return _to_login(request)
            visit = Visit(request, account, session, self, texts)
            if not account.role.includes(role):
                return visit.page("problem.html", "", status=403, problem=texts.say("problems.role", role=role.value))
            if request.method == "POST":
                form = await posted_form(request)
                offered = form.get("csrf", request.headers.get("x-csrf", ""))
                if not compare_digest(offered.encode(), csrf_token(session).encode()):
                    raise RequestError(403, "forbidden", texts.say("problems.old_form"))
                visit = Visit(request, account, session, self, texts, form)
            return await handle(visit)

        return self._open(answer)

    def _open(
        self, answer: Callable[[Request, Phrases], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint whose errors become pages. A POST needs the header `Origin`, which the guard of the web server
        has compared."""

        async def endpoint(request: Request) -> Response:
            texts = self._language(request)
            if request.method == "POST" and "origin" not in request.headers:
                return self._problem(request, texts, 403, texts.say("problems.old_form"))
            try:
                return await answer(request, texts)
            except RequestError as error:
                return self._problem(request, texts, error.status, error.message)
            except (StoreError, ReaderError):
                return self._problem(request, texts, 503, texts.say("problems.store"))

        return endpoint

    def _problem(self, request: Request, texts: Phrases, status: int, message: str) -> Response:
        return self.rendered("problem.html", texts, request, status=status, section="", account=None, problem=message)

    async def _show_login(self, request: Request, texts: Phrases) -> Response:
        if not await self.accounts.everyone():
            return RedirectResponse(f"{ROOT}/welcome", 303, headers=HEADERS)
        return self._login_page(request, texts)

    def _login_page(self, request: Request, texts: Phrases, problem: str = "", status: int = 200) -> Response:
        return self.rendered("login.html", texts, request, status=status, section="", account=None, problem=problem)

    async def _log_in(self, request: Request, texts: Phrases) -> Response:
        form = await posted_form(request)
        if not self._allowance(request).take():
            return self._login_page(request, texts, texts.say("login.too_many"), 429)
        token = await self.accounts.log_in(form.get("name", ""), form.get("password", "")[:LONGEST_FIELD])
        if token is None:
            return self._login_page(request, texts, texts.say("login.wrong"), 401)
        return _with_session(RedirectResponse(ROOT, 303, headers=HEADERS), request, token)

    async def _show_welcome(self, request: Request, texts: Phrases) -> Response:
        """The form for a first password, for holders of an owner link and for owners on the chat page."""
        link = request.query_params.get("owner", "")
        may = bool(link) or self._is_page_owner(request)
        return self._welcome_page(request, texts, link, may=may)

    def _welcome_page(
        self, request: Request, texts: Phrases, link: str, *, may: bool, problem: str = "", status: int = 200
    ) -> Response:
        values = {"link": link, "may": may, "problem": problem, "section": "", "account": None}
        return self.rendered("welcome.html", texts, request, status=status, **values)

    async def _welcome(self, request: Request, texts: Phrases) -> Response:
        form = await posted_form(request)
        if not self._allowance(request).take():
            return self._welcome_page(request, texts, "", may=False, problem=texts.say("login.too_many"), status=429)
        link, name, password = form.get("owner", ""), form.get("name", "").strip(), form.get("password", "")
        if problem := problem_with(texts, name, password):
            return self._welcome_page(request, texts, link, may=True, problem=problem, status=422)
        if not self._is_page_owner(request) and not (link and await self.owners.redeem(link, f"desk:{name}")):
            return self._welcome_page(request, texts, "", may=False, problem=texts.say("login.link_used"), status=403)
        await self.accounts.put(Account(name, DeskRole.OWNER), password, f"desk:{name}")
        token = await self.accounts.log_in(name, password)
        return _with_session(RedirectResponse(ROOT, 303, headers=HEADERS), request, token or "")

    async def _log_out(self, visit: Visit) -> Response:
        await self.accounts.log_out(visit.session)
        response = RedirectResponse(f"{ROOT}/login", 303, headers=HEADERS)
        response.delete_cookie(SESSION_COOKIE, path=ROOT)
        return response

    def _is_page_owner(self, request: Request) -> bool:
        member = self._members.member_of_cookie(request)
        return member is not None and self._members.role("", member).value == "owner"

    def _allowance(self, request: Request) -> Allowance:
        source = source_of(request.scope["client"])
        allowance = self._log_ins.pop(source, None)
        if allowance is None:
            allowance = Allowance(self.clock, burst=_LOGIN_BURST, seconds_each=_LOGIN_SECONDS)
        self._log_ins[source] = allowance
        if len(self._log_ins) > _SOURCES_KEPT:
            self._log_ins.popitem(last=False)
        return allowance


LONGEST_FIELD = 200
_SHORTEST_PASSWORD = 10


def problem_with(texts: Phrases, name: str, password: str) -> str:
    """Reason in words why an account cannot have that name and password; empty if it can."""
    if not 1 <= len(name) <= 40 or not name.isprintable():
        return texts.say("login.bad_name")
    if not _SHORTEST_PASSWORD <= len(password) <= LONGEST_FIELD:
        return texts.say("login.short_password", shortest=_SHORTEST_PASSWORD)
    return ""


async def posted_form(request: Request) -> Mapping[str, str]:
    """The fields of a form sent as `application/x-www-form-urlencoded`. Raises RequestError for another type, a body
    that is no text, or one of more than 300 kB."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise RequestError(415, "unsupported", "forms are sent as application/x-www-form-urlencoded")
    try:
        body = (await body_of(request, FORM_BYTES)).decode()
        return dict(parse_qsl(body, keep_blank_values=True, strict_parsing=bool(body), max_num_fields=200))
    except ValueError as error:
        raise RequestError(400, "bad_request", "the form cannot be read") from error


def _with_session(response: Response, request: Request, token: str) -> Response:
    secure = request.headers.get("origin", "").startswith("https://")
    response.set_cookie(
        SESSION_COOKIE, token, max_age=SESSION_SECONDS, path=ROOT, httponly=True, samesite="strict", secure=secure
    )
    return response


def _to_login(request: Request) -> Response:
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={**HEADERS, "hx-redirect": f"{ROOT}/login"})
    if request.method == "POST":
        raise RequestError(401, "unauthorized", "log in first")
    return RedirectResponse(f"{ROOT}/login", 303, headers=HEADERS)


def static_routes() -> list[Route]:
    """Routes of the style sheet and of htmx."""
    files = [file for file in sorted((HERE / "static").iterdir()) if file.suffix in (".css", ".js")]
    return [Route(f"{ROOT}/{file.name}", file_route(file), methods=["GET"]) for file in files]
