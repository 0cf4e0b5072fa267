"""Admission on a test cluster: the shipped configurations, pointed at `vcbatch webhooks` on this machine.

`Components.start_all` starts the service and installs them, so that whatever a scenario creates is filled in and judged
by the service, asked by the real API server. A test that wants neither calls `Components.start` for the parts it needs.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import wait_until
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.resources import HYPERNODES, PODS
from webhooks.configurations import NAMES, Target, pointed, read

CONFIGURATIONS = REPOSITORY / "helm/vcbatch/files/webhooks"
_POD: dict[str, Any] = {
    "metadata": {"name": "asked-about"},
    "spec": {"schedulerName": DEFAULT_SCHEDULER, "containers": [{"name": "c", "image": "i"}]},
}
_HYPER_NODE: dict[str, Any] = {
    "apiVersion": HYPERNODES.api_version,
    "kind": HYPERNODES.kind,
    "metadata": {"name": "asked-about"},
    "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "."}}}]},
}
_LAST: Mapping[str, tuple[str, dict[str, Any]]] = {
    "/pods/mutate": (PODS.path(namespace="default"), _POD),
    "/hypernodes/validate": (HYPERNODES.path(), _HYPER_NODE),
}
"""The last configuration of each kind, in the order in which they are made, and what it is asked about."""


def serving_flags(plane: ControlPlane, *, port: int, name: str, managed: bool) -> list[str]:
    """Where the service listens, and the pair by which this cluster's API server knows it. `managed`: it makes that
    itself."""
    places = ["--listen-address", "127.0.0.1", "--port", str(port)]
    if managed:  # as in a Deployment, with other replicas to go to
        return [*places, "--webhook-url", f"https://127.0.0.1:{port}"]
    pair = plane.authority.serving(name)
    return [
        *places,
        "--graceful-shutdown-time",
        "100ms",
        "--tls-cert-file",
        str(pair.certificate),
        "--tls-private-key-file",
        str(pair.key),
    ]


def configurations(plane: ControlPlane, *, port: int, managed: bool = False) -> list[dict[str, Any]]:
    """The shipped configurations for a service on this port."""
    ca_bundle = b"" if managed else plane.authority.certificate.read_bytes()
    return pointed(read(CONFIGURATIONS), ca_bundle=ca_bundle, target=Target(url=f"https://127.0.0.1:{port}"))


def install(plane: ControlPlane, *, port: int, managed: bool = False) -> None:
    """From now on the API server asks the service on this port; `managed` services say themselves whom to trust."""
    made = configurations(plane, port=port, managed=managed)
    plane.must_kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(made))
    if managed:
        wait_until("the configurations carry an authority", lambda: all(bundles(plane)))


def wait_asked(plane: ControlPlane, metrics: Callable[[], str]) -> None:
    """Return once the API server follows the configurations, by what the service counts. It hears of them a moment
    after they are stored, of those of a kind in their order."""

    def counted() -> dict[str, float]:
        found = dict.fromkeys(_LAST, 0.0)
        for line in metrics().splitlines():
            for path in found:
                if line.startswith("vcbatch_admission_reviews_total") and f'path="{path}"' in line:
                    found[path] += float(line.rpartition(" ")[2])
        return found

    before = counted()

    def asked() -> bool:
        for path, body in _LAST.values():
            plane.request("POST", f"{path}?dryRun=All", body)
        return all(number > before[path] for path, number in counted().items())

    wait_until("admission is asked", asked)


def bundles(plane: ControlPlane) -> list[bytes]:
    """What each webhook of ours trusts; empty where nothing is said."""
    return [
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for resource, names in NAMES.items()
        for name in names
        for webhook in plane.call("GET", resource.path(name=name))["webhooks"]
    ]


def remove(plane: ControlPlane) -> None:
    """The API server asks nobody any more. One that doesn't run needs no telling."""
    done = plane.kubectl("delete", "--ignore-not-found", "-f", str(CONFIGURATIONS))
    assert done.returncode == 0 or "connection refused" in done.stderr, done.stderr
