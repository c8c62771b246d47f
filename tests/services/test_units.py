from __future__ import annotations

from fractions import Fraction

import pytest

from services.calc.units import Units, UnitsDiffer, UnknownUnit


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        ("5", "km", "miles", "3.10685596119"),
        ("1", "mile", "km", "1.609344"),
        ("6", "feet", "cm", "182.88"),
        ("150", "pounds", "kilos", "68.0388555"),
        ("1", "stone", "lb", "14"),
        ("3", "斤", "公斤", "1.5"),
        ("32", "fahrenheit", "celsius", "0"),
        ("-40", "°C", "°F", "-40"),
        ("100", "degrees celsius", "F", "212"),
        ("0", "摄氏度", "K", "273.15"),
        ("2", "quarts", "pints", "4"),
        ("1", "cup", "fluid ounces", "8"),
        ("1", "gallon", "升", "3.785411784"),
        ("100", "km/h", "mph", "62.1371192237"),
        ("36", "km/h", "m/s", "10"),
        ("1", "knot", "km/h", "1.852"),
        ("2", "weeks", "days", "14"),
        ("90", "minutes", "小时", "1.5"),
        ("1", "GB", "MB", "1000"),
        ("1", "GiB", "MiB", "1024"),
        ("1", "MB", "Mbit", "8"),
        ("8", "bits", "bytes", "1"),
        ("1", "light years", "km", "9460730472580.8"),
        ("0.1", "m", "cm", "10"),
    ],
)
def test_a_measure_is_converted(value: str, source: str, target: str, result: str) -> None:
    assert Units().convert(Fraction(value), source, target).result.text == result


def test_symbols_that_differ_only_in_case_are_told_apart() -> None:
    units = Units()
    assert (units.find("MB").symbol, units.find("Mbit").symbol, units.find("B").symbol) == ("MB", "Mbit", "B")
    assert (units.find("KM").symbol, units.find("Kg").symbol, units.find("mb").symbol) == ("km", "kg", "MB")


def test_units_of_different_kinds_do_not_convert() -> None:
    with pytest.raises(UnitsDiffer) as caught:
        Units().convert(Fraction(1), "km", "kg")
    assert (caught.value.source.kind, caught.value.target.kind) == ("length", "mass")


def test_a_unit_that_is_not_known_brings_similar_ones() -> None:
    with pytest.raises(UnknownUnit) as caught:
        Units().find("kilometter")
    assert caught.value.name == "kilometter"
    assert "kilometer" in caught.value.similar
