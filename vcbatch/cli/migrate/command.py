"""`vcbatch migrate`: check a cluster with Volcano, and print the steps of the migration and of the way back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

import click

from vcbatch.api.name_rules import dns_label
from vcbatch.api.names import COMPONENTS_NAMESPACE
from vcbatch.cli.base.access import Access, cluster_access_options
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.terminal import Terminal, Tone, clean, terminal_of, wrap
from vcbatch.cli.inventory.findings import Finding, Level
from vcbatch.cli.inventory.model import Inventory
from vcbatch.cli.inventory.screen import findings_text, summary
from vcbatch.interfaces.api import Api

if TYPE_CHECKING:
    from vcbatch.cli.inventory.read import PagedApi
    from vcbatch.cli.migrate.plan import Step
    from vcbatch.runtime.client.rest import RestApi

_NAMESPACE = click.option(
    "--namespace", "-n", "components", default=COMPONENTS_NAMESPACE, show_default=True, metavar="NAME",
    help="Namespace of vcbatch.",
)  # fmt: skip
_FORMAT = click.option(
    "-o", "--output", "shape", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="Output format.",
)  # fmt: skip


@click.group("migrate")
def command() -> None:
    """Plan a migration from Volcano to vcbatch, or back. Nothing is changed."""


@command.command("check", short_help="Check a cluster before a migration.")
@_NAMESPACE
@_FORMAT
@cluster_access_options
def check(access: Access, components: str, shape: str) -> int:
    """Check a cluster before a migration: report blockers, warnings, and what needs no change.

    Exits 1 if there are blockers.
    """
    from vcbatch.cli.migrate.check import consequences

    found = consequences(read_inventory(access, components), access.now())
    if shape == "json":
        say(json.dumps({"findings": [asdict(one) for one in found]}, indent=2))
    else:
        say(findings_text(found, terminal_of()))
        note(summary(found))
    return 1 if any(one.level is Level.BLOCKER for one in found) else 0


@command.command("plan", short_help="Print the commands of a migration.")
@click.option("--back", is_flag=True, help="Print the rollback from vcbatch to Volcano.")
@click.option(
    "--beside", metavar="NAME", help="Print how to run vcbatch's scheduler beside Volcano, with this schedulerName."
)
@click.option(
    "--with", "tool", type=click.Choice(["vcbatch", "helm"]), default="vcbatch", show_default=True,
    help="Installation method: `vcbatch install`, or Helm.",
)  # fmt: skip
@_NAMESPACE
@_FORMAT
@cluster_access_options
def plan(access: Access, back: bool, beside: str | None, tool: str, components: str, shape: str) -> int:
    """Print the commands of the migration, with the names of the objects in the cluster. Nothing is run.

    Exits 1 if `vcbatch migrate check` reports blockers; the plan is still printed.
    """
    from vcbatch.cli.migrate import plan as plans
    from vcbatch.cli.migrate.check import consequences

    if back and beside is not None:
        raise click.UsageError("--back and --beside are mutually exclusive")
    if beside is not None and dns_label(beside):
        raise click.UsageError(f"--beside: invalid scheduler name {beside!r}")
    inventory = read_inventory(access, components)
    request = plans.PlanRequest(helm=tool == "helm", namespace=components)
    blockers: list[Finding] = []
    if beside is not None:
        if beside in inventory.scheduler_names or any(beside in one.scheduler_names for one in inventory.programs):
            raise CliError(f"scheduler name {beside} is already in use", hint="Choose another name.")
        steps = plans.beside(inventory, request, beside)
    elif back:
        steps = plans.back(inventory, request)
    else:
        blockers = [one for one in consequences(inventory, access.now()) if one.level is Level.BLOCKER]
        steps = plans.forward(inventory, request)
    if shape == "json":
        document = {"blockers": [asdict(one) for one in blockers], "steps": [asdict(one) for one in steps]}
        say(json.dumps(document, indent=2))
    else:
        if blockers:
            say(findings_text(blockers, terminal_of()))
            say()
        say(steps_text(steps, terminal_of()))
    if blockers:
        note(summary(blockers))
    return 1 if blockers else 0


def read_inventory(access: Access, namespace: str) -> Inventory:
    """Read the inventory of the connected cluster. Raises `CliError`."""
    from vcbatch.cli.inventory.read import Reader

    async def work(api: Api) -> Inventory:
        version = cast("RestApi", api).version
        return await Reader(cast("PagedApi", api), version=version, now=access.now, components=namespace).read()

    return access.once(work)


def steps_text(steps: Sequence[Step], terminal: Terminal) -> str:
    """The plan as a shell script with explanations as comments, so that it can be read and run step by step."""
    lines: list[str] = []
    width = min(terminal.width or 120, 120)
    for number, step in enumerate(steps, 1):
        lines.append(terminal.paint(f"# {number}. {step.title}", Tone.STRONG))
        lines += wrap(step.why, width, indent="#    ", hang="#    ")
        lines += map(clean, step.commands)
        if step.verify:
            lines += wrap(f"Done when {step.verify}.", width, indent="#    ", hang="#    ")
        lines.append("")
    return "\n".join(lines).rstrip()
