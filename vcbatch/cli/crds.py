"""`vcbatch crds`: the CustomResourceDefinitions, generated from the models."""

from __future__ import annotations

from pathlib import Path

import click

from vcbatch.cli.output import CliError, note, say


@click.command("crds")
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Write one file per kind there, in place of printing them.",
)  # fmt: skip
def command(output: Path | None) -> int:
    """Print the CustomResourceDefinitions as one YAML stream: `vcbatch crds | kubectl apply -f -`."""
    from vcbatch.api.crd import documents

    files = documents()
    if output is None:
        say("---\n".join(files.values()), end="")
        return 0
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (output / name).write_text(text)
    except OSError as error:
        raise CliError(f"can't write to {output}: {error.strerror}") from error
    note(f"{len(files)} files written to {output}")
    return 0
