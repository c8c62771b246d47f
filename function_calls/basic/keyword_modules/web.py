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
    """Read a web page: JSON as a value with members, other content as text."""
    return await web.get(run, _address(url))


@basic_keyword("POST {url} [, {data}]", effect="once", touches=_CHANGES)
async def post(run: ScriptRun, url: Value, data: Value = None, *, web: WebOfScripts) -> Value:
    """Send a POST request and return the response. A map or a list is sent as JSON."""
    return await web.send(run, "POST", _address(url), data)


@basic_keyword("PUT {url} [, {data}]", effect="once", touches=_CHANGES)
async def put(run: ScriptRun, url: Value, data: Value = None, *, web: WebOfScripts) -> Value:
    """Send a PUT request to replace a resource on a web server."""
    return await web.send(run, "PUT", _address(url), data)


@basic_keyword("PATCH {url} [, {data}]", effect="once", touches=_CHANGES)
async def patch(run: ScriptRun, url: Value, data: Value = None, *, web: WebOfScripts) -> Value:
    """Send a PATCH request to change a part of a resource on a web server."""
    return await web.send(run, "PATCH", _address(url), data)


@basic_keyword("GRAPHQL {url}, {query} [, {variables}]", effect="once", touches=_CHANGES)
async def graphql(run: ScriptRun, url: Value, query: Value, variables: Value = None, *, web: WebOfScripts) -> Value:
    """Query a GraphQL server. Returns the whole response: `answer.data`, and `answer.errors` if there were errors."""
    if variables is not None and not isinstance(variables, dict):
        raise RunError(RunCode.WRONG_TYPE, 'the variables of GRAPHQL must be a map, such as {"id": 1}')
    asked = {"query": text_of(query), **({"variables": variables} if variables else {})}
    return await web.send(run, "POST", _address(url), asked)


@basic_keyword("SET HEADER {name:word} ( = | AS ) {value}", "SET HEADER {name}, {value}", effect="read")
async def set_header(run: ScriptRun, name: Value, value: Value, *, web: WebOfScripts) -> None:
    """Add a header, such as an API key, to the following requests of this run."""
    web.set_header(run, text_of(name), text_of(value))


@basic_keyword("CLEAR HEADERS", effect="read")
async def clear_headers(run: ScriptRun, *, web: WebOfScripts) -> None:
    """Remove the headers that the script has set from the following requests."""
    web.clear_headers(run)


def _address(url: Value) -> str:
    if not isinstance(url, str):
        raise RunError(RunCode.WRONG_TYPE, 'a web address must be a text, such as "https://api.example.com/news"')
    return url


@basic_keyword("LLM {prompt} [, {about}]", effect="read")
async def llm(run: ScriptRun, prompt: Value, about: Value = None, *, model: ModelOfScripts) -> Value:
    """The language model's response to an instruction: `LLM "Put this in one sentence", page`. Pass content from
    outside after the comma, where the model treats it as data."""
    return await model.ask(run, text_of(prompt), text_of(about))


@basic_keyword("REWRITE {text}", effect="read")
async def rewrite(run: ScriptRun, text: Value, *, model: ModelOfScripts) -> Value:
    """The text in better wording with the same meaning."""
    return await model.rewrite(run, text_of(text))
