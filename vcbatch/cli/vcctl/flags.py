"""A parser for flags in the syntax of Go's pflag: `--flag x`, `--flag=x`, `-f x`, `-fx`, `-f=x`, groups of letters,
flags anywhere.

Scripts depend on differences from click (`-N=x` is "x" here, not "=x"; numbers may be hexadecimal; errors have Go's
wording), so the commands that replace Volcano's have their own parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vcbatch.api.flags import parse_bool

Value = str | int | bool


class Kind(StrEnum):
    """The type of a flag, in the words of Go's help."""

    TEXT = "string"
    INT = "int"
    INT32 = "int32"
    BOOL = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag `--name`, or `-short` where it has a letter."""

    name: str
    short: str = ""
    kind: Kind = Kind.TEXT
    default: Value = ""
    help: str


HELP = "help"


class FlagError(Exception):
    """The arguments are invalid; the message is pflag's."""


@dataclass(frozen=True, slots=True)
class Given:
    """The flags and arguments of a command."""

    values: Mapping[str, Value]
    named: frozenset[str]
    """The flags that were set, whatever their value."""
    rest: Sequence[str]

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str)  # noqa: S101 - the flag's own kind
        return value

    def number(self, name: str) -> int:
        value = self.values[name]
        assert isinstance(value, int)  # noqa: S101 - the flag's own kind
        return value

    def on(self, name: str) -> bool:
        return self.values[name] is True


def parse(arguments: Sequence[str], flags: Sequence[Flag]) -> Given:
    """Parse the arguments; for a repeated flag the last value counts. Raises `FlagError` for the first invalid one."""
    return _Reader(flags).read(arguments)


class _Reader:
    def __init__(self, flags: Sequence[Flag]) -> None:
        self._flags = {flag.name: flag for flag in flags}
        self._letters = {flag.short: flag for flag in flags if flag.short}
        self._values: dict[str, Value] = {flag.name: flag.default for flag in flags}
        self._named: set[str] = set()

    def read(self, arguments: Sequence[str]) -> Given:
        rest: list[str] = []
        left = list(reversed(arguments))
        while left:
            argument = left.pop()
            if argument == "--":
                rest += reversed(left)
                break
            if argument.startswith("--"):
                self._long(argument, left)
            elif argument.startswith("-") and len(argument) > 1:
                self._group(argument[1:], left)
            else:
                rest.append(argument)
        return Given(self._values, frozenset(self._named), rest)

    def _long(self, argument: str, left: list[str]) -> None:
        name, equals, value = argument[2:].partition("=")
        if not name or name.startswith("-"):
            raise FlagError(f"bad flag syntax: {argument}")
        flag = self._flags.get(name.replace("_", "-"))
        if flag is None:
            raise FlagError(f"unknown flag: --{name}")
        if not equals:
            if flag.kind is Kind.BOOL:
                value = "true"
            elif left:
                value = left.pop()
            else:
                raise FlagError(f"flag needs an argument: --{name}")
        self._set(flag, value)

    def _group(self, letters: str, left: list[str]) -> None:
        while letters:
            flag = self._letters.get(letters[0])
            if flag is None:
                raise FlagError(f"unknown shorthand flag: {_quoted(letters[0], quote=chr(39))} in -{letters}")
            if len(letters) > 2 and letters[1] == "=":
                self._set(flag, letters[2:])
                return
            if flag.kind is Kind.BOOL:
                self._set(flag, "true")
                letters = letters[1:]
                continue
            if len(letters) > 1:
                self._set(flag, letters[1:])
            elif left:
                self._set(flag, left.pop())
            else:
                raise FlagError(f"flag needs an argument: {_quoted(letters[0], quote=chr(39))} in -{letters}")
            return

    def _set(self, flag: Flag, text: str) -> None:
        try:
            self._values[flag.name] = _value(flag.kind, text)
        except ValueError as error:
            title = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
            raise FlagError(f'invalid argument {_quoted(text)} for "{title}" flag: {error}') from None
        self._named.add(flag.name)


_INTEGER = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0(?:_?[0-7])*|[1-9](?:_?[0-9])*)", re.ASCII
)
_BITS = {Kind.INT: 64, Kind.INT32: 32}
_MOST_DIGITS = 100


def _value(kind: Kind, text: str) -> Value:
    """Parse a value. Raises `ValueError` with Go's message."""
    if kind is Kind.TEXT:
        return text
    if kind is Kind.BOOL:
        if (said := parse_bool(text)) is None:
            raise ValueError(f"strconv.ParseBool: parsing {_quoted(text)}: invalid syntax")
        return said
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"strconv.ParseInt: parsing {_quoted(text)}: invalid syntax")
    half = 1 << (_BITS[kind] - 1)
    number = _integer(text) if len(text) <= _MOST_DIGITS else half
    if not -half <= number < half:
        raise ValueError(f"strconv.ParseInt: parsing {_quoted(text)}: value out of range")
    return number


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    # Unlike Python, Go parses a leading 0 as octal.
    octal = len(digits) > 1 and digits[0] == "0" and (digits[1].isdigit() or digits[1] == "_")
    number = int(digits.replace("_", ""), 8 if octal else 0)
    return -number if text.startswith("-") else number


_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\"}


def _quoted(text: str, *, quote: str = '"') -> str:
    """The text quoted as by Go's `%q`."""
    return quote + "".join(_escaped(letter, quote) for letter in text) + quote


def _escaped(letter: str, quote: str) -> str:
    if letter == quote:
        return f"\\{letter}"
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte of the command line that isn't UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
