"""What `python -m webhooks` does: the shipped configurations, pointed at a service, for `kubectl apply -f -`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from vcbatch.api import yaml_writer
from webhooks.configurations import Target, pointed, read
from webhooks.policies.expressions import CONTROLLERS_ACCOUNT

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("webhooks")
@click.argument("folder", type=_FOLDER)
@click.option(
    "--url", default="", metavar="https://HOST:PORT", help="Where the API server asks.  [default: the Service there]"
)
@click.option("--ca-file", type=_FILE, metavar="FILE", help="Whom it trusts, in PEM.  [default: the service says it]")
@click.option(
    "--cert-manager", "certificate", default="", metavar="NAMESPACE/NAME",
    help="The Certificate of cert-manager whose authority it trusts.",
)  # fmt: skip
@click.option(
    "--controllers-account", "controllers", default=CONTROLLERS_ACCOUNT, show_default=True, metavar="NAMESPACE/NAME",
    help="The service account of `vcbatch controllers`: what it creates for Jobs isn't asked about.",
)  # fmt: skip
@click.option(
    "--include-job-pods", "job_pods", is_flag=True,
    help="Ask about the pods and PodGroups of Jobs, too: for resource groups, and for pods behind a scheduling gate.",
)  # fmt: skip
def main(folder: Path, url: str, ca_file: Path | None, certificate: str, controllers: str, job_pods: bool) -> None:
    """Print the webhook configurations in FOLDER, with the place of the service and whom to trust in them."""
    if url and not url.startswith("https://"):
        raise click.BadParameter(f"{url!r} isn't https://HOST:PORT", param_hint="--url")
    for hint, given in (("--cert-manager", certificate), ("--controllers-account", controllers)):
        if given and re.fullmatch("[a-z0-9.-]+/[a-z0-9.-]+", given) is None:
            raise click.BadParameter(f"{given!r} isn't NAMESPACE/NAME", param_hint=hint)
    if certificate and ca_file is not None:
        raise click.BadParameter("not with --ca-file: cert-manager would replace it", param_hint="--cert-manager")
    configurations = read(folder)
    if not configurations:
        raise click.BadParameter(f"no configuration in {folder}", param_hint="FOLDER")
    ca_bundle = ca_file.read_bytes() if ca_file is not None else b""
    target = Target(url=url, controllers=controllers or CONTROLLERS_ACCOUNT, job_pods=job_pods)
    made = pointed(configurations, ca_bundle=ca_bundle, inject_from=certificate, target=target)
    click.echo(yaml_writer.dump(*made, sort_keys=True), nl=False)
