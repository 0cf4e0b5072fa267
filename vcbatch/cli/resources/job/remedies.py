"""What a person can do about a job that waits, by the reason of the closed vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcbatch.api.loose import listed, part
from vcbatch.api.messages import first_in_line, missing_objects, waits_until_gone
from vcbatch.api.names import JOB_NAME
from vcbatch.api.phases import JobPhase, QueueState
from vcbatch.api.reasons import JobReason, WaitReason
from vcbatch.cli.base.fields import name_of, namespace_of
from vcbatch.core.waiting import QUEUE_GONE, Waiting, phase_of

Json = dict[str, Any]

_MOVE: Final = "Or let it wait elsewhere: vcbatch job move {job} QUEUE"
_DESCRIBE: Final = "Events say which: vcbatch job describe {job}"
_CLAIMS: Final = "What its claims lack: kubectl describe pvc -n {namespace}"
_ASK_FOR_LESS: Final = "Waiting won't help. Ask for less, or for nodes that there are, and resubmit it: vcbatch cluster"

_AT_NODES: Final = (
    "Nothing, if it may wait: it starts once pods that keep it from nodes have ended.",
    "Or change what its pods ask for there, and resubmit it.",
)

_FOR: Final[Mapping[WaitReason | JobReason, tuple[str, ...]]] = {
    WaitReason.NOT_ENOUGH_PODS: (
        "Its pods are still being made. If that lasts, something refuses them: vcbatch job describe {job}",
    ),
    WaitReason.POD_GROUP_MISSING: (
        "Create the PodGroup that its pods name. Those that exist: kubectl get podgroups -n {namespace}",
    ),
    WaitReason.QUEUE_MISSING: ("Make the queue: vcbatch queue create {queue}", _MOVE),
    WaitReason.QUEUE_NOT_OPEN: ("Open the queue: vcbatch queue open {queue}", _MOVE),
    WaitReason.QUEUE_INVALID: (
        "Use a queue that has none below it, or put this one in its place: vcbatch queue tree",
        _MOVE,
    ),
    WaitReason.QUEUE_LIMIT: (
        "Nothing, if it may wait: it starts once enough of the queue has ended.",
        "Or raise the limit, if it is yours: vcbatch queue describe {limit}",
        _MOVE,
    ),
    WaitReason.RESOURCE_QUOTA: (
        "It starts once the namespace's quota has room: kubectl describe resourcequota -n {namespace}",
    ),
    WaitReason.ADMISSION_REFUSED: ("A plugin of the scheduler's policy refuses it; its administrator can say why.",),
    WaitReason.CLUSTER_OVERCOMMITTED: (
        "It starts once enough of what was admitted before it has ended: vcbatch cluster",
        "If it asks for more than the whole cluster has, ask for less and resubmit it.",
    ),
    WaitReason.IMPOSSIBLE: (_ASK_FOR_LESS,),
    WaitReason.INSUFFICIENT: (
        "Nothing, if it may wait: it starts once enough nodes have room at the same time.",
        "Or ask for less in each pod and resubmit it. What there is: vcbatch cluster",
    ),
    WaitReason.TOO_MANY_PODS: ("Nothing, if it may wait: it starts once enough pods on the nodes have ended.",),
    WaitReason.NODE_UNSCHEDULABLE: (),
    WaitReason.TAINT_TOLERATION: (),
    WaitReason.NODE_AFFINITY: ("Nothing, if it may wait: nodes are being added whose labels aren't there yet.",),
    WaitReason.NODE_PORTS: _AT_NODES,
    WaitReason.INTER_POD_AFFINITY: _AT_NODES,
    WaitReason.POD_TOPOLOGY_SPREAD: _AT_NODES,
    WaitReason.VOLUME_RESTRICTIONS: (*_AT_NODES, _CLAIMS),
    WaitReason.VOLUME_BINDING: (_CLAIMS,),
    WaitReason.VOLUME_ZONE: (_CLAIMS,),
    WaitReason.NODE_VOLUME_LIMITS: _AT_NODES,
    WaitReason.DYNAMIC_RESOURCES: (
        *_AT_NODES,
        "What its claims lack: kubectl describe resourceclaims -n {namespace}",
    ),
    WaitReason.DEVICE_SHARE: _AT_NODES,
    WaitReason.NUMA: _AT_NODES,
    WaitReason.NODE_GROUP: (*_AT_NODES, _MOVE),
    WaitReason.NODE_USAGE: ("Nothing, if it may wait: it starts once less of the nodes is in use. vcbatch cluster",),
    WaitReason.REVOCABLE_ZONE: (
        "Nothing, if its pods may be evicted: it starts once the nodes are lent to such pods.",
        'Or say so by the annotation volcano.sh/revocable-zone: "*" of its pods, and resubmit it.',
    ),
    WaitReason.PROPORTIONAL: _AT_NODES,
    WaitReason.EXTENDER: ("The server of the policy's extender refuses the nodes; its administrator can say why.",),
    WaitReason.NODES_REFUSED: ("A plugin of the scheduler's policy refuses the nodes that have room.",),
    WaitReason.WAITING_FOR_RELEASE: ("Nothing: it starts as soon as the pods that are ending are gone.",),
    WaitReason.VICTIMS_PROTECTED: (
        "Nothing, if it may wait: room is made for it once the policy lets those pods go.",
        "Or ask for less, so that fewer have to go, and resubmit it.",
    ),
    WaitReason.RECLAIM_BLOCKED: (
        "Nothing, if it may wait: it starts once pods of that gang have ended.",
        "Or lower what that queue deserves by what it would be short of (spec.deserved).",
    ),
    WaitReason.UNSUPPORTED: ("Leave out what its pods ask for that this scheduler doesn't know, and resubmit it.",),
    WaitReason.VOLUMES: (_CLAIMS,),
    WaitReason.DEVICES: ("What its claims lack: kubectl describe resourceclaims -n {namespace}",),
    WaitReason.RESERVED: (
        "Nothing, if it may wait. A job with a time limit (annotation vcbatch.dev/max-run-seconds) may start before.",
    ),
    WaitReason.GATED: ("Its pods have spec.schedulingGates; who put them there has to take them off.",),
    WaitReason.PLUGIN_FAILED: ("Tell whoever keeps the scheduler's plugins; its log says where it failed.",),
    WaitReason.TOPOLOGY: (
        "Nothing, if it may wait. Or allow a higher tier (spec.networkTopology) and resubmit it.",
        "The domains: vcbatch hypernode tree",
    ),
    WaitReason.TOPOLOGY_INCONSISTENT: ("Mend the HyperNodes, or the tier that it names: vcbatch hypernode tree",),
    JobReason.QUEUE_NOT_FOUND: ("Make the queue: vcbatch queue create {queue}", _MOVE),
    JobReason.BACK_OFF: ("Nothing: it starts again by itself after the time that is said.",),
    JobReason.PVC_ERROR: (_CLAIMS, _DESCRIBE),
    JobReason.FAILED_CREATE: (
        "The server refuses its pods; fix what the message names and submit the job again.",
        _DESCRIBE,
    ),
    JobReason.PLUGIN_ERROR: ("Correct spec.plugins and submit the job again.", _DESCRIBE),
    JobReason.POD_GROUP_ERROR: (
        "The server refuses its PodGroup. Where that is for the queue, open it: vcbatch queue open {queue}",
        _DESCRIBE,
    ),
    JobReason.POD_TERMINATING: (_DESCRIBE,),
    JobReason.DEPENDENCY_NOT_READY: ("Nothing: the task starts once those that it depends on are there.",),
    JobReason.POD_NOT_STARTED: ("It has its nodes. What keeps a container from starting: vcbatch job describe {job}",),
    JobReason.UNSUPPORTED: ("Leave out what isn't supported and resubmit it.", _DESCRIBE),
}


_RESUME: Final = ("It is suspended: vcbatch job resume {job}",)
_UNSEEN: Final = "Nobody has looked at it yet. If that lasts, the controllers don't run: vcbatch doctor"
_WITHOUT_GANG: Final = (
    "The controllers have seen it, and its PodGroup is made next. If that lasts: vcbatch job describe {job}"
)
_NAME_IN_USE: Final = "can't be made: the "
_FREE_THE_NAME: Final = (
    "Delete the object that has the name: the job starts by itself within a minute. Or submit it under another name.",
    "What there is: kubectl get configmaps,services,secrets,networkpolicies -n {namespace}",
)
_HELD: Final = (
    "What holds them: kubectl describe pods -n {namespace} -l {selector}",
    "Who put a finalizer there takes it off. Where that program is gone: kubectl edit pod POD -n {namespace}",
    "Where the node is lost and doesn't come back: kubectl delete pod POD -n {namespace} --force",
)


_LARGER_THAN_QUEUE: Final = (
    "Waiting won't help: it asks for more than queue {limit} may ever hold. Ask for less and resubmit it.",
    "Or raise the queue's capability, if it is yours: vcbatch queue describe {limit}",
    _MOVE,
)


_BEHIND_FIRST: Final = (
    "Nothing, if it may wait: it has its turn once {first} has started.",
    "Why that one waits: vcbatch job explain {first_name} -n {first_namespace}",
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
"""Sentences of servers, kubelets, schedulers and ours that name an object which doesn't exist."""

_LOST_CLAIM: Final = (
    "Nothing brings back what it held. To start with an empty claim, submit the job again after this: "
    "vcbatch job delete {job}"
)
_UNREADY: Final = ("not-ready", "unreachable", "network-unavailable", "uninitialized", "out-of-service")
_TAINT: Final = re.compile(r"untolerated taint \{([^:}]+)")
_UNSTARTED: Final = re.compile(r"container (\S+) of pod (\S+) can't start: (\w+)")
_TOO_LARGE: Final = ", the largest node has "
_QUEUE_SHUT: Final = frozenset({QueueState.CLOSED, QueueState.CLOSING})


def remedies(job: Json, waiting: Waiting) -> Iterator[str]:
    """Sentences with commands to type, the likeliest first."""
    limit = waiting.limit.queue if waiting.limit is not None else waiting.queue
    words = {"job": name_of(job), "queue": waiting.queue, "limit": limit, "namespace": namespace_of(job)}
    words["selector"] = f"{JOB_NAME}={name_of(job)}"
    first = waiting.held_up_by
    if first is not None:
        words |= {"first": first.key, "first_name": first.name, "first_namespace": first.namespace}
    for gang in waiting.enough:
        if gang.reason is WaitReason.IMPOSSIBLE:
            yield (
                f"{gang.key} keeps room, and can't start as things are: "
                f"vcbatch job explain {gang.name} -n {gang.namespace}"
            )
    for sentence in _sentences(job, waiting):
        yield sentence.format_map(words)


def _sentences(job: Json, waiting: Waiting) -> tuple[str, ...]:
    if part(job, "metadata").get("deletionTimestamp"):
        return ("It is being deleted, and is gone once its pods are: kubectl get pods -n {namespace} -l {selector}",)
    phase = phase_of(job)
    if waits_until_gone(waiting.message):
        return (*_HELD, *(_RESUME if phase is JobPhase.ABORTING else ()))
    match phase:
        case JobPhase.ABORTED:
            return (*_RESUME, *_then_queue(waiting))
        case JobPhase.ABORTING:
            return ("It is suspended once its pods are gone.", *_RESUME)
        case JobPhase.RESTARTING:
            return (
                "Nothing: pods of the attempt before are being deleted, and new ones are created once they are gone.",
            )
        case JobPhase.FAILED | JobPhase.TERMINATED:
            return ("What its pods said at last: vcbatch job describe {job}", *_again(waiting))
        case JobPhase.COMPLETING | JobPhase.TERMINATING:
            return ("Nothing: it is over once its pods are gone.",)
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
    nodes = tuple(_reported_by_nodes(waiting.message, barred=barred))
    if nodes and barred:
        return nodes
    known = _FOR.get(waiting.reason) if waiting.reason is not None else None
    if known is not None:
        return (*known, *nodes)
    if waiting.gang is None and not waiting.message:
        return (_UNSEEN if _is_unseen(job) else _WITHOUT_GANG,)
    if not waiting.message:
        return ("The scheduler hasn't said anything yet. If that lasts, it doesn't run: vcbatch doctor",)
    return (_DESCRIBE,)


def _again(waiting: Waiting) -> tuple[str, ...]:
    """How a finished job runs again: in its own queue only where that takes jobs."""
    elsewhere = "vcbatch job requeue {job} --queue QUEUE"
    if waiting.queue_state == QUEUE_GONE:
        return (
            f"Its queue {{queue}} is gone. Run it again from the beginning in another: {elsewhere}",
            "Or create the queue, and then requeue the job: vcbatch queue create {queue}",
        )
    if waiting.queue_state in _QUEUE_SHUT:
        return (
            f"Its queue {{queue}} takes no jobs. Run it again from the beginning in another: {elsewhere}",
            "Or open the queue, and then requeue the job: vcbatch queue open {queue}",
        )
    return ("Run it again from the beginning: vcbatch job requeue {job}",)


def _then_queue(waiting: Waiting) -> tuple[str, ...]:
    """What a job that is suspended needs beside being resumed."""
    if waiting.queue_state == QUEUE_GONE:
        return (
            "Its queue {queue} is gone, so that it waits then. Create the queue: vcbatch queue create {queue}",
            _MOVE,
        )
    return ()


def _missing(waiting: Waiting) -> Iterator[str]:
    """Each object that is to be created, and what else can be done."""
    found = list(
        dict.fromkeys((*waiting.missing, *missing_objects(waiting.message), *_reported_missing(waiting.message)))
    )
    for kind, name in found:
        how = _CREATE.get(kind, "kubectl create -n {namespace} -f FILE").replace("{name}", _plain(name))
        yield f"Create {kind} {_plain(name)}: {how}"
    if found:
        whose = "its name" if len(found) == 1 else "their names"
        kinds = ",".join(dict.fromkeys(_PLURALS.get(kind, kind.lower()) for kind, _ in found))
        yield "The job goes on by itself once that is done."
        yield f"Or correct {whose} and submit the job again. What there is: kubectl get {kinds} -n {{namespace}}"


def _reported_missing(message: str) -> Iterator[tuple[str, str]]:
    for kind, sentence in _REPORTED_MISSING:
        for name in sentence.findall(message):
            yield kind, name


def _reported_by_nodes(message: str, *, barred: bool) -> Iterator[str]:
    """What can be done about nodes that refuse a pod whatever it asks for, as the scheduler counts them. Unless it is
    `barred` from all nodes, only what is likely to pass: else it is to run on others than those."""
    taints = list(dict.fromkeys(_TAINT.findall(message)))
    unready = [taint for taint in taints if taint.rpartition("/")[2] in _UNREADY]
    if "were unschedulable" in message or "node.kubernetes.io/unschedulable" in taints:
        yield "Nodes are cordoned (SchedulingDisabled). It starts once enough of them are uncordoned: kubectl get nodes"
        yield "Where that is yours to decide: kubectl uncordon NODE"
    if unready:
        yield "Nodes aren't ready; it starts once enough of them are: kubectl describe nodes"
    if not barred:
        return
    for taint in taints:
        if taint not in unready and taint != "node.kubernetes.io/unschedulable":
            yield f"Submit it again with a toleration of the taint {_plain(taint)}, if its pods may run on such nodes."
            yield f"Or take the taint off, if the nodes are yours: kubectl taint nodes NODE {_plain(taint)}-"
    if "didn't match Pod's node affinity/selector" in message:
        yield "Correct spec.nodeSelector or affinity of its pods, and resubmit it: kubectl get nodes --show-labels"
        yield "Or label nodes, if they are yours, and it starts by itself: kubectl label node NODE KEY=VALUE"


def _reported_by_others(waiting: Waiting) -> Iterator[str]:
    """What can be done about refusals in the words of servers and kubelets."""
    message = waiting.message
    if waiting.reason is JobReason.PVC_ERROR:
        if "is gone with what it held" in message:
            yield _LOST_CLAIM
        if "is being deleted" in message:
            yield "Who uses a claim that is being deleted, and so holds it: kubectl describe pvc -n {namespace}"
        if "the name is taken by a claim of somebody else" in message:
            yield "Delete the claim that has the name, or leave volumeClaimName out of spec.volumes and resubmit it."
    if waiting.reason is JobReason.FAILED_CREATE:
        if "exceeded quota" in message:
            yield "It goes on once the namespace's quota has room: kubectl describe resourcequota -n {namespace}"
        if "failed calling webhook" in message:
            yield "It is tried again until the webhook answers: kubectl get mutatingwebhookconfigurations"
    if waiting.reason is JobReason.POD_NOT_STARTED and (found := _UNSTARTED.match(message)):
        container, pod, why = map(_plain, found.groups())
        if why in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
            yield "Correct the image's name, or give its pods imagePullSecrets, and resubmit it."
        elif why == "CrashLoopBackOff":
            yield f"What it said before it ended: kubectl logs {pod} -c {container} -n {{namespace}} --previous"


def _plain(text: str) -> str:
    """So that it stands for itself in a sentence that is yet to be formatted."""
    return text.replace("{", "{{").replace("}", "}}")


def _is_unseen(job: Json) -> bool:
    """Whether no controller has written anything of it."""
    status = part(job, "status")
    state = part(status, "state")
    return not (state.get("phase") or state.get("reason") or state.get("message") or listed(status, "conditions"))
