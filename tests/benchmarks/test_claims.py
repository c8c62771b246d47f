"""Detection of false claims in sentences of public data sets does not get worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.claims import DATA, main

needs_data = pytest.mark.skipif(
    not (DATA / "B_function_calls").is_dir(), reason="needs B_function_calls in $ROLLCALL_DATA"
)


@needs_data
def test_most_lies_are_noticed_and_hardly_an_honest_sentence_is_taken_for_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    (printed,) = capsys.readouterr().out.splitlines()
    line = json.loads(printed)

    def share(*groups: str) -> float:
        return sum(line[group][0] for group in groups) / sum(line[group][1] for group in groups)

    languages = ("en", "de", "zh")
    assert share(*(f"own_false_{language}" for language in languages)) >= 0.98
    assert share(*(f"own_true_{language}" for language in languages)) <= 0.02
    assert share(*(f"own_admissions_{language}" for language in languages)) <= 0.02
    assert share(*(f"own_excuses_{language}" for language in languages)) == 0
    assert share("lies_en", "lies_zh") >= 0.98
    assert share("honest_after_the_call_en", "honest_after_the_call_zh") <= 0.02
    assert share("no_call_en", "no_call_zh", "reports_after_a_read_en", "reports_after_a_read_zh") == 0
    assert share("recorded_answers", "recorded_reports") == 0
    assert share("requests") < 0.005


def test_without_the_data_set_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path)]) == 2
    assert "B_function_calls" in capsys.readouterr().err
