"""The API server of `vcbatch up`: its port and its admission."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from vcbatch.api.admission import Settings
from vcbatch.api.names import DEFAULT_SCHEDULER, KUBE_SCHEDULER
from vcbatch.api.yaml_reader import only
from vcbatch.cli.base.output import CliError
from vcbatch.cli.local.admission import admission_services, ensure_webhooks, idle_notices, remove_webhooks
from vcbatch.cli.local.options import LocalOptions
from vcbatch.hosting.health import Health
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.local.apiserver.server import EmbeddedServer, PortInUse
from vcbatch.local.kubelet import newest_version

# Local mode has no other scheduler, so pods with the default scheduler name (`kubectl run`) are scheduled too.
SCHEDULER_NAMES: Final = (DEFAULT_SCHEDULER, KUBE_SCHEDULER)
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors caused by the state directory rather than the port."""
_DEFAULT_PORT: Final = 6443


async def start_server(options: LocalOptions, *, clock: Clock, random: Random, health: Health) -> EmbeddedServer:
    """Start a server on the requested port, else on the last used one, else on any free one.

    Raises:
        CliError: it can't start there.
        PortInUse: another program uses the requested port.
        OSError: the state directory isn't writable.
    """
    asked = options.port
    first = asked if asked is not None else _last_port(options.state.kubeconfig)
    try:
        return await _serve_on(first, options, clock=clock, random=random, health=health)
    except PortInUse:
        if asked is not None:
            raise
        return await _serve_on(0, options, clock=clock, random=random, health=health)


async def _serve_on(
    port: int, options: LocalOptions, *, clock: Clock, random: Random, health: Health
) -> EmbeddedServer:
    server = EmbeddedServer(
        state_dir=options.state.path,
        clock=clock,
        random=random,
        health=health,
        port=port,
        services=admission_services(clock, Settings(queue_gates=options.queue_gates)),
        notices=idle_notices(SCHEDULER_NAMES),
        known_version=newest_version(options.state.kubelet),
    )
    try:
        await server.start()
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise CliError(f"the API server can't start on port {port}: {error.strerror or error}") from error
    return server


async def set_up_webhooks(server: EmbeddedServer, options: LocalOptions) -> None:
    """Create or remove the webhook configurations. Without them jobs and queues are validated only by the user's own
    webhooks."""
    if options.webhooks == "in-process":
        await ensure_webhooks(server.api, job_pods=options.queue_gates)
    else:
        await remove_webhooks(server.api)


def _last_port(kubeconfig: Path) -> int:
    """The last used port, so that shells that know it keep working."""
    try:
        document = only(kubeconfig.read_bytes()).value
        return int(document["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return _DEFAULT_PORT
