"""The life cycle of a namespace: its initial objects, and the deletion of its contents before its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vcbatch.api.reasons import NamespaceReason
from vcbatch.local.apiserver import definitions
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
    """Mark the namespace as Terminating; `spec.finalizers` delays its deletion until it is empty."""
    metadata = namespace["metadata"]
    metadata.setdefault("deletionTimestamp", timestamp(now))
    namespace.setdefault("status", {})["phase"] = "Terminating"


def show_remains(namespace: Json, counts: Mapping[str, int], finalizers: Mapping[str, int], now: datetime) -> None:
    """Report in the status of a terminating namespace what is left in it: objects by `PLURAL.GROUP`, and those among
    them that wait for a finalizer, by finalizer. Source: `pkg/controller/namespace/deletion` of Kubernetes."""
    kinds = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(counts.items()))
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    found: list[tuple[str, bool, NamespaceReason, str]] = [
        ("NamespaceDeletionDiscoveryFailure", False, NamespaceReason.RESOURCES_DISCOVERED,
         "All resources successfully discovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", False, NamespaceReason.PARSED_GROUP_VERSIONS,
         "All legacy kube types successfully parsed"),
        ("NamespaceDeletionContentFailure", False, NamespaceReason.CONTENT_DELETED,
         "All content successfully deleted, may be waiting on finalization"),
        ("NamespaceContentRemaining", True, NamespaceReason.RESOURCES_REMAIN,
         f"Some resources are remaining: {kinds}")
        if counts
        else ("NamespaceContentRemaining", False, NamespaceReason.CONTENT_REMOVED, "All content successfully removed"),
        ("NamespaceFinalizersRemaining", True, NamespaceReason.FINALIZERS_REMAIN,
         f"Some content in the namespace has finalizers remaining: {held}")
        if finalizers
        else ("NamespaceFinalizersRemaining", False, NamespaceReason.NO_FINALIZERS,
              "All content-preserving finalizers finished"),
    ]  # fmt: skip
    status = namespace.setdefault("status", {})
    for type_, is_so, reason, message in found:
        condition = {"type": type_, "status": "True" if is_so else "False", "lastTransitionTime": timestamp(now)}
        definitions.set_condition(status, {**condition, "reason": reason, "message": message})


def root_ca(certificate: str) -> Json:
    """The ConfigMap with the server's CA that every namespace has."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ROOT_CA, "annotations": {"kubernetes.io/description": ROOT_CA_DESCRIPTION}},
        "data": {"ca.crt": certificate},
    }


def default_service_account() -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
