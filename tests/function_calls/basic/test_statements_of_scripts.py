"""Parsing of statements: assignments, calls, jumps, IF, loops, SELECT, WITH, SUB, and their errors."""

from __future__ import annotations

import pytest

from tests.function_calls.basic.reading import body, faults, message, read, shown


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x = 1", "Assign(x, 1)"),
        ("X = 1", "Assign(x, 1)"),
        ("SET x = 1", "Assign(x, 1)"),
        ("let user.name = 'a'", "Assign(user.name, 'a')"),
        ("a[0].b = c", "Assign(a[0].b, c)"),
        ("x = y = 2", "Assign(x, (y = 2))"),
        ("next = 1", "Assign(next, 1)"),
        ("error = 'a'", "Assign(error, 'a')"),
        ("end.date = 1", "Assign(end.date, 1)"),
        ("description = 'a'", "Assign(description, 'a')"),
        ("SET BOT MEMORY 'k', 1", "Evaluate(SET BOT MEMORY<'k', 1>)"),
        ("TALK 'a' + b", "Evaluate(TALK<('a' + b)>)"),
        ("HEAR answer", "Assign(answer, HEAR<>)"),
        ("DIM a(10)", "Dim('a', 10)"),
        ("DIM a", "Dim('a', None)"),
        ("DIM a AS STRING", "Assign(a, '')"),
        ("DIM a AS Integer", "Assign(a, 0)"),
        ("DIM a AS OBJECT = {b: 1}", "Assign(a, {b: 1})"),
        ("REDIM a(n + 1)", "Dim('a', (n + 1))"),
        ("RETURN", "Return(None)"),
        ("RETURN [1, 2]", "Return([1, 2])"),
        ("END", "Stop()"),
        ("STOP", "Stop()"),
        ("EXIT", "Stop()"),
        ("ON ERROR RESUME NEXT", "OnError(True, '')"),
        ("ON ERROR GOTO 0", "OnError(False, '')"),
        ("THROW 'no'", "Throw('no')"),
        ("ERROR 'no'", "Throw('no')"),
        ("ASSERT a > 1", "Assert((a > 1), None)"),
        ("ASSERT a, 'b'", "Assert(a, 'b')"),
        ("CLEAR ERROR", "Assign(err, 0)"),
        ("CALL 'other.bas', 1", "Evaluate(CALL<'other.bas', 1>)"),
        ("TALK 1;", "Evaluate(TALK<1>)"),
    ],
)
def test_a_statement_is_read(text: str, tree: str) -> None:
    assert shown(body(text)) == f"[{tree}]"


def test_several_may_be_declared_at_once() -> None:
    assert shown(body("DIM a(3), b AS number, c = 1")) == "[Dim('a', 3), Assign(b, 0), Assign(c, 1)]"


def test_a_classic_line_has_a_number_and_several_statements() -> None:
    assert shown(body('10 PRINT "x": GOTO 10')) == "[Label('10'), Evaluate(PRINT<'x'>), Goto('10', False)]"
    assert shown(body("10 REM\n20\n030 GOSUB 20")) == "[Label('10'), Label('20'), Label('30'), Goto('20', True)]"


def test_a_number_may_stand_before_what_ends_a_block() -> None:
    assert shown(body("10 FOR i = 1 TO 3\n20 PRINT i\n30 NEXT i\n40 IF a THEN 10\n50 IF a THEN\n60 ELSE\n70 END IF"))


@pytest.mark.parametrize(
    "text",
    [
        "again:\nGOTO again",
        "Again: x = 1\nGOTO AGAIN",
        "GOTO again\nagain: END",
        "talk: x = 1\nGOTO talk",
        "ON ERROR GOTO again\nagain:",
    ],
)
def test_a_label_is_found_before_and_behind(text: str) -> None:
    assert "Label(" in shown(body(text))


def test_a_keyword_before_a_colon_is_no_label() -> None:
    assert "Label" not in shown(body("LIST TOOLS: x = 1\nWAIT: x = 2"))
    assert "Label" not in shown(read("f: x = 1\nSUB f\nEND SUB").script.units[0].body)


# IF


@pytest.mark.parametrize(
    "text",
    [
        "IF a THEN\n  x = 1\nELSE IF b THEN\n  x = 2\nELSE\n  x = 3\nEND IF",
        "if a then\n  x = 1\nelseif b then\n  x = 2\nelse\n  x = 3\nendif",
        "IF a THEN x = 1 ELSE IF b THEN x = 2 ELSE x = 3",
        "IF a THEN x = 1 ELSEIF b THEN x = 2 ELSE x = 3 END IF",
        "IF a THEN: x = 1: ELSE IF b THEN: x = 2: ELSE: x = 3",
        "IF a THEN:\nx = 1\nELSE IF b THEN x = 2\nELSE x = 3\nEND IF",
        "IF a THEN ' first\nx = 1 ' second\nELSE IF b THEN // third\nx = 2\nELSE # fourth\nx = 3\nEND IF REM fifth",
    ],
)
def test_an_if_may_be_written_in_several_ways(text: str) -> None:
    assert shown(body(text)) == "[If([[a, [Assign(x, 1)]], [b, [Assign(x, 2)]]], [Assign(x, 3)])]"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("IF a THEN TALK 'x' ELSE RETURN", "If([[a, [Evaluate(TALK<'x'>)]]], [Return(None)])"),
        ("IF a THEN x = 1: y = 2\nz = 3", "If([[a, [Assign(x, 1), Assign(y, 2)]]], []), Assign(z, 3)"),
        ("IF a GOTO 10\n10 END", "If([[a, [Goto('10', False)]]], []), Label('10'), Stop()"),
        ("IF a THEN 10 ELSE 10\n10 END", "If([[a, [Goto('10', False)]]], [Goto('10', False)]), Label('10'), Stop()"),
        ("IF a THEN IF b THEN x = 1 ELSE x = 2", "If([[a, [If([[b, [Assign(x, 1)]]], [Assign(x, 2)])]]], [])"),
        ("IF a THEN\nEND IF", "If([[a, []]], [])"),
        ("IF (a) THEN\nEND IF", "If([[a, []]], [])"),
        ("IF a THEN RETURN NULL", "If([[a, [Return(None)]]], [])"),
    ],
)
def test_an_if_is_read(text: str, tree: str) -> None:
    assert shown(body(text)) == f"[{tree}]"


# Loops


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("FOR EACH x IN y\nPRINT x\nNEXT x", "ForEach('x', y, [Evaluate(PRINT<x>)])"),
        ("for each x in y.items\nend for", "ForEach('x', y.items, [])"),
        ("FOR x IN [1]\nNEXT", "ForEach('x', [1], [])"),
        ("FOR EACH x IN y DO\nEND FOR", "ForEach('x', y, [])"),
        ("FOR i = 1 TO n + 1\nNEXT i", "ForTo('i', 1, (n + 1), None, [])"),
        ("FOR i = 10 TO 1 STEP -2\nNEXT", "ForTo('i', 10, 1, -2, [])"),
        ("FOR i = 1 TO 3: PRINT i: NEXT", "ForTo('i', 1, 3, None, [Evaluate(PRINT<i>)])"),
        ("WHILE a < 3\nx = 1\nWEND", "Loop('while', (a < 3), False, False, [Assign(x, 1)])"),
        ("WHILE a\nEND WHILE", "Loop('while', a, False, False, [])"),
        ("DO WHILE a\nLOOP", "Loop('do', a, False, False, [])"),
        ("DO UNTIL a\nLOOP", "Loop('do', a, True, False, [])"),
        ("DO\nLOOP WHILE a", "Loop('do', a, False, True, [])"),
        ("DO\nLOOP UNTIL a", "Loop('do', a, True, True, [])"),
        ("DO\nEXIT DO\nLOOP", "Loop('do', None, False, False, [Leave('do')])"),
        (
            "WHILE a\nCONTINUE\nBREAK\nEXIT WHILE\nWEND",
            "Loop('while', a, False, False, [Continue('loop'), Leave('loop'), Leave('while')])",
        ),
        ("FOR EACH a IN b\nCONTINUE FOR\nEXIT FOR\nNEXT", "ForEach('a', b, [Continue('for'), Leave('for')])"),
    ],
)
def test_a_loop_is_read(text: str, tree: str) -> None:
    assert shown(body(text)) == f"[{tree}]"


# SELECT, WITH, SUB


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            "SELECT CASE a\nCASE 1, 2\nx = 1\nCASE ELSE\nx = 2\nEND SELECT",
            "Select(a, [[[Case(1, None, '='), Case(2, None, '=')], [Assign(x, 1)]]], [Assign(x, 2)])",
        ),
        ("SWITCH a\nCASE 'b'\nDEFAULT\nx = 2\nEND SWITCH", "Select(a, [[[Case('b', None, '=')], []]], [Assign(x, 2)])"),
        (
            "select a\ncase is > 3\ncase 1 to 5\ncase <= 2\nend select",
            "Select(a, [[[Case(3, None, '>')], []], [[Case(1, 5, '=')], []], [[Case(2, None, '<=')], []]], [])",
        ),
        (
            "SELECT CASE a\nCASE 1: x = 1: y = 2\nEND SELECT",
            "Select(a, [[[Case(1, None, '=')], [Assign(x, 1), Assign(y, 2)]]], [])",
        ),
        ("SWITCH a\nCASE 1:\nBREAK\nEND SWITCH", "Select(a, [[[Case(1, None, '=')], [Leave('select')]]], [])"),
        (
            "SELECT CASE a\nCASE 1\nEXIT SELECT\nEND SELECT",
            "Select(a, [[[Case(1, None, '=')], [Leave('select')]]], [])",
        ),
    ],
)
def test_a_choice_is_read(text: str, tree: str) -> None:
    assert shown(body(text)) == f"[{tree}]"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            'WITH a\nname = name\n.Total = b + 1\n"x y" = 2\nEND WITH',
            "With(a, [['name', name], ['Total', (b + 1)], ['x y', 2]])",
        ),
        ("WITH a.b[0]\nEND WITH", "With(a.b[0], [])"),
        (
            "with a\nwith Inner\nx = 1\nend with\ny = 2\nendwith",
            "With(a, [['Inner', With(inner, [['x', 1]])], ['y', 2]])",
        ),
        (
            "WITH a\nend = 1\nif = 2\nwith = 3\nreturn = 4\nEND WITH",
            "With(a, [['end', 1], ['if', 2], ['with', 3], ['return', 4]])",
        ),
        ("WITH a\nat = NOW\nlist = [\n1,\n2]\nEND WITH", "With(a, [['at', now()], ['list', [1, 2]]])"),
    ],
)
def test_a_with_is_read(text: str, tree: str) -> None:
    assert shown(body(text)) == f"[{tree}]"


@pytest.mark.parametrize("call", ["CALL greet(1, 2)", "CALL greet 1, 2", "greet 1, 2", "greet(1, 2)"])
def test_a_sub_is_called_in_several_ways(call: str) -> None:
    parsed = read(f"{call}\nSUB greet(a, BYVAL b AS string)\n  TALK a\n  EXIT SUB\nEND SUB")
    assert parsed.faults == ()
    assert shown(parsed.script.units[0].body) == "[Evaluate(greet(1, 2))]"
    assert shown(parsed.script.definitions) == "[Define('greet', ['a', 'b'], [Evaluate(TALK<a>), Leave('sub')])]"


def test_a_function_gives_a_value() -> None:
    parsed = read("FUNCTION twice(a) AS number\n  twice = a * 2\nEND FUNCTION\nx = twice(2)\nSUB none\nEND SUB\nnone")
    assert parsed.faults == ()
    assert shown(parsed.script.units[0].body) == "[Assign(x, twice(2)), Evaluate(none())]"


def test_labels_belong_to_their_sub() -> None:
    assert faults("10 GOTO 10\nSUB f\n10 GOTO 10\nEND SUB") == []
    assert faults("10 GOTO 20\nSUB f\n20 GOTO 10\nEND SUB") == [(1, 9, "UNKNOWN_LABEL"), (3, 9, "UNKNOWN_LABEL")]


# Faults


@pytest.mark.parametrize(
    ("text", "place", "code", "said"),
    [
        ("x = 1\nIF a THEN\ny = 2", (2, 1), "NOT_CLOSED", "the IF on line 2 has no END IF"),
        ("FOR EACH a IN b\nIF a THEN\nNEXT", (2, 1), "NOT_CLOSED", "IF on line 2"),
        ("FOR i = 1 TO 2\nFOR j = 1 TO 2\nNEXT i", (2, 1), "NOT_CLOSED", "FOR on line 2 has no NEXT"),
        ("DO WHILE a\nx = 1", (1, 1), "NOT_CLOSED", "no LOOP"),
        ("SELECT CASE a\nCASE 1", (1, 1), "NOT_CLOSED", "no END SELECT"),
        ("SWITCH a\nCASE 1", (1, 1), "NOT_CLOSED", "the SWITCH on line 1"),
        ("WITH a\nb = 1\n", (1, 1), "NOT_CLOSED", "no END WITH"),
        ("WITH a\nb = 1\nPARAM c AS string", (1, 1), "NOT_CLOSED", "no END WITH"),
        ("SUB f\nx = 1", (1, 1), "NOT_CLOSED", "no END SUB"),
        ("IF a THEN\n  IF b THEN\n    x = 1\nEND IF\ny = 2", (2, 3), "NOT_CLOSED", "IF on line 2"),
        ("IF a THEN\nSUB f\nEND SUB", (1, 1), "NOT_CLOSED", "IF on line 1"),
        ('IF a THEN\nx = 1\nRETURN\n\nDESCRIPTION "next"\nTALK 1', (1, 1), "NOT_CLOSED", "IF on line 1"),
        ("x = 1\nEND IF\ny = 2", (2, 1), "STRAY_END", "unexpected END IF"),
        ("NEXT i", (1, 1), "STRAY_END", "NEXT"),
        ("WEND", (1, 1), "STRAY_END", "WEND"),
        ("END SUB", (1, 1), "STRAY_END", "END SUB"),
        ("END TALK", (1, 1), "STRAY_END", "END TALK"),
        ("ELSE", (1, 1), "MISPLACED", "on the same line"),
        ("IF a THEN x = 1\nELSE x = 2", (2, 1), "MISPLACED", "on the same line"),
        ("CASE 1", (1, 1), "MISPLACED", "unexpected CASE: no SELECT is open"),
        ("IF a THEN\nELSE\nELSE\nEND IF", (3, 1), "MISPLACED", "already has an ELSE"),
        ("SELECT CASE a\nx = 1\nCASE 1\nEND SELECT", (2, 1), "MISPLACED", "expected CASE as the first statement"),
        ("DO WHILE a\nWEND", (2, 1), "SYNTAX", "write LOOP"),
        ("FUNCTION f()\nEND SUB", (2, 1), "SYNTAX", "write END FUNCTION"),
        ("FOR i = 1 TO 2\nNEXT j", (2, 6), "SYNTAX", "write NEXT i"),
        ("DO WHILE a\nLOOP UNTIL b", (2, 1), "SYNTAX", "already has a condition"),
        ("EXIT FOR", (1, 1), "MISPLACED", "EXIT FOR is not inside a FOR"),
        ("FOR i = 1 TO 2\nEXIT WHILE\nNEXT", (2, 1), "MISPLACED", "EXIT WHILE"),
        ("EXIT SUB", (1, 1), "MISPLACED", "EXIT SUB"),
        ("CONTINUE", (1, 1), "MISPLACED", "not inside a loop"),
        ("IF a THEN BREAK", (1, 11), "MISPLACED", "not inside a loop"),
        ("FOR i = 1 TO 2\n  PARAM a AS string\nNEXT", (2, 3), "MISPLACED", "inside the FOR on line 1"),
        ("SUB f\n  PARAM a AS string\nEND SUB", (2, 3), "MISPLACED", "in parentheses"),
        ("IF a THEN\n  SUB f\n  x = 1\nEND IF", (2, 3), "MISPLACED", "top level of a script"),
        ("GOTO nowhere", (1, 6), "UNKNOWN_LABEL", "unknown label nowhere"),
        ("again:\nGOTO agian", (2, 6), "UNKNOWN_LABEL", "did you mean again?"),
        ("GOSUB 10", (1, 7), "UNKNOWN_LABEL", "unknown label 10"),
        ("ON ERROR GOTO x", (1, 15), "UNKNOWN_LABEL", "unknown label x"),
        ("GOTO a\nFOR i = 1 TO 2\na:\nNEXT", (1, 6), "MISPLACED", "jump into a block"),
        ("IF x THEN\na:\nELSE\nGOTO a\nEND IF", (4, 6), "MISPLACED", "jump into a block"),
        ("a:\nx = 1\nA:", (3, 1), "DUPLICATE_NAME", "already defined on line 1"),
        ("SUB f\nEND SUB\nFUNCTION F\nEND FUNCTION", (3, 1), "DUPLICATE_NAME", "already defined on line 1"),
        ("SUB f(a, A)\nEND SUB", (1, 10), "DUPLICATE_NAME", "duplicate parameter"),
        ("SUB f(a\nx = 1\nEND SUB", (1, 6), "SYNTAX", "`(` is not closed"),
        ("SUB\nEND SUB", (1, 4), "SYNTAX", "expected a name"),
        ("TLAK 'a'", (1, 1), "UNKNOWN_STATEMENT", "did you mean TALK?"),
        ("SEND MIAL 'a'", (1, 1), "UNKNOWN_STATEMENT", "SEND MAIL"),
        ("GREET 'a'\nSUB greets(a)\nEND SUB", (1, 1), "UNKNOWN_STATEMENT", "did you mean GREETS?"),
        ("OPEN '/etc/passwd' FOR INPUT AS #1", (1, 1), "UNKNOWN_STATEMENT", "OPEN is not supported; use READ"),
        ("10 POKE 1,1", (1, 4), "UNKNOWN_STATEMENT", "POKE"),
        ("ＩＦ a THEN", (1, 1), "UNKNOWN_STATEMENT", "write IF"),
        ("nope(1)", (1, 1), "UNKNOWN_FUNCTION", "NOPE"),
        ("f 1\nSUB f(a, b)\nEND SUB", (1, 1), "WRONG_COUNT", "takes 2 arguments"),
        ('"hello"', (1, 1), "SYNTAX", 'write TALK "hello"'),
        ("x = 1\n+ 2", (2, 1), "SYNTAX", "previous line"),
        (".a = 1", (1, 1), "SYNTAX", "WITH"),
        (")", (1, 1), "SYNTAX", "no bracket is open"),
        ("a = 1; b = 2", (1, 6), "SYNTAX", "`:`"),
        ("x = 1 THEN y = 2", (1, 7), "SYNTAX", "unexpected THEN"),
        ("IF a\nx = 1\nEND IF", (1, 5), "SYNTAX", "expected THEN"),
        ("IF a x = 1 ELSE x = 2", (1, 6), "SYNTAX", "expected THEN"),
        ("IF a THEN\nx = 1\nELSEIF b\nx = 2\nEND IF", (3, 9), "SYNTAX", "expected THEN"),
        ("IF THEN\nEND IF", (1, 4), "SYNTAX", "before THEN"),
        ("IF a b THEN\nEND IF", (1, 6), "SYNTAX", "expected an operator"),
        ("IF a = (1 THEN\nEND IF", (1, 8), "SYNTAX", "`(` is not closed"),
        ("FOR EACH x OF y\nNEXT", (1, 12), "SYNTAX", "expected IN"),
        ("FOR i = 1\nNEXT", (1, 10), "SYNTAX", "expected TO"),
        ("FOR i\nNEXT", (1, 6), "SYNTAX", "expected `=`"),
        ("FOR\nNEXT", (1, 4), "SYNTAX", "expected a variable name"),
        ("WHILE\nWEND", (1, 6), "SYNTAX", "expected a value"),
        ("EXIT IF", (1, 6), "SYNTAX", "after EXIT"),
        ("ON ERROR STOP", (1, 10), "SYNTAX", "RESUME NEXT"),
        ("THROW", (1, 6), "SYNTAX", "what is wrong"),
        ("LET x", (1, 5), "SYNTAX", "name = value"),
        ("DIM a(1, 2)", (1, 8), "SYNTAX", "one dimension"),
        ("REDIM PRESERVE a(3)", (1, 7), "SYNTAX", "grow automatically"),
        ("x =\ny = 1", (1, 4), "SYNTAX", "after `=`"),
        ("x = a +\ny = 1", (1, 8), "SYNTAX", "after `+`"),
        ("WITH a\nTALK 'x'\nEND WITH", (2, 6), "SYNTAX", "`key = value`"),
        ("WITH a\nb.c = 1\nEND WITH", (2, 2), "SYNTAX", "nest a block WITH b"),
        ("WITH a\nb: 1\nEND WITH", (2, 2), "SYNTAX", "write b = value"),
        ("SELECT CASE a\nCASE IS 3\nEND SELECT", (2, 6), "SYNTAX", "expected a value before IS"),
        ("a[0]", (1, 1), "SYNTAX", "is not used"),
    ],
)
def test_a_fault_is_told_once_where_it_is_to_be_mended(text: str, place: tuple[int, int], code: str, said: str) -> None:
    assert faults(text) == [(*place, code)]
    assert said in message(text)


@pytest.mark.parametrize("name", ["description", "param", "error", "stop", "end_date"])
def test_a_variable_that_is_called_like_a_word_of_the_language_can_be_changed(name: str) -> None:
    text = f"{name} = [1]\nDO WHILE a\n{name} += 1\n{name}[0] = 2\nLOOP\nTALK {name}"
    assert f"Assign({name}," in shown(body(text))
