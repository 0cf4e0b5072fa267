"""The known kinds, those of vcbatch and of Kubernetes, with suggestions for misspelt ones.

Nothing is known about other API groups, so their kinds are accepted, unless the group is one or two letters away from a
known one.
"""

from __future__ import annotations

import difflib
import re
from typing import Final

from vcbatch.api.resources import CUSTOM_RESOURCES

_KUBERNETES: Final = {
    "": (
        "v1",
        (
            "Binding ComponentStatus ConfigMap Endpoints Event LimitRange List Namespace Node PersistentVolume "
            "PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount"
        ),
    ),
    "admissionregistration.k8s.io": (
        "v1 v1beta1 v1alpha1",
        (
            "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
            "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
        ),
    ),
    "apiextensions.k8s.io": ("v1 v1beta1", "CustomResourceDefinition"),
    "apiregistration.k8s.io": ("v1 v1beta1", "APIService"),
    "apps": ("v1 v1beta2 v1beta1", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    "authentication.k8s.io": ("v1 v1beta1 v1alpha1", "SelfSubjectReview TokenRequest TokenReview"),
    "authorization.k8s.io": (
        "v1 v1beta1",
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    ),
    "autoscaling": ("v2 v1 v2beta2 v2beta1", "HorizontalPodAutoscaler Scale"),
    "batch": ("v1 v1beta1 v2alpha1", "CronJob Job"),
    "certificates.k8s.io": (
        "v1 v1beta1 v1alpha1",
        "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
    ),
    "coordination.k8s.io": ("v1 v1beta1 v1alpha2 v1alpha1", "Lease LeaseCandidate"),
    "discovery.k8s.io": ("v1 v1beta1", "EndpointSlice"),
    "events.k8s.io": ("v1 v1beta1", "Event"),
    "extensions": ("v1beta1", "DaemonSet Deployment Ingress NetworkPolicy PodSecurityPolicy ReplicaSet"),
    "flowcontrol.apiserver.k8s.io": (
        "v1 v1beta3 v1beta2 v1beta1 v1alpha1",
        "FlowSchema PriorityLevelConfiguration",
    ),
    "internal.apiserver.k8s.io": ("v1alpha1", "StorageVersion"),
    "networking.k8s.io": (
        "v1 v1beta1 v1alpha1",
        "ClusterCIDR IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    ),
    "node.k8s.io": ("v1 v1beta1 v1alpha1", "RuntimeClass"),
    "policy": ("v1 v1beta1", "Eviction PodDisruptionBudget PodSecurityPolicy"),
    "rbac.authorization.k8s.io": ("v1 v1beta1 v1alpha1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    "resource.k8s.io": (
        "v1 v1beta2 v1beta1 v1alpha3 v1alpha2 v1alpha1",
        "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourcePoolStatusRequest ResourceSlice",
    ),
    "scheduling.k8s.io": ("v1 v1beta1 v1alpha2 v1alpha1", "PodGroup PriorityClass Workload"),
    "storage.k8s.io": (
        "v1 v1beta1 v1alpha1",
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
    ),
    "storagemigration.k8s.io": ("v1beta1 v1alpha1", "StorageVersionMigration"),
}
"""The versions that Kubernetes serves or has served, and their kinds, by group."""

_VERSION: Final = re.compile(r"v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?")
_RELATED: Final = (".x-k8s.io", ".sigs.k8s.io")
"""Suffixes of groups that are named like those of Kubernetes but don't belong to it."""
_ALIKE: Final = 0.75
_MOST_EDITS: Final = 2
_SHORTEST: Final = 5
"""Minimum length of a name for which two edits count as a misspelling rather than another word."""


def _ours() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for resource in CUSTOM_RESOURCES:
        found.setdefault(resource.group, {}).setdefault(resource.api_version.rpartition("/")[2], []).append(
            resource.kind
        )
    return found


_OURS: Final = _ours()
_GROUPS: Final = frozenset({*_KUBERNETES, *_OURS}) - {""}


def checked(api_version: str) -> bool:
    """Whether the group is one of vcbatch's, whose kinds and schemas are known."""
    return api_version.rpartition("/")[0] in _OURS


def kind_error(api_version: str, kind: str) -> str:
    """The error for an impossible kind, with a suggestion; empty where the kind may exist."""
    group, slash, version = api_version.rpartition("/")
    if "/" in group or (slash and not group) or not version:
        return f"apiVersion must be VERSION or GROUP/VERSION, got {api_version!r}"
    what = f"unknown kind {kind} in {api_version}"
    if not slash and _VERSION.fullmatch(version) is None:
        return f"{what}: {_other_version(api_version, kind)}"
    if group in _OURS:
        kinds = _OURS[group].get(version, [])
        return "" if kind in kinds else f"{what}: {_meant(group, kind)}"
    if group in _KUBERNETES:
        versions, names = (text.split() for text in _KUBERNETES[group])
        if version not in versions:
            return f"{what}: {_meant(group, kind)}"
        misplaced = kind not in names and (_homes(kind) or _close(kind, names))
        return f"{what}: {_meant(group, kind)}" if misplaced else ""
    if group.endswith(_RELATED):
        return ""
    near = next((known for known in sorted(_GROUPS) if _nearly(group, known)), "")
    if near:
        return f"{what}: did you mean group {near}?"
    if "." not in group:
        return f"{what}: {_meant(group, kind)}"
    if group.endswith(".volcano.sh") and _homes(kind):
        return f"{what}: {_meant(group, kind)}"
    return ""


def _other_version(api_version: str, kind: str) -> str:
    homes = _homes(kind)
    if homes:
        return f"{kind} is in {' or '.join(homes)}"
    near = difflib.get_close_matches(api_version, [*_GROUPS, "v1"], n=1, cutoff=_ALIKE)
    return f"did you mean {near[0]}/VERSION?" if near and near[0] != "v1" else "did you mean v1?"


def _meant(group: str, kind: str) -> str:
    """The groups that have the kind, the kind with a similar name, or the kinds of the group."""
    homes = _homes(kind)
    if homes:
        return f"{kind} is in {' or '.join(homes)}"
    known = _kinds_of(group)
    close = _close(kind, list(known))
    if close:
        return f"did you mean {close} in {known[close]}?"
    everywhere = _close(kind, [name for each in _GROUPS for name in _kinds_of(each)])
    if everywhere:
        return f"did you mean {everywhere} in {' or '.join(_homes(everywhere))}?"
    there = ", ".join(sorted(f"{name} in {place}" for name, place in known.items()))
    return f"available: {there}" if there else "API groups of other projects contain a dot"


def _kinds_of(group: str) -> dict[str, str]:
    """The kinds of a group, each with the version to use."""
    if group in _OURS:
        return {kind: f"{group}/{version}" for version, kinds in _OURS[group].items() for kind in kinds}
    if group not in _KUBERNETES:
        return {}
    versions, names = (text.split() for text in _KUBERNETES[group])
    return dict.fromkeys(names, f"{group}/{versions[0]}".removeprefix("/"))


def _homes(kind: str) -> list[str]:
    """The group versions that have a kind of this exact name, vcbatch's first."""
    return [place for group in (*_OURS, *_KUBERNETES) if (place := _kinds_of(group).get(kind))]


def _close(name: str, known: list[str]) -> str:
    lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=_ALIKE)
    return lower[found[0]] if found else ""


def _nearly(name: str, known: str) -> bool:
    """Whether the edit distance is so small that the name is probably a misspelling of the known one."""
    most = _MOST_EDITS if len(known) > 2 * _SHORTEST else 1
    if len(known) < _SHORTEST - 1 or abs(len(name) - len(known)) > most:
        return False
    row = list(range(len(known) + 1))
    for i, letter in enumerate(name, start=1):
        above, row = row, [i]
        for j, other in enumerate(known, start=1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other)))
    return row[-1] <= most
