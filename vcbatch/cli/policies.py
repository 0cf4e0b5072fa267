"""`vcbatch policies`: admission as policies of Kubernetes, for clusters without our webhooks."""

from __future__ import annotations

import re
from pathlib import Path

import click

from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.cli.output import deliver


@click.command("policies")
@click.option(
    "--scheduler-name", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True, metavar="NAME",
    help="Pods with this schedulerName are ours; may be repeated. The first is for jobs that name none.",
)  # fmt: skip
@click.option(
    "--mutating-version", type=click.Choice(["v1", "v1beta1"]), default="v1", show_default=True,
    help="Of MutatingAdmissionPolicies: v1 from Kubernetes 1.36 on.",
)  # fmt: skip
@click.option(
    "--controllers-account", "controllers", default="volcano-system/vcbatch-controllers", show_default=True,
    metavar="NAMESPACE/NAME",
    help="The service account of `vcbatch controllers`: what it creates for Jobs isn't judged again.",
)  # fmt: skip
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Write the files there, in place of printing them.",
)  # fmt: skip
def command(scheduler_name: tuple[str, ...], mutating_version: str, controllers: str, output: Path | None) -> int:
    """Print the admission policies as one YAML stream: `vcbatch policies | kubectl apply -f -`."""
    from webhooks.policies import documents

    if re.fullmatch("[a-z0-9.-]+/[a-z0-9.-]+", controllers) is None:
        raise click.BadParameter(f"{controllers!r} isn't NAMESPACE/NAME", param_hint="--controllers-account")
    files = documents(scheduler_name, mutating_version=mutating_version, controllers=controllers)
    deliver(files, output)
    return 0
