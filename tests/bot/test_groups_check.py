"""Groups with unknown functions."""

from __future__ import annotations

from bot.checks.functions_check import check_groups
from function_calls.spec import ToolGroup
from tests.fakes.functions import Recorder


def test_a_function_that_is_not_there_is_named_with_what_is_near() -> None:
    specs = [Recorder("sonar").spec, Recorder("radar", bot="other").spec]
    groups = [
        ToolGroup("deep", "The sea", ("sonar", "sonnar", "whale"), source="tools.yaml:3"),
        ToolGroup("sky", "The air", ("radar",), bot="default"),
    ]
    assert {one.severity for one in check_groups(groups, specs)} == {"warning"}
    assert [one.message for one in check_groups(groups, specs)] == [
        "group 'deep': there is no function 'sonnar'; did you mean 'sonar'?",
        "group 'deep': there is no function 'whale'",
        "group 'sky': there is no function 'radar'",
    ]


def test_groups_of_what_is_there_are_in_order() -> None:
    assert check_groups([ToolGroup("deep", "The sea", ("sonar",))], [Recorder("sonar").spec]) == []
