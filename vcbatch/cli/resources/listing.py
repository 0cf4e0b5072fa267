"""`list` and `get` of every kind: options, selection on the server, formats, and watching with `-w`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from vcbatch.api.jsonpath import MalformedPath, Path, parse_path
from vcbatch.api.resources import Resource
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import name_of
from vcbatch.cli.base.names import names_of
from vcbatch.cli.base.output import note, say
from vcbatch.cli.base.retry_notice import RetryNotice
from vcbatch.cli.base.suggestions import unknown_namespace
from vcbatch.cli.base.terminal import terminal_of
from vcbatch.cli.resources.columns import Column
from vcbatch.cli.resources.formats import Format, FormatType, Printer, Shape
from vcbatch.interfaces.api import ApiError

if TYPE_CHECKING:
    from vcbatch.interfaces.api import Api
    from vcbatch.runtime.client.http import HttpApi

Json = dict[str, Any]
F = TypeVar("F", bound=Callable[..., object])
Keep = Callable[[Json], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind in the command line; `word` is the singular (`job`). `order` is the key by which tables and names are
    sorted, where that isn't the server's order by name."""

    resource: Resource
    word: str
    columns: Sequence[Column]
    order: Callable[[Json], Any] | None = None


class PathType(click.ParamType):
    """A JSONPath, such as `.metadata.name`."""

    name = "JSONPATH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if isinstance(value, Path):
            return value
        try:
            return parse_path(str(value))
        except MalformedPath as error:
            self.fail(str(error), param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a list. `keep` filters by what the server can't select."""

    format: Format
    all_namespaces: bool = False
    label_selector: str = ""
    field_selector: str = ""
    sort_by: Path | None = None
    watch: bool = False
    headers: bool = True
    keep: Keep | None = None


def format_option(function: F) -> F:
    """Add `-o`, as the argument `output`."""
    return click.option(
        "-o",
        "--output",
        type=FormatType(),
        default="table",
        show_default=True,
        metavar="FORMAT",
        help="Output format: table, wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,...",
    )(function)


def list_options(*, namespaced: bool) -> Callable[[F], F]:
    """Add the options of a list, as the argument `asked`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(
            *arguments: Any,
            output: Format,
            label_selector: str,
            field_selector: str,
            sort_by: Path | None,
            watch: bool,
            no_headers: bool,
            all_namespaces: bool = False,
            **options: Any,
        ) -> object:
            if watch and sort_by is not None:
                raise click.UsageError("-w and --sort-by are mutually exclusive")
            asked = Asked(
                format=output,
                all_namespaces=all_namespaces,
                label_selector=label_selector,
                field_selector=field_selector,
                sort_by=sort_by,
                watch=watch,
                headers=not no_headers,
            )
            return function(*arguments, asked=asked, **options)

        wrapped: Any = command
        for option in reversed(_LIST_OPTIONS):
            wrapped = option(wrapped)
        if namespaced:
            wrapped = click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")(wrapped)
        return cast("F", format_option(wrapped))

    return decorate


_LIST_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option(
        "-l", "--selector", "label_selector", default="", metavar="SELECTOR",
        help="Label selector: a=b, a!=b, 'a in (b,c)', a, !a; comma-separated.",
    ),
    click.option(
        "--field-selector", default="", metavar="SELECTOR", help="Field selector, e.g. metadata.name=x."
    ),
    click.option(
        "--sort-by", type=PathType(), metavar="JSONPATH", help="Sort by a field, e.g. .metadata.creationTimestamp."
    ),
    click.option("-w", "--watch", is_flag=True, help="Watch for changes."),
    click.option("--no-headers", is_flag=True, help="Omit table headers."),
)  # fmt: skip


def list_command(kind: Kind, *, text: str = "") -> click.Command:
    """The command `list` of a kind without options of its own."""

    @list_options(namespaced=kind.resource.namespaced)
    @access_options
    def listing(access: Access, asked: Asked) -> int:
        return show_list(access, kind, asked)

    return click.command("list", help=text or f"List {kind.word}s.")(listing)


def get_command(kind: Kind) -> click.Command:
    """The command `get NAME...` of a kind."""

    @click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=names_of(kind.resource))
    @format_option
    @click.option("-w", "--watch", is_flag=True, help="Watch for changes. Requires a single name.")
    @click.option("--no-headers", is_flag=True, help="Omit table headers.")
    @access_options
    def getting(names: tuple[str, ...], access: Access, output: Format, watch: bool, no_headers: bool) -> int:
        if watch:
            if len(names) != 1:
                raise click.UsageError(f"-w requires a single {kind.word}, got {len(names)}")
            namespace = access.namespace if kind.resource.namespaced else None
            # A missing object is an error, as without -w.
            access.once(lambda api: api.get(kind.resource, names[0], namespace=namespace))
            asked = Asked(format=output, field_selector=f"metadata.name={names[0]}", watch=True, headers=not no_headers)
            return show_list(access, kind, asked)
        return show_named(access, kind, names, output, headers=not no_headers)

    return click.command("get", help=f"Show {kind.word}s by name.")(getting)


def show_named(access: Access, kind: Kind, names: Sequence[str], output: Format, *, headers: bool = True) -> int:
    """Print the existing objects of these names; the exit code is 1 where one doesn't exist."""
    namespace = access.namespace if kind.resource.namespaced else None
    found: list[Json] = []

    async def fetch(api: Api, name: str) -> None:
        found.append(await api.get(kind.resource, name, namespace=namespace))

    code = access.each(names, fetch)
    printer = _printer(kind, Asked(format=output, headers=headers))
    now = access.now()
    if found:
        _say(printer.single(found[0], now=now) if len(names) == 1 else printer.listed(found, now=now), output)
    return code


def show_list(access: Access, kind: Kind, asked: Asked) -> int:
    """Print the objects, and with `-w` their changes. Raises `CliError`."""
    everywhere = asked.all_namespaces or not kind.resource.namespaced
    namespace = None if everywhere else access.namespace
    printer = _printer(kind, asked)
    if asked.watch:
        from vcbatch.cli.base.reader import while_read

        server = access.connection().server
        access.streaming(
            lambda api: while_read(_follow(api, kind, namespace, printer, asked, server=server, clock=access.now))
        )
        return 0

    async def fetch(api: Api) -> Sequence[Json]:
        listing = await api.list(
            kind.resource,
            namespace=namespace,
            label_selector=asked.label_selector,
            field_selector=asked.field_selector,
        )
        return listing.items

    found = [obj for obj in access.once(fetch) if asked.keep is None or asked.keep(obj)]
    if not found and _for_reading(asked.format):
        note(_nothing(kind, namespace, asked))
        if namespace is not None and (unknown := unknown_namespace(access.connection(), namespace)):
            note(f"warning: {unknown}")
        return 0
    if asked.sort_by is not None:
        found.sort(key=_sort_key(asked.sort_by))
    elif kind.order is not None and _for_reading(asked.format):
        found.sort(key=kind.order)
    _say(printer.listed(found, now=access.now()), asked.format)
    return 0


async def _follow(
    api: HttpApi,
    kind: Kind,
    namespace: str | None,
    printer: Printer,
    asked: Asked,
    *,
    server: str,
    clock: Callable[[], datetime],
) -> None:
    """Print changes until interrupted. A server that never responded is an error at once; a lost one is retried."""
    from vcbatch.runtime.clock import SystemClock
    from vcbatch.runtime.random import SystemRandom
    from vcbatch.sdk.watching import changes

    first = True
    notice = RetryNotice(server)

    def retried(error: ApiError) -> None:
        if first:
            raise error
        notice(error)

    batches = changes(
        api,
        kind.resource,
        clock=SystemClock(),
        random=SystemRandom(),
        namespace=namespace,
        label_selector=asked.label_selector,
        field_selector=asked.field_selector,
        on_trouble=retried,
    )
    async for batch in batches:
        now = clock()
        kept = [change for change in batch if asked.keep is None or asked.keep(change.object)]
        if first and kind.order is not None and _for_reading(asked.format):
            order = kind.order
            kept.sort(key=lambda change: order(change.object))
        if first and not kept and _for_reading(asked.format):
            note(_nothing(kind, namespace, asked))
        elif first and asked.format.tabular:
            say(printer.listed([change.object for change in kept], now=now))  # column widths for all objects
        else:
            for change in kept:
                _say(printer.another(change.object, now=now, deleted=change.deleted), asked.format)
        first = False


def _for_reading(output: Format) -> bool:
    return output.tabular or output.shape is Shape.NAME


def _printer(kind: Kind, asked: Asked) -> Printer:
    return Printer(
        asked.format,
        kind.resource,
        kind.columns,
        terminal=terminal_of(),
        namespaces=asked.all_namespaces and kind.resource.namespaced,
        headers=asked.headers,
    )


def _say(text: str, output: Format) -> None:
    """Print a text. A template ends without a newline, as in kubectl, except on a terminal."""
    bare = output.shape is Shape.JSONPATH and terminal_of().width is None
    say(text, end="" if bare else "\n")


def _nothing(kind: Kind, namespace: str | None, asked: Asked) -> str:
    chosen = asked.keep is not None or asked.label_selector or asked.field_selector
    where = f" in namespace {namespace} (-A for all namespaces)" if namespace else ""
    return f"No {'matching ' if chosen else ''}{kind.word}s found{where}."


def _sort_key(path: Path) -> Callable[[Json], tuple[int, float, str]]:
    """The key for sorting by a path: missing values first, then numbers, then text (times as RFC 3339 sort as text)."""

    def key(obj: Json) -> tuple[int, float, str]:
        value = next(iter(path.find_or_none(obj)), None)
        if value is None:
            return (0, 0.0, "")
        if isinstance(value, int | float):
            return (1, float(value), name_of(obj))
        return (2, 0.0, str(value))

    return key
