"""The values of `-o`, and the output of objects in each format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import click

from vcbatch.api.jsonpath import MalformedPath, Path, PathError, Template, parse_path, parse_template, shown
from vcbatch.api.resources import Resource
from vcbatch.cli.base.fields import NONE, name_of
from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.table import Cell, Layout, Row
from vcbatch.cli.base.terminal import Terminal, Tone
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.columns import AGE, Column, Fit, fit_of, shown_columns

Json = dict[str, Any]


class Shape(StrEnum):
    """The formats by name; the last two take an argument after `=`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    JSONPATH = "jsonpath"
    CUSTOM_COLUMNS = "custom-columns"


_WITH_ARGUMENT: Final = (Shape.JSONPATH, Shape.CUSTOM_COLUMNS)
_EXAMPLES: Final = {Shape.JSONPATH: "{.items[*].metadata.name}", Shape.CUSTOM_COLUMNS: "NAME:.metadata.name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A requested format."""

    shape: Shape = Shape.TABLE
    template: Template | None = None
    columns: tuple[tuple[str, Path], ...] = ()

    @property
    def tabular(self) -> bool:
        """Whether it has a header and lines."""
        return self.shape in (Shape.TABLE, Shape.WIDE, Shape.CUSTOM_COLUMNS)


class FormatType(click.ParamType):
    """The type of `-o`."""

    name = "FORMAT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Format:
        if isinstance(value, Format):
            return value
        try:
            return parse_format(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        names = [f"{shape}=" if shape in _WITH_ARGUMENT else str(shape) for shape in Shape]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def parse_format(given: str) -> Format:
    """Parse `table`, `jsonpath={.kind}` and so on. Raises `ValueError` with a message for users."""
    name, equals, argument = given.partition("=")
    shape = next((shape for shape in Shape if shape == name), None)
    if shape is None:
        known = ", ".join(f"{one}=..." if one in _WITH_ARGUMENT else one for one in Shape)
        raise ValueError(f"unknown output format {name!r}: must be one of {known}")
    if shape not in _WITH_ARGUMENT:
        if equals:
            raise ValueError(f"{shape} takes no argument, got {argument!r}")
        return Format(shape=shape)
    if not argument:
        raise ValueError(f"{shape} requires an argument, e.g. {shape}='{_EXAMPLES[shape]}'")
    if shape is Shape.JSONPATH:
        try:
            return Format(shape=shape, template=parse_template(argument))
        except MalformedPath as error:
            raise ValueError(f"jsonpath: {argument[:64]!r}: {error}") from error
    return Format(shape=shape, columns=_custom_columns(argument))


def _custom_columns(argument: str) -> tuple[tuple[str, Path], ...]:
    found: list[tuple[str, Path]] = []
    for one in _split(argument):
        header, colon, path = one.partition(":")
        if not header or not colon or not path:
            raise ValueError(f"custom-columns: must be HEADER:PATH (e.g. NAME:.metadata.name), got {one!r}")
        try:
            found.append((header, parse_path(path)))
        except MalformedPath as error:
            raise ValueError(f"custom-columns: {header}: {error}") from error
    return tuple(found)


def _split(argument: str) -> list[str]:
    """Split at the commas outside of brackets and quotes."""
    parts, depth, quote, start = list[str](), 0, "", 0
    for at, letter in enumerate(argument):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(argument[start:at])
            start = at + 1
    return [*parts, argument[start:]]


_DELETED: Final = Cell("deleted", Tone.BAD)


# -- output ---------------------------------------------------------------------------------------------------------


class Printer:
    """Prints objects of one kind in one format: a list at once, or single objects from a watch."""

    def __init__(
        self,
        asked: Format,
        resource: Resource,
        columns: Sequence[Column],
        *,
        terminal: Terminal,
        namespaces: bool = False,
        headers: bool = True,
    ) -> None:
        """`namespaces`: tables have a namespace column."""
        self._format = asked
        self._resource = resource
        self._columns = shown_columns(columns, wide=asked.shape is Shape.WIDE, namespaces=namespaces)
        self._terminal = terminal
        self._headers = headers
        self._layout: Layout | None = None

    def listed(self, objects: Sequence[Json], *, now: datetime) -> str:
        """A list as one text, without the last newline; empty where there is nothing to print."""
        if self._format.tabular:
            return "\n".join(self._lines(objects, now=now, header=self._headers and bool(objects)))
        if self._format.shape is Shape.NAME:
            return "\n".join(self._name(obj) for obj in objects)
        items = [self._whole(obj) for obj in objects]
        return self._encoded({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})

    def single(self, obj: Json, *, now: datetime) -> str:
        """One object by itself, not as a list of one."""
        if self._format.tabular or self._format.shape is Shape.NAME:
            return self.listed([obj], now=now)
        return self._encoded(self._whole(obj))

    def another(self, obj: Json, *, now: datetime, deleted: bool = False) -> str:
        """The next object of a watch; a table shows `deleted` in place of its age."""
        if not self._format.tabular:
            text = self.single(obj, now=now)
            return f"---\n{text}" if self._format.shape is Shape.YAML else text
        return "\n".join(self._lines([obj], now=now, header=self._headers and self._layout is None, deleted=deleted))

    def _lines(self, objects: Sequence[Json], *, now: datetime, header: bool, deleted: bool = False) -> list[str]:
        rows = [self._row(obj, now, deleted=deleted) for obj in objects]
        if self._layout is None:
            fit: Fit = fit_of(() if self._format.shape is Shape.CUSTOM_COLUMNS else self._columns)
            shown = [self._header(), *rows] if self._headers else rows or [self._header()]
            self._layout = Layout(shown, terminal=self._terminal, **fit)
        return [self._layout.line(row) for row in ([self._header(), *rows] if header else rows)]

    def _header(self) -> Row:
        if self._format.shape is Shape.CUSTOM_COLUMNS:
            return [name for name, _ in self._format.columns]
        return [column.name for column in self._columns]

    def _row(self, obj: Json, now: datetime, *, deleted: bool) -> Row:
        if self._format.shape is Shape.CUSTOM_COLUMNS:
            return [",".join(map(_custom, _find(path, obj))) or NONE for _, path in self._format.columns]
        return [_DELETED if deleted and column is AGE else column.cell(obj, now) for column in self._columns]

    def _name(self, obj: Json) -> str:
        return title(self._resource, name_of(obj))

    def _whole(self, obj: Json) -> Json:
        """The complete object, with apiVersion and kind and without `managedFields`."""
        metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
        kind = {"apiVersion": self._resource.api_version, "kind": self._resource.kind}
        return {**kind, **obj, "metadata": metadata}

    def _encoded(self, document: Json) -> str:
        match self._format.shape:
            case Shape.JSONPATH if self._format.template is not None:
                try:
                    return self._format.template.render(document)
                except PathError as error:
                    raise CliError(f"error executing jsonpath: {error}") from error
            case Shape.YAML:
                return _yaml(document)
            case _:
                return json.dumps(document, indent=4, ensure_ascii=False)


def _yaml(document: Json) -> str:
    """YAML as kubectl prints it: multi-line text as a block."""
    from vcbatch.api import yaml_writer

    return yaml_writer.dump(document, width=1000, block_if="\n").rstrip("\n")


def _find(path: Path, obj: Json) -> list[Any]:
    try:
        return path.find(obj)
    except PathError as error:
        raise CliError(f"error executing custom-columns {path.text}: {error}") from error


def _custom(value: object) -> str:
    return NONE if value is None else shown(value)
