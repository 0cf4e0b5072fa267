"""`vcbatch crds`: prints the CustomResourceDefinitions, which are generated from the models."""

from __future__ import annotations

from pathlib import Path

import click

from vcbatch.cli.base.output import deliver


@click.command("crds")
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Write one file per kind to this directory instead of standard output.",
)  # fmt: skip
def command(output: Path | None) -> int:
    """Print the CustomResourceDefinitions as YAML: `vcbatch crds | kubectl apply --server-side -f -`."""
    from vcbatch.api.crd import documents

    files = documents()
    deliver(files, output)
    return 0
