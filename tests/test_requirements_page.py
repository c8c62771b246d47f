"""The requirements page matches the marked tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import requirements_page
from tests.requirements_page import IDS, Shown, collect, faults, in_order, read_sentences, render

EVERY_SENTENCE = {name: f"It does {name}." for name in IDS}


def marked(folder: Path, source: str, file: str = "test_sample.py") -> dict[str, list[Shown]]:
    """Tests collected from a folder with one file with the content `source`."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("import pytest\n" + source, encoding="utf-8")
    return collect(folder)


def test_the_page_is_up_to_date() -> None:
    assert requirements_page.main([]) == 0, "run: python -m tests.requirements_page --write"


def test_every_requirement_has_one_sentence_that_fits_a_table() -> None:
    sentences = read_sentences()
    assert set(sentences) == IDS
    assert [name for name, text in sentences.items() if "|" in text or "\n" in text or not text.endswith(".")] == []


def test_every_id_is_on_the_page_exactly_once() -> None:
    page = render(EVERY_SENTENCE, {})
    assert len(IDS) == 251
    assert [name for name in IDS if page.count(f"| {name} |") != 1] == []


def test_a_marked_test_shows_its_requirements(tmp_path: Path) -> None:
    shown = marked(tmp_path, "@pytest.mark.requirement('D37', 'A1')\nasync def test_scope(): ...\n", "bot/test_gate.py")
    assert shown == {name: [Shown("bot/test_gate.py", "test_scope")] for name in ("D37", "A1")}
    lines = render(EVERY_SENTENCE, shown).splitlines()
    assert "| D37 | It does D37. | shown | [bot/test_gate.py](../tests/bot/test_gate.py): `test_scope` |" in lines
    assert "| D38 | It does D38. | not yet |  |" in lines
    assert "2 of 251 are shown." in lines


@pytest.mark.parametrize(
    ("source", "test"),
    [
        ("@pytest.mark.requirement('C1')\nclass TestSteps:\n    def test_order(self): ...\n", "TestSteps::test_order"),
        (
            "class TestSteps:\n    pytestmark = [pytest.mark.requirement('C1')]\n    def test_order(self): ...\n",
            "TestSteps::test_order",
        ),
        ("class TestSteps:\n    @pytest.mark.requirement('C1')\n    def test_a(self): ...\n", "TestSteps::test_a"),
        ("pytestmark = pytest.mark.requirement('C1')\ndef test_order(): ...\n", ""),
        (
            "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.requirement('C1'))])\n"
            "def test_number(n): ...\n",
            "test_number",
        ),
    ],
    ids=["class", "class's pytestmark", "method", "module", "parameter set"],
)
def test_a_mark_counts_wherever_pytest_takes_one(tmp_path: Path, source: str, test: str) -> None:
    assert marked(tmp_path, source) == {"C1": [Shown("test_sample.py", test)]}


def test_a_mark_on_what_is_no_test_shows_nothing(tmp_path: Path) -> None:
    assert marked(tmp_path, "@pytest.mark.requirement('C1')\ndef a_message(): ...\n") == {}


def test_an_id_that_is_computed_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"test_sample\.py:4: give the requirement's ID as a plain string"):
        marked(tmp_path, "NAME = 'C1'\n\n@pytest.mark.requirement(NAME)\ndef test_order(): ...\n")


def test_an_unknown_id_is_reported_with_its_test(tmp_path: Path) -> None:
    shown = marked(tmp_path, "@pytest.mark.requirement('D69')\ndef test_more(): ...\n")
    assert faults(EVERY_SENTENCE, shown) == ["tests/test_sample.py: test_more is marked D69, which is unknown"]


def test_missing_and_surplus_sentences_are_named() -> None:
    sentences = {name: text for name, text in EVERY_SENTENCE.items() if name != "E51"} | {"G1": "It does more."}
    assert faults(sentences, {}) == [
        "docs/requirements.yaml has no sentence for E51",
        "docs/requirements.yaml describes G1, which is unknown",
    ]


def test_ids_are_ordered_by_letter_and_number() -> None:
    assert in_order(["B1", "A10", "odd", "A9"]) == ["A9", "A10", "B1", "odd"]
