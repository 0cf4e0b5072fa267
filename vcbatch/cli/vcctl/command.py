"""`vcbatch vcctl`: Volcano's commands without programs of their names, which might hide Volcano's."""

from __future__ import annotations

from pathlib import Path

import click

_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command(
    "vcctl",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--install", "into", type=_DIRECTORY, default=None, metavar="DIR", help="Write the programs to DIR.")
@click.option("--uninstall", "out_of", type=_DIRECTORY, default=None, metavar="DIR", help="Remove them from DIR.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PROGRAM] [ARGUMENT]...")
def command(into: Path | None, out_of: Path | None, arguments: tuple[str, ...]) -> int:
    """Run Volcano's command line: vcctl, vsub, vjobs, vcancel, vsuspend, vresume or vqueues.

    \b
    vcbatch vcctl job list
    vcbatch vcctl vsub --name hello --command "echo hello"
    vcbatch vcctl --install ~/.local/bin

    PROGRAM is one of these names; without one it is vcctl. With --install, scripts that call the programs by their
    names use vcbatch. Programs that vcbatch did not write are never replaced.
    """
    if into is not None or out_of is not None:
        from vcbatch.cli.vcctl.programs import install, uninstall

        if arguments or (into is not None and out_of is not None):
            raise click.UsageError("--install DIR and --uninstall DIR are used alone")
        return install(into) if into is not None else uninstall(out_of or Path())
    from vcbatch.cli.vcctl.commands import PROGRAMS
    from vcbatch.cli.vcctl.main import run

    if arguments and arguments[0] in PROGRAMS:
        return run(PROGRAMS[arguments[0]], arguments[1:])
    return run(PROGRAMS["vcctl"], arguments)
