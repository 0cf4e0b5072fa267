"""`vcbatch examples`: the manifests in `examples/`, which wheels include."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.table import table
from vcbatch.cli.base.terminal import terminal_of

_PLACES: Final = (
    Path(__file__).parents[2] / "_data" / "examples",  # in a wheel
    Path(__file__).parents[3] / "examples",  # in a checkout
)
_SENTENCE: Final = re.compile(r"^(.*?\.)(?:\s|$)", re.DOTALL)


def _names(_ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[Any]:
    return [name for name in sorted(_shipped()) if name.startswith(begun)]


@click.command("examples")
@click.argument("name", required=False, metavar="[NAME]", shell_complete=_names)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=None, metavar="FILE",
    help="Write the example to a new file.",
)  # fmt: skip
def command(name: str | None, output: Path | None) -> int:
    """List the example jobs, or print one.

    \b
    vcbatch examples
    vcbatch examples anything | vcbatch apply -f -
    vcbatch examples pytorch-ddp -o job.yaml
    """
    shipped = _shipped()
    if not shipped:
        raise CliError("the examples are missing in this installation of vcbatch", hint="Install vcbatch from a wheel.")
    if name is None:
        if output is not None:
            raise click.UsageError("-o requires the NAME of an example")
        rows = [("NAME", "DESCRIPTION"), *((one, summary(shipped[one])) for one in sorted(shipped))]
        say(table(rows, terminal=terminal_of(), flexible=(1,)))
        return 0
    text = shipped.get(name.removesuffix(".yaml"))
    if text is None:
        raise CliError(f'no example "{name}"', hint="To list the examples: vcbatch examples")
    if output is None:
        say(text, end="")
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CliError(f"can't write {output}: {error.strerror}") from error
    note(f"{output} written")
    return 0


def summary(text: str) -> str:
    """The first sentence of the comment at the beginning of a manifest, without its full stop; empty without one."""
    lines: list[str] = []
    for line in text.splitlines():
        words = line.removeprefix("#").strip()
        if not line.startswith("#") or not words:
            break
        lines.append(words)
    paragraph = " ".join(lines)
    found = _SENTENCE.match(paragraph)
    return (found[1] if found else paragraph).removesuffix(".")


def _shipped() -> dict[str, str]:
    """Name -> manifest."""
    place = next((path for path in _PLACES if path.is_dir()), None)
    files = [] if place is None else place.glob("*.yaml")
    return {path.stem: path.read_text(encoding="utf-8") for path in files}
