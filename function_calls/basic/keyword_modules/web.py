"""GET, POST, PUT, PATCH, GRAPHQL, request headers, LLM and REWRITE."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules.memory import get_session
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.model import ModelOfScripts
from function_calls.basic.run.session import session_variables
from function_calls.basic.run.web import WebOfScripts, in_folder, text_in
from function_calls.basic.values import text_of
from services.sandbox.workspace import Workspaces
from services.scripts.memory import ScriptMemory

_READS = ("reads_outside", "sends_out")
_CHANGES = ("reads_outside", "reaches_out", "sends_out")


@basic_keyword("GET {url}", effect="read", touches=_READS)
async def get(run: ScriptRun, url: Value, *, web: WebOfScripts, memory: ScriptMemory, workspaces: Workspaces) -> Value:
    """Read a web page: JSON as a value with members, other content as text. Also a session variable, `GET
    "session.step"`, a fact about the member, `GET "user.name"`, `GET "user.message"`, and a file of this chat by its
    name, which is NULL if there is none."""
    place = _address(url)
    group, dot, name = place.partition(".")
    if dot and group in ("session", "user") and name.isidentifier():
        if group == "session":
            return await get_session(run, name, memory=memory)
        run.knows_member_text = True
        facts = session_variables(run.context, run.call, run.bot)["user"]
        return run.context.text if name == "message" else facts.get(name.casefold())
    if ":" in place or not place.strip():
        return await web.get(run, place)
    try:
        content = await in_folder(run, workspaces, place, lambda folder: folder.read(place))
    except RunError as error:
        if error.code is RunCode.NO_SUCH_THING:
            return None
        raise
    run.has_outside_text = True
    return text_in(run, content, place)


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


@basic_keyword("POLISH MESSAGE {text} [, {tone}]", effect="read")
async def polish(run: ScriptRun, text: Value, tone: Value = "friendly", *, model: ModelOfScripts) -> Value:
    """The text in another tone: a map with `polished` and `success`."""
    prompt = f"Rewrite the text in the data in this tone: {text_of(tone)}. Keep its language and meaning."
    return {"success": True, "polished": await model.ask(run, prompt, text_of(text)), "changes": []}


@basic_keyword("ANALYZE SENTIMENT {text}", "ANALYZE SENTIMENT {session}, {text}", effect="read")
async def sentiment(run: ScriptRun, text: Value, session: Value = None, *, model: ModelOfScripts) -> Value:
    """The model's judgement of a text: a map with `overall` (positive, neutral or negative), `score` (-1 to 1),
    `urgency` (normal or urgent), `escalation_risk` (low, medium or high) and `emoji`."""
    said = (
        "overall: positive, neutral or negative; score: a number from -1 to 1; urgency: normal or urgent; "
        "escalation_risk: low, medium or high; emoji: one character"
    )
    return await model.judged(run, f"Judge the mood of the text. {said}.", text_of(text), _SENTIMENT)


_SENTIMENT = ("overall", "score", "urgency", "escalation_risk", "emoji")


@basic_keyword("SCORE LEAD {lead}", "AI SCORE LEAD {lead}", effect="read")
async def score_lead(run: ScriptRun, lead: Value, *, model: ModelOfScripts) -> Value:
    """The model's judgement of a customer's interest: a map with `score` (0 to 100), `grade` (A to D) and `reason`."""
    said = "score: a number from 0 to 100; grade: A, B, C or D; reason: one sentence"
    return await model.judged(
        run, f"Judge how likely this person buys. {said}.", text_of(lead), ("score", "grade", "reason")
    )


@basic_keyword("GET TIPS {session}, {text}", "GET SMART REPLIES {session} [, {text}]", effect="read")
async def suggestions(run: ScriptRun, session: Value, text: Value = None, *, model: ModelOfScripts) -> Value:
    """Up to three suggestions of the model for a reply to a text, by default the member's message: a map with `items`,
    each with `text` and `content`."""
    prompt = "Suggest three short replies to the text, each on its own line, without numbers."
    said = (await model.ask(run, prompt, run.context.text if text is None else text_of(text))).splitlines()
    lines = [line.strip("-*• ") for line in said if line.strip("-*• ")][:3]
    items = [{"text": one, "content": one, "type": "reply", "category": "reply", "priority": 3} for one in lines]
    return {"success": bool(items), "items": items}
