"""`vcbatch crds`: the CustomResourceDefinitions, generated from the models."""

from __future__ import annotations

from pathlib import Path

import click

from vcbatch.cli.output import deliver


@click.command("crds")
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Write one file per kind there, in place of printing them.",
)  # fmt: skip
def command(output: Path | None) -> int:
    """Print the CustomResourceDefinitions as one YAML stream: `vcbatch crds | kubectl apply -f -`."""
    from vcbatch.api.crd import documents

    files = documents()
    deliver(files, output)
    return 0
