"""Steps that need an approval: exactly the shown command runs, once, and the run ends once in every case."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from bot.testing import Group, call
from config.texts import Texts
from function_calls.context import Kind, Quoted
from function_calls.spec import FunctionResult, InputQuestion, Resumed
from services.refs import ErrorCode, JsonObject, Role
from tests.fakes.builders import a_call, a_message
from tests.fakes.command_tools import a_group_with, data_of, faults_of
from tests.fakes.kept import last_reason

EN = Texts().of("en")
STEPS = """
    tools:
      - name: steps
        parameters: {word: {type: string, required: true}}
        commands: [steps]
        effect: once
        touches: [stays_here]
        env: "./own.py:env"
        opts: {approval: each_step, sandbox: "off"}
        cmds: [[sh, -c, 'echo "$1" >> LOG', sh, "first ${word}"], "./own.py:act", [echo, "${word}", "${stamp}"]]
        handlers: {setup: "./own.py:setup", on_exit: "./own.py:on_exit"}
"""
PYTHON = """
    from pathlib import Path

    def note(text):
        with Path("LOG").open("a") as log:
            log.write(text + "\\n")

    def env(request):
        note("env")
        return {"stamp": "kept"}

    def setup(run):
        note("setup")

    def act(run, input):
        note("act")
        return {"did": 1}

    def on_exit(run, ending):
        note(f"exit {ending} {len(run.outputs)}")
"""


class Log:
    """Lines written by the steps, across restarts."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "log"
        self.tools = STEPS.replace("LOG", str(self.file))
        self.python = PYTHON.replace("LOG", str(self.file))

    @property
    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def asked(*words: str, name: str = "/steps") -> list[str]:
    return [EN.say("command_tools.ask_step", name=name, command=f"`{shlex.join(words)}`")]


def first(log: Log, word: str) -> list[str]:
    return asked("sh", "-c", f'echo "$1" >> {log.file}', "sh", f"first {word}")


async def expire(group: Group) -> None:
    await group.clock.advance(301)
    await group.daemon.housekeeping.expire_questions()
    await group.settle()


@pytest.mark.requirement("C25")
async def test_each_step_is_shown_as_it_runs_and_waits_for_its_yes(log: Log, tmp_path: Path) -> None:
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        assert await group.say("Ann", "/steps a b") == first(log, "a b")
        assert log.lines == ["env", "setup"]
        assert await group.say("Ann", "yes") == [
            EN.say("command_tools.ask_step", name="/steps", command="`./own.py:act`")
        ]
        assert log.lines == ["env", "setup", "first a b"]
        assert await group.say("Ann", "ok") == asked("echo", "a b", "kept")
        assert await group.say("Ann", "yes") == ["a b kept"]
    assert log.lines == ["env", "setup", "first a b", "act", "exit success 3"]


@pytest.mark.requirement("C25")
async def test_a_yes_holds_through_a_restart_and_nothing_is_done_twice(log: Log, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        await group.say("Ann", "/steps x")
        await group.say("Ann", "yes")
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        assert await group.say("Ann", "yes") == asked("echo", "x", "kept")
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        assert await group.say("Ann", "yes") == ["x kept"]
    assert log.lines == ["env", "setup", "first x", "act", "exit success 3"]


@pytest.mark.requirement("C22", "C25", "C26")
@pytest.mark.parametrize("answer", ["no", "no thanks", "no, use the other one", "cancel"])
async def test_a_no_ends_the_run(log: Log, tmp_path: Path, answer: str) -> None:
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        group.model.says(call("steps", word="x"), "Which one?")
        await group.say("Ann", "@Rollcall go")
        said = await group.say("Ann", answer)
        assert said != []
        assert log.lines == ["env", "setup", "exit rejected 0"]
        if answer != "cancel":
            result = data_of(group)
            assert (result["error"], result["message"]) == ("refused", EN.say("command_tools.rejected_by_person"))
            reason = answer.removeprefix("no").removeprefix(" thanks").removeprefix(", ")
            assert (f"“{reason}”" in result["result"]["message"]) == bool(reason)


@pytest.mark.requirement("C22", "C25")
async def test_who_refuses_the_last_step_ends_the_run_once(log: Log, tmp_path: Path) -> None:
    """Regression: on_exit did not run."""
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        await group.say("Ann", "/steps x")
        await group.say("Ann", "yes")
        await group.say("Ann", "yes")
        [said] = await group.say("Ann", "no")
        ran = first(log, "x")[0].partition("\n")[2]
        assert said == f"Okay, I stopped there. Before that I ran:\n{ran}\n`./own.py:act`"
    assert log.lines == ["env", "setup", "first x", "act", "exit rejected 2"]


@pytest.mark.requirement("C22", "C25")
async def test_a_model_is_told_what_ran_before_a_step_was_refused(log: Log, tmp_path: Path) -> None:
    """Regression: the model was informed that nothing had been done."""
    home = tmp_path / "home"
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        group.model.says(call("steps", word="x"))
        await group.say("Ann", "@Rollcall go")
        await group.say("Ann", "yes")
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        await group.say("Ann", "yes")
        group.model.says("I stopped.")
        assert await group.say("Ann", "no, that will do") == ["I stopped."]
        result = data_of(group)
        assert result["error"] == "refused"
        assert "Before that I ran:" in result["message"]
        told_it = result["result"]["message"]
        assert told_it.startswith("The person refused to let this run: echo x kept It was not run.")
        assert "“that will do”" in told_it
        assert "these ran" in told_it
        assert "first x" in told_it
        assert "./own.py:act" in told_it
        assert [one.get("output", one.get("exit_code")) for one in result["result"]["earlier"]] == [0, {"did": 1}]
        assert "stdout" not in result["result"]


@pytest.mark.requirement("C25")
@pytest.mark.parametrize("answer", ["yes please", "ok, do it", "Sure, thanks!", "👍", "allow"])
async def test_a_yes_may_stand_in_usual_company(log: Log, tmp_path: Path, answer: str) -> None:
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        await group.say("Ann", "/steps x")
        assert await group.say("Ann", answer) == asked("./own.py:act")


@pytest.mark.requirement("C25")
async def test_what_is_neither_yes_nor_no_is_an_ordinary_message_and_the_step_waits_on(
    log: Log, tmp_path: Path
) -> None:
    """Regression: a conversation with others was taken as a refusal."""
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        await group.say("Ann", "/steps x")
        for talk in ("Bob, are you coming tonight?", "what does that do?", "use the other one", "yes but not now"):
            assert await group.say("Ann", talk) == []
            assert await last_reason(group) == ("not_addressed", "")
        group.model.says("It is Monday.")
        assert await group.say("Ann", "@Rollcall which day is it?") == ["It is Monday."]
        assert log.lines == ["env", "setup"]
        assert await group.say("Ann", "yes") == asked("./own.py:act")


@pytest.mark.requirement("C25")
@pytest.mark.parametrize("kind", [Kind.MESSAGE, Kind.CHOICE])
async def test_an_older_question_does_not_allow_what_a_newer_one_asks_for(log: Log, tmp_path: Path, kind: Kind) -> None:
    """Regression: a button of the first question ran the second command."""
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        await group.say("Ann", "/steps one")
        first_asked = Quoted(f"sent-{group.platform.sent[-1].key}", "Rollcall", "…", from_bot=True)
        await group.say("Ann", "/steps two")
        second_asked = Quoted(f"sent-{group.platform.sent[-1].key}", "Rollcall", "…", from_bot=True)
        closed = [EN.say("questions.closed")]
        assert await group.say("Ann", "yes", kind=kind, reply_to=first_asked) == closed
        assert await last_reason(group) == ("question_closed", "")
        assert "first one" not in "".join(log.lines)
        assert "first two" not in "".join(log.lines)
        assert await group.say("Ann", "yes", kind=kind, reply_to=second_asked) == asked("./own.py:act")
        assert await group.say("Ann", "yes", kind=kind, reply_to=second_asked) == closed
        assert log.lines[-1] == "first two"


@pytest.mark.requirement("C25")
async def test_a_callable_that_is_refused_does_not_run(log: Log, tmp_path: Path) -> None:
    """Regression: it ran anyway."""
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        await group.say("Ann", "/steps x")
        await group.say("Ann", "yes")
        await group.say("Ann", "no")
    assert log.lines == ["env", "setup", "first x", "exit rejected 1"]


@pytest.mark.requirement("C25")
async def test_no_answer_in_time_is_a_no_and_others_do_not_answer(log: Log, tmp_path: Path) -> None:
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        await group.say("Ann", "/steps x")
        assert await group.say("Bob", "yes") == []
        assert await group.say("Olga", "yes", role=Role.OWNER) == []
        await expire(group)
        assert log.lines == ["env", "setup", "exit rejected 0"]
        assert await group.say("Ann", "yes") == []
    assert log.lines == ["env", "setup", "exit rejected 0"]


@pytest.mark.requirement("C25")
async def test_a_yes_to_a_tool_that_has_changed_since_runs_nothing(log: Log, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        await group.say("Ann", "/steps x")
    changed = log.tools.replace("first ${word}", "other ${word}")
    async with a_group_with(tmp_path, changed, log.python, home=home) as group:
        assert await group.say("Ann", "yes") == [EN.say("questions.changed", name="/steps")]
        [said] = await group.say("Bob", "/why")
        assert "settings" not in said
    # The new version does not know steps of the old one, including its `on_exit`.
    assert log.lines == ["env", "setup"]


@pytest.mark.requirement("C25")
async def test_a_tool_that_has_changed_is_not_filled_with_the_old_variables(log: Log, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        await group.say("Ann", "/steps x")
    changed = log.tools.replace("${stamp}", "${other}")
    async with a_group_with(tmp_path, changed, log.python, home=home) as group:
        assert await group.say("Ann", "yes") == [EN.say("questions.changed", name="/steps")]


@pytest.mark.requirement("C25")
async def test_a_yes_is_for_exactly_the_words_that_were_shown(log: Log, tmp_path: Path) -> None:
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        spec = group.daemon.registry.of("default").find("steps")
        assert spec is not None

        async def goes_on(state: JsonObject, word: str) -> FunctionResult:
            own = a_call(resumed=Resumed(state, "yes"))
            return await spec.handler(a_message(), spec.arguments.parse({"word": word}), own)

        asks = await spec.handler(a_message(), spec.arguments.parse({"word": "x"}), a_call())
        assert isinstance(asks.question, InputQuestion)
        state = dict(asks.question.resume)
        other = await goes_on(state, "y")
        assert (other.question, other.error and other.error.code) == (None, ErrorCode.REFUSED)
        assert "first y" not in log.lines
        assert (await goes_on(state, "x")).question is not None
        assert "first x" in log.lines


async def test_outputs_that_are_too_long_to_wait_end_the_run(tmp_path: Path) -> None:
    python = """
    from pathlib import Path

    def act(run, input):
        return "x" * 500_000

    def allow(run, step):
        return True if step.number == 1 else None

    def on_exit(run, ending):
        with Path("LOG").open("a") as log:
            log.write(ending)
    """
    tools = """
    tools:
      - name: long
        commands: [long]
        opts: {approval: each_step}
        cmds: ["./own.py:act", [echo]]
        handlers: {approved: "./own.py:allow", on_exit: "./own.py:on_exit"}
    """
    log = tmp_path / "ended"
    async with a_group_with(tmp_path, tools, python.replace("LOG", str(log))) as group:
        assert await group.say("Ann", "/long") == [EN.say("command_tools.not_set_up", name="/long")]
    assert log.read_text() == "error"


@pytest.mark.requirement("C25")
async def test_a_yes_to_python_that_has_changed_since_runs_nothing(log: Log, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        await group.say("Ann", "/steps x")
    async with a_group_with(tmp_path, log.tools, log.python.replace("did", "DID"), home=home) as group:
        assert await group.say("Ann", "yes") == [EN.say("questions.changed", name="/steps")]


async def test_what_cannot_be_seen_is_written_out(log: Log, tmp_path: Path) -> None:
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        group.model.says(call("steps", word="a\u202eb\nc"), "ok")
        [said] = await group.say("Ann", "@Rollcall go")
        assert "first a<U+202E>b<U+000A>c" in said


async def test_what_is_too_long_to_be_read_is_not_asked_for(log: Log, tmp_path: Path) -> None:
    async with a_group_with(tmp_path, log.tools, log.python) as group:
        group.model.says(call("steps", word="x" * 3000), "ok")
        await group.say("Ann", "@Rollcall go")
        assert data_of(group)["message"] == EN.say("command_tools.rejected_too_long", name="/steps")
    assert log.lines == ["env", "setup", "exit rejected 0"]


async def test_what_setup_adds_is_asked_for_as_well_and_kept(tmp_path: Path) -> None:
    python = """
    def setup(run):
        run.cmds.append(["echo", "${x}", run.request.arguments["word"]])
        run.cmds.insert(0, own)

    def own(run, input):
        return "own"
    """
    tools = """
    tools:
      - name: dynamic
        parameters: {word: {type: string, required: true}}
        commands: [dynamic]
        opts: {approval: each_step}
        handlers: {setup: "./own.py:setup"}
    """
    home = tmp_path / "home"
    async with a_group_with(tmp_path, tools, python, home=home) as group:
        [question] = await group.say("Ann", "/dynamic hi")
        assert question == EN.say("command_tools.ask_step", name="/dynamic", command="`own.py:own`")
    async with a_group_with(tmp_path, tools, python, home=home) as group:
        assert await group.say("Ann", "yes") == asked("echo", "${x}", "hi", name="/dynamic")
    async with a_group_with(tmp_path, tools, python, home=home) as group:
        assert await group.say("Ann", "yes") == ["${x} hi"]


@pytest.mark.requirement("C18", "C25")
async def test_a_whole_run_may_wait_for_the_yes_of_a_role(tmp_path: Path) -> None:
    tools = """
    tools: [{name: risky, commands: [risky], opts: {approval: once, approved_by: admin}, cmds: [[echo, done]]}]
    """
    async with a_group_with(tmp_path, tools) as group:
        [question] = await group.say("Ann", "/risky")
        code = question.rpartition("#")[2]
        assert await group.say("Bob", f"approve {code}") == [EN.say("approvals.only_role", role="admin")]
        assert await group.say("Olga", f"approve {code}", role=Role.OWNER) == ["done"]


async def test_a_tool_decides_itself_which_steps_are_asked_for(tmp_path: Path) -> None:
    python = """
    def approved(run, step):
        return {"ls": True, "rm": False}.get(step.argv[0])
    """
    tools = """
    tools:
      - {name: a, commands: [a], opts: OPTS, cmds: [[ls, /usr/bin/env]], handlers: {approved: "./own.py:approved"}}
      - {name: b, commands: [b], opts: OPTS, cmds: [[rm, x]], handlers: {approved: "./own.py:approved"}}
      - {name: c, commands: [c], opts: OPTS, cmds: [[echo, x]], handlers: {approved: "./own.py:approved"}}
    """
    tools = tools.replace("OPTS", "{approval: each_step}")
    async with a_group_with(tmp_path, tools, python) as group:
        assert await group.say("Ann", "/a") == ["/usr/bin/env"]
        assert await group.say("Ann", "/b") == [EN.say("command_tools.rejected_by_tool", name="/b")]
        assert await group.say("Ann", "/c") == asked("echo", "x", name="/c")
        assert await group.say("Ann", "yes") == ["x"]


async def test_a_tool_that_is_gone_when_the_answer_comes_runs_nothing(log: Log, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, log.tools, log.python, home=home) as group:
        await group.say("Ann", "/steps x")
    async with a_group_with(tmp_path, "tools: []", log.python, home=home) as group:
        await group.say("Ann", "yes")
    assert log.lines == ["env", "setup"]


async def test_a_tool_that_stands_in_python_waits_through_a_restart(tmp_path: Path) -> None:
    python = """
    def act(run, input):
        return "acted"

    tool = {"name": "act", "commands": ["act"], "cmds": [act], "roles": "member", "opts": {"approval": "each_step"}}
    """
    tools = """
    tools: [{module: "./own.py:tool"}]
    """
    home = tmp_path / "home"
    async with a_group_with(tmp_path, tools, python, home=home) as group:
        await group.say("Ann", "/act")
    async with a_group_with(tmp_path, tools, python, home=home) as group:
        assert await group.say("Ann", "yes") == ["acted"]


@pytest.mark.requirement("C25")
async def test_a_tool_that_asks_for_each_step_cannot_be_offered_to_the_clock(tmp_path: Path) -> None:
    tools = """
    tools:
      - name: nightly
        cmds: [[echo, x]]
        opts: {approval: each_step}
        offered_to:
          - command
          - timer
      - {name: fine, cmds: [[echo, x]], opts: {approval: none}, offered_to: [timer, command]}
      - {name: fine_too, cmds: [[echo, x]], opts: {approval: each_step}, offered_to: [model]}
    """
    [fault] = await faults_of(tmp_path, tools)
    assert (fault.line, fault.column) == (7, 9)
    assert "a timer has nobody to ask" in fault.message
