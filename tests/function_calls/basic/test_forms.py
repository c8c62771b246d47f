"""Statements in the form of a keyword, and messages for those that nearly match."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.language.form_parts import usage_of
from function_calls.basic.language.forms import BadForm, Form, Forms, Matched, form_of
from function_calls.basic.language.tokens import Cursor, Kind
from function_calls.basic.nodes import At
from tests.function_calls.basic.shown import shown
from tests.function_calls.basic.small_reader import SmallExpressions, small_tokens

WRITTEN = (
    "TALK {text}",
    "TALK TO {to}, {text}",
    "HEAR {into:variable} [AS ({type=EMAIL|DATE} | {choices...})]",
    "SEND MAIL {to}, {subject}, {body} [, {files}]",
    "SET BOT MEMORY {key}, {value}",
    "GET BOT MEMORY {key}",
    "GET {url}",
    "SET HEADER {name:word} = {value}",
    "SET HEADER {name}, {value}",
    "USE TOOL {tool:word}",
    "USE MCP {server:word} [, {tool} [, {arguments}]]",
    "USE WEBSITE {address} [REFRESH {every}]",
    "SAVE {table:name}, {values...}",
    "FIND {table:name} [, {filter}]",
    "UPDATE {table:name} SET {changes:assignments} [WHERE {filter:condition}]",
    "UPDATE {table:name}, {filter}, {values...}",
    "DELETE FROM {table:name} WHERE {filter:condition}",
    "DELETE {table:name} WHERE {filter:condition}",
    "DELETE {what}",
    "AGGREGATE {kind=SUM|AVG}, {of}, {field}",
    "BEGIN MAIL {to} {text:block}",
    "LIST TOOLS",
    "CREATE TASK {title}",
    "WEATHER {place}",
    "LLM {prompt}",
)
FORMS = Forms(map(form_of, WRITTEN))


def matched(source: str, *, inside: bool = False, forms: Forms = FORMS) -> tuple[Matched | None, Cursor]:
    """The keyword at the start of the last line of `source`, and the cursor after it."""
    cursor = Cursor(small_tokens(source))
    while cursor.now.at.line <= source.count("\n"):
        cursor.take()
    return forms.match(cursor, SmallExpressions(forms), inside=inside), cursor


def read(source: str) -> str:
    found, cursor = matched(source)
    assert found is not None
    assert cursor.is_line_end
    return shown(found.keyword_call) + (f" -> {shown(found.into)}" if found.into else "")


def fault(source: str, *, inside: bool = False) -> ScriptError:
    with pytest.raises(ScriptError) as raised:
        matched(source, inside=inside)
    return raised.value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('SEND MAIL a, "s", b', "SEND MAIL(to=a, subject='s', body=b)"),
        ("send mail a, b, c, [d]", "SEND MAIL(to=a, subject=b, body=c, files=[d])"),
        ("USE MCP server", "USE MCP(server='server')"),
        ('USE MCP "s", t, {"a": 1}', "USE MCP(server='s', tool=t, arguments={a: 1})"),
        ("LIST TOOLS", "LIST TOOLS()"),
        ("UPDATE t, f, 1, 2", "UPDATE(table='t', filter=f, values=[1, 2])"),
        ('SET HEADER "A", b', "SET HEADER(name='A', value=b)"),
        ('SET HEADER "A" = b + "c"', "SET HEADER(name='A', value=(b + 'c'))"),
        ("SET HEADER X-Trace = 1", "SET HEADER(name='X-Trace', value=1)"),
    ],
)
def test_a_statement_gives_the_slots_of_its_form_their_values(source: str, expected: str) -> None:
    assert read(source) == expected


def test_the_longest_first_words_win_and_shorter_ones_are_tried_behind_them() -> None:
    assert read('TALK TO "x:y", b') == "TALK TO(to='x:y', text=b)"
    assert read("TALK a") == "TALK(text=a)"
    assert read("GET BOT MEMORY k") == "GET BOT MEMORY(key=k)"
    assert read("GET bot") == "GET(url=bot)"
    assert read("DELETE from") == "DELETE(what=from)"


def test_first_words_may_be_joined_by_underscores() -> None:
    assert read('CREATE_TASK "x"') == "CREATE TASK(title='x')"
    assert read("set_bot_memory k, v") == "SET BOT MEMORY(key=k, value=v)"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('SET BOT MEMORY("k", v)', "SET BOT MEMORY(key='k', value=v)"),
        ("SEND MAIL (a, b, c)", "SEND MAIL(to=a, subject=b, body=c)"),
        ("LIST TOOLS()", "LIST TOOLS()"),
        ("TALK(a)", "TALK(text=a)"),
        ("TALK(a) + b", "TALK(text=(a + b))"),
        ("TALK (a + b) * 2", "TALK(text=((a + b) * 2))"),
        ('USE WEBSITE("u") REFRESH "30d"', "USE WEBSITE(address='u', every='30d')"),
        ("UPDATE(t, (1 + 2) * 3, [1, 2])", "UPDATE(table='t', filter=((1 + 2) * 3), values=[[1, 2]])"),
    ],
)
def test_all_that_a_keyword_is_given_may_stand_in_parentheses(source: str, expected: str) -> None:
    assert read(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("USE TOOL weather", "'weather'"),
        ("USE TOOL weather.bas", "'weather.bas'"),
        ("USE TOOL shop.gbdialog/get-price.bas", "'shop.gbdialog/get-price.bas'"),
        ('USE TOOL "weather.bas"', "'weather.bas'"),
        ('USE TOOL "a" + b', "('a' + b)"),
        ('USE TOOL name + ".bas"', "(name + '.bas')"),
        ("USE TOOL tools[0]", "tools[0]"),
        ("USE TOOL lcase(x)", "lcase(x)"),
        ("USE TOOL 30d", "'30d'"),
    ],
)
def test_a_word_means_itself_unless_an_expression_begins_with_it(source: str, expected: str) -> None:
    assert read(source) == f"USE TOOL(tool={expected})"


@pytest.mark.parametrize(
    ("before", "source", "expected"),
    [
        ("", "FIND customers", "'customers'"),
        ("", 'FIND "customers"', "'customers'"),
        ("", "FIND customers.csv", "customers.csv"),
        ("", 'FIND prefix + "s"', "(prefix + 's')"),
        ('place = "customers"', "FIND place", "place"),
        ("LET place = a + b", "FIND place", "place"),
        ("PARAM place AS string", "FIND place", "place"),
        ("FOR EACH place IN places", "FIND place", "place"),
        ("HEAR place", "FIND place", "place"),
        ("SUB look(place)", "FIND place", "place"),
        ('customers = FIND customers, "a=1"', "FIND customers", "'customers'"),
        ("x = customers", "FIND customers", "'customers'"),
    ],
)
def test_a_bare_word_is_a_tables_name_unless_it_is_a_variable(before: str, source: str, expected: str) -> None:
    assert read(f"{before}\n{source}" if before else source) == f"FIND(table={expected})"


def test_a_variable_that_is_only_set_later_does_not_name_a_table() -> None:
    cursor = Cursor(small_tokens('FIND place\nplace = "x"'))
    found = FORMS.match(cursor, SmallExpressions(FORMS), inside=False)
    assert found is not None
    assert shown(found.keyword_call) == "FIND(table='place')"


def test_one_of_several_words_is_taken_in_upper_case_quoted_or_not() -> None:
    assert read("AGGREGATE avg, d, f") == "AGGREGATE(kind='AVG', of=d, field=f)"
    assert read('AGGREGATE "sum", d, f') == "AGGREGATE(kind='SUM', of=d, field=f)"


def test_a_variable_that_receives_the_result_is_told_apart_from_the_arguments() -> None:
    assert read("HEAR answer") == "HEAR() -> answer"
    assert read("HEAR form.mail AS email") == "HEAR(type='EMAIL') -> form.mail"
    assert read('HEAR size AS "S", "M"') == "HEAR(choices=['S', 'M']) -> size"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = 1", "['and', ['a', '=', 1]]"),
        ('a = 1 AND b.c > x AND "d" LIKE "%e"', "['and', ['a', '=', 1], ['b.c', '>', x], ['d', 'like', '%e']]"),
        ("a = 1 OR b = 2 AND c = 3", "['or', ['a', '=', 1], ['and', ['b', '=', 2], ['c', '=', 3]]]"),
        ("NOT (a = 1)", "['and', ['not', ['a', '=', 1]]]"),
        ("a IS NULL AND b IS NOT NULL", "['and', ['a', '=', None], ['b', '<>', None]]"),
        ("18 < age", "['and', ['age', '>', 18]]"),
        ("a IN [1, 2]", "['and', ['a', 'in', [1, 2]]]"),
        ('a IN ("x", y + 1) AND b NOT IN c', "['and', ['a', 'in', ['x', (y + 1)]], ['b', 'not in', c]]"),
        ("a BETWEEN 1 AND x + 1 AND b = 2", "['and', ['a', 'between', [1, (x + 1)]], ['b', '=', 2]]"),
        ('a CONTAINS "x" OR b NOT LIKE "y%"', "['or', ['a', 'contains', 'x'], ['b', 'not like', 'y%']]"),
        ('a ILIKE "%" + x + "%"', "['and', ['a', 'like', (('%' + x) + '%')]]"),
        (
            "(a = 1 OR b = 2) AND c = (1 + 2) * 3",
            "['and', ['or', ['a', '=', 1], ['b', '=', 2]], ['c', '=', ((1 + 2) * 3)]]",
        ),
        ("(a) = 1", "['and', ['a', '=', 1]]"),
        ("NOT active AND user.is_new", "['and', ['not', ['active', '=', True]], ['user.is_new', '=', True]]"),
        ('LOWER(name) = "x"', "['and', ['lower(name)', '=', 'x']]"),
        ("email = email", "['and', ['email', '=', email]]"),
        ("id = GET BOT MEMORY(k) AND b = 1", "['and', ['id', '=', GET BOT MEMORY(key=k)], ['b', '=', 1]]"),
        ('"a=" + x', "filter('a=', x)"),
        ("filter", "filter"),
    ],
)
def test_a_condition_becomes_lists_that_a_keyword_can_read(source: str, expected: str) -> None:
    assert read(f"DELETE FROM t WHERE {source}") == f"DELETE FROM(table='t', filter={expected})"


def test_a_condition_of_a_thousand_parts_is_read() -> None:
    found, _ = matched("DELETE FROM t WHERE " + " AND ".join(f"c{n} = {n}" for n in range(1000)))
    assert found is not None
    assert shown(found.keyword_call).count("'='") == 1000


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("a =", "expected a value, found the end of the script"),
        ("a = 1 AND", "expected a value, found the end of the script"),
        ("a = AND b = 1", "expected a value, found `AND`"),
        ("(a = 1", "expected `)` after the condition in parentheses"),
        ("a BETWEEN 1", "expected AND after BETWEEN"),
        ("a IS 5", "expected NULL or NOT NULL after IS"),
        ("a IN (1", "expected `)` after the values of IN"),
        ("a = 1 AND 5", "a condition compares columns with values"),
        ("1 + 2 = 3", "a condition compares columns with values"),
        ("(" * 20_000 + "a = 1", "nested too deeply"),
        ("NOT " * 90 + "a = 1", "nested too deeply"),
        ("(a = 1 OR b = 1 AND " * 40 + "c = 1" + ")" * 40, "nested too deeply"),
        (" AND ".join(["a = 1"] * 9) + " AND", "expected a value"),
    ],
)
def test_a_wrong_condition_says_what_is_wrong(source: str, told: str) -> None:
    assert told in fault(f"DELETE FROM t WHERE {source}").fault.message


def test_a_condition_ends_before_the_next_words_of_the_form() -> None:
    forms = Forms([form_of("FIND {table:name} [WHERE {filter:condition}] [ORDER BY {order:word}] [LIMIT {limit}]")])
    found, cursor = matched("FIND t WHERE a = x AND b LIKE y ORDER BY c.d LIMIT 5", forms=forms)
    assert found is not None
    assert cursor.is_line_end
    assert shown(found.keyword_call) == (
        "FIND(table='t', filter=['and', ['a', '=', x], ['b', 'like', y]], order='c.d', limit=5)"
    )


def test_a_condition_within_a_map_ends_at_its_comma() -> None:
    forms = Forms([form_of("FIND {table:name} [WHERE {filter:condition}]"), form_of("TALK {text}")])
    found, _ = matched('TALK {x: FIND "t" WHERE a = b, y: 1}', forms=forms)
    assert found is not None
    assert shown(found.keyword_call) == "TALK(text={x: FIND(table='t', filter=['and', ['a', '=', b]]), y: 1})"


@pytest.mark.parametrize(
    ("form", "source", "expected"),
    [
        ("SAVE {t:name}, {f:named}", 'SAVE t, id, a.B, c["x y"], 5', "f={id: id, B: a.B, x y: c['x y'], #4: 5}"),
        ("SAVE {t:name}, {f:named}", "SAVE t, a, a, a", "f={a: a, a_2: a, a_3: a}"),
        ("REMEMBER {p:pair}", 'REMEMBER "po_" + po.id = po', "p=[('po_' + po.id), po]"),
        (
            "INSERT {t:name} {c:names} VALUES {r:row}",
            'INSERT t (a, "b") VALUES (1, x + 1)',
            "c=['a', 'b'], r=[1, (x + 1)]",
        ),
        ('CALL {n:word} ["(" [{a...}] ")"]', "CALL report(1, x)", "n='report', a=[1, x]"),
    ],
)
def test_slots_may_name_columns_and_forms_may_hold_brackets(form: str, source: str, expected: str) -> None:
    found, _ = matched(source, forms=Forms([form_of(form)]))
    assert found is not None
    assert shown(found.keyword_call).split("(", 1)[1].removeprefix("t='t', ") == f"{expected})"


def test_assignments_become_a_map() -> None:
    assert read('UPDATE t SET a = 1, "b c" = x + 1 WHERE id = 5') == (
        "UPDATE(table='t', changes={a: 1, b c: (x + 1)}, filter=['and', ['id', '=', 5]])"
    )
    assert read("UPDATE t SET a AS 1, b AS x.y") == "UPDATE(table='t', changes={a: 1, b: x.y})"


def test_a_block_is_a_text_with_its_insertions() -> None:
    assert read('BEGIN MAIL "a@b.c" «Dear ${name},»') == "BEGIN MAIL(to='a@b.c', text=<'Dear ' name ','>)"


@pytest.mark.parametrize(
    ("source", "expected", "behind"),
    [
        ('FIND "t", "f"', "FIND(table='t', filter='f')", ""),
        ("GET BOT MEMORY(k) + 1", "GET BOT MEMORY(key=k)", "+"),
        ("LLM(a) + b", "LLM(prompt=a)", "+"),
        ("LLM (a) + b", "LLM(prompt=(a + b))", ""),
        ("LLM a)", "LLM(prompt=a)", ")"),
        ('FIND "t", b: 2}', "FIND(table='t')", ","),
        ("LIST TOOLS]", "LIST TOOLS()", "]"),
        ('WEATHER "Paris"', "WEATHER(place='Paris')", ""),
    ],
)
def test_within_an_expression_a_keyword_ends_where_it_cannot_go_on(source: str, expected: str, behind: str) -> None:
    found, cursor = matched(source, inside=True)
    assert found is not None
    assert shown(found.keyword_call) == expected
    assert cursor.now.text == behind


def test_a_keyword_may_stand_in_what_another_is_given() -> None:
    assert read('SET BOT MEMORY("n", GET BOT MEMORY("n") + 1)') == (
        "SET BOT MEMORY(key='n', value=(GET BOT MEMORY(key='n') + 1))"
    )
    assert read('TALK LLM "Hi " + name') == "TALK(text=LLM(prompt=('Hi ' + name)))"


@pytest.mark.parametrize("source", ["weather", "weather.wind", "weather[0]", "weather + 1", "weather)", "weather THEN"])
def test_a_variable_called_as_a_keyword_stays_a_variable(source: str) -> None:
    found, cursor = matched(source, inside=True)
    assert found is None
    assert cursor.index == 0


@pytest.mark.parametrize("source", ["SEND", "SEND x", "talks a", "5", '"TALK"', "", "SET USER x"])
def test_where_no_keyword_begins_nothing_is_found_and_nothing_passed(source: str) -> None:
    found, cursor = matched(source)
    assert found is None
    assert cursor.index == 0


@pytest.mark.parametrize(
    ("source", "column", "told"),
    [
        ("SEND MAIL a b", 13, "SEND MAIL: expected `,`, found `b`"),
        ("SEND MAIL a, b", 15, "SEND MAIL: expected `,`, found the end of the script"),
        ("SEND MAIL a, , c", 14, "SEND MAIL: expected a value for `subject`, found `,`"),
        ("SEND MAIL a, b, c, d, e", 21, "SEND MAIL: expected the end of the statement, found `,`"),
        ("SEND MAIL(a, b)", 15, "SEND MAIL: expected `,`, found `)`"),
        ("SEND MAIL(a, b, c, d, e)", 21, "SEND MAIL: expected `)`, found `,`"),
        ("TALK", 5, "TALK: expected a value for `text`, found the end of the script"),
        ("AGGREGATE max, d, f", 11, "AGGREGATE: expected `SUM` or `AVG`, found `max`"),
        ("HEAR 5", 6, "HEAR: expected a variable, found `5`"),
        ("UPDATE t", 9, "UPDATE: expected `SET` or `,`"),
        ("UPDATE t SET a = 1,", 20, "UPDATE: expected `column = value`"),
        ("BEGIN MAIL x", 13, "BEGIN MAIL: expected the text of the block"),
    ],
)
def test_a_statement_that_nearly_fits_is_told_where_it_fails_and_how_it_is_written(
    source: str, column: int, told: str
) -> None:
    found = fault(source).fault
    assert (found.at, found.code) == (At(1, column), Code.SYNTAX)
    assert found.message.startswith(told)


def test_the_usage_line_stands_behind_the_fault() -> None:
    assert fault("SEND MAIL a b").fault.message.endswith("write `SEND MAIL to, subject, body [, files]`")
    assert " or `UPDATE table, filter, values, …`" in fault("UPDATE t").fault.message


def test_a_fault_within_a_value_is_told_as_it_is() -> None:
    found = fault("SEND MAIL a, (b + , c").fault
    assert (found.at, found.message) == (At(1, 19), "expected a value")


@pytest.mark.parametrize(
    ("form", "usage"),
    [
        ("SEND MAIL {to}, {subject}, {body} [, {files}]", "SEND MAIL to, subject, body [, files]"),
        ("HEAR {into:variable} [AS ({type=A|B} | {choices...})]", "HEAR into [AS (A|B | choices, …)]"),
        ("BEGIN MAIL {to} {text:block}", "BEGIN MAIL to … END MAIL"),
        ("COPY {from_}, {to}", "COPY from, to"),
        ("UPDATE {t:name} SET {a:assignments}", "UPDATE t SET column = value, …"),
        ("DELETE FROM {t:name} WHERE {c:condition}", "DELETE FROM t WHERE column = value [AND …]"),
    ],
)
def test_a_form_is_shown_as_authors_of_scripts_read_it(form: str, usage: str) -> None:
    assert usage_of(form_of(form)) == usage


def test_a_form_knows_its_name_its_slots_and_which_of_them_are_always_filled() -> None:
    form = form_of("SAVE [ALL] {table:name} ({a}, {b} | WITH {b}) [, {c}]")
    assert (form.name, form.slots) == ("SAVE", ("table", "a", "b", "c"))
    assert form.required == {"table", "b"}
    assert form_of("GET BOT MEMORY {k}").name == "GET BOT MEMORY"


def test_the_names_of_keywords_are_listed_once_each_in_their_order() -> None:
    forms = Forms([form_of("TALK {a}"), form_of("GET BOT MEMORY {a}"), form_of("TALK {a}, {b}")])
    assert forms.names == ("TALK", "GET BOT MEMORY")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must begin with the name"),
        ("{a}", "must begin with the name"),
        ("[A] {b}", "must begin with the name"),
        ("Talk {a}", "`Talk`: write words of the statement in upper case"),
        ("TALK a", "`a`: write words of the statement in upper case"),
        ("TALK {a", "unexpected `{`"),
        ("TALK {A}", "`{A}` is not a valid slot"),
        ("TALK {}", "`{}` is not a valid slot"),
        ("TALK {a:thing}", "unknown slot kind `thing`; known kinds: assignments, block"),
        ("TALK {a=x|y}", "`{a=x|y}` is not a valid slot"),
        ("TALK [{a}", "`[` is not closed"),
        ("TALK {a}]", "unexpected `]`"),
        ("TALK ({a} | )", "expected a word or a slot before `)`"),
        ("TALK []", "expected a word or a slot before `]`"),
        ("TALK {a}, {a}", "{a} could be filled twice"),
        ("TALK {a} [, {a}]", "{a} could be filled twice"),
        ("HEAR {a:variable} {b:variable}", "only one slot can be a variable"),
        ("SAVE {a...} [, {b}]", "no comma may follow {a}, which takes all values separated by commas"),
        ("SET {a} = {b}", "use {a:word}"),
    ],
)
def test_a_bad_form_says_what_is_wrong_with_it(text: str, why: str) -> None:
    with pytest.raises(BadForm) as raised:
        form_of(text)
    assert why in str(raised.value)
    assert f"form `{text}`" in str(raised.value)


def test_alternatives_may_fill_the_same_slot() -> None:
    form = form_of("FORMAT ({value} AS {pattern} | {value}, {pattern})")
    assert shown(_only(form, "FORMAT a AS b")) == shown(_only(form, "FORMAT a, b"))


def _only(form: Form, source: str):  # type: ignore[no-untyped-def]
    found, _ = matched(source, forms=Forms([form]))
    assert found is not None
    return found.keyword_call


def test_the_effort_does_not_grow_with_the_depth_of_a_statement() -> None:
    began = time.process_time()
    deep = "TALK " + "LLM (" * 24 + "1" + ")" * 24 + " +"
    fault(deep)
    fault("TALK " + "UPDATE t SET a = 1 WHERE b = (" * 24 + "1" + ")" * 24 + " +")
    fault("TALK " + "DELETE t WHERE b = " * 24 + "+")
    fault("SET HEADER " + "LLM (" * 24 + "1" + ")" * 24 + " 5")
    assert time.process_time() - began < 1


def test_thousands_of_tables_are_told_from_variables_in_time() -> None:
    cursor = Cursor(small_tokens('place = "x"\n' + "FIND place\n" * 4000))
    began, found = time.process_time(), 0
    while cursor.now.kind is not Kind.END:
        matched = FORMS.match(cursor, SmallExpressions(FORMS), inside=False)
        found += matched is not None and shown(matched.keyword_call) == "FIND(table=place)"
        while not cursor.is_line_end:
            cursor.take()
        cursor.take()
    assert found == 4000
    assert time.process_time() - began < 5


SIGNS = ("(", ")", "[", "]", "{", "}", "#{", ",", ".", "=", "<>", "+", "-", ":", "$", "😀", "\n")
VALUES = ("1", "2.5", '"t"', '"${x}"', '"${"', "«b ${y}»", "a", "b", "x_1", "AS", "WHERE", "AND", "NOT", "IS", "NULL")
LEADS = sorted({word for written in WRITTEN for word in form_of(written).lead})
WORDS = st.sampled_from([*SIGNS, *VALUES, *LEADS])


@given(st.lists(WORDS, max_size=14), st.sampled_from(WRITTEN), st.booleans())
@settings(max_examples=600)
def test_whatever_stands_there_only_a_script_fault_is_raised(words: list[str], form: str, inside: bool) -> None:
    cursor = Cursor(small_tokens(" ".join([*form_of(form).lead, *words])))
    try:
        found = FORMS.match(cursor, SmallExpressions(FORMS), inside=inside)
    except ScriptError as error:
        assert error.fault.message  # noqa: PT017 - both outcomes are valid
        return
    if found is None:
        assert cursor.index == 0
    elif not inside:
        assert cursor.is_line_end or cursor.now.kind is Kind.WORD


@given(st.text(alphabet="TALK abc{}[]()|,=:._…", max_size=24))
@settings(max_examples=600)
def test_any_text_is_a_form_or_a_bad_one(text: str) -> None:
    try:
        form = form_of(text)
    except BadForm:
        return
    assert usage_of(form).startswith(form.name)
    assert form.required <= set(form.slots)
