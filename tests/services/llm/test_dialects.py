"""Calls in the text of models, in the notation of the profile."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.model import Offer, OfferedFunction
from services.llm.reading.dialects import DIALECTS, dialect_of, reader_for
from services.llm.reading.markup import Visible
from services.llm.reading.tool_arguments import MAX_ARGUMENT_CHARACTERS

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
AREA = {
    "type": "object",
    "properties": {"shape": {"type": "string"}, "sizes": {"type": "object"}, "n": {"type": "integer"}},
}
OFFER = Offer(
    [
        OfferedFunction("get_weather", "weather.get", "", CITY),
        OfferedFunction("area", "area", "", AREA),
        OfferedFunction("get_news", "get_news", "", {"type": "object", "properties": {}}),
    ]
)
PARIS = ("get_weather", {"city": "Paris"})
NEWS = ("get_news", {})
SEP, BEGIN, END = "<｜tool▁sep｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"


def read(dialect: str | None, text: str, offer: Offer | None = OFFER) -> Visible:
    return reader_for(dialect, offer)(text, "seed")


def called(visible: Visible) -> list[tuple[str, object]]:
    return [(call.name, call.arguments) for call in visible.calls]


WRITTEN = [
    ("hermes", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>', [PARIS]),
    ("hermes", '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}', [PARIS]),
    (
        "qwen",
        '<tool_call>{"name":"get_weather","arguments":{"city":"Paris"}}</tool_call>\n'
        '<tool_call>{"name":"get_news","arguments":{}}</tool_call>',
        [PARIS, NEWS],
    ),
    (
        "qwen",
        "<tool_call>\n<function=area>\n<parameter=shape>\nx > y\n</parameter>\n<parameter=sizes>{'a': True, 'b': 1.5}"
        "</parameter>\n<parameter=n>\n14\n</parameter>\n</function>\n</tool_call>",
        [("area", {"shape": "x > y", "sizes": {"a": True, "b": 1.5}, "n": 14})],
    ),
    ("qwen", "<function=get_news>\n</function>\n</tool_call>", [NEWS]),
    (
        "glm",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
        [PARIS],
    ),
    ("glm", "<tool_call>get_news</tool_call>", [NEWS]),
    ("llama", '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}<|eom_id|>', [PARIS]),
    ("llama", '<function=get_weather>{"city": "Paris"}</function>', [PARIS]),
    ("llama", '{"name": "get_weather", "parameters": {"city": "Paris"}}', [PARIS]),
    ("llama", "[get_weather(city='Paris'), get_news()]", [PARIS, NEWS]),
    ("llama", "<|python_start|>[weather.get(city='Paris')]<|python_end|>", [("weather.get", {"city": "Paris"})]),
    ("mistral", '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]', [PARIS]),
    ("mistral", '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_news{}', [PARIS, NEWS]),
    (
        "deepseek",
        f"<｜tool▁calls▁begin｜>{BEGIN}get_weather{SEP}"
        f'{{"city":"Paris"}}{END}\n{BEGIN}get_news{SEP}{{}}{END}<｜tool▁calls▁end｜>',
        [PARIS, NEWS],
    ),
    (
        "deepseek",
        f"<｜tool▁calls▁begin｜>{BEGIN}function{SEP}get_weather\n```json\n"
        f'{{"city":"Paris"}}\n```{END}<｜tool▁calls▁end｜>',
        [PARIS],
    ),
    (
        "deepseek",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="area">\n'
        '<｜DSML｜parameter name="shape" string="true">5</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="n" string="false">5</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        [("area", {"shape": "5", "n": 5})],
    ),
    (
        "kimi",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        [PARIS],
    ),
    (
        "gpt-oss",
        "<|channel|>analysis<|message|>Weather, so.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>',
        [PARIS],
    ),
    (
        "minimax",
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        [PARIS],
    ),
    ("gemma", "```tool_code\nget_weather(city='Paris')\n```", [PARIS]),
    ("granite", '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]', [PARIS]),
    ("nemotron", '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</TOOLCALL>', [PARIS]),
    ("minimax", '<tool_calls>\n{"name": "get_news", "arguments": {}}\n</tool_calls>', [NEWS]),
    ("jamba", '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>', [PARIS]),
    ("hunyuan", '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>', [PARIS]),
    ("longcat", '<longcat_tool_call>{"name": "get_news", "arguments": {}}</longcat_tool_call>', [NEWS]),
    ("internlm", '<|action_start|><|plugin|>{"name": "get_news", "parameters": {}}<|action_end|>', [NEWS]),
    (
        "seed",
        "<seed:think>hm</seed:think><seed:tool_call><function=get_weather><parameter=city>Paris</parameter></function>"
        "</seed:tool_call>",
        [PARIS],
    ),
    ("phi", 'functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]', [PARIS]),
]


@pytest.mark.parametrize(("dialect", "text", "wanted"), WRITTEN)
def test_calls_are_read_in_the_notation_of_the_family(dialect: str, text: str, wanted: object) -> None:
    visible = read(dialect, text)
    assert (called(visible), visible.text, visible.leaked) == (wanted, "", False)
    assert len({call.id for call in visible.calls}) == len(visible.calls)


def test_every_dialect_is_shown() -> None:
    assert {dialect for dialect, _, _ in WRITTEN} == set(DIALECTS)


@pytest.mark.parametrize(("dialect", "text", "wanted"), WRITTEN)
def test_the_same_text_is_a_leak_where_no_dialect_is_named_or_nothing_is_offered(
    dialect: str, text: str, wanted: object
) -> None:
    for visible in (read(None, text), read(dialect, text, None), read(dialect, text, Offer([]))):
        assert (visible.calls, visible.leaked) == ((), True)
        assert visible.text == ""


@pytest.mark.parametrize(("dialect", "text", "wanted"), WRITTEN)
def test_a_function_that_is_not_offered_is_not_called_even_beside_one_that_is(
    dialect: str, text: str, wanted: object
) -> None:
    fewer = Offer([OFFER.functions[2]]) if wanted != [NEWS] else Offer([OFFER.functions[0]])
    visible = read(dialect, text, fewer)
    assert (visible.calls, visible.leaked) == ((), True)


@pytest.mark.parametrize(("dialect", "text", "wanted"), WRITTEN)
def test_a_call_in_the_models_reasoning_is_a_thought(dialect: str, text: str, wanted: object) -> None:
    assert read(dialect, f"<think>{text}</think>Hello!") == Visible("Hello!", leaked=False)
    assert called(read(dialect, f"<think>hm</think>{text}")) == wanted


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("hermes", '<tool_call>{"name": "get_weather", "arguments": {"city": }</tool_call>'),
        ("hermes", '<tool_call>{"name": "get_weather", "arguments": {"city": "P", "city": "Q"}}</tool_call>'),
        ("hermes", '<tool_call>{"name": "get_news", "arguments": {}}</tool_call> and so on'),
        ("hermes", '<tool_call>{"name": "get_news", "arguments": {}}</tool_call><tool_call>{"name"'),
        ("llama", "[get_weather(city=__import__('os').system('id'))]"),
        ("llama", "<|python_start|>[get_weather('Paris')]<|python_end|>"),
        ("llama", "<|python_tag|>print(1)"),
        ("mistral", '[TOOL_CALLS][{"name": "get_news", "arguments":{}]'),
        ("qwen", "<function=area><parameter=n>1</parameter><parameter=n>2</parameter></function></tool_call>"),
        ("qwen", "<tool_call><function=area>so <parameter=n>1</parameter></function></tool_call>"),
        ("deepseek", f"<｜tool▁calls▁begin｜>{BEGIN}get_weather{SEP}{{\"city\":"),
        ("glm", "<tool_call>get_weather\n<arg_key>city</arg_key>"),
    ],
)  # fmt: skip
def test_what_is_not_understood_to_the_end_is_neither_run_nor_shown(dialect: str, text: str) -> None:
    visible = read(dialect, "Let me look. " + text if dialect != "llama" or "<|" in text else text)
    assert (visible.calls, visible.leaked) == ((), True)
    assert visible.text in ("Let me look.", "")


def test_words_before_a_call_are_kept() -> None:
    visible = read("hermes", 'I look. <tool_call>{"name": "get_news", "arguments": {}}</tool_call>')
    assert (visible.text, called(visible)) == ("I look.", [NEWS])


@pytest.mark.parametrize(
    "prose",
    [
        'Here is it: {"name": "get_news", "parameters": {}} More?',
        "call get_news() yourself",
        'Write:\n```json\n{"name": "get_news", "arguments": {}}\n```',
    ],
)
@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_a_call_within_prose_is_a_quotation(dialect: str, prose: str) -> None:
    assert read(dialect, prose) == Visible(prose, leaked=False)


def test_an_ordinary_number_where_a_text_is_wanted_stays_a_text() -> None:
    text = "<tool_call><function=area><parameter=shape>007</parameter></function></tool_call>"
    assert called(read("qwen", text)) == [("area", {"shape": "007"})]


@pytest.mark.parametrize("dialect", list(DIALECTS))
@pytest.mark.parametrize(
    "filler", ["<parameter=a>", "</parameter>", "} ", "   ", "<tool_call>{", "[TOOL_CALLS][{", ")"]
)
def test_no_text_takes_long(dialect: str, filler: str) -> None:
    starts = [text[: len(text) // 2] for family, text, _ in WRITTEN if family == dialect]
    began = time.process_time()
    for start in starts:
        read(dialect, (start + filler * (MAX_ARGUMENT_CHARACTERS // len(filler)))[: MAX_ARGUMENT_CHARACTERS - 1])
    assert time.process_time() - began < 5


@given(st.sampled_from(sorted(DIALECTS)), st.sampled_from([text for _, text, _ in WRITTEN]), st.integers(0, 400))
def test_the_beginning_of_a_call_never_runs_and_never_shows_a_token(dialect: str, text: str, length: int) -> None:
    part = text[:length]
    for call in read(dialect, part).calls:
        assert (call.name in {"get_news", "get_weather", "weather.get", "area"}, call.fault) == (True, None)
    assert "tool_call>" not in read(dialect, part).text


@pytest.mark.parametrize(
    ("family", "dialect"),
    [("Qwen3-Coder", "qwen"), ("deepseek-v3.1", "deepseek"), ("glm", "glm"), ("gpt-oss-20b", "gpt-oss"), ("x", None)],
)  # fmt: skip
def test_a_family_is_known_by_how_its_models_are_called(family: str, dialect: str | None) -> None:
    assert dialect_of(family) == dialect
