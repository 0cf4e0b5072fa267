"""Files with snapshots and recorded cycles."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.documents import LARGEST_FILE
from vcbatch.scheduler.simulation.recording import OtherVersionError, Recording
from vcbatch.scheduler.simulation.world import WorldError

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_WHAT_IS = "Snapshots are written by `vcbatch snapshot` and --record-cycles. For manifests, use `vcbatch simulate`."


def read_recording(path: Path) -> Recording:
    """The recording in the file. An incomplete file, whose writer is still running or was ended, is read up to its end.

    Raises:
        CliError: it can't be read, is too large, isn't a snapshot, or has another version of the format.
    """
    try:
        return Recording.read(_lines(path))
    except OtherVersionError as error:
        raise CliError(
            f"{path}: {error}", hint="Replay it with the version of vcbatch that wrote it, or save a new snapshot."
        ) from error
    except WorldError as error:
        raise CliError(f"{path}: not a snapshot: {error}", hint=_WHAT_IS) from error
    except zlib.error as error:
        raise CliError(f"{path}: corrupted compressed data: {error}") from error
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    rest = b""
    for data in _unpacked(path):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                yield _decoded(line, path)


def _unpacked(path: Path) -> Iterator[bytes]:
    """The text, also of a file that a user has decompressed."""
    total = 0
    with path.open("rb") as stream:
        packed = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
        for out in _inflated(stream) if packed else iter(partial(stream.read, _CHUNK), b""):
            total += len(out)
            if total > LARGEST_FILE:
                raise CliError(f"{path}: larger than {LARGEST_FILE} bytes")
            yield out


def _inflated(stream: IO[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    while data := stream.read(_CHUNK):
        while data and not unpacker.eof:
            yield unpacker.decompress(data, _CHUNK)
            data = unpacker.unconsumed_tail


def _decoded(line: bytes, path: Path) -> Mapping[str, Any]:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CliError(f"{path}: not a snapshot: {error}", hint=_WHAT_IS) from error
    if not isinstance(found, Mapping):
        raise CliError(f"{path}: not a snapshot: expected objects, got {type(found).__name__}", hint=_WHAT_IS)
    return cast("Mapping[str, Any]", found)
