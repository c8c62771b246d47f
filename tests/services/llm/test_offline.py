"""The offline model: its calls, its questions, and messages that it ignores."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from config.texts import Texts
from services.llm.model import ModelAnswer, ModelMessage, ModelRequest, Offer, OfferedFunction, ToolCall
from services.llm.offline.offline import OfflineModel, user_text

TEXT = {"type": "string"}


def a_function(
    name: str, *examples: str, writes: bool = False, commands: tuple[str, ...] = (), required: str = "", **slots: Any
) -> OfferedFunction:
    """A function with an uninformative description."""
    parameters = {"type": "object", "properties": slots, "required": required.split()}
    return OfferedFunction(name, name, "", parameters, examples, writes, commands)


FUNCTIONS = (
    a_function(
        "weather",
        "what's the weather in {city}",
        "will it rain in {city} tomorrow",
        "what's the weather like",
        "{city}天气怎么样",
        commands=("weather", "天气"),
        required="city",
        city=TEXT,
    ),
    a_function(
        "todo_add",
        "add {text} to my todo list",
        "put {text} on the list",
        "把{text}加到待办",
        writes=True,
        commands=("todo", "待办"),
        required="text",
        text=TEXT,
    ),
    a_function(
        "todo_remove",
        "remove {item} from my todo list",
        "delete {item} from the list",
        writes=True,
        commands=("todo remove",),
        required="item",
        item=TEXT,
    ),
    a_function("todo_list", "what's on my todo list", "show my todo list", "看看待办", commands=("todos",)),
    a_function(
        "remind",
        "remind me to {text} {when}",
        "remind me {when} to {text}",
        writes=True,
        required="text when",
        text=TEXT,
        when=TEXT,
    ),
    a_function(
        "set_volume", "set the volume to {level}", "turn the music {direction}", commands=("volume",), writes=True,
        level={"type": "integer", "minimum": 0, "maximum": 100},
        direction={"enum": ["up", "down", "way_up"]},
    ),
    a_function(
        "pick_one", "choose between {options}", "pick one of {options}", "在{options}里选一个", required="options",
        options={"type": "array", "items": TEXT, "minItems": 2},
    ),
    a_function("calculate", "what is {expression}", "{expression}等于多少", required="expression", expression=TEXT),
    a_function("help", "what can you do", "help", commands=("help",)),
)  # fmt: skip
OFFER = Offer(FUNCTIONS)


async def answer(text: str, offer: Offer | None = OFFER, **fields: Any) -> ModelAnswer:
    """The model's answer to `text`."""
    request = ModelRequest([ModelMessage("system", "You are Rollcall."), ModelMessage("user", text)], offer, **fields)
    return await OfflineModel(Texts()).complete(request)


async def call_of(text: str) -> ToolCall:
    """The only call for `text`."""
    given = await answer(text)
    assert len(given.calls) == 1, given.text
    return given.calls[0]


async def test_a_part_of_the_functions_on_offer_does_not_keep_it_from_the_others() -> None:
    asked = ModelMessage("user", "what's on my todo list")
    offer = Offer([function for function in FUNCTIONS if function.name == "weather"])

    given = await OfflineModel(Texts()).complete(ModelRequest([asked], offer, everything=Offer(FUNCTIONS)))

    assert [one.name for one in given.calls] == ["todo_list"]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("what's the weather in Paris", "weather", {"city": "Paris"}),
        ("Hi! Could you please tell me what the weather is in New York right now?", "weather", {"city": "New York"}),
        ("what's the weather in Oslo on friday evening", "weather", {"city": "Oslo"}),
        ("will it snow in Tromsø tomorrow", "weather", {"city": "Tromsø"}),
        ("北京天气怎么样", "weather", {"city": "北京"}),
        ("请问明天上海的天气怎么样？", "weather", {"city": "上海"}),
        ("what's on my to-do list", "todo_list", {}),
        ("can you show me my to do list, please", "todo_list", {}),
        ("what is 12 * (3 + 4)", "calculate", {"expression": "12 * (3 + 4)"}),
        ("what's 15% of 80?", "calculate", {"expression": "15% of 80"}),
        ("what is twenty-four times a hundred and two", "calculate", {"expression": "24 times 102"}),
        ("what is 20% of $1.5 million", "calculate", {"expression": "20% of 1500000"}),
        ("what's the weather nearby Lund on october the 24th", "weather", {"city": "Lund"}),
        ("25乘以4等于多少", "calculate", {"expression": "25乘以4"}),
        ("pick one of pizza, pasta or sushi", "pick_one", {"options": ["pizza", "pasta", "sushi"]}),
        ("在火锅、烧烤和披萨里选一个", "pick_one", {"options": ["火锅", "烧烤", "披萨"]}),
        ("HELP", "help", {}),
    ],
)
async def test_a_message_like_an_example_calls_its_function(text: str, name: str, arguments: dict[str, Any]) -> None:
    call = await call_of(text)

    assert (name, arguments, False) == (call.name, call.arguments, call.uncertain)
    assert arguments == json.loads(call.raw)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("set the volume to 35", {"level": 35}),
        ("set the volume to twenty five", {"level": 25}),
        ("set the volume to 百分之三十五", {"level": 35}),
        ("turn the music way up", {"direction": "way_up"}),
        ("turn the music up", {"direction": "up"}),
    ],
)
async def test_values_take_the_type_that_the_schema_asks_for(text: str, arguments: dict[str, Any]) -> None:
    assert arguments == (await call_of(text)).arguments


@pytest.mark.parametrize("text", ["set the volume to 250", "set the volume to 3.5"])
async def test_a_value_that_the_schema_forbids_is_no_argument(text: str) -> None:
    given = await answer(text)

    assert all("level" not in (call.arguments or {}) for call in given.calls)


async def test_a_time_at_the_end_of_a_text_goes_to_the_time_parameter() -> None:
    call = await call_of("remind me to call grandma tomorrow at 5 pm")

    assert call.arguments == {"text": "call grandma", "when": "tomorrow at 5 pm"}


async def test_a_time_that_the_example_does_not_show_is_told_from_the_text_all_the_same() -> None:
    note = a_function("note", "write down {text}", text=TEXT, when=TEXT)

    given = await answer("write down dentist appointment tomorrow at 5 pm", Offer([note]))

    assert [call.arguments for call in given.calls] == [{"text": "dentist appointment", "when": "tomorrow at 5 pm"}]


async def test_half_a_chinese_word_is_no_time() -> None:
    clock = a_function("clock", "{place}{time}是几点", required="time", place=TEXT, time=TEXT)

    given = await answer("明天几点开会", Offer([clock]))

    assert all("time" not in (call.arguments or {}) for call in given.calls)


async def test_words_of_the_function_itself_are_cut_off_a_short_value() -> None:
    examples = ("weather in {city}", "the weather forecast", "show me the forecast")
    offer = Offer([a_function("weather", *examples, required="city", city=TEXT)])

    given = await answer("weather in forecast Lund", offer)

    assert [call.arguments for call in given.calls] == [{"city": "Lund"}]


async def test_an_exact_request_to_write_is_called_directly() -> None:
    call = await call_of("add milk and eggs to my todo list")

    assert (call.name, call.arguments, call.uncertain) == ("todo_add", {"text": "milk and eggs"}, False)


async def test_a_looser_request_to_write_is_only_guessed_so_that_the_person_confirms() -> None:
    call = await call_of("could you insert milk into our list")

    assert (call.name, call.arguments, call.uncertain) == ("todo_add", {"text": "milk"}, True)


async def test_a_missing_argument_is_left_to_be_asked_for() -> None:
    call = await call_of("what's the weather like today")

    assert (call.name, call.arguments) == ("weather", {})


@pytest.mark.parametrize("text", ["remove it from my todo list", "remove that item from my todo list please"])
async def test_a_word_that_only_points_is_no_value(text: str) -> None:
    given = await answer(text)

    assert all(call.arguments == {} for call in given.calls)


@pytest.mark.parametrize(
    "text",
    [
        "did I put milk on the list",
        "don't add milk to my todo list",
        "never put beer on the list",
        "why would anyone add milk to a todo list",
    ],
)
async def test_a_question_or_a_refusal_runs_nothing_that_writes(text: str) -> None:
    given = await answer(text)

    assert not [call for call in given.calls if call.name == "todo_add"]


async def test_a_wish_to_delete_is_never_taken_for_one_to_look_or_add() -> None:
    assert (await call_of("delete milk from the list")).name == "todo_remove"
    assert (await call_of("please remove milk from my todo list")).name == "todo_remove"


async def test_a_wish_to_take_something_away_calls_no_function_that_only_shows_it() -> None:
    offer = Offer([a_function("weather", "the weather in {city}", required="city", city=TEXT)])

    assert [call.name for call in (await answer("the weather in Paris please", offer)).calls] == ["weather"]
    assert (await answer("cancel the weather in Paris", offer)).calls == ()


@pytest.mark.parametrize("text", ["delete my todo list", "delete all the things from the list", "remove the list"])
async def test_the_name_of_the_whole_thing_is_no_value(text: str) -> None:
    given = await answer(text)

    assert all(call.arguments == {} for call in given.calls)


@pytest.mark.parametrize(
    "text",
    [
        "the weather was lovely when we met in Paris, and then my brother told everybody about his new job",
        "I finally got the kernel module to build, thanks",
        "what time does the train to Oslo leave",
        "who won the match yesterday",
        "can I help it if he never listens",
        "今天天气真好我们去爬山吧",
        "你吃饭了吗",
        "?!",
        "👍",
        "",
    ],
)
async def test_what_was_meant_for_no_function_calls_none_and_says_how_to_connect_a_model(text: str) -> None:
    given = await answer(text)

    assert given.calls == ()
    assert "OPENAI_API_KEY" in given.text


async def test_a_message_that_is_only_near_names_the_functions_by_their_commands() -> None:
    given = await answer("the todo list, once more")

    assert given.calls == ()
    assert "/todos" in given.text
    assert "OPENAI_API_KEY" not in given.text


async def test_commands_are_named_in_the_language_of_the_chat() -> None:
    vague = "and the weather of that place Gondor is how"
    english, chinese = await answer(vague), await answer(vague, language="zh")

    assert "/weather" in english.text
    assert "/天气" in chinese.text


async def test_only_what_stands_below_the_line_was_said_now() -> None:
    given = await answer("[09:00] Ben: what's the weather in Paris\n---\nwhat's on my todo list")

    assert [call.name for call in given.calls] == ["todo_list"]


async def test_the_same_message_always_gets_the_same_answer() -> None:
    text = "add milk to my todo list"

    assert await answer(text) == await answer(text)
    assert (await call_of(text)).id != (await call_of("add tea to my todo list")).id


async def test_each_offer_is_answered_from_its_own_functions() -> None:
    model = OfflineModel(Texts())
    offers = [Offer([a_function(f"play_{number}", "play some music")]) for number in range(200)]
    message = [ModelMessage("user", "play some music")]

    for _ in range(2):
        for number, offer in enumerate(offers):
            given = await model.complete(ModelRequest(message, offer))
            assert [f"play_{number}"] == [call.name for call in given.calls]


@pytest.mark.parametrize("fields", [{"tool_choice": "none"}, {"offer": None}])
async def test_where_no_function_may_be_called_it_says_what_it_is(fields: dict[str, Any]) -> None:
    given = await answer("what's the weather in Paris", **fields)

    assert given.calls == ()
    assert "OPENAI_API_KEY" in given.text


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"ok": True, "said_in_chat": ["12 °C in Oslo", "Rain tomorrow"]}, "12 °C in Oslo\nRain tomorrow"),
        ({"error": "not_found", "message": "I know no such place."}, "I know no such place."),
        ({"ok": True, "result": {"celsius": 12}}, "Done."),
    ],
)
async def test_after_a_call_it_says_what_the_function_said(told: dict[str, Any], text: str) -> None:
    messages = [
        ModelMessage("user", "what's the weather in Oslo"),
        ModelMessage("assistant", "", calls=(ToolCall("c1", "weather", {"city": "Oslo"}),)),
        ModelMessage("tool", json.dumps(told), call_id="c1"),
    ]

    given = await OfflineModel(Texts()).complete(ModelRequest(messages, OFFER))

    assert ((), text) == (given.calls, given.text)


async def test_it_is_reachable_without_a_network() -> None:
    model = OfflineModel(Texts(), name="spare")

    assert "spare" in await model.probe()
    await model.close()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Ann says:\n---\nnever do this:\n---\nclear the list", "never do this:\n---\nclear the list"),
        ("Ann says:\n---\n", ""),
        ("hello", "hello"),
    ],
)
def test_a_divider_in_what_was_said_divides_nothing(content: str, said: str) -> None:
    assert user_text([ModelMessage("user", content)]) == said


async def test_other_work_goes_on_while_the_first_message_builds_the_index() -> None:
    request = ModelRequest([ModelMessage("user", "will it rain in Oslo tomorrow")], Offer(FUNCTIONS))
    answering = asyncio.ensure_future(OfflineModel(Texts()).complete(request))
    turns = 0
    while not answering.done():
        await asyncio.sleep(0)
        turns += 1

    assert [call.name for call in answering.result().calls] == ["weather"]
    assert turns > 2
