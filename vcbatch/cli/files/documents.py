"""Reads objects from files: YAML or JSON, one or many documents, with the items of Lists."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from vcbatch.api.loose import deeper_than
from vcbatch.api.yaml_reader import MANIFESTS, YamlError
from vcbatch.api.yaml_reader import documents as yaml_documents
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.files.positions import Placed, placed

Json = Mapping[str, Any]

LARGEST_FILE = 512 * 1024 * 1024
"""Bytes after decompression: some 200,000 pods."""
_NEWLINE = "\n"


def documents(path: Path, *, letters: bool = False, lenient: bool = False) -> Iterator[Json]:
    """The mappings in a file (`-` is standard input), in order; an object of kind `List` is replaced by its items.

    With `letters` unquoted `y` and `n` in YAML are booleans, as for kubectl. Without it they are strings: kubectl
    quotes a single letter when it prints objects, so an unquoted one was written by a user who means the letter. For a
    duplicate field a `lenient` reader warns and takes the last value, as Volcano does.

    Raises:
        CliError: the file can't be read, is too large, or isn't YAML or JSON; a field is written twice.
    """
    text = read_text(path)
    for document in _parsed(text, path, letters=letters, lenient=lenient):
        yield from _unpacked(document, path)


def read_text(path: Path) -> str:
    """The text of a file, decompressed if it is compressed. Raises `CliError`."""
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
        raise EOFError("unexpected end of file")
    return unpacked


def compressed(text: str) -> bytes:
    """The text compressed for `read_text`; the same text gives the same bytes."""
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def _parsed(text: str, path: Path, *, letters: bool, lenient: bool) -> Iterator[object]:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        yield from _json(text, path, lenient=lenient)
        return
    if len(text) > MANIFESTS.size:
        raise CliError(
            f"{path}: larger than {MANIFESTS.size} bytes as YAML",
            hint="The limit for JSON is higher: convert the file to JSON.",
        )
    try:
        for document in yaml_documents(text, letters=letters):
            if document.node is not None and document.repeated:
                one = Placed(value=document.value, node=document.node, repeated=document.repeated)
                _repeated([f"{path}:{repeat.place}: {repeat}" for repeat in one.repeats()], lenient=lenient)
            yield document.value
    except YamlError as error:
        raise CliError(f"{path}:{error.line}:{error.column}: not valid YAML: {error}") from error


def _repeated(errors: list[str], *, lenient: bool) -> None:
    """Raise `CliError` for duplicate fields; warn where the reader is `lenient`."""
    if not lenient:
        raise CliError("\n".join(errors), hint="Remove the duplicates.")
    for error in errors:
        note(f"warning: {error}; the last value is used")


def _json(text: str, path: Path, *, lenient: bool) -> Iterator[object]:
    """Each JSON document of the text, JSON lines included."""
    repeated: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated.extend(key for key, many in Counter(key for key, _ in pairs).items() if many > 1)
        return found

    decoder = json.JSONDecoder(object_pairs_hook=mapping)
    at, end = 0, len(text)
    while True:
        while at < end and text[at] in " \t\r\n":
            at += 1
        if at == end:
            return
        start = at
        try:
            document, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise CliError(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from error
        except RecursionError:
            raise _too_deep(path, text, start) from None
        except ValueError as error:  # an integer with more digits than Python parses
            raise CliError(f"{path}:{_place(text, start)}: not valid JSON: {error}") from None
        if deeper_than(document, MANIFESTS.depth):
            raise _too_deep(path, text, start)
        if repeated:
            _repeated(list(_places(text, start, at, path, repeated)), lenient=lenient)
            repeated.clear()
        yield document


def _places(text: str, start: int, end: int, path: Path, keys: list[str]) -> Iterator[str]:
    """The positions of duplicate fields in a JSON document; only their keys where the document is too large for
    that."""
    line, column = map(int, _place(text, start).split(":"))
    try:
        (document,) = placed(text[start:end])
        found = list(document.repeats())
    except (YamlError, ValueError):
        found = []
    for one in found:
        yield f"{path}:{one.moved(line - 1, column - 1).place}: {one.moved(line - 1, column - 1)}"
    if not found:
        yield from (f"{path}:{line}:{column}: duplicate key {key!r}" for key in keys)


def _too_deep(path: Path, text: str, start: int) -> CliError:
    return CliError(f"{path}:{_place(text, start)}: nested deeper than {MANIFESTS.depth} levels")


def _place(text: str, position: int) -> str:
    """`LINE:COLUMN`."""
    return f"{text.count(_NEWLINE, 0, position) + 1}:{position - text.rfind(_NEWLINE, 0, position)}"


def _unpacked(document: object, path: Path) -> Iterator[Json]:
    if document is None:
        return
    if isinstance(document, list):
        for item in cast("list[object]", document):
            yield from _unpacked(item, path)
        return
    if not isinstance(document, Mapping):
        raise CliError(f"{path}: must contain objects, got {str(document)[:60]!r}")
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
