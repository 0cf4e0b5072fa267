"""What an event in the life of an installation costs those who use it, counted from the API server's audit log.

A scenario is such an event: gangs run before it begins, and somebody submits all the time. Each adds a row to one
table, which the summary of the run shows.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, ClassVar

from tests.cluster.audit import AuditLog, Entry
from tests.cluster.processes import wait_until
from tests.nodes.bed import Bed
from tests.nodes.installed import CONTROLLERS, NAMESPACE, SCHEDULER
from tests.nodes.namespace import Json, Namespace, container, job, node_of, task
from vcbatch.api.resources import JOBS
from vcbatch.api.timestamps import format_micro_time, parse_time

CLIENT = "life-cycle-client"
_OURS = f"system:serviceaccount:{NAMESPACE}:"
_PAUSE = 3.0
"""Seconds between two submissions."""
_DRY_PAUSE = 0.1
"""Seconds between two dry runs, which fill the time between submissions: a moment in which jobs are refused shows."""
_STUCK_SECONDS = 180
"""A short job that takes longer counts as stuck."""
_GANG = 2
RESTARTS = [{"event": "PodEvicted", "action": "RestartJob"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one scenario. Those that don't exist, e.g. of a leader where none is to be, are None."""

    scenario: str
    disturbed: int
    """Running pods that were deleted, evicted or restarted, but for those whose node or whose gang's node was taken."""
    taken: int
    """Pods of gangs that ran on the node that was drained or lost."""
    created: int
    """Jobs (also as dry runs) and pods of the client that the API server accepted."""
    refused: int
    """Creations of the client that it answered with 400 or more."""
    by_policy: int
    """Further ones while webhooks were down and asked all the same: of jobs, whose failure policy is Fail."""
    stuck: int
    """Jobs of the client that didn't complete."""
    scheduler: float | None
    """Seconds without a leader."""
    controllers: float | None
    next_gang: int | None
    """Seconds until the first gang ran that was submitted after the event had begun."""
    longest_wait: int | None
    """The longest that any gang of the client waited between its creation and its start, in seconds."""
    seconds: float
    """How long the scenario took, with the start of its gangs."""

    HEADS: ClassVar[Sequence[str]] = (
        "Event", "pods disturbed", "creations refused", "of", "jobs stuck", "no scheduler, s", "no controllers, s",
        "next gang after, s", "longest wait, s",
    )  # fmt: skip

    def cells(self) -> list[str]:
        """As the table shows them."""
        leaders = ["-" if each is None else f"{each:.1f}" for each in (self.scheduler, self.controllers)]
        waits = ["-" if each is None else str(each) for each in (self.next_gang, self.longest_wait)]
        return [
            self.scenario,
            str(self.disturbed) + (f" (and {self.taken} whose node went)" if self.taken else ""),
            str(self.refused) + (f" (and {self.by_policy} jobs, by policy)" if self.by_policy else ""),
            str(self.created + self.refused + self.by_policy), str(self.stuck), *leaders, *waits,
        ]  # fmt: skip


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of Markdown."""
    lines = [Row.HEADS, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    made = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines]
    return [made[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *made[1:]]


def write(rows: Sequence[Row], path: Path) -> None:
    """The rows as JSON."""
    path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Somebody held a Lease: a write of it that the API server accepted. Nobody does where `holder` is empty."""

    at: datetime
    holder: str
    seconds: int
    """For how long, unless it is renewed."""


def gaps(holds: Sequence[Hold]) -> list[float]:
    """How many seconds nobody led, for each time that this was so.

    Between two holders that is the time from the last write of the one to the first of the other; where the holder is
    the same, it is what its Lease was too old.
    """
    found: list[float] = []
    last: Hold | None = None
    for hold in holds:
        if last is not None and hold.holder:
            passed = (hold.at - last.at).total_seconds()
            late = passed - last.seconds if hold.holder == last.holder else passed
            found += [late] if late > 0 else []
        if last is None or hold.holder or last.holder:
            last = hold
    return found


def holds(entries: Sequence[Entry], lease: str) -> list[Hold]:
    """What the audit log says of a Lease of vcbatch."""
    return [
        Hold(
            at=parse_time(entry.done),
            holder=entry.body["spec"].get("holderIdentity") or "",
            seconds=entry.body["spec"].get("leaseDurationSeconds") or 0,
        )
        for entry in entries
        if entry.resource == "leases" and entry.name == lease and entry.code < 300 and "spec" in entry.body
    ]


def during(held: Sequence[Hold], began: datetime) -> list[Hold]:
    """Those from then on, and the last one before: whoever led may never write again."""
    return [*[hold for hold in held if hold.at <= began][-1:], *(hold for hold in held if hold.at > began)]


class Client:
    """Somebody who submits a short gang, and a pod for another scheduler, again and again, whatever happens; and jobs
    as dry runs all the time.

    Where the API server doesn't answer the client waits until it is ready, as a load balancer would have it.
    """

    def __init__(self, namespace: Namespace, prefix: str) -> None:
        self._plane = namespace.plane
        self._namespace = namespace.name
        self._context = self._plane.context_of(CLIENT)
        self.prefix = prefix
        """How the names of its jobs begin."""
        self.accepted: list[str] = []
        """The names of its jobs."""
        self.refusals: list[str] = []
        """What it was told."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=CLIENT)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def wait_accepted(self, *, after: int = 0) -> None:
        """Return once more than so many of its jobs were accepted."""
        wait_until("a job is accepted", lambda: len(self.accepted) > after, pause=0.1)

    def _run(self) -> None:
        jobs, pods = JOBS.path(namespace=self._namespace), f"/api/v1/namespaces/{self._namespace}/pods"
        served = False
        for number in itertools.count():
            if self._end.is_set():
                return
            name = f"{self.prefix}-{number}"
            served = served or self._get(jobs)
            if served and self._create(jobs, _short(name)):
                self.accepted.append(name)
            self._create(pods, _held(name))
            until = time.monotonic() + _PAUSE
            while time.monotonic() < until and not self._end.wait(_DRY_PAUSE):
                if served:
                    self._create(f"{jobs}?dryRun=All", _short(f"{name}-dry"))

    def _get(self, path: str) -> bool:
        try:
            return self._plane.request("GET", path, context=self._context)[0] == 200
        except (OSError, HTTPException):
            return False

    def _create(self, path: str, body: Json) -> bool:
        try:
            code, answer = self._plane.request("POST", path, body, context=self._context)
        except (OSError, HTTPException):
            while not self._end.is_set() and not self._get("/readyz"):
                self._end.wait(0.2)
            return False
        if code >= 400:
            self.refusals.append(f"{path}: {code} {answer}")
        return code < 300


def _short(name: str) -> Json:
    runs = container("true", cpu="10m", memory="8Mi")
    return job(name, task("member", _GANG, runs), policies=RESTARTS)


def _held(name: str) -> Json:
    """A pod for the default scheduler, which doesn't place it: only its creation counts."""
    spec = {"schedulingGates": [{"name": "life-cycle.test/held"}], "containers": [container("true")]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"held-{name}"}, "spec": spec}


@dataclass(slots=True, kw_only=True)
class Scenario:
    """One event while it lasts."""

    name: str
    client: Client
    before: dict[str, Json]
    """The pods that ran when it began, by name."""
    began: str
    """When it began, as the audit log writes times."""
    since: float
    awaited: str = ""
    """From when on the next gang counts."""
    outage: float = 0.0
    """Seconds that the API server was away."""
    installed: bool
    """Whether vcbatch was there when it began."""
    led: bool = True
    """Whether somebody has to lead all the time."""
    down: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """From when until when webhooks were down and asked all the same."""

    def go(self) -> None:
        """The event begins now: from here on the next gang is waited for."""
        self.awaited = now()

    @contextmanager
    def webhooks_down(self) -> Iterator[None]:
        """Jobs may be refused as long as this lasts."""
        start = now()
        yield
        self.down.append((start, now()))


class LifeCycle:
    """The gangs and pods that run all the time, and the rows so far."""

    def __init__(self, bed: Bed, namespace: Namespace, rows: list[Row]) -> None:
        self.namespace = namespace
        self.plane = namespace.plane
        self.rows = rows
        self._nodes = list(bed.nodes)
        self._log = AuditLog(bed.audited)
        self._numbers = itertools.count(1)

    def open(self) -> None:
        """Let the client submit, and start a pod without vcbatch on each node."""
        rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": CLIENT}}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": CLIENT}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": CLIENT}
        rules = [
            {"apiGroups": [JOBS.api_version.partition("/")[0]], "resources": ["jobs"], "verbs": ["create", "list"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
        ]
        self.namespace.apply({**rights, "kind": "Role", "rules": rules})
        self.namespace.apply({**rights, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
        for node in self._nodes:
            spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [container(_WAITS)]}
            plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"plain-{node}"}, "spec": spec}
            self.namespace.apply(plain)
            self.namespace.kubectl("wait", "--for=condition=Ready", f"pod/plain-{node}", "--timeout=120s")

    @contextmanager
    def scenario(self, name: str, *, vcbatch: bool = True, node: str = "") -> Iterator[Scenario]:
        """Gangs run and somebody submits as long as this lasts; in the end the counts make a row, and have to be right.

        `vcbatch`: whether it is installed when this begins. `node`: the one that is drained or lost, of which pods go;
        of the others only gangs with a member there.
        """
        since = time.monotonic()
        if vcbatch:
            self._start_gangs()
        before = {pod["metadata"]["name"]: pod for pod in self._running()}
        client = Client(self.namespace, f"e{next(self._numbers)}")
        began = now()
        scenario = Scenario(name=name, client=client, before=before, began=began, since=since, installed=vcbatch)
        client.start()
        try:
            if vcbatch:
                client.wait_accepted()
            scenario.go()
            yield scenario
            client.wait_accepted(after=len(client.accepted))
        finally:
            client.stop()
        row, wrong = self._judge(scenario, node)
        self.rows.append(row)
        self._remove(client)
        assert not wrong, f"{name}: {'; '.join(wrong)}"

    # What runs all the time

    def _start_gangs(self) -> None:
        """One gang on each node, and one on both, which restarts where a member is evicted."""
        present = {each["metadata"]["name"] for each in self.plane.call("GET", self._path(JOBS.path))["items"]}
        runs = container(_WAITS)
        for name, where in [
            *((f"on-{node}", {"nodeSelector": {"kubernetes.io/hostname": node}}) for node in self._nodes),
            ("spread", _spread("spread")),
        ]:
            if name not in present:
                self.namespace.submit(job(name, task("member", _GANG, runs, spec=where), policies=RESTARTS))
        for name in (*(f"on-{node}" for node in self._nodes), "spread"):
            self.namespace.wait_running(name, _GANG)

    def _running(self) -> list[Json]:
        found = self.plane.call("GET", f"/api/v1/namespaces/{self.namespace.name}/pods")["items"]
        return [
            pod
            for pod in found
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
            and pod["metadata"]["name"].startswith(("plain-", "on-", "spread-"))
        ]

    def _remove(self, client: Client) -> None:
        """Take the client's jobs away; nobody waits for it."""
        for name in client.accepted:
            self.plane.request("DELETE", JOBS.path(namespace=self.namespace.name, name=name))

    def _path(self, path: Any) -> str:
        return str(path(namespace=self.namespace.name))

    # Counts

    def _judge(self, scenario: Scenario, node: str) -> tuple[Row, list[str]]:
        """The row, and what is wrong with it."""
        client = scenario.client
        stuck = self._stuck(client)
        until = now()
        entries = [entry for entry in self._log.entries() if entry.done <= until]
        here = [entry for entry in entries if entry.namespace == self.namespace.name and entry.done > scenario.began]
        disturbed, taken = self._disturbed(scenario, here, node)
        creates = [entry for entry in here if entry.user == CLIENT and entry.verb == "create"]
        refused = [entry for entry in creates if entry.code >= 400]
        by_policy = [
            entry for entry in refused
            if entry.resource == "jobs" and any(start <= entry.at <= end for start, end in scenario.down)
        ]  # fmt: skip
        wrong = [f"{name} was disturbed" for name in sorted(disturbed)] + [f"{name} is stuck" for name in stuck]
        if len(refused) > len(by_policy):
            wrong += [f"{len(refused) - len(by_policy)} creations were refused: {client.refusals[:3]}"]
        led: dict[str, float | None] = {}
        for part in (SCHEDULER, CONTROLLERS):
            held = during(holds(entries, f"vcbatch-{part}"), parse_time(scenario.began))
            found = gaps(held)
            led[part] = sum(found) if held and scenario.installed else None
            bound = 2 * max((hold.seconds for hold in held), default=0) + scenario.outage
            if scenario.led and (not held or max(found, default=0) > bound):
                wrong.append(f"nobody led the {part} for {found} s, and {bound} are allowed: {held}")
        starts = self._starts(client)
        begun = {entry.name: entry.at for entry in creates if entry.name in starts}
        waits = [_seconds(at, starts[name]) for name, at in begun.items()]
        nexts = [_seconds(scenario.awaited, starts[name]) for name, at in begun.items() if at >= scenario.awaited]
        row = Row(
            scenario=scenario.name,
            disturbed=len(disturbed),
            taken=len(taken),
            created=len([entry for entry in creates if entry.code < 300]),
            refused=len(refused) - len(by_policy),
            by_policy=len(by_policy),
            stuck=len(stuck),
            scheduler=led[SCHEDULER],
            controllers=led[CONTROLLERS],
            next_gang=min(nexts, default=None),
            longest_wait=max(waits, default=None),
            seconds=time.monotonic() - scenario.since,
        )
        return row, wrong

    def _stuck(self, client: Client) -> list[str]:
        """The client's jobs that aren't completed after a while."""

        def left() -> list[str]:
            found = self.plane.call("GET", self._path(JOBS.path))["items"]
            phases = {each["metadata"]["name"]: each.get("status", {}).get("state", {}).get("phase") for each in found}
            return [name for name in client.accepted if phases.get(name) != "Completed"]

        try:
            wait_until("the client's jobs are completed", lambda: not left(), timeout=_STUCK_SECONDS, pause=0.5)
        except AssertionError:
            return left()
        return []

    def _starts(self, client: Client) -> dict[str, datetime]:
        """When the last member of each of the client's jobs started, by its kubelet, which tells whole seconds."""
        found = self.plane.call("GET", f"/api/v1/namespaces/{self.namespace.name}/pods")["items"]
        starts: dict[str, list[datetime]] = {}
        for pod in found:
            for status in pod["status"].get("containerStatuses", ()):
                for state in status["state"].values():
                    if state.get("startedAt"):
                        starts.setdefault(_job_of(pod["metadata"]["name"]), []).append(parse_time(state["startedAt"]))
        return {name: max(starts[name]) for name in client.accepted if len(starts.get(name, ())) == _GANG}

    def _disturbed(self, scenario: Scenario, entries: Sequence[Entry], node: str) -> tuple[set[str], set[str]]:
        """The running pods that were harmed, by name; and those whose node or whose gang's node was taken."""
        ends = [
            entry
            for entry in entries
            if entry.code < 300
            and (entry.right[1:] == ("pods", "delete") or entry.right[1:] == ("pods/eviction", "create"))
            and (entry.name in scenario.before or entry.name.startswith(f"{scenario.client.prefix}-"))
        ]
        present = {pod["metadata"]["uid"]: pod for pod in self._running()}
        harmed = {entry.name for entry in ends} | {
            name for name, pod in scenario.before.items() if _restarts(present.get(pod["metadata"]["uid"])) != 0
        }
        if not node:
            return harmed, set()
        gone = {_job_of(name) for name, pod in scenario.before.items() if node_of(pod) == node}
        # A short pod's node isn't known any more; it was on the node if somebody else than vcbatch ended it.
        gone |= {_job_of(entry.name) for entry in ends if not entry.user.startswith(_OURS)} - {
            _job_of(name) for name in scenario.before
        }
        taken = {name for name in harmed if _job_of(name) in gone}
        return harmed - taken, taken


_WAITS = "trap 'exit 3' TERM; sleep 3600 & wait"


def _spread(name: str) -> Json:
    """Pods on different nodes where that is possible."""
    selector = {"matchLabels": {"volcano.sh/job-name": name}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _restarts(pod: Json | None) -> int:
    """How often its containers were started again; -1 where there is no such pod."""
    if pod is None:
        return -1
    return sum(status["restartCount"] for status in pod["status"].get("containerStatuses", ()))


def _seconds(start: str, end: datetime) -> int:
    """From a time of the audit log to one of a kubelet, of which the fraction is cut off."""
    return round((end - parse_time(start)).total_seconds() + 0.5)


def _job_of(pod: str) -> str:
    """The name of the job by that of its pod, or of the pod where it is of none."""
    name, _, rest = pod.rpartition("-member-")
    return name if rest.isdecimal() else pod


def now() -> str:
    """As the audit log writes times."""
    return format_micro_time(datetime.now(UTC))
