"""The tokenizer: comments, quotes, continued lines, blocks, and invalid characters."""

from __future__ import annotations

import time

import pytest

from function_calls.basic.language.lexer import tokens_of
from function_calls.basic.language.tokens import Inner, Kind
from tests.function_calls.basic.reading import faults, message, text_of


def seen(text: str) -> list[str]:
    """Tokens of a valid text; a LINE is `|`."""
    tokens, found = tokens_of(text)
    assert found == []
    assert tokens[-1].kind is Kind.END
    shown = {Kind.LINE: lambda token: "|", Kind.TEXT: lambda token: f"'{text_of(token.value)}'"}
    return [shown.get(token.kind, lambda token: token.text)(token) for token in tokens[:-1]]


@pytest.mark.requirement("B4")
@pytest.mark.parametrize(
    "line",
    ["REM all of it", "rem", "' it's a comment", "// see http://a.b", "# a heading", "#", "   ' indented", "\t// tab"],
)
def test_a_comment_is_no_token(line: str) -> None:
    assert seen(f"{line}\nx = 1") == ["x", "=", "1"]


@pytest.mark.parametrize("comment", ["' it's done", "// done", "# done", "REM done"])
@pytest.mark.parametrize("code", ["x = 1", 'TALK "a"', "NEXT i", "END IF", "f(x)", "RETURN x", "ELSE", "DO"])
def test_a_comment_may_stand_behind_a_statement(code: str, comment: str) -> None:
    assert seen(f"{code} {comment}") == seen(code)


@pytest.mark.parametrize(
    "code",
    [
        "x = 'a'",
        "TALK 'a'",
        "SEND FILE 'a'",
        "f('a')",
        "f(1, 'a')",
        "[ 'a' ]",
        "x + 'a'",
        "a AND 'a'",
        "CASE 'a'",
        "RETURN 'a'",
    ],
)
def test_an_apostrophe_where_a_value_is_expected_is_a_quote(code: str) -> None:
    assert seen(code) == seen(code.replace("'", '"'))


@pytest.mark.parametrize(
    "code", ["x = y 'a'", "TALK \"b\" 'a'", "f(x) 'a'", "END IF 'a'", "NEXT 'a'", "x.talk 'a'", "TALK name 'a'"]
)
def test_an_apostrophe_behind_a_value_begins_a_comment(code: str) -> None:
    assert seen(code) == seen(code.removesuffix("'a'"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"a\nb"', "a\nb"),
        (r'"a\tb"', "a\tb"),
        (r'"say \"hi\""', 'say "hi"'),
        ('"say ""hi"""', 'say "hi"'),
        ("'it''s'", "it's"),
        (r'"C:\data"', r"C:\data"),
        (r'"a\\"', "a\\"),
        (r'"\u00e9"', "é"),
        ('""', ""),
        ("`two\nlines`", "two\nlines"),
        ('"it\'s"', "it's"),
        ('"$5 and ${name}"', "$5 and ${name}"),
        (r'"\${name}"', "${name}"),
        ('"${{name}}"', "${{name}}"),
        ('"日本 ✓"', "日本 ✓"),
        ('"\nDear you,\n\nIf all is well: go.\n"', "\nDear you,\n\nIf all is well: go.\n"),
    ],
)
def test_a_text_in_quotes_is_read(text: str, value: str) -> None:
    (token,) = tokens_of(f"x = {text}")[0][2:3]
    assert (token.kind, text_of(token.value), token.text) == (Kind.TEXT, value, text)


def test_what_stands_in_braces_is_told_with_its_place() -> None:
    token = tokens_of('TALK "Hi ${name}, ${f("a", {b: 1})}!"')[0][1]
    assert token.value == ("Hi ", Inner("name", (1, 12)), ", ", Inner('f("a", {b: 1})', (1, 21)), "!")


def test_escaped_quotes_in_braces_are_quotes() -> None:
    token = tokens_of(r'TALK "${f(\"a\")}"')[0][1]
    assert token.value == (Inner('f("a")', (1, 9)),)


@pytest.mark.parametrize(
    "text",
    [
        "x = a + _\n  b",
        "x = a + _ ' why\n  b",
        "x = a +\n  b",
        "x = a + ' why\n  ' more\n  b",
        "x = (a\n+\n\nb)",
    ],
)
def test_a_statement_goes_on_in_the_next_line(text: str) -> None:
    assert "|" not in seen(text)


def test_a_literal_over_several_lines_is_one_statement() -> None:
    text = 'x = [\n  "a", \' first\n  REM between\n\n  #{k: 1,\n    "l": 2},\n]\ny = 1'
    assert seen(text) == [
        "x",
        "=",
        "[",
        "'a'",
        ",",
        "#{",
        "k",
        ":",
        "1",
        ",",
        "'l'",
        ":",
        "2",
        "}",
        ",",
        "]",
        "|",
        "y",
        "=",
        "1",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x = f(a\nTALK b",
        "x = [1,\nIF a THEN",
        "x = f(\nEND IF",
        "x = a +\nRETURN b",
        "x = {a: 1\ny = 2",
        "x = a,\n\ny = 1",
    ],
)
def test_an_open_bracket_ends_where_plainly_another_statement_begins(text: str) -> None:
    assert seen(text).count("|") == 1


def test_a_colon_separates_statements_and_nothing_else() -> None:
    assert seen('10 PRINT "x": GOTO 10') == ["10", "PRINT", "'x'", "|", "GOTO", "10"]
    assert seen("x = {a: 1, b: [c]}") == ["x", "=", "{", "a", ":", "1", ",", "b", ":", "[", "c", "]", "}"]
    tokens = tokens_of("start:\nx = 1: y = 2\n")[0]
    assert [token.text for token in tokens if token.kind is Kind.LINE] == [":\n", ":", "\n"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("2.5E-1", 0.25), ("007", 7), ("99.99", 99.99)],
)
def test_a_number_is_read(text: str, value: float) -> None:
    token = tokens_of(f"x = {text}")[0][2]
    assert (token.value, type(token.value)) == (value, type(value))


def test_operators_have_one_spelling() -> None:
    assert seen("a == b != c <> d") == ["a", "=", "b", "<>", "c", "<>", "d"]
    assert [token.value for token in tokens_of("a % b")[0][:3]] == ["A", "MOD", "B"]
    assert seen("a?.b") == ["a", ".", "b"]


def test_words_are_letters_of_any_script() -> None:
    tokens, found = tokens_of("größe = 客户 + A$ + नाम + cafe\u0301")
    assert found == []
    words = [(token.text, token.value) for token in tokens if token.kind is Kind.WORD]
    assert words == [("größe", "GRÖSSE"), ("客户", "客户"), ("A", "A"), ("नाम", "नाम"), ("café", "CAFÉ")]


@pytest.mark.parametrize(
    ("block", "end"),
    [("TALK", "TALK"), ("MAIL", "MAIL"), ("SYSTEM PROMPT", "SYSTEM PROMPT"), ("system prompt", "Prompt")],
)
def test_a_block_is_one_token_with_its_lines_as_written(block: str, end: str) -> None:
    tokens, found = tokens_of(
        f"BEGIN {block}\n**Hi** ${{name}}:\n\n  It's \"${{n + 1}}\" \\n # no comment\nEND {end} ' over\nx = 1"
    )
    assert found == []
    token = next(token for token in tokens if token.kind is Kind.BLOCK)
    assert token.at == (2, 1)
    assert token.value == (
        "**Hi** ",
        Inner("name", (2, 10)),
        ":\n\n  It's \"",
        Inner("n + 1", (4, 11)),
        '" \\n # no comment',
    )
    assert [token.text for token in tokens[-5:-1]] == ["\n", "x", "=", "1"]


def test_a_block_may_have_more_on_its_first_line() -> None:
    tokens = tokens_of("BEGIN MAIL customer.email\nSubject: Hi\n\nText\nEND MAIL")[0]
    assert [token.kind.name for token in tokens] == ["WORD", "WORD", "WORD", "SYMBOL", "WORD", "BLOCK", "END"]
    assert tokens[5].value == ("Subject: Hi\n\nText",)


def test_an_empty_block_is_an_empty_text() -> None:
    assert next(token for token in tokens_of("BEGIN TALK\nEND TALK")[0] if token.kind is Kind.BLOCK).value == ("",)


def test_a_table_is_a_block_too() -> None:
    tokens = tokens_of("TABLE orders\n  id UUID KEY\n  description TEXT\nEND TABLE\nx = 1")[0]
    assert [token.kind.name for token in tokens][:4] == ["WORD", "WORD", "BLOCK", "LINE"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("DESCRIPTION Tells the user's weather.", "Tells the user's weather."),
        ("DESCRIPTION Tells the weather\n  for a city.\n\nTALK x", "Tells the weather for a city."),
        ('DESCRIPTION\nTells the weather.\nTALK "x"', "Tells the weather."),
        ('DESCRIPTION Tells it\nTALK "x"', "Tells it"),
        ("DESCRIPTION Tells it\nx = 1", "Tells it"),
        ('DESCRIPTION "Tells the weather\n  for a city."\nTALK x', "Tells the weather for a city."),
        ('description "Tells" \' why', "Tells"),
        ("PARAM city AS string DESCRIPTION The user's city, if known", "The user's city, if known"),
        ("PARAM city AS string DESCRIPTION The city OPTIONAL", "The city"),
    ],
)
def test_a_description_needs_no_quotes(text: str, words: str) -> None:
    tokens, found = tokens_of(text)
    assert found == []
    assert next(text_of(token.value) for token in tokens if token.kind is Kind.TEXT) == words


@pytest.mark.parametrize(
    "text", ['description = "x"', "description.x = 1", "x = description", "WITH a\n  description = b\nEND WITH"]
)
def test_description_may_be_a_name(text: str) -> None:
    assert all(token.kind is not Kind.TEXT or token.text == '"x"' for token in tokens_of(text)[0])


@pytest.mark.parametrize(
    ("like", "value"),
    [("ann@example.org", "ann@example.org"), ("12/31/2024", "12/31/2024"), ("New York", "New York"), ('"x y"', "x y")],
)
def test_an_example_needs_no_quotes(like: str, value: str) -> None:
    tokens, found = tokens_of(f'PARAM a AS string LIKE {like} DESCRIPTION "d"')
    assert found == []
    assert [text_of(token.value) for token in tokens if token.kind is Kind.TEXT] == [value, "d"]


def test_a_bare_number_or_word_behind_like_stays_what_it_is() -> None:
    assert [token.kind for token in tokens_of("PARAM a LIKE 99.99")[0]][3] is Kind.NUMBER
    assert [token.kind for token in tokens_of("PARAM a LIKE hydrogen")[0]][3] is Kind.WORD
    assert [token.text for token in tokens_of("PARAM description AS string LIKE x")[0][:3]] == [
        "PARAM",
        "description",
        "AS",
    ]


def test_a_bare_address_of_the_web_is_a_text() -> None:
    assert seen("GET https://a.b/c?d=1 // why") == ["GET", "'https://a.b/c?d=1'"]


def test_line_ends_marks_and_tabs_of_any_editor_do_not_matter() -> None:
    assert seen("\ufeffx = 1\r\n\ty = 2\rz\xa0=\u30003") == seen("x = 1\ny = 2\nz = 3")


@pytest.mark.parametrize(
    ("character", "meant"),
    [
        ("“", '"'),
        ("‘", "'"),
        ("（", "("),
        ("，", ","),
        ("：", ":"),
        ("＝", "="),
        ("–", "-"),
        ("≠", "<>"),
        ("×", "*"),
        ("１", "1"),
        ("＋", "+"),
    ],
)
def test_a_character_of_another_keyboard_is_told_with_the_one_that_is_meant(character: str, meant: str) -> None:
    ((line, column, code),) = faults(f"y = 1\nx = {character}")
    assert (line, column, code) == (2, 5, "BAD_CHARACTER")
    assert f"write `{meant}`" in message(f"x = {character}")


def test_a_line_with_such_characters_still_does_what_it_is_for() -> None:
    assert faults("IF x ＝ “a” THEN\n  TALK “hello”\nEND IF") == [(1, 6, "BAD_CHARACTER"), (2, 8, "BAD_CHARACTER")]


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\u202e", "\ud800", "\u2066"])
@pytest.mark.parametrize("text", ["x = 1{}\ny = 2", 'y = 1\nTALK "a{}b"', "' a comment{}", "BEGIN TALK\na{}\nEND TALK"])
def test_characters_that_cannot_be_seen_are_faults_wherever_they_stand(text: str, character: str) -> None:
    ((line, column, code),) = faults(text.replace("{}", character))
    lines = text.replace("{}", character).split("\n")
    assert code == "BAD_CHARACTER"
    assert lines[line - 1][column - 1] == character


def test_pictures_and_joiners_may_stand_in_texts() -> None:
    assert faults('TALK "👨\u200d👩\u200d👧 🇩🇪 ✓"') == []


@pytest.mark.parametrize(("sign", "right"), [("&&", "AND"), ("||", "OR"), ("!", "NOT"), ("??", "NVL")])
def test_operators_of_other_languages_are_told_with_the_words_of_this_one(sign: str, right: str) -> None:
    assert right in message(f"IF a {sign} b THEN\nEND IF")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('x = 1\nTALK "hello\ny = 2', (2, 6)),
        ("TALK `hello\nx = 1", (1, 6)),
        ('x = f("a, b)\ny = 2', (1, 7)),
        ("x = 'abc\ny = 2", (1, 5)),
        ('TALK "Hi ${name"\nx = 1', (1, 10)),
        ("BEGIN TALK\nHi ${name\nEND TALK", (2, 4)),
        ('x = "C:\\"\ny = 1', (1, 5)),
    ],
)
def test_a_text_without_end_is_told_where_it_begins_and_once(text: str, place: tuple[int, int]) -> None:
    assert faults(text) == [(*place, "OPEN_TEXT")]


@pytest.mark.parametrize(
    "text", ["TALK 1\nBEGIN TALK\nhi\nTALK 3", "TALK 1\nBEGIN TALK\nhi\nEND MAIL", "TALK 1\nBEGIN TALK"]
)
def test_a_block_without_end_is_told_at_its_beginning(text: str) -> None:
    assert faults(text) == [(2, 1, "NOT_CLOSED")]


def test_a_number_that_is_too_long_is_a_fault() -> None:
    assert faults("x = " + "9" * 5000) == [(1, 5, "SYNTAX")]
    assert faults("x = 1e999") == [(1, 5, "SYNTAX")]


@pytest.mark.parametrize(
    ("begin", "again", "end"),
    [
        ("x = ", "(", ""),
        ("x = ", ")", ""),
        ("x = ", "[", ")" * 8_000),
        ("", '"', ""),
        ("", "'", ""),
        ("x = ", "`", "`"),
        ("", '"${', ""),
        ("", "`${", ""),
        ("x", " ", "y"),
        ("DESCRIPTION a", " ", "b"),
        ("PARAM a LIKE b", " ", "c"),
        ("", "TABLE a\n", ""),
        ("", "BEGIN TALK\n", ""),
        ("", 'DESCRIPTION "a\n', ""),
        ("", 'x = "a\n', ""),
        ("", "@", ""),
        ("", "a\u0301", ""),
        ("", "\0", ""),
        ("", "\n", ""),
        ("", "x = (a\n", ""),
        ("", "f(", ""),
        ("", "x = 1 + \n", ""),
        ("", "qwert asdf\n", ""),
        ("", "IF a THEN\n", ""),
        ("", "END IF\n", ""),
        ("", "GOTO x\n", ""),
        ("", "WITH a\n", ""),
        ("", "1:", ""),
        ("", "a.", ""),
        ("a(", "1,", ""),
        ("x = 1", "+1", ""),
        ("x = a[", "1,", "1]"),
        ("", "FOR EACH a IN b: ", ""),
        ("", "CASE 1\n", ""),
        ("", "SUB a\n", ""),
        ("", "RETURN\nDESCRIPTION x\n", ""),
    ],
)
def test_a_long_script_of_any_kind_is_read_in_a_moment(begin: str, again: str, end: str) -> None:
    started = time.process_time()
    faults(begin + again * (16_000 // len(again)) + end)
    assert time.process_time() - started < 1
