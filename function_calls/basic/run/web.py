"""Web and file access of scripts: allowed hosts, request limits, response bodies, the chat's folder."""

from __future__ import annotations

import codecs
import json
import mimetypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from typing import Literal, TypeVar
from urllib.parse import unquote, urlencode, urlsplit

import orjson

from config.sections.basic import BasicWebSettings, host_fits
from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value
from function_calls.basic.run.session import count_up, seconds_left, translated_error
from function_calls.basic.values import text_of
from services.clock import Clock
from services.patterns import visible
from services.refs import ErrorCode, JsonValue
from services.sandbox.workspace import Problem, Workspace, WorkspaceError, Workspaces
from services.scripts.values import is_deeper
from services.web.addresses import host_of
from services.web.content import data_in, media_type_in
from services.web.http import MayAsk, Method, WebAnswer, WebClient, WebError, WebLimits, json_value

MOST_DEPTH = 32
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Other codec names from a server are not text encodings and are ignored.
_CHARSETS = ("utf", "iso8859", "cp", "gb", "big5", "shift_jis", "euc", "koi8", "iso2022", "ascii", "latin", "mac", "hz")


def body_value(answer: WebAnswer) -> JsonValue:
    """The body parsed as JSON if its type or first character says so, else as text with undecodable bytes replaced.
    Raises WebError for JSON that is nested too deeply or has too many values."""
    content_type = _content_type(answer.content_type)
    body = answer.body.removeprefix(_BYTE_ORDER_MARK)
    if "json" in content_type.get_content_subtype() or body.lstrip()[:1] in (b"{", b"["):
        try:
            value = json_value(body)
        except orjson.JSONDecodeError:
            return _text(body, content_type.get_content_charset())
        if is_deeper(value, MOST_DEPTH):
            problem = f"the JSON response is nested more than {MOST_DEPTH} levels deep"
            raise WebError(ErrorCode.FAILED, problem, is_unknown=True)
        return value
    return _text(body, content_type.get_content_charset())


def _content_type(header: str) -> EmailMessage:
    message = EmailMessage()
    if header.isascii() and header.isprintable():
        message["Content-Type"] = header
    return message


def _text(body: bytes, charset: str | None) -> str:
    return body.decode(_known(charset), "replace")


def _known(charset: str | None) -> str:
    if not charset:
        return "utf-8"
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return "utf-8"
    is_text = name.replace("-", "").startswith(tuple(one.replace("-", "") for one in _CHARSETS)) and name != "utf-7"
    return name if is_text else "utf-8"


_HEADERS = "web.headers"
_HEADER_NAMES = "web.header_names"
"""Key in `ScriptRun.stored_data`. Only names are stored across questions: the values are often secret keys."""
_REQUESTS = "web.requests"
_FORM = "application/x-www-form-urlencoded"
_ACCEPT = "application/json, text/*;q=0.9, */*;q=0.5"
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_VALUE = re.compile(r"[\x20-\x7e]{0,4000}\Z")
_OURS = frozenset(
    {
        "accept-encoding", "connection", "content-encoding", "content-length", "expect", "host", "keep-alive", "te",
        "trailer", "transfer-encoding", "upgrade", "via",
    }
)  # fmt: skip
_MOST_HEADERS = 20
_MOST_BODY_BYTES = 256 * 1024
_MOST_URL_CHARS = 4000
_Change = Literal["POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class _Body:
    """A request body."""

    content: bytes = b""
    media_type: str = ""


class WebOfScripts:
    """HTTP requests of scripts. A run's headers are in `run.transient_data` until it asks something; they are sent to
    the host that the script names, but not to redirect targets."""

    def __init__(self, client: WebClient, settings: BasicWebSettings, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock

    def use(self, settings: BasicWebSettings) -> None:
        """Apply new settings from the next request on."""
        self._settings = settings

    async def get(self, run: ScriptRun, url: str) -> Value:
        """The resource at `url`: JSON as a value, other types as text. Raises RunError."""
        return self._value(run, url, await self.fetch(run, url), is_change=False)

    async def fetch(self, run: ScriptRun, url: str, most_bytes: int | None = None) -> WebAnswer:
        """The raw response from `url`. Raises RunError."""
        settings = self._settings
        may_ask = partial(host_fits, settings.get_from)
        most = settings.answer_kilobytes * 1000 if most_bytes is None else most_bytes
        return await self._answer(run, "GET", url, _Body(), may_ask, "basic.web.get_from", most)

    async def send(self, run: ScriptRun, method: _Change, url: str, data: Value) -> Value:
        """Response to `data`: a map or list is sent as JSON, or as a form if the run's headers say so; a text
        unchanged; NULL without a body. Raises RunError; UNKNOWN_OUTCOME if the request may have arrived."""
        settings = self._settings
        body, may_ask = self._body(run, data), partial(host_fits, settings.post_to)
        most = settings.answer_kilobytes * 1000
        answer = await self._answer(run, method, url, body, may_ask, "basic.web.post_to", most)
        return self._value(run, url, answer, is_change=True)

    async def delete(self, run: ScriptRun, url: str) -> Value:
        """Response to DELETE. Raises RunError as `send` does."""
        return await self.send(run, "DELETE", url, None)

    def set_header(self, run: ScriptRun, name: str, value: str) -> None:
        """Set a header of the run's requests; an empty value removes it. Raises RunError for an invalid name or value,
        a reserved header, and too many."""
        name, value = name.strip(), value.strip()
        if not _NAME.match(name):
            raise translated_error(run, RunCode.BAD_VALUE, "web.header_name")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise translated_error(run, RunCode.NOT_ALLOWED, "web.header_own", name=name)
        if not _VALUE.match(value):
            # The value may be a secret, so the error names only the header.
            raise translated_error(run, RunCode.BAD_VALUE, "web.header_value", name=name)
        headers = {one: what for one, what in _set_headers(run).items() if one != name.lower()}
        if value:
            headers[name.lower()] = value
        if len(headers) > _MOST_HEADERS:
            raise translated_error(run, RunCode.BAD_VALUE, "web.headers", most=_MOST_HEADERS)
        run.transient_data[_HEADERS] = headers
        known: list[str] = run.stored_data.get(_HEADER_NAMES, [])
        run.stored_data[_HEADER_NAMES] = [
            *(one for one in known if one != name.lower()),
            *([name.lower()] if value else []),
        ]

    def clear_headers(self, run: ScriptRun) -> None:
        """Remove all headers of the run."""
        run.transient_data.pop(_HEADERS, None)
        run.stored_data.pop(_HEADER_NAMES, None)

    async def _answer(
        self, run: ScriptRun, method: Method, url: str, body: _Body, may_ask: MayAsk, setting: str, most_bytes: int
    ) -> WebAnswer:
        url = self._checked(run, url)
        headers = {"accept": _ACCEPT, **({"content-type": body.media_type} if body.media_type else {}), **_headers(run)}
        seconds = min(self._settings.timeout_seconds, seconds_left(run, self._clock))
        limits = WebLimits(timeout_seconds=seconds, body_bytes=most_bytes)
        run.has_outside_text = True  # error texts may contain text of strangers as well
        try:
            return await self._client.request(
                method, url, headers=headers, body=body.content, may_ask=may_ask, limits=limits
            )
        except WebError as error:
            raise _fault(run, error, url, setting, is_change=method != "GET") from None

    def _checked(self, run: ScriptRun, url: str) -> str:
        """The validated and encoded URL; counts the request. Raises RunError for an invalid URL or too many
        requests."""
        url = _with_spaces_encoded(url.strip())
        if not re.match(r"https?://", url, re.IGNORECASE):
            raise translated_error(run, RunCode.BAD_VALUE, "web.address")
        if re.search(r"\s", url):
            raise translated_error(run, RunCode.BAD_VALUE, "web.space", host=_host(run, url))
        if "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]:
            raise translated_error(run, RunCode.BAD_VALUE, "web.user", host=_host(run, url))
        if len(url) > _MOST_URL_CHARS:
            raise translated_error(run, RunCode.BAD_VALUE, "web.long_address", most=_MOST_URL_CHARS)
        count_up(run, _REQUESTS, self._settings.requests, "web.too_many")
        return url

    def _body(self, run: ScriptRun, data: Value) -> _Body:
        """Encode the body of a request. Raises RunError if the data cannot be encoded or is too large."""
        try:
            body = _encoded(data, _headers(run).get("content-type", ""))
        except ValueError:
            raise translated_error(run, RunCode.BAD_VALUE, "no_text") from None
        if len(body.content) > _MOST_BODY_BYTES:
            raise translated_error(run, RunCode.BAD_VALUE, "web.long_body", most=_MOST_BODY_BYTES // 1024)
        return body

    def _value(self, run: ScriptRun, url: str, answer: WebAnswer, *, is_change: bool) -> Value:
        try:
            return body_value(answer)
        except WebError as error:
            raise _fault(run, error, url, "", is_change=is_change) from None


def _headers(run: ScriptRun) -> Mapping[str, str]:
    """Headers of a request. Raises RunError if a header's value was lost by a question: without it, the request would
    be a different one."""
    headers = _set_headers(run)
    names: list[str] = run.stored_data.get(_HEADER_NAMES, [])
    gone = next((name for name in names if name not in headers), None)
    if gone is not None:
        raise translated_error(run, RunCode.BAD_VALUE, "web.header_gone", name=gone)
    return headers


def _set_headers(run: ScriptRun) -> Mapping[str, str]:
    headers: Mapping[str, str] = run.transient_data.get(_HEADERS, {})
    return headers


def _encoded(data: Value, media_type: str) -> _Body:
    """Body and media type of `data`: text, JSON, or a form if `media_type` says so; empty for NULL. Raises ValueError
    for data that cannot be encoded."""
    if data is None:
        return _Body()
    if isinstance(data, str):
        return _Body(data.encode(), "application/json" if _is_json(data) else "text/plain; charset=utf-8")
    if isinstance(data, dict) and media_type.partition(";")[0].strip().lower() == _FORM:
        return _Body(urlencode({name: text_of(value) for name, value in data.items()}).encode(), _FORM)
    return _Body(text_of(data).encode(), "application/json")


def _is_json(text: str) -> bool:
    """Whether a text is a JSON object or list, as scripts concatenate them."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _fault(run: ScriptRun, error: WebError, url: str, setting: str, *, is_change: bool) -> RunError:
    """`error` as a runtime error of the script, to be raised: UNKNOWN_OUTCOME, NOT_ALLOWED or UNAVAILABLE. It names
    only the host of the URL."""
    if is_change and error.is_unknown:
        return RunError(RunCode.UNKNOWN_OUTCOME, str(error))
    host = error.barred or _host(run, url)
    if error.barred:
        return translated_error(run, RunCode.NOT_ALLOWED, "web.barred", host=host, setting=setting)
    if error.code is ErrorCode.REFUSED:
        return translated_error(run, RunCode.NOT_ALLOWED, "web.refused", host=host)
    if error.status:
        return translated_error(run, RunCode.UNAVAILABLE, "web.status", host=host, status=error.status)
    key = "web.unusable" if error.code is ErrorCode.FAILED else "web.unreachable"
    return translated_error(run, RunCode.UNAVAILABLE, key, host=host)


def _host(run: ScriptRun, url: str) -> str:
    """The host of `url` for messages; paths and queries may contain keys and are never shown."""
    return host_of(url) or run.call.say("basic.web.that_address")


def _with_spaces_encoded(url: str) -> str:
    """Encode spaces in the query only; in a host or path they are probably mistakes."""
    address, fragment_mark, fragment = url.partition("#")
    before, mark, query = address.partition("?")
    return before + mark + query.replace(" ", "%20") + fragment_mark + fragment


_NOT_THERE = frozenset({Problem.NOT_FOUND, Problem.NO_FOLDER})
_NO_ROOM = frozenset({Problem.FULL, Problem.TOO_MANY, Problem.TOO_BIG})
_PLAIN = "application/octet-stream"
_KNOWN = {".md": "text/markdown", ".csv": "text/csv", ".json": "application/json", ".log": "text/plain"}
_NAME_CHARS = 100
MOST_DONE = 200
"""File operations per run."""
_TEXT = "text.txt"
_IN_A_NAME = re.compile(r"[^\w .()+,@&=-]+")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file's name, type and content."""

    name: str
    media_type: str
    content: bytes


async def in_folder(run: ScriptRun, workspaces: Workspaces, path: str, work: Callable[[Workspace], Result]) -> Result:
    """The result of `work` on the chat's folder, in a thread; `path` is named in errors. Raises RunError if it fails,
    or after too many uses of files in this run."""
    count_up(run, "files.done", MOST_DONE, "files.too_many")
    try:
        return await run.call.threads.run(work, workspaces.of(run.context.chat))
    except WorkspaceError as fault:
        raise _files_fault(run, fault, path) from None
    except OSError:
        raise translated_error(run, RunCode.UNAVAILABLE, "files.out_of_order") from None


async def loaded(run: ScriptRun, workspaces: Workspaces, file: Value) -> Loaded:
    """Load a file given by a script: a path in the chat's folder, a `data:` URL, a text of several lines as the
    content, or a map with `name` and `url`. Raises RunError for web addresses, other values, and files that cannot be
    read."""
    name = ""
    if isinstance(file, dict):
        name, file = str(file.get("name") or ""), file.get("url") or file.get("name")
    if not isinstance(file, str) or not file.strip():
        raise RunError(RunCode.WRONG_TYPE, 'a file name must be a text, such as "report.csv"')
    if file.startswith("data:"):
        content, media_type = data_in(file), media_type_in(file)
        if content is None:
            raise translated_error(run, RunCode.BAD_VALUE, "files.unreadable")
        return Loaded(file_name(name, media_type or "text/plain"), media_type or "text/plain", content)
    if "\n" in file:
        return Loaded(file_name(name or _TEXT, "text/plain"), "text/plain", file.encode("utf-8", "replace"))
    if re.match(r"[a-z]+://", file, re.IGNORECASE):
        raise translated_error(run, RunCode.BAD_VALUE, "files.is_page")
    run.has_outside_text = True
    path = file
    content = await in_folder(run, workspaces, path, lambda folder: folder.read(path))
    own_name = path.rstrip("/").rpartition("/")[2]
    return Loaded(own_name, media_type_of(own_name), content)


def media_type_of(name: str) -> str:
    """Media type of a file name, such as `text/csv`; the same on every machine for common types."""
    ending = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    return _KNOWN.get(ending) or mimetypes.guess_type(name, strict=False)[0] or _PLAIN


def file_name(name: str, media_type: str) -> str:
    """A safe name for an outgoing file; without a name, one made from its media type."""
    plain = _IN_A_NAME.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip(" .")[:_NAME_CHARS]
    return plain or f"file{mimetypes.guess_extension(media_type) or '.bin'}"


def name_in(url: str) -> str:
    """File name in the path of a URL."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    return file_name(unquote(path), "text/html")


def text_in(run: ScriptRun, content: bytes, path: str) -> str:
    """A file as text, decoded as UTF-8 without a byte order mark; invalid bytes are replaced. Raises RunError for
    binary content, which contains a NUL."""
    if b"\0" in content:
        raise _files_fault(run, WorkspaceError(Problem.NOT_TEXT), path)
    return content.decode("utf-8-sig", "replace")


def _files_fault(run: ScriptRun, fault: WorkspaceError, path: str) -> RunError:
    code = RunCode.BAD_VALUE
    if fault.problem in _NOT_THERE:
        code = RunCode.NO_SUCH_THING
    elif fault.problem in _NO_ROOM:
        code = RunCode.NOT_ALLOWED
    # The path may be a mistaken URL with a key in it.
    shown = host_of(path) if "://" in path else path
    return RunError(code, run.call.say(f"files.problem.{fault.problem}", path=visible(shown)[:200], **fault.values))
