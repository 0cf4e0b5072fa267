"""The command `python -m webhooks`: prints the shipped configurations with the address of a service."""

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
    "--url", default="", metavar="https://HOST:PORT", help="URL of the webhooks.  [default: the Service in FOLDER]"
)
@click.option("--ca-file", type=_FILE, metavar="FILE", help="CA certificate (PEM).  [default: written by the webhooks]")
@click.option(
    "--cert-manager", "certificate", default="", metavar="NAMESPACE/NAME",
    help="cert-manager Certificate whose CA is injected.",
)  # fmt: skip
@click.option(
    "--controllers-account", "controllers", default=CONTROLLERS_ACCOUNT, show_default=True, metavar="NAMESPACE/NAME",
    help="ServiceAccount of `vcbatch controllers`; the objects it creates for Jobs aren't validated again.",
)  # fmt: skip
@click.option(
    "--include-job-pods", "job_pods", is_flag=True,
    help="Also validate pods and PodGroups of Jobs; required for resource groups and scheduling gates.",
)  # fmt: skip
def main(folder: Path, url: str, ca_file: Path | None, certificate: str, controllers: str, job_pods: bool) -> None:
    """Print the webhook configurations in FOLDER, with the address and the CA of the webhooks filled in."""
    if url and not url.startswith("https://"):
        raise click.BadParameter(f"must be https://HOST:PORT, got {url!r}", param_hint="--url")
    for hint, given in (("--cert-manager", certificate), ("--controllers-account", controllers)):
        if given and re.fullmatch("[a-z0-9.-]+/[a-z0-9.-]+", given) is None:
            raise click.BadParameter(f"must be NAMESPACE/NAME, got {given!r}", param_hint=hint)
    if certificate and ca_file is not None:
        raise click.BadParameter("--cert-manager and --ca-file are mutually exclusive", param_hint="--cert-manager")
    configurations = read(folder)
    if not configurations:
        raise click.BadParameter(f"no webhook configurations in {folder}", param_hint="FOLDER")
    ca_bundle = ca_file.read_bytes() if ca_file is not None else b""
    target = Target(url=url, controllers=controllers or CONTROLLERS_ACCOUNT, job_pods=job_pods)
    made = pointed(configurations, ca_bundle=ca_bundle, inject_from=certificate, target=target)
    click.echo(yaml_writer.dump(*made, sort_keys=True), nl=False)
