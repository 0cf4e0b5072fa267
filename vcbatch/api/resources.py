"""The resource types that vcbatch uses, and their paths on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from vcbatch.api import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource type: `group` is "" for the core group; `plural` is the path segment."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` string of an object of this type, such as `batch.volcano.sh/v1alpha1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The request path. Without a `namespace` a namespaced resource is addressed across all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


JOBS = Resource(group=names.BATCH_GROUP, version="v1alpha1", plural="jobs", kind="Job")
CRONJOBS = Resource(group=names.BATCH_GROUP, version="v1alpha1", plural="cronjobs", kind="CronJob")
COMMANDS = Resource(group=names.BUS_GROUP, version="v1alpha1", plural="commands", kind="Command")
QUEUES = Resource(group=names.SCHEDULING_GROUP, version="v1beta1", plural="queues", kind="Queue", namespaced=False)
PODGROUPS = Resource(group=names.SCHEDULING_GROUP, version="v1beta1", plural="podgroups", kind="PodGroup")
JOBFLOWS = Resource(group=names.FLOW_GROUP, version="v1alpha1", plural="jobflows", kind="JobFlow")
JOBTEMPLATES = Resource(group=names.FLOW_GROUP, version="v1alpha1", plural="jobtemplates", kind="JobTemplate")
HYPERNODES = Resource(
    group=names.TOPOLOGY_GROUP, version="v1alpha1", plural="hypernodes", kind="HyperNode", namespaced=False
)
NODESHARDS = Resource(
    group=names.SHARD_GROUP, version="v1alpha1", plural="nodeshards", kind="NodeShard", namespaced=False
)

NUMATOPOLOGIES = Resource(
    group=names.NODEINFO_GROUP, version="v1alpha1", plural="numatopologies", kind="Numatopology", namespaced=False
)

COLOCATIONCONFIGURATIONS = Resource(
    group=names.CONFIG_GROUP, version="v1alpha1", plural="colocationconfigurations", kind="ColocationConfiguration"
)

CUSTOM_RESOURCES = (
    JOBS,
    CRONJOBS,
    COMMANDS,
    QUEUES,
    PODGROUPS,
    JOBFLOWS,
    JOBTEMPLATES,
    HYPERNODES,
    NODESHARDS,
    NUMATOPOLOGIES,
    COLOCATIONCONFIGURATIONS,
)

NODE_USAGES = Resource(
    group=names.METRICS_GROUP, version="v1beta1", plural="nodes", kind="NodeMetrics", namespaced=False
)
"""The usage of nodes, as the metrics server measured it."""
POD_USAGES = Resource(group=names.METRICS_GROUP, version="v1beta1", plural="pods", kind="PodMetrics")
"""The usage of pods, as the metrics server measured it."""
VALIDATING_WEBHOOKS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)
SELF_REVIEWS = Resource(
    group="authentication.k8s.io",
    version="v1",
    plural="selfsubjectreviews",
    kind="SelfSubjectReview",
    namespaced=False,
)
"""The user of a request, as the server authenticates it."""
ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)
"""The review of a user's permission."""

PODS = Resource(group="", version="v1", plural="pods", kind="Pod")
NODES = Resource(group="", version="v1", plural="nodes", kind="Node", namespaced=False)
NAMESPACES = Resource(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
SERVICES = Resource(group="", version="v1", plural="services", kind="Service")
CONFIGMAPS = Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
SECRETS = Resource(group="", version="v1", plural="secrets", kind="Secret")
SERVICEACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")
EVENTS = Resource(group="", version="v1", plural="events", kind="Event")
PERSISTENTVOLUMECLAIMS = Resource(group="", version="v1", plural="persistentvolumeclaims", kind="PersistentVolumeClaim")
PERSISTENTVOLUMES = Resource(
    group="", version="v1", plural="persistentvolumes", kind="PersistentVolume", namespaced=False
)
STORAGECLASSES = Resource(
    group="storage.k8s.io", version="v1", plural="storageclasses", kind="StorageClass", namespaced=False
)
CSINODES = Resource(group="storage.k8s.io", version="v1", plural="csinodes", kind="CSINode", namespaced=False)
CSIDRIVERS = Resource(group="storage.k8s.io", version="v1", plural="csidrivers", kind="CSIDriver", namespaced=False)
CSISTORAGECAPACITIES = Resource(
    group="storage.k8s.io", version="v1", plural="csistoragecapacities", kind="CSIStorageCapacity"
)
PODDISRUPTIONBUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
RESOURCESLICES = Resource(
    group="resource.k8s.io", version="v1", plural="resourceslices", kind="ResourceSlice", namespaced=False
)
DEVICECLASSES = Resource(
    group="resource.k8s.io", version="v1", plural="deviceclasses", kind="DeviceClass", namespaced=False
)
DEVICETAINTRULES = Resource(
    group="resource.k8s.io", version="v1beta2", plural="devicetaintrules", kind="DeviceTaintRule", namespaced=False
)
RESOURCECLAIMS = Resource(group="resource.k8s.io", version="v1", plural="resourceclaims", kind="ResourceClaim")
RESOURCEQUOTAS = Resource(group="", version="v1", plural="resourcequotas", kind="ResourceQuota")
NETWORKPOLICIES = Resource(group="networking.k8s.io", version="v1", plural="networkpolicies", kind="NetworkPolicy")
PRIORITYCLASSES = Resource(
    group="scheduling.k8s.io", version="v1", plural="priorityclasses", kind="PriorityClass", namespaced=False
)
DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")
REPLICASETS = Resource(group="apps", version="v1", plural="replicasets", kind="ReplicaSet")
STATEFULSETS = Resource(group="apps", version="v1", plural="statefulsets", kind="StatefulSet")
DAEMONSETS = Resource(group="apps", version="v1", plural="daemonsets", kind="DaemonSet")
CONTROLLERREVISIONS = Resource(group="apps", version="v1", plural="controllerrevisions", kind="ControllerRevision")
BATCH_JOBS = Resource(group="batch", version="v1", plural="jobs", kind="Job")
BATCH_CRONJOBS = Resource(group="batch", version="v1", plural="cronjobs", kind="CronJob")
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
