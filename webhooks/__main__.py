"""`python -m webhooks`: the shipped configurations, pointed at a service, for `kubectl apply -f -`."""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from webhooks.configurations import pointed, read

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("webhooks")
@click.argument("folder", type=_FOLDER)
@click.option("--ca-file", type=_FILE, required=True, metavar="FILE", help="Whom the API server trusts, in PEM.")
@click.option(
    "--url", default="", metavar="https://HOST:PORT", help="Where it asks.  [default: the Service named there]"
)
def main(folder: Path, ca_file: Path, url: str) -> None:
    """Print the webhook configurations in FOLDER, with the authority and the place of the service in them."""
    if url and not url.startswith("https://"):
        raise click.BadParameter(f"{url!r} isn't https://HOST:PORT", param_hint="--url")
    configurations = read(folder)
    if not configurations:
        raise click.BadParameter(f"no configuration in {folder}", param_hint="FOLDER")
    click.echo(yaml.safe_dump_all(pointed(configurations, ca_bundle=ca_file.read_bytes(), url=url)), nl=False)


if __name__ == "__main__":
    main()
