"""The wire format of protobuf: numbered fields, each a number or a run of bytes."""

from __future__ import annotations

from collections.abc import Iterator


class Malformed(ValueError):
    """Bytes that aren't a valid message."""


def fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: (number, value). Fixed-size numbers are returned as unsigned integers."""
    index, size = 0, len(raw)
    while index < size:
        tag, index = _varint(raw, index)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise Malformed("field number 0")
        match wire_type:
            case 0:
                value, index = _varint(raw, index)
                yield number, value
            case 1 | 5:
                length = 8 if wire_type == 1 else 4
                if index + length > size:
                    raise Malformed("unexpected EOF")
                yield number, int.from_bytes(raw[index : index + length], "little")
                index += length
            case 2:
                length, index = _varint(raw, index)
                if length > size - index:
                    raise Malformed("unexpected EOF")
                yield number, raw[index : index + length]
                index += length
            case _:
                raise Malformed(f"wire type {wire_type} isn't supported")


def text(value: int | bytes) -> str:
    """A string field."""
    if not isinstance(value, bytes):
        raise Malformed("a number stands where a text is expected")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("a text isn't UTF-8") from None


def _varint(raw: bytes, index: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if index >= len(raw):
            raise Malformed("unexpected EOF")
        byte = raw[index]
        index += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, index
    raise Malformed("a number is longer than 64 bits")
