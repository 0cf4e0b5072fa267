"""Parses JSONPath templates. Accepts exactly what client-go `util/jsonpath/parser.go` accepts, up to `LONGEST`."""

from __future__ import annotations

import re
from typing import Final

from vcbatch.api.jsonpath.nodes import (
    Action,
    Field,
    Filter,
    Identifier,
    Literal,
    MalformedPath,
    Node,
    Part,
    Recursive,
    Slice,
    Text,
    Union,
    Wildcard,
)

LONGEST: Final = 16_384
"""The maximum number of characters of a template."""

_MOST_DIGITS: Final = 18
_DICT_KEY = re.compile(r"'([^']*)'", re.DOTALL)
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_TERMINATORS: Final = frozenset(" \t\r\n.,[]$@{}")
_SIMPLE_ESCAPES: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_HEX_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}


def parse(text: str) -> tuple[Part, ...]:
    """The parts of a template. Raises `MalformedPath`."""
    if len(text) > LONGEST:
        raise MalformedPath(f"{len(text)} characters, want at most {LONGEST}")
    return _Parser(text).template()


def _action(text: str) -> tuple[Node, ...]:
    """The nodes of `{text}` within brackets. Text after a brace that `text` closes is ignored."""
    first = _Parser(f"{{{text}}}").template()[0]
    assert isinstance(first, Action)  # noqa: S101 - it begins with a brace
    return first.nodes


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def template(self) -> tuple[Part, ...]:
        parts: list[Part] = []
        while (brace := self._text.find("{", self._at)) >= 0:
            if brace > self._at:
                parts.append(Text(self._text[self._at : brace]))
            self._at = brace + 1
            parts.append(Action(self._inside()))
        if self._at < len(self._text):
            parts.append(Text(self._text[self._at :]))
        return tuple(parts)

    def _inside(self) -> tuple[Node, ...]:
        """The nodes up to and including the closing brace."""
        nodes: list[Node] = []
        while True:
            if self._take("}"):
                return tuple(nodes)
            if self._take("[?("):
                nodes.append(self._filter())
            elif self._take(".."):
                if nodes and isinstance(nodes[-1], Recursive):
                    raise MalformedPath("invalid multiple recursive descent")
                nodes.append(Recursive())
                if _alphanumeric(self._peek()):
                    nodes.append(self._field())
            else:
                self._token(nodes)

    def _token(self, nodes: list[Node]) -> None:
        start = self._at
        letter = self._peek()
        self._at += 1
        if letter in ("", "\r", "\n"):
            raise MalformedPath("unclosed action")
        if letter in " @$":
            return
        if letter == "[":
            nodes.extend(self._bracket())
        elif letter in "\"'":
            nodes.append(self._quote(letter))
        elif letter == ".":
            nodes.append(self._field())
        elif letter in "+-" or letter.isdecimal():
            nodes.append(self._number(start))
        elif _alphanumeric(letter):
            nodes.append(self._identifier(start))
        else:
            raise MalformedPath(f"unrecognized character in action: U+{ord(letter):04X} {letter!r}")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, word: str) -> bool:
        if not self._text.startswith(word, self._at):
            return False
        self._at += len(word)
        return True

    def _field(self) -> Node:
        start = self._at
        while (letter := self._peek()) and letter not in _TERMINATORS:
            self._at += 2 if letter == "\\" else 1
        self._at = min(self._at, len(self._text))
        name = self._text[start : self._at]
        return Wildcard() if name == "*" else Field(name.replace("\\", ""))

    def _identifier(self, start: int) -> Node:
        while (letter := self._peek()) and letter not in _TERMINATORS:
            self._at += 1
        name = self._text[start : self._at]
        return Literal(name == "true") if name in ("true", "false") else Identifier(name)

    def _number(self, start: int) -> Node:
        while (letter := self._peek()) and (letter == "." or letter.isdecimal()):
            self._at += 1
        text = self._text[start : self._at]
        if not text.isascii() or _FLOAT.fullmatch(text) is None:
            raise MalformedPath(f"cannot parse number {text}")
        digits = text.lstrip("+-")
        return Literal(int(text) if digits.isdigit() and len(digits) <= _MOST_DIGITS else float(text))

    def _quote(self, quote: str) -> Node:
        start = self._at - 1
        while True:
            letter = self._peek()
            self._at += 1
            if letter in ("", "\n"):
                raise MalformedPath("unterminated quoted string")
            if letter == quote and self._text[self._at - 2] != "\\":
                return Text(_unquoted(self._text[start : self._at], quote))

    def _bracket(self) -> list[Node]:
        start = self._at
        end = self._text.find("]", start)
        line = self._text.find("\n", start)
        if end < 0 or 0 <= line < end:
            raise MalformedPath("unterminated array")
        text = self._text[start:end]
        self._at = end + 1
        if "," in text:
            return [Union(tuple(_action(f"[{one.strip(' ')}]") for one in text.split(",")))]
        if (key := _DICT_KEY.fullmatch(text)) is not None:
            return list(_action(f".{key[1]}"))
        return [_slice(":" if text == "*" else text)]

    def _filter(self) -> Node:
        start = self._at
        quote, ended = "", False
        while True:
            letter = self._peek()
            self._at += 1
            if letter in ("", "\n"):
                raise MalformedPath("unterminated filter")
            if letter in "\"'":
                if not quote:
                    quote = letter
                elif letter == quote and self._text[self._at - 2] != "\\":
                    ended = True
            elif letter == ")" and bool(quote) == ended:
                break
        text = self._text[start : self._at - 1]
        if not self._take("]"):
            raise MalformedPath("unclosed array expect ]")
        found = _COMPARISON.fullmatch(text)
        if found is None:
            return Filter(_action(text), "", ())
        return Filter(_action(found[1]), found[2], _action(found[3]))


def _slice(text: str) -> Slice:
    found = _SLICE.fullmatch(text)
    if found is None:
        raise MalformedPath(f"invalid array index {text}")
    first, last, step = found.groups()
    begin = _index(first) if first else None
    if last is None:
        return Slice(begin, (begin or 0) + 1, None, derived=True)
    return Slice(begin, _index(last[1:]) if last[1:] else None, _index(step[1:]) if step and step[1:] else None)


def _index(text: str) -> int:
    if text == "-" or len(text) > _MOST_DIGITS:
        raise MalformedPath(f"array index {text} is not a number")
    return int(text)


def _alphanumeric(letter: str) -> bool:
    return letter == "_" or letter.isalpha() or letter.isdecimal()


def _unquoted(text: str, quote: str) -> str:
    """A quoted text without its quotes, with Go's escapes (`strconv.UnquoteChar`)."""
    inner = text[1:-1]
    if "\\" not in inner and quote not in inner:
        return inner
    error = MalformedPath(f"unquote string {text} error invalid syntax")
    out = bytearray()
    at = 0
    while at < len(inner):
        letter = inner[at]
        at += 1
        if letter == quote:
            raise error
        if letter != "\\":
            out += letter.encode(errors="replace")
            continue
        escape = inner[at : at + 1]
        at += 1
        if escape in _SIMPLE_ESCAPES:
            out.append(_SIMPLE_ESCAPES[escape])
        elif escape in _HEX_ESCAPES:
            digits = inner[at : at + _HEX_ESCAPES[escape]]
            at += len(digits)
            out += _code(digits, 16, _HEX_ESCAPES[escape], error)
        elif escape and escape in "01234567":
            digits = inner[at - 1 : at + 2]
            at += 2
            out += _code(digits, 8, 3, error)
        elif escape == quote:
            out += escape.encode()
        else:
            raise error
    return out.decode(errors="replace")


def _code(digits: str, base: int, length: int, error: MalformedPath) -> bytes:
    """The character that an escape names: two or three digits are a byte, more of them a code point."""
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
    if len(digits) != length or any(digit not in allowed for digit in digits):
        raise error
    value = int(digits, base)
    if length <= 3:
        if value > 0xFF:
            raise error
        return bytes([value])
    if value > 0x10FFFF or 0xD800 <= value < 0xE000:
        raise error
    return chr(value).encode()
