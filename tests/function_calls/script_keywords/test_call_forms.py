"""Forms of function calls in scripts."""

from __future__ import annotations

import pytest

from function_calls.basic.keyword_modules.calls import call
from function_calls.basic.keywords import keyword_declaration
from function_calls.basic.language.forms import Forms, form_of
from function_calls.basic.language.tokens import Cursor
from function_calls.basic.nodes import ListOf, Literal, MapOf
from tests.function_calls.basic.small_reader import SmallExpressions, small_tokens


def matched(statement: str, *, inside: bool) -> tuple[str, object, list[object]]:
    """Keyword, function name, and values or names of the arguments."""
    declaration = keyword_declaration(call)
    assert declaration is not None
    forms = Forms(map(form_of, declaration.forms))
    found = forms.match(Cursor(small_tokens(statement)), SmallExpressions(forms), inside=inside)
    assert found is not None
    given = dict(found.keyword_call.arguments)
    name = given.pop("name")
    assert isinstance(name, Literal)
    values: list[object] = []
    for one in given.values():
        assert isinstance(one, ListOf | MapOf)
        if isinstance(one, MapOf):
            values += [key for key, _ in one.entries]
        else:
            values += [item.value if isinstance(item, Literal) else type(item).__name__ for item in one.items]
    return found.keyword_call.keyword, name.value, values


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("statement", "name", "values"),
    [
        ("CALL sky", "sky", []),
        ("CALL sky()", "sky", []),
        ('CALL sky("Oslo", 2)', "sky", ["Oslo", 2]),
        ('CALL sky ("Oslo")', "sky", ["Oslo"]),
        ('CALL "sky"("Oslo")', "sky", ["Oslo"]),
        ('CALL("sky", "Oslo")', "sky", ["Oslo"]),
        ('CALL "sky", "Oslo", 2', "sky", ["Oslo", 2]),
        ('CALL "sky" "Oslo"', "sky", ["Oslo"]),
        ('CALL "sky", {"city": "Oslo"}', "sky", ["MapOf"]),
        ("CALL sky WITH given", "sky", ["Name"]),
        ('CALL sky WITH city = "Oslo", days = 2', "sky", ["city", "days"]),
        ("CALL shop.gbdialog/sky.bas", "shop.gbdialog/sky.bas", []),
        ("CALL mcp__home__set(1)", "mcp__home__set", [1]),
    ],
)
def test_a_call_names_a_function_and_what_it_is_given(
    statement: str, name: str, values: list[object], inside: bool
) -> None:
    assert matched(statement, inside=inside) == ("CALL", name, values)


def test_other_words_for_a_call() -> None:
    assert matched('RUN TOOL "sky", 1', inside=False) == ("RUN TOOL", "sky", [1])
    assert matched('TOOL "send","other-group","x"', inside=False) == ("TOOL", "send", ["other-group", "x"])
