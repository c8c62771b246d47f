"""OAuth at MCP servers: the SDK's provider as an HTTP transport, with stored tokens."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from config.sections.mcp import McpLoginSettings, McpServerSettings
from services.mcp.stored_logins import StoredLogin

_MOST_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 15.0
_EXPIRED = 1.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class LoginFailed(httpx2.TransportError):
    """The server requires a login, and there is none that it accepts. The request had no effect."""


class LoginNeeded(LoginFailed):
    """Somebody has to log in with a browser."""


@dataclass(frozen=True, slots=True)
class Browser:
    """The browser of a person who logs in."""

    redirect_url: str
    """URL to which the authorization server sends it back."""
    show: Callable[[str], Awaitable[None]]
    """Shows the person the URL to open."""
    answer: Callable[[], Awaitable[str]]
    """Returns the query string with which the browser comes back."""


class AuthorizedTransport(httpx2.AsyncBaseTransport):
    """Transport that authenticates requests to one server. Raises LoginFailed."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        settings: McpServerSettings,
        login: McpLoginSettings,
        stored: StoredLogin,
        browser: Browser | None = None,
    ) -> None:
        """With `browser` a new login is made; without, the stored one is used and refreshed."""
        # The SDK logs responses of authorization servers, which may contain secrets.
        logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)
        self._inner = inner
        self._login = login
        self._stored = stored
        self._browser = browser
        self._hosts = {urlsplit(settings.url).hostname, *([urlsplit(login.issuer).hostname] if login.issuer else [])}
        self._provider = _provider(settings, login, stored, browser)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        context = self._provider.context
        response = None
        if context.current_tokens is not None and context.is_token_valid():
            # Without the SDK's flow, whose lock lets no other request begin before this one is answered.
            token = context.current_tokens.access_token
            request.headers["authorization"] = f"Bearer {token}"
            response = await self._inner.handle_async_request(request)
            if response.status_code not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return response
            if response.status_code == HTTPStatus.UNAUTHORIZED and context.can_refresh_token():
                await response.aclose()
                response = None
                if context.current_tokens is not None and context.current_tokens.access_token == token:
                    context.token_expiry_time = _EXPIRED
        try:
            return await self._authorized(request, response)
        except (OAuthFlowError, ValidationError, ValueError) as error:
            # Details may contain secrets: they are for the person who logs in, not for the log.
            details = f": {error}" if self._browser is not None else ""
            raise LoginFailed(f"the login failed ({type(error).__name__}){details}") from None

    async def _authorized(self, request: httpx2.Request, response: httpx2.Response | None) -> httpx2.Response:
        """The response to `request` after the SDK's flow. `response`: a first response, if there is one already."""
        flow = self._provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    answer = await self._exchange(outgoing)
                else:
                    answer = response or await self._inner.handle_async_request(request)
                    answer.request, response = request, None
                    await self._check_for_person(answer)
                try:
                    following = await flow.asend(answer)
                except StopAsyncIteration:
                    return answer
                await answer.aclose()
                outgoing = following
        finally:
            await flow.aclose()

    async def _check_for_person(self, response: httpx2.Response) -> None:
        """Raise LoginNeeded if the response requires a login that only a person can make, and nobody is there."""
        lacks_scope = (
            response.status_code == HTTPStatus.FORBIDDEN
            and extract_field_from_www_auth(response, "error") == "insufficient_scope"
        )
        if self._browser is not None or self._login.grant != "authorization_code":
            return
        if response.status_code == HTTPStatus.UNAUTHORIZED or lacks_scope:
            await response.aclose()
            if lacks_scope:
                self._stored.write(missing_scope=extract_scope_from_www_auth(response) or "")
            raise LoginNeeded(self._stored.advice)

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        """Response to a request of the login itself, which servers choose the host of. Raises OAuthFlowError for hosts
        that it must not be sent to."""
        host = request.url.host
        is_secure = request.url.scheme == "https" or host in _LOOPBACK
        if host not in self._hosts and (self._browser is None or not is_secure):
            known = ", ".join(sorted(filter(None, self._hosts)))
            raise OAuthFlowError(f"the login leads to {host}; without a person only {known} may be used, else https")
        request.extensions["timeout"] = httpx2.Timeout(_TIMEOUT_SECONDS).as_dict()
        response = await self._inner.handle_async_request(request)
        body = bytearray()
        try:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise OAuthFlowError(f"{host} answers with more than {_MOST_BYTES} bytes")
        finally:
            await response.aclose()
        headers = {"content-type": response.headers.get("content-type", "")}
        return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)


class _Storage:
    """The stored login as the SDK's token storage. `context` is that of the provider, which the SDK does not store."""

    context: OAuthContext

    def __init__(self, login: McpLoginSettings, stored: StoredLogin, redirect: str) -> None:
        """`redirect`: the URL of a new login; empty to use the stored one."""
        self._login = login
        self._stored = stored
        self._redirect = redirect

    async def get_tokens(self) -> OAuthToken | None:
        stored = self._stored.read()
        if self._redirect or not stored.get("tokens"):
            return None
        # Without these a refresh after a restart goes to the wrong server, and expired tokens count as valid.
        self.context.token_expiry_time = stored.get("expires_at")
        if stored.get("authorization_server"):
            self.context.oauth_metadata = OAuthMetadata.model_validate(stored["authorization_server"])
        if stored.get("resource"):
            self.context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(stored["resource"])
        return OAuthToken.model_validate(stored["tokens"])

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._stored.write(
            tokens=_plain(tokens),
            expires_at=self.context.token_expiry_time,
            authorization_server=_plain(self.context.oauth_metadata),
            resource=_plain(self.context.protected_resource_metadata),
            missing_scope="",
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        login, redirects = self._login, [AnyUrl(self._redirect)] if self._redirect else None
        if login.client_id and not login.is_metadata_url:
            secret = login.client_secret.get_secret_value()
            return OAuthClientInformationFull(
                client_id=login.client_id,
                client_secret=secret or None,
                redirect_uris=redirects,
                token_endpoint_auth_method="client_secret_basic" if secret else "none",
                issuer=login.issuer or None,
            )
        stored = self._stored.read().get("client")
        if not stored:
            return None
        client = OAuthClientInformationFull.model_validate(stored)
        # A client is registered for one address of the browser's return.
        return client if redirects is None or client.redirect_uris == redirects else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._stored.write(client=_plain(client_info))


def _plain(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _provider(
    settings: McpServerSettings, login: McpLoginSettings, stored: StoredLogin, browser: Browser | None
) -> OAuthClientProvider:
    redirect = browser.redirect_url if browser is not None else ""
    storage = _Storage(login, stored, redirect)

    async def show(page: str) -> None:
        assert browser is not None
        if urlsplit(page).scheme not in ("http", "https"):
            raise OAuthFlowError("the address of the login page is no web address")
        missing = " ".join([*login.scopes, stored.read().get("missing_scope", "")])
        await browser.show(_with_scopes(page, missing))

    async def answer() -> AuthorizationCodeResult:
        assert browser is not None
        query = {key: values[0] for key, values in parse_qs(await browser.answer()).items()}
        if "error" in query:
            raise OAuthFlowError(f"the authorization server answers {query['error']}")
        return AuthorizationCodeResult(code=query.get("code", ""), state=query.get("state"), iss=query.get("iss"))

    provider: OAuthClientProvider
    if login.grant == "client_credentials":
        provider = ClientCredentialsOAuthProvider(
            settings.url,
            storage,
            client_id=login.client_id,
            client_secret=login.client_secret.get_secret_value(),
            scope=" ".join(login.scopes) or None,
            issuer=login.issuer,
        )
    else:
        metadata = OAuthClientMetadata(
            client_name="Rollcall",
            redirect_uris=[AnyUrl(redirect)] if redirect else None,
            application_type="native" if urlsplit(redirect).hostname in _LOOPBACK else "web",
        )
        document = login.client_id if login.is_metadata_url else None
        provider = OAuthClientProvider(settings.url, metadata, storage, show, answer, client_metadata_url=document)
    storage.context = provider.context
    return provider


def _with_scopes(url: str, scopes: str) -> str:
    """The URL of a login page with `scopes` added to those that it requests."""
    parts = urlsplit(url)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    scope = union_scopes(query.get("scope"), scopes.strip())
    return urlunsplit(parts._replace(query=urlencode({**query, **({"scope": scope} if scope else {})})))
