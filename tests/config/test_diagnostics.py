from __future__ import annotations

from config.diagnostics import Code, Diagnostic, Diagnostics

ERROR = Diagnostic("bot.yaml", 3, 5, Code.UNKNOWN_KEY, "hme is not a setting")
WARNING = Diagnostic("bot.yaml", 2, 9, Code.NO_TEXTS, "there are no texts in 'fr'", "warning")


def test_a_diagnostic_is_one_line_that_editors_understand() -> None:
    assert str(ERROR) == "bot.yaml:3:5 settings.unknown_key hme is not a setting"


def test_warnings_are_no_errors() -> None:
    assert Diagnostics([WARNING, ERROR]).errors == [ERROR]


def test_diagnostics_are_told_in_the_order_of_the_file_each_once() -> None:
    other_file = Diagnostic("a.yaml", 9, 1, Code.SYNTAX, "is not YAML")
    assert Diagnostics([ERROR, WARNING, ERROR, other_file]).in_order() == [other_file, WARNING, ERROR]


def test_every_code_names_its_subject_and_the_fault() -> None:
    assert {code.value.partition(".")[0] for code in Code} == {"settings", "yaml", "env", "texts"}
