"""`vcbatch policies`: admission as policies of Kubernetes, for clusters without the webhooks of vcbatch."""

from __future__ import annotations

import re
from pathlib import Path

import click

from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.cli.base.output import deliver


@click.command("policies")
@click.option(
    "--scheduler-name", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True, metavar="NAME",
    help="schedulerName of the pods to check; may be repeated. The first is the default for jobs.",
)  # fmt: skip
@click.option(
    "--mutating-version", type=click.Choice(["v1", "v1beta1"]), default="v1", show_default=True,
    help="API version of MutatingAdmissionPolicies; v1 requires Kubernetes 1.36.",
)  # fmt: skip
@click.option(
    "--controllers-account", "controllers", default="volcano-system/vcbatch-controllers", show_default=True,
    metavar="NAMESPACE/NAME",
    help="ServiceAccount of `vcbatch controllers`; the objects it creates for Jobs aren't validated again.",
)  # fmt: skip
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Write the files to this directory instead of standard output.",
)  # fmt: skip
def command(scheduler_name: tuple[str, ...], mutating_version: str, controllers: str, output: Path | None) -> int:
    """Print the admission policies as YAML: `vcbatch policies | kubectl apply -f -`."""
    from webhooks.policies import documents

    if re.fullmatch("[a-z0-9.-]+/[a-z0-9.-]+", controllers) is None:
        raise click.BadParameter(f"must be NAMESPACE/NAME, got {controllers!r}", param_hint="--controllers-account")
    files = documents(scheduler_name, mutating_version=mutating_version, controllers=controllers)
    deliver(files, output)
    return 0
