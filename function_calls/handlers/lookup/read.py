"""Text of a web page."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from function_calls.call import Call, Path
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from function_calls.turn import PUBLIC
from services.refs import ErrorCode
from services.web.http import WebError
from services.web.pages import EXTRA, NoExtractor, NotText, PageReader, PageText

_CHARS_FOR_CHAT = 3_000
_CHARS_FOR_MODEL = 10_000
_MISSING = (404, 410)
_FORBIDDEN = (401, 402, 403, 451)


@tool_function(
    description="Read the text of a web page by its link",
    examples=(
        "read the page {url}",
        "what does {url} say",
        "what is written at {url}",
        "what does this page say {url}",
        "read the web page {url}",
        "读一下这个网页{url}",
        "这个链接{url}写了什么",
    ),
    commands=("read", "读网页"),
    tags="find_out",
    touches=("reads_outside", "sends_out"),
    effect="read",
    timeout_seconds=45,
    ask={"url": "@read.ask_url"},
)
async def read(
    context: MessageContext,
    url: Annotated[
        str,
        Field(
            description="Complete link",
            min_length=3,
            max_length=2000,
            pattern=r"^\S+$",
            examples=["https://example.org/news"],
        ),
    ],
    *,
    pages: PageReader,
    call: Call,
) -> FunctionResult:
    """Return title, site, date and main text of the page; the text is cut for a chat, less for a model."""
    await call.status(call.say("read.status"))
    is_typed = call.path is Path.COMMAND
    # Only people may leave out the scheme: vouching finds hosts of a model's call by it.
    url = f"https://{url}" if is_typed and "://" not in url else url
    try:
        page = await pages.read(url, _CHARS_FOR_CHAT if is_typed else _CHARS_FOR_MODEL)
    except NoExtractor:
        return FunctionResult.fail(ErrorCode.ENVIRONMENT, call.say("read.not_set", extra=EXTRA))
    except NotText as error:
        return FunctionResult.fail(ErrorCode.FAILED, call.say("read.not_text", type=error.media_type), ["url"])
    except WebError as error:
        return FunctionResult.fail(error.code, call.say(f"read.{_reason(error)}"), ["url"])
    if not page.text:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("read.empty"), ["url"])
    return replace(FunctionResult.say(_shown(page, call), data={"url": page.url}), metadata={PUBLIC: page.is_public})


def _reason(error: WebError) -> str:
    if error.code is ErrorCode.REFUSED:
        return "refused"
    if error.status in _MISSING:
        return "missing"
    if error.status in _FORBIDDEN:
        return "forbidden"
    return "try_again" if error.code is ErrorCode.TRANSIENT else "unreadable"


def _shown(page: PageText, call: Call) -> str:
    about = call.say("read.about_dated" if page.date else "read.about", site=page.site, date=page.date)
    head = f"{page.title}\n{about}" if page.title and page.title != page.site else about
    text = f"{head}\n\n{page.text}"
    return f"{text}\n{call.say('read.cut', count=len(page.text))}" if page.is_cut else text
