"""The benchmark of a folder of scripts counts tools that compile and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.basic_corpus import answers_for, main


def test_tools_are_counted_by_content_name_and_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in ("one", "two"):
        (tmp_path / f"{place}.gbdialog").mkdir()
        (tmp_path / f"{place}.gbdialog" / "good.bas").write_text('DESCRIPTION "Good"\nHEAR x\nTALK x\n')
    (tmp_path / "one.gbdialog" / "bad.bas").write_text('DESCRIPTION "Bad"\nTELK 1\n')
    (tmp_path / "one.gbdialog" / "start.bas").write_text('TALK "no tool"\n')
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "one.gbdialog/bad.bas:2 basic.unknown_statement" in said
    assert [line.split()[:4:2] for line in said.splitlines()[-3:]] == [
        ["contents", "tools"],
        ["names", "tools"],
        ["paths", "tools"],
    ]
    assert [line.split()[1] for line in said.splitlines()[-3:]] == ["2", "3", "3"]
    assert "2 run to their end" in said.splitlines()[-1]


def test_answers_have_the_members_that_a_script_reads() -> None:
    found, _, _ = answers_for("r = GET url\nTALK r.user.name\nFOR EACH x IN r.items\nTALK x.price * 2\nNEXT\n")
    assert found["user"]["name"]
    assert found["items"][0]["price"] == 1
