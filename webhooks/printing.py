"""What `python -m webhooks` does: the shipped configurations, pointed at a service, for `kubectl apply -f -`."""

from __future__ import annotations

from pathlib import Path

import click

from vcbatch.api import yaml_writer
from webhooks.configurations import pointed, read

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
def main(folder: Path, url: str, ca_file: Path | None, certificate: str) -> None:
    """Print the webhook configurations in FOLDER, with the place of the service and whom to trust in them."""
    if url and not url.startswith("https://"):
        raise click.BadParameter(f"{url!r} isn't https://HOST:PORT", param_hint="--url")
    if certificate and len([part for part in certificate.split("/") if part]) != 2:
        raise click.BadParameter(f"{certificate!r} isn't NAMESPACE/NAME", param_hint="--cert-manager")
    if certificate and ca_file is not None:
        raise click.BadParameter("not with --ca-file: cert-manager would replace it", param_hint="--cert-manager")
    configurations = read(folder)
    if not configurations:
        raise click.BadParameter(f"no configuration in {folder}", param_hint="FOLDER")
    ca_bundle = ca_file.read_bytes() if ca_file is not None else b""
    made = pointed(configurations, ca_bundle=ca_bundle, inject_from=certificate, url=url)
    click.echo(yaml_writer.dump(*made, sort_keys=True), nl=False)
