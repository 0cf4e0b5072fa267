"""Probes: by which a job is started before those that it depends on are done.

A target is satisfied when its job is Completed, whatever the probes say. Before that it is where at least one probe is
about it, and each of those holds: a probe is about the targets that have a task of its `taskName`, and without one
about all of them. So many pods of the task have to pass as the task needs at least; without a task it takes one of the
job's.

Which address is asked follows from the pods of the job alone. `questions` says what is to be asked, and the answers
come back in the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from vcbatch.api.jobflow import HttpGet, TaskStatus, TcpSocket
from vcbatch.api.jobflow import Probe as Wanted
from vcbatch.api.names import TASK_SPEC
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.core.jobflow.child import Child
from vcbatch.core.jobflow.probe import Probe, ProbeKind
from vcbatch.core.jobflow.view import JobFlowView

MOST_PODS: Final = 64
"""So many pods of a task answer for all of them."""
MOST_PROBES: Final = 256
"""So many questions a flow may have at a time."""


def questions(view: JobFlowView, waiting: Iterable[tuple[Wanted, Child]]) -> list[Probe]:
    """What to ask: each pair is the probe of an entry that waits and one of its targets that runs."""
    found: dict[Probe, None] = {}
    for probe, target in waiting:
        for question in (*probe.http_get_list, *probe.tcp_socket_list):
            if _is_about(question.task_name, target):
                found.update(dict.fromkeys(_to_each(question, _pods(view, target, question.task_name))))
    return list(found)[:MOST_PROBES]


def unmet(view: JobFlowView, probe: Wanted, target: Child) -> str:
    """What a target has yet to do; empty where its probes hold. None is about it: it has to complete."""
    asked = [each for each in (*probe.http_get_list, *probe.tcp_socket_list) if _is_about(each.task_name, target)]
    states = [each for each in probe.task_status_list if _is_about(each.task_name, target)]
    if not asked and not states:
        return f"{target.name} completes"
    for state in states:
        if not _has_reached(state, target):
            return f"task {state.task_name or 'by any name'} of {target.name} is {state.phase}"
    for question in asked:
        if not _answers(view, question, target):
            how = f"answers GET {question.path or '/'}" if isinstance(question, HttpGet) else "listens"
            return f"{_whom(question.task_name, target)} {how} at port {question.port}"
    return ""


def _whom(task: str, target: Child) -> str:
    return f"task {task} of {target.name}" if task else f"a pod of {target.name}"


def _is_about(task: str, target: Child) -> bool:
    return not task or task in target.minima


def _answers(view: JobFlowView, question: HttpGet | TcpSocket, target: Child) -> bool:
    probes = _to_each(question, _pods(view, target, question.task_name))
    passed = sum(view.answers.get(probe, False) for probe in probes)
    return passed >= _enough(question.task_name, target)


def _enough(task: str, target: Child) -> int:
    return min(max(target.minima[task], 1), MOST_PODS) if task else 1


def _has_reached(wanted: TaskStatus, target: Child) -> bool:
    """A pod that succeeded has been running. Without a task each one has to be there."""
    phases = (wanted.phase, PodPhase.SUCCEEDED) if wanted.phase == PodPhase.RUNNING else (wanted.phase,)
    for task in (wanted.task_name,) if wanted.task_name else target.minima:
        counts: Mapping[str, int] = target.tasks.get(task, {})
        if sum(counts.get(phase, 0) for phase in phases) < max(target.minima[task], 1):
            return False
    return True


def _to_each(question: HttpGet | TcpSocket, pods: Sequence[Pod]) -> Iterator[Probe]:
    for pod in pods:
        metadata = pod.metadata
        where = (metadata.uid, metadata.namespace, metadata.name, pod.status.pod_ip)
        if isinstance(question, TcpSocket):
            yield Probe(*where, kind=ProbeKind.TCP, port=question.port)
        else:
            header = question.http_header
            yield Probe(
                *where,
                kind=ProbeKind.HTTP,
                port=question.port,
                path=question.path or "/",
                header=(header.name, header.value) if header is not None else None,
            )


def _pods(view: JobFlowView, target: Child, task: str) -> list[Pod]:
    """Those that can be asked, in the order of their names, so that of very many always the same ones are."""
    pods = [
        pod
        for pod in view.pods.get(target.uid, ())
        if pod.status.phase == PodPhase.RUNNING
        and pod.status.pod_ip
        and not pod.spec.host_network  # what listens at its node's address need not be of the pod
        and not pod.metadata.deletion_timestamp
        and (not task or (pod.metadata.labels or {}).get(TASK_SPEC) == task)
    ]
    return sorted(pods, key=lambda pod: pod.metadata.name)[:MOST_PODS]
