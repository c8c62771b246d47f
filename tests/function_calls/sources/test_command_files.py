"""Files of command tools: errors are reported with their place, valid tools are available, and edits apply
immediately."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from bot.cli.schema import command_tools_schema
from bot.testing import Group, a_group, call
from config.sections.command_tools import CommandTool
from config.yaml_document import read_yaml_file
from function_calls.command_tools.callables import PythonNames, file_of, name_of
from function_calls.command_tools.machine import Machine
from function_calls.loading.source import Snapshot
from function_calls.schema.definition import _OPTIONS
from function_calls.sources.yaml_commands import YamlCommands
from function_calls.spec import ToolGroup, Touch
from services.clock import Deadlines, VirtualClock
from services.refs import Effect, Role
from services.sandbox.sandbox import Sandbox
from services.sandbox.workspace import Workspaces
from tests.fakes.command_tools import a_group_with, data_of, faults_of, until, write
from tests.fakes.sources import ToldChanges

GOOD = "  - {name: good, commands: [good], cmds: [[echo, good]]}\n"


def names(group: Group) -> list[str]:
    """Tools of the file."""
    specs = group.daemon.registry.of("default").specs
    return [spec.name for spec in specs if "commands/" in spec.origin.source]


async def test_every_fault_is_told_at_its_place_and_hides_no_good_tool(tmp_path: Path) -> None:
    tools = """
    tools:
      - {name: good, cmds: [[echo, good]]}
      - name: typo
        cmds: [[echo, "${wrod}"]]
        parameters: {word: {type: string, required: true}}
        retury: 5
      - name: words
        cmds:
          - [head, -n, 5]
          - {argv: [echo], stdn: x}
        opts: {sandbx: off, approval: each_step, approved_by: admin}
      - name: variables
        parameters: {word: {type: string, required: true}, maybe: {type: string}, list: {type: array}}
        env: {dir: "${wrod}"}
        cmds: [["${word}"], [echo, "${maybe}"], [echo, "${list}"], [echo, "${"], [echo, "${HOME}"]]
      - {name: python, cmds: ["./none.py:f", "nowhere.at.all:f"]}
      - {name: arity, cmds: ["./own.py:one"], env: "./own.py:missing"}
      - {name: no steps}
      - {name: nothing}
      - {name: options, cmds: [[echo]], retry: {max: 1}, examples: ["say {what}"]}
      - {name: schema, cmds: [[echo]], parameters: {type: object, properties: {x: {type: strin}}}}
      - {name: good, cmds: [[echo, again]]}
      - {module: "./own.py:one"}
      - just a text
    groups:
      - {name: empty, tools: []}
      - {name: many, tool: [good]}
    more: 1
    """
    found = await faults_of(tmp_path, tools, "def one(run):\n    return 1\n")
    told = [f"{one.line}:{one.column} {one.code} {one.message}" for one in found]
    wanted = [
        "4:19 commands.unknown_variable there is no variable 'wrod'; did you mean 'word'?",
        "6:5 commands.unknown_key tools[1].retury is not known here; did you mean 'retry'?",
        "9:20 commands.bad_value tools[2].cmds[0].argv[2] has to be a text; put it in quotes",
        "10:24 commands.unknown_key tools[2].cmds[1].stdn is not known here; did you mean 'stdin'?",
        "11:12 commands.unknown_key tools[2].opts.sandbx is not known here; did you mean 'sandbox'?",
        "14:16 commands.unknown_variable there is no variable 'wrod'; did you mean 'word'?",
        "15:13 commands.bad_value the program has to be written out",
        "15:32 commands.bad_value maybe may be absent: give it a default, or write ${maybe...} for no word then",
        "15:52 commands.bad_value list is a list: ${list...} makes a word of each of its items",
        "15:71 commands.bad_value write ${name}",
        "15:85 commands.unknown_variable there is no variable 'HOME'; there are: word, maybe, list, dir. "
        "Those of the process's environment are not among them",
        "16:27 commands.bad_python",
        "16:42 commands.bad_python nowhere.at.all cannot be imported",
        "17:26 commands.bad_python ./own.py:one has to take 2 arguments",
        "17:48 commands.bad_python ./own.py has no missing",
        "18:12 commands.bad_value tools[6].name",
        "19:5 commands.bad_value tools[7] has no steps: give it `cmds`",
        "20:44 commands.unusable retry: a function with effect 'once' is never repeated",
        "20:64 commands.unusable example 'say {what}' has the slot {what}",
        "21:48 commands.bad_parameters",
        "22:12 commands.duplicate_name 'good' is already defined in line 2",
        "23:14 commands.bad_python ./own.py:one is no mapping",
        "24:5 commands.bad_value tools[12] has to be a mapping",
        "26:26 commands.bad_value groups[0].tools",
        "27:18 commands.unknown_key groups[1].tool is not known here; did you mean 'tools'?",
        "27:5 commands.missing groups[1].tools is missing",
        "28:1 commands.unknown_key more is not known here; there are: tools, groups",
    ]
    missing = [one for one in wanted if not any(line.startswith(one) for line in told)]
    assert missing == [], "\n".join(told)
    assert len(told) == len(wanted), "\n".join(told)
    async with a_group_with(tmp_path, tools, may_be_faulty=True) as group:
        assert names(group) == ["good"]


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("tools: [", "1:9", "yaml.syntax"),
        ("- a", "1:1", "commands.bad_value"),
        ("tools: {a: 1}", "1:1", "commands.bad_value"),
        ("tools:\n  - {name: a, name: b, cmds: [[echo]]}", "2:15", "yaml.duplicate_key"),
        ("tools:\n  - {name: a, cmds: [*x]}", "2:22", "yaml.alias"),
    ],
)
async def test_what_is_no_such_file_says_so(tmp_path: Path, text: str, place: str, code: str) -> None:
    found = await faults_of(tmp_path, text)
    assert (f"{found[0].line}:{found[0].column}", found[0].code) == (place, code), found


async def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with a_group(settings={"sources": {"commands": [str(tmp_path / "none")]}}) as group:
        [found] = group.daemon.functions.faults
        assert found.message == f"{tmp_path}/none: there is no such file or folder"


async def test_an_edit_counts_while_the_daemon_runs(tmp_path: Path) -> None:
    changes, python = ToldChanges(), "def f(run, input):\n    return 'first'\n"
    tools = 'tools:\n  - {name: own, commands: [own], cmds: ["./own.py:f"]}\n'
    async with a_group_with(tmp_path, tools + GOOD, python, changes=changes) as group:

        def state() -> object:
            return group.daemon.registry.specs, group.daemon.functions.faults

        async def edit(text: str, name: str = "tools.yaml") -> None:
            write(tmp_path / "commands", text, name)
            before = state()
            changes.tell()
            await until(lambda: state() != before)

        before = group.daemon.registry.of("default").find("good")
        assert await group.say("Ann", "/own") == ["first"]
        await edit(python.replace("first", "second"), "own.py")
        assert await group.say("Ann", "/own") == ["second"]
        await edit("tools: [{name: further, cmds: [[echo]]}]", "further.yml")
        assert names(group) == ["further", "own", "good"]
        # A broken edit keeps the previous tools.
        await edit("tools:\n  - {name: own, commands: [own], cmds: []}\n" + GOOD.replace("echo, good", "echo, better"))
        assert await group.say("Ann", "/own") == ["second"]
        assert await group.say("Ann", "/good") == ["better"]
        assert len(group.daemon.functions.faults) == 1
        await edit("tools: [")
        assert names(group) == ["further", "own", "good"]
        await edit("tools:\n" + GOOD)
        assert (names(group), group.daemon.functions.faults) == (["further", "good"], ())
        after = group.daemon.registry.of("default").find("good")
        await edit("tools: []", "further.yml")
        assert group.daemon.registry.of("default").find("good") is after
        assert before is not after
        (tmp_path / "commands" / "tools.yaml").unlink()
        await edit("tools: []", "further.yml")
        assert names(group) == []


async def test_python_that_lies_elsewhere_is_watched_too(tmp_path: Path) -> None:
    watched: list[tuple[Path, ...]] = []

    class Watching:
        async def of(self, *paths: Path) -> AsyncIterator[None]:
            watched.append(paths)
            yield

    own = write(tmp_path / "elsewhere", "def f(run, input):\n    return 1\n", "own.py")
    file = write(tmp_path, f'tools: [{{name: own, cmds: ["{own}:f"]}}]')
    clock, published = VirtualClock(), list[Snapshot]()
    machine = Machine(Sandbox(clock), clock, Workspaces(tmp_path), Deadlines(clock))
    await YamlCommands("files", [file], machine, Watching()).run(published.append)
    assert watched == [(file,), (file, own)]
    # Unchanged tools are not published again.
    assert [[spec.name for spec in one.specs] for one in published] == [["own"]]


@pytest.mark.requirement("C12")
@pytest.mark.parametrize(
    ("words", "column"),
    [
        ('[sh, -c, "echo ${word}"]', 21),
        ('[bash, -ce, "${word}"]', 24),
        ('["ssh", host, ls, "${word}"]', 30),
        ('{argv: [env, "${word}"], dash: allowed}', 25),
    ],
)
async def test_a_value_in_what_a_program_reads_as_code_is_a_fault(tmp_path: Path, words: str, column: int) -> None:
    tools = f"""
    tools:
      - name: shell
        parameters: {{word: {{type: string, required: true}}}}
        cmds: [{words}]
    """
    [found] = await faults_of(tmp_path, tools)
    assert (found.line, found.column, found.code) == (4, column, "commands.bad_value")


@pytest.mark.requirement("C12")
async def test_the_sign_of_who_starts_a_program_lets_no_option_through(tmp_path: Path) -> None:
    tools = """
    tools:
      - name: own
        touches: [stays_here]
        parameters: {word: {type: string, required: true}}
        cmds: [[nice, grep, -c, --, "${word}", "/etc/passwd"]]
        opts: {sandbox: "off"}
      - name: another
        touches: [stays_here]
        parameters: {word: {type: string, required: true}}
        cmds: [[nice, --, grep, "${word}", "/etc/passwd"]]
        opts: {sandbox: "off"}
    """
    async with a_group_with(tmp_path, tools) as group:
        for name, code in (("own", "failed"), ("another", "bad_arguments")):
            group.model.says(call(name, word="-f/etc/hostname"), "ok")
            await group.say("Ann", "@Rollcall go")
            assert data_of(group)["error"] == code


@pytest.mark.requirement("C25")
@pytest.mark.parametrize(
    ("entry", "lines"),
    [
        ('cmds: [[login, --, "${password}"]]', [7]),
        ('cmds: [{argv: [login], stdin: "${password}"}]', [7]),
        ('cmds: [[login, "--password=${login.password}"]]', [7]),
        ('env: {KEY: "k${password}"}\n        cmds: [[login, --, "${word}"]]', [7]),
        ('env: {KEY: "${password}", PAIR: "${word}:${KEY}"}\n        cmds: [[login, --, "${PAIR}"]]', [7, 7, 8]),
        ('env: {KEY: "${password}"}\n        cmds: [{argv: [login], stdin: "${KEY}"}]', [7, 8]),
        ('cmds: [[login]]\n        output: {success: {model: "used ${password}"}}', [8]),
        ('cmds: [[login]]\n        output: {success: {chat: "used ${password}"}}', [8]),
        ('cmds: [{argv: [login], stdin: "${word}", when: password}]', []),
    ],
)
async def test_what_is_kept_from_logs_is_neither_shown_with_a_question_nor_kept_with_it(
    tmp_path: Path, entry: str, lines: list[int]
) -> None:
    tools = f"""
    tools:
      - name: secret
        parameters: {{password: {{required: true}}, word: {{required: true}}, login: {{type: object, required: true}}}}
        sensitive: [password, login]
        opts: {{approval: each_step}}
        # What is tried:
        {entry}
    """
    found = await faults_of(tmp_path, tools)
    assert [(one.line, one.code) for one in found] == [(line, "commands.bad_value") for line in lines], found
    assert all("is sensitive" in one.message for one in found)
    assert await faults_of(tmp_path, tools.replace("each_step", "once")) == []


def test_editors_are_told_what_files_may_hold() -> None:
    validator = jsonschema.Draft202012Validator(command_tools_schema())
    validator.check_schema(command_tools_schema())
    shipped = Path(__file__).parents[3] / "config" / "commands" / "examples.yaml"
    validator.validate(read_yaml_file(shipped).value)
    validator.validate({"tools": [{"module": "./own.py:tool", "commands": ["x"]}]})
    for wrong in ({"tools": [{"name": "a", "cmdz": []}]}, {"tools": [{"name": "a", "cmds": [[1]]}]}, {"tool": []}):
        assert not validator.is_valid(wrong), wrong


async def test_all_options_of_functions_may_be_set(tmp_path: Path) -> None:
    tools = """
    tools:
      - name: full
        description: Does all of it
        parameters: {word: {type: string, required: true, description: What}}
        cmds: [[echo, "${word}"]]
        effect: idempotent
        commands: [full, 全部]
        examples: ["do {word}"]
        activation: on_request
        offered_to: [model, command]
        scope: group
        require_at: true
        roles: admin
        tags: [a, b]
        groups: [office]
        touches: [reads_private]
        timeout_seconds: 7
        retry: {max: 2, delay: 100}
        ask: {word: Which word?}
        confirm: "Really {word}?"
        serial: true
        return_direct: true
        sensitive: [word]
        status_text: Working …
        positional: [word]
        metadata: {own: 1}
    """
    async with a_group_with(tmp_path, tools) as group:
        spec = group.daemon.registry.of("default").find("full")
        assert spec is not None
        assert (spec.execution.effect, spec.command.words, spec.access.scope) == (
            Effect.IDEMPOTENT,
            ("full", "全部"),
            "group",
        )
        assert (spec.access.roles, spec.execution.touches) == (
            Role.at_least(Role.ADMIN),
            frozenset({Touch.READS_PRIVATE}),
        )
        assert (spec.execution.timeout_seconds, spec.access.confirm, spec.origin.metadata) == (
            7,
            "Really {word}?",
            {"own": 1},
        )
        assert (spec.access.require_at, spec.execution.serial, spec.execution.return_direct) == (True, True, True)


async def test_without_a_word_a_tool_is_not_repeated_and_taints(tmp_path: Path) -> None:
    tools = """
    tools:
      - {name: a, cmds: [[echo], [echo]], opts: {timeout_seconds: 20}}
      - {name: b, cmds: [[echo]], opts: {approval: each_step}}
      - {name: c, cmds: [[echo]], effect: read, opts: {network: true}}
    """
    async with a_group_with(tmp_path, tools) as group:
        a, b, c = (group.daemon.registry.of("default").find(name) for name in "abc")
        assert a is not None
        assert b is not None
        assert (a.execution.effect, a.execution.timeout_seconds) == (Effect.ONCE, 55)
        assert a.execution.touches == {Touch.READS_OUTSIDE, Touch.REACHES_OUT}
        assert c is not None
        assert c.execution.touches == {Touch.READS_OUTSIDE, Touch.SENDS_OUT}
        # With other entry points there is nobody to answer.
        assert sorted(b.access.offered_to) == ["command", "model"]


async def test_known_secrets_reach_neither_chats_nor_models(tmp_path: Path) -> None:
    key = "Kq7vv-2mZx-41pp"
    os.environ["ROLLCALL_TEST_TOKEN"] = environment = "from-The-environment-77"
    forms = [key, key[::-1], key.upper(), key.encode().hex(), environment]
    tools = f"tools: [{{name: leak, commands: [leak], effect: read, cmds: [[echo, {' '.join(forms)!r}]]}}]"
    settings = {"search": {"kind": "perplexity", "api_key": key}}
    try:
        async with a_group_with(tmp_path, tools, settings=settings) as group:
            said = "".join(await group.say("Ann", "/leak"))
            group.model.says(call("leak"), "done")
            await group.say("Ann", "@Rollcall do what is needed")
            shown = "".join(message.content for request in group.model.requests for message in request.messages)
    finally:
        del os.environ["ROLLCALL_TEST_TOKEN"]
    assert "***" in said
    assert "***" in shown
    assert not [form for form in forms if form in said or form in shown]


FILLED = "{name: open, parameters: {word: {type: string, required: true}}, cmds: [[echo, '${word}']], "


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        (FILLED + "opts: {network: true}}", "could send data to any host"),
        (FILLED + "opts: {network: true}, offered_to: [mcp]}", "could send data to any host"),
        (FILLED + "opts: {network: true}, offered_to: [command, timer]}", ""),
        (FILLED + "opts: {sandbox: 'off'}}", "add open to `sandbox.unisolated`"),
        (FILLED + "opts: {sandbox: 'off'}, offered_to: [command]}", ""),
        ("{name: open, cmds: [[echo]], opts: {sandbox: 'off', network: true}}", ""),
    ],
)
async def test_a_model_fills_no_arguments_of_a_command_with_a_network_or_without_a_sandbox(
    tmp_path: Path, tool: str, told: str
) -> None:
    found = await faults_of(tmp_path, f"tools:\n  - {tool}\n")
    assert bool(found) == bool(told), found
    assert all(told in fault.message for fault in found)


async def test_a_command_filled_by_a_model_does_not_run_without_a_sandbox(tmp_path: Path) -> None:
    tools = f"""
    tools:
      - {FILLED} commands: [open]}}
      - {{name: shut, cmds: [[echo, done]], commands: [shut]}}
    """
    settings = {"sandbox": {"isolation": "off"}}
    async with a_group_with(tmp_path, tools, settings=settings) as group:
        refused = await group.say("Ann", "/open x")
        done = await group.say("Ann", "/shut")
    assert "can't run here" in "".join(refused)
    assert "done" in "".join(done)


async def test_the_settings_can_name_a_tool_that_a_model_fills_without_a_sandbox(tmp_path: Path) -> None:
    settings = {"sandbox": {"isolation": "off", "unisolated": ["open"]}}
    tools = f"tools:\n  - {FILLED} commands: [open], opts: {{sandbox: 'off'}}}}\n"
    async with a_group_with(tmp_path, tools, settings=settings) as group:
        assert "hello" in "".join(await group.say("Ann", "/open hello"))


@pytest.mark.requirement("C18")
@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("timeout_seconds: soon", "opts.timeout_seconds"),
        ("output_chars: 5", "opts.output_chars"),
        ("max_steps: many", "opts.max_steps"),
        ("approval: maybe", "opts.approval"),
        ("approved_by: admin", "opts"),
    ],
)
async def test_an_option_of_the_wrong_type_or_size_is_an_error_at_its_line(
    tmp_path: Path, options: str, place: str
) -> None:
    found = await faults_of(tmp_path, f"tools:\n  - name: act\n    cmds: [[echo]]\n    opts: {{{options}}}\n", "")
    assert [(one.line, one.message.split()[0]) for one in found] == [(4, f"tools[0].{place}")]


def test_every_option_of_functions_is_one_of_tools() -> None:
    own_words = {"auth", "tag", "confirmation_prompt", "timeout"}
    # The required approval is set in `opts`; `immediate` and `background` are no options of commands.
    elsewhere = {"approval", "immediate", "background"}
    assert set(_OPTIONS) - own_words - elsewhere <= set(CommandTool.model_fields)


async def test_groups_are_published(tmp_path: Path) -> None:
    tools = """
    tools: [{name: a, cmds: [[echo]]}]
    groups:
      - {name: office, description: For work, tools: [a, weather], system_prompt: Be brief}
    """
    async with a_group_with(tmp_path, tools) as group:
        [office] = group.daemon.registry.groups
        assert office == ToolGroup("office", "For work", ("a", "weather"), "Be brief", None, office.source)
        assert office.source.endswith("tools.yaml:3")


@pytest.mark.requirement("C9", "D49")
@pytest.mark.parametrize(
    ("entry", "python", "fault"),
    [
        ('cmds: ["./own.py:act"]', "raise SystemExit(3)", "own.py:1: it ends the process while it is imported"),
        ('cmds: ["tests.function_calls.sources.ends_the_process:f"]', "", "cannot be imported: SystemExit: 1"),
        (
            'cmds: [[echo]], system_prompt: {python: "./own.py:prompt"}',
            "def prompt(sample):\n    raise SystemExit(3)",
            "it fails: SystemExit: 3",
        ),
        (
            'cmds: [[echo]], parameters: "./own.py:Odd"',
            """
            from pydantic import BaseModel

            class Odd(BaseModel):
                @classmethod
                def __get_pydantic_json_schema__(cls, core, handler):
                    raise SystemExit(3)
            """,
            "SystemExit: 3",
        ),
    ],
)
async def test_python_that_ends_the_process_is_a_fault_of_its_tool(
    tmp_path: Path, entry: str, python: str, fault: str
) -> None:
    tools = f"""
    tools:
      - {{name: bad, {entry}}}
      - {{name: good, commands: [good], cmds: [[echo, hi]]}}
    """
    async with a_group_with(tmp_path, tools, python, may_be_faulty=True) as group:
        [found] = group.daemon.functions.faults
        assert fault in found.message
        assert await group.say("Ann", "/good") == ["hi"]


@pytest.mark.requirement("D49")
@pytest.mark.parametrize("kind", ["", "async "])
@pytest.mark.parametrize("hook", ["cmds", "env", "on_exit", "success"])
async def test_python_that_ends_the_process_while_it_runs_only_fails(tmp_path: Path, hook: str, kind: str) -> None:
    own = '"./own.py:leave"'
    entry = {
        "cmds": f"cmds: [{own}]",
        "env": f"cmds: [[echo, hi]], env: {own}",
        "on_exit": f"cmds: [[echo, hi]], handlers: {{on_exit: {own}}}",
        "success": f"cmds: [[echo, hi]], output: {{success: {{python: {own}}}}}",
    }[hook]
    takes = {"cmds": "run, given", "env": "request", "on_exit": "run, ending", "success": "run, step, output"}[hook]
    tools = f"""
    tools:
      - {{name: bad, commands: [bad], effect: idempotent, {entry}}}
      - {{name: good, commands: [good], cmds: [[echo, good]]}}
    """
    python = f"import sys\n\n{kind}def leave({takes}):\n    sys.exit(3)\n"
    async with a_group_with(tmp_path, tools, python) as group:
        [said] = await group.say("Ann", "/bad")
        assert (said == "hi") == (hook == "on_exit")
        assert await group.say("Ann", "/good") == ["good"]


@pytest.mark.requirement("C17", "C23")
async def test_a_text_that_names_a_python_file_is_a_callable_or_a_fault(tmp_path: Path) -> None:
    tools = """
    tools:
      - name: good
        commands: [good]
        cmds: [[echo, hi]]
        output: {success: "./own.py:success"}
        system_prompt: "./own.py:prompt"
      - {name: missing, cmds: [[echo, hi]], output: {success: "./own.py:nope"}}
      - {name: folder, cmds: [[echo, hi]], output: {error: "own.py:success"}, system_prompt: "./none.py:prompt"}
      - {name: text, commands: [text], cmds: [[echo, hi]], output: {success: "see own.py:5 and ./own.py:success"}}
    """
    python = """
    def success(run, step, output):
        return f"It said {output.stdout.strip()}."

    def prompt(sample):
        return f"Call it so: {sample}"
    """
    async with a_group_with(tmp_path, tools, python, may_be_faulty=True) as group:
        assert await group.say("Ann", "/good") == ["It said hi."]
        assert await group.say("Ann", "/text") == ["see own.py:5 and ./own.py:success"]
        found = group.daemon.functions.faults
        spec = group.daemon.registry.of("default").find("good")
    assert [one.code for one in found] == ["commands.bad_python"] * 3, found
    assert spec is not None
    assert spec.prompt.system_prompt == "Call it so: {schema}"


async def test_a_broken_edit_of_python_leaves_all_that_the_tool_can(tmp_path: Path) -> None:
    python = """
    def setup(run):
        run.cmds.append(own)

    def own(run, given):
        return "EDITION"
    """
    tools = """
    tools: [{name: own, commands: [own], opts: {approval: each_step}, handlers: {setup: "./own.py:setup"}}]
    """
    changes = ToldChanges()
    async with a_group_with(tmp_path, tools, python.replace("EDITION", "first"), changes=changes) as group:

        async def edit(text: str, *, is_broken: bool) -> None:
            before = group.daemon.registry.specs
            write(tmp_path / "commands", text, "own.py")
            changes.tell()
            changed = (lambda: bool(group.daemon.functions.faults)) if is_broken else (lambda: before != specs(group))
            await until(changed)

        await group.say("Ann", "/own")
        await edit("def setup(:", is_broken=True)
        assert await group.say("Ann", "yes") == ["first"]
        await group.say("Ann", "/own")
        assert await group.say("Ann", "yes") == ["first"]
        # Only the Python file is repaired, and that is noticed.
        await edit(python.replace("EDITION", "second"), is_broken=False)
        assert group.daemon.functions.faults == ()
        await group.say("Ann", "/own")
        assert await group.say("Ann", "yes") == ["second"]


def specs(group: Group) -> object:
    return group.daemon.registry.specs


def test_a_module_that_python_of_tools_imports_counts_as_a_part_of_it(tmp_path: Path) -> None:
    own = write(tmp_path, "from config import WORD\ndef own():\n    return WORD\n", "own.py")
    config = write(tmp_path, "WORD = 'one'\n", "config.py")
    first = PythonNames(tmp_path)
    assert (first.find("./own.py:own")(), first.files) == ("one", (own, config))
    config.write_text("WORD = 'two'\n")
    second = PythonNames(tmp_path)
    assert second.find("./own.py:own")() == "two"
    assert first.digests[str(own)] == second.digests[str(own)]
    assert first.digests != second.digests


def test_python_of_tools_is_forgotten_with_those_who_have_it(tmp_path: Path) -> None:
    file = write(tmp_path, "def own():\n    return 1\n", "forgotten_own.py")

    def modules() -> int:
        return sum(name.endswith(".forgotten_own") for name in sys.modules)

    first, second = PythonNames(tmp_path), PythonNames(tmp_path)
    own = first.find("./forgotten_own.py:own")
    assert (second.find("./forgotten_own.py:own") is own, modules()) == (False, 2)
    del second
    gc.collect()
    assert (modules(), first.find(f"{file}:own")) == (1, own)
    del first
    gc.collect()
    assert modules() == 0
    # Its handler still knows its file while it runs.
    assert (name_of(own), file_of(own)) == ("forgotten_own.py:own", str(file))
