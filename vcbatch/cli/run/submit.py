"""`vcbatch submit`: submit a job and exit, as sbatch does: of files, or of a program as `vcbatch run --detach` does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vcbatch.cli.apply.order import in_order
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.titles import title
from vcbatch.cli.files.manifests import Manifest, read_manifests, unknown
from vcbatch.cli.lint.rules import Severity, complaints
from vcbatch.cli.resources.formats import Shape
from vcbatch.cli.run.command import command as run
from vcbatch.interfaces.api import Api, ApiError


def _options() -> list[click.Parameter]:
    """The parameters of `run`, with `-f`; a program is required only without it."""
    files = click.Option(
        ["-f", "--filename", "files"],
        multiple=True,
        metavar="FILE",
        type=click.Path(exists=True, allow_dash=True, path_type=Path),
        help="Create the objects in this file instead of running a program; may be repeated.",
    )
    program = click.Argument(["program"], nargs=-1, type=click.UNPROCESSED, metavar="[--] [PROGRAM] [ARGUMENT]...")
    others = [one for one in run.params if one.name not in ("program", "detach")]
    return [program, files, *others]


def _submit(files: tuple[Path, ...], program: tuple[str, ...], **options: Any) -> int:
    """Submit a job and exit without waiting for it: a program, with the options of `vcbatch run`, or files.

    \b
    vcbatch submit --nodes 4 --gpus 8 --image registry/train:1 -- train.py
    vcbatch submit -f job.yaml

    Files are validated first, as by `vcbatch lint`. Existing objects are an error; to change them, use `vcbatch apply`.
    """
    if files and program:
        raise click.UsageError("-f and PROGRAM are mutually exclusive")
    if not files and not program:
        raise click.UsageError("a PROGRAM or -f FILE is required")
    if files:
        ctx = click.get_current_context()
        for param in ctx.command.params:
            given = ctx.get_parameter_source(str(param.name)) is click.core.ParameterSource.COMMANDLINE
            if given and param.name not in (*_WITH_FILES, "files"):
                raise click.UsageError(f"{param.opts[0]} is an option for a PROGRAM; with -f it belongs in the file")
        access = {name: options[name] for name in _ACCESS}
        return _create(files=files, dry_run=options["dry_run"], output=options["output"], **access)
    assert run.callback is not None  # noqa: S101 - it is a command with a function
    return run.callback(program=program, detach=not options["dry_run"], **options)


_ACCESS = ("kubeconfig", "context", "namespace", "request_timeout")
_WITH_FILES = (*_ACCESS, "dry_run", "output")


@access_options
def _create(access: Access, files: Sequence[Path], dry_run: bool, output: str | None) -> int:
    """Create the objects of the files. Raises `CliError` before the first request where one is invalid."""
    manifests = in_order(read_manifests(files))
    _validate(manifests)
    if dry_run:
        for one in manifests:
            _print(one.value, output or "yaml")
        return 0
    namespace = access.namespace

    async def create(api: Api) -> None:
        for done, one in enumerate(manifests):
            resource = one.resource
            if resource is None:
                raise CliError(f"{one.place()}: {unknown(one)}")
            where = (one.namespace or namespace) if resource.namespaced else None
            try:
                created = await api.create(resource, one.value, namespace=where)
            except ApiError as error:
                hint = f"{done} of {len(manifests)} objects were created." if done else ""
                if error.already_exists:
                    hint = (
                        "To change it, use `vcbatch apply -f FILE`; to submit another one, use metadata.generateName."
                    )
                raise CliError(f"{one.place()}: {one.title}: {error.sentence}", hint=hint) from error
            if output is not None and output != Shape.NAME:
                _print(created, output)
            else:
                name = title(resource, created["metadata"]["name"])
                say(name if output is not None else f"{name} created")

    access.once(create)
    return 0


def _validate(manifests: Sequence[Manifest]) -> None:
    """Raise `CliError` after reporting all errors of the objects with their positions."""
    errors = [str(one) for one in complaints(manifests) if one.severity is Severity.ERROR]
    for one in errors:
        note(one)
    if errors:
        raise CliError(f"{len(errors)} error{'' if len(errors) == 1 else 's'} in the files; nothing was created")


def _print(value: dict[str, Any], output: str) -> None:
    if output == Shape.JSON:
        say(json.dumps(value, indent=2))
    else:
        from vcbatch.api import yaml_writer

        say(f"---\n{yaml_writer.dump(value, width=120)}", end="")


command = click.Command(
    "submit",
    params=_options(),
    callback=_submit,
    help=_submit.__doc__,
    context_settings=dict(run.context_settings),
)
