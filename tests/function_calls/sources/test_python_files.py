"""Python files and packages in an operator's folders: their functions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.function_calls.routing import Routing
from tests.function_calls.sources.watching import (
    HEAD,
    given_by,
    marked,
    names,
    places,
    said_by,
    watched,
    write,
)

# -- functions of files


async def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "_private.py", ".hidden.py", "test_a.py", "conftest.py"):
        write(tmp_path, name, marked(Path(name).stem.strip("._")))
    write(tmp_path, "notes.txt", "no Python")
    write(tmp_path, "plain/inner.py", marked("inner"))
    snapshot = await given_by(tmp_path)
    assert (names(snapshot), snapshot.faults) == (["a", "b"], ())
    assert snapshot.specs[0].origin.source == f"{tmp_path / 'a.py'}:4"


async def test_paths_keep_their_order_and_count_once(tmp_path: Path) -> None:
    one, two = write(tmp_path, "a.py", marked("a")), write(tmp_path, "b.py", marked("b"))
    assert names(await given_by(two, tmp_path, one)) == ["b", "a"]


async def test_models_of_a_file_with_postponed_annotations_are_understood(tmp_path: Path) -> None:
    write(
        tmp_path,
        "greeting.py",
        "from __future__ import annotations\n" + HEAD + "class Kind(BaseModel):\n    of: str\n"
        "class Who(BaseModel):\n    name: str\n    kinds: list[Kind] = []\n"
        "@tool_function(description='Greets.')\n"
        "async def greet(context: MessageContext, args: Who) -> str:\n    return f'Hi {args.name}'\n",
    )
    [spec] = (await given_by(tmp_path)).specs
    assert await said_by(spec, name="Bo") == "Hi Bo"


@pytest.mark.requirement("E25", "E28")
async def test_a_file_gives_functions_in_all_ways_together(tmp_path: Path) -> None:
    write(
        tmp_path,
        "both.py",
        marked("greet")
        + """
from function_calls.schema.mappings import new_spec

def add(args):
    return args["a"] + args["b"]

def tools():
    number = {"type": "integer", "required": True}
    return [
        {"name": "add", "handler": add, "parameters": {"a": number, "b": number}},
        new_spec("ready", lambda args: "done", "Is ready.", tags=["own"]),
    ]

def tool_info():
    return {"description": "Small things", "tags": ["small"]}
""",
    )
    snapshot = await given_by(tmp_path)
    greet, add, ready = snapshot.specs
    assert [spec.origin.tags for spec in snapshot.specs] == [{"small"}, {"small"}, {"own"}]
    assert [spec.description for spec in snapshot.specs] == ["Does greet.", "Small things", "Is ready."]
    assert add.origin.source == f"{tmp_path / 'both.py'}:10"
    assert ready.origin.source == f"{tmp_path / 'both.py'}:13"
    assert [await said_by(greet), await said_by(add, a=1, b=2), await said_by(ready)] == ["Hi", "", "done"]


async def test_a_function_that_is_imported_from_elsewhere_is_not_given_unless_it_is_named(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "from tests.function_calls.sample_functions import hello, travel\n" + marked("own"))
    write(tmp_path, "passed_on.py", "from tests.function_calls.sample_functions import hello\n__all__ = ['hello']\n")
    assert names(await given_by(tmp_path)) == ["own", "hello"]


@pytest.mark.requirement("E12", "E13")
@pytest.mark.parametrize(
    ("handler", "says"),
    [
        ("own:greet", "Hello Bo"),
        (("own:greet", ["!"]), "Hello Bo!"),
        ("tests.function_calls.plain_tools:add", "5"),
        (("tests.function_calls.plain_tools:greet", ["Hej", "."]), "Hej, Bo."),
    ],
)
async def test_a_handler_is_found_by_its_path_in_the_file_itself_and_elsewhere(
    tmp_path: Path, handler: object, says: str
) -> None:
    write(
        tmp_path,
        "own.py",
        f"""
        def greet(args, context, mark=""):
            return f"Hello {{args['name']}}{{mark}}"

        def tools():
            parameters = {{"name": "string", "a": "integer", "b": "integer"}}
            return [{{"name": "act", "handler": {handler!r}, "parameters": parameters}}]
        """,
    )
    [spec] = (await given_by(tmp_path)).specs
    result = await Routing(spec).invoke("act", raw={"name": "Bo", "a": 2, "b": 3})
    assert (result.reply or str(result.data)) == says


async def test_a_package_is_one_unit_with_imports_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, "shop/__init__.py", "from ._prices import PRICE\n")
    write(tmp_path, "shop/_prices.py", "PRICE = 7\n")
    write(tmp_path, "shop/buying.py", "from . import PRICE\nfrom .deep.more import word\n" + marked("buy"))
    write(
        tmp_path,
        "shop/deep/more.py",
        """
        def word(args):
            from .. import _late
            return _late.WORD

        def tools():
            return [
                {"name": "word", "handler": word},
                {"name": "same", "handler": ".deep.more:word"},
                {"name": "again", "handler": "shop.deep.more:word"},
            ]
        """,
    )
    write(tmp_path, "shop/_late.py", "WORD = 'late'\n")
    write(tmp_path, "shop/tests/test_buying.py", "raise RuntimeError\n")
    snapshot = await given_by(tmp_path)
    assert (names(snapshot), snapshot.faults) == (["buy", "word", "same", "again"], ())
    assert [await said_by(spec) for spec in snapshot.specs] == ["Hi", "late", "late", "late"]
    assert names(await given_by(tmp_path / "shop")) == names(snapshot)


# -- filters of a module


FILTERED = (
    marked("greet", filters="loud")
    + """
def tools():
    return [{"name": "act", "handler": lambda args: f"done {args['x']}", "filters": ["loud", "guard"],
             "parameters": {"x": "string"}},
            {"name": "free", "handler": lambda args: "free"}]

def louder(facts):
    return ("continue", {"result": facts["result"].upper()})

def guard(facts):
    return None if facts["args"]["x"] else ("error", "No x.")

def filters():
    return [
        {"name": "loud", "type": "post_invocation", "handler": louder},
        {"name": "guard", "type": "pre_invocation", "handler": guard},
    ]
"""
)


@pytest.mark.requirement("E8", "E28")
async def test_filters_of_a_module_apply_to_its_functions_that_name_them(tmp_path: Path) -> None:
    write(tmp_path, "own.py", FILTERED)
    greet, act, free = (await given_by(tmp_path)).specs
    assert [await said_by(greet), await said_by(act, x="well"), await said_by(free)] == ["HI", "DONE WELL", "free"]
    refused = await Routing(act).invoke("act", raw={"x": ""})
    assert refused.error is not None
    assert refused.error.text == "No x."


@pytest.mark.requirement("E8")
async def test_a_changed_filter_counts_with_the_change(tmp_path: Path) -> None:
    write(tmp_path, "own.py", FILTERED)
    async with watched(tmp_path) as files:
        await files.next()
        write(tmp_path, "own.py", FILTERED.replace("upper()", "lower()"))
        assert await said_by((await files.change()).specs[0]) == "hi"


async def test_filters_that_cannot_be_made_take_only_the_functions_along_that_name_some(tmp_path: Path) -> None:
    write(tmp_path, "own.py", FILTERED.replace('"post_invocation"', '"sometimes"'))
    snapshot = await given_by(tmp_path)
    assert names(snapshot) == ["free"]
    assert "filter loud: type 'sometimes' is none of" in snapshot.faults[0].message
    assert places(snapshot) == ["own.py:19", "own.py:4", "own.py:9"]


async def test_a_filter_around_requests_cannot_stand_around_runs(tmp_path: Path) -> None:
    write(tmp_path, "own.py", FILTERED.replace('"post_invocation"', '"post_chat"'))
    [fault, _] = (await given_by(tmp_path)).faults
    assert "'loud' wraps requests to the model" in fault.message


async def test_a_module_of_filters_alone_is_no_fault(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "def filters():\n    return []\n")
    assert (await given_by(tmp_path)).faults == ()


# -- modules next to a function file


def saying(expression: str, name: str = "tell", head: str = "") -> str:
    """A file with the function `name`, which returns the value of `expression`."""
    return f"{head}\ndef tools():\n    return [{{'name': '{name}', 'handler': lambda args: str({expression})}}]\n"


@pytest.mark.parametrize("name", ["config", "bot", "services", "function_calls", "helpers", "aiohttp", "_own"])
@pytest.mark.parametrize(
    "head",
    [
        "import {0}\nWORD = {0}.WORD",
        "import {0} as other\nWORD = other.WORD",
        "from {0} import WORD",
        "from .{0} import WORD",
        "from {0} import *",
        "def late():\n    from {0} import WORD\n    return WORD\nWORD = late()",
    ],
)
async def test_a_module_beside_a_function_file_is_found_whatever_its_name(tmp_path: Path, name: str, head: str) -> None:
    write(tmp_path, f"{name}.py", "WORD = 'mine'\n")
    write(tmp_path, "tell.py", saying("WORD", head=head.format(name)))
    ours = sys.modules.get(name)
    snapshot = await given_by(tmp_path)
    assert (names(snapshot), snapshot.faults) == (["tell"], ())
    assert await said_by(snapshot.specs[0]) == "mine"
    assert sys.modules.get(name) is ours


async def test_two_folders_with_modules_of_the_same_name_have_their_own(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(tmp_path, f"{folder}/helpers.py", f"WORD = '{folder}'\n")
        write(tmp_path, f"{folder}/tell.py", saying("helpers.WORD", name=folder, head="import helpers"))
    specs = (await given_by(tmp_path / "one", tmp_path / "two")).specs
    assert [await said_by(spec) for spec in specs] == ["one", "two"]


async def test_the_daemons_packages_and_the_standard_library_are_found_beside_files_of_their_names(
    tmp_path: Path,
) -> None:
    for name in ("services", "config", "random", "rollcall"):
        write(tmp_path, f"{name}.py", "WORD = 'mine'\n")
    head = (
        "import random\nimport config\nimport services.refs\nfrom services.clock import Clock\n"
        "import rollcall\nfrom rollcall import tool_function\n"
    )
    write(tmp_path, "tell.py", saying("(hasattr(random, 'choice'), config.WORD, Clock.__name__)", head=head))
    snapshot = await given_by(tmp_path)
    [spec] = [one for one in snapshot.specs if one.name == "tell"]
    assert await said_by(spec) == "(True, 'mine', 'Clock')"


async def test_a_file_with_the_name_of_an_installed_module_imports_that_one(tmp_path: Path) -> None:
    write(tmp_path, "aiohttp.py", saying("hasattr(aiohttp, 'ClientSession')", head="import aiohttp"))
    assert await said_by((await given_by(tmp_path)).specs[0]) == "True"


async def test_modules_beside_a_file_import_each_other_and_packages(tmp_path: Path) -> None:
    write(tmp_path, "shop/__init__.py", "")
    write(tmp_path, "shop/prices/__init__.py", "from config import PRICE\n")
    write(tmp_path, "config.py", "import _more as more\nPRICE = more.PRICE\n")
    write(tmp_path, "_more.py", "from _numbers import PRICE\n")
    write(tmp_path, "_numbers.py", "PRICE = 7\n")
    write(tmp_path, "a.py", saying("shop.prices.PRICE", name="a", head="import shop.prices"))
    write(tmp_path, "b.py", saying("prices.PRICE", name="b", head="import shop.prices as prices"))
    snapshot = await given_by(tmp_path / "a.py", tmp_path / "b.py")
    assert [await said_by(spec) for spec in snapshot.specs] == ["7", "7"]


async def test_a_file_of_a_package_finds_the_module_beside_it_before_the_daemons(tmp_path: Path) -> None:
    write(tmp_path, "shop/__init__.py", "")
    write(tmp_path, "shop/config.py", saying("PRICE", name="other", head="PRICE = 7"))
    write(tmp_path, "shop/buying.py", saying("PRICE", head="from config import PRICE"))
    specs = (await given_by(tmp_path)).specs
    assert [await said_by(spec) for spec in specs] == ["7", "7"]


async def test_a_handler_may_be_named_in_a_module_beside_the_file(tmp_path: Path) -> None:
    write(tmp_path, "config.py", "def say(args):\n    return 'mine'\n")
    write(tmp_path, "own.py", "def tools():\n    return [{'name': 'tell', 'handler': 'config:say'}]\n")
    assert await said_by((await given_by(tmp_path)).specs[0]) == "mine"


async def test_nothing_is_imported_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "here/helpers.py", "WORD = 'here'\n")
    write(tmp_path, "functions/tell.py", saying("helpers.WORD", head="import helpers"))
    monkeypatch.chdir(tmp_path / "here")
    [fault] = (await given_by(tmp_path / "functions")).faults
    assert "No module named 'helpers'" in fault.message


async def test_a_broken_module_beside_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "_helpers.py", "\nraise RuntimeError('boom')\n")
    write(tmp_path, "tell.py", saying("1", head="import _helpers"))
    assert places(await given_by(tmp_path)) == ["_helpers.py:2"]
