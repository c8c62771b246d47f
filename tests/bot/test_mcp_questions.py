"""Questions to users of MCP clients, with the official client over HTTP, in the current and the previous protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ElicitRequestFormParams, ElicitResult

from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import Choice, FunctionResult, Message
from services.refs import ChatRef
from services.store.turns.ledger import LEDGER
from tests.fakes.asking import Asking
from tests.fakes.functions import CITY, Recorder
from tests.fakes.kept import kept
from tests.harness.mcp_programs import ERAS, LEGACY, MODERN, Programs, code, programs, texts
from tests.harness.mcp_servers import until_true

EN = Texts().of("en")
DROPPED = EN.say("questions.dropped")
UNANSWERED = EN.say("questions.unanswered")
OTHERS = ChatRef("test", "bot", "others")
_SECONDS = 30


class User:
    """The client's user: returns `answers` one after the other and records the questions."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        answer = self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        if answer in ("decline", "cancel"):
            return ElicitResult(action=answer)
        return ElicitResult(action="accept", content=answer if isinstance(answer, dict) else {"answer": answer})

    @property
    def fields(self) -> list[Any]:
        """Fields of each form."""
        return [one.requested_schema["properties"] for one in self.asked]

    @property
    def messages(self) -> list[str]:
        return [one.message for one in self.asked]


@asynccontextmanager
async def asking(
    functions: Sequence[object], user: User, mode: str = MODERN, options: Mapping[str, Any] | None = None, **more: Any
) -> AsyncIterator[tuple[Programs, Client]]:
    """A bot with `functions`, and a client that passes questions to `user`."""
    async with (
        asyncio.timeout(_SECONDS),
        programs(functions, **more) as served,
        served.client(mode=mode, elicitation_callback=user, **(options or {})) as client,
    ):
        yield served, client


async def called(
    functions: Sequence[object],
    user: User,
    mode: str,
    name: str,
    arguments: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    """Result of a call of `name` by a client that passes questions to `user`."""
    async with asking(functions, user, mode, **more) as (_, client):
        return await client.call_tool(name, dict(arguments or {}))


@pytest.mark.requirement("B9", "B10")
@pytest.mark.parametrize("mode", ERAS)
async def test_what_a_run_asks_in_its_midst_is_put_to_the_user_and_leads_back(mode: str) -> None:
    fill, user = Asking(questions=["One?", "Two?"], first="Let us begin.", effect="once"), User("a", " cancel ")
    async with asking([fill.spec], user, mode) as (served, client):
        result = await client.call_tool("fill")
        codes = [row[1] for row in await kept(served.group, LEDGER.c.key, LEDGER.c.code)]
    assert user.messages == ["Let us begin.\nOne?", "Two?"]
    assert user.fields == [{"answer": {"type": "string", "title": "Answer"}}] * 2
    # There is a button for cancelling, so the word is an answer.
    assert fill.runs == [("began", ""), ("answered", "a"), ("answered", "cancel")]
    assert texts(result) == ["Let us begin.", "Thanks: a, cancel.", '["a","cancel"]']
    assert not result.is_error
    assert codes == ["asked", "asked", "ok"]


@pytest.mark.parametrize("mode", ERAS)
async def test_what_a_function_within_another_asks_leads_back_to_that(mode: str) -> None:
    fill, user = Asking(questions=["One?", "Two?"]), User("a", "b")

    async def outer(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        return await call.invoke("fill", {})

    result = await called([fill.spec, Recorder("outer", does=outer).spec], user, mode, "outer")
    assert (texts(result)[0], user.messages) == ("Thanks: a, b.", ["One?", "Two?"])
    assert fill.runs == [("began", ""), ("answered", "a"), ("answered", "b")]


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("how", ["decline", "cancel"])
async def test_who_declines_ends_the_run_as_a_member_who_cancels(mode: str, how: str) -> None:
    fill, silent, user = Asking(), Asking("silent", on_cancel=None), User(how, how)
    async with asking([fill.spec, silent.spec], user, mode) as (_, client):
        results = [await client.call_tool(name) for name in ("fill", "silent")]
    assert [one.runs[1:] for one in (fill, silent)] == [[("cancelled", "")]] * 2
    assert [texts(one) for one in results] == [["Put away.\n[cancelled]"], [f"{DROPPED}\n[cancelled]"]]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_missing_argument_is_asked_for_once(mode: str) -> None:
    parameters = {"days": {"type": "integer", "description": "How many", "required": True, "minimum": 1}}
    act = Recorder("act", parameters, ask={"days": "For how many days?"})
    user = User(3)
    result = await called([act.spec], user, mode, "act")
    assert (texts(result), act.runs, user.messages) == (["done"], [{"days": 3}], ["For how many days?"])
    assert user.fields[0]["answer"] == {
        "type": "integer", "title": "days", "description": "How many", "minimum": 1
    }  # fmt: skip
    asks = {"days": "For how many days?"}
    wrong, user = Recorder("act", parameters, ask=asks), User("many")
    result = await called([wrong.spec], user, mode, "act")
    assert (code(result), wrong.runs, len(user.asked)) == ("bad_arguments", [], 1)
    left, user = Recorder("act", parameters, ask=asks), User("decline")
    result = await called([left.spec], user, mode, "act")
    assert (code(result), left.runs) == ("cancelled", [])


async def test_an_argument_that_nobody_is_to_be_asked_for_is_the_models_to_put_right() -> None:
    act, user = Recorder("act", CITY), User("Oslo")
    result = await called([act.spec], user, MODERN, "act")
    assert (code(result), user.asked, act.runs) == ("missing_arguments", [], [])


async def test_one_missing_argument_after_another() -> None:
    parameters = {
        "city": {"type": "string", "required": True},
        "unit": {"type": "string", "required": True, "enum": [f"u{number}" for number in range(12)]},
    }
    act, user = Recorder("act", parameters, ask={"city": "Where?", "unit": "Which unit?"}), User("Oslo", "u11")
    result = await called([act.spec], user, MODERN, "act")
    assert (texts(result), act.runs) == (["done"], [{"city": "Oslo", "unit": "u11"}])
    assert user.fields[1]["answer"]["enum"] == [f"u{number}" for number in range(12)]


async def test_a_secret_is_not_asked_for_in_a_form() -> None:
    parameters, user = {"code": {"type": "string", "required": True}}, User("1234")
    act = Recorder("act", parameters, ask={"code": "Your code?"}, sensitive=["code"])
    result = await called([act.spec], user, MODERN, "act")
    assert (code(result), user.asked, act.runs) == ("missing_arguments", [], [])


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(("says", "why", "runs"), [("yes", "", 1), ("no", "cancelled", 0), ("decline", "cancelled", 0)])
async def test_a_yes_before_a_run_is_the_users(mode: str, says: str, why: str, runs: int) -> None:
    act, user = Recorder("act", CITY, effect="once", confirm="Really {city}?"), User(says)
    result = await called([act.spec], user, mode, "act", {"city": "Oslo"})
    assert (code(result), len(act.runs), user.messages) == (why, runs, ["Really Oslo?"])
    titled = [{"const": "yes", "title": "Yes"}, {"const": "no", "title": "No"}]
    assert user.fields[0]["answer"]["oneOf"] == titled


APPROVALS = [
    pytest.param({"approval": "asker"}, {}, True, id="of the asker"),
    pytest.param({"approval": "member"}, {}, False, id="of a role that the caller has"),
    pytest.param({"approval": "admin"}, {}, False, id="of a role"),
    pytest.param({}, {"approvals": {"required": [{"functions": ["act"], "by": "member"}]}}, False, id="by a rule"),
]


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(("options", "settings", "is_asked"), APPROVALS)
async def test_only_what_the_asker_alone_may_allow_is_put_to_the_user(
    mode: str, options: dict[str, Any], settings: dict[str, Any], is_asked: bool
) -> None:
    act, again = Recorder("act", effect="once", **options), User()

    async def yes() -> str:
        offered = again.fields[-1]["answer"]["oneOf"]
        assert [one["title"] for one in offered] == ["Allow", "Refuse"]
        return str(offered[0]["const"])

    again.answers = [yes, yes]
    clients = [{"name": "editor", "chat": "test:bot:family", "role": "admin"}]
    async with asking([act.spec], again, mode, clients=clients, settings=settings) as (_, client):
        results = [await client.call_tool("act") for _ in range(2)]
    assert [code(result) for result in results] == (["", ""] if is_asked else ["asked", "asked"])
    # Each run asks: there are no permanent approvals.
    assert (len(again.asked), len(act.runs)) == ((2, 2) if is_asked else (0, 0))


@pytest.mark.parametrize("mode", ERAS)
async def test_a_no_to_an_approval_is_a_refusal(mode: str) -> None:
    act, user = Recorder("act", effect="once", approval="asker"), User("decline")
    result = await called([act.spec], user, mode, "act")
    assert (code(result), act.runs) == ("refused", [])


async def test_an_answer_is_the_callers_own_words() -> None:
    sends = Recorder("sends", effect="once", touches="reaches_out")

    async def acts(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        return FunctionResult.ask("Where to?") if call.resumed is None else await call.invoke("sends", {})

    act, user = Recorder("act", does=acts, effect="once"), User("there")
    result = await called([sends.spec, act.spec], user, MODERN, "act")
    assert (code(result), len(sends.runs), len(user.asked)) == ("", 1, 1)


@pytest.mark.parametrize(("says", "answer"), [("b", "b"), ({"answer": "b", "other": "green"}, "green")])
async def test_beside_choices_something_else_may_be_said(says: Any, answer: str) -> None:
    fill, user = Asking(choices=[Choice("Black", "b"), Choice("White", "w")]), User(says)
    await called([fill.spec], user, MODERN, "fill")
    assert fill.runs[1] == ("answered", answer)
    assert list(user.fields[0]) == ["answer", "other"]


@pytest.mark.parametrize("mode", ERAS)
async def test_what_is_no_answer_is_asked_for_again_but_not_for_ever(mode: str) -> None:
    async def picks(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        if call.resumed is None:
            return FunctionResult.ask("Which?", choices=[Choice("a", "a"), Choice("b", "b")], only_choices=True)
        return FunctionResult.say(f"{call.resumed.kind} {call.resumed.answer}")

    pick, user = Recorder("pick", does=picks), User({}, {"answer": ["b"]}, "b")
    result = await called([pick.spec], user, mode, "pick")
    assert (texts(result), len(user.asked)) == (["answered b"], 3)
    assert (user.fields[0]["answer"]["enum"], list(user.fields[0])) == (["a", "b"], ["answer"])
    user = User("c", "c", "c")
    result = await called([pick.spec], user, mode, "pick")
    assert (texts(result), len(user.asked)) == ([f"{UNANSWERED}\n[timeout]"], 3)


@pytest.mark.parametrize("mode", ERAS)
async def test_what_nobody_answers_in_time_ends_the_run(mode: str) -> None:
    fill, never = Asking(), asyncio.Event()

    async def thinks() -> str:
        await never.wait()
        return "too late"

    user = User(thinks)
    async with asking([fill.spec], user, mode) as (served, client):
        calling = asyncio.create_task(client.call_tool("fill"))
        await until_true(lambda: user.asked)
        await served.group.clock.advance(301)
        await until_true(lambda: len(fill.runs) == 2)
        never.set()
        result = await calling
    assert fill.runs[1] == ("expired", "")
    assert code(result) == ("timeout" if mode == LEGACY else "expired")


@pytest.mark.parametrize("mode", ERAS)
async def test_the_time_in_which_the_user_thinks_is_not_the_calls(mode: str) -> None:
    fill = Asking(questions=["One?", "Two?"])
    user = User()
    async with asking([fill.spec], user, mode) as (served, client):

        async def thinks() -> str:
            await served.group.clock.advance(290)
            return "a"

        user.answers = [thinks, thinks]
        result = await client.call_tool("fill")
        # Each run had its full time, although the two answers took longer than the timeout of a call.
        assert fill.recorder.calls[-1].deadline - served.group.clock.monotonic() > 25
    assert texts(result)[0] == "Thanks: a, a."


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_goes_away_ends_the_run_as_if_nobody_had_answered(mode: str) -> None:
    fill, put = Asking(effect="once"), asyncio.Event()

    async def thinks() -> str:
        put.set()
        await asyncio.Event().wait()
        return "never"

    async with asking([fill.spec], User(thinks), mode) as (served, client):
        calling = asyncio.create_task(client.call_tool("fill"))
        await put.wait()
        calling.cancel()
        if mode == MODERN:
            # There is no notification; the next request just does not come.
            await served.group.clock.advance(301)
        await until_true(lambda: len(fill.runs) == 2)
        await served.group.daemon.direct_calls.settled()
        codes = sorted(row[1] for row in await kept(served.group, LEDGER.c.key, LEDGER.c.code))
    assert (fill.runs[1], codes) == (("expired", ""), ["asked", "ok"])


async def test_a_bot_that_stops_ends_what_waits_and_knows_no_answer_to_it_later(tmp_path: Path) -> None:
    fill = Asking(effect="once")
    async with asking([fill.spec], User(), home=tmp_path) as (served, client):
        asked = await client.session.call_tool("fill", allow_input_required=True)
        assert asked.result_type == "input_required"
        await served.web.stop()
        codes = sorted(row[1] for row in await kept(served.group, LEDGER.c.key, LEDGER.c.code))
    assert (fill.runs, codes) == ([("began", ""), ("expired", "")], ["asked", "ok"])
    async with asking([fill.spec], User(), home=tmp_path) as (_, client):
        result = await late(client, asked)
    assert (code(result), len(fill.runs)) == ("expired", 2)


async def late(client: Client, asked: Any, name: str = "fill", arguments: dict[str, Any] | None = None) -> Any:
    """Result of the answer to `asked`."""
    responses = {key: ElicitResult(action="accept", content={"answer": "a"}) for key in asked.input_requests}
    return await client.session.call_tool(
        name, arguments, input_responses=responses, request_state=asked.request_state, allow_input_required=True
    )


async def test_an_answer_counts_once_for_its_own_call_and_its_own_program() -> None:
    fill, clients = Asking(parameters=CITY), [{"name": "editor"}, {"name": "other", "token": "the-token-of-another"}]
    async with (
        asking([fill.spec], User(), clients=clients) as (served, client),
        served.client("the-token-of-another", elicitation_callback=User()) as other,
    ):
        oslo = {"city": "Oslo"}
        asked = await client.session.call_tool("fill", oslo, allow_input_required=True)
        wrong = [await late(other, asked, arguments=oslo), await late(client, asked, arguments={"city": "Rome"})]
        right = await late(client, asked, arguments=oslo)
        again = await late(client, asked, arguments=oslo)
    assert [code(one) for one in [*wrong, again]] == ["expired"] * 3
    assert texts(right)[0] == "Thanks: a."
    assert len(fill.runs) == 2


async def test_a_tampered_request_state_is_an_error_of_the_protocol_and_the_question_stays_open() -> None:
    fill = Asking()
    async with asking([fill.spec], User()) as (_, client):
        asked = await client.session.call_tool("fill", allow_input_required=True)
        state = asked.request_state
        for wrong in (state[:-1] + ("a" if state[-1] != "a" else "b"), "x" + state[1:] + "x", "", "made up", "💥"):
            with pytest.raises(MCPError) as raised:
                await late(client, asked.model_copy(update={"request_state": wrong}))
            assert raised.value.code == INVALID_PARAMS
        right = await late(client, asked)
    assert texts(right)[0] == "Thanks: a."


async def test_no_program_can_keep_everybody_else_from_asking_or_calling() -> None:
    fill, clients = Asking(), [{"name": "editor"}, {"name": "other", "token": "the-token-of-another"}]
    async with (
        asking([fill.spec], User(), clients=clients) as (served, client),
        served.client("the-token-of-another", elicitation_callback=User("a")) as other,
    ):
        results = [await client.session.call_tool("fill", allow_input_required=True) for _ in range(17)]
        theirs = await other.call_tool("fill")
    assert [one.result_type for one in results] == ["input_required"] * 16 + ["complete"]
    assert texts(theirs)[0] == "Thanks: a."


@pytest.mark.parametrize("mode", ERAS)
async def test_who_cannot_be_asked_or_may_not_be_is_refused_as_ever(mode: str) -> None:
    fill, user = Asking(), User("a")
    async with asyncio.timeout(_SECONDS), programs([fill.spec]) as served:
        result = await served.call("fill", mode=mode)
    assert (code(result), fill.runs[1:]) == ("refused", [("expired", "")])
    result = await called([fill.spec], user, mode, "fill", clients=[{"name": "editor", "elicitation": False}])
    assert (code(result), user.asked) == ("refused", [])


@pytest.mark.parametrize("mode", ERAS)
async def test_a_run_that_asks_without_end_is_stopped(mode: str) -> None:
    fill, user = Asking(questions=["More?"] * 60), User(*["more"] * 60)
    async with asking([fill.spec], user, mode, {"input_required_max_rounds": 100}) as (_, client):
        result = await client.call_tool("fill")
    assert (code(result), len(user.asked)) == ("failed", 50)


async def test_rights_are_those_of_the_moment_when_the_answer_comes() -> None:
    fill = Asking(roles="admin")
    clients = [{"name": "editor", "role": "admin"}]
    async with asking([fill.spec], User(), clients=clients) as (served, client):
        asked = await client.session.call_tool("fill", allow_input_required=True)
        lesser = served.settings.mcp.serve.clients[0].model_copy(update={"role": "member"})
        assert served.web.programs is not None
        served.web.programs.use([lesser])
        result = await late(client, asked)
    assert code(result) == "refused"
    assert fill.runs == [("began", ""), ("expired", "")]


@pytest.mark.parametrize("mode", ERAS)
async def test_what_is_for_others_is_sent_before_the_user_has_answered(mode: str) -> None:
    sent: list[str] = []

    async def tells(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        if call.resumed is None:
            return replace(FunctionResult.ask("Go on?"), messages=(Message("it begins", to=OTHERS),))
        return FunctionResult(messages=(Message("it ends", to=OTHERS),))

    act, user = Recorder("act", does=tells, effect="once"), User()
    async with asking([act.spec], user, mode) as (served, client):

        async def looks() -> str:
            await served.group.settle()
            sent.extend(one.text for one in served.group.platform.sent)
            return "yes"

        user.answers = [looks]
        await client.call_tool("act")
        await served.group.settle()
        after = [one.text for one in served.group.platform.sent]
    assert (sent, after) == (["it begins"], ["it begins", "it ends"])


async def test_a_stream_that_breaks_off_ends_the_run_though_nobody_cancels_it() -> None:
    fill = Asking(effect="once")
    async with asyncio.timeout(_SECONDS), programs([fill.spec]) as served, served.http() as http:
        await put_by_hand(http, "fill", {})
        await until_true(lambda: len(fill.runs) == 2)
    assert fill.runs[1] == ("expired", "")


@pytest.mark.parametrize(("mode", "is_asked"), [({}, True), ({"form": {}, "url": {}}, True), ({"url": {}}, False)])
async def test_a_client_that_puts_no_forms_to_its_user_is_not_asked(mode: Any, is_asked: bool) -> None:
    fill = Asking()
    async with asyncio.timeout(_SECONDS), programs([fill.spec]) as served, served.http() as http:
        said = await put_by_hand(http, "fill", mode)
    assert (said.get("method"), "result" in said) == (("elicitation/create", False) if is_asked else (None, True))


async def test_a_client_of_before_has_the_labels_of_choices_as_it_knows_them() -> None:
    act = Recorder("act", effect="once", confirm="Really?")
    async with asyncio.timeout(_SECONDS), programs([act.spec]) as served, served.http() as http:
        said = await put_by_hand(http, "act", {}, "2025-06-18")
    answer = said["params"]["requestedSchema"]["properties"]["answer"]
    assert (answer["enum"], answer["enumNames"]) == (["yes", "no"], ["Yes", "No"])


async def put_by_hand(http: Any, name: str, mode: dict[str, Any], version: str = "2025-11-25") -> Any:
    """First event of a call of `name`; the connection is then no longer read."""
    headers = {"accept": "application/json, text/event-stream"}
    capabilities = {"elicitation": mode}
    about = {"name": "raw", "version": "1"}
    hello = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": about}
    begun = await http.post("/mcp", json=request(1, "initialize", hello), headers=headers)
    headers["mcp-session-id"] = begun.headers["mcp-session-id"]
    call = request(2, "tools/call", {"name": name, "arguments": {}})
    async with http.stream("POST", "/mcp", json=call, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: {") and ('"method":"elicitation' in line or '"result"' in line):
                return json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream ended without a word")


async def test_a_bot_that_stops_ends_what_waits_on_a_stream() -> None:
    fill, put = Asking(effect="once"), asyncio.Event()

    async def thinks() -> str:
        put.set()
        await asyncio.Event().wait()
        return "never"

    async with asking([fill.spec], User(thinks), LEGACY) as (served, client):
        calling = asyncio.create_task(client.call_tool("fill"))
        await put.wait()
        await served.web.stop()
        assert fill.runs[1] == ("expired", "")
        calling.cancel()


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
