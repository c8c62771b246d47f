from __future__ import annotations

import random

import pytest

from services.calc.dice import BadDice, Dice


@pytest.mark.parametrize(
    ("notation", "normal", "count", "sides", "constant"),
    [
        ("2d6+1", "2d6+1", 2, 6, 1),
        ("d20", "1d20", 1, 20, 0),
        (" 3 D 8 - 2 ", "3d8-2", 3, 8, -2),
        ("d%", "1d100", 1, 100, 0),
        ("100d1000", "100d1000", 100, 1000, 0),
        ("10 sided", "1d10", 1, 10, 0),
        ("8-sided die", "1d8", 1, 8, 0),
        ("20面骰子", "1d20", 1, 20, 0),
    ],
)
def test_dice_fall_within_their_sides_and_add_up(
    notation: str, normal: str, count: int, sides: int, constant: int
) -> None:
    roll = Dice(random.Random(7)).roll(notation)
    assert (roll.notation, len(roll.faces)) == (normal, count)
    assert all(1 <= face <= sides for face in roll.faces)
    assert roll.total == sum(roll.faces) + constant


def test_dice_of_several_kinds_are_added_and_subtracted() -> None:
    roll = Dice(random.Random(7)).roll("2d1-1d1+5")
    assert (roll.faces, roll.total) == ((1, 1, 1), 6)


@pytest.mark.parametrize(
    "notation",
    ["", "6", "d", "2d", "d0", "0d6", "101d6", "60d6+60d6", "d1001", "2x6", "2d6+", "2d6 2d6", "9" * 60, "-", "²d6"],
)
def test_what_cannot_be_rolled_is_refused(notation: str) -> None:
    with pytest.raises(BadDice):
        Dice(random.Random(7)).roll(notation)


def test_all_faces_sides_and_options_come_up() -> None:
    dice = Dice(random.Random(7))
    assert {dice.roll("d6").total for _ in range(200)} == {1, 2, 3, 4, 5, 6}
    assert {dice.flip() for _ in range(50)} == {True, False}
    assert {dice.pick(["a", "b", "c"]) for _ in range(50)} == {"a", "b", "c"}
