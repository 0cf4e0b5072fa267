"""All names of the wire: groups, labels, annotations, environment variables, name patterns.

The only place with these strings. The labels of a pod's task, the annotation that assigns a pod to its gang and so on
are Volcano's, since manifests, dashboards and other controllers match on them.
"""

from __future__ import annotations

import hashlib
import string
from enum import StrEnum
from typing import Final

# API groups ----------------------------------------------------------------------------------------------------------

BATCH_GROUP: Final = "batch.volcano.sh"
SCHEDULING_GROUP: Final = "scheduling.volcano.sh"
BUS_GROUP: Final = "bus.volcano.sh"
FLOW_GROUP: Final = "flow.volcano.sh"
TOPOLOGY_GROUP: Final = "topology.volcano.sh"
SHARD_GROUP: Final = "shard.volcano.sh"
CONFIG_GROUP: Final = "config.volcano.sh"
NODEINFO_GROUP: Final = "nodeinfo.volcano.sh"
METRICS_GROUP: Final = "metrics.k8s.io"
CUSTOM_METRICS_GROUP: Final = "custom.metrics.k8s.io"

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node of its first consumer, for which its volume is to be provisioned (KEP-490)."""
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""On a claim: the volume controller has finished binding it."""
CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Protects a claim that has devices from deletion while pods use it."""
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""On a claim for devices, "true": a scheduler created it for the extended resources of its owner pod (KEP-5004)."""
DEVICE_CLASS_RESOURCE: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the implicit extended resource of every DeviceClass; the class's name follows (KEP-5004)."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""On a volume or a claim: a controller chose its counterpart, and may release it again."""

DEFAULT_SCHEDULER: Final = "volcano"
"""`schedulerName` of pods that our scheduler places."""
NODE_LEASE_NAMESPACE: Final = "kube-node-lease"
"""The namespace of the kubelets' heartbeat Leases (KEP-589)."""
KUBE_SCHEDULER: Final = "default-scheduler"
"""The scheduler of pods that name none, which a Kubernetes server sets."""
SYSTEM_NAMESPACE: Final = "kube-system"
SYSTEM_PRIORITY_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
"""Created and kept by Kubernetes itself, so that they exist on every cluster."""

# Pods of a Job -------------------------------------------------------------------------------------------------------

JOB_NAME: Final = "volcano.sh/job-name"
"""Label and annotation: the job."""
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
"""Label: the job's namespace, as services and network policies select it."""
TASK_SPEC: Final = "volcano.sh/task-spec"
"""Label and annotation: the task."""
TASK_INDEX: Final = "volcano.sh/task-index"
"""Label and annotation: the pod's index in its task."""
QUEUE_NAME: Final = "volcano.sh/queue-name"
"""Label and annotation: the job's queue. On a Namespace: nothing reads it."""
JOB_VERSION: Final = "volcano.sh/job-version"
"""Annotation: `status.version` when the pod was created; older pods are stale."""
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
"""Annotation: `status.retryCount` when the pod was created."""
TEMPLATE_UID: Final = "volcano.sh/template-uid"
"""Annotation: `<job>-<task>`; the scheduler treats pods with the same value as equal."""
PARTITION_ID: Final = "volcano.sh/partition-id"
"""Label: the pod's partition."""
TASK_PRIORITY: Final = "volcano.sh/task-priority"
"""Pod annotation: an integer that overrides the pod's priority within its job."""
CLI_JOB: Final = "job.volcano.sh"
"""Pod label that the command-line tools set to the job's name."""

# Jobs ----------------------------------------------------------------------------------------------------------------

JOB_TYPE: Final = "volcano.sh/job-type"
"""Label: the kind of job according to the user (listed by the CLI)."""
CREATED_BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
"""Label and annotation `<namespace>.<template>`."""
CREATED_BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"
"""Label and annotation `<namespace>.<flow>`."""
CRONJOB_SCHEDULED_TIMESTAMP: Final = "volcano.sh/cronjob-scheduled-timestamp"
"""Annotation: the slot for which a CronJob's job was created."""

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark after which a watch has sent all existing objects (Kubernetes' streaming lists)."""

# Gangs ---------------------------------------------------------------------------------------------------------------

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""Pod annotation: the PodGroup that the pod belongs to."""
SCHEDULING_QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""Annotation on a pod: the queue of its generated PodGroup. On a Namespace: its default queue."""
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
"""Annotation on a pod's owner: minMember of the generated PodGroup."""
GROUP_MIN_RESOURCES: Final = "scheduling.volcano.sh/group-min-resources"
"""Annotation on a pod's owner: minResources of the generated PodGroup, as JSON."""
QUEUE_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
"""Pod annotation `"true"` that requests the scheduling gate of the same name."""
GENERATED_POD_GROUP_PREFIX: Final = "podgroup-"
"""The prefix of the name of a PodGroup for pods of other owners; the owner's UID follows."""

# Scheduling ----------------------------------------------------------------------------------------------------------

PREEMPTABLE: Final = "volcano.sh/preemptable"
"""Annotation or label of a pod: `"false"` protects it from eviction; nodes of a revocable zone accept it with
`"true"`."""
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
"""Annotation or label of a pod: a duration after its start in which the plugin cdp protects it from eviction."""
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
"""Label of a Node: its revocable zone. Annotation of a pod: `"*"` allows nodes of such zones (plugin tdm)."""
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
"""Annotation of a Job: how many of its pods the plugin tdm leaves running when it evicts, a number or a percentage."""
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
"""Annotation of a Job: how many of its pods the plugin tdm evicts at the same time, a number or a percentage."""
SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"
"""Annotation of a Job: a duration after which the plugin sla puts the waiting gang before others."""
SLA_WAITING_TIME_BARE: Final = "sla-waiting-time"
"""An older form of the same annotation."""
NUMA_TOPOLOGY_POLICY: Final = "volcano.sh/numa-topology-policy"
"""Annotation of a pod: how the plugin numa-aware aligns its cpus, as in the kubelet's topology manager."""
TOPOLOGY_DECISION: Final = "volcano.sh/topology-decision"
"""Annotation of a pod, by the plugin numa-aware: the resources that it chose on each NUMA node, as JSON."""
TASK_TOPOLOGY_AFFINITY: Final = "volcano.sh/task-topology-affinity"
"""Annotation of a PodGroup: tasks that the plugin task-topology places together."""
TASK_TOPOLOGY_ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
"""Annotation of a PodGroup: tasks that the plugin task-topology places apart."""
TASK_TOPOLOGY_TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
"""Annotation of a PodGroup: the order in which the plugin task-topology places tasks."""
NETWORK_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
"""Annotation of a pod without a job: networkTopology.mode of the generated PodGroup."""
NETWORK_TOPOLOGY_HIGHEST_TIER: Final = "volcano.sh/network-topology-highest-tier"
"""Annotation of a pod without a job: networkTopology.highestTierAllowed of the generated PodGroup."""
NETWORK_TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"
"""Label of a HyperNode: the discovery source that created it."""
JOB_ALLOCATED_HYPERNODE: Final = "volcano.sh/job-allocated-hypernode"
"""Annotation of a PodGroup, by the scheduler: the lowest HyperNode that contains all its pods."""
CLUSTER_TOP_HYPERNODE: Final = "<cluster-top-hypernode>"
"""The name of the whole cluster where a HyperNode is named."""
RESOURCE_STRATEGY_SCORING_TYPE: Final = "volcano.sh/resource-strategy-scoring-type"
"""Annotation of a pod: its own strategy of the plugin resource-strategy-fit, `LeastAllocated` or `MostAllocated`."""
RESOURCE_STRATEGY_WEIGHT: Final = "volcano.sh/resource-strategy-weight"
"""Annotation of a pod: weights by resource for that strategy, as JSON."""
RESOURCE_GROUP: Final = "volcano.sh/resource-group"
"""Annotation of a pod: the resource group of the admission configuration that applies to it."""
HCCL_RANK_INDEX: Final = "hccl/rankIndex"
"""Annotation of a pod: its rank, by the job plugin hcclrank."""

# Queues and nodes ----------------------------------------------------------------------------------------------------

ROOT_QUEUE: Final = "root"
"""The root of the hierarchy; it accepts no jobs where it has child queues."""
DEFAULT_QUEUE: Final = "default"
"""The queue of jobs that name none."""
HIERARCHY: Final = "volcano.sh/hierarchy"
"""Annotation of a Queue: its path in the hierarchy of the plugin drf, such as `root/sci/dev`."""
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
"""Annotation of a Queue: the weights along that path, such as `1/2/8`."""
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
"""Annotation of a Queue, `"true"`: it was closed together with its parent, and opens with it."""
NODEGROUP_NAME: Final = "volcano.sh/nodegroup-name"
"""Label of a Node: its group, for the plugin nodegroup."""
NODEGROUP_RESOURCE_LIMITS: Final = "volcano.sh/nodegroup-resource-limits"
"""Annotation of a Queue: how much it may use on each group of nodes, as JSON."""
OVERSUBSCRIPTION: Final = "volcano.sh/oversubscription"
"""Label of a Node, `"true"`: an agent offers resources of it that are requested but not used."""
OVERSUBSCRIPTION_CPU: Final = "volcano.sh/oversubscription-cpu"
"""Annotation of a Node: that cpu, in thousandths of a core."""
OVERSUBSCRIPTION_MEMORY: Final = "volcano.sh/oversubscription-memory"
"""Annotation of a Node: that memory, in bytes."""

GPU_MEMORY: Final = "volcano.sh/gpu-memory"
"""Resource: memory of one shared card, in MiB."""
GPU_NUMBER: Final = "volcano.sh/gpu-number"
"""Resource: exclusive cards."""
GPU_INDEX: Final = "volcano.sh/gpu-index"
"""Annotation of a pod, by the scheduler: the numbers of its cards."""
GPU_PREDICATE_TIME: Final = "volcano.sh/predicate-time"
"""Annotation of a pod, by the scheduler: when they were assigned, in nanoseconds."""
GPU_UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"
"""Annotation of a Node: the numbers of cards that aren't assigned."""
GPU_USE_TYPE: Final = "nvidia.com/use-gputype"
"""Annotation of a pod: models of cards that it may use, separated by commas."""
GPU_NOT_TYPE: Final = "nvidia.com/nouse-gputype"
"""Annotation of a pod: models of cards that it must not use."""
VGPU_NUMBER: Final = "volcano.sh/vgpu-number"
"""Resource: cards of which the pod uses a part."""
VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"
"""Resource: memory of each, in MiB."""
VGPU_MEMORY_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"
"""Resource: memory of each, in per cent."""
VGPU_CORES: Final = "volcano.sh/vgpu-cores"
"""Resource: cores of each, in per cent."""
VGPU_REGISTER: Final = "volcano.sh/node-vgpu-register"
"""Annotation of a Node, by the device plugin: its cards."""
VGPU_USE_UUID: Final = "volcano.sh/vgpu-use-gpuuuid"
"""Annotation of a pod: UUIDs of cards that it may use, separated by commas."""
VGPU_NOT_UUID: Final = "volcano.sh/vgpu-nouse-gpuuuid"
"""Annotation of a pod: UUIDs of cards that it must not use."""
VGPU_PODGROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"
"""Annotation of a pod: `spread` puts the pods of a gang on different cards."""
VGPU_MODE: Final = "volcano.sh/vgpu-mode"
"""Annotation of a pod: how its cards are shared, such as `mig` or `mps`."""
VGPU_IDS: Final = "volcano.sh/vgpu-ids-new"
"""Annotation of a pod, by the scheduler: its parts of cards, by container."""
VGPU_TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"
"""Annotation of a pod, by the scheduler: the same, for the device plugin."""
VGPU_NODE: Final = "volcano.sh/vgpu-node"
"""Annotation of a pod, by the scheduler: the node with these cards."""
VGPU_TIME: Final = "volcano.sh/vgpu-time"
"""Annotation of a pod, by the scheduler: when they were assigned, in seconds."""
DEVICE_BIND_TIME: Final = "volcano.sh/bind-time"
"""Annotation of a pod, by the scheduler: when it was bound to the cards, in seconds."""
DEVICE_BIND_PHASE: Final = "volcano.sh/bind-phase"
"""Annotation of a pod: `allocating`, by the scheduler; the device plugin changes it."""
GPU_LOCK: Final = "gpu"
"""The annotation by which a node is locked while a pod is assigned its shared cards."""
VGPU_LOCK: Final = "hamivgpu"
"""The same for vGPUs."""
NPU_REGISTER: Final = "hami.io/node-register-"
"""Annotation of a Node, followed by a chip model: its NPUs of that model. Names below with a placeholder are for a chip
model too."""
NPU_USE_UUID: Final = "hami.io/use-{}-uuid"
"""Annotation of a pod: UUIDs of NPUs that it may use, separated by commas."""
NPU_NOT_UUID: Final = "hami.io/no-use-{}-uuid"
"""Annotation of a pod: UUIDs of NPUs that it must not use."""
NPU_TO_ALLOCATE: Final = "hami.io/{}-devices-to-allocate"
"""Annotation of a pod, by the scheduler: its parts of NPUs, for the device plugin."""
NPU_ALLOCATED: Final = "hami.io/{}-devices-allocated"
"""Annotation of a pod, by the scheduler: its parts of NPUs, by container."""
NPU_PARTS: Final = "huawei.com/{}"
"""Annotation of a pod, by the scheduler: the same as JSON."""
NPU_MODE: Final = "huawei.com/vnpu-mode"
"""Annotation of a pod: how its NPUs are shared; `hami-core` isn't supported."""
NPU_PREDICATE_TIME: Final = "predicate-time"
"""Annotation of a pod, by the scheduler: when its NPUs were assigned, in seconds."""
NPU_NODE: Final = "hami.io/vgpu-node"
"""Annotation of a pod, by the scheduler: the node with its NPUs."""
NPU_TIME: Final = "hami.io/vgpu-time"
"""Annotation of a pod, by the scheduler: when they were assigned, in seconds."""
NPU_BIND_TIME: Final = "hami.io/bind-time"
"""Annotation of a pod, by the scheduler: when it was bound to them, in seconds."""
NPU_BIND_PHASE: Final = "hami.io/bind-phase"
"""Annotation of a pod: `allocating`, by the scheduler; the device plugin changes it."""
DEVICE_CONFIG_MAP: Final = "volcano-vgpu-device-config"
DEVICE_CONFIG_NAMESPACE: Final = "kube-system"

WOULD_START_IF: Final = "vcbatch.dev/would-start-if"
"""Annotation of a waiting PodGroup, by the scheduler: what would let it start, a JSON list (`remedies`)."""
MAX_RUN_SECONDS: Final = "vcbatch.dev/max-run-seconds"
"""Annotation of a Job: the seconds that it may be Running, summed over all attempts."""
TTL_AFTER_FINISHED: Final = "vcbatch.dev/ttl-seconds-after-finished"
"""Annotation of a JobFlow: the seconds from its end to its deletion, together with its jobs."""
AFTER: Final = "vcbatch.dev/after"
"""Annotation of a Job: the jobs that it depends on, `JOB[/UID][:ok|any|fail]`, separated by commas."""
BEGIN_TIME: Final = "vcbatch.dev/begin-time"
"""Annotation of a Job: the earliest time of its start, RFC 3339."""
DEADLINE: Final = "vcbatch.dev/deadline"
"""Annotation of a Job: the time at which it is cancelled if it has not finished, RFC 3339."""
MAX_PARALLEL_PODS: Final = "vcbatch.dev/max-parallel-pods"
"""Annotation of a Job: the maximum number of its pods that are alive at the same time."""
ALLOWED_NAMESPACES: Final = "vcbatch.dev/allowed-namespaces"
"""Annotation of a Queue: the namespaces that may submit to it (`vcbatch.api.validate.access`)."""
SCHEDULERS: Final = "vcbatch.dev/schedulers"
"""Annotation of a PodGroup: the `schedulerName`s of its pods, separated by commas, so that other schedulers ignore it
before it has pods."""
ATTEMPT: Final = "vcbatch.dev/attempt"
"""Annotation of a PodGroup in a Closing queue that is for a later attempt of its Job: the Job's `status.retryCount`.
The queue accepted the Job before, and accepts the PodGroup."""
MOVING_JOB: Final = "vcbatch.dev/moving-job"
"""Annotation of a JobTemplate that keeps a job while it is moved to another queue, and of the job that is created from
it there: the UID of the original job, which was deleted."""
USER: Final = "vcbatch.dev/user"
"""Annotation of a Job: the user who created it, for accounting. Admission sets it, and users can't."""
CALL_FOLDER: Final = "vcbatch.dev/call-folder"
"""Annotation of a Job that runs a Python function: the name of the directory with its calls and results."""
ENVIRONMENT: Final = "vcbatch.dev/environment"
"""Annotation of a Job and of its pods on a local server: the id of the stored environment of the shell that submitted
it (`vcbatch.local.environments`). Never a path, and never a value."""
KUBELET_MODE: Final = "vcbatch.dev/kubelet-mode"
"""Label of a Node: how the process kubelet there isolates containers."""
CONTAINER_SANDBOX: Final = "ContainerSandbox"
"""Condition of a Node: the same, with an explanation."""

# Kubernetes' own -----------------------------------------------------------------------------------------------------

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
"""Label of a Node: its host name."""
OS_LABEL: Final = "kubernetes.io/os"
"""Label of a Node: its operating system."""
ARCHITECTURE_LABEL: Final = "kubernetes.io/arch"
"""Label of a Node: its processor architecture, in Go's terms."""
GPU_RESOURCE: Final = "nvidia.com/gpu"
"""The extended resource of NVIDIA's device plugin; its feature discovery labels nodes below the same name."""
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""Label of a Namespace: its name."""

# Ours ----------------------------------------------------------------------------------------------------------------

KOPF_FINALIZER: Final = "vcbatch.batch.volcano.sh/never-set"
"""The finalizer name that kopf is configured with. No object has it: kopf removes a finalizer of this name from objects
for which it has no deletion handler, so its default name would undo the work of other operators."""
PRETENCE_PREFIX: Final = "test.vcbatch.io/"
"""Annotations of a pod that define its simulated behaviour on a virtual node (`vcbatch.local.virtual.pretence`)."""
VIRTUAL_NODE: Final = "vcbatch.batch.volcano.sh/virtual-node"
"""Label `"true"` of a Node whose pods are simulated."""
LOCAL_SERVER_MARK: Final = "+vcbatch"
"""A part of the version that the server of `vcbatch up` reports."""
FAILING_TASKS: Final = "vcbatch.batch.volcano.sh/failing-tasks"
"""Annotation of a component's Lease: its background tasks that fail at present, and why."""
TRACEPARENT: Final = "vcbatch.batch.volcano.sh/traceparent"
"""Annotation of a Job, and of its PodGroup: the W3C trace context of its life cycle, where admission traces."""
CONTROLLERS_LEASE: Final = "vcbatch-controllers"
SCHEDULER_LEASE: Final = "vcbatch-scheduler"
COMPONENTS_NAMESPACE: Final = "volcano-system"
"""The namespace of the programs and their Leases, unless an option names another."""
CONTROLLERS_USER: Final = f"system:serviceaccount:{COMPONENTS_NAMESPACE}:vcbatch-controllers"
"""The user that the controllers are for the API server, unless an option names another."""
POLICY: Final = "vcbatch.dev/policy"
"""Annotation of a scheduler's Lease: its effective configuration, including all defaults."""
SCHEDULER_SETUP: Final = "vcbatch.dev/scheduler"
"""Annotation of a scheduler's Lease: its options, and the source of its configuration, as JSON."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which kubectl keeps the whole object as it was applied."""
POLICY_KEY: Final = "volcano-scheduler.conf"
"""The key of a ConfigMap that has the scheduler's configuration."""
CONTROLLERS_COMPONENT: Final = "vc-controller-manager"
"""`source.component` of the controllers' events, as in Volcano's."""

# Kubernetes' own Jobs and CronJobs -----------------------------------------------------------------------------------

POD_TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""Finalizer of a Job's pod that isn't counted in the Job's status yet."""
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Label and annotation of a pod of an Indexed Job."""
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
"""Annotation: the number of pods that failed before this one in its index."""
INDEX_IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotation: the number of further failures, which the pod failure policy ignores."""
SCHEDULED_TIMESTAMP: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation of a CronJob's Job: the slot."""
INSTANTIATE: Final = "cronjob.kubernetes.io/instantiate"
"""Annotation of a Job that a user created from a CronJob (`kubectl create job --from`): `manual`."""
KUBERNETES_JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
"""`spec.managedBy` of a Job that Kubernetes' own controller manages, as it does one without the field."""
ENV_COMPLETION_INDEX: Final = "JOB_COMPLETION_INDEX"

# Kubernetes' own Deployments, StatefulSets and DaemonSets -------------------------------------------------------------

POD_TEMPLATE_HASH: Final = "pod-template-hash"
"""Label of a Deployment's ReplicaSets and of their pods, which makes the ReplicaSets' selectors disjoint."""
DEPLOYMENT_PREFIX: Final = "deployment.kubernetes.io/"
"""The prefix of the annotations of a Deployment's controller."""
REVISION: Final = DEPLOYMENT_PREFIX + "revision"
"""Annotation of a Deployment and its ReplicaSets: the number of the revision, which `kubectl rollout undo` reads."""
REVISION_HISTORY: Final = DEPLOYMENT_PREFIX + "revision-history"
"""Annotation of a ReplicaSet that is used again: its earlier revisions."""
DESIRED_REPLICAS: Final = DEPLOYMENT_PREFIX + "desired-replicas"
"""Annotation of a ReplicaSet: the Deployment's `replicas` when its size was last set."""
MAX_REPLICAS: Final = DEPLOYMENT_PREFIX + "max-replicas"
"""Annotation of a ReplicaSet: that number plus the maximum surge."""
MIRROR_POD: Final = "kubernetes.io/config.mirror"
"""On a pod that a kubelet creates at the API server for a static pod of its node."""
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of a pod: those with the lowest value are deleted first when a ReplicaSet is scaled down."""
REVISION_HASH: Final = "controller-revision-hash"
"""Label of a StatefulSet's or DaemonSet's pod: the name of its ControllerRevision, or the suffix of that name."""
CONTROLLER_HASH: Final = "controller.kubernetes.io/hash"
"""Label of a ControllerRevision."""
STATEFUL_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
"""Label of a StatefulSet's pod: its name."""
STATEFUL_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
"""Label of a StatefulSet's pod: its index."""

# Sharing nodes -------------------------------------------------------------------------------------------------------

COLOCATION_NAME: Final = "volcano.sh/colocation-config-name"
"""Annotation of a pod: the ColocationConfiguration that applies to it."""
COLOCATION: Final = "volcano.sh/colocation-config"
"""Annotation of a pod: the contents of that, as JSON; `{}` where none applies any more."""
WARMUP: Final = "node.volcano.sh/warmup"
"""Label of a Node that is reserved for pods that have to start at once."""

# Environment of containers -------------------------------------------------------------------------------------------

ENV_TASK_INDEX: Final = "VC_TASK_INDEX"
"""The index of a pod in its task (job plugin env)."""
ENV_TASK_INDEX_OLD: Final = "VK_TASK_INDEX"
"""An older name of the same."""
ENV_ARRAY_INDEX: Final = "VC_ARRAY_INDEX"
"""The index of a pod in an array, as its user counts (`--array 1-9:2`)."""
ENV_MASTER_ADDR: Final = "MASTER_ADDR"
"""The host name of the master (job plugin pytorch)."""
ENV_MASTER_PORT: Final = "MASTER_PORT"
"""The port of the master (job plugin pytorch)."""
ENV_WORLD_SIZE: Final = "WORLD_SIZE"
"""The number of ranks (job plugin pytorch)."""
ENV_RANK: Final = "RANK"
"""The rank of a pod (job plugin pytorch)."""
ENV_TF_CONFIG: Final = "TF_CONFIG"
"""The cluster and the pod's task in it, as JSON (job plugin tensorflow)."""
ENV_MPI_HOST: Final = "MPI_HOST"
"""The host names of the workers, separated by commas (job plugin mpi)."""

# Environment of users -----------------------------------------------------------------------------------------------

ENV_SCHEDULER: Final = "VOLCANO_SCHEDULER_NAME"
ENV_DEFAULT_IMAGE: Final = "VOLCANO_DEFAULT_IMAGE"
ENV_DEFAULT_JOB_NAMESPACE: Final = "VOLCANO_DEFAULT_JOB_NAMESPACE"
"""Used by `vsub` where no flag sets the value."""


def env_task_hosts(task: str) -> str:
    """The variable with a task's host names: `VC_<TASK>_HOSTS`."""
    return f"VC_{task.upper().replace('-', '_')}_HOSTS"


def env_task_count(task: str) -> str:
    """The variable with a task's number of hosts: `VC_<TASK>_NUM`."""
    return f"VC_{task.upper().replace('-', '_')}_NUM"


# Job plugins ---------------------------------------------------------------------------------------------------------


class Plugin(StrEnum):
    """The job plugins, as `spec.plugins` names them."""

    ENV = "env"
    SVC = "svc"
    SSH = "ssh"
    TENSORFLOW = "tensorflow"
    MPI = "mpi"
    PYTORCH = "pytorch"
    RAY = "ray"
    HCCLRANK = "hcclrank"


SVC_MOUNT_PATH: Final = "/etc/volcano"
PYTORCH_PORT_NAME: Final = "pytorchjob-port"
MPI_PORT_NAME: Final = "mpijob-port"
RAY_GCS_PORT_NAME: Final = "gcs"
RAY_DASHBOARD_PORT_NAME: Final = "dashboard"
RAY_CLIENT_PORT_NAME: Final = "client-server"
WAIT_FOR_MASTER_CONTAINER: Final = "wait-for-master"


def svc_config_map(job: str) -> str:
    """The ConfigMap with the host lists of the svc plugin, and the name of the volume that mounts it."""
    return f"{job}-svc"


def ssh_secret(job: str) -> str:
    """The Secret with the keys of the ssh plugin, and the name of the volume that mounts it."""
    return f"{job}-ssh"


def ray_head_service(job: str) -> str:
    """The Service of the head of the ray plugin's cluster."""
    return f"{job}-head-svc"


def svc_hosts_key(task: str) -> str:
    """The key in that ConfigMap with a task's hosts, one a line."""
    return f"{task.replace('-', '_')}.host"


CLAIM_RESOURCE_PREFIX: Final = "volume-pvc-"
"""The prefix of the keys of `status.controlledResources` that name the job's claims."""


def plugin_resource_key(plugin: str) -> str:
    """The key of `status.controlledResources` that says that a plugin has created its objects."""
    return f"plugin-{plugin}"


# Names of children ---------------------------------------------------------------------------------------------------


def pod_name(job: str, task: str, index: int) -> str:
    """The pod of a task: deterministic, so that a replayed create finds the existing pod."""
    return f"{job}-{task}-{index}"


def pod_group_name(job: str, uid: str) -> str:
    """The PodGroup of a job."""
    return f"{job}-{uid}"


def claim_name(job: str, uid: str, position: int) -> str:
    """The claim that the controller creates for the volume at that position of a job's spec. Volcano's suffix is
    random; this one follows from the job, so that a replayed create finds the existing claim."""
    return f"{job}-pvc-{_tag(uid, str(position))}"


def extended_claim_base(pod: str) -> str:
    """The prefix of the name of the claim for a pod's extended resources, as in kube-scheduler."""
    return f"{pod}-extended-resources-"


def extended_claim_name(pod: str, uid: str) -> str:
    """The claim for the extended resources of a pod. kube-scheduler's suffix is random; this one follows from the pod,
    so that a replayed create finds the existing claim."""
    tag = _tag(uid, "extended-resources")[:_CLAIM_TAG]
    return extended_claim_base(pod)[: _LONGEST_LABEL - len(tag)] + tag


def claim_volume_name(job: str, uid: str, claim: str) -> str:
    """The volume of a pod that mounts a claim of its job: a DNS label, for any name of the job."""
    tag = _tag(uid, claim)
    return f"{job.replace('.', '-')[: _LONGEST_LABEL - len(tag) - 1].rstrip('-')}-{tag}"


_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 253
_TAG_DIGITS: Final = string.digits + string.ascii_lowercase
_TAG_LENGTH: Final = 12
_CLAIM_TAG: Final = 5
"""The number of letters, as in the suffix that the API server generates for a `generateName`."""


def _tag(*parts: str) -> str:
    """A hash of these words: twelve characters of [0-9a-z]."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest())
    digits: list[str] = []
    for _ in range(_TAG_LENGTH):
        number, digit = divmod(number, len(_TAG_DIGITS))
        digits.append(_TAG_DIGITS[digit])
    return "".join(digits)


def flow_job_name(flow: str, template: str) -> str:
    """The job that a JobFlow creates from a JobTemplate."""
    return f"{flow}-{template}"


def flow_order_name(job: str, uid: str, action: str) -> str:
    """The Command by which a JobFlow requests `action` for one of its jobs: one at a time."""
    tag = _tag(uid, action)
    return f"{job[: _LONGEST_NAME - len(action) - len(tag) - 2]}-{action.lower()}-{tag}"


def created_by(namespace: str, name: str) -> str:
    """The value of the annotations `CREATED_BY_JOB_FLOW` and `CREATED_BY_JOB_TEMPLATE`."""
    return f"{namespace}.{name}"


def created_by_label(namespace: str, name: str) -> str:
    """The same as a label value of at most 63 characters: a longer value is cut and gets a hash."""
    value = created_by(namespace, name)
    if len(value) <= _LONGEST_LABEL:
        return value
    tag = _tag(value)
    return f"{value[: _LONGEST_LABEL - len(tag) - 1].rstrip('-.')}-{tag}"


def default_task_name(index: int) -> str:
    """The name of a task without one."""
    return f"default{index}"


def template_uid(job: str, task: str) -> str:
    """The value of `TEMPLATE_UID`."""
    return f"{job}-{task}"


def webhook_name(plural: str, verb: str) -> str:
    """The admission webhook of a kind, `verb` being `mutate` or `validate`: the name in a rejection."""
    return f"{plural}.{verb}.volcano.sh"
