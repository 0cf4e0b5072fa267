"""SPDY frames: what is encoded is decoded, in pieces of any size; what isn't SPDY is refused within bounds."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.local.apiserver.subresources.spdy import (
    DICTIONARY,
    MAX_FRAME,
    MAX_HEADERS,
    Data,
    Decoder,
    Encoder,
    Frame,
    GoAway,
    Ping,
    Reset,
    SpdyError,
    SynReply,
    SynStream,
    parse_headers,
)

NUMBERS = st.integers(1, 0x7FFFFFFF)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz-:", min_size=1, max_size=20)
HEADERS = st.dictionaries(NAMES, st.text(max_size=40), max_size=5)
FRAMES = st.one_of(
    st.builds(SynStream, stream=NUMBERS, headers=HEADERS, fin=st.booleans()),
    st.builds(SynReply, stream=NUMBERS, headers=HEADERS, fin=st.booleans()),
    st.builds(Data, stream=NUMBERS, data=st.binary(max_size=300), fin=st.booleans()),
    st.builds(Reset, stream=NUMBERS, reason=st.integers(0, 20)),
    st.builds(Ping, number=st.integers(0, 0xFFFFFFFF)),
    st.builds(GoAway, last_stream=NUMBERS),
)


def control(kind: int, payload: bytes, *, version: int = 3, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8000 | version, kind, flags << 24 | len(payload)) + payload


def compressed(block: bytes, dictionary: bytes = DICTIONARY) -> bytes:
    deflate = zlib.compressobj(zdict=dictionary)
    return deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH)


def test_the_dictionary_is_the_one_of_the_draft() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@settings(max_examples=60)
@given(frames=st.lists(FRAMES, max_size=6), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_frames_survive_the_wire_in_pieces_of_any_size(frames: list[Frame], cuts: list[int]) -> None:
    encoder, decoder = Encoder(), Decoder()
    wire = b"".join(encoder.encode(frame) for frame in frames)
    found: list[Frame] = []
    index = 0
    while wire:
        size = cuts[index % len(cuts)]
        found += decoder.feed(wire[:size])
        wire, index = wire[size:], index + 1
    assert found == frames


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_noise_is_refused_as_a_broken_protocol_and_in_no_other_way(noise: bytes) -> None:
    for wire in (noise, control(1, noise), control(8, noise)):
        try:
            for _ in Decoder().feed(wire):
                pass
        except SpdyError:
            continue


def test_a_frame_that_is_cut_off_is_waited_for() -> None:
    wire = Encoder().encode(Data(stream=1, data=b"x" * 100, fin=True))
    decoder = Decoder()
    assert list(decoder.feed(wire[:-1])) == []
    assert list(decoder.feed(wire[-1:])) == [Data(stream=1, data=b"x" * 100, fin=True)]


def test_a_frame_that_is_too_large_is_refused_by_its_head_alone() -> None:
    with pytest.raises(SpdyError, match=str(MAX_FRAME)):
        list(Decoder().feed(struct.pack(">II", 1, MAX_FRAME + 1)))


@pytest.mark.parametrize(
    "payload",
    [
        struct.pack(">IIH", 1, 0, 0) + b"not zlib",
        struct.pack(">IIH", 1, 0, 0) + compressed(struct.pack(">I", 0), b"another dictionary"),
        struct.pack(">IIH", 1, 0, 0) + compressed(b"\0" * (MAX_HEADERS + 1)),
        struct.pack(">IIH", 1, 0, 0) + compressed(struct.pack(">I", 101)),
        struct.pack(">IIH", 1, 0, 0) + compressed(struct.pack(">II", 1, 0xFFFFFFFF) + b"x"),
        struct.pack(">IIH", 1, 0, 0) + compressed(struct.pack(">I", 1)),
        struct.pack(">IIH", 1, 0, 0),
        struct.pack(">I", 1),
    ],
    ids=["noise", "dictionary", "bomb", "count", "length", "missing", "none", "short"],
)
def test_a_stream_with_broken_headers_is_refused(payload: bytes) -> None:
    with pytest.raises(SpdyError):
        list(Decoder().feed(control(1, payload)))


def test_another_version_is_refused() -> None:
    with pytest.raises(SpdyError, match="version 2"):
        list(Decoder().feed(control(6, struct.pack(">I", 1), version=2)))


def test_frames_without_meaning_are_left_out_and_later_headers_keep_the_compression_in_step() -> None:
    encoder = Encoder()
    opening = encoder.encode(SynStream(stream=1, headers={"port": "80"}, fin=False))
    later = encoder.encode(SynReply(stream=1, headers={"port": "81"}, fin=False))
    as_headers = control(8, later[8:])
    again = encoder.encode(SynStream(stream=3, headers={"port": "82"}, fin=False))
    ignored = control(4, struct.pack(">I", 0)) + control(9, struct.pack(">II", 1, 5)) + control(77, b"?")
    found = list(Decoder().feed(opening + as_headers + ignored + again))
    assert [(f.stream, dict(f.headers)) for f in found if isinstance(f, SynStream)] == [
        (1, {"port": "80"}),
        (3, {"port": "82"}),
    ]
    assert len(found) == 2


def test_header_names_are_read_in_lower_case() -> None:
    block = struct.pack(">II", 1, 4) + b"Port" + struct.pack(">I", 2) + b"80"
    assert parse_headers(block) == {"port": "80"}
