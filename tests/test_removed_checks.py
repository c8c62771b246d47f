"""The harness `removed_checks` lists the conditions of a module and detects the removal of one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.harness.guarding_modules import GUARDING
from tests.harness.removed_checks import conditions_of

SOURCE = """\
class Door:
    def opens(self, who):
        if who is None or (who.is_bot and
                not who.is_ours):
            return "no"
        if self.is_open:
            return None
        known = self.known or [one for one in who.keys if one.fits]
        return self.key == who.key and who.old > 3
"""


def test_every_condition_and_each_of_its_parts_is_listed() -> None:
    listed = [(one.where, one.text, one.instead) for one in conditions_of(SOURCE)]
    assert listed == [
        ("Door.opens", "who is None or (who.is_bot and not who.is_ours)", "False"),
        ("Door.opens", "who is None", "False"),
        ("Door.opens", "who.is_bot and not who.is_ours", "False"),
        ("Door.opens", "who.is_bot", "True"),
        ("Door.opens", "not who.is_ours", "True"),
        ("Door.opens", "self.is_open", "True"),
        ("Door.opens", "self.known", "False"),
        ("Door.opens", "[one for one in who.keys if one.fits]", "False"),
        ("Door.opens", "one.fits", "True"),
        ("Door.opens", "self.key == who.key", "True"),
        ("Door.opens", "who.old > 3", "True"),
    ]


def test_conditions_with_equal_text_are_numbered() -> None:
    names = [one.name for one in conditions_of("def f(a, b):\n    if a or b:\n        return 1\n    return b or 2\n")]
    assert names == ["f: a or b", "f: a", "f: b", "f: b (2)", "f: 2"]


def test_without_one_the_rest_stays_line_for_line() -> None:
    changed = conditions_of(SOURCE)[0].gone_from(SOURCE.encode())
    assert changed.count("\n") == SOURCE.count("\n")
    assert 'if (False\n):\n            return "no"' in changed
    compile(changed, "door", "exec")


def tried(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, report of each condition, and error output of the harness."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.removed_checks", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, rows, done.stderr


def test_what_is_taken_out_of_a_module_is_noticed_by_its_tests() -> None:
    tests = (
        "every_approval_check_matters",
        "every_check_matters",
        "permissions",
        "touches",
    )
    returned, rows, told = tried(
        "function_calls/checks/permissions.py", *(f"tests/function_calls/test_{test}.py" for test in tests)
    )
    assert len(rows) > 10, told
    assert [row for row in rows if not row["noticed_by"] or not row["tests"]] == []
    assert returned == 0


def test_what_no_test_notices_is_a_fault_unless_it_is_known_to_be_harmless() -> None:
    module = "function_calls/checks/approvals.py"
    returned, rows, _ = tried(module, "tests/function_calls/test_touches.py")
    assert {(row["tests"], row["noticed_by"]) for row in rows if "harmless" not in row} == {(0, "")}
    assert sum("harmless" in row for row in rows) == len(GUARDING[module].harmless)
    assert returned == 1


@pytest.mark.parametrize("file", GUARDING)
def test_each_harmless_condition_is_in_its_module_and_has_a_reason(file: str) -> None:
    names = Counter(one.name for one in conditions_of((REPOSITORY / file).read_text(encoding="utf-8")))
    assert {name: names[name] for name in GUARDING[file].harmless if names[name] != 1} == {}
    assert [name for name, reason in GUARDING[file].harmless.items() if len(reason.split()) < 4] == []


def test_every_guarding_module_has_tests_that_cover_it() -> None:
    named = [test for guarding in GUARDING.values() for test in (guarding.tests or ("none",))]
    assert [test for test in named if not (REPOSITORY / test).is_file()] == []


def test_a_module_without_known_tests_is_named() -> None:
    returned, rows, told = tried("function_calls/schema/commands.py")
    assert (returned, rows, "function_calls/schema/commands.py" in told) == (2, [], True)
