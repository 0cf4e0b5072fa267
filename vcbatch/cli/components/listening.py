"""Starts health and metrics servers, with errors for users."""

from __future__ import annotations

from vcbatch.cli.base.output import CliError
from vcbatch.runtime.serving import Address, HealthServer


def listen(server: HealthServer, *, health: Address | None, metrics: Address | None) -> None:
    """Start the server on these addresses. Raises `CliError` where it can't listen on one."""
    try:
        server.start(health=health, metrics=metrics)
    except OSError as error:
        wanted = " or ".join(sorted({str(address) for address in (health, metrics) if address is not None}))
        raise CliError(f"can't listen on {wanted}: {error.strerror or error}") from error
