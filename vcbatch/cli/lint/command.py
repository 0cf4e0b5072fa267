"""`vcbatch lint`: its options and output."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vcbatch.api.yaml_reader import YamlError
from vcbatch.cli.base.output import note, say
from vcbatch.cli.files.manifests import Manifest, called, files_option, manifests, spread

if TYPE_CHECKING:
    from vcbatch.cli.lint.rules import Complaint


@click.command("lint")
@files_option
@click.option(
    "--closed-world", is_flag=True,
    help="Report references to queues and PriorityClasses that aren't in the files.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "github"]), default="text", show_default=True,
    help="Output format. text: FILE:LINE:COLUMN: SEVERITY: OBJECT: MESSAGE; github: workflow annotations.",
)  # fmt: skip
def command(files: tuple[Path, ...], closed_world: bool, strict: bool, output: str) -> int:
    """Validate manifests offline: schema, defaults and admission rules, as for creation.

    All files form one input set: a job can refer to a queue in another file. Exits 0 if all objects are valid, 1 if
    not, 2 for incorrect usage.
    """
    from vcbatch.cli.lint.rules import Severity, checked, complaints

    unreadable: list[Complaint] = []
    found: list[Manifest] = []
    for path in spread(files):
        try:
            found.extend(manifests(path))
        except YamlError as error:
            unreadable.append(_unreadable(path, error.line, error.column, "not valid YAML", str(error)))
    if not found and not unreadable:
        unreadable = [_unreadable(path, 1, 1, "no objects", "must contain at least one") for path in spread(files)]
    reported = [*unreadable, *complaints(found, closed=closed_world)]
    reported.sort(key=lambda one: (one.file, one.line, one.column))
    if output == "json":
        say(json.dumps([asdict(one) for one in reported], indent=2))
    elif output == "github":
        for one in reported:
            text = _escaped(f"{one.object}: {one.message}")
            say(f"::{one.severity} file={_escaped(one.file)},line={one.line},col={one.column}::{text}")
    else:
        for one in reported:
            say(str(one))
    ours = [one for one in found if checked(one)]
    errors = sum(one.severity is Severity.ERROR for one in reported)
    if output == "text":
        note(_summary(len(ours), errors, len(reported) - errors, [one for one in found if not checked(one)]))
    return 1 if errors or (strict and reported) else 0


def _unreadable(path: Path, line: int, column: int, what: str, message: str) -> Complaint:
    """The error for a file as a whole."""
    from vcbatch.cli.lint.rules import Complaint, Severity

    return Complaint(
        file=called(path),
        line=line,
        column=column,
        severity=Severity.ERROR,
        object=what,
        field="",
        message=message,
    )


def _summary(count: int, errors: int, warnings: int, others: Sequence[Manifest]) -> str:
    text = f"{_number(count, 'object')} checked: {_number(errors, 'error')}, {_number(warnings, 'warning')}"
    if not others:
        return text
    kinds = ", ".join(
        f"{many} {kind}" for kind, many in sorted(Counter(one.kind or "without a kind" for one in others).items())
    )
    return f"{text}; skipped: {kinds}"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
