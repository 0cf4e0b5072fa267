"""Objects in files that a user names with `-f`: files, directories, standard input, with the items of Lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from vcbatch.api import resources
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.resources import Resource
from vcbatch.api.yaml_reader import YamlError
from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.documents import read_text
from vcbatch.cli.files.positions import Place, Placed, placed

F = TypeVar("F", bound=Callable[..., object])

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object and its position in a file."""

    file: str
    placed: Placed

    @property
    def value(self) -> Json:
        """The object; empty for a document that isn't a mapping."""
        return cast(Json, self.placed.value) if isinstance(self.placed.value, dict) else {}

    @property
    def api_version(self) -> str:
        return _text(self.value.get("apiVersion"))

    @property
    def kind(self) -> str:
        return _text(self.value.get("kind"))

    @property
    def name(self) -> str:
        """Its name, or its `generateName`."""
        metadata = part(self.value, "metadata")
        return _text(metadata.get("name")) or _text(metadata.get("generateName"))

    @property
    def namespace(self) -> str:
        return _text(part(self.value, "metadata").get("namespace"))

    @property
    def resource(self) -> Resource | None:
        """Its resource; None for a kind that vcbatch doesn't know."""
        return _known().get((self.api_version, self.kind))

    @property
    def title(self) -> str:
        """The kind and name as far as they are known, such as `Job/train`."""
        return "/".join(part for part in (self.kind, self.name) if part) or "document"

    def place(self, path: str = "") -> str:
        """`file:line:column` of a field, or of the object."""
        return f"{self.file}:{self.placed.place_of(path)}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@cache
def _known() -> dict[tuple[str, str], Resource]:
    found = (value for value in vars(resources).values() if isinstance(value, Resource))
    # Usage is read from the metrics API and never written.
    return {(one.api_version, one.kind): one for one in found if one != resources.NODE_USAGES}


def unknown(manifest: Manifest) -> str:
    """The error for an object whose kind vcbatch doesn't know."""
    from vcbatch.cli.files.known_kinds import kind_error

    return kind_error(manifest.api_version, manifest.kind) or (
        f"unsupported kind {manifest.kind} in {manifest.api_version}"
    )


def files_option(function: F) -> F:
    """`-f FILE`, which may be repeated; the command gets `files`, a tuple of paths."""
    return click.option(
        "-f", "--filename", "files", multiple=True, required=True, metavar="FILE",
        type=click.Path(exists=True, allow_dash=True, path_type=Path),
        help="YAML or JSON file, directory (recursive), or - for standard input; may be repeated.",
    )(function)  # fmt: skip


def spread(paths: Sequence[Path]) -> list[Path]:
    """The files, with each directory replaced by the manifests in it, sorted by name. Raises `CliError` for a directory
    without manifests."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(one for one in path.rglob("*") if one.suffix in _SUFFIXES and one.is_file())
        if not inside:
            raise CliError(f"{path}: no manifests ({', '.join(sorted(_SUFFIXES))}) in this directory")
        found += inside
    return found


def manifests(path: Path) -> Iterator[Manifest]:
    """The objects of one file, in order.

    Raises:
        CliError: the file can't be read.
        YamlError: the YAML is invalid from some line on; the objects before it have been yielded.
    """
    for document in placed(read_text(path)):
        yield from _unpacked(document, called(path))


def called(path: Path) -> str:
    """The name of the file in messages."""
    return "standard input" if str(path) == "-" else str(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """A part of a file that can't be sent to any server, and its position."""

    file: str
    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.place}: {self.text}"


def gathered(paths: Sequence[Path]) -> tuple[list[Manifest], list[Unfit]]:
    """The objects of all files, and the errors: invalid YAML, documents without apiVersion, kind or name. Raises
    `CliError` for a file that can't be read, and where there are no objects."""
    found: list[Manifest] = []
    unfit: list[Unfit] = []
    for path in spread(paths):
        try:
            for one in manifests(path):
                if one.api_version and one.kind and one.name:
                    found.append(one)
                else:
                    text = "not an object: apiVersion, kind and metadata.name are required"
                    unfit.append(Unfit(file=one.file, place=one.placed.place, text=text))
        except YamlError as error:
            place = Place(error.line, error.column)
            unfit.append(Unfit(file=called(path), place=place, text=f"not valid YAML: {error}"))
    if not found and not unfit:
        raise CliError(f"{', '.join(map(called, paths))}: no objects")
    return found, unfit


def read_manifests(paths: Sequence[Path]) -> list[Manifest]:
    """The objects of all files. Raises `CliError` with the positions of everything that isn't YAML or not an object."""
    found, unfit = gathered(paths)
    if unfit:
        raise CliError("\n".join(map(str, unfit)))
    return found


def _unpacked(document: Placed, file: str) -> Iterator[Manifest]:
    value = document.value
    kind = cast(Json, value).get("kind") if isinstance(value, dict) else ""
    if isinstance(value, list):
        inside = document.items()
    elif isinstance(kind, str) and kind.endswith("List") and isinstance(cast(Json, value).get("items"), list):
        inside = document.items("items")
    else:
        yield Manifest(file=file, placed=document)
        return
    for item in inside:
        if item.value is not None:
            yield from _unpacked(item, file)
