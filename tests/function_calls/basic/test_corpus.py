"""Whole scripts by many authors: good ones have no findings and the expected effects, mistakes are found on their
lines. Expectations are in `corpus/*/expected.yaml`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from bot.checks.scratch import scratch_daemon
from bot.checks.script_trial import Ended, Said, ScriptTrial, Trying, no_web
from bot.checks.scripts_check import check_scripts
from bot.overrides import Overrides
from config.diagnostics import Diagnostic
from config.sections.basic import BasicSource
from config.sections.bots import ChatsSettings
from config.settings import Settings, SourcesSettings
from function_calls.spec import FunctionResult, FunctionSpec
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef, Role

CORPUS = Path(__file__).parent / "corpus"
CLEAN, FAULTY = CORPUS / "clean", CORPUS / "faulty"
ANN = MemberRef("cli", "main", "ann")


def expected(folder: Path) -> Mapping[str, Any]:
    """Expectations for each script in `folder`."""
    loaded: Mapping[str, Any] = YAML(typ="safe").load((folder / "expected.yaml").read_text(encoding="utf-8"))
    return loaded


def findings(folder: Path, profile: str = "extended") -> Mapping[str, list[Diagnostic]]:
    """Diagnostics by script name."""
    source = BasicSource.model_validate({"path": folder, "profile": profile})
    found = defaultdict(list)
    for one in check_scripts(Settings(), [source]).findings:
        found[Path(one.file).stem].append(one)
    return found


def test_every_script_says_what_is_expected_of_it() -> None:
    for folder in (CLEAN, FAULTY):
        assert sorted(expected(folder)) == sorted(file.stem for file in folder.glob("*.bas"))


@pytest.mark.requirement("A51", "A57")
def test_well_written_scripts_give_no_finding() -> None:
    found = findings(CLEAN)
    wrong = []
    for name, cases in expected(CLEAN).items():
        codes = [one.code if one.severity == "warning" else f"error {one.code}" for one in found[name]]
        if codes != cases[0].get("warns", []):
            wrong.append(f"{name}: {[str(one) for one in found[name]]}")
    assert "\n".join(wrong) == ""


@pytest.mark.requirement("A36", "A40")
def test_mistakes_are_found_on_their_lines_and_named() -> None:
    found = {profile: findings(FAULTY, profile) for profile in ("extended", "strict")}
    wrong = []
    for name, what in expected(FAULTY).items():
        ours = found[what.get("profile", "extended")][name]
        told = {
            kind: {one.line: one.message for one in ours if one.severity == severity}
            for kind, severity in (("errors", "error"), ("warnings", "warning"))
        }
        errors, may_be_more = what.get("errors", {}), what.get("more", False)
        fits = may_be_more or list(errors) == list(told["errors"])
        if not (fits and _holds(errors, told["errors"]) and _holds(what.get("warnings", {}), told["warnings"])):
            wrong.append(f"{name}: {[str(one) for one in ours]}")
    assert "\n".join(wrong) == ""


@pytest.mark.requirement("A1", "B5", "B14")
async def test_clean_scripts_do_what_they_say() -> None:
    settings = Settings(sources=SourcesSettings(basic=(BasicSource(path=CLEAN),)), chats=ChatsSettings(allow=("*",)))
    clock = SystemClock()
    wrong = []
    async with scratch_daemon(settings, Overrides(clock=clock, web=no_web("nothing is asked"))) as daemon:
        # Rows and memory belong to a chat, so each case has a separate chat.
        specs = {Path(spec.origin.source.rpartition(":")[0]).stem: spec for spec in daemon.registry.of("default").specs}
        for name, cases in expected(CLEAN).items():
            for number, case in enumerate(cases):
                if not case.get("runs", True):
                    continue
                chat = ChatRef("cli", "main", f"{name}-{number}")
                trial = ScriptTrial(daemon, clock, Trying(ANN, "Ann", Role.OWNER, chat))
                if name not in specs:
                    wrong.append(f"{name} is not published")
                    continue
                says, result = await _tried(trial, specs[name], case)
                wrong += [f"{name} {number} {one}" for one in _differences(case, says, result)]
    assert "\n".join(wrong) == ""


async def _tried(trial: ScriptTrial, spec: FunctionSpec, case: Mapping[str, Any]) -> tuple[list[str], FunctionResult]:
    answers = iter(case.get("answers", ()))

    async def next_answer() -> str | None:
        return next(answers, None)

    says: list[str] = []
    async for step in trial.steps(spec, case.get("arguments", {}), next_answer):
        if isinstance(step, Said):
            says.append(step.message.text)
        elif isinstance(step, Ended):
            return says, step.result
    raise AssertionError("a trial ends with its result")


def _differences(case: Mapping[str, Any], says: list[str], result: FunctionResult) -> list[str]:
    wrong = []
    if result.error is not None or result.question is not None:
        wrong.append(f"ended with {result.error or result.question}")
    wanted = case.get("says", [])
    if re.fullmatch("\n".join(map(_pattern, wanted)), "\n".join(says)) is None:
        wrong.append(f"said {says}, not {wanted}")
    if "returns" in case and result.data != case["returns"]:
        wrong.append(f"returned {result.data!r}, not {case['returns']!r}")
    return wrong


def _pattern(wanted: str) -> str:
    if len(wanted) > 1 and wanted[0] == wanted[-1] == "/":
        return wanted[1:-1]
    return re.escape(wanted)


def _holds(wanted: Mapping[int, str], told: Mapping[int, str]) -> bool:
    return all(word in told.get(line, "") for line, word in wanted.items())


async def test_a_trial_has_a_time_limit(tmp_path: Path) -> None:
    text = 'DESCRIPTION "Rests"\nWAIT 15\nRETURN 1\n'
    (tmp_path / "rest.bas").write_text(text, encoding="utf-8")
    settings = Settings(sources=SourcesSettings(basic=(BasicSource(path=tmp_path),)), chats=ChatsSettings(allow=("*",)))
    clock = SystemClock()
    async with scratch_daemon(settings, Overrides(clock=clock, web=no_web("nothing is asked"))) as daemon:
        [spec] = [one for one in daemon.registry.of("default").specs if one.name == "rest"]
        trial = ScriptTrial(daemon, clock, Trying(ANN, "Ann", Role.OWNER, ChatRef("cli", "main", "rest")), seconds=10)
        _, result = await _tried(trial, spec, {})
    assert result.error is not None
    assert "longer than the time left" in result.error.text
