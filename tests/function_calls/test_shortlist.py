"""Shortlists of many functions: the selection for a model, its search for others, and unchanged permissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.chat_settings import ResolvedFunction
from function_calls.rounds.shortlist import Shortlist
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

FEW = {"shortlist_above": 0}
"""The shortlist applies whenever there are more functions than its places."""
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
    options["settings"] = {**FEW, **options.get("settings", {})}
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


@pytest.mark.requirement("B11")
async def test_of_many_functions_those_that_fit_are_offered_behind_the_pinned_ones() -> None:
    [request] = await offers(many(weather()), "bring me a guitar and the weather, please")

    assert request[:2] == ["help", "find_functions"]
    assert sorted(request[2:]) == ["fetch_guitar", "weather"]


async def test_a_few_functions_are_all_offered_and_nothing_to_find_others() -> None:
    routing = Routing(*shelf()[:12], settings=FEW)

    assert await offers(routing, "hello") == [[f"fetch_{word}" for word in WORDS[:12]]]


@pytest.mark.parametrize(("above", "all_are"), [(14, False), (15, True)])
async def test_no_choice_is_made_among_so_few_as_the_settings_say(above: int, all_are: bool) -> None:
    routing = Routing(*shelf(), settings={"shortlist_above": above})

    [request] = await offers(routing, "an apple")
    assert (request == [f"fetch_{word}" for word in WORDS]) is all_are


@pytest.mark.parametrize("shortlist", [0, 16])
async def test_the_settings_may_offer_all(shortlist: int) -> None:
    [request] = await offers(many(settings={"shortlist": shortlist}), "hello")

    assert request == ["help", *(f"fetch_{word}" for word in WORDS)]


async def test_no_more_are_offered_than_the_settings_say_beside_the_pinned_ones() -> None:
    [request] = await offers(many(settings={"shortlist": 3}), f"fetch {' '.join(WORDS)}")

    assert len(request) == 2 + 3


async def test_what_is_pinned_takes_no_place_of_the_shortlist() -> None:
    routing = many(settings={"shortlist": 1, "pinned": ("fetch_apple",)})

    assert await offers(routing, "an onion and an apple") == [["fetch_apple", "find_functions", "fetch_onion"]]


async def test_a_greeting_offers_what_is_pinned_and_no_functions_at_random() -> None:
    assert await offers(many(), "hi") == [["help", "find_functions"]]
    pinned = many(settings={"pinned": ("fetch_onion", "nowhere", "fetch_apple")})
    assert await offers(pinned, "hi") == [["fetch_onion", "fetch_apple", "find_functions"]]


async def test_the_function_that_finds_others_names_all_that_there_are_where_the_list_is_short() -> None:
    def finder(routing: Routing) -> OfferedFunction:
        return offer_of(routing.model.requests[0]).by_name["find_functions"]

    few, lots = many(), Routing(*(Recorder(f"function_number_{number}") for number in range(200)))
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

    assert offered(routing.model.requests[0]) == ["help"]
    assert len(own.runs) == 1


async def test_what_fitted_stays_where_it_is_while_the_talk_goes_on() -> None:
    apple, both, again, thanks = await offers(
        many(weather()), "an apple", "an apple and the weather", "bread, apple?", "thanks"
    )

    assert apple == ["help", "find_functions", "fetch_apple"]
    assert both == [*apple, "weather"]
    assert again == thanks == [*both, "fetch_bread"]


async def test_what_does_not_fit_any_more_goes_after_some_turns() -> None:
    *kept, last = await offers(many(settings={"shortlist_turns": 2}), "an apple", "hm", "hm", "hm")

    assert ["fetch_apple" in names for names in kept] == [True, True, True]
    assert "fetch_apple" not in last


async def test_the_rounds_of_a_turn_are_one_turn_and_offer_the_same() -> None:
    routing = many(settings={"shortlist_turns": 1})
    await offers(routing, "an apple")
    routing.model.add(calls(call("nowhere", "a")), calls(call("help", "b")), calls(call("help", "c")), says("Well."))
    await routing.hears("hm")

    sets = [offered(request) for request in routing.model.requests]
    assert sets == [["help", "find_functions", "fetch_apple"]] * 5


async def test_what_ran_lately_goes_before_what_hardly_fits() -> None:
    parts = {"city": {"type": "string", "description": "Such as Paris"}}
    vague = [Recorder(f"place_{number}", parts, description=f"Thing {number}.") for number in range(6)]
    script = [calls(call("weather", city="Oslo")), says("Cold.")]
    routing = Routing(weather(), *vague, script=script, settings={**FEW, "shortlist": 2})
    await routing.hears("the weather")

    strong = Recorder("paris_guide", description="Paris.")
    routing.registry.register_function(strong.spec)
    [followed] = await offers(routing, "and in Paris?")

    assert sorted(followed[1:]) == ["paris_guide", "weather"]


async def test_a_command_that_ran_is_on_offer_for_what_follows() -> None:
    routing = many(weather(commands="weather"))
    await routing.hears("/weather Oslo")

    assert await offers(routing, "and over there?") == [["help", "find_functions", "weather"]]


async def test_what_ran_lately_comes_back_once_there_is_room() -> None:
    routing = many(weather(commands="weather"), settings={"shortlist": 2})
    await routing.hears("/weather Oslo")

    full, roomy = await offers(routing, "an apple and bread", "a doll")

    assert full[2:] == ["fetch_apple", "fetch_bread"]
    assert sorted(roomy[2:]) == ["fetch_doll", "weather"]


async def test_what_ran_long_ago_takes_no_place() -> None:
    routing = many(weather(commands="weather"), settings={"shortlist": 2, "shortlist_turns": 3})
    await routing.hears("/weather Oslo")

    *_, last = await offers(routing, *["an apple and bread"] * 5, "a doll")

    assert "fetch_doll" in last
    assert "weather" not in last


async def test_what_ran_and_may_not_be_called_by_a_model_takes_no_place() -> None:
    hidden = weather(commands="weather", offered_to=["command"])
    routing = many(hidden, settings={"shortlist": 1})
    await offers(routing, "an apple")
    await routing.hears("/weather Oslo")

    assert await offers(routing, "hm") == [["help", "find_functions", "fetch_apple"]]


async def test_what_ran_beyond_the_shortlist_leaves_with_the_turn() -> None:
    ran = calls(call("fetch_bread", "a"), call("fetch_cheese", "b"), call("fetch_doll", "c"))
    routing = many(settings={"shortlist": 2}, script=[ran, says("Well.")])
    await routing.hears("an apple")

    assert len(offered(routing.model.requests[1])) == 2 + 4
    assert await offers(routing, "hm") == [["help", "find_functions", "fetch_cheese", "fetch_doll"]]


async def test_chats_know_nothing_of_each_other() -> None:
    first, elsewhere = await offers(many(), "an apple", a_message("hi", chat=OTHER_CHAT))

    assert "fetch_apple" in first
    assert elsewhere == ["help", "find_functions"]


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
    assert offered(routing.model.requests[0]) == ["help", "find_functions"]
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


async def test_a_greeting_among_fifty_functions_is_a_request_of_at_most_4000_bytes() -> None:
    parameters = {
        name: {"type": "string", "description": f"The {name} that is meant, as people write it", "required": True}
        for name in ("subject", "place", "manner")
    }
    description = "Do something that takes a sentence or two to describe, so that a model knows when it is meant."
    functions = [Recorder(f"some_function_{number}", parameters, description=description) for number in range(50)]
    routing = Routing(Recorder("help", description="List what there is."), *functions)
    await offers(routing, "hi")

    assert len(encoded(routing.model.requests[0])) <= 4000


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

    assert (names("a", "an apple"), names("b", "an apple"), names("a", "hm"), names("c", "an apple")) == (3, 3, 3, 3)
    assert (names("a", "hm"), names("b", "hm")) == (3, 2)


@at_hand("no model is asked")
@given(
    st.lists(
        st.tuples(st.sampled_from([*WORDS, "hi", "weather", "thanks a lot"]), st.sampled_from(WORDS)), max_size=12
    ),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_whatever_is_said_and_runs_the_offer_is_short_permitted_and_holds_what_fits_best(
    turns: list[tuple[str, str]], most: int, kept: int
) -> None:
    routing = many(weather(), settings={"shortlist": most, "shortlist_turns": kept})
    shortlist = Shortlist(routing.settings)

    for text, ran in turns:
        turn, message = routing.a_turn(), a_message(text)
        sent, everything = shortlist.offer(message, turn)
        names = [function.original for function in sent.functions]
        assert names[:2] == ["help", "find_functions"]
        assert len(set(names)) == len(names) <= 2 + most
        assert set(names[2:]) <= {function.original for function in everything.functions}
        if text in WORDS:
            assert f"fetch_{text}" in names
        spec = turn.input.functions.find(f"fetch_{ran}")
        assert spec is not None
        shortlist.note_run(message, turn, spec)
        assert set(names) | {spec.name} == {one.original for one in shortlist.offer(message, turn).sent.functions}
