"""Objects in files: YAML or JSON, one or many documents, Lists of objects taken apart."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from vcbatch.cli.output import CliError

Json = Mapping[str, Any]

LARGEST_FILE = 512 * 1024 * 1024
"""Bytes, unpacked: some 200,000 pods."""
_LARGEST_YAML = 64 * 1024 * 1024
"""YAML is read a hundred times slower than JSON."""
_MOST_VALUES = 20_000_000
"""Of one document with its aliases written out, by which a small file may become a large object."""


def documents(path: Path) -> Iterator[Json]:
    """The mappings in a file (`-` is standard input), in order; an object of kind `List` stands for its items.

    Raises:
        CliError: the file can't be read, is too large, or isn't YAML or JSON.
    """
    text = read_text(path)
    for document in _parsed(text, path):
        yield from _unpacked(document, path)


def read_text(path: Path) -> str:
    """The text of a file, unpacked where it is compressed. Raises `CliError`."""
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(LARGEST_FILE + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(LARGEST_FILE + 1)
        if data.startswith(b"\x1f\x8b"):
            data = _decompressed(data)
    except (OSError, EOFError, zlib.error) as error:
        raise CliError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LARGEST_FILE:
        raise CliError(f"{path}: larger than {LARGEST_FILE} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: not UTF-8 text: {error}") from error


def _decompressed(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    unpacked = unpacker.decompress(data, LARGEST_FILE + 1)
    if len(unpacked) <= LARGEST_FILE and not unpacker.eof:
        raise EOFError("ends in the middle")
    return unpacked


def compressed(text: str) -> bytes:
    """What `read_text` unpacks; the same text gives the same bytes."""
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def _parsed(text: str, path: Path) -> Iterator[object]:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        yield from _json(text, path)
        return
    if len(text) > _LARGEST_YAML:
        raise CliError(f"{path}: larger than {_LARGEST_YAML} bytes as YAML", hint="As JSON it may be larger.")
    try:
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            refuse_bombs(document, text)
            yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark is not None else str(path)
        raise CliError(f"{place}: not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise CliError(f"{path}: not valid YAML: {error}") from error


def _json(text: str, path: Path) -> Iterator[object]:
    """One JSON document after the other: JSON lines too."""
    decoder = json.JSONDecoder()
    at, end = 0, len(text)
    while True:
        while at < end and text[at] in " \t\r\n":
            at += 1
        if at == end:
            return
        try:
            document, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise CliError(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from error
        except RecursionError as error:
            raise CliError(f"{path}: not valid JSON: {error}") from error
        yield document


def refuse_bombs(document: object, text: str) -> None:
    """Raises `YAMLError` for a document of this text that stands for more than fits, or contains itself."""
    if "&" in text and _weight(document) > _MOST_VALUES:
        raise yaml.YAMLError(f"its aliases stand for more than {_MOST_VALUES} values")


def _weight(document: object) -> int:
    """How many values there are once every alias is written out. Raises `YAMLError` where that never ends."""
    weights: dict[int, int] = {}

    def weigh(value: object) -> int:
        if not isinstance(value, (dict, list)):
            return 1
        known = weights.get(id(value))
        if known == 0:
            raise yaml.YAMLError("a value contains itself")
        if known is None:
            weights[id(value)] = 0
            parts = cast("dict[object, object]", value).values() if isinstance(value, dict) else value
            known = weights[id(value)] = 1 + sum(weigh(part) for part in cast("list[object]", parts))
        return known

    return weigh(document)


def _unpacked(document: object, path: Path) -> Iterator[Json]:
    if document is None:
        return
    if isinstance(document, list):
        for item in cast("list[object]", document):
            yield from _unpacked(item, path)
        return
    if not isinstance(document, Mapping):
        raise CliError(f"{path}: must hold objects, got {str(document)[:60]!r}")
    known = cast("Json", document)
    kind, items = known.get("kind"), known.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        of = kind.removesuffix("List")
        for item in cast("list[object]", items):
            if of and isinstance(item, Mapping) and "kind" not in item:
                item = {"apiVersion": known.get("apiVersion"), "kind": of, **cast("Json", item)}
            yield from _unpacked(item, path)
        return
    yield known
