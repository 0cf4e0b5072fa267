"""The properties of a field in a CRD beyond its type: bounds, enums, defaults and the sentence for `kubectl explain`.

The types come from the models. Bounds are Volcano's (its CRDs after v1.15), field for field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from vcbatch.api import colocation, cronjob, hypernode, jobflow, jobtemplate, node_shard, numatopology, podgroup, queue
from vcbatch.api.command import Command
from vcbatch.api.crd import schemas
from vcbatch.api.job import (
    DelayedPolicy,
    DependsOn,
    Event,
    Job,
    JobCondition,
    JobPhase,
    JobSpec,
    JobState,
    JobStatus,
    Ledger,
    LifecyclePolicy,
    PartitionPolicy,
    PodLoss,
    RestartTarget,
    SeenDependency,
    TaskLedger,
    TaskSpec,
    TaskState,
    VolumeSpec,
)
from vcbatch.api.model import Json, Model, NetworkTopology, OwnerReference


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """`schema` replaces the type that the model gives; `limits` are added to it."""

    description: str = ""
    required: bool = False
    schema: Json | None = None
    limits: Json = field(default_factory=dict[str, Any])
    item_limits: Json = field(default_factory=dict[str, Any])
    without_defaults: bool = False
    """For a patch of another object: a default of one of its fields would overwrite a value that the user didn't
    set."""


def _of(description: str, *, required: bool = False, schema: Json | None = None, **limits: Any) -> Facet:
    return Facet(description=description, required=required, schema=schema, limits=limits)


def _natural(description: str, **limits: Any) -> Facet:
    return Facet(description=description, limits={"minimum": 0, **limits})


def _percent(description: str, *, default: int) -> Facet:
    return Facet(description=description, limits={"minimum": 0, "maximum": 100, "default": default})


def _enum(description: str, values: type[StrEnum] | list[str], **limits: Any) -> Facet:
    return Facet(description=description, limits={"enum": [str(value) for value in values], **limits})


def _time(description: str) -> Facet:
    return Facet(description=description, schema=schemas.TIME)


def _subdomain(description: str, **limits: Any) -> Facet:
    return Facet(description=description, limits={"maxLength": 253, "pattern": schemas.DNS_SUBDOMAIN, **limits})


_SELECTOR: Final = schemas.core_type("LabelSelector")
_NUMA_POLICIES: Final = ["none", "best-effort", "restricted", "single-numa-node"]
_PORT: Final[Json] = {"minimum": 0, "maximum": 65535}

_JOB: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    Job: {
        "spec": _of("What is to run."),
        "status": _of("How it goes. Written by the job controller."),
    },
    JobSpec: {
        "scheduler_name": _of("Scheduler of all pods whose template names none. Default: volcano.", maxLength=63),
        "min_available": _natural("Gang size: start only when this many pods fit. Default: the sum over the tasks."),
        "volumes": _of("Claims that are mounted in all containers."),
        "tasks": _of("The groups of pods that the job consists of.", minItems=1),
        "policies": _of("What to do when something happens to a pod, where its task's own policies are silent."),
        "plugins": _of("Job plugins (env, svc, pytorch, ...) and their arguments."),
        "running_estimate": _of("How long the job is expected to run, as a Go duration. Informational."),
        "queue": _subdomain("The queue that the job is submitted to.", default="default"),
        "max_retry": _natural("How often the job may be restarted before it fails.", default=3),
        "ttl_seconds_after_finished": _natural("Delete the job so long after it finished. Absent: keep it."),
        "priority_class_name": _subdomain("PriorityClass of all pods whose template names none."),
        "min_success": _of("Complete the job as soon as this many pods succeeded.", minimum=1),
        "network_topology": _of("How far apart in the network the pods may be placed."),
    },
    TaskSpec: {
        "name": _of("Name of the task, part of its pods' names.", maxLength=63, pattern=schemas.DNS_LABEL),
        "replicas": _natural("Pods of this task."),
        "min_available": _natural("The task's own gang minimum. Default: replicas."),
        "template": _of("The pod to run, a core/v1 PodTemplateSpec.", schema=schemas.core_type("PodTemplateSpec")),
        "policies": _of("What to do when something happens to a pod of this task; asked before the job's policies."),
        "topology_policy": _enum("NUMA alignment.", _NUMA_POLICIES),
        "max_retry": _natural("Restarts of containers before the event TaskFailed. Default: 3."),
        "depends_on": _of("Tasks that have to be up before this one starts."),
        "partition_policy": _of("Groups of pods inside the task that are placed and restarted together."),
    },
    LifecyclePolicy: {
        "action": _of(
            "What to do: AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, "
            "CompleteJob or ResumeJob."
        ),
        "event": _enum("The event that this is about.", Event),
        "events": Facet(description="The events that this is about.", item_limits={"enum": [str(e) for e in Event]}),
        "exit_code": _of("The exit code of a container that this is about; excludes events."),
        "timeout": _of("How long to wait before acting, as a Go duration."),
    },
    DependsOn: {
        "name": _of("Names of tasks."),
        "iteration": _of("any: one of them suffices; all: each is needed."),
    },
    PartitionPolicy: {
        "total_partitions": _of("Number of partitions.", required=True, minimum=1),
        "partition_size": _of("Pods in each partition.", required=True, minimum=1),
        "min_partitions": _natural("Partitions that have to fit before any starts.", default=0),
        "network_topology": _of("How far apart in the network the pods of one partition may be placed."),
    },
    VolumeSpec: {
        "mount_path": _of("Where containers see the volume.", required=True, minLength=1, pattern="^[^:]+$"),
        "volume_claim_name": _of("An existing claim.", maxLength=253),
        "volume_claim": _of("The claim to make.", schema=schemas.core_type("PersistentVolumeClaimSpec")),
    },
    NetworkTopology: {
        "mode": _enum("hard: never farther apart; soft: preferably not.", ["hard", "soft"], default="hard"),
        "highest_tier_allowed": Facet(
            description="Highest tier of HyperNode to span.", schema=schemas.INT, limits={"minimum": 0}
        ),
        "highest_tier_name": _of("The same by the tier's name; excludes highestTierAllowed.", maxLength=253),
    },
    JobStatus: {
        "state": _of("Where the job is in its life."),
        "min_available": _natural("Gang size."),
        "task_status_count": _of("Pods of each task by phase."),
        "pending": _natural("Pods that are Pending."),
        "running": _natural("Pods that are Running."),
        "succeeded": _natural("Pods that Succeeded."),
        "failed": _natural("Pods that Failed."),
        "terminating": _natural("Pods that are being deleted."),
        "unknown": _natural("Pods in phase Unknown."),
        "version": _of("Rises with each restart of the whole job."),
        "retry_count": _of("Restarts so far."),
        "running_duration": _of("From creation to end, as a Go duration."),
        "controlled_resources": _of("Objects that plugins and volumes have made."),
        "conditions": _of("The phases that the job went through."),
        "ledger": _of("What the job controller has to remember."),
    },
    JobState: {
        "phase": _enum("The phase.", JobPhase),
        "reason": _of("Why, in one word."),
        "message": _of("Why, in a sentence."),
        "last_transition_time": _time("When the phase began."),
    },
    JobCondition: {
        "status": _of("The phase.", required=True),
        "last_transition_time": _time("When it began."),
    },
    TaskState: {"phase": _of("Pods by pod phase.")},
}

_LEDGER: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    Ledger: {
        "tasks": _of("What became of the pods of each task in this attempt."),
        "restarting_job": _of("All pods are being replaced."),
        "restarting": _of("Parts of the job whose pods are being replaced."),
        "resumes": _of("How many of retryCount were resumes."),
        "not_before": _time("Until when the job waits after losses by the infrastructure."),
        "ran_seconds": _of("How long the job was Running before its present phase."),
        "infrastructure_retries": _of("The restarts in retryCount that the infrastructure caused."),
        "delayed": _of("What happened and has a policy whose timeout still runs."),
        "commands": _of("UIDs of Commands that were taken."),
        "losses": _of("The last pods that were lost or failed, and why."),
        "released": _of("The job's dependencies and begin time were met."),
        "dependencies": _of("The jobs that it depends on, as far as they were seen."),
    },
    SeenDependency: {
        "name": _of("The name of the job."),
        "uid": _of("Its UID."),
        "outcome": _of("The phase in which it ended, or Deleted where it was deleted before that was seen."),
    },
    TaskLedger: {
        "seen": _of("Indices whose pods existed at the last look, as ranges: 0-3,7."),
        "succeeded": _of("Indices whose pods succeeded."),
        "failed": _of("Indices whose pods failed by their own doing."),
        "evicted": _of("Indices whose pods failed by the infrastructure's doing."),
        "carried": _of("Indices whose pods had succeeded before the job was suspended."),
    },
    RestartTarget: {
        "task": _of("The task."),
        "indices": _of("The indices whose pods are replaced, as ranges; all of the task where empty."),
        "retry_count": _of("Pods of an earlier attempt than this have to go."),
    },
    DelayedPolicy: {
        "event": _of("What happened."),
        "task": _of("The task that it happened to."),
        "index": _of("The pod's index in it."),
        "since": _time("When it happened."),
    },
    PodLoss: {
        "pod": _of("The pod's name."),
        "uid": _of("Its UID."),
        "cause": _of("Why, in one word."),
        "exit_code": _of("Exit code of the container that failed."),
        "signal": _of("The signal that ended it."),
        "reason": _of("What the kubelet called it."),
        "node": _of("Where it ran."),
        "message": _of("Why, in a sentence, or its termination message."),
        "version": _of("The job's version at that time."),
        "time": _time("When."),
    },
}

_CRONJOB: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    cronjob.CronJob: {"spec": _of("When to run what."), "status": _of("Written by the controller.")},
    cronjob.CronJobSpec: {
        "schedule": _of("Five cron fields or a descriptor such as @hourly.", required=True),
        "time_zone": _of("IANA time zone of the schedule. Default: UTC."),
        "starting_deadline_seconds": Facet(
            description="A slot missed by more than this is skipped.", schema=schemas.INT64, limits={"minimum": 0}
        ),
        "concurrency_policy": _enum(
            "What to do while the last job still runs.", cronjob.ConcurrencyPolicy, default="Allow"
        ),
        "suspend": _of("Start no new jobs.", default=False),
        "job_template": _of("The job to make.", required=True),
        "successful_jobs_history_limit": _natural("Completed jobs to keep.", default=3),
        "failed_jobs_history_limit": _natural("Failed jobs to keep.", default=1),
    },
    cronjob.EmbeddedJob: {
        "metadata": _of("Labels and annotations of the jobs.", schema=schemas.METADATA),
        "spec": _of("Their spec."),
    },
    cronjob.CronJobStatus: {
        "active": Facet(
            description="Jobs that run.",
            limits={"x-kubernetes-list-type": "atomic"},
            item_limits={"x-kubernetes-map-type": "atomic"},
        ),
        "last_schedule_time": _time("The slot of the last job that was made."),
        "last_successful_time": _time("When a job last completed."),
        "ledger": _of("What the controller has to remember. Not one of Volcano's."),
    },
    cronjob.CronJobLedger: {
        "not_before": _time("When the schedule was changed: slots up to then are none of this one's."),
    },
}

_QUEUE: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    queue.Queue: {"spec": _of("Who may use how much."), "status": _of("Written by controller and scheduler.")},
    queue.QueueSpec: {
        "weight": _of("Share of the cluster in proportion to other queues.", minimum=1, maximum=65535, default=1),
        "capability": _of("Never use more than this."),
        "reclaimable": _of("Whether other queues may take back what this one uses beyond its share. Default: true."),
        "extend_clusters": _of("Clusters that jobs may be forwarded to."),
        "guarantee": _of("Resources kept for this queue even while it doesn't use them."),
        "affinity": _of("Groups of nodes that the queue's pods go to or stay away from."),
        "type": _of("A free classification.", maxLength=253),
        "parent": _subdomain("The queue that this one is a part of. Default: root."),
        "deserved": _of("What the queue gets when all want theirs; more may be reclaimed from it."),
        "priority": _natural("Queues of higher priority come first."),
        "dequeue_strategy": _enum(
            "traverse: a job that doesn't fit is passed over; fifo: it blocks those behind it.",
            queue.DequeueStrategy,
            default="traverse",
        ),
    },
    queue.Guarantee: {"resource": _of("Amounts.")},
    queue.Affinity: {
        "node_group_affinity": _of("Groups of nodes to go to."),
        "node_group_anti_affinity": _of("Groups of nodes to stay away from."),
    },
    queue.NodeGroupAffinity: {
        "required_during_scheduling_ignored_during_execution": _of("Names of groups, strictly."),
        "preferred_during_scheduling_ignored_during_execution": _of("Names of groups, preferably."),
    },
    queue.Cluster: {"name": _of("The cluster."), "weight": _of("Its share."), "capacity": _of("Its size.")},
    queue.QueueStatus: {
        "state": _enum("Only an Open queue takes jobs.", queue.QueueState),
        "unknown": _of("PodGroups in phase Unknown."),
        "pending": _of("PodGroups in phase Pending."),
        "running": _of("PodGroups in phase Running."),
        "inqueue": _of("PodGroups in phase Inqueue."),
        "completed": _of("PodGroups in phase Completed."),
        "reservation": _of("Nodes locked for the queue. Not used any more."),
        "allocated": _of("What the queue's pods hold."),
    },
    queue.Reservation: {"nodes": _of("Names of nodes."), "resource": _of("Amounts.")},
}

_PODGROUP: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    podgroup.PodGroup: {"spec": _of("What the gang needs."), "status": _of("Written by the scheduler.")},
    podgroup.PodGroupSpec: {
        "min_member": _natural("Gang size: place this many pods or none."),
        "min_task_member": _of("The same for each task."),
        "queue": _subdomain("The queue that the gang is in.", default="default"),
        "priority_class_name": _of("PriorityClass of the gang.", maxLength=253),
        "min_resources": _of("What has to be free before the gang's pods are considered."),
        "network_topology": _of("How far apart in the network the pods may be placed."),
        "sub_group_policy": _of("Gangs inside the gang."),
    },
    podgroup.SubGroupPolicy: {
        "name": _of("Name of the policy.", maxLength=253),
        "network_topology": _of("How far apart in the network the pods of one subgroup may be placed."),
        "sub_group_size": _of("Pods in a subgroup.", minimum=1, default=1),
        "min_sub_groups": _natural("Subgroups that have to fit.", default=0),
        "label_selector": _of("The pods that this is about.", schema=_SELECTOR),
        "match_label_keys": Facet(
            description="Labels whose values tell subgroups apart.", limits={"x-kubernetes-list-type": "atomic"}
        ),
    },
    podgroup.PodGroupStatus: {
        "phase": _enum("The phase.", podgroup.PodGroupPhase),
        "conditions": _of("Why the gang waits, or that it doesn't."),
        "running": _of("Pods that run."),
        "succeeded": _of("Pods that succeeded."),
        "failed": _of("Pods that failed."),
    },
    podgroup.PodGroupCondition: {
        "type": _of("Unschedulable or Scheduled."),
        "status": _of("True, False or Unknown."),
        "transition_id": _of("The scheduling session that found out."),
        "last_transition_time": _time("When this became so."),
        "reason": _of("Why, in one word."),
        "message": _of("Why, with numbers."),
    },
}

_FLOW: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    jobflow.JobFlow: {"spec": _of("The graph of jobs."), "status": _of("Written by the controller.")},
    jobflow.JobFlowSpec: {
        "flows": _of("The jobs."),
        "job_retain_policy": _enum("What becomes of the jobs when the flow is done.", jobflow.RetainPolicy),
    },
    jobflow.Flow: {
        "name": _of("A JobTemplate of this namespace.", required=True, minLength=1),
        "depends_on": _of("What has to be done before."),
        "patch": _of("Changes to the template."),
    },
    jobflow.FlowDependsOn: {"targets": _of("Names of other flows."), "probe": _of("When these count as done.")},
    jobflow.Probe: {
        "http_get_list": _of("URLs that have to answer."),
        "tcp_socket_list": _of("Ports that have to be open."),
        "task_status_list": _of("Phases that tasks have to be in."),
    },
    jobflow.HttpGet: {
        "task_name": _of("The task.", maxLength=253),
        "path": _of("The path."),
        "port": Facet(description="The port.", schema=schemas.INT, limits=_PORT),
        "http_header": _of("A header to send."),
    },
    jobflow.HttpHeader: {"name": _of("Its name.", required=True), "value": _of("Its value.", required=True)},
    jobflow.TcpSocket: {
        "task_name": _of("The task.", maxLength=253),
        "port": Facet(description="The port.", required=True, schema=schemas.INT, limits=_PORT),
    },
    jobflow.TaskStatus: {
        "task_name": _of("The task.", maxLength=253),
        "phase": _of("The phase.", maxLength=63),
    },
    jobflow.Patch: {"job_spec": Facet(description="Fields of the job's spec.", without_defaults=True)},
    jobflow.JobFlowStatus: {
        "pending_jobs": _of("Jobs that are Pending."),
        "running_jobs": _of("Jobs that are Running."),
        "failed_jobs": _of("Jobs that Failed."),
        "completed_jobs": _of("Jobs that are Completed."),
        "terminated_jobs": _of("Jobs that were Terminated."),
        "unknown_jobs": _of("Jobs in any other phase."),
        "job_status_list": _of("Each job."),
        "conditions": _of("Each job by its name."),
        "state": _of("Where the flow is in its life."),
        "ledger": _of("What the controller has to remember. Not one of Volcano's."),
    },
    jobflow.JobFlowState: {
        "phase": _enum("The phase.", jobflow.JobFlowPhase),
        "message": _of("Why it stands still or failed, and which jobs are never made. Not one of Volcano's."),
    },
    jobflow.JobFlowLedger: {
        "jobs": _of("The jobs that were made, by name."),
        "suspended": _of("Whether the flow was suspended by a Command."),
        "aborted": _of("Jobs that were suspended with the flow, by UID."),
        "discarded": _of("Jobs that make room for another try, by UID."),
        "finished": _of("When the flow last came to an end. Absent while it goes on."),
        "commands": _of("The last Commands that were carried out, by UID."),
    },
    jobflow.MadeJob: {
        "uid": _of("The job."),
        "template": _of("UID and generation of the JobTemplate as it was then."),
    },
    jobflow.FlowJobStatus: {
        "name": _of("The job."),
        "state": _of("Its phase."),
        "start_timestamp": _time("When it began."),
        "end_timestamp": _time("When it ended."),
        "restart_count": _of("How often it was restarted."),
        "running_histories": _of("The times in which it ran."),
    },
    jobflow.RunningHistory: {
        "start_timestamp": _time("When it began."),
        "end_timestamp": _time("When it ended."),
        "state": _of("The phase at its end."),
    },
    jobflow.FlowCondition: {
        "phase": _of("The job's phase."),
        "create_time": _time("When the job was made."),
        "running_duration": _of("From creation to end, as a Go duration."),
        "task_status_count": _of("Pods of each task by phase."),
    },
    jobtemplate.JobTemplate: {"spec": _of("A job's spec."), "status": _of("Written by the controller.")},
    jobtemplate.JobTemplateStatus: {"job_depends_on_list": _of("Jobs made from this template.")},
}

_TOPOLOGY: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    hypernode.HyperNode: {"spec": _of("Which nodes are near each other."), "status": _of("Written by the controller.")},
    hypernode.HyperNodeSpec: {
        "tier": Facet(
            description="Level in the network; lower is tighter.",
            required=True,
            schema=schemas.INT,
            limits={"minimum": 0},
        ),
        "tier_name": _of("Name of the level.", maxLength=253),
        "members": _of("Nodes or HyperNodes inside.", minItems=1),
    },
    hypernode.Member: {
        "type": Facet(
            description="What the selector selects.",
            required=True,
            limits={"enum": [str(value) for value in hypernode.MemberType]},
        ),
        "selector": Facet(
            description="Exactly one way to select.",
            limits={
                "x-kubernetes-validations": [
                    {
                        "rule": "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
                        "message": "Either exactMatch or regexMatch or labelMatch must be specified",
                    },
                    {
                        "rule": "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + "
                        "(has(self.labelMatch) ? 1 : 0) <= 1",
                        "message": "Only one of exactMatch, regexMatch, or labelMatch can be specified",
                    },
                ]
            },
        ),
    },
    hypernode.MemberSelector: {
        "exact_match": _of("By name."),
        "regex_match": _of("By a pattern of the name."),
        "label_match": _of("By labels of the node.", schema=_SELECTOR),
    },
    hypernode.ExactMatch: {
        "name": Facet(
            description="The name.",
            required=True,
            limits={"minLength": 1, "maxLength": 253, "pattern": schemas.DNS_SUBDOMAIN},
        )
    },
    hypernode.RegexMatch: {"pattern": _of("An RE2 expression, matched anywhere.", required=True, minLength=1)},
    hypernode.HyperNodeStatus: {
        "conditions": _of("Conditions.", schema=schemas.array(schemas.CONDITION)),
        "node_count": Facet(description="Nodes inside.", schema=schemas.INT64, limits={"minimum": 0}),
    },
    node_shard.NodeShard: {
        "spec": _of("What the scheduler is to use.", required=True),
        "status": _of("What the scheduler makes of it."),
    },
    node_shard.NodeShardSpec: {"nodes_desired": _of("Names of the nodes.", required=True)},
    node_shard.NodeShardStatus: {
        "last_update_time": _of("When the scheduler last wrote this.", schema=schemas.TIME),
        "nodes_in_use": _of("Nodes that the scheduler places pods on."),
        "nodes_to_remove": _of("Nodes that it gives back as soon as they are free."),
        "nodes_to_add": _of("Nodes that it gets as soon as another scheduler gives them back."),
    },
    colocation.ColocationConfiguration: {
        "spec": _of("Which pods, and how."),
        "status": _of("What became of it."),
    },
    colocation.ColocationConfigurationSpec: {
        "selector": _of("The pods that this is about.", schema=_SELECTOR),
        "memory_qos": _of("How their memory is guarded."),
    },
    colocation.MemoryQos: {
        "high_ratio": _percent("Of the limit, where the kernel begins to slow a pod down.", default=100),
        "low_ratio": _percent("Of the request, which the kernel hardly takes back.", default=0),
        "min_ratio": _percent("Of the request, which the kernel never takes back.", default=0),
    },
    colocation.ColocationConfigurationStatus: {
        "conditions": _of(
            "Conditions.",
            schema={
                **schemas.array(schemas.CONDITION),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        ),
    },
    numatopology.Numatopology: {"spec": _of("The cpus of one node.")},
    numatopology.NumatopologySpec: {
        "policies": _of("The policies of the kubelet's managers, by their names."),
        "res_reserved": _of("What is kept for the system, by resource."),
        "numares": _of("What is free for single containers, by resource."),
        "cpu_detail": _of("Where each cpu is, by its number."),
    },
    numatopology.NumaResource: {
        "allocatable": _of("Free units, such as 0-3,8."),
        "capacity": _of("Units in all."),
    },
    numatopology.NumaCpu: {
        "numa": _of("NUMA node."),
        "socket": _of("Socket."),
        "core": _of("Core, by its number in the socket."),
    },
}

_COMMAND: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    Command: {
        "action": _of("AbortJob, ResumeJob, RestartJob, TerminateJob, CompleteJob, OpenQueue or CloseQueue."),
        "target": Facet(
            description="The Job of this namespace, or the Queue.", limits={"x-kubernetes-map-type": "atomic"}
        ),
        "reason": _of("Why, in one word."),
        "message": _of("Why, in a sentence."),
    },
    OwnerReference: {
        "api_version": _of("", required=True),
        "kind": _of("", required=True),
        "name": _of("", required=True),
        "uid": _of("", required=True),
    },
}

FACETS: Final[Mapping[type[Model], Mapping[str, Facet]]] = {
    **_JOB,
    **_LEDGER,
    **_CRONJOB,
    **_QUEUE,
    **_PODGROUP,
    **_FLOW,
    **_TOPOLOGY,
    **_COMMAND,
}
