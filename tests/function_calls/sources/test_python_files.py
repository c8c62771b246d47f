"""Python files in folders of an operator: what they give, what is said of those that are broken, and their changes."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import traceback
import weakref
from pathlib import Path

import pytest

from bot.testing import a_group
from function_calls.filters.call import Invocation, Proceed
from function_calls.spec import FunctionResult, FunctionSpec
from services.clock import VirtualClock
from tests.fakes.sources import ToldChanges
from tests.function_calls.routing import Routing
from tests.function_calls.sources.watching import HEAD, given_by, marked, names, places, waiting_for, watched, write


async def said_by(spec: FunctionSpec, **arguments: object) -> str:
    """What a run says."""
    return (await Routing(spec).invoke(spec.name, raw=arguments)).reply


def modules_of(path: Path) -> list[str]:
    """The modules that Python holds of a file, or of all in a folder."""
    return [name for name, one in sys.modules.items() if (getattr(one, "__file__", "") or "").startswith(str(path))]


# -- what files give


async def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "_private.py", ".hidden.py", "test_a.py", "conftest.py"):
        write(tmp_path, name, marked(Path(name).stem.strip("._")))
    write(tmp_path, "notes.txt", "no Python")
    write(tmp_path, "plain/inner.py", marked("inner"))
    snapshot = await given_by(tmp_path)
    assert (names(snapshot), snapshot.faults) == (["a", "b"], ())
    assert snapshot.specs[0].source == f"{tmp_path / 'a.py'}:4"


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
        "async def greet(ctx: MessageContext, args: Who) -> str:\n    return f'Hi {args.name}'\n",
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
from function_calls.sources.mappings import new_spec

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
    assert [spec.tags for spec in snapshot.specs] == [{"small"}, {"small"}, {"own"}]
    assert [spec.description for spec in snapshot.specs] == ["Does greet.", "Small things", "Is ready."]
    assert add.source == f"{tmp_path / 'both.py'}:10"
    assert ready.source == f"{tmp_path / 'both.py'}:13"
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


# -- filters of a module's own


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
async def test_the_filters_of_a_module_stand_around_its_functions_that_name_them(tmp_path: Path) -> None:
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
    assert "'loud' stands around requests to the model" in fault.message


async def test_a_module_of_filters_alone_is_no_fault(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "def filters():\n    return []\n")
    assert (await given_by(tmp_path)).faults == ()


# -- what is broken


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("x = 1\ndef (\n", 2, "it cannot be imported: SyntaxError: "),
        ("import json\njson.loads('{')\n", 2, "it cannot be imported: JSONDecodeError: "),
        ("def f():\n    raise RuntimeError('boom')\nf()\n", 2, "RuntimeError: boom"),
        ("import no_such_module\n", 1, "No module named 'no_such_module'"),
        ("import sys\n\nsys.exit(3)\n", 3, "it ends the process while it is imported: SystemExit: 3"),
        ("def f():\n    f()\nf()\n", 2, "RecursionError"),
        ("x = '\0'\n", 1, "it cannot be imported"),
        ("", 1, "it gives no function: mark one with @tool_function, or write a function tools()"),
        ("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd\n", 3, "imported: Odd"),
        ("tools = 5\n", 1, "it gives no function"),
        (
            "def tools(ctx):\n    return []\n",
            1,
            "it must not need parameters (ctx); if it is meant",
        ),
        (
            "\nasync def tools():\n    return []\n",
            2,
            "it has to return a list of definitions, not coroutine; leave out",
        ),
        ("def tools():\n    return 5\n", 1, "it has to return a list of definitions, not int"),
        ("def tools():\n    x = 1\n    return x['a']\n", 3, "tools() cannot be asked: TypeError"),
        ("def tools():\n    raise SystemExit(1)\n", 2, "tools() cannot be asked: SystemExit: 1"),
        ("def tools():\n    return ['act']\n", 1, "definition 1"),
        ("def tools():\n    return [{'name': 'act'}]\n", 1, "function 'act'"),
        ("def tools():\n    return []\ndef tool_info():\n    return 5\n", 3, "it has to return a mapping, not int"),
        ("def tools():\n    return []\ndef tool_info():\n    return {'tags': [5]}\n", 3, "tags: has to be a text"),
        ("def tools():\n    return []\ndef tool_info():\n    return {'description': 5}\n", 3, "description: has to be"),
    ],
)
@pytest.mark.requirement("E28", "E1", "E2")
async def test_a_broken_file_is_named_with_its_line_and_hides_no_other(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    write(tmp_path, "good.py", marked("good"))
    (tmp_path / "broken.py").write_bytes(text.encode())
    snapshot = await given_by(tmp_path)
    assert names(snapshot) == ["good"]
    [found] = snapshot.faults
    assert (found.file, found.line, found.severity) == (str(tmp_path / "broken.py"), line, "error")
    assert problem in found.message
    assert modules_of(tmp_path / "broken.py") == [] or "cannot be imported" not in found.message


async def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    [found] = (await given_by(tmp_path / "nowhere.py")).faults
    assert (found.file, found.message) == (
        str(tmp_path / "nowhere.py"),
        f"{tmp_path / 'nowhere.py'}: there is no such file or folder",
    )


@pytest.mark.requirement("E1", "E47", "E48")
async def test_a_wrong_definition_is_named_with_the_line_of_its_handler_and_its_siblings_serve(tmp_path: Path) -> None:
    write(
        tmp_path,
        "own.py",
        marked("greet")
        + "@tool_function(rolles='admin')\nasync def wrong(ctx: MessageContext) -> str:\n    return ''\n"
        + """
class Odd:
    pass

@tool_function(description='Has an odd model.')
async def odd(ctx: MessageContext, args: Odd) -> str:
    return ''

def act(args):
    return "done"

def tools():
    return [
        {"name": "good", "handler": act},
        {"name": "late", "handler": act, "timeout": "soon"},
        {"name": "misspelt", "handler": act, "paramters": {}},
        {"name": "nowhere", "handler": "no_such_module:f"},
        {"name": "deadly", "handler": "tests.function_calls.sources.ends_the_process:f"},
        {"name": "schema", "handler": act, "parameters": {"type": "object", "properties": 5}},
        {"handler": act},
        5,
    ]
""",
    )
    snapshot = await given_by(tmp_path)
    assert names(snapshot) == ["greet", "good"]
    assert places(snapshot) == [f"own.py:{line}" for line in (7, 14, 18, 18, 21, 21, 18, 21, 21)]
    said = [fault.message for fault in snapshot.faults]
    expected = [
        "rolles",
        "pydantic model",
        "timeout",
        "'parameters'",
        "no_such_module",
        "SystemExit",
        "schema",
        "name is",
    ]
    for message, word in zip(said, [*expected, "not int"], strict=True):
        assert word in message


async def test_a_file_that_looks_for_its_neighbour_is_told_of_packages(tmp_path: Path) -> None:
    write(tmp_path, "_prices.py", "PRICE = 7\n")
    write(tmp_path, "shop.py", "from _prices import PRICE\n")
    write(tmp_path, "pack/__init__.py", "")
    write(tmp_path, "pack/one.py", "import two\n")
    write(tmp_path, "pack/two.py", marked("two"))
    snapshot = await given_by(tmp_path)
    package, neighbour = (fault.message for fault in snapshot.faults)
    assert "put both files into a folder with an __init__.py, a package, where it is `from ._prices import" in neighbour
    assert "within a package it is `from .two import …`" in package
    assert names(snapshot) == ["two"]


async def test_the_traceback_of_a_run_shows_the_lines_of_the_file(tmp_path: Path) -> None:
    text = (
        "@tool_function(description='Breaks.')\ndef act(ctx: MessageContext) -> str:\n    raise KeyError(1)  # here\n"
    )
    write(tmp_path, "own.py", HEAD + text)
    [spec] = (await given_by(tmp_path)).specs
    shown: list[str] = []

    async def show(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        try:
            return await proceed(invocation)
        except KeyError as error:
            shown.extend(traceback.format_exception(error))
            raise

    await Routing(spec, filters=[show]).invoke("act")
    assert f'File "{tmp_path / "own.py"}", line 6' in "".join(shown)
    assert "# here" in "".join(shown)


# -- changes


async def test_only_what_has_changed_is_run_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(
            tmp_path, f"{name}.py", marked(name) + f"with open({str(tmp_path / name)!r}, 'a') as log: log.write('x')\n"
        )
    async with watched(tmp_path) as files:
        before = await files.next()
        write(tmp_path, "one.py", marked("one", "Ho"))
        after = await files.change()
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["x", "x"]
    assert [await said_by(spec) for spec in after.specs] == ["Ho", "Hi"]
    assert after.specs[1] is before.specs[1]


async def test_a_change_within_the_same_second_and_of_the_same_length_counts(tmp_path: Path) -> None:
    file = write(tmp_path, "one.py", marked("one", "aaa"))
    state = file.stat()
    async with watched(tmp_path) as files:
        await files.next()
        write(tmp_path, "one.py", marked("one", "bbb"))
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        [spec] = (await files.change()).specs
    assert await said_by(spec) == "bbb"
    assert not (tmp_path / "__pycache__").exists()


async def test_a_file_that_comes_serves_and_one_that_goes_is_forgotten(tmp_path: Path) -> None:
    write(tmp_path, "one.py", marked("one"))
    async with watched(tmp_path) as files:
        assert names(await files.next()) == ["one"]
        write(tmp_path, "two.py", marked("two"))
        assert names(await files.change()) == ["one", "two"]
        (tmp_path / "one.py").unlink()
        assert names(await files.change()) == ["two"]
        assert modules_of(tmp_path / "one.py") == []
    assert modules_of(tmp_path / "two.py") == []


async def test_nothing_is_published_when_nothing_has_changed(tmp_path: Path) -> None:
    write(tmp_path, "one.py", marked("one"))
    async with watched(tmp_path) as files:
        await files.next()
        files.changes.tell()
        write(tmp_path, "two.py", marked("two"))
        assert names(await files.change()) == ["one", "two"]
        assert files.published.empty()


@pytest.mark.parametrize(
    "broken", ["def (", "raise RuntimeError", "raise SystemExit", "", "import no_such_module", "def tools(): return 5"]
)
async def test_a_broken_change_leaves_what_was_good_until_it_is_mended(tmp_path: Path, broken: str) -> None:
    write(tmp_path, "one.py", marked("one"))
    async with watched(tmp_path) as files:
        before = await files.next()
        write(tmp_path, "one.py", broken)
        after = await files.change()
        assert after.specs == before.specs
        [fault] = after.faults
        assert "until it is mended, as before: one" in fault.message
        assert await said_by(after.specs[0]) == "Hi"
        write(tmp_path, "one.py", marked("one", "Mended"))
        mended = await files.change()
        assert mended.faults == ()
        assert await said_by(mended.specs[0]) == "Mended"
        assert len(modules_of(tmp_path / "one.py")) == 1


async def test_of_a_change_with_one_wrong_function_the_others_are_new_and_that_one_is_as_it_was(tmp_path: Path) -> None:
    good = (
        "def tools():\n"
        "    return [{'name': 'a', 'handler': lambda args: 'a1'}, {'name': 'b', 'handler': lambda args: 'b1'}]\n"
    )
    write(tmp_path, "own.py", good)
    async with watched(tmp_path) as files:
        await files.next()
        write(tmp_path, "own.py", good.replace("1", "2").replace("'b', ", "'b', 'timeout': 'soon', "))
        after = await files.change()
        assert [await said_by(spec) for spec in after.specs] == ["a2", "b1"]
        write(tmp_path, "own.py", "def tools():\n    return [{'name': 'a', 'handler': lambda args: 'a3'}]\n")
        assert names(await files.change()) == ["a"]


async def test_a_change_anywhere_in_a_package_counts(tmp_path: Path) -> None:
    write(tmp_path, "shop/__init__.py", "")
    write(tmp_path, "shop/_prices.py", "PRICE = '7'\n")
    write(tmp_path, "shop/ask.py", "from ._prices import PRICE\n" + marked("ask").replace("'Hi'", "PRICE"))
    async with watched(tmp_path) as files:
        await files.next()
        write(tmp_path, "shop/_prices.py", "PRICE = '8'\n")
        [spec] = (await files.change()).specs
        assert await said_by(spec) == "8"
        write(tmp_path, "shop/_prices.py", "PRICE = \n")
        after = await files.change()
        assert places(after) == ["_prices.py:1"]
        assert await said_by(after.specs[0]) == "8"
        assert {name.count(".") for name in modules_of(tmp_path)} == {0, 1}
        assert len(modules_of(tmp_path)) == 3


async def test_what_was_replaced_can_be_collected(tmp_path: Path) -> None:
    text = (
        "class Who(BaseModel):\n    name: str = ''\n"
        "@tool_function()\nasync def own(ctx: MessageContext, args: Who) -> Who:\n    return args\n"
    )
    write(tmp_path, "own.py", HEAD + text)
    async with watched(tmp_path) as files:
        await files.next()
        [name] = modules_of(tmp_path)
        module, kind = weakref.ref(sys.modules[name]), weakref.ref(sys.modules[name].Who)
        write(tmp_path, "own.py", HEAD + text + "\n")
        await files.change()
        gc.collect()
        assert name not in sys.modules
        assert (module(), kind()) == (None, None)


# -- files that take long


async def test_a_file_that_hangs_holds_nothing_up_and_serves_when_it_has_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, "hangs.py", waiting_for(tmp_path / "pipe") + marked("late"))
    write(tmp_path, "quick.py", marked("quick"))
    clock = VirtualClock()
    async with watched(tmp_path, clock=clock) as files:
        pipe = await asyncio.to_thread(open, tmp_path / "pipe", "w")
        await clock.advance(5)
        first = await files.next()
        assert names(first) == ["quick"]
        assert places(first) == ["hangs.py:1"]
        assert "still being imported after five seconds" in first.faults[0].message
        assert "a thread cannot be ended" in first.faults[0].message
        pipe.close()
        second = await files.next()
    assert (names(second), second.faults) == (["late", "quick"], ())


async def test_a_file_that_hangs_is_left_to_itself_when_it_is_mended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, "own.py", waiting_for(tmp_path / "pipe") + marked("own", "Old"))
    clock = VirtualClock()
    async with watched(tmp_path, clock=clock) as files:
        pipe = await asyncio.to_thread(open, tmp_path / "pipe", "w")
        await clock.advance(5)
        await files.next()
        write(tmp_path, "own.py", marked("own", "New"))
        mended = await files.change()
        assert (len(modules_of(tmp_path)), mended.faults) == (1, ())
        assert await said_by(mended.specs[0]) == "New"
        pipe.close()


# -- in a chat


@pytest.mark.requirement("E46", "D8")
async def test_a_changed_file_counts_in_the_chat_at_once(tmp_path: Path) -> None:
    write(tmp_path, "own.py", marked("own", "Old", commands="own"))
    changes = ToldChanges()
    async with a_group(changes=changes, settings={"sources": {"python": [str(tmp_path)]}}) as group:
        assert await group.say("Ann", "/own") == ["Old"]
        for text, said, faults in ((marked("own", "New", commands="own"), "New", 0), ("def (", "New", 1)):
            told = asyncio.Event()
            group.daemon.functions.on_change(told.set)
            write(tmp_path, "own.py", text)
            changes.tell()
            async with asyncio.timeout(20):
                await told.wait()
            assert await group.say("Ann", "/own") == [said]
            assert len(group.daemon.functions.faults) == faults


@pytest.mark.requirement("E46")
async def test_a_daemon_starts_without_a_file_that_is_broken_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "raise SystemExit(1)\n")
    async with a_group(settings={"sources": {"python": [str(tmp_path)]}}) as group:
        [fault] = group.daemon.functions.faults
        assert fault.file == str(tmp_path / "own.py")
        assert await group.say("Ann", "/calc 1+1") == ["1+1 = 2"]
