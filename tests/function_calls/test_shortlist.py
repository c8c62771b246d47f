"""Shortlists of many functions: the selection for a model, its search for others, and unchanged permissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.chat_settings import ResolvedFunction
from function_calls.registry import BotFunctions
from function_calls.rounds.shortlist import Shortlist
from services.llm.encoding import tokens_of
from services.llm.model import ModelError, ModelRequest, Offer, OfferedFunction
from services.refs import ChatRef, ErrorCode, ReasonCode, Role
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import Scripted, call, calls, says
from tests.fakes.wired_model import at_hand, encoded
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.function_calls.routing import Routing, said

OTHER_CHAT = ChatRef("test", "bot", "neighbours")
OFF = ResolvedFunction(
    enabled=False, roles=None, timeout_seconds=None, require_at=None, scope=None, layers={"enabled": "functions.x"}
)
pytestmark = [pytest.mark.requirement("D28"), pytest.mark.usefixtures("each_protocol")]

SIX = {"shortlist": 6, "function_tokens": 0}
"""Six functions in addition to the pinned ones: four independent of the message, and up to two that match."""
CORE = ["help", "find_functions", "fetch_apple", "fetch_bread", "fetch_cheese", "fetch_doll"]
WORDS = [
    "apple",
    "bread",
    "cheese",
    "doll",
    "engine",
    "feather",
    "guitar",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "mirror",
    "needle",
    "onion",
]


def shelf(**options: Any) -> list[Recorder]:
    """Fifteen functions with nothing in common but the verb."""
    return [Recorder(f"fetch_{word}", description=f"Fetch the {word}.", gives=word, **options) for word in WORDS]


def weather(**options: Any) -> Recorder:
    return Recorder("weather", CITY, description="Tell the weather.", gives="cold", **options)


def many(*further: Recorder, script: Sequence[Scripted] = (), **options: Any) -> Routing:
    """A chat with the fifteen functions, help, and `further` ones."""
    help_ = Recorder("help", description="List what there is.")
    options["settings"] = {**SIX, **options.get("settings", {})}
    return Routing(help_, *shelf(), *further, script=script, **options)


def offer_of(request: ModelRequest) -> Offer:
    assert request.offer is not None
    return request.offer


def offered(request: ModelRequest) -> list[str]:
    return [function.original for function in offer_of(request).functions]


async def offers(routing: Routing, *messages: Any) -> list[list[str]]:
    """Functions offered with each message, if the model only chats."""
    before = len(routing.model.requests)
    for message in messages:
        routing.model.add(says("Well."))
        await routing.hears(message)
    return [offered(request) for request in routing.model.requests[before:]]


def shared_beginning(bodies: Sequence[bytes]) -> bytes:
    first, last = min(bodies), max(bodies)
    length = next((place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), None)
    return first[:length]


def tokens(request: ModelRequest) -> int:
    """Estimated tokens of the functions on offer."""
    return sum(map(tokens_of, offer_of(request).functions))


@pytest.mark.requirement("B11")
async def test_functions_within_the_limit_are_all_offered_whatever_is_said() -> None:
    routing = Routing(*shelf(), weather())

    assert await offers(routing, "hello", "你好") == [[*(f"fetch_{word}" for word in WORDS), "weather"]] * 2


@pytest.mark.parametrize(("spare", "all_are"), [(-1, False), (0, True)])
async def test_the_limit_is_a_number_of_tokens(spare: int, all_are: bool) -> None:
    exact = sum(map(tokens_of, BotFunctions([one.spec for one in shelf()]).for_models.functions))
    routing = Routing(*shelf(), settings={"function_tokens": exact + spare})

    [request] = await offers(routing, "an apple")
    assert (request == [f"fetch_{word}" for word in WORDS]) is all_are


@pytest.mark.parametrize("tokens_allowed", [400, 600])
async def test_the_offer_fills_the_limit_whether_or_not_a_word_matches(tokens_allowed: int) -> None:
    functions = [Recorder(f"fetch_{word}_{number}", description="Fetch it.") for word in WORDS for number in range(4)]
    routing = Routing(*functions, settings={"function_tokens": tokens_allowed})
    await offers(routing, "hello", "xyz", "an apple")

    assert all(tokens_allowed / 2 < tokens(request) <= tokens_allowed for request in routing.model.requests)


@pytest.mark.requirement("B11")
async def test_beyond_the_limit_matches_are_appended_to_a_stable_core() -> None:
    hello, both, thanks = await offers(many(weather()), "hello", "bring me a guitar and the weather, please", "thanks")

    assert hello == CORE
    assert both[: len(CORE)] == CORE
    assert sorted(both[len(CORE) :]) == ["fetch_guitar", "weather"]
    assert thanks == both


async def test_all_are_always_offered_if_the_settings_say_so() -> None:
    [request] = await offers(many(settings={"shortlist": 0, "function_tokens": 1}), "hello")

    assert request == ["help", *(f"fetch_{word}" for word in WORDS)]


async def test_no_more_are_offered_than_the_settings_say_in_addition_to_the_pinned_ones() -> None:
    [request] = await offers(many(settings={"shortlist": 3}), f"fetch {' '.join(WORDS)}")

    assert len(request) == 2 + 3


async def test_pinned_functions_come_first_and_are_not_counted() -> None:
    pinned = many(settings={"shortlist": 1, "pinned": ("fetch_onion", "nowhere", "fetch_needle")})

    assert await offers(pinned, "a mirror") == [["fetch_onion", "fetch_needle", "find_functions", "fetch_mirror"]]


async def test_a_list_that_is_full_is_built_again_from_the_core_and_the_latest_matches() -> None:
    guitar, onion, kettle = await offers(many(), "a guitar", "an onion", "a kettle")

    assert guitar == [*CORE, "fetch_guitar"]
    assert onion == [*guitar, "fetch_onion"]
    assert kettle == [*CORE, "fetch_kettle"]


async def test_the_functions_that_a_chat_uses_most_belong_to_its_core() -> None:
    routing = many(weather(commands="weather"))
    await offers(routing, "hello")
    await routing.hears("/weather Oslo")

    used, *_, rebuilt = await offers(routing, "hm", "a guitar", "a kettle")
    assert used == [*CORE, "weather"]
    assert rebuilt == [*CORE[:5], "weather", "fetch_kettle"]


async def test_a_command_that_ran_first_is_on_offer_for_what_follows() -> None:
    routing = many(weather(commands="weather"))
    await routing.hears("/weather Oslo")

    assert await offers(routing, "and over there?") == [[*CORE[:5], "weather"]]


async def test_a_function_that_is_not_used_any_more_leaves_the_core() -> None:
    routing = many(weather(commands="weather"))
    await routing.hears("/weather Oslo")

    *_, last = await offers(routing, "a guitar", "a kettle", "a mirror", "an onion", "a needle", "a hammer")
    assert "weather" not in last
    assert last[: len(CORE)] == CORE


async def test_a_function_that_models_may_not_call_takes_no_place_because_it_ran() -> None:
    routing = many(weather(commands="weather", offered_to=["command"]))
    await routing.hears("/weather Oslo")

    assert await offers(routing, "hm") == [CORE]


async def test_functions_that_ran_beyond_the_limit_leave_with_the_next_match() -> None:
    ran = calls(call("fetch_mirror", "a"), call("fetch_needle", "b"), call("fetch_onion", "c"))
    routing = many(script=[ran, says("Well.")])
    await routing.hears("hello")

    assert len(offered(routing.model.requests[1])) == len(CORE) + 3
    [after] = await offers(routing, "a kettle")
    assert len(after) <= 2 + 6
    assert "fetch_kettle" in after


async def test_the_rounds_of_a_turn_offer_the_same() -> None:
    routing = many()
    routing.model.add(calls(call("nowhere", "a")), calls(call("help", "b")), calls(call("help", "c")), says("Well."))
    await routing.hears("a guitar")

    assert [offered(request) for request in routing.model.requests] == [[*CORE, "fetch_guitar"]] * 4


async def test_chats_have_separate_lists() -> None:
    first, elsewhere = await offers(many(), "a guitar", a_message("hi", chat=OTHER_CHAT))

    assert first == [*CORE, "fetch_guitar"]
    assert elsewhere == CORE


async def test_functions_that_only_some_members_may_call_come_last() -> None:
    routing = Routing(weather(roles="admin"), *shelf())
    admin = a_message("hello", sender=a_member("Bo", Role.ADMIN))

    member_is_offered, admin_is_offered = await offers(routing, "hello", admin)
    assert admin_is_offered == [*member_is_offered, "weather"]


async def test_functions_whose_services_are_not_configured_are_not_offered() -> None:
    states = {"is_configured": False}
    spec = weather().spec
    needy = replace(spec, execution=replace(spec.execution, configured=(lambda bot: states["is_configured"],)))
    routing = Routing(needy, *shelf()[:2])

    [before] = await offers(routing, "the weather")
    states["is_configured"] = True
    [after] = await offers(routing, "the weather")
    assert (before, after) == (["fetch_apple", "fetch_bread"], ["weather", "fetch_apple", "fetch_bread"])


async def test_the_function_that_finds_others_names_all_that_there_are_where_the_list_is_short() -> None:
    def finder(routing: Routing) -> OfferedFunction:
        return offer_of(routing.model.requests[0]).by_name["find_functions"]

    few, lots = many(), Routing(*(Recorder(f"function_number_{number}") for number in range(400)))
    await offers(few, "hi")
    await offers(lots, "hi")

    assert finder(few).description.endswith("fetch_needle, fetch_onion.")
    assert len(finder(lots).description) < 250


async def test_what_was_found_is_on_offer_from_the_next_round_on_and_in_the_next_turn() -> None:
    forecast = weather()
    script = [calls(call("find_functions", query="weather report")), calls(call("weather", city="Oslo")), says("Cold.")]
    routing = many(forecast, script=script)

    outcome = await routing.hears("should I wear gloves?")

    first, second, third = (offered(request) for request in routing.model.requests)
    assert (first, second, third) == (first, [*first, "weather"], second)
    found = [{"name": "weather", "description": "Tell the weather."}]
    assert orjson.loads(routing.model.requests[1].messages[-1].content) == {"ok": True, "result": found}
    assert (said(outcome), outcome.reason, outcome.detail) == (["Cold."], ReasonCode.FUNCTION, "weather")
    assert forecast.runs == [{"city": "Oslo"}]
    assert await offers(routing, "ok") == [second]


@pytest.mark.parametrize("error", [ErrorCode.PROVIDER_ERROR, ErrorCode.TIMEOUT])
async def test_what_was_found_is_told_the_model_alone(error: ErrorCode) -> None:
    script = [calls(call("find_functions", query="weather report")), ModelError(error, "out of order")]
    routing = many(weather(), script=script)

    outcome = await routing.hears("should I wear gloves?")

    assert outcome.reason is ReasonCode.MODEL_FAILED
    assert "weather" not in " ".join(said(outcome))


async def test_a_search_that_finds_nothing_says_so() -> None:
    routing = many(script=[calls(call("find_functions", query="zzz")), says("I can't.")])

    await routing.hears("do zzz")

    assert "I found no function for that." in routing.model.requests[1].messages[-1].content


@pytest.mark.requirement("B11")
async def test_a_function_that_is_not_on_offer_may_be_called_all_the_same() -> None:
    onion = Recorder("peel", gives="peeled")
    routing = many(onion, script=[calls(call("peel")), says("Peeled.")])

    outcome = await routing.hears("hi")

    assert "peel" not in offered(routing.model.requests[0])
    assert (said(outcome), len(onion.runs)) == (["Peeled."], 1)
    assert "peel" in offered(routing.model.requests[1])


@pytest.mark.parametrize(
    "option",
    [{"roles": "admin"}, {"scope": "private"}, {"offered_to": ["command"]}, {"activation": "on_request"}],
    ids=lambda option: next(iter(option)),
)
async def test_what_a_model_may_not_call_here_is_neither_offered_nor_found(option: dict[str, Any]) -> None:
    secret = weather(**option)
    routing = many(secret, script=[calls(call("find_functions", query="weather")), says("No.")])

    await routing.hears("tell the weather")

    assert all("weather" not in offered(request) for request in routing.model.requests)
    assert "I found no function for that." in routing.model.requests[1].messages[-1].content
    assert b", weather" not in encoded(routing.model.requests[0])


async def test_a_forbidden_function_is_refused_though_a_model_calls_it_unasked() -> None:
    secret = weather(roles="admin")
    routing = many(secret, script=[calls(call("weather", city="Oslo")), says("No.")])

    await routing.hears("tell the weather")

    assert secret.runs == []
    assert [result.error.code for _, result in routing.recorded if result.error] == [ErrorCode.REFUSED]
    assert "weather" not in offered(routing.model.requests[1])


async def test_what_is_switched_off_leaves_the_offer_within_the_turn() -> None:
    routing = many(weather())

    def switch_off(request: ModelRequest) -> Any:
        assert "weather" in offered(request)
        routing.set_profile(functions={"weather": OFF})
        return calls(call("fetch_apple"))

    routing.model.add(switch_off, says("No."))
    await routing.hears("the weather, please")

    assert "weather" not in offered(routing.model.requests[1])


async def test_members_with_other_rights_in_one_chat_are_offered_what_they_may_call() -> None:
    routing = many(weather(roles="admin"))
    admin = a_message("the weather, please", sender=a_member("Bo", Role.ADMIN))

    first, second, third = await offers(routing, "the weather, please", admin, "the weather, please")

    assert ("weather" in first, "weather" in second, "weather" in third) == (False, True, False)


async def test_the_search_may_be_switched_off_by_an_own_function_of_its_name() -> None:
    own = Recorder("find_functions", description="Find functions of mathematics.", gives="sine")
    routing = many(own, script=[calls(call("find_functions")), says("Sine.")])

    await routing.hears("hi")

    assert offered(routing.model.requests[0]) == ["help", *CORE[2:]]
    assert len(own.runs) == 1


async def test_a_turn_that_goes_on_after_a_question_offers_what_it_did_before() -> None:
    asking = weather(ask={"city": "Which city?"})
    routing = many(asking, script=[calls(call("weather")), says("Cold.")])
    asked = await routing.hears("the weather, please")

    await routing.hears_answer(asked, "Oslo")

    assert asking.runs == [{"city": "Oslo"}]
    first, second = (offered(request) for request in routing.model.requests)
    assert first == second


@pytest.mark.requirement("B11")
async def test_requests_of_a_chat_are_the_same_bytes_up_to_the_end_of_the_pinned_functions() -> None:
    routing = many(weather())
    messages = ["hi", "an apple", "the weather and a guitar", "thanks", "peel an onion"]
    await offers(routing, *messages)

    # The mark of a cache breakpoint is not part of the cached prefix.
    marked = b',"cache_control":{"type":"ephemeral"}'
    shared = shared_beginning([encoded(request).replace(marked, b"") for request in routing.model.requests])
    assert offered(routing.model.requests[0]) == CORE
    for pinned in offer_of(routing.model.requests[0]).functions:
        schema = orjson.dumps(pinned.parameters)
        assert pinned.description.encode() in shared
        assert schema in shared or orjson.dumps(schema.decode()).strip(b'"') in shared
    assert len({request.messages[0].content for request in routing.model.requests}) == 1


async def test_the_same_set_on_offer_is_the_same_bytes() -> None:
    routing = many(weather())
    await offers(routing, "an apple", "the apple", "thanks")

    first, second, third = (request.offer for request in routing.model.requests)
    assert first is second is third


async def test_a_model_that_needs_no_network_is_told_of_all_functions() -> None:
    routing = many()
    await offers(routing, "hi")

    everything = routing.model.requests[0].everything
    assert everything is not None
    assert [function.original for function in everything.functions] == ["help", *(f"fetch_{word}" for word in WORDS)]


async def test_a_function_that_the_first_request_has_to_call_is_on_offer() -> None:
    routing = many(weather(), script=[calls(call("weather", city="Oslo")), says("Cold.")], tool_choice="weather")

    await routing.hears("hi")

    first, second = routing.model.requests
    assert (first.tool_choice, second.tool_choice) == ("weather", "auto")
    assert "weather" in offered(first)


async def test_a_function_under_a_name_that_providers_refuse_is_found_by_it() -> None:
    dotted = Recorder("house.weather", CITY, description="Tell the weather at home.")
    script = [calls(call("find_functions", query="weather")), calls(call("house_weather", city="Oslo")), says("Cold.")]
    routing = many(dotted, script=script)

    await routing.hears("hi")

    assert '"name":"house_weather"' in routing.model.requests[1].messages[-1].content
    assert len(dotted.runs) == 1


@at_hand("no model is asked")
async def test_the_chats_that_were_quiet_longest_are_forgotten() -> None:
    routing = many()
    shortlist = Shortlist(routing.settings, chats_kept=2)

    def names(chat: str, text: str) -> int:
        message = a_message(text, chat=ChatRef("test", "bot", chat))
        return len(shortlist.offer(message, routing.a_turn()).sent.functions)

    assert (names("a", "an onion"), names("b", "an onion"), names("a", "hm"), names("c", "an onion")) == (7, 7, 7, 7)
    assert (names("a", "hm"), names("b", "hm")) == (7, 6)


@at_hand("no model is asked")
@given(
    st.lists(
        st.tuples(st.sampled_from([*WORDS, "hi", "weather", "thanks a lot"]), st.sampled_from(WORDS)), max_size=12
    ),
    st.integers(1, 5),
)
def test_whatever_is_said_and_runs_the_offer_is_short_permitted_and_contains_the_best_match(
    turns: list[tuple[str, str]], most: int
) -> None:
    routing = many(weather(), settings={"shortlist": most})
    shortlist = Shortlist(routing.settings)

    for text, ran in turns:
        turn, message = routing.a_turn(), a_message(text)
        sent, everything = shortlist.offer(message, turn)
        names = [function.original for function in sent.functions]
        assert names[:2] == ["help", "find_functions"]
        assert len(set(names)) == len(names)
        assert set(names[2:]) <= {function.original for function in everything.functions}
        if text in WORDS:
            assert f"fetch_{text}" in names
        spec = turn.input.functions.find(f"fetch_{ran}")
        assert spec is not None
        shortlist.note_run(message, turn, spec)
        assert set(names) | {spec.name} == {one.original for one in shortlist.offer(message, turn).sent.functions}
