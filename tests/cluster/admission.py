"""Admission on a test cluster: the shipped configurations, pointed at `vcbatch webhooks` on this machine.

`Components.start_all` starts the service and installs them, so that whatever a scenario creates is filled in and judged
by the service, asked by the real API server. A test that wants neither calls `Components.start` for the parts it needs.
"""

from __future__ import annotations

from typing import Any

import yaml

from tests.cluster.controlplane import REPOSITORY, ControlPlane
from webhooks.configurations import pointed, read

CONFIGURATIONS = REPOSITORY / "helm/vcbatch/files/webhooks"


def serving_flags(plane: ControlPlane, *, port: int, name: str) -> list[str]:
    """Where the service listens, and the pair by which this cluster's API server knows it."""
    pair = plane.authority.serving(name)
    return [
        "--listen-address", "127.0.0.1", "--port", str(port),
        "--tls-cert-file", str(pair.certificate), "--tls-private-key-file", str(pair.key),
    ]  # fmt: skip


def configurations(plane: ControlPlane, *, port: int) -> list[dict[str, Any]]:
    """The shipped configurations for a service on this port."""
    ca_bundle = plane.authority.certificate.read_bytes()
    return pointed(read(CONFIGURATIONS), ca_bundle=ca_bundle, url=f"https://127.0.0.1:{port}")


def install(plane: ControlPlane, *, port: int) -> None:
    """From now on the API server asks the service on this port."""
    done = plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(configurations(plane, port=port)))
    assert done.returncode == 0, done.stderr


def remove(plane: ControlPlane) -> None:
    """The API server asks nobody any more. One that doesn't run needs no telling."""
    done = plane.kubectl("delete", "--ignore-not-found", "-f", str(CONFIGURATIONS))
    assert done.returncode == 0 or "connection refused" in done.stderr, done.stderr
