"""Every reason that users, dashboards and autoscalers match on: of events, conditions and pods. The only place with
these strings, which are closed sets; the sentences that go with them are `messages`."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from vcbatch.api.names import COOLDOWN_TIME

# Events of the controllers -------------------------------------------------------------------------------------------


class JobReason(StrEnum):
    """Reasons of events on a Job."""

    EXECUTE_ACTION = "ExecuteAction"
    COMMAND_ISSUED = "CommandIssued"
    JOB_STATUS_ERROR = "JobStatusError"
    PLUGIN_ERROR = "PluginError"
    HOSTS_IN_FILES_ONLY = "HostsInFilesOnly"
    """Not one of Volcano's: the host lists are too long for the environment of containers."""
    PVC_ERROR = "PVCError"
    POD_GROUP_ERROR = "PodGroupError"
    POD_GROUP_PENDING = "PodGroupPending"
    FAILED_CREATE = "FailedCreate"
    FAILED_DELETE = "FailedDelete"
    SUCCESSFUL_CREATE = "SuccessfulCreate"
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    UNSUPPORTED = "Unsupported"
    """Not one of Volcano's: the job uses what this version can't run yet."""
    POD_FAILED = "PodFailed"
    """Not one of Volcano's: a pod failed, and why."""
    POD_EVICTED = "PodEvicted"
    """Not one of Volcano's: a pod was taken from the job (evicted, preempted, deleted, lost with its node), and why."""
    RETRIES_EXHAUSTED = "RetriesExhausted"
    """Not one of Volcano's: a policy asked for a restart and the budget is used up."""
    COMMAND_REJECTED = "CommandRejected"
    """Not one of Volcano's: a Command was removed without effect, and why."""
    QUEUE_NOT_FOUND = "QueueNotFound"
    """Not one of Volcano's: the job waits for a queue that doesn't exist."""
    DEPENDENCY_NOT_READY = "DependencyNotReady"
    """Not one of Volcano's: a task waits for another that it depends on."""
    BACK_OFF = "BackOff"
    """Not one of Volcano's: the job waits a while before it starts again after losses by the infrastructure."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """Not one of Volcano's: the job ran for as long as it may."""
    POD_TERMINATING = "PodTerminating"
    """Not one of Volcano's: the job waits for a pod whose deletion was asked for, and what holds it."""
    OBJECTS_MISSING = "ObjectsMissing"
    """Not one of Volcano's: pods name claims, ConfigMaps, Secrets and the like that don't exist, and which."""
    POD_NOT_STARTED = "PodNotStarted"
    """Not one of Volcano's: a pod has its node, but a container of it can't be started, and why."""


BEFORE_MISSING: Final = frozenset({JobReason.QUEUE_NOT_FOUND, JobReason.BACK_OFF, JobReason.UNSUPPORTED})
"""Reasons that come before `OBJECTS_MISSING`: as long as one holds it doesn't matter that objects are missing."""
BESIDE_MISSING: Final = frozenset(
    {JobReason.PVC_ERROR, JobReason.FAILED_CREATE, JobReason.PLUGIN_ERROR, JobReason.POD_GROUP_ERROR}
)
"""Reasons that stay true once the missing objects exist, so that they are kept beside these."""


class LossCause(StrEnum):
    """Why a pod was lost: one cause per loss. The infrastructure's causes never use up a job's own retries."""

    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    NODE_LOST = "NodeLost"
    NODE_SHUTDOWN = "NodeShutdown"
    STATUS_UNKNOWN = "ContainerStatusUnknown"
    """Its containers are gone, and the node's kubelet doesn't know how they ended."""
    REJECTED = "Rejected"
    """The node's kubelet refused the pod after it was placed there."""
    DELETED = "Deleted"
    """Somebody other than the job controller deleted the pod."""
    OOM_KILLED = "OOMKilled"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    EXITED = "Exited"
    FAILED = "Failed"
    """Failed with no exit code to tell why."""

    @property
    def infrastructure(self) -> bool:
        """Whether the cluster, not the program, is to blame."""
        return self in _INFRASTRUCTURE


_INFRASTRUCTURE = frozenset(
    {
        LossCause.EVICTED,
        LossCause.PREEMPTED,
        LossCause.NODE_LOST,
        LossCause.NODE_SHUTDOWN,
        LossCause.STATUS_UNKNOWN,
        LossCause.REJECTED,
        LossCause.DELETED,
    }
)


class QueueReason(StrEnum):
    """Reasons of events on a Queue."""

    OPEN_QUEUE = "OpenQueue"
    CLOSE_QUEUE = "CloseQueue"


class JobFlowReason(StrEnum):
    """Reasons of events on a JobFlow. Volcano has the first one."""

    CREATED = "Created"
    FAILED_CREATE = "FailedCreate"
    FAILED_DELETE = "FailedDelete"
    INVALID_FLOW = "InvalidFlow"
    """What it says can't be an order of jobs; nothing is made until it is corrected."""
    TEMPLATE_NOT_FOUND = "JobTemplateNotFound"
    TEMPLATE_CHANGED = "JobTemplateChanged"
    """A job that was made from it before stays as it was made."""
    FOREIGN_JOB = "ForeignJob"
    JOB_FAILED = "JobFailed"
    """A job failed, so the flow did; which jobs are never made."""
    TERMINATED = "Terminated"
    """The flow was ended by a Command, with no job that failed or was terminated."""
    SUSPENDED = "Suspended"
    JOB_SUSPENDED = "JobSuspended"
    """A job of a flow that goes on is suspended, and the flow waits until somebody resumes it."""
    PROBE_PENDING = "ProbePending"
    COMMAND_ISSUED = "CommandIssued"
    COMMAND_REJECTED = "CommandRejected"


class BatchJobReason(StrEnum):
    """Reasons of conditions and events of Kubernetes' own Jobs."""

    SUSPENDED = "JobSuspended"
    RESUMED = "JobResumed"
    BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    POD_FAILURE_POLICY = "PodFailurePolicy"
    FAILED_INDEXES = "FailedIndexes"
    MAX_FAILED_INDEXES_EXCEEDED = "MaxFailedIndexesExceeded"
    SUCCESS_POLICY = "SuccessPolicy"
    COMPLETIONS_REACHED = "CompletionsReached"
    SUSPENDED_EVENT = "Suspended"
    RESUMED_EVENT = "Resumed"
    COMPLETED_EVENT = "Completed"
    TOO_MANY_SUCCEEDED_PODS = "TooManySucceededPods"
    SUCCESSFUL_CREATE = "SuccessfulCreate"
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    FAILED_CREATE = "FailedCreate"
    FAILED_DELETE = "FailedDelete"


class CronJobReason(StrEnum):
    """Reasons of events on a CronJob."""

    SAW_COMPLETED_JOB = "SawCompletedJob"
    SUCCESSFUL_CREATE = "SuccessfulCreate"
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    STALE_REFERENCE = "StaleReference"
    FAILED_CREATE = "FailedCreate"
    FAILED_DELETE = "FailedDelete"
    FORBID_CONCURRENT = "ForbidConcurrent"
    REPLACE_CONCURRENT = "ReplaceConcurrent"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    FOREIGN_JOB = "ForeignJob"
    INVALID_SCHEDULE = "InvalidSchedule"
    TOO_MANY_MISSED_TIMES = "TooManyMissedTimes"
    UNSUPPORTED_SCHEDULE = "UnsupportedSchedule"
    INVALID_TIME_ZONE = "InvalidTimeZone"
    UNPARSEABLE_SCHEDULE = "UnParseableCronJobSchedule"
    MISS_SCHEDULE = "MissSchedule"
    """Kubernetes' word; Volcano says nothing."""
    CLOCK_SKEW = "ClockSkew"
    """Not one of Volcano's: the last slot that was acted on is far in the future."""


class WorkloadReason(StrEnum):
    """Reasons of events on Kubernetes' own workloads, as their controllers there have them."""

    SUCCESSFUL_CREATE = "SuccessfulCreate"
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    FAILED_CREATE = "FailedCreate"
    FAILED_DELETE = "FailedDelete"
    SCALING_REPLICA_SET = "ScalingReplicaSet"


class DeploymentConditionReason(StrEnum):
    """Reasons of the conditions Available and Progressing; `kubectl rollout status` reads one of them."""

    MINIMUM_AVAILABLE = "MinimumReplicasAvailable"
    MINIMUM_UNAVAILABLE = "MinimumReplicasUnavailable"
    CREATED = "NewReplicaSetCreated"
    FOUND = "FoundNewReplicaSet"
    UPDATED = "ReplicaSetUpdated"
    COMPLETE = "NewReplicaSetAvailable"
    CREATE_ERROR = "ReplicaSetCreateError"
    DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    PAUSED = "DeploymentPaused"
    RESUMED = "DeploymentResumed"


# Scheduling ----------------------------------------------------------------------------------------------------------


class SchedulingEvent(StrEnum):
    """Reasons of the scheduler's events, on pods and PodGroups."""

    FAILED_SCHEDULING = "FailedScheduling"
    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    EVICT = "Evict"
    WAITING_FOR_DEVICES = "WaitingForDevices"
    """Pods have their nodes and are bound once devices by claim are ready; Volcano says nothing meanwhile."""


class NodeShardReason(StrEnum):
    """Reasons of events on a NodeShard."""

    TOO_FEW_NODES = "TooFewNodes"


class ConfigurationEvent(StrEnum):
    """Reasons of the controllers' events about their own configuration, on their Lease."""

    REFUSED = "ConfigurationRefused"


class PolicyEvent(StrEnum):
    """Reasons of the scheduler's events about its own policy: on the ConfigMap, or on its Lease."""

    APPLIED = "PolicyApplied"
    REFUSED = "PolicyRefused"
    PLUGIN_FAILED = "PluginFailed"
    PLUGIN_SLOW = "PluginSlow"


class PodGroupConditionType(StrEnum):
    """`type` of a PodGroup's conditions."""

    UNSCHEDULABLE = "Unschedulable"
    SCHEDULED = "Scheduled"


class HyperNodeReason(StrEnum):
    """`reason` of the condition `Consistent` of a HyperNode."""

    CONSISTENT = "Consistent"
    CYCLE = "Cycle"
    SEVERAL_PARENTS = "SeveralParents"
    TIER_ORDER = "TierOrder"
    SHARED_NODES = "SharedNodes"
    MEMBER_NOT_FOUND = "MemberNotFound"


class PodGroupReason(StrEnum):
    """`reason` of a PodGroup's conditions."""

    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    NOT_ENOUGH_TASKS = "NotEnoughTasks"
    READY = "tasks in gang are ready to be scheduled"
    """Of the condition Scheduled; Volcano puts a sentence where a reason belongs, and tools show it."""


class WaitReason(StrEnum):
    """Why a gang waits. A closed vocabulary: the same words in explanations, metrics and tools."""

    NOT_ENOUGH_PODS = "NotEnoughPods"
    """Fewer pods exist than the gang's minimum (in total, or of one role)."""
    POD_GROUP_MISSING = "PodGroupMissing"
    """Of pods, as there is no gang: the PodGroup that they name doesn't exist."""
    QUEUE_MISSING = "QueueMissing"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    QUEUE_INVALID = "QueueInvalid"
    """The queue's place in the tree of queues is wrong, or it has queues below it."""
    QUEUE_LIMIT = "QueueLimit"
    """The queue may not hold more now."""
    RESOURCE_QUOTA = "ResourceQuota"
    """Admission: a ResourceQuota of the namespace leaves no room for the gang's pods."""
    ADMISSION_REFUSED = "AdmissionRefused"
    """Admission: a plugin of the policy refuses the gang."""
    CLUSTER_OVERCOMMITTED = "ClusterOvercommitted"
    """Admission: what is admitted already fills the cluster."""
    IMPOSSIBLE = "Impossible"
    """A pod asks for more than any node has at all, or no node passes its constraints: waiting won't help."""
    INSUFFICIENT = "InsufficientResources"
    """The nodes that would do don't have enough left."""
    WAITING_FOR_RELEASE = "WaitingForRelease"
    """It fits as soon as pods that are ending are gone; what it found is held for it."""
    VICTIMS_PROTECTED = "VictimsProtected"
    """It would fit if pods were evicted that the policy protects for now (the plugins disruption and cdp)."""
    RECLAIM_BLOCKED = "ReclaimBlocked"
    """Pods of another queue would be evicted for it, if that did not leave that queue less than it deserves."""
    UNSUPPORTED = "UnsupportedConstraint"
    """A pod asks for something that this scheduler doesn't understand, so it isn't placed."""
    TOO_MANY_PODS = "TooManyPods"
    """The nodes that would do have no place left in their number of pods."""
    NODE_PORTS = "NodePorts"
    """Host ports that a pod asks for are taken on the nodes with room for it."""
    INTER_POD_AFFINITY = "InterPodAffinity"
    """The nodes with room for a pod are ruled out by which pods are near: its own rules, or those of others."""
    POD_TOPOLOGY_SPREAD = "PodTopologySpread"
    """On the nodes with room a pod would be spread less evenly than its constraints allow."""
    NODE_AFFINITY = "NodeAffinity"
    TAINT_TOLERATION = "TaintToleration"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    """Nodes are cordoned."""
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    """Another pod uses a claim that only one pod may."""
    VOLUME_BINDING = "VolumeBinding"
    """No volume for a claim can be bound, or reached, on the nodes with room."""
    VOLUME_ZONE = "VolumeZone"
    NODE_VOLUME_LIMITS = "NodeVolumeLimits"
    """The nodes with room attach no more volumes of the driver."""
    DYNAMIC_RESOURCES = "DynamicResources"
    """The nodes with room have no devices left for the claims of a pod."""
    DEVICE_SHARE = "DeviceShare"
    """The nodes with room have no cards, or too little left of them."""
    NUMA = "NUMAAware"
    """The nodes with room can't align the cpus of a pod."""
    NODE_GROUP = "NodeGroup"
    """The queue may hold no more on its groups of nodes, or isn't for those with room."""
    NODE_USAGE = "NodeUsage"
    """More of the nodes with room is in use, as measured, than the policy allows."""
    REVOCABLE_ZONE = "RevocableZone"
    """The nodes with room are lent to pods that may be evicted, at certain times."""
    PROPORTIONAL = "ResourceProportion"
    """On the nodes with room too little would be left beside idle devices."""
    EXTENDER = "Extender"
    """The server of the extender plugin refuses the nodes with room, or doesn't answer."""
    NODES_REFUSED = "NodesRefused"
    """A plugin of the policy refuses the nodes with room."""
    VOLUMES = "VolumesNotReady"
    """A claim of a pod isn't there, is going, or isn't bound."""
    DEVICES = "DevicesNotReady"
    """A claim of a pod for devices isn't there, is going, or asks for what can't be given."""
    RESERVED = "RoomReserved"
    """There is room, but it is kept for a gang before it, whose start it would put off."""
    GATED = "SchedulingGated"
    PLUGIN_FAILED = "PluginFailed"
    """A plugin of the user's own raised when it was asked about the gang."""
    TOPOLOGY = "TopologyPlacementFailed"
    """No domain of the network that its topology allows has room now, though some would be large enough."""
    TOPOLOGY_INCONSISTENT = "TopologyInconsistent"
    """The HyperNodes make no tree, so that nobody knows where it may be; or it names a tier that there isn't."""

    @property
    def hopeless(self) -> bool:
        """Whether nothing that ends lets the gang start: only another cluster, queue or gang does."""
        return self in (WaitReason.IMPOSSIBLE, WaitReason.UNSUPPORTED)


class DisruptionLimit(StrEnum):
    """What keeps pods from being evicted for now: arguments of the plugin disruption, or what the pods ask for."""

    MIN_RUNTIME = "minRuntime"
    PER_GANG_AND_HOUR = "maxDisruptionsPerGangPerHour"
    PER_CYCLE = "maxVictimsPerCycle"
    COOL_DOWN = COOLDOWN_TIME


class PodConditionType(StrEnum):
    """`type` of the pod conditions that the scheduler writes."""

    POD_SCHEDULED = "PodScheduled"
    READY = "Ready"
    DISRUPTION_TARGET = "DisruptionTarget"
    ALL_CONTAINERS_RESTARTING = "AllContainersRestarting"


class PodReason(StrEnum):
    """`reason` of the pod conditions that the scheduler writes."""

    UNSCHEDULABLE = "Unschedulable"
    SCHEDULABLE = "Schedulable"
    """Would fit, and waits for the rest of its gang: a new node wouldn't help."""
    SCHEDULER_ERROR = "SchedulerError"
    EVICT = "Evict"
    PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


# What the local API server says --------------------------------------------------------------------------------------


class NamespaceReason(StrEnum):
    """`reason` of the conditions of a namespace that is being emptied, as Kubernetes writes them."""

    RESOURCES_DISCOVERED = "ResourcesDiscovered"
    PARSED_GROUP_VERSIONS = "ParsedGroupVersions"
    CONTENT_DELETED = "ContentDeleted"
    RESOURCES_REMAIN = "SomeResourcesRemain"
    CONTENT_REMOVED = "ContentRemoved"
    FINALIZERS_REMAIN = "SomeFinalizersRemain"
    NO_FINALIZERS = "ContentHasNoFinalizers"


class DefinitionReason(StrEnum):
    """`reason` of the conditions of a CustomResourceDefinition, as Kubernetes writes them."""

    NO_CONFLICTS = "NoConflicts"
    PLURAL_CONFLICT = "PluralConflict"
    SINGULAR_CONFLICT = "SingularConflict"
    SHORT_NAMES_CONFLICT = "ShortNamesConflict"
    KIND_CONFLICT = "KindConflict"
    LIST_KIND_CONFLICT = "ListKindConflict"
    INITIAL_NAMES_ACCEPTED = "InitialNamesAccepted"
    NOT_ACCEPTED = "NotAccepted"
    DELETION_PENDING = "InstanceDeletionPending"
    DELETION_COMPLETED = "InstanceDeletionCompleted"


EVICTION_BY_API: Final = "EvictionByEvictionAPI"
"""`reason` of the DisruptionTarget condition of a pod that the Eviction API takes away."""
POD_GC: Final = "DeletionByPodGC"
"""`reason` of the DisruptionTarget condition of a pod whose node is gone."""


# What the kubelet says -----------------------------------------------------------------------------------------------


class ContainerReason(StrEnum):
    """`reason` of a container's waiting or terminated state, as the kubelet of Kubernetes writes them."""

    CONTAINER_CREATING = "ContainerCreating"
    POD_INITIALIZING = "PodInitializing"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    ERR_IMAGE_PULL = "ErrImagePull"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    CONFIG_ERROR = "CreateContainerConfigError"
    """Also: what this node can't do for a container, and what to write instead."""
    COMPLETED = "Completed"
    ERROR = "Error"
    OOM_KILLED = "OOMKilled"
    START_ERROR = "StartError"
    STATUS_UNKNOWN = "ContainerStatusUnknown"


class PodStatusReason(StrEnum):
    """`status.reason` of a pod that the kubelet ended or refused."""

    DEADLINE_EXCEEDED = "DeadlineExceeded"
    TERMINATED = "Terminated"
    UNEXPECTED_ADMISSION_ERROR = "UnexpectedAdmissionError"
    EVICTED = "Evicted"


class KubeletConditionReason(StrEnum):
    """`reason` of the pod and node conditions that the kubelet writes."""

    CONTAINERS_NOT_INITIALIZED = "ContainersNotInitialized"
    CONTAINERS_NOT_READY = "ContainersNotReady"
    POD_COMPLETED = "PodCompleted"
    POD_FAILED = "PodFailed"
    TERMINATION_BY_KUBELET = "TerminationByKubelet"
    KUBELET_READY = "KubeletReady"
    KUBELET_NOT_READY = "KubeletNotReady"
    SUFFICIENT_MEMORY = "KubeletHasSufficientMemory"
    NO_DISK_PRESSURE = "KubeletHasNoDiskPressure"
    SUFFICIENT_PID = "KubeletHasSufficientPID"


class KubeletEvent(StrEnum):
    """Reasons of the kubelet's events on pods."""

    STARTED = "Started"
    KILLING = "Killing"
    FAILED = "Failed"
    BACK_OFF = "BackOff"
    FAILED_MOUNT = "FailedMount"
    UNHEALTHY = "Unhealthy"
    FAILED_POST_START_HOOK = "FailedPostStartHook"
    FAILED_PRE_STOP_HOOK = "FailedPreStopHook"
    PORT_REMAPPED = "PortRemapped"
    """Not one of Kubernetes': the port that the job names is taken on this machine, so it was given another."""
    NOT_ISOLATED = "NotIsolated"
    """Not one of Kubernetes': part of the pod's specification has no effect on this machine."""
