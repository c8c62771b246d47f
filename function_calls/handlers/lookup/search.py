"""Web search."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.failures import not_reached
from function_calls.spec import FunctionResult
from function_calls.turn import FOUND_URLS, PUBLIC
from services.refs import JsonObject
from services.web.http import WebError
from services.web.search import Answer, Hit, WebSearch

_BUSY = 429
_Query = Annotated[str, Field(description="What to look for", min_length=1, max_length=400, pattern=r"\S")]


@tool_function(
    description="Search the web for current or unknown facts",
    examples=(
        "search the web for {query}",
        "search the internet for {query}",
        "search online for {query}",
        "do a web search for {query}",
        "run an internet search on {query}",
        "上网搜索{query}",
        "搜一下{query}",
        "在网上查一查{query}",
    ),
    commands=("search", "ask", "搜索"),
    tags="web",
    touches=("reads_outside", "sends_out"),
    effect="read",
    timeout_seconds=110,
    ask={"query": "@search.ask_query"},
)
async def search(context: MessageContext, query: _Query, *, web: WebSearch, call: Call) -> FunctionResult:
    """Search the web. Results contain complete links."""
    await call.status(call.say("search.status", query=query))
    try:
        answer = await web.search(query, call.profile.texts.language)
    except WebError as error:
        failed = not_reached(error, "search", call.profile.texts)
        return failed.with_error_text(call.say("search.busy")) if error.status == _BUSY else failed
    if not answer.text and not answer.hits:
        return FunctionResult.say(call.say("search.nothing", query=query), data={"hits": []})
    found = FunctionResult.say(_text(answer, call), data=_data(answer))
    return replace(found, metadata={PUBLIC: True, FOUND_URLS: [hit.url for hit in answer.hits]})


def _text(answer: Answer, call: Call) -> str:
    if not answer.text:
        return "\n".join(_with_snippet(number, hit, call) for number, hit in enumerate(answer.hits, 1))
    lines = [answer.text]
    if answer.hits:
        lines.append(call.say("search.sources"))
        lines += [_source(number, hit, call) for number, hit in enumerate(answer.hits, 1)]
    return "\n".join(lines)


def _source(number: int, hit: Hit, call: Call) -> str:
    return call.say("search.source", number=hit.number or number, title=hit.title, url=hit.url)


def _with_snippet(number: int, hit: Hit, call: Call) -> str:
    parts = [f"{number}. {hit.title}", hit.snippet, hit.url]
    return "\n".join(part for part in parts if part)


def _data(answer: Answer) -> JsonObject:
    hits = [{"title": hit.title, "url": hit.url, "snippet": hit.snippet} for hit in answer.hits]
    return {"answer": answer.text, "hits": hits} if answer.text else {"hits": hits}
