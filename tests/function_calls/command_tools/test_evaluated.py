"""No value stands in a word that a program reads as code."""

from __future__ import annotations

import pytest

from function_calls.command_tools.evaluated import code_with_variables
from function_calls.command_tools.words import template_of


def found(*words: str) -> int | None:
    return code_with_variables([template_of(word) for word in words])


@pytest.mark.requirement("C12")
@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["sh", "-c", "echo ${x}"], 2),
        (["/bin/bash", "-lc", "${x}"], 2),
        (["bash", "--norc", "-c", "${x}"], 3),
        (["env", "timeout", "5", "sh", "-c", "echo ${x}"], 5),
        (["busybox", "sh", "-c", "${x}"], 3),
        (["python3.11", "-c", "print(${x})"], 2),
        (["perl", "-ne", "print ${x}"], 2),
        (["node", "-e", "${x}"], 2),
        (["php", "-r", "${x}"], 2),
        (["awk", "/${x}/", "file"], 1),
        (["sed", "-n", "s/${x}/y/"], 2),
        (["sed", "-e", "s/${x}/y/"], 2),
    ],
)
def test_code_with_a_value_in_it_is_found(words: list[str], place: int) -> None:
    assert found(*words) == place


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "-c", 'echo "$1"', "sh", "${x}"],
        ["grep", "-c", "${x}"],
        ["docker", "run", "-e", "A=${x}", "python", "app.py"],
        ["docker", "run", "-p", "${x}:80", "image"],
        ["sed", "-e", "s/a/b/", "${x}"],
        ["awk", "{print}", "${x}"],
        ["python3", "script.py", "${x}"],
        ["echo", "sh -c ${x}"],
    ],
)
def test_values_elsewhere_are_no_code(words: list[str]) -> None:
    assert found(*words) is None
