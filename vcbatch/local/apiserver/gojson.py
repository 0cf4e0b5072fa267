"""The messages of Go's encoding/json for a body that isn't JSON, since kubectl shows them.

A scanner with the states of Go's: it reports the first invalid byte and its context.
"""

from __future__ import annotations

import re

_SPACE = b" \t\r\n"
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_DIGITS = b"0123456789"
_MAXIMUM_DEPTH = 10_000
_PLAIN = re.compile(rb'[^\x00-\x1f"\\]*')
"""Characters of a string that need no escape."""


class _Error(Exception):
    pass


def _quoted(byte: int) -> str:
    if byte == ord("'"):
        return "'\\''"
    if byte == ord('"'):
        return "'\"'"
    text = chr(byte)
    return f"'{text}'" if text.isprintable() else f"'\\x{byte:02x}'" if byte < 0x80 else f"'\\u{byte:04x}'"


class _Scanner:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise _Error("unexpected end of JSON input")
        return self._data[self._at]

    def _skip(self) -> None:
        while self._at < len(self._data) and self._data[self._at] in _SPACE:
            self._at += 1

    def _fail(self, context: str) -> _Error:
        return _Error(f"invalid character {_quoted(self._byte())} {context}")

    def document(self) -> None:
        self._value()
        self._skip()
        if self._at < len(self._data):
            raise self._fail("after top-level value")

    def _value(self, depth: int = 0) -> None:
        if depth > _MAXIMUM_DEPTH:
            raise _Error("exceeded max depth")
        self._skip()
        byte = self._byte()
        if byte == ord("{"):
            self._object(depth)
        elif byte == ord("["):
            self._array(depth)
        elif byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte == ord("-") or byte in _DIGITS:
            self._number()
        else:
            raise self._fail("looking for beginning of value")

    def _object(self, depth: int) -> None:
        self._at += 1
        self._skip()
        if self._byte() == ord("}"):
            self._at += 1
            return
        while True:
            self._skip()
            if self._byte() != ord('"'):
                raise self._fail("looking for beginning of object key string")
            self._string()
            self._skip()
            if self._byte() != ord(":"):
                raise self._fail("after object key")
            self._at += 1
            self._value(depth + 1)
            self._skip()
            byte = self._byte()
            if byte not in b",}":
                raise self._fail("after object key:value pair")
            self._at += 1
            if byte == ord("}"):
                return

    def _array(self, depth: int) -> None:
        self._at += 1
        self._skip()
        if self._byte() == ord("]"):
            self._at += 1
            return
        while True:
            self._value(depth + 1)
            self._skip()
            byte = self._byte()
            if byte not in b",]":
                raise self._fail("after array element")
            self._at += 1
            if byte == ord("]"):
                return

    def _string(self) -> None:
        self._at += 1
        while True:
            self._at = _PLAIN.match(self._data, self._at).end()  # type: ignore[union-attr]  # it matches anywhere
            byte = self._byte()
            if byte < 0x20:
                raise self._fail("in string literal")
            self._at += 1
            if byte == ord('"'):
                return
            if byte == ord("\\"):
                escape = self._byte()
                if escape not in b'bfnrt\\/"u':
                    raise self._fail("in string escape code")
                self._at += 1
                for _ in range(4 if escape == ord("u") else 0):
                    if self._byte() not in b"0123456789abcdefABCDEF":
                        raise self._fail("in \\u hexadecimal character escape")
                    self._at += 1

    def _literal(self, word: bytes) -> None:
        self._at += 1
        for expected in word[1:]:
            if self._byte() != expected:
                raise self._fail(f"in literal {word.decode()} (expecting {_quoted(expected)})")
            self._at += 1

    def _digits(self) -> None:
        while self._at < len(self._data) and self._data[self._at] in _DIGITS:
            self._at += 1

    def _number(self) -> None:
        if self._byte() == ord("-"):
            self._at += 1
            if self._byte() not in _DIGITS:
                raise self._fail("in numeric literal")
        if self._byte() == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._at < len(self._data) and self._data[self._at] == ord("."):
            self._at += 1
            if self._byte() not in _DIGITS:
                raise self._fail("after decimal point in numeric literal")
            self._digits()
        if self._at < len(self._data) and self._data[self._at] in b"eE":
            self._at += 1
            if self._byte() in b"+-":
                self._at += 1
            if self._byte() not in _DIGITS:
                raise self._fail("in exponent of numeric literal")
            self._digits()


def syntax_error(data: bytes) -> str:
    """Why `data` isn't JSON, with Go's message; "" where Go would accept it."""
    try:
        _Scanner(data).document()
    except _Error as error:
        return str(error)
    except RecursionError:
        return "exceeded max depth"
    return ""


def kind_of(value: object) -> str:
    """Go's word for a JSON value in `cannot unmarshal X into …`."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "array" if isinstance(value, list) else "object"
