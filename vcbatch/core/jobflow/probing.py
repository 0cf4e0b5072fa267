"""Probes: they let a job start before its dependencies have completed.

A dependency is met when its job is Completed, with any results of probes. Before that it is met where at least one
probe applies to it and all of those pass: a probe applies to the targets that have a task of its `taskName`, and
without one to all of them. At least the task's minimum of pods has to pass; without a task one pod of the job is
enough.

The probed addresses follow from the pods of the job alone. `questions` returns the probes to execute, and their results
are in the view.
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
"""The maximum of pods of a task that are probed, in place of all of them."""
MOST_PROBES: Final = 256
"""The maximum of probes of a flow at a time."""


def questions(view: JobFlowView, waiting: Iterable[tuple[Wanted, Child]]) -> list[Probe]:
    """The probes to execute: each pair is the probe of a waiting entry and one of its targets that runs."""
    found: dict[Probe, None] = {}
    for probe, target in waiting:
        for question in (*probe.http_get_list, *probe.tcp_socket_list):
            if _is_about(question.task_name, target):
                found.update(dict.fromkeys(_to_each(question, _pods(view, target, question.task_name))))
    return list(found)[:MOST_PROBES]


def unmet(view: JobFlowView, probe: Wanted, target: Child) -> str:
    """What a target still waits for; empty where its probes pass. Without a probe for it, it has to complete."""
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
    """Whether enough pods of the task, or of each task where none is named, have the wanted phase. For Running,
    succeeded pods count too."""
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
    """The pods that can be probed, by name, so that of very many pods always the same ones are probed."""
    pods = [
        pod
        for pod in view.pods.get(target.uid, ())
        if pod.status.phase == PodPhase.RUNNING
        and pod.status.pod_ip
        and not pod.spec.host_network  # a listener at its node's address need not belong to the pod
        and not pod.metadata.deletion_timestamp
        and (not task or (pod.metadata.labels or {}).get(TASK_SPEC) == task)
    ]
    return sorted(pods, key=lambda pod: pod.metadata.name)[:MOST_PODS]
