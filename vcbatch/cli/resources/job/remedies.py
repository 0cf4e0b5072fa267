"""The remedies for a pending job, by its pending reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcbatch.api.loose import listed, part
from vcbatch.api.messages import first_in_line, missing_objects, waits_until_gone
from vcbatch.api.names import AFTER, BEGIN_TIME, JOB_NAME
from vcbatch.api.phases import JobPhase, QueueState
from vcbatch.api.reasons import JobReason, WaitReason
from vcbatch.cli.base.fields import name_of, namespace_of
from vcbatch.core.waiting import QUEUE_GONE, Waiting, phase_of

Json = dict[str, Any]

_MOVE: Final = "Or move it to another queue: vcbatch job move {job} QUEUE"
_DESCRIBE: Final = "See the events: vcbatch job describe {job}"
_CLAIMS: Final = "See the events of its claims: kubectl describe pvc -n {namespace}"
_START_NOW: Final = (
    f"Or start it without waiting for other jobs: kubectl annotate vcjob {{job}} -n {{namespace}} {AFTER}-"
)
_CANCEL: Final = "Or cancel it: vcbatch job cancel {job}"
_ASK_FOR_LESS: Final = "It can't start on this cluster. Reduce the request and resubmit it. Capacity: vcbatch cluster"

_AT_NODES: Final = (
    "No action needed: it starts when the pods that conflict with it have finished.",
    "Or change the conflicting fields of its pods and resubmit it.",
)

USUAL_REMEDIES: Final[Mapping[WaitReason | JobReason, tuple[str, ...]]] = {
    WaitReason.NOT_ENOUGH_PODS: (
        "Its pods are being created. If that takes long, see the events: vcbatch job describe {job}",
    ),
    WaitReason.POD_GROUP_MISSING: (
        "Create the PodGroup that its pods name. Existing PodGroups: kubectl get podgroups -n {namespace}",
    ),
    WaitReason.QUEUE_MISSING: ("Create the queue: vcbatch queue create {queue}", _MOVE),
    WaitReason.QUEUE_NOT_OPEN: ("Open the queue: vcbatch queue open {queue}", _MOVE),
    WaitReason.QUEUE_INVALID: (
        "Use a leaf queue, or fix the parent of this one: vcbatch queue tree",
        _MOVE,
    ),
    WaitReason.QUEUE_LIMIT: (
        "No action needed: it starts when enough jobs of the queue have finished.",
        "Or, as an administrator, raise the queue's limit: vcbatch queue describe {limit}",
        _MOVE,
    ),
    WaitReason.RESOURCE_QUOTA: (
        "It starts when the namespace's quota allows it: kubectl describe resourcequota -n {namespace}",
    ),
    WaitReason.ADMISSION_REFUSED: ("A scheduler plugin rejects it; ask your cluster administrator.",),
    WaitReason.CLUSTER_OVERCOMMITTED: (
        "It starts when enough of the jobs admitted before it have finished: vcbatch cluster",
        "If it requests more than the whole cluster has, reduce the request and resubmit it.",
    ),
    WaitReason.IMPOSSIBLE: (_ASK_FOR_LESS,),
    WaitReason.INSUFFICIENT: (
        "No action needed: it starts when enough nodes have free capacity at the same time.",
        "Or reduce the request of each pod and resubmit it. Free capacity: vcbatch cluster",
    ),
    WaitReason.TOO_MANY_PODS: ("No action needed: it starts when enough pods on the nodes have finished.",),
    WaitReason.NODE_UNSCHEDULABLE: (),
    WaitReason.TAINT_TOLERATION: (),
    WaitReason.NODE_AFFINITY: ("No action needed: nodes are being added that don't have their labels yet.",),
    WaitReason.NODE_PORTS: _AT_NODES,
    WaitReason.INTER_POD_AFFINITY: _AT_NODES,
    WaitReason.POD_TOPOLOGY_SPREAD: _AT_NODES,
    WaitReason.VOLUME_RESTRICTIONS: (*_AT_NODES, _CLAIMS),
    WaitReason.VOLUME_BINDING: (_CLAIMS,),
    WaitReason.VOLUME_ZONE: (_CLAIMS,),
    WaitReason.NODE_VOLUME_LIMITS: _AT_NODES,
    WaitReason.DYNAMIC_RESOURCES: (
        *_AT_NODES,
        "See the events of its claims: kubectl describe resourceclaims -n {namespace}",
    ),
    WaitReason.DEVICE_SHARE: _AT_NODES,
    WaitReason.NUMA: _AT_NODES,
    WaitReason.NODE_GROUP: (*_AT_NODES, _MOVE),
    WaitReason.NODE_USAGE: ("No action needed: it starts when the nodes are less loaded: vcbatch cluster",),
    WaitReason.REVOCABLE_ZONE: (
        "No action needed if its pods may be evicted: it starts when the nodes take such pods.",
        'Or allow it with the annotation volcano.sh/revocable-zone: "*" on its pods, and resubmit it.',
    ),
    WaitReason.PROPORTIONAL: _AT_NODES,
    WaitReason.EXTENDER: ("The scheduler extender rejects the nodes; ask your cluster administrator.",),
    WaitReason.NODES_REFUSED: (
        "A scheduler plugin rejects the nodes that have capacity; ask your cluster administrator.",
    ),
    WaitReason.WAITING_FOR_RELEASE: ("No action needed: it starts when the terminating pods are deleted.",),
    WaitReason.VICTIMS_PROTECTED: (
        "No action needed: pods are evicted for it when the scheduler configuration allows it.",
        "Or reduce the request, so that fewer pods have to be evicted, and resubmit it.",
    ),
    WaitReason.RECLAIM_BLOCKED: (
        "No action needed: it starts when pods of that gang have finished.",
        "Or lower spec.deserved of that queue by the missing amount.",
    ),
    WaitReason.UNSUPPORTED: ("Remove the fields that this scheduler doesn't support and resubmit it.",),
    WaitReason.VOLUMES: (_CLAIMS,),
    WaitReason.DEVICES: ("See the events of its claims: kubectl describe resourceclaims -n {namespace}",),
    WaitReason.RESERVED: (
        "No action needed. A job with a time limit (`--time-limit` of `vcbatch run`) can start earlier.",
    ),
    WaitReason.GATED: (
        "Its pods have spec.schedulingGates; the controller or user that added them has to remove them.",
    ),
    WaitReason.PLUGIN_FAILED: ("Tell your cluster administrator; the scheduler's log says where the plugin failed.",),
    WaitReason.TOPOLOGY: (
        "No action needed. Or allow a higher tier (spec.networkTopology) and resubmit it.",
        "Topology domains: vcbatch hypernode tree",
    ),
    WaitReason.TOPOLOGY_INCONSISTENT: ("Fix the HyperNodes or the requested tier: vcbatch hypernode tree",),
    JobReason.QUEUE_NOT_FOUND: ("Create the queue: vcbatch queue create {queue}", _MOVE),
    JobReason.DEPENDENCY_NOT_MET: (
        "No action needed: it starts after those jobs. Their status: vcbatch job list -n {namespace}",
        _START_NOW,
    ),
    JobReason.DEPENDENCY_NOT_FOUND: (
        "Submit the job that it depends on. Existing jobs: vcbatch job list -n {namespace}",
        _START_NOW,
        _CANCEL,
    ),
    JobReason.DEPENDENCY_NEVER_SATISFIED: (
        f"To start it without waiting for other jobs: kubectl annotate vcjob {{job}} -n {{namespace}} {AFTER}-",
        _CANCEL,
    ),
    JobReason.BEGIN_TIME: (
        "No action needed: it starts after that time.",
        f"Or start it now: kubectl annotate vcjob {{job}} -n {{namespace}} {BEGIN_TIME}-",
    ),
    JobReason.BACK_OFF: ("No action needed: it restarts after the back-off.",),
    JobReason.PVC_ERROR: (_CLAIMS, _DESCRIBE),
    JobReason.FAILED_CREATE: (
        "The server rejects its pods; fix the named field and submit the job again.",
        _DESCRIBE,
    ),
    JobReason.PLUGIN_ERROR: ("Fix spec.plugins and submit the job again.", _DESCRIBE),
    JobReason.POD_GROUP_ERROR: (
        "The server rejects its PodGroup. If the queue is the reason, open it: vcbatch queue open {queue}",
        _DESCRIBE,
    ),
    JobReason.POD_TERMINATING: (_DESCRIBE,),
    JobReason.DEPENDENCY_NOT_READY: (
        "No action needed: the task starts when the tasks that it depends on have started.",
    ),
    JobReason.POD_NOT_STARTED: ("Its pods have nodes. Why a container doesn't start: vcbatch job describe {job}",),
    JobReason.UNSUPPORTED: ("Remove the unsupported fields and resubmit it.", _DESCRIBE),
}
"""The sentences for a reason where the message has nothing more specific. Names in braces are replaced."""


_RESUME: Final = ("It is suspended: vcbatch job resume {job}",)
_UNSEEN: Final = "Not reconciled yet. If that takes long, the controllers aren't running: vcbatch doctor"
_WITHOUT_GANG: Final = "Its PodGroup is about to be created. If that takes long: vcbatch job describe {job}"
_NAME_IN_USE: Final = "can't be made: the "
_FREE_THE_NAME: Final = (
    "Delete the object with that name: the job then starts within a minute. Or submit it under another name.",
    "Existing objects: kubectl get configmaps,services,secrets,networkpolicies -n {namespace}",
)
_HELD: Final = (
    "See their events and finalizers: kubectl describe pods -n {namespace} -l {selector}",
    "The program that added a finalizer removes it. If it no longer runs: kubectl edit pod POD -n {namespace}",
    "If the node is lost for good: kubectl delete pod POD -n {namespace} --force",
)


_LARGER_THAN_QUEUE: Final = (
    "It requests more than the limit of queue {limit}. Reduce the request and resubmit it.",
    "Or, as an administrator, raise the queue's capability: vcbatch queue describe {limit}",
    _MOVE,
)


_BEHIND_FIRST: Final = (
    "No action needed: it is next when {first} has started.",
    "Why that job is pending: vcbatch job explain {first_name} -n {first_namespace}",
    _MOVE,
)


_CREATE: Final[Mapping[str, str]] = {
    "PersistentVolumeClaim": "kubectl create -n {namespace} -f FILE",
    "ConfigMap": "kubectl create configmap {name} -n {namespace} --from-file=FILE",
    "Secret": "kubectl create secret generic {name} -n {namespace} --from-file=FILE",
    "ServiceAccount": "kubectl create serviceaccount {name} -n {namespace}",
    "PriorityClass": "kubectl create priorityclass {name} --value=NUMBER",
    "ResourceClaim": "kubectl create -n {namespace} -f FILE",
}
_PLURALS: Final[Mapping[str, str]] = {
    "PersistentVolumeClaim": "pvc",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "ServiceAccount": "serviceaccounts",
    "PriorityClass": "priorityclasses",
    "ResourceClaim": "resourceclaims",
}
_REPORTED_MISSING: Final = (
    ("PersistentVolumeClaim", re.compile(r"PersistentVolumeClaim ([^ ,]+), of spec\.volumes\[\d+\], doesn't exist")),
    ("PersistentVolumeClaim", re.compile(r'persistentvolumeclaim "([^"]+)" not found')),
    ("ResourceClaim", re.compile(r'resourceclaim "([^"]+)" not found')),
    ("ServiceAccount", re.compile(r'serviceaccount "([^"]+)" not found')),
    ("PriorityClass", re.compile(r"no PriorityClass with name (\S+) was found")),
    ("ConfigMap", re.compile(r'configmap "([^"]+)" not found')),
    ("Secret", re.compile(r'secret "([^"]+)" not found')),
)
"""Messages of servers, kubelets, schedulers and vcbatch that name an object which doesn't exist."""

_LOST_CLAIM: Final = (
    "Its data is lost. To start with an empty claim, submit the job again after: vcbatch job delete {job}"
)
_UNREADY: Final = ("not-ready", "unreachable", "network-unavailable", "uninitialized", "out-of-service")
_TAINT: Final = re.compile(r"untolerated taint \{([^:}]+)")
_UNSTARTED: Final = re.compile(r"container (\S+) of pod (\S+) can't start: (\w+)")
_TOO_LARGE: Final = ", the largest node has "
_QUEUE_SHUT: Final = frozenset({QueueState.CLOSED, QueueState.CLOSING})


def remedies(job: Json, waiting: Waiting) -> Iterator[str]:
    """Sentences with commands, the most likely remedy first."""
    limit = waiting.limit.queue if waiting.limit is not None else waiting.queue
    words = {"job": name_of(job), "queue": waiting.queue, "limit": limit, "namespace": namespace_of(job)}
    words["selector"] = f"{JOB_NAME}={name_of(job)}"
    first = waiting.held_up_by
    if first is not None:
        words |= {"first": first.key, "first_name": first.name, "first_namespace": first.namespace}
    for gang in waiting.enough:
        if gang.reason is WaitReason.IMPOSSIBLE:
            yield (
                f"{gang.key} has reserved capacity and can't start: vcbatch job explain {gang.name} -n {gang.namespace}"
            )
    for sentence in _sentences(job, waiting):
        yield sentence.format_map(words)


def _sentences(job: Json, waiting: Waiting) -> tuple[str, ...]:
    if part(job, "metadata").get("deletionTimestamp"):
        return ("It is being deleted, together with its pods: kubectl get pods -n {namespace} -l {selector}",)
    phase = phase_of(job)
    if waits_until_gone(waiting.message):
        return (*_HELD, *(_RESUME if phase is JobPhase.ABORTING else ()))
    match phase:
        case JobPhase.ABORTED:
            return (*_RESUME, *_then_queue(waiting))
        case JobPhase.ABORTING:
            return ("It is suspended when its pods are deleted.", *_RESUME)
        case JobPhase.RESTARTING:
            return ("No action needed: pods of the previous attempt are being deleted, then new ones are created.",)
        case JobPhase.FAILED | JobPhase.TERMINATED:
            return ("The last log lines of its pods: vcbatch job describe {job}", *_again(waiting))
        case JobPhase.COMPLETING | JobPhase.TERMINATING:
            return ("No action needed: it finishes when its pods are deleted.",)
        case JobPhase.COMPLETED:
            return ()
        case JobPhase.RUNNING if not waiting.message:
            return ()
        case _:
            pass
    if waiting.limit is not None and not waiting.limit.ever:
        return _LARGER_THAN_QUEUE
    if waiting.held_up_by is not None and waiting.reason is WaitReason.QUEUE_LIMIT and first_in_line(waiting.message):
        return _BEHIND_FIRST
    if waiting.reason is JobReason.PLUGIN_ERROR and _NAME_IN_USE in waiting.message:
        return _FREE_THE_NAME
    reported = (*_missing(waiting), *_reported_by_others(waiting))
    if reported:
        return reported
    barred = waiting.reason is WaitReason.IMPOSSIBLE and _TOO_LARGE not in waiting.message
    nodes = tuple(reported_by_nodes(waiting.message, barred=barred))
    if nodes and barred:
        return nodes
    known = USUAL_REMEDIES.get(waiting.reason) if waiting.reason is not None else None
    if known is not None:
        return (*known, *nodes)
    if waiting.gang is None and not waiting.message:
        return (_UNSEEN if _is_unseen(job) else _WITHOUT_GANG,)
    if not waiting.message:
        return ("The scheduler hasn't reported a reason yet. If that takes long, it isn't running: vcbatch doctor",)
    return (_DESCRIBE,)


def _again(waiting: Waiting) -> tuple[str, ...]:
    """How to rerun a finished job: in its own queue only where that is open."""
    elsewhere = "vcbatch job requeue {job} --queue QUEUE"
    if waiting.queue_state == QUEUE_GONE:
        return (
            f"Its queue {{queue}} was deleted. Run it again from the beginning in another: {elsewhere}",
            "Or create the queue, and then requeue the job: vcbatch queue create {queue}",
        )
    if waiting.queue_state in _QUEUE_SHUT:
        return (
            f"Its queue {{queue}} isn't open. Run it again from the beginning in another: {elsewhere}",
            "Or open the queue, and then requeue the job: vcbatch queue open {queue}",
        )
    return ("Run it again from the beginning: vcbatch job requeue {job}",)


def _then_queue(waiting: Waiting) -> tuple[str, ...]:
    """What a suspended job needs besides being resumed."""
    if waiting.queue_state == QUEUE_GONE:
        return (
            "Its queue {queue} was deleted, so it stays pending. Create the queue: vcbatch queue create {queue}",
            _MOVE,
        )
    return ()


def _missing(waiting: Waiting) -> Iterator[str]:
    """The objects that have to be created, and alternatives."""
    found = list(
        dict.fromkeys((*waiting.missing, *missing_objects(waiting.message), *_reported_missing(waiting.message)))
    )
    for kind, name in found:
        how = _CREATE.get(kind, "kubectl create -n {namespace} -f FILE").replace("{name}", _plain(name))
        yield f"Create {kind} {_plain(name)}: {how}"
    if found:
        whose = "its name" if len(found) == 1 else "their names"
        kinds = ",".join(dict.fromkeys(_PLURALS.get(kind, kind.lower()) for kind, _ in found))
        yield "The job then continues automatically."
        yield f"Or correct {whose} and submit the job again. Existing objects: kubectl get {kinds} -n {{namespace}}"


def _reported_missing(message: str) -> Iterator[tuple[str, str]]:
    for kind, sentence in _REPORTED_MISSING:
        for name in sentence.findall(message):
            yield kind, name


def reported_by_nodes(message: str, *, barred: bool) -> Iterator[str]:
    """Remedies for nodes that reject a pod regardless of its requests, from the counts in the scheduler's message.
    Unless the pod is `barred` from all nodes, only for causes that are likely to be temporary: otherwise it is meant
    for other nodes."""
    taints = list(dict.fromkeys(_TAINT.findall(message)))
    unready = [taint for taint in taints if taint.rpartition("/")[2] in _UNREADY]
    if "were unschedulable" in message or "node.kubernetes.io/unschedulable" in taints:
        yield "Nodes are cordoned (SchedulingDisabled). It starts when enough of them are uncordoned: kubectl get nodes"
        yield "As an administrator: kubectl uncordon NODE"
    if unready:
        yield "Nodes aren't ready; it starts when enough of them are: kubectl describe nodes"
    if not barred:
        return
    for taint in taints:
        if taint not in unready and taint != "node.kubernetes.io/unschedulable":
            yield f"Submit it again with a toleration of the taint {_plain(taint)}, if its pods may run on such nodes."
            yield f"Or, as an administrator, remove the taint: kubectl taint nodes NODE {_plain(taint)}-"
    if "didn't match Pod's node affinity/selector" in message:
        yield "Fix spec.nodeSelector or affinity of its pods and resubmit it: kubectl get nodes --show-labels"
        yield "Or, as an administrator, label nodes: kubectl label node NODE KEY=VALUE"


def _reported_by_others(waiting: Waiting) -> Iterator[str]:
    """Remedies for errors in the words of servers and kubelets."""
    message = waiting.message
    if waiting.reason is JobReason.PVC_ERROR:
        if "is gone with what it held" in message:
            yield _LOST_CLAIM
        if "is being deleted" in message:
            yield "Which pods use a claim that is being deleted: kubectl describe pvc -n {namespace}"
        if "the name is taken by a claim of somebody else" in message:
            yield "Delete the claim with that name, or remove volumeClaimName from spec.volumes and resubmit it."
    if waiting.reason is JobReason.FAILED_CREATE:
        if "exceeded quota" in message:
            yield "It continues when the namespace's quota allows it: kubectl describe resourcequota -n {namespace}"
        if "failed calling webhook" in message:
            yield "It is retried until the webhook responds: kubectl get mutatingwebhookconfigurations"
    if waiting.reason is JobReason.POD_NOT_STARTED and (found := _UNSTARTED.match(message)):
        container, pod, why = map(_plain, found.groups())
        if why in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
            yield "Fix the image name, or add imagePullSecrets to its pods, and resubmit it."
        elif why == "CrashLoopBackOff":
            yield f"Its log before it exited: kubectl logs {pod} -c {container} -n {{namespace}} --previous"


def _plain(text: str) -> str:
    """The text with braces escaped for `str.format`."""
    return text.replace("{", "{{").replace("}", "}}")


def _is_unseen(job: Json) -> bool:
    """Whether no controller has written its status."""
    status = part(job, "status")
    state = part(status, "state")
    return not (state.get("phase") or state.get("reason") or state.get("message") or listed(status, "conditions"))
