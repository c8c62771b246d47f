"""Expressions: precedence, literals, members, calls, keywords as values, and the depth limit."""

from __future__ import annotations

import pytest

from function_calls.basic.nodes import Assign, Binary, Evaluate
from tests.function_calls.basic.reading import body, faults, message, read, shown, value


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("(1 + 2) * 3", "((1 + 2) * 3)"),
        ("10 - 4 - 3", "((10 - 4) - 3)"),
        ("2 ^ 3 ^ 2", "(2 ^ (3 ^ 2))"),
        ("-2 ^ 2", "Unary('-', (2 ^ 2))"),
        ("2 ^ -1", "(2 ^ -1)"),
        ("-5", "-5"),
        ("+x", "x"),
        ("a MOD b * c", "(a mod (b * c))"),
        ("a \\ b * c", "(a \\ (b * c))"),
        ("a & b + c", "(a & (b + c))"),
        ("a = b & c", "(a = (b & c))"),
        ("a = 1 AND b = 2 OR c", "(((a = 1) and (b = 2)) or c)"),
        ("NOT a = b AND c", "(Unary('not', (a = b)) and c)"),
        ("NOT NOT a", "Unary('not', Unary('not', a))"),
        ("a OR NOT b", "(a or Unary('not', b))"),
        ("a <> b", "(a <> b)"),
        ("a != b", "(a <> b)"),
        ("a == b", "(a = b)"),
        ("a >= b", "(a >= b)"),
        ("a IN [1, 2]", "(a in [1, 2])"),
        ("a NOT IN b", "Unary('not', (a in b))"),
        ("a LIKE 'x%'", "(a like 'x%')"),
        ("a NOT LIKE b", "Unary('not', (a like b))"),
        ("a IS NULL", "IsNull(a, False)"),
        ("a IS NOT NULL AND b", "(IsNull(a, True) and b)"),
        ("a CONTAINS b", "contains(a, b)"),
        ("a % 2", "(a mod 2)"),
        ("a AND b IN c", "(a and (b in c))"),
    ],
)
def test_what_binds_closer_is_read_first(text: str, tree: str) -> None:
    assert value(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("TRUE", "True"),
        ("null", "None"),
        ("Nothing", "None"),
        ("1.5", "1.5"),
        ('"a"', "'a'"),
        ('"a${b}c"', "join('a', b, 'c')"),
        ('"${a.b[0] + 1}"', "join((a.b[0] + 1))"),
        ('"${LEN("${x}")}"', "join(len(join(x)))"),
        ("[]", "[]"),
        ("[1, [2], ]", "[1, [2]]"),
        ("{}", "{}"),
        ("#{a: 1, B: {c: d}}", "{a: 1, B: {c: d}}"),
        ('{"a b": 1, 2: 3, if: 4,}', "{a b: 1, 2: 3, if: 4}"),
        ("NEW OBJECT", "{}"),
        ("CREATE OBJECT", "{}"),
        ("NEW ARRAY()", "[]"),
        ("user.Name.first", "user.Name.first"),
        ("a?.b", "a.b"),
        ("a[0].b['c'][i + 1]", "a[0].b['c'][(i + 1)]"),
        ("a[1, 2]", "a[1][2]"),
        ("LEN(a)", "len(a)"),
        ("a.trim()", "trim(a)"),
        ("a.b.push(1, 2).trim().c", "trim(push(a.b, 1, 2)).c"),
        ("NOW", "now()"),
        ("now()", "now()"),
        ("ERROR MESSAGE", "error_message"),
        ("ERR", "err"),
        ('(GET "u").x', "GET<'u'>.x"),
        ("text.end", "text.end"),
        ("to", "to"),
    ],
)
def test_an_operand_is_read(text: str, tree: str) -> None:
    prefix = "to = 1\n" if text == "to" else ""
    assignment = body(f"{prefix}result = {text}")[-1]
    assert isinstance(assignment, Assign)
    assert shown(assignment.value) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('FIND "t", "a=b"', "FIND<'t', 'a=b'>"),
        ('GET BOT MEMORY("k") + 1', "GET BOT MEMORY<('k' + 1)>"),
        ('LLM "say " + x', "LLM<('say ' + x)>"),
        ("HEAR", "HEAR<>"),
        ("LIST TOOLS", "LIST TOOLS<>"),
        ('[GET "a", 2]', "[GET<'a', 2>]"),
        ('"${GET "a"}"', "join(GET<'a'>)"),
        ("LEN(GET 'a')", "len(GET<'a'>)"),
        ("CALL LEN(a)", "len(a)"),
    ],
)
def test_a_keyword_may_stand_for_a_value(text: str, tree: str) -> None:
    (assignment,) = body(f"result = {text}" if "BOT" not in text else 'result = GET BOT MEMORY "k" + 1')
    assert isinstance(assignment, Assign)
    assert shown(assignment.value) == tree


def test_a_variable_hides_the_keyword_of_its_name() -> None:
    statements = body("list = [1]\nFOR EACH find IN list\n  x = list[0] + find\n  y = list\nNEXT")
    assert shown(statements[1]) == "ForEach('find', list, [Assign(x, (list[0] + find)), Assign(y, list)])"
    assert shown(body('find = 1\nx = FIND "t"')[1]) == "Assign(x, FIND<'t'>)"


def test_a_function_before_as_is_the_keyword_of_its_name() -> None:
    assert value('FORMAT (a + b) AS "0.00"') == "FORMAT<(a + b), '0.00'>"
    assert value('FORMAT NOW() AS "HH" + b') == "FORMAT<now(), ('HH' + b)>"
    assert value('FORMAT(a, "0.00")') == "format(a, '0.00')"


def test_a_keyword_with_nothing_behind_it_may_be_a_variable() -> None:
    assert value("find + 1") == "(find + 1)"
    assert value("find.name") == "find.name"


def test_a_variable_with_parentheses_is_an_index() -> None:
    assert shown(body("DIM a(3)\nx = a(1)")[1]) == "Assign(x, a[1])"
    assert shown(body("a = [1]\nx = a(0, 1)")[1]) == "Assign(x, a[0][1])"
    assert shown(body("a(1) = 2")) == "[Assign(a[1], 2)]"


def test_a_function_of_the_script_may_be_called_before_it_stands_there() -> None:
    parsed = read("x = double(2)\nFUNCTION double(n)\n  RETURN n * 2\nEND FUNCTION")
    assert parsed.faults == ()
    assert shown(parsed.script.units[0].body) == "[Assign(x, double(2))]"
    assert shown(parsed.script.definitions) == "[Define('double', ['n'], [Return((n * 2))])]"


def test_places_in_braces_are_those_in_the_script() -> None:
    (statement,) = body('x = "ab ${cd + ef}"')
    assert isinstance(statement, Assign)
    (inner,) = [part for part in getattr(statement.value, "parts") if isinstance(part, Binary)]  # noqa: B009
    assert (inner.left.at, inner.at, inner.right.at) == ((1, 11), (1, 14), (1, 16))
    assert faults('x = 1\n\ny = "ab ${cd + }"') == [(3, 16, "SYNTAX")]
    assert faults("x = `\n  ${nope(1)}`") == [(2, 5, "UNKNOWN_FUNCTION")]


@pytest.mark.parametrize(
    ("text", "place", "code", "said"),
    [
        ("x = 1 +", (1, 8), "SYNTAX", "after `+`"),
        ("x = (1 + 2", (1, 5), "SYNTAX", "`(` is not closed"),
        ("x = f(1, 2", (1, 6), "SYNTAX", "`(` is not closed"),
        ("x = [1, 2", (1, 5), "SYNTAX", "`[` is not closed"),
        ("x = [1 2]", (1, 8), "SYNTAX", "comma"),
        ("x = {a: 1, b: 2\ny = 3", (1, 5), "SYNTAX", "`{` is not closed"),
        ("x = {\n  a: 1\n  b: 2\n}", (3, 3), "SYNTAX", "comma"),
        ("x = {a = 1}", (1, 8), "SYNTAX", "write `:`"),
        ('x = {"${a}": 1}', (1, 6), "SYNTAX", "key"),
        ("x = 1 + * 2", (1, 9), "SYNTAX", "expected a value"),
        ("x = (1 + 2))", (1, 12), "SYNTAX", "no bracket is open"),
        ("x = a[]", (1, 6), "SYNTAX", "index"),
        ("x = a.", (1, 7), "SYNTAX", "expected a name"),
        ("x = 2x", (1, 6), "SYNTAX", "expected an operator"),
        ("x = a b", (1, 7), "SYNTAX", "expected an operator"),
        ('x = "a" "b"', (1, 9), "SYNTAX", "expected an operator"),
        ("x = a IS 3", (1, 7), "SYNTAX", "NOT NULL"),
        ("x = a NOT b", (1, 7), "SYNTAX", "AND NOT"),
        ("x = THEN", (1, 5), "SYNTAX", "before THEN"),
        ('x = "${}"', (1, 8), "SYNTAX", "`${}`"),
        ('x = "${a b}"', (1, 10), "SYNTAX", "a single value"),
        ("x = LEN(1,)", (1, 11), "SYNTAX", "expected a value"),
        ('x = QRCODE "a"', (1, 5), "UNKNOWN_STATEMENT", "QRCODE is not supported"),
        ("x = lenn(a)", (1, 5), "UNKNOWN_FUNCTION", "did you mean LEN?"),
        ("x = a.lenn()", (1, 7), "UNKNOWN_FUNCTION", "did you mean LEN?"),
        ("x = qqqq(a)", (1, 5), "UNKNOWN_FUNCTION", "unknown function QQQQ"),
        ('x = weather("Oslo", 2)', (1, 5), "UNKNOWN_FUNCTION", 'the bot write CALL weather("Oslo", 2)'),
        ("x = weather(city)", (1, 5), "UNKNOWN_FUNCTION", "the bot write CALL weather(…)"),
        ("x = LEN()", (1, 5), "WRONG_COUNT", "LEN takes 1 argument, got 0"),
        ("x = LEN(a, b)", (1, 5), "WRONG_COUNT", "LEN takes 1 argument, got 2"),
        ("x = RANDOM(1, 2, 3)", (1, 5), "WRONG_COUNT", "0 to 2 arguments"),
        ("x = PUSH(1)", (1, 5), "WRONG_COUNT", "at least 2 arguments"),
        ("x = a.len(1)", (1, 7), "WRONG_COUNT", "got 2"),
        ("x = f(1)\nFUNCTION f(a, b)\nEND FUNCTION", (1, 5), "WRONG_COUNT", "F takes 2 arguments"),
    ],
)
def test_a_fault_is_told_where_it_is_to_be_mended(text: str, place: tuple[int, int], code: str, said: str) -> None:
    assert faults(text) == [(*place, code)]
    assert said in message(text)


def test_several_unknown_functions_of_one_line_are_told() -> None:
    assert [code for _, _, code in faults("x = aaa(1) + bbb(2)")] == ["UNKNOWN_FUNCTION"] * 2


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("(", ")"),
        ("[", "]"),
        ("{a:", "}"),
        ("LEN(", ")"),
        ("a[", "]"),
        ("NOT ", ""),
        ("- ", ""),
        ("2 ^ ", ""),
        ("1 + (", ")"),
        ("GET (", ")"),
    ],
)
@pytest.mark.parametrize("depth", [101, 5000])
def test_too_many_brackets_within_one_another_are_a_fault_and_no_crash(before: str, behind: str, depth: int) -> None:
    found = faults("y = 1\nx = " + before * depth + "1" + behind * depth + "\nz = = 2")
    assert [(line, code) for line, _, code in found] == [(2, "TOO_DEEP"), (3, "SYNTAX")]


@pytest.mark.parametrize(("before", "behind"), [("(", ")"), ("[", "]"), ("LEN(", ")"), ("1 + (", ")"), ("NOT ", "")])
def test_a_hundred_within_one_another_are_read(before: str, behind: str) -> None:
    assert faults("x = " + before * 98 + "1" + behind * 98) == []


@pytest.mark.parametrize("link", [" + 1", ".a", "[0]", " AND b", ".trim()"])
def test_what_follows_one_another_without_end_is_a_fault(link: str) -> None:
    assert faults("x = a" + link * 150) == []
    assert [code for _, _, code in faults("x = a" + link * 30_000)] == ["TOO_DEEP"]


def test_texts_within_texts_are_counted_too() -> None:
    text = "1"
    for _ in range(8):
        text = f"`${{{text}}}`" if "`" not in text else f'"${{{text}}}"' if '"' not in text else f"'${{{text}}}'"
    assert isinstance(read(f"x = {text}").faults, tuple)


def test_an_operator_before_the_equals_sign_changes_a_variable() -> None:
    assert shown(body("total += item.price * 2")) == "[Assign(total, (total + (item.price * 2)))]"
    assert shown(body("a[0] -= 1")) == "[Assign(a[0], (a[0] - 1))]"


def test_a_variable_that_is_named_like_a_function_is_given_what_that_gives() -> None:
    assert shown(body("today = TODAY\nx = today")) == "[Assign(today, today()), Assign(x, today)]"


def test_a_function_may_stand_alone_for_what_it_does() -> None:
    assert [type(one) for one in body("PUSH(list, 1)\nPUSH list.items, {a: 1}\nlist.push(2)\nERR.CLEAR")] == [
        Evaluate
    ] * 4
