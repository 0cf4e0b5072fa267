"""The life of a namespace: what it is born with, and that its contents go before it does."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vcbatch.local.apiserver.metadata import timestamp

Json = dict[str, Any]

FINALIZER = "kubernetes"
IMMORTAL = ("default", "kube-system", "kube-public")
ROOT_CA = "kube-root-ca.crt"
ROOT_CA_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def begin_delete(namespace: Json, now: datetime) -> None:
    """Mark the namespace as Terminating; `spec.finalizers` holds it until it is empty."""
    metadata = namespace["metadata"]
    metadata.setdefault("deletionTimestamp", timestamp(now))
    namespace.setdefault("status", {})["phase"] = "Terminating"


def root_ca(certificate: str) -> Json:
    """The config map with the server's CA that every namespace has."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ROOT_CA, "annotations": {"kubernetes.io/description": ROOT_CA_DESCRIPTION}},
        "data": {"ca.crt": certificate},
    }


def default_service_account() -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
