"""The RBAC permissions that each program needs at its API server, and whether rules grant them.

The lists are those of `helm/vcbatch/files/rbac`; a test compares the two. Permissions that only a feature needs carry
the feature's name, since the role of a cluster may lack them where the feature is off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from vcbatch.api.loose import Json, listed
from vcbatch.api.names import CONTROLLERS_LEASE, DEVICE_CONFIG_MAP, SCHEDULER_LEASE

WEBHOOKS_LEASE = "vcbatch-webhooks"
CERTIFICATES_SECRET = "volcano-admission-secret"  # noqa: S105 - its name
POLICY_CONFIGMAP = "volcano-scheduler-configmap"


class Feature(StrEnum):
    """An optional feature, with permissions of its own."""

    ELECTION = "leader election"
    SHARDING = "--sharding-conf"
    SHARDED = "scheduling by NodeShards"
    DISCOVERY = "HyperNodes made from a configuration"
    OWNERS = "the admission plugin OwnerReferencesPermissionEnforcement"
    """Not detectable: no request needs these permissions."""
    POLICY = "the policy in a ConfigMap"
    """Not checked here: the check of the scheduler configuration fails where it can't be read."""
    EVICTION = "actions that evict"
    QUEUE_GATES = "gates opened by queues"
    CARDS = "cards known from a ConfigMap"
    NODE_LOCKS = "locks of nodes by deviceshare"
    NODE_METRICS = "the load of nodes by metrics.k8s.io"
    CUSTOM_METRICS = "the load of nodes by custom.metrics.k8s.io"
    CERTIFICATES = "certificates made by the service"
    CONFIGURATIONS = "webhook configurations that the service writes to"
    RULES = "--manage-configurations"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource (with its subresource, `pods/binding`); `name` limits it to one object."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        """`patch pods/status`, `get leases.coordination.k8s.io vcbatch-scheduler`."""
        resource = self.resource if not self.group or "/" in self.resource else f"{self.resource}.{self.group}"
        return " ".join(filter(None, (self.verb, resource, self.name)))


@dataclass(frozen=True, slots=True)
class Rights:
    """A rule: all these verbs on all these resources of a group, limited to objects of these names where there are
    any."""

    group: str
    resources: Sequence[str]
    verbs: Sequence[str]
    names: Sequence[str] = ()
    feature: Feature | None = None


_READ = ("list", "watch")
_FOLLOW = ("get", "list", "watch")
_BATCH, _FLOW, _BUS = "batch.volcano.sh", "flow.volcano.sh", "bus.volcano.sh"
_SCHEDULING, _TOPOLOGY, _SHARD = "scheduling.volcano.sh", "topology.volcano.sh", "shard.volcano.sh"
_LEASES, _ADMISSION, _DEVICES = "coordination.k8s.io", "admissionregistration.k8s.io", "resource.k8s.io"
_CHANGE = ("create", "patch", "delete")


def _lease(name: str, feature: Feature) -> tuple[Rights, ...]:
    return (
        Rights(_LEASES, ("leases",), ("create",), feature=feature),
        Rights(_LEASES, ("leases",), ("get", "update"), names=(name,), feature=feature),
    )


CONTROLLERS: Sequence[Rights] = (
    Rights(_BATCH, ("jobs",), (*_FOLLOW, *_CHANGE)),
    Rights(_BATCH, ("cronjobs",), _FOLLOW),
    Rights(_BATCH, ("jobs/status", "cronjobs/status"), ("patch",)),
    Rights(_FLOW, ("jobtemplates",), _FOLLOW),
    Rights(_FLOW, ("jobflows",), (*_FOLLOW, "delete")),
    Rights(_FLOW, ("jobflows/status", "jobtemplates/status"), ("patch",)),
    Rights(_BUS, ("commands",), (*_FOLLOW, "create", "delete")),
    Rights(_SCHEDULING, ("queues",), (*_FOLLOW, "create", "patch")),
    Rights(_SCHEDULING, ("queues/status",), ("patch",)),
    Rights(_SCHEDULING, ("podgroups",), (*_FOLLOW, *_CHANGE)),
    Rights("scheduling.k8s.io", ("priorityclasses",), _READ),
    Rights("", ("resourcequotas", "nodes"), _READ),
    Rights(_TOPOLOGY, ("hypernodes",), _FOLLOW),
    Rights(_TOPOLOGY, ("hypernodes",), _CHANGE, feature=Feature.DISCOVERY),
    Rights(_TOPOLOGY, ("hypernodes/status",), ("patch",)),
    Rights(_SHARD, ("nodeshards",), (*_FOLLOW, *_CHANGE), feature=Feature.SHARDING),
    Rights("config.volcano.sh", ("colocationconfigurations",), _READ),
    Rights("", ("pods",), (*_FOLLOW, *_CHANGE)),
    Rights("apps", ("replicasets", "statefulsets", "daemonsets"), _FOLLOW),
    Rights("batch", ("jobs",), _FOLLOW),
    Rights("", ("persistentvolumeclaims",), (*_FOLLOW, "create")),
    Rights("", ("configmaps",), ("get", *_CHANGE)),
    Rights("", ("services",), ("get", "create", "delete")),
    Rights("networking.k8s.io", ("networkpolicies",), ("get", "create", "delete")),
    Rights("", ("events",), ("create", "patch")),
    Rights(_BATCH, ("jobs/finalizers", "cronjobs/finalizers"), ("update",), feature=Feature.OWNERS),
    Rights(_FLOW, ("jobflows/finalizers",), ("update",), feature=Feature.OWNERS),
    Rights("", ("pods/finalizers", "replicationcontrollers/finalizers"), ("update",), feature=Feature.OWNERS),
    Rights(
        "apps",
        ("replicasets/finalizers", "statefulsets/finalizers", "daemonsets/finalizers"),
        ("update",),
        feature=Feature.OWNERS,
    ),
    Rights("batch", ("jobs/finalizers",), ("update",), feature=Feature.OWNERS),
    *_lease(CONTROLLERS_LEASE, Feature.ELECTION),
)

SCHEDULER: Sequence[Rights] = (
    Rights("", ("nodes", "namespaces", "resourcequotas"), _READ),
    Rights("storage.k8s.io", ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities"), _READ),
    Rights("", ("persistentvolumes",), (*_FOLLOW, "patch")),
    Rights("", ("persistentvolumeclaims",), (*_READ, "patch")),
    Rights("scheduling.k8s.io", ("priorityclasses",), _READ),
    Rights("policy", ("poddisruptionbudgets",), _READ),
    Rights("", ("pods",), _FOLLOW),
    Rights("", ("pods",), ("patch",), feature=Feature.QUEUE_GATES),
    Rights("", ("pods",), ("delete",), feature=Feature.EVICTION),
    Rights("", ("pods/binding",), ("create",)),
    Rights("", ("pods/status",), ("patch",)),
    Rights(_SCHEDULING, ("podgroups",), (*_READ, "patch")),
    Rights(_SCHEDULING, ("queues",), (*_READ, "create")),
    Rights(_SCHEDULING, ("queues/status",), ("patch",)),
    Rights(_TOPOLOGY, ("hypernodes",), _READ),
    Rights("nodeinfo.volcano.sh", ("numatopologies",), _READ),
    Rights("metrics.k8s.io", ("nodes",), ("list",), feature=Feature.NODE_METRICS),
    Rights(
        "custom.metrics.k8s.io",
        ("nodes/node_cpu_usage_avg", "nodes/node_memory_usage_avg"),
        ("get", "list"),
        feature=Feature.CUSTOM_METRICS,
    ),
    Rights(_DEVICES, ("resourceslices", "deviceclasses", "devicetaintrules"), _READ),
    Rights(_DEVICES, ("resourceclaims",), (*_FOLLOW, *_CHANGE)),
    Rights(_DEVICES, ("resourceclaims/status", "resourceclaims/binding"), ("patch",)),
    Rights("", ("nodes",), ("get", "patch"), feature=Feature.NODE_LOCKS),
    Rights("", ("configmaps",), ("get",), names=(DEVICE_CONFIG_MAP,), feature=Feature.CARDS),
    Rights(_SHARD, ("nodeshards",), _READ),
    Rights(_SHARD, ("nodeshards/status",), ("patch",), feature=Feature.SHARDED),
    Rights("", ("events",), ("create", "patch")),
    *_lease(SCHEDULER_LEASE, Feature.ELECTION),
    Rights("", ("configmaps",), ("get",), names=(POLICY_CONFIGMAP,), feature=Feature.POLICY),
)

WEBHOOKS: Sequence[Rights] = (
    Rights(_SCHEDULING, ("queues",), _FOLLOW),
    Rights("scheduling.k8s.io", ("priorityclasses",), _FOLLOW),
    Rights("", ("namespaces",), _READ),
    Rights(_BATCH, ("jobs",), ("get", "list")),
    Rights(_SCHEDULING, ("podgroups",), ("get", "list")),
    Rights("batch", ("jobs",), ("list",)),
    Rights("", ("pods",), ("list",)),
    Rights("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    Rights(
        _ADMISSION,
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        _READ,
        feature=Feature.CONFIGURATIONS,
    ),
    Rights(
        _ADMISSION,
        ("mutatingwebhookconfigurations",),
        ("patch",),
        names=tuple(f"volcano-admission-service-{kind}-mutate" for kind in ("jobs", "queues", "podgroups", "pods")),
        feature=Feature.CONFIGURATIONS,
    ),
    Rights(
        _ADMISSION,
        ("validatingwebhookconfigurations",),
        ("patch",),
        names=tuple(
            f"volcano-admission-service-{kind}-validate"
            for kind in (
                "jobs",
                "queues",
                "podgroups",
                "pods",
                "jobflows",
                "jobtemplates",
                "cronjobs",
                "hypernodes",
                "commands",
            )
        ),
        feature=Feature.CONFIGURATIONS,
    ),
    Rights("", ("secrets",), ("get", "update"), names=(CERTIFICATES_SECRET,), feature=Feature.CERTIFICATES),
    *_lease(WEBHOOKS_LEASE, Feature.RULES),
)


def needed(
    rights: Sequence[Rights], features: Collection[Feature], *, renamed: Mapping[str, str] | None = None
) -> Sequence[Right]:
    """The permissions that a program needs with these features on. `renamed`: objects with other names, such as a
    Lease."""
    other = renamed or {}
    return [
        Right(each.group, resource, verb, other.get(name, name))
        for each in rights
        if each.feature is None or each.feature in features
        for resource in each.resources
        for verb in each.verbs
        for name in each.names or ("",)
    ]


def lacking(wanted: Sequence[Right], rules: Sequence[Any]) -> Sequence[Right]:
    """The permissions that no rule grants. `rules` are the `resourceRules` of a SelfSubjectRulesReview."""
    known = [cast("Json", rule) for rule in rules if isinstance(rule, dict)]
    return [right for right in wanted if not any(_grants(rule, right) for rule in known)]


def _grants(rule: Json, right: Right) -> bool:
    names = listed(rule, "resourceNames")
    return (
        bool({right.verb, "*"} & _texts(rule, "verbs"))
        and bool({right.group, "*"} & _texts(rule, "apiGroups"))
        and bool(_covering(right.resource) & _texts(rule, "resources"))
        and (not names or (right.name != "" and right.name in names))
    )


def _texts(rule: Json, key: str) -> set[str]:
    return {each for each in listed(rule, key) if isinstance(each, str)}


def _covering(resource: str) -> set[str]:
    """The values in a rule that cover it: `*` is every resource and subresource, `*/status` that of every resource."""
    _, slash, subresource = resource.partition("/")
    return {resource, "*", *([f"*/{subresource}"] if slash else [])}
