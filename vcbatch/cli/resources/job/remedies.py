"""What a person can do about a job that waits, by the reason of the closed vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcbatch.api.loose import listed, part
from vcbatch.api.messages import first_in_line, waits_until_gone
from vcbatch.api.names import JOB_NAME
from vcbatch.api.phases import JobPhase
from vcbatch.api.reasons import JobReason, WaitReason
from vcbatch.cli.resources.fields import name_of, namespace_of
from vcbatch.core.waiting import Waiting, phase_of

Json = dict[str, Any]

_MOVE: Final = "Or let it wait elsewhere: vcbatch job move {job} QUEUE"
_DESCRIBE: Final = "Events say which: vcbatch job describe {job}"

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
    WaitReason.ADMISSION_REFUSED: (
        "A plugin of the scheduler's policy refuses it; whoever keeps the policy knows why.",
    ),
    WaitReason.CLUSTER_OVERCOMMITTED: (
        "It starts once enough of what was admitted before it has ended: vcbatch cluster",
        "If it asks for more than the whole cluster has, ask for less and submit it anew.",
    ),
    WaitReason.IMPOSSIBLE: (
        "Waiting won't help. Ask for less, or for nodes that there are, and submit it anew: vcbatch cluster",
    ),
    WaitReason.INSUFFICIENT: (
        "Nothing, if it may wait: it starts once enough nodes have room at the same time.",
        "Or ask for less in each pod and submit it anew. What there is: vcbatch cluster",
    ),
    WaitReason.WAITING_FOR_RELEASE: ("Nothing: it starts as soon as the pods that are ending are gone.",),
    WaitReason.VICTIMS_PROTECTED: (
        "Nothing, if it may wait: room is made for it once the policy lets those pods go.",
        "Or ask for less, so that fewer have to go, and submit it anew.",
    ),
    WaitReason.UNSUPPORTED: ("Leave out what its pods ask for that this scheduler doesn't know, and submit it anew.",),
    WaitReason.VOLUMES: ("Look at its claims: kubectl get pvc -n {namespace}",),
    WaitReason.DEVICES: ("Look at its claims: kubectl get resourceclaims -n {namespace}",),
    WaitReason.RESERVED: (
        "Nothing, if it may wait. A job with a time limit (annotation vcbatch.dev/max-run-seconds) may start before.",
    ),
    WaitReason.GATED: ("Its pods have spec.schedulingGates; who put them there has to take them off.",),
    WaitReason.PLUGIN_FAILED: ("Tell whoever keeps the scheduler's plugins; its log says where it failed.",),
    WaitReason.TOPOLOGY: (
        "Nothing, if it may wait. Or allow a higher tier (spec.networkTopology) and submit it anew.",
        "The domains: vcbatch hypernode tree",
    ),
    WaitReason.TOPOLOGY_INCONSISTENT: ("Mend the HyperNodes, or the tier that it names: vcbatch hypernode tree",),
    JobReason.QUEUE_NOT_FOUND: ("Make the queue: vcbatch queue create {queue}", _MOVE),
    JobReason.BACK_OFF: ("Nothing: it starts again by itself after the time that is said.",),
    JobReason.PVC_ERROR: ("Look at its claims: kubectl get pvc -n {namespace}", _DESCRIBE),
    JobReason.FAILED_CREATE: ("The server refuses its pods; correct what it says and submit the job anew.", _DESCRIBE),
    JobReason.PLUGIN_ERROR: ("Correct spec.plugins and submit the job anew.", _DESCRIBE),
    JobReason.POD_GROUP_ERROR: (
        "The server refuses its PodGroup. Where that is for the queue, open it: vcbatch queue open {queue}",
        _DESCRIBE,
    ),
    JobReason.POD_TERMINATING: (_DESCRIBE,),
    JobReason.DEPENDENCY_NOT_READY: ("Nothing: the task starts once those that it depends on are there.",),
    JobReason.POD_NOT_STARTED: ("It has its nodes. What keeps a container from starting: vcbatch job describe {job}",),
    JobReason.UNSUPPORTED: ("Leave out what isn't supported and submit it anew.", _DESCRIBE),
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
    "Waiting won't help: it asks for more than queue {limit} may ever hold. Ask for less and submit it anew.",
    "Or raise the queue's capability, if it is yours: vcbatch queue describe {limit}",
    _MOVE,
)


_BEHIND_FIRST: Final = (
    "Nothing, if it may wait: it has its turn once {first} has started.",
    "Why that one waits: vcbatch job explain {first_name} -n {first_namespace}",
    _MOVE,
)


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
            return _RESUME
        case JobPhase.ABORTING:
            return ("It is suspended once its pods are gone.", *_RESUME)
        case JobPhase.RESTARTING:
            return (
                "Nothing: pods of the attempt before are being deleted, and new ones are created once they are gone.",
            )
        case JobPhase.FAILED | JobPhase.TERMINATED:
            return (
                "What its pods said at last: vcbatch job describe {job}",
                "Run it again from the beginning: vcbatch job requeue {job}",
            )
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
    known = _FOR.get(waiting.reason) if waiting.reason is not None else None
    if known is not None:
        return known
    if waiting.gang is None and not waiting.message:
        return (_UNSEEN if _is_unseen(job) else _WITHOUT_GANG,)
    if not waiting.message:
        return ("The scheduler hasn't said anything yet. If that lasts, it doesn't run: vcbatch doctor",)
    return (_DESCRIBE,)


def _is_unseen(job: Json) -> bool:
    """Whether no controller has written anything of it."""
    status = part(job, "status")
    state = part(status, "state")
    return not (state.get("phase") or state.get("reason") or state.get("message") or listed(status, "conditions"))
