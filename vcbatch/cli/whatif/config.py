"""`vcbatch config`: validate a scheduler configuration, or print the effective one."""

from __future__ import annotations

from pathlib import Path

import click

from vcbatch.cli.base.output import note, say
from vcbatch.cli.files.plugin_files import extensions_option
from vcbatch.cli.files.policy_file import placed, policy_text, read_policy
from vcbatch.scheduler import PolicyError, default_policy, parse_policy
from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.policy.text import effective

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.group("config")
def command() -> None:
    """Validate a scheduler configuration, or print the effective one."""


@command.command("check", short_help="Validate a scheduler configuration.")
@click.argument("file", type=_FILE)
@extensions_option
def check(file: Path, extensions: Extensions) -> int:
    """Validate the scheduler configuration in FILE, and report errors and warnings with their lines.

    FILE can be - for standard input. Exits 0 if the configuration is valid, 1 if not.
    """
    try:
        policy = parse_policy(policy_text(file), extensions=extensions)
    except PolicyError as error:
        say("\n".join(placed(file, error.errors)))
        count = len(error.errors)
        note(f"{count} error{'' if count == 1 else 's'}; the scheduler would keep the last valid configuration")
        return 1
    if policy.warnings:
        say("\n".join(placed(file, policy.warnings, word="warning")))
    plugins = sum(len(tier.plugins) for tier in policy.tiers)
    parts = ((len(policy.actions), "action"), (plugins, "plugin"), (len(policy.tiers), "tier"))
    counted = ", ".join(f"{count} {thing}{'' if count == 1 else 's'}" for count, thing in parts)
    say(f"{file}: OK ({counted})")
    return 0


@command.command("show", short_help="Print the effective scheduler configuration.")
@click.argument("file", type=_FILE, required=False)
@extensions_option
def show(file: Path | None, extensions: Extensions) -> int:
    """Print the effective scheduler configuration: FILE or the built-in one, with all defaults filled in.

    The output is a valid configuration file.
    """
    say(effective(default_policy() if file is None else read_policy(file, extensions=extensions)), end="")
    return 0
