from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as some

from services.sandbox.shell import LineProblem, NoCommand, words_of


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls", ("ls",)),
        ("  ls   -l  notes ", ("ls", "-l", "notes")),
        ("grep 'a | b' list.txt", ("grep", "a | b", "list.txt")),
        ('grep "it\'s" list.txt', ("grep", "it's", "list.txt")),
        ("grep '$x \\ `y`' 清单.txt", ("grep", "$x \\ `y`", "清单.txt")),
        ("cat ''", ("cat", "")),
        ("sort -t, -k2 a=b %x @y ^z", ("sort", "-t,", "-k2", "a=b", "%x", "@y", "^z")),
    ],
)
def test_spaces_part_words_and_quotes_hold_them_together(line: str, words: tuple[str, ...]) -> None:
    assert words_of(line) == words


@pytest.mark.parametrize("sign", list(";&|<>$`*?[](){}~#!\\"))
def test_what_a_shell_would_read_is_refused_by_name(sign: str) -> None:
    for line in (f"ls {sign}", f"ls{sign}id", f"{sign}ls"):
        with pytest.raises(NoCommand) as caught:
            words_of(line)
        assert (caught.value.problem, caught.value.values) == (LineProblem.SHELL, {"sign": sign})
    assert words_of(f"grep '{sign}' a") == ("grep", sign, "a")


@pytest.mark.parametrize("sign", list("$`\\!"))
def test_in_double_quotes_a_shell_would_still_read_some(sign: str) -> None:
    with pytest.raises(NoCommand):
        words_of(f'grep "{sign}" a')


@pytest.mark.parametrize("line", ["l''s", "l's'", "'l's", "'ls", 'ls "a', "ls 'a'b", "ls a'b'", "ls --x='y'"])
def test_a_quote_holds_a_whole_word_or_is_refused(line: str) -> None:
    with pytest.raises(NoCommand) as caught:
        words_of(line)
    assert caught.value.problem is LineProblem.QUOTE


@pytest.mark.parametrize(
    "line", ["ls\nid", "ls\tid", "ls\0", "ls\u202e txt", "l\u200bs", "ls\u00a0-l", "ls\u3000-l", "ls \ud800", "ls '\n'"]
)
def test_what_nobody_sees_is_refused(line: str) -> None:
    with pytest.raises(NoCommand) as caught:
        words_of(line)
    assert caught.value.problem is LineProblem.UNSEEN


@pytest.mark.parametrize(
    ("line", "problem"), [("", LineProblem.BLANK), ("  ", LineProblem.BLANK), ("x" * 1001, LineProblem.TOO_LONG)]
)
def test_what_is_no_line_is_refused(line: str, problem: LineProblem) -> None:
    with pytest.raises(NoCommand) as caught:
        words_of(line)
    assert caught.value.problem is problem


@given(some.text("ab '\"$;|\\*~#-=\n\u202e好", max_size=12))
def test_a_line_that_is_taken_means_to_a_shell_what_it_means_here(line: str) -> None:
    try:
        words = words_of(line)
    except NoCommand:
        return
    assert words == tuple(shlex.split(line))
