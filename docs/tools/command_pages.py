"""The pages of the commands of `vcbatch`, from the commands themselves: one for each section of `vcbatch --help`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from docs.tools.page import code, page, paragraphs, table
from vcbatch.cli.commands import SECTIONS, Entry
from vcbatch.cli.main import cli

_CONNECTION = ("--kubeconfig", "--context", "--namespace", "--request-timeout")
_HELP = "--help"


def file_name(section: str) -> str:
    """The file of a section's page."""
    return f"cli-{re.sub('[^a-z]+', '-', section.lower())}.md"


def command_pages() -> dict[str, str]:
    """File name -> text, of the overview and the page of each section."""
    root = click.Context(cli, info_name="vcbatch")
    pages = {file_name(section): _section(root, section, entries) for section, entries in SECTIONS.items()}
    return {"cli.md": _overview(root), **pages}


def _overview(root: click.Context) -> str:
    parts = [
        paragraphs(cli.help),
        (
            "[Command line](../cli.md) describes how to use the commands. Exit code 0 is success, 1 a failure, "
            "2 incorrect usage, and 130 an interruption by Ctrl-C."
        ),
    ]
    for section, entries in SECTIONS.items():
        rows = [
            [f"[`vcbatch {name}`]({file_name(section)}#vcbatch-{name})", entry.summary]
            for name, entry in entries.items()
        ]
        parts += [f"## {section}", table(("Command", "Description"), rows)]
    parts += ["## Connection options", "Commands that read or write a cluster have these options:"]
    job = cli.get_command(root, "job")
    assert isinstance(job, click.Group)
    group = click.Context(job, info_name="job", parent=root)
    listing = job.get_command(group, "list")
    assert listing is not None
    context = click.Context(listing, info_name="list", parent=group)
    rows = [_row(option, context) for option in listing.get_params(context) if _is(option, _CONNECTION)]
    parts.append(table(("Option", "Description"), rows))
    return page("Commands", *(f"{part}\n" for part in parts))


def _section(root: click.Context, section: str, entries: dict[str, Entry] | object) -> str:
    assert isinstance(entries, dict)
    parts: list[str] = []
    for name, entry in entries.items():
        command = cli.get_command(root, name)
        assert command is not None
        parts += _command(click.Context(command, info_name=name, parent=root), entry.extra)
    return page(section, *(f"{part}\n" for part in parts))


def _command(context: click.Context, extra: str) -> Iterator[str]:
    command = context.command
    yield f"{'#' * (1 + context.command_path.count(' '))} {context.command_path}"
    yield f"```\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield from _help(command.help or "")
    if extra:
        yield f"It needs the extra `{extra}`: `pip install '.[{extra}]'` in a checkout."
    options = [one for one in command.get_params(context) if isinstance(one, click.Option) and not one.hidden]
    connects = all(any(name in one.opts for one in options) for name in _CONNECTION)
    own = [one for one in options if not _is(one, (_HELP, *(_CONNECTION if connects else ())))]
    if own:
        yield table(("Option", "Description"), (_row(option, context) for option in own))
    if connects:
        yield "It also has the [connection options](cli.md#connection-options)."
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _command(click.Context(below, info_name=name, parent=context), "")


def _is(option: click.Parameter, names: tuple[str, ...]) -> bool:
    return any(name in option.opts for name in names)


def _row(option: click.Parameter, context: click.Context) -> list[str]:
    record = option.get_help_record(context)
    assert record is not None
    return [code(record[0]), record[1]]


def _help(text: str) -> Iterator[str]:
    """Paragraphs, and as they are those that click doesn't wrap."""
    for part in inspect.cleandoc(text).split("\n\n"):
        kept = part.removeprefix("\b\n")
        yield f"```\n{inspect.cleandoc(kept)}\n```" if kept != part else paragraphs(part)
