"""What must hold whatever happens to a cluster, judged from everything that its watches saw.

Each rule gives the violations as sentences, so that a test fails with what went wrong and when.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.history import DELETED, JOBS, NODES, POD_GROUPS, PODS, Change, Recorder
from vcbatch.api.names import GROUP_NAME, JOB_NAME, TASK_INDEX, TASK_SPEC
from vcbatch.api.quantity import parse_quantity

Json = dict[str, Any]

OVER = ("Succeeded", "Failed")
TERMINAL_JOBS = ("Completed", "Failed", "Terminated", "Aborted")
HALF_STARTED_SECONDS = 30.0
MOST_OF_A_MESSAGE = 20
"""Per program and test: a message may come once for each of some objects, never once for each attempt."""
_WARNING_LEVELS = ("warning", "error", "critical")


def check(
    recorder: Recorder,
    *,
    jobs: Iterable[str] = (),
    logs: Iterable[Path] = (),
    half_started_seconds: float = HALF_STARTED_SECONDS,
    most_of_a_message: int = MOST_OF_A_MESSAGE,
    deleted: Iterable[str] = (),
) -> None:
    """Fail with every violation. `jobs` are the submitted ones (`namespace/name`), `deleted` those of them that were
    deleted on purpose; `logs` are the log files of the programs under test."""
    changes = recorder.changes()
    found = [
        *duplicate_pods(changes),
        *overcommitted_nodes(changes),
        *half_started_gangs(changes, longest=half_started_seconds),
        *lost_jobs(changes, jobs=set(jobs) - set(deleted)),
        *revived_jobs(changes),
    ]
    for log in logs:
        found += noisy_messages(log, most=most_of_a_message)
    assert not found, "\n".join(found)


def duplicate_pods(changes: Sequence[Change]) -> list[str]:
    """One pod for each index of each task of a job, at any time."""
    alive: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    found: list[str] = []
    for change in _of(changes, PODS):
        labels = change.object["metadata"].get("labels") or {}
        owners = change.object["metadata"].get("ownerReferences") or [{}]
        if JOB_NAME not in labels or TASK_INDEX not in labels:
            continue
        key = (owners[0].get("uid", ""), labels[JOB_NAME], labels.get(TASK_SPEC, ""), labels[TASK_INDEX])
        if change.type == DELETED:
            alive[key].pop(change.uid, None)
            continue
        alive[key][change.uid] = change.name
        if len(alive[key]) > 1:
            found.append(f"{'/'.join(key[1:])} has more than one pod at once: {sorted(alive[key].items())}")
    return sorted(set(found))


def overcommitted_nodes(changes: Sequence[Change]) -> list[str]:
    """The requests of a node's unfinished pods never exceed what it has; a node that is gone has nothing to exceed."""
    room = {change.object["metadata"]["name"]: _amounts(change.object["status"]) for change in _of(changes, NODES)}
    used: dict[str, dict[str, _Requests]] = defaultdict(dict)
    found: list[str] = []
    for change in _of(changes, PODS):
        node = (change.object.get("spec") or {}).get("nodeName")
        if not node:
            continue
        if change.type == DELETED or (change.object.get("status") or {}).get("phase") in OVER:
            used[node].pop(change.uid, None)
            continue
        if change.uid in used[node] or node not in room:
            continue
        used[node][change.uid] = _Requests(change.object)
        for resource, have in room[node].items():
            wanted = sum(requests.amounts.get(resource, 0) for requests in used[node].values())
            if wanted > have:
                found.append(f"{node} is over-committed by {change.name}: {resource} {wanted} of {have} (billionths)")
    return found


@dataclass(slots=True)
class _Requests:
    pod: Json
    amounts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.amounts = {"pods": parse_quantity("1").nano}
        for container in self.pod["spec"]["containers"]:
            for resource, amount in ((container.get("resources") or {}).get("requests") or {}).items():
                self.amounts[resource] = self.amounts.get(resource, 0) + parse_quantity(amount).nano


def _amounts(status: Json) -> dict[str, int]:
    return {resource: parse_quantity(amount).nano for resource, amount in (status.get("allocatable") or {}).items()}


def half_started_gangs(changes: Sequence[Change], *, longest: float = HALF_STARTED_SECONDS) -> list[str]:
    """No gang has some of its pods placed and fewer than its minimum for longer than that.

    Pods that have ended count as placed: a gang that winds down isn't half started.
    """
    minimum: dict[str, int] = {}
    placed: dict[str, set[str]] = defaultdict(set)
    ended: dict[str, set[str]] = defaultdict(set)
    since: dict[str, float] = {}
    found: list[str] = []
    last = changes[-1].at if changes else 0.0
    for change in sorted(changes, key=lambda change: change.at):
        if change.path == POD_GROUPS:
            minimum[change.name] = int((change.object.get("spec") or {}).get("minMember") or 0)
            continue
        annotations = change.object["metadata"].get("annotations") or {}
        if change.path != PODS or GROUP_NAME not in annotations:
            continue
        group = f"{change.object['metadata']['namespace']}/{annotations[GROUP_NAME]}"
        _place(change, placed[group], ended[group])
        half = 0 < len(placed[group]) < minimum.get(group, 0) and not ended[group]
        if half:
            since.setdefault(group, change.at)
        elif group in since and (took := change.at - since.pop(group)) > longest:
            found.append(f"{group} was half started for {took:.0f} s")
    found += [f"{group} stays half started" for group, began in since.items() if last - began > longest]
    return found


def _place(change: Change, placed: set[str], ended: set[str]) -> None:
    metadata, status = change.object["metadata"], change.object.get("status") or {}
    leaving = change.type == DELETED or metadata.get("deletionTimestamp")
    if leaving:
        placed.discard(change.uid)
        ended.discard(change.uid)
    elif status.get("phase") in OVER:
        ended.add(change.uid)
    elif (change.object.get("spec") or {}).get("nodeName"):
        placed.add(change.uid)


def lost_jobs(changes: Sequence[Change], *, jobs: Iterable[str]) -> list[str]:
    """Every one of these exists, and nobody deleted it in between."""
    seen: set[str] = set()
    gone: set[str] = set()
    for change in _of(changes, JOBS):
        seen.add(change.name)
        if change.type == DELETED:
            gone.add(change.name)
    return [f"{job} was never seen" for job in jobs if job not in seen] + [
        f"{job} was deleted" for job in jobs if job in gone
    ]


def revived_jobs(changes: Sequence[Change]) -> list[str]:
    """A job that has ended stays so (none of the tests resumes one)."""
    ended: dict[str, str] = {}
    found: list[str] = []
    for change in _of(changes, JOBS):
        phase = ((change.object.get("status") or {}).get("state") or {}).get("phase") or ""
        before = ended.get(change.uid)
        if before and phase != before:
            found.append(f"{change.name} was {before} and is {phase}")
        if phase in TERMINAL_JOBS:
            ended[change.uid] = phase
    return found


def noisy_messages(log: Path, *, most: int = MOST_OF_A_MESSAGE) -> list[str]:
    """Which warnings and errors a program said more often than that, numbers and names aside."""
    counts = Counter(message for message in warnings(log))
    return [f"{log.name} says {count} times: {message}" for message, count in counts.items() if count > most]


def warnings(log: Path) -> list[str]:
    """The warnings and errors of a log in its order, with a `#` for what differs from case to case."""
    found: list[str] = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        record = _record(line)
        if record.get("level") in _WARNING_LEVELS:
            found.append(_template(str(record.get("msg", ""))))
    return found


def tracebacks(log: Path) -> list[str]:
    """Errors that nobody expected: the program wrote where they came from."""
    return [
        str(record["error"])
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
        if "Traceback" in str((record := _record(line)).get("error", ""))
    ] + re.findall(r"^Traceback[^\0]*?(?=^\{|\Z)", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)


def _record(line: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _template(message: str) -> str:
    message = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}\b", "#", message)
    message = re.sub(r"\b[a-z0-9-]+/[a-z0-9.-]+\b", "#", message)
    return re.sub(r"\d+(\.\d+)?", "#", message)


def _of(changes: Sequence[Change], path: str) -> list[Change]:
    return [change for change in changes if change.path == path]
