import pytest

from services.llm.reading.markup import Visible, visible_text


@pytest.mark.parametrize(
    "leak",
    [
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
        "<tool_call>get_weather\n<arg_key>city</arg_key>",
        "<function=f>{}</function>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f",
        "<｜DSML｜tool_calls",
        "<｜DSML｜invoke name=",
        "<|python_tag|>{}",
        "<|tool_calls_section_begin|>",
        "<|channel|>commentary to=functions.f",
        "commentary to=functions.get_weather json{}",
        "<|tool_call>call:f{}<tool_call|>",
        "[TOOL_CALLS][{}]",
        "[TOOL_CALLS",
        "[TOOL_REQUEST]{}[END_TOOL_REQUEST]",
        "<TOOLCALL>[{}]</TOOLCALL>",
        "<minimax:tool_call>",
        "<longcat_tool_call>",
        "<start_function_call>call:f{}",
        '<function_calls><invoke name="f">',
        "<tool_code>print(f())</tool_code>",
        "```tool_code\nf()\n```",
        'functools[{"name": "f"}]',
        '<tools>{"name": "f", "arguments": {}}</tools>',
        "commentary to=get_weather {}",
        "✿FUNCTION✿: f\n✿ARGS✿: {}",
        "<|im_sta",
        "<tool_c",
    ],
)
def test_a_leaked_call_is_found_and_what_stands_before_it_is_kept(leak: str) -> None:
    assert visible_text("Let me look. " + leak) == Visible("Let me look.", leaked=True)


@pytest.mark.parametrize(
    "whole",
    [
        '{"name": "f", "parameters": {"a": 1}}',
        ' {"name": "f", "arguments": "{}"}\n',
        '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]',
        '{"type": "function", "function": {"name": "f", "arguments": {}}}',
        '{"tool_calls": []}',
        '[get_weather(city="Oslo")]',
        '```json\n{"name": "f", "arguments": {"a": 1}}\n```',
    ],
)
def test_a_text_that_is_nothing_but_a_call_is_a_leak(whole: str) -> None:
    assert visible_text(whole) == Visible("", leaked=True)


@pytest.mark.parametrize(
    "prose",
    [
        'Here is it: {"name": "run_shell", "parameters": {"command": "ls"}} More?',
        '{"name": "Ann", "age": 7}',
        "[1, 2]",
        "[a link](https://example.org)",
        "if a <b and c> d: x <| y, or <|> in Haskell",
        "Use <b>bold</b>, <tooltip> or <functional>.",
        "call f(x) [see below]",
        '```json\n{"city": "Oslo"}\n```',
        'Write:\n```json\n{"name": "f", "arguments": {}}\n```',
        "<tools> and <b>",
        "trailing space stays ",
        "",
    ],
)
def test_ordinary_text_is_left_as_it_is(prose: str) -> None:
    assert visible_text(prose) == Visible(prose, leaked=False)


@pytest.mark.parametrize(
    "content",
    [
        "<think>The user wants …</think>\n\nHello!",
        "\n<think></think><think>twice</think>Hello!",
        "so I should greet.</think>Hello!",
        "<thinking>hm</thinking>Hello!",
        "[THINK]hm[/THINK]Hello!",
        "◁think▷hm◁/think▷Hello!",
        "Wait. <think>hm</think> Hello!",
        "Hello!<think>and then",
    ],
)
def test_reasoning_in_the_text_is_not_shown(content: str) -> None:
    assert visible_text(content) == Visible("Hello!", leaked=False)


def test_reasoning_that_never_ends_leaves_nothing() -> None:
    assert visible_text("<think>I could say <tool_call>") == Visible("", leaked=False)


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "<|eot_id|>", "</s>", "<｜end▁of▁sentence｜>", "<|im_end|>\n<|endoftext|>"]
)
def test_a_token_that_only_ends_the_turn_is_taken_off(token: str) -> None:
    assert visible_text("Hello!" + token) == Visible("Hello!", leaked=False)


def test_many_openings_of_a_tag_take_no_time() -> None:
    for hostile in ("<think></think>" * 200_000, "<|" * 500_000, "<" * 1_000_000, "[" * 500_000, "<tool_" * 200_000):
        visible_text(hostile)
