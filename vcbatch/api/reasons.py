"""Every reason that users, dashboards and autoscalers match on: of events, conditions and pods. The only place with
these strings, which are closed sets; the messages that belong to them are in `messages`."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from vcbatch.api.names import COOLDOWN_TIME

# Events of the controllers -------------------------------------------------------------------------------------------


class JobReason(StrEnum):
    """Reasons of events on a Job."""

    EXECUTE_ACTION = "ExecuteAction"
    """A policy applies an action to the job; the message has the action and its cause."""
    COMMAND_ISSUED = "CommandIssued"
    """A Command applies an action to the job."""
    JOB_STATUS_ERROR = "JobStatusError"
    """The status can't be written."""
    PLUGIN_ERROR = "PluginError"
    """Objects of a job plugin can't be created, or its arguments are invalid."""
    HOSTS_IN_FILES_ONLY = "HostsInFilesOnly"
    """Not one of Volcano's: the host lists are too long for the environment of containers."""
    PVC_ERROR = "PVCError"
    """A PersistentVolumeClaim of the job can't be created or used."""
    POD_GROUP_ERROR = "PodGroupError"
    """The PodGroup can't be created."""
    POD_GROUP_PENDING = "PodGroupPending"
    """The PodGroup waits for the scheduler; in the job's status only, without an event."""
    FAILED_CREATE = "FailedCreate"
    """A pod can't be created; the message has the server's."""
    FAILED_DELETE = "FailedDelete"
    """A pod can't be deleted; the message has the server's."""
    SUCCESSFUL_CREATE = "SuccessfulCreate"
    """Volcano's: an object was created. vcbatch emits no such event."""
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    """Volcano's: an object was deleted. vcbatch emits no such event."""
    UNSUPPORTED = "Unsupported"
    """Not one of Volcano's: the job uses a feature that this version doesn't support yet."""
    POD_FAILED = "PodFailed"
    """Not one of Volcano's: a pod failed; the message has the cause."""
    POD_EVICTED = "PodEvicted"
    """Not one of Volcano's: a pod was evicted, preempted, deleted or lost with its node; the message has the cause."""
    RETRIES_EXHAUSTED = "RetriesExhausted"
    """Not one of Volcano's: a policy requested a restart and the budget is used up."""
    COMMAND_REJECTED = "CommandRejected"
    """Not one of Volcano's: a Command was removed without effect; the message has the cause."""
    QUEUE_NOT_FOUND = "QueueNotFound"
    """Not one of Volcano's: the job waits for a queue that doesn't exist."""
    DEPENDENCY_NOT_READY = "DependencyNotReady"
    """Not one of Volcano's: a task waits for another that it depends on."""
    DEPENDENCY_NOT_MET = "DependencyNotMet"
    """Not one of Volcano's: the job waits for another job that it depends on."""
    DEPENDENCY_NOT_FOUND = "DependencyNotFound"
    """Not one of Volcano's: a job that the job depends on doesn't exist."""
    DEPENDENCY_NEVER_SATISFIED = "DependencyNeverSatisfied"
    """Not one of Volcano's, but one of Slurm's: a dependency can't be met any more; the job stays pending."""
    BEGIN_TIME = "BeginTime"
    """Not one of Volcano's, but one of Slurm's: the job waits for its begin time."""
    DEADLINE_PASSED = "DeadlinePassed"
    """Not one of Volcano's: the job had not finished at its deadline."""
    BACK_OFF = "BackOff"
    """Not one of Volcano's: the job waits for a backoff before it restarts after losses by the infrastructure."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """Not one of Volcano's: the job has used up its time limit."""
    POD_TERMINATING = "PodTerminating"
    """Not one of Volcano's: the job waits for a pod that is being deleted; the message says what delays it."""
    OBJECTS_MISSING = "ObjectsMissing"
    """Not one of Volcano's: pods name claims, ConfigMaps, Secrets and the like that don't exist."""
    POD_NOT_STARTED = "PodNotStarted"
    """Not one of Volcano's: a pod has its node, but a container of it can't start; the message has the cause."""


HELD: Final = frozenset(
    {
        JobReason.DEPENDENCY_NOT_MET,
        JobReason.DEPENDENCY_NOT_FOUND,
        JobReason.DEPENDENCY_NEVER_SATISFIED,
        JobReason.BEGIN_TIME,
    }
)
"""Reasons of a job that may not start yet, and has no PodGroup."""
BEFORE_MISSING: Final = HELD | {JobReason.QUEUE_NOT_FOUND, JobReason.BACK_OFF, JobReason.UNSUPPORTED}
"""Reasons that precede `OBJECTS_MISSING`: while one of them applies, missing objects don't matter."""
BESIDE_MISSING: Final = frozenset(
    {JobReason.PVC_ERROR, JobReason.FAILED_CREATE, JobReason.PLUGIN_ERROR, JobReason.POD_GROUP_ERROR}
)
"""Reasons that still apply once the missing objects exist, so that they are reported together."""


class LossCause(StrEnum):
    """Why a pod was lost: one cause per loss. Causes by the infrastructure never use up a job's own retries."""

    EVICTED = "Evicted"
    """It was evicted, by the kubelet or through the Eviction API."""
    PREEMPTED = "Preempted"
    """A scheduler evicted it for other pods."""
    NODE_LOST = "NodeLost"
    """Its node was lost."""
    NODE_SHUTDOWN = "NodeShutdown"
    """Its node was shut down."""
    STATUS_UNKNOWN = "ContainerStatusUnknown"
    """Its containers no longer exist, and the node's kubelet doesn't know how they ended."""
    REJECTED = "Rejected"
    """The node's kubelet rejected the pod after it was placed there."""
    DELETED = "Deleted"
    """A client other than the job controller deleted the pod."""
    OOM_KILLED = "OOMKilled"
    """It used more memory than its limit."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """It ran longer than its activeDeadlineSeconds."""
    EXITED = "Exited"
    """A container exited with an exit code other than 0."""
    FAILED = "Failed"
    """It failed without an exit code as the cause."""

    @property
    def infrastructure(self) -> bool:
        """Whether the cluster, not the program, caused the loss."""
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
    """The queue was opened."""
    CLOSE_QUEUE = "CloseQueue"
    """The queue was closed."""


class JobFlowReason(StrEnum):
    """Reasons of events on a JobFlow. Only the first one is Volcano's."""

    CREATED = "Created"
    """A job of the flow was created."""
    FAILED_CREATE = "FailedCreate"
    """The server rejects a job of the flow."""
    FAILED_DELETE = "FailedDelete"
    """A job of the flow can't be deleted."""
    INVALID_FLOW = "InvalidFlow"
    """Its dependencies are invalid; no job is created until they are corrected."""
    TEMPLATE_NOT_FOUND = "JobTemplateNotFound"
    """A JobTemplate of the flow doesn't exist."""
    TEMPLATE_CHANGED = "JobTemplateChanged"
    """A job that was created from it before isn't changed."""
    FOREIGN_JOB = "ForeignJob"
    """A job with the name of one of the flow's exists, and isn't the flow's."""
    JOB_FAILED = "JobFailed"
    """A job failed, so the flow did; the message names the jobs that are never created."""
    TERMINATED = "Terminated"
    """The flow was ended by a Command, with no job that failed or was terminated."""
    SUSPENDED = "Suspended"
    """The flow is suspended, and creates no jobs."""
    JOB_SUSPENDED = "JobSuspended"
    """A job of a flow that continues is suspended, and the flow waits until it is resumed."""
    PROBE_PENDING = "ProbePending"
    """A job waits for a probe of its dependencies."""
    COMMAND_ISSUED = "CommandIssued"
    """A Command applies an action to the flow."""
    COMMAND_REJECTED = "CommandRejected"
    """A Command was removed without effect; the message has the cause."""


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
    """A job of the schedule has finished."""
    SUCCESSFUL_CREATE = "SuccessfulCreate"
    """A job was created."""
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    """A job beyond the history limit was deleted."""
    STALE_REFERENCE = "StaleReference"
    """An active job of the status no longer exists."""
    FAILED_CREATE = "FailedCreate"
    """A job can't be created; the message has the server's."""
    FAILED_DELETE = "FailedDelete"
    """A job can't be deleted; the message has the server's."""
    FORBID_CONCURRENT = "ForbidConcurrent"
    """A run was skipped, since the previous one is active (`concurrencyPolicy: Forbid`)."""
    REPLACE_CONCURRENT = "ReplaceConcurrent"
    """An active job was deleted for the next run (`concurrencyPolicy: Replace`)."""
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    """No job is created, since the namespace is being deleted."""
    FOREIGN_JOB = "ForeignJob"
    """A job with the name of the run exists, and isn't the schedule's."""
    INVALID_SCHEDULE = "InvalidSchedule"
    """The schedule has no time at which it would run."""
    TOO_MANY_MISSED_TIMES = "TooManyMissedTimes"
    """More than 100 runs were missed."""
    UNSUPPORTED_SCHEDULE = "UnsupportedSchedule"
    """The schedule names a time zone in itself, instead of in `timeZone`."""
    INVALID_TIME_ZONE = "InvalidTimeZone"
    """`timeZone` names no time zone."""
    UNPARSEABLE_SCHEDULE = "UnParseableCronJobSchedule"
    """The schedule can't be parsed."""
    MISS_SCHEDULE = "MissSchedule"
    """Kubernetes' reason; Volcano emits no such event."""
    CLOCK_SKEW = "ClockSkew"
    """Not one of Volcano's: the last slot that was acted on is far in the future."""


class WorkloadReason(StrEnum):
    """Reasons of events on Kubernetes' own workloads, as their controllers emit them."""

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
    """A pod has no node; the message has the reason."""
    SCHEDULED = "Scheduled"
    """A pod was bound to a node."""
    UNSCHEDULABLE = "Unschedulable"
    """A gang can't start; the message has the reason."""
    EVICT = "Evict"
    """A pod was evicted; the message names the pod and the gang that it is evicted for."""
    WAITING_FOR_DEVICES = "WaitingForDevices"
    """Pods have their nodes and are bound once devices by claim are ready; Volcano emits no such event."""


class NodeShardReason(StrEnum):
    """Reasons of events on a NodeShard."""

    TOO_FEW_NODES = "TooFewNodes"
    """Fewer nodes than minNodes are for a scheduler."""


class ConfigurationEvent(StrEnum):
    """Reasons of the controllers' events about their own configuration, on their Lease."""

    REFUSED = "ConfigurationRefused"
    """A configuration file is invalid, and the last valid one stays in use."""


class PolicyEvent(StrEnum):
    """Reasons of the scheduler's events about its own configuration: on the ConfigMap, or on its Lease."""

    APPLIED = "PolicyApplied"
    """A changed scheduler configuration is in use."""
    REFUSED = "PolicyRefused"
    """The scheduler configuration is invalid, and the last valid one stays in use."""
    PLUGIN_FAILED = "PluginFailed"
    """A custom plugin raised an exception or returned an invalid result."""
    PLUGIN_SLOW = "PluginSlow"
    """A call of a plugin takes longer than 5 s."""


class PodGroupConditionType(StrEnum):
    """`type` of a PodGroup's conditions."""

    UNSCHEDULABLE = "Unschedulable"
    SCHEDULED = "Scheduled"


class HyperNodeReason(StrEnum):
    """`reason` of the condition `Consistent` of a HyperNode."""

    CONSISTENT = "Consistent"
    """The HyperNode is part of a tree."""
    CYCLE = "Cycle"
    """It is a member of itself."""
    SEVERAL_PARENTS = "SeveralParents"
    """It is a member of several HyperNodes."""
    TIER_ORDER = "TierOrder"
    """Its tier isn't above that of its members."""
    SHARED_NODES = "SharedNodes"
    """Another HyperNode has nodes of it as well."""
    MEMBER_NOT_FOUND = "MemberNotFound"
    """A member doesn't exist."""


class PodGroupReason(StrEnum):
    """`reason` of a PodGroup's conditions."""

    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    """The gang can't start; the message has the pending reason."""
    NOT_ENOUGH_TASKS = "NotEnoughTasks"
    """Fewer pods exist than the gang's minimum."""
    READY = "tasks in gang are ready to be scheduled"
    """Of the condition Scheduled; Volcano uses a sentence in place of a reason, and tools show it."""


class WaitReason(StrEnum):
    """Why a gang waits. A closed vocabulary: the same words in explanations, metrics and tools."""

    NOT_ENOUGH_PODS = "NotEnoughPods"
    """Fewer pods exist than the gang's minimum (in total, or of one task)."""
    POD_GROUP_MISSING = "PodGroupMissing"
    """A reason of pods without a gang: the PodGroup that they name doesn't exist."""
    QUEUE_MISSING = "QueueMissing"
    """The queue doesn't exist."""
    QUEUE_NOT_OPEN = "QueueNotOpen"
    """The queue is closed or closing."""
    QUEUE_INVALID = "QueueInvalid"
    """The queue's position in the hierarchy is invalid, or it has child queues."""
    QUEUE_LIMIT = "QueueLimit"
    """The queue has reached its limit."""
    RESOURCE_QUOTA = "ResourceQuota"
    """Admission: a ResourceQuota of the namespace is too small for the gang's pods at present."""
    ADMISSION_REFUSED = "AdmissionRefused"
    """Admission: a plugin of the scheduler configuration rejects the gang."""
    CLUSTER_OVERCOMMITTED = "ClusterOvercommitted"
    """Admission: the admitted gangs already fill the cluster."""
    IMPOSSIBLE = "Impossible"
    """A pod requests more than any node has in all, or no node passes its constraints: waiting won't help."""
    INSUFFICIENT = "InsufficientResources"
    """The suitable nodes don't have enough left."""
    WAITING_FOR_RELEASE = "WaitingForRelease"
    """It fits once terminating pods are deleted; its nodes are reserved for it (pipelined)."""
    VICTIMS_PROTECTED = "VictimsProtected"
    """It would fit if pods were evicted that plugins protect at present (disruption and cdp)."""
    RECLAIM_BLOCKED = "ReclaimBlocked"
    """Pods of another queue would be evicted for it, if that didn't leave that queue less than its deserved share."""
    UNSUPPORTED = "UnsupportedConstraint"
    """A pod has a constraint that this scheduler doesn't support, so it isn't placed."""
    TOO_MANY_PODS = "TooManyPods"
    """The suitable nodes have reached their maximum number of pods."""
    NODE_PORTS = "NodePorts"
    """Host ports that a pod requests are in use on the nodes with enough resources."""
    INTER_POD_AFFINITY = "InterPodAffinity"
    """The nodes with enough resources are excluded by inter-pod affinity: the pod's own terms, or those of other
    pods."""
    POD_TOPOLOGY_SPREAD = "PodTopologySpread"
    """On the nodes with enough resources the pod would violate its topology spread constraints."""
    NODE_AFFINITY = "NodeAffinity"
    """No node matches the pod's node selector and affinity at present."""
    TAINT_TOLERATION = "TaintToleration"
    """Nodes with enough resources have taints that the pod doesn't tolerate, such as nodes that aren't ready."""
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    """Nodes are cordoned."""
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    """Another pod uses a claim that only one pod may use."""
    VOLUME_BINDING = "VolumeBinding"
    """No volume for a claim can be bound, or accessed, on the nodes with enough resources."""
    VOLUME_ZONE = "VolumeZone"
    """The volumes of the pod are in other zones than the nodes with enough resources."""
    NODE_VOLUME_LIMITS = "NodeVolumeLimits"
    """The nodes with enough resources have reached their limit of attached volumes of the driver."""
    DYNAMIC_RESOURCES = "DynamicResources"
    """The nodes with enough resources have no devices left for the claims of a pod."""
    DEVICE_SHARE = "DeviceShare"
    """The nodes with enough resources have no cards, or too little left of them."""
    NUMA = "NUMAAware"
    """The nodes with enough resources can't align the cpus of a pod."""
    NODE_GROUP = "NodeGroup"
    """The queue has reached its limit on its groups of nodes, or may not use the nodes with enough resources."""
    NODE_USAGE = "NodeUsage"
    """The measured usage of the nodes with enough resources is above the configured threshold."""
    REVOCABLE_ZONE = "RevocableZone"
    """The nodes with enough resources are available only to preemptable pods, at certain times."""
    PROPORTIONAL = "ResourceProportion"
    """On the nodes with enough resources too little would be left for the idle devices."""
    EXTENDER = "Extender"
    """The server of the extender plugin rejects the nodes with enough resources, or doesn't answer."""
    NODES_REFUSED = "NodesRefused"
    """A plugin of the scheduler configuration rejects the nodes with enough resources."""
    VOLUMES = "VolumesNotReady"
    """A claim of a pod doesn't exist, is being deleted, or isn't bound."""
    DEVICES = "DevicesNotReady"
    """A claim of a pod for devices doesn't exist, is being deleted, or requests something that can't be allocated."""
    RESERVED = "RoomReserved"
    """There are enough resources, but they are reserved for a gang ahead of it, whose start it would delay."""
    GATED = "SchedulingGated"
    """Pods have scheduling gates."""
    PLUGIN_FAILED = "PluginFailed"
    """A plugin of the user's own raised when it was called for the gang."""
    TOPOLOGY = "TopologyPlacementFailed"
    """No allowed network topology domain has enough resources now, though some would be large enough."""
    TOPOLOGY_INCONSISTENT = "TopologyInconsistent"
    """The HyperNodes form no tree, so that the allowed domains are unknown; or it names a tier that doesn't exist."""

    @property
    def hopeless(self) -> bool:
        """Whether the end of other pods never lets the gang start: only a change of the cluster, the queue or the gang
        does."""
        return self in (WaitReason.IMPOSSIBLE, WaitReason.UNSUPPORTED)


class DisruptionLimit(StrEnum):
    """What protects pods from eviction at present: arguments of the plugin disruption, or the pods' own budgets."""

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
    """No node fits; the message has the reason."""
    SCHEDULABLE = "Schedulable"
    """It would fit, and waits for the rest of its gang: a new node wouldn't help."""
    SCHEDULER_ERROR = "SchedulerError"
    """The pod can't be scheduled because of an error, such as a binding that the server rejected."""
    EVICT = "Evict"
    """The scheduler evicts the pod (condition `Ready`)."""
    PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
    """The scheduler evicts the pod (condition `DisruptionTarget`), as in kube-scheduler."""


# Local API server ---------------------------------------------------------------------------------------------------


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
"""`reason` of the DisruptionTarget condition of a pod that the Eviction API evicts."""
POD_GC: Final = "DeletionByPodGC"
"""`reason` of the DisruptionTarget condition of a pod whose node doesn't exist."""


# Kubelet ------------------------------------------------------------------------------------------------------------


class ContainerReason(StrEnum):
    """`reason` of a container's waiting or terminated state, as the kubelet of Kubernetes writes them."""

    CONTAINER_CREATING = "ContainerCreating"
    POD_INITIALIZING = "PodInitializing"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    ERR_IMAGE_PULL = "ErrImagePull"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    CONFIG_ERROR = "CreateContainerConfigError"
    """Also for a feature that this node doesn't support, with an alternative in the message."""
    COMPLETED = "Completed"
    ERROR = "Error"
    OOM_KILLED = "OOMKilled"
    START_ERROR = "StartError"
    STATUS_UNKNOWN = "ContainerStatusUnknown"


class PodStatusReason(StrEnum):
    """`status.reason` of a pod that the kubelet terminated or rejected."""

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
    """Not one of Kubernetes': the port that the job names is in use on this machine, so it was mapped to another."""
    NOT_ISOLATED = "NotIsolated"
    """Not one of Kubernetes': part of the pod's specification has no effect on this machine."""
