"""The jobs of a flow by its status, in the order of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vcbatch.api.names import flow_job_name
from vcbatch.api.phases import JobFlowPhase, JobPhase
from vcbatch.cli.base.fields import dig, name_of, objects, text
from vcbatch.cli.resources.kinds import flow_phase

Json = dict[str, Any]

_BY_LIST: Final = {
    "completedJobs": JobPhase.COMPLETED,
    "failedJobs": JobPhase.FAILED,
    "terminatedJobs": JobPhase.TERMINATED,
    "runningJobs": JobPhase.RUNNING,
    "pendingJobs": JobPhase.PENDING,
}
_PROBES: Final = ("httpGetList", "tcpSocketList", "taskStatusList")
_BROKEN: Final = (JobPhase.FAILED, JobPhase.TERMINATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An entry of a flow. `probes` is the number of probes that must succeed before its job is created. `phase` is the
    job's, empty where it doesn't exist; `word` describes its state; `broken` says that it failed or is never created.
    """

    name: str
    job: str
    targets: Sequence[str]
    probes: int
    phase: str
    word: str
    broken: bool = False


def nodes_of(flow: Json) -> dict[str, Node]:
    """The entries by name, in the order of the list."""
    phases = _phases(flow)
    entries = objects(flow, "spec", "flows")
    targets = {text(entry, "name"): [str(one) for one in dig(entry, "dependsOn", "targets") or ()] for entry in entries}
    jobs = {name: flow_job_name(name_of(flow), name) for name in targets}
    never = _never(targets, {name for name, job in jobs.items() if phases.get(job) in _BROKEN})
    over = flow_phase(flow) in (JobFlowPhase.FAILED, JobFlowPhase.SUCCEED, JobFlowPhase.TERMINATING)
    found: dict[str, Node] = {}
    for entry in entries:
        name = text(entry, "name")
        phase = phases.get(jobs[name], "")
        open_ = [target for target in targets[name] if phases.get(jobs.get(target, "")) != JobPhase.COMPLETED]
        if phase:
            word = phase
        elif name in never or over:
            word = "not created"
        elif open_:
            word = f"waits for {', '.join(open_)}"
        else:
            word = "due"
        found[name] = Node(
            name=name,
            job=jobs[name],
            targets=targets[name],
            probes=sum(len(objects(entry, "dependsOn", "probe", kind)) for kind in _PROBES),
            phase=phase,
            word=word,
            broken=phase in _BROKEN or word == "not created",
        )
    return found


def _phases(flow: Json) -> dict[str, str]:
    """Job name -> its current phase, else its final one."""
    found = {text(one, "name"): text(one, "state") for one in objects(flow, "status", "jobStatusList")}
    for field, phase in _BY_LIST.items():
        for name in dig(flow, "status", field) or ():
            found[str(name)] = phase
    return {name: phase for name, phase in found.items() if phase}


def _never(targets: Mapping[str, Sequence[str]], broken: set[str]) -> set[str]:
    """The entries that depend on a broken one, directly or indirectly."""
    reached = set(broken)
    while True:
        more = {name for name, on in targets.items() if name not in reached and reached.intersection(on)}
        if not more:
            return reached - broken
        reached |= more


def layers(nodes: Mapping[str, Node]) -> tuple[list[list[str]], list[str]]:
    """The names by depth (the longest chain of dependencies), and those in a cycle or dependent on one."""
    depth: dict[str, int] = {}
    left = dict(nodes)
    while True:
        ready = [name for name, node in left.items() if all(one in depth or one not in nodes for one in node.targets)]
        if not ready:
            break
        for name in ready:
            depth[name] = 1 + max((depth[one] for one in left[name].targets if one in depth), default=-1)
        for name in ready:
            del left[name]
    rows: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in nodes:
        if name in depth:
            rows[depth[name]].append(name)
    return rows, list(left)


def tree(nodes: Mapping[str, Node]) -> Iterator[tuple[Node, tuple[bool, ...]]]:
    """Each entry once, below its deepest dependency, with flags for it and for each ancestor below the root that say
    whether it is the last among its siblings."""
    rows, _ = layers(nodes)
    depth = {name: at for at, row in enumerate(rows) for name in row}
    children: dict[str, list[str]] = {name: [] for name in depth}
    tops: list[str] = []
    for name in (name for row in rows for name in row):
        known = [target for target in nodes[name].targets if target in depth]
        parent = max(known, key=lambda target: depth[target], default=None)
        (tops if parent is None else children[parent]).append(name)

    def below(name: str, lasts: tuple[bool, ...]) -> Iterator[tuple[Node, tuple[bool, ...]]]:
        yield nodes[name], lasts
        for child in children[name]:
            yield from below(child, (*lasts, child == children[name][-1]))

    for top in tops:
        yield from below(top, ())
