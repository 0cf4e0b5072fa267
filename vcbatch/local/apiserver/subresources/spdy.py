"""SPDY/3.1 framing, the part that Kubernetes' clients use: without flow control, settings and server push.

Source: the SPDY protocol drafts 3 and 3.1 (public), and the output of `moby/spdystream`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

VERSION = 3
MAX_FRAME = 4 * 1024 * 1024
MAX_HEADERS = 64 * 1024
"""Bytes of a decompressed header block; a few compressed bytes can expand to gigabytes."""

_MAX_HEADER_COUNT = 100

# The compression dictionary: likely strings of header blocks, each after its length; then text with more of them.
_WORDS = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|allow|"
    "authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|"
    "content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|"
    "if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|"
    "proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|"
    "user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|"
    "keep-alive|origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS.split("|")) + _TEXT.encode()


class SpdyError(Exception):
    """The peer violated the protocol: nothing that follows can be parsed, and the connection is closed."""


class FrameType(IntEnum):
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class ResetReason(IntEnum):
    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    CANCEL = 5


_FIN = 0x01


@dataclass(frozen=True, slots=True, kw_only=True)
class SynStream:
    stream: int
    headers: Mapping[str, str]
    fin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SynReply:
    stream: int
    headers: Mapping[str, str]
    fin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    stream: int
    data: bytes
    fin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    stream: int
    reason: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GoAway:
    last_stream: int


Frame = SynStream | SynReply | Data | Reset | Ping | GoAway


class Decoder:
    """Decodes frames from bytes in chunks of any size. After a `SpdyError` it must not be used again."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now. Settings, window updates and later headers are parsed and skipped."""
        self._buffer += data
        while len(self._buffer) >= 8:
            head, rest = struct.unpack_from(">II", self._buffer)
            flags, length = rest >> 24, rest & 0xFFFFFF
            if length > MAX_FRAME:
                raise SpdyError(f"a frame of {length} bytes; at most {MAX_FRAME} are taken")
            if len(self._buffer) < 8 + length:
                return
            payload = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            if head >> 31:
                frame = self._control(head, flags, payload)
            else:
                frame = Data(stream=head, data=payload, fin=bool(flags & _FIN))
            if frame is not None:
                yield frame

    def _control(self, head: int, flags: int, payload: bytes) -> Frame | None:
        version, kind = head >> 16 & 0x7FFF, head & 0xFFFF
        if version != VERSION:
            raise SpdyError(f"a frame of version {version}; only {VERSION} is spoken")
        fin = bool(flags & _FIN)
        match kind:
            case FrameType.SYN_STREAM:
                stream, _associated, _priority = _unpack(">IIH", payload)
                return SynStream(stream=stream & 0x7FFFFFFF, headers=self._headers(payload[10:]), fin=fin)
            case FrameType.SYN_REPLY:
                (stream,) = _unpack(">I", payload)
                return SynReply(stream=stream & 0x7FFFFFFF, headers=self._headers(payload[4:]), fin=fin)
            case FrameType.HEADERS:
                # Parsed all the same: the compression of later headers depends on it.
                _unpack(">I", payload)
                self._headers(payload[4:])
                return None
            case FrameType.RST_STREAM:
                stream, reason = _unpack(">II", payload)
                return Reset(stream=stream & 0x7FFFFFFF, reason=reason)
            case FrameType.PING:
                return Ping(number=_unpack(">I", payload)[0])
            case FrameType.GOAWAY:
                return GoAway(last_stream=_unpack(">I", payload)[0] & 0x7FFFFFFF)
            case _:
                return None

    def _headers(self, compressed: bytes) -> Mapping[str, str]:
        try:
            block = self._inflate.decompress(compressed, MAX_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"a header block that can't be decompressed: {error}") from error
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"a header block of more than {MAX_HEADERS} bytes")
        return parse_headers(block)


class Encoder:
    """Encodes frames. Header blocks depend on earlier ones: every encoded frame must be sent, and in order."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def encode(self, frame: Frame) -> bytes:
        match frame:
            case Data():
                flags = _FIN if frame.fin else 0
                return struct.pack(">II", frame.stream, flags << 24 | len(frame.data)) + frame.data
            case SynStream():
                head = struct.pack(">IIH", frame.stream, 0, 0)
                return _control(FrameType.SYN_STREAM, head + self._headers(frame.headers), fin=frame.fin)
            case SynReply():
                head = struct.pack(">I", frame.stream)
                return _control(FrameType.SYN_REPLY, head + self._headers(frame.headers), fin=frame.fin)
            case Reset():
                return _control(FrameType.RST_STREAM, struct.pack(">II", frame.stream, frame.reason))
            case Ping():
                return _control(FrameType.PING, struct.pack(">I", frame.number))
            case GoAway():
                return _control(FrameType.GOAWAY, struct.pack(">II", frame.last_stream, 0))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        block = [struct.pack(">I", len(headers))]
        for pair in headers.items():
            for text in pair:
                raw = text.encode()
                block += [struct.pack(">I", len(raw)), raw]
        return self._deflate.compress(b"".join(block)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: FrameType, payload: bytes, *, fin: bool = False) -> bytes:
    flags = _FIN if fin else 0
    return struct.pack(">HHI", 0x8000 | VERSION, kind, flags << 24 | len(payload)) + payload


def _unpack(layout: str, payload: bytes) -> tuple[int, ...]:
    try:
        return struct.unpack_from(layout, payload)
    except struct.error:
        raise SpdyError("a control frame that ends too early") from None


def parse_headers(block: bytes) -> Mapping[str, str]:
    """A decompressed header block: a count, then names (lower case) and values, each after its length."""
    position = 0

    def number() -> int:
        nonlocal position
        if position + 4 > len(block):
            raise SpdyError("a header block that ends too early")
        (value,) = struct.unpack_from(">I", block, position)
        position += 4
        return value

    def text() -> str:
        nonlocal position
        length = number()
        if position + length > len(block):
            raise SpdyError("a header block that ends too early")
        raw = block[position : position + length]
        position += length
        return raw.decode(errors="replace")

    count = number()
    if count > _MAX_HEADER_COUNT:
        raise SpdyError(f"{count} headers; at most {_MAX_HEADER_COUNT} are taken")
    return {text().lower(): text() for _ in range(count)}
