"""GET, POST, PUT, PATCH, GRAPHQL, request headers, LLM and REWRITE."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.model import ModelOfScripts
from function_calls.basic.run.web import WebOfScripts
from function_calls.basic.values import text_of

_READS = ("reads_outside", "sends_out")
_CHANGES = ("reads_outside", "reaches_out", "sends_out")


@basic_keyword("GET {url}", effect="read", touches=_READS)
async def get(run: ScriptRun, url: Value, *, web: WebOfScripts) -> Value:
    """Read a page of the web: JSON as a value with members, all else as text."""
    return await web.get(run, _address(url))


@basic_keyword("POST {url} [, {data}]", effect="once", touches=_CHANGES)
async def post(run: ScriptRun, url: Value, data: Value = None, *, web: WebOfScripts) -> Value:
    """Send something to a server of the web, and give what it answers. A map or a list goes as JSON."""
    return await web.send(run, "POST", _address(url), data)


@basic_keyword("PUT {url} [, {data}]", effect="once", touches=_CHANGES)
async def put(run: ScriptRun, url: Value, data: Value = None, *, web: WebOfScripts) -> Value:
    """Put something in the place of what a server of the web has there."""
    return await web.send(run, "PUT", _address(url), data)


@basic_keyword("PATCH {url} [, {data}]", effect="once", touches=_CHANGES)
async def patch(run: ScriptRun, url: Value, data: Value = None, *, web: WebOfScripts) -> Value:
    """Change a part of what a server of the web has there."""
    return await web.send(run, "PATCH", _address(url), data)


@basic_keyword("GRAPHQL {url}, {query} [, {variables}]", effect="once", touches=_CHANGES)
async def graphql(run: ScriptRun, url: Value, query: Value, variables: Value = None, *, web: WebOfScripts) -> Value:
    """Ask a GraphQL server. Gives its whole answer: `answer.data`, and `answer.errors` where something was wrong."""
    if variables is not None and not isinstance(variables, dict):
        raise RunError(RunCode.WRONG_TYPE, 'the variables of GRAPHQL are a map, such as {"id": 1}')
    asked = {"query": text_of(query), **({"variables": variables} if variables else {})}
    return await web.send(run, "POST", _address(url), asked)


@basic_keyword("SET HEADER {name:word} ( = | AS ) {value}", "SET HEADER {name}, {value}", effect="read")
async def set_header(run: ScriptRun, name: Value, value: Value, *, web: WebOfScripts) -> None:
    """Let the requests that follow in this run bear a header, such as a key for the server."""
    web.set_header(run, text_of(name), text_of(value))


@basic_keyword("CLEAR HEADERS", effect="read")
async def clear_headers(run: ScriptRun, *, web: WebOfScripts) -> None:
    """Let the requests that follow bear no headers of the script's own."""
    web.clear_headers(run)


def _address(url: Value) -> str:
    if not isinstance(url, str):
        raise RunError(RunCode.WRONG_TYPE, 'a web address is a text, such as "https://api.example.com/news"')
    return url


@basic_keyword("LLM {prompt} [, {about}]", effect="read")
async def llm(run: ScriptRun, prompt: Value, about: Value = None, *, model: ModelOfScripts) -> Value:
    """What the language model writes when it is told to: `LLM "Put this in one sentence", page`. What comes from
    outside belongs behind the comma, where it is taken as information."""
    return await model.ask(run, text_of(prompt), text_of(about))


@basic_keyword("REWRITE {text}", effect="read")
async def rewrite(run: ScriptRun, text: Value, *, model: ModelOfScripts) -> Value:
    """A text in better words of the same meaning."""
    return await model.rewrite(run, text_of(text))
