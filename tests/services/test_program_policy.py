from __future__ import annotations

from pathlib import Path

import pytest

from config.sections.processes import ProgramSettings, shipped_programs
from services.sandbox.shell import NotAllowed, PolicyProblem, allowed, words_of

PROGRAMS = {
    **shipped_programs(),
    "git": ProgramSettings(path="/bin/true", subcommand="log", options=("--oneline", "-n=")),
    "look": ProgramSettings(path="/bin/true", anywhere=True),
}


def problem(line: str) -> PolicyProblem:
    with pytest.raises(NotAllowed) as caught:
        allowed(words_of(line), PROGRAMS)
    return caught.value.problem


@pytest.mark.parametrize(
    "line",
    [
        "ls",
        "ls -la notes",
        "/usr/bin/ls -l -a",
        "head -5 a.txt",
        "head -n 5 a.txt",
        "head -n5 a.txt",
        "head --lines=5 a.txt",
        "head --lines 5 a.txt",
        "grep -in -A3 milk list.txt",
        "grep -e '-x' list.txt",
        "grep -- -x list.txt",
        "sort -k2,2 -t, -rn a.csv",
        "cat - a..b",
        "uniq -c a.txt",
        "git log --oneline -n 3",
        "look /usr/share",
    ],
)
def test_what_the_list_allows_is_run_by_its_own_path(line: str) -> None:
    words = words_of(line)
    argv = allowed(words, PROGRAMS)
    assert argv[0].startswith("/")
    assert argv[1:] == words[1:]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rm a", PolicyProblem.PROGRAM),
        ("/tmp/ls", PolicyProblem.PROGRAM),
        ("/bin/../usr/bin/ls", PolicyProblem.PROGRAM),
        ("./ls", PolicyProblem.PROGRAM),
        ("LS", PolicyProblem.PROGRAM),
        ("A=b ls", PolicyProblem.PROGRAM),
        ("sort -o out a", PolicyProblem.OPTION),
        ("sort -no out a", PolicyProblem.OPTION),
        ("sort --output=out a", PolicyProblem.OPTION),
        ("sort --compress-program=id a", PolicyProblem.OPTION),
        ("sort --files0-from=a", PolicyProblem.OPTION),
        ("sort -T x a", PolicyProblem.OPTION),
        ("sort a -o out", PolicyProblem.OPTION),
        ("wc --files0-from a", PolicyProblem.OPTION),
        ("grep -f patterns a", PolicyProblem.OPTION),
        ("grep -P x a", PolicyProblem.OPTION),
        ("grep --ignore-cas x a", PolicyProblem.OPTION),
        ("grep --count=1 x a", PolicyProblem.OPTION),
        ("tail -f a", PolicyProblem.OPTION),
        ("tail --pid=1 a", PolicyProblem.OPTION),
        ("cat -5 a", PolicyProblem.OPTION),
        ("head -n", PolicyProblem.VALUE),
        ("head --lines", PolicyProblem.VALUE),
        ("uniq a b", PolicyProblem.OPERANDS),
        ("cat /etc/passwd", PolicyProblem.OUTSIDE),
        ("cat -- /etc/passwd", PolicyProblem.OUTSIDE),
        ("cat ../x", PolicyProblem.OUTSIDE),
        ("cat a/../../x", PolicyProblem.OUTSIDE),
        ("grep -e /etc a", PolicyProblem.OUTSIDE),
        ("grep -e/etc a", PolicyProblem.OUTSIDE),
        ("git", PolicyProblem.SUBCOMMAND),
        ("git push", PolicyProblem.SUBCOMMAND),
        ("git -c core.pager=id log", PolicyProblem.SUBCOMMAND),
        ("git log --ext-diff", PolicyProblem.OPTION),
        ("git log -c core.pager=id", PolicyProblem.OPTION),
    ],
)
def test_all_else_is_refused_with_its_reason(line: str, expected: PolicyProblem) -> None:
    assert problem(line) is expected


def test_what_a_path_leads_to_is_what_would_run(tmp_path: Path) -> None:
    link = tmp_path / "harmless"
    link.symlink_to("/bin/sh")
    programs = {"harmless": ProgramSettings(path=str(link)), "gone": ProgramSettings(path=str(tmp_path / "gone"))}
    for name, expected in (("harmless", PolicyProblem.RUNS_OTHERS), ("gone", PolicyProblem.ABSENT)):
        with pytest.raises(NotAllowed) as caught:
            allowed((name,), programs)
        assert caught.value.problem is expected
    meant = {"harmless": ProgramSettings(path=str(link), runs_programs=True)}
    assert allowed(("harmless",), meant) == (str(link),)
