"""Quantities against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vcbatch.api.quantity import (
    NANO,
    MalformedQuantity,
    Notation,
    Quantity,
    binary_text,
    decimal_text,
    milli_text,
    parse_quantity,
)

BINARY = {suffix: Fraction(1024) ** power for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1)}
DECIMAL = {
    suffix: Fraction(1000) ** power
    for power, suffix in enumerate(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"], -3)
}
CAP = 2**63 - 1

digits = st.text("0123456789", min_size=1, max_size=22)
numbers = st.one_of(
    digits,
    st.builds("{}.{}".format, digits, st.text("0123456789", max_size=14)),
    st.builds(".{}".format, digits),
)
suffixes = st.one_of(
    st.sampled_from([*BINARY, *DECIMAL]),
    st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-30, 30)),
)
texts = st.builds("{}{}{}".format, st.sampled_from(["", "+", "-"]), numbers, suffixes)
amounts = st.integers(-(10**30), 10**30)


def factor(suffix: str) -> Fraction:
    return (BINARY | DECIMAL).get(suffix) or Fraction(10) ** int(suffix[1:])


@settings(max_examples=examples(300))
@given(sign=st.sampled_from(["", "+", "-"]), number=numbers, suffix=suffixes)
@example(sign="", number="0.0000000001", suffix="")
@example(sign="-", number="9999999999999999999999", suffix="Ei")
@example(sign="", number="1", suffix="E")
@example(sign="", number="1", suffix="E2")
def test_a_quantity_is_its_fraction_rounded_away_from_zero_to_billionths(sign: str, number: str, suffix: str) -> None:
    exact = Fraction(number if number[0] != "." else f"0{number}") * factor(suffix)
    want = math.ceil(exact * NANO)
    if suffix in BINARY:
        want = min(want, CAP * NANO)
    got = parse_quantity(f"{sign}{number}{suffix}")
    assert got.nano == (-want if sign == "-" else want)


@settings(max_examples=examples(300))
@given(text=texts)
@example(text="437.5Ki")
def test_the_canonical_text_is_the_same_amount_and_comes_to_rest(text: str) -> None:
    """A binary amount that no binary suffix fits is written as a plain number, which is read as a decimal one
    (Kubernetes does the same); from then on nothing changes."""
    quantity = parse_quantity(text)
    written = quantity.format()
    again = parse_quantity(written).format()
    assert parse_quantity(written) == parse_quantity(again) == quantity
    assert again == written or (quantity.notation is Notation.BINARY_SI and written[-1].isdigit())
    assert parse_quantity(again).format() == again


@settings(max_examples=examples(200))
@given(nano=amounts, notation=st.sampled_from(Notation))
def test_every_amount_can_be_written_in_every_notation(nano: int, notation: Notation) -> None:
    quantity = Quantity(nano, notation)
    if notation is not Notation.BINARY_SI or abs(nano) <= CAP * NANO:
        assert parse_quantity(quantity.format()) == quantity
    assert "." not in quantity.format()


@settings(max_examples=examples(200))
@given(units=st.integers(-(10**15), 10**15) | st.integers(-(2**12), 2**12).map(lambda number: number * 1024))
def test_whole_units_are_written_as_they_are_read(units: int) -> None:
    assert decimal_text(units) == milli_text(1000 * units) == Quantity(units * NANO).format()
    assert binary_text(units) == Quantity(units * NANO, Notation.BINARY_SI).format()
    assert milli_text(units) == Quantity(units * 10**6).format()
    for text, amount in ((decimal_text(units), units * NANO), (binary_text(units), units * NANO)):
        assert parse_quantity(text) == Quantity(amount)
    assert parse_quantity(milli_text(units)) == Quantity(units * 10**6)


@settings(max_examples=examples(200))
@given(left=amounts, right=amounts, times=st.integers(-1000, 1000))
def test_arithmetic_is_exact(left: int, right: int, times: int) -> None:
    a, b = Quantity(left), Quantity(right)
    assert (a + b).nano == left + right
    assert (a - b) == a + (-b)
    assert (a * times).nano == left * times
    assert (a < b) == (left < right)
    assert hash(a) == hash(Quantity(left, Notation.BINARY_SI))
    assert a.value() == (math.ceil if left > 0 else math.floor)(Fraction(left, NANO))
    assert a.milli() == (math.ceil if left > 0 else math.floor)(Fraction(left, 10**6))


@settings(max_examples=examples(300))
@given(text=st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_quantity(text)
    except MalformedQuantity as error:
        assert str(error)


@pytest.mark.parametrize(
    ("given_text", "want"),
    [
        # As kube-apiserver writes them back.
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1Ki", "1Ki"),
        ("1023", "1023"),
        ("1.1Mi", "1153433600m"),
        ("0.3Ki", "307200m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("100m", "100m"),
        ("0.1", "100m"),
        ("1e3", "1e3"),
        ("12345e-3", "12345e-3"),
        ("1000e1", "10e3"),
        ("1E", "1E"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("0.0000000001", "1n"),
        ("100Ei", "9223372036854775807"),
        ("1000E", "1000E"),
        ("+5", "5"),
    ],
)
def test_canonical_texts(given_text: str, want: str) -> None:
    assert parse_quantity(given_text).format() == want


@pytest.mark.parametrize(
    "text", ["", "1e", "1x", "1.1.1", " 1", "1 ", "1Kii", "1e1.5", "a", "1mi", "k1", "1e9999", "٣", "1" * 300]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(MalformedQuantity):
        parse_quantity(text)


def test_numbers_of_json_are_quantities() -> None:
    assert parse_quantity(2) == parse_quantity("2")
    assert parse_quantity(0.5) == parse_quantity("500m")
    assert parse_quantity(1e21) == parse_quantity("1e21")
    with pytest.raises(MalformedQuantity):
        parse_quantity(True)
    with pytest.raises(MalformedQuantity):
        parse_quantity(math.inf)


def test_adding_to_nothing_takes_the_notation_of_what_is_added() -> None:
    assert str(parse_quantity("0") + parse_quantity("2Gi")) == "2Gi"
    assert str(parse_quantity("1Gi") + parse_quantity("1024")) == "1048577Ki"
