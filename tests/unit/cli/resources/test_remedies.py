"""What is advised for what was said: commands that do what the sentence says. `tests/integration/cli/test_advice.py`
types those that can be tried."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api.messages import node_histogram, objects_missing
from vcbatch.api.phases import JobPhase
from vcbatch.api.reasons import JobReason, WaitReason
from vcbatch.cli.resources.job.remedies import remedies
from vcbatch.core.waiting import QUEUE_GONE, Surroundings, Waiting, waiting_of

Json = dict[str, Any]
JOB: Json = {"metadata": {"name": "j", "namespace": "n"}, "status": {"state": {"phase": "Pending"}}}
GET_NODES = "kubectl get nodes"


def said(reason: WaitReason | JobReason, message: str, *, phase: JobPhase = JobPhase.PENDING, **more: Any) -> str:
    job = {**JOB, "status": {"state": {"phase": phase.value}}}
    given = Waiting(phase=phase, reason=reason, message=message, since=None, gang=None, queue="q", **more)
    return "\n".join(remedies(job, given))


def nodes(*reasons: str, end: str = " no node passes the constraints of p") -> str:
    return node_histogram(examined=len(reasons), reasons=dict.fromkeys(reasons, 1)) + end


CORDONED, SELECTOR = "node(s) were unschedulable", "node(s) didn't match Pod's node affinity/selector"
CASES: dict[str, tuple[WaitReason | JobReason, str, list[str], list[str]]] = {
    "a claim of spec.volumes": (
        JobReason.PVC_ERROR,
        "PersistentVolumeClaim data, of spec.volumes[0], doesn't exist",
        ["Create PersistentVolumeClaim data: kubectl create -n n -f FILE", "kubectl get pvc -n n"],
        ["job describe"],
    ),
    "two claims of spec.volumes": (
        JobReason.PVC_ERROR,
        "; ".join(f"PersistentVolumeClaim {n}, of spec.volumes[{i}], doesn't exist" for i, n in enumerate("ab")),
        ["Create PersistentVolumeClaim a: ", "Create PersistentVolumeClaim b: ", "correct their names"],
        [],
    ),
    "a claim that was the job's own": (
        JobReason.PVC_ERROR,
        "PersistentVolumeClaim j-pvc-1, of spec.volumes[0], was made for this job and is gone with what it held",
        ["vcbatch job delete j"],
        ["Create "],
    ),
    "a claim that goes": (
        JobReason.PVC_ERROR,
        "PersistentVolumeClaim data, of spec.volumes[0], is being deleted",
        ["kubectl describe pvc -n n"],
        ["Create "],
    ),
    "a claim that a pod mounts": (
        WaitReason.VOLUMES,
        'p waits: persistentvolumeclaim "data" not found; persistentvolumeclaim "more" not found',
        ["Create PersistentVolumeClaim data: ", "Create PersistentVolumeClaim more: "],
        [],
    ),
    "a claim that nothing is bound to": (
        WaitReason.VOLUMES,
        "p waits: pod has unbound immediate PersistentVolumeClaims",
        ["kubectl describe pvc -n n"],
        ["Create "],
    ),
    "a claim for devices": (
        WaitReason.DEVICES,
        'p waits: resourceclaim "gpu" not found',
        ["Create ResourceClaim gpu: ", "kubectl get resourceclaims -n n"],
        [],
    ),
    "objects that pods name": (
        JobReason.OBJECTS_MISSING,
        objects_missing([("ConfigMap", "c"), ("Secret", "s"), ("ServiceAccount", "a")], tasks=["w"]),
        [
            "kubectl create configmap c -n n --from-file=FILE",
            "kubectl create secret generic s -n n --from-file=FILE",
            "kubectl create serviceaccount a -n n",
            "kubectl get configmaps,secrets,serviceaccounts -n n",
        ],
        [],
    ),
    "an account that the server misses": (
        JobReason.FAILED_CREATE,
        'pods "j-w-0" is forbidden: error looking up service account n/a: serviceaccount "a" not found',
        ["kubectl create serviceaccount a -n n"],
        [],
    ),
    "a class that the server misses": (
        JobReason.FAILED_CREATE,
        'pods "j-w-0" is forbidden: no PriorityClass with name high was found',
        ["kubectl create priorityclass high --value=NUMBER"],
        [],
    ),
    "a quota": (
        JobReason.FAILED_CREATE,
        'pods "j-w-0" is forbidden: exceeded quota: q, requested: cpu=1',
        ["kubectl describe resourcequota -n n"],
        ["submit"],
    ),
    "a webhook": (
        JobReason.FAILED_CREATE,
        'Internal error occurred: failed calling webhook "w.example.com": connection refused',
        ["It is retried"],
        ["submit"],
    ),
    "what the server refuses for good": (
        JobReason.FAILED_CREATE,
        'Pod "j-w-0" is invalid: spec.containers[0].image: Required value',
        ["submit the job again"],
        [],
    ),
    "cordoned nodes": (
        WaitReason.IMPOSSIBLE,
        nodes(CORDONED),
        [GET_NODES, "kubectl uncordon NODE"],
        ["resubmit", "can't start on this cluster"],
    ),
    "full nodes and a cordoned one": (
        WaitReason.INSUFFICIENT,
        nodes(CORDONED, "Insufficient cpu", end=""),
        ["No action needed", "kubectl uncordon NODE"],
        [],
    ),
    "labels that no node has": (
        WaitReason.IMPOSSIBLE,
        nodes(SELECTOR),
        ["kubectl get nodes --show-labels", "kubectl label node NODE KEY=VALUE"],
        ["Reduce the request"],
    ),
    "full nodes, and others that it isn't for": (
        WaitReason.INSUFFICIENT,
        nodes(SELECTOR, "Insufficient cpu", end=""),
        ["No action needed"],
        ["--show-labels"],
    ),
    "a taint": (
        WaitReason.IMPOSSIBLE,
        nodes("node(s) had untolerated taint {example.com/held: yes}"),
        ["toleration of the taint example.com/held", "kubectl taint nodes NODE example.com/held-"],
        ["Reduce the request", "uncordon"],
    ),
    "nodes that aren't ready": (
        WaitReason.IMPOSSIBLE,
        nodes("node(s) had untolerated taint {node.kubernetes.io/unreachable: }"),
        ["Nodes aren't ready", "kubectl describe nodes"],
        ["toleration", "kubectl taint", "Reduce the request"],
    ),
    "a pod larger than the nodes, of which some are cordoned": (
        WaitReason.IMPOSSIBLE,
        nodes(CORDONED, "Insufficient cpu", end=" p needs cpu 64, the largest node has 8"),
        ["Reduce the request", "kubectl uncordon NODE"],
        [],
    ),
    "an image": (
        JobReason.POD_NOT_STARTED,
        "container main of pod j-w-0 can't start: ImagePullBackOff: Back-off pulling",
        ["Fix the image name"],
        [],
    ),
    "a program that ends again and again": (
        JobReason.POD_NOT_STARTED,
        "container main of pod j-w-0 can't start: CrashLoopBackOff: back-off 10s",
        ["kubectl logs j-w-0 -c main -n n --previous"],
        [],
    ),
    "a ConfigMap that the node misses": (
        JobReason.POD_NOT_STARTED,
        'container main of pod j-w-0 can\'t start: CreateContainerConfigError: configmap "c" not found',
        ["kubectl create configmap c -n n --from-file=FILE"],
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_advice_is_about_what_was_said(name: str) -> None:
    reason, message, wanted, unwanted = CASES[name]
    found = said(reason, message)
    assert [words for words in wanted if words not in found] == [], found
    assert [words for words in unwanted if words in found] == [], found


@pytest.mark.parametrize("phase", [JobPhase.FAILED, JobPhase.TERMINATED])
@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("Open", "Run it again from the beginning: vcbatch job requeue j"),
        ("", "Run it again from the beginning: vcbatch job requeue j"),
        ("Closed", "in another: vcbatch job requeue j --queue QUEUE"),
        ("Closing", "then requeue the job: vcbatch queue open q"),
        (QUEUE_GONE, "in another: vcbatch job requeue j --queue QUEUE"),
        (QUEUE_GONE, "then requeue the job: vcbatch queue create q"),
    ],
)
def test_a_finished_job_runs_again_where_a_queue_takes_it(phase: JobPhase, state: str, command: str) -> None:
    found = said(JobReason.POD_FAILED, "x", phase=phase, queue_state=state).splitlines()
    assert any(line.endswith(command) for line in found)
    assert any(line.endswith("job requeue j") for line in found) is (state in ("Open", ""))


def test_a_suspended_job_whose_queue_is_gone_needs_more_than_being_resumed() -> None:
    found = said(JobReason.COMMAND_ISSUED, "", phase=JobPhase.ABORTED, queue_state=QUEUE_GONE)
    assert "vcbatch job resume j" in found
    assert "vcbatch queue create q" in found
    assert "vcbatch job move j QUEUE" in found
    assert said(JobReason.COMMAND_ISSUED, "", phase=JobPhase.ABORTED).splitlines() == [
        "It is suspended: vcbatch job resume j"
    ]


@pytest.mark.parametrize(
    ("queues", "state"),
    [
        ([], ""),
        ([{"metadata": {"name": "other"}}], QUEUE_GONE),
        ([{"metadata": {"name": "q"}}], "Open"),
        ([{"metadata": {"name": "q"}, "status": {"state": "Closing"}}], "Closing"),
    ],
    ids=["none can be read", "gone", "new", "closing"],
)
def test_what_is_known_of_the_queue(queues: list[Json], state: str) -> None:
    assert waiting_of({**JOB, "spec": {"queue": "q"}}, Surroundings(queues=queues)).queue_state == state


def test_what_a_person_found_missing_comes_before_why_the_scheduler_waits() -> None:
    group = {
        "metadata": {"name": "g", "namespace": "n", "ownerReferences": [{"uid": "u", "controller": True, "name": "j"}]},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "Unschedulable", "status": "True", "message": "QueueLimit: the gang needs cpu"}],
        },
    }
    job = {**JOB, "metadata": {**JOB["metadata"], "uid": "u"}}
    around = Surroundings(pod_groups=[group], missing=[("Secret", "s")], missing_for=["w"])
    found = waiting_of(job, around)
    assert (found.reason, found.missing) == (JobReason.OBJECTS_MISSING, [("Secret", "s")])
    assert waiting_of(job, Surroundings(pod_groups=[group])).reason is WaitReason.QUEUE_LIMIT


@pytest.mark.parametrize("reason", [JobReason.QUEUE_NOT_FOUND, JobReason.BACK_OFF])
def test_what_has_to_be_over_first_stays_the_reason(reason: JobReason) -> None:
    job = {**JOB, "status": {"state": {"phase": "Pending", "reason": reason.value, "message": "said"}}}
    found = waiting_of(job, Surroundings(missing=[("Secret", "s")], missing_for=["w"]))
    assert (found.reason, found.message) == (reason, "said")
