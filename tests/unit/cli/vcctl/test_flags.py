"""Flags are read as Go's pflag reads them. The sentences were seen from cobra 1.9.1 with pflag 1.0.6."""

from __future__ import annotations

import pytest

from vcbatch.cli.vcctl.flags import Flag, FlagError, Given, Kind, parse

FLAGS = (
    Flag(name="image", short="i", default="busybox", help=""),
    Flag(name="namespace", short="n", default="default", help=""),
    Flag(name="name", short="N", help=""),
    Flag(name="min", short="m", kind=Kind.INT, default=1, help=""),
    Flag(name="weight", short="w", kind=Kind.INT32, default=0, help=""),
    Flag(name="all-namespaces", kind=Kind.BOOL, default=False, help=""),
    Flag(name="verbose", short="v", kind=Kind.BOOL, default=False, help=""),
)


def given(*arguments: str) -> Given:
    return parse(arguments, FLAGS)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("-N", "x"), "x"),
        (("-Nx",), "x"),
        (("-N=x",), "x"),
        (("--name", "x"), "x"),
        (("--name=x",), "x"),
        (("--name=a=b",), "a=b"),
        (("--name=",), ""),
        (("-N", ""), ""),
        (("-N", "-v"), "-v"),  # what follows is the value, whatever it looks like
        (("--name", "--image"), "--image"),
        (("-vN", "x"), "x"),
        (("-vNx",), "x"),
        (("-N", "a", "-N", "b"), "b"),
        (("-N=",), "="),
        (("-N", "--", "-v"), "--"),
        (("-N", "ü"), "ü"),
    ],
)
def test_a_value_is_given_in_many_ways(arguments: tuple[str, ...], name: str):
    assert given(*arguments).text("name") == name


def test_what_isnt_given_has_its_default():
    nothing = given()
    assert nothing.text("namespace") == "default"
    assert nothing.number("min") == 1
    assert not nothing.on("all-namespaces")
    assert nothing.named == frozenset()


def test_an_empty_value_counts_as_given():
    assert given("--namespace=").named == {"namespace"}


@pytest.mark.parametrize(
    ("arguments", "rest"),
    [
        (("a", "-N", "x", "b"), ["a", "b"]),
        (("--", "-N", "x"), ["-N", "x"]),
        (("-", ""), ["-", ""]),
        (("--all-namespaces", "false"), ["false"]),
    ],
)
def test_what_is_no_flag_is_kept(arguments: tuple[str, ...], rest: list[str]):
    assert given(*arguments).rest == rest


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_a_switch_takes_gos_words(text: str):
    assert given(f"--all-namespaces={text}").on("all-namespaces")
    assert given("-v").on("verbose") and given("-v=true").on("verbose")
    assert not given("--all-namespaces", "--all-namespaces=F").on("all-namespaces")


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x10", 16), ("-3", -3), ("+3", 3), ("010", 8), ("0o17", 15), ("0b11", 3), ("1_000", 1000), ("0X_1f", 31),
     ("0_7", 7), ("-9223372036854775808", -(2**63)), ("-0", 0)],
)  # fmt: skip
def test_numbers_are_gos(text: str, number: int):
    assert given(f"--min={text}").number("min") == number


def test_underscores_stand_for_dashes():
    assert given("--all_namespaces").on("all-namespaces")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bad",), "unknown flag: --bad"),
        (("--bad=1",), "unknown flag: --bad"),
        (("-x",), "unknown shorthand flag: 'x' in -x"),
        (("-vx1",), "unknown shorthand flag: 'x' in -x1"),
        (("-'",), r"unknown shorthand flag: '\'' in -'"),
        (("--name",), "flag needs an argument: --name"),
        (("-N",), "flag needs an argument: 'N' in -N"),
        (("-vN",), "flag needs an argument: 'N' in -N"),
        (("---x",), "bad flag syntax: ---x"),
        (("--=x",), "bad flag syntax: --=x"),
        (
            ("-m", "x"),
            'invalid argument "x" for "-m, --min" flag: strconv.ParseInt: parsing "x": invalid syntax',
        ),
        (("-m", ""), 'invalid argument "" for "-m, --min" flag: strconv.ParseInt: parsing "": invalid syntax'),
        (
            ("-w", "99999999999"),
            (
                'invalid argument "99999999999" for "-w, --weight" flag: '
                'strconv.ParseInt: parsing "99999999999": value out of range'
            ),
        ),
        (
            ("--all-namespaces=maybe",),
            'invalid argument "maybe" for "--all-namespaces" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (
            ("-m", 'a"\n\x00'),
            (
                r'invalid argument "a\"\n\x00" for "-m, --min" flag: '
                r'strconv.ParseInt: parsing "a\"\n\x00": invalid syntax'
            ),
        ),
    ],
)
def test_what_is_wrong_is_told_in_gos_words(arguments: tuple[str, ...], message: str):
    with pytest.raises(FlagError) as caught:
        given(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["08", "1__0", "_1", "1_", "0x", "1.5", " 1", "٣", "1e3", "--1"])
def test_what_is_no_number_in_go_is_refused(text: str):
    with pytest.raises(FlagError, match="invalid syntax"):
        given("-m", text)


def test_a_number_of_many_digits_is_out_of_range_at_once():
    with pytest.raises(FlagError, match="value out of range"):
        given("-m", "9" * 1_000_000)
