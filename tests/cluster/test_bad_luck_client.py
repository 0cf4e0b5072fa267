"""The programs when the way to the server, the server's answers or other people spoil their work.

Each time the same is asked: every gang gets done, no pod is made or run twice, no node is over-committed, no gang is
left half-started, the programs stay up, and their logs say what happened a few times and not a thousand.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.components import CONTROLLERS, SCHEDULER, Component, Components
from tests.cluster.controlplane import APISERVER, ControlPlane, Json
from tests.cluster.gangs import gang, phase, submit, wait_phase
from tests.cluster.history import DELETED, JOBS, PODS, Recorder
from tests.cluster.processes import wait_until
from tests.cluster.spoiler import Ask, Cut, Fault, Refuse, Rule, Spoiler, Wait

GANGS, SIZE = 8, 4
NODES, CPUS = 4, 12
MOST_SAID = 20
"""How often one program may say the same of the same object: what fails is tried again later and later, for minutes."""


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    control_plane.add_nodes(NODES, cpu=str(CPUS))
    return control_plane


@dataclass(frozen=True, slots=True)
class Running:
    """One of each program."""

    controllers: Component
    scheduler: Component

    def check(self) -> None:
        """Still the processes that were started, and ready; nothing was said again and again."""
        for component in (self.controllers, self.scheduler):
            component.wait_ready()
            said = Counter(
                (re.sub(r"\d+", "#", line["msg"]), line.get("uid", ""))
                for line in _lines(component)
                if line["level"] in ("warning", "error", "critical")
            )
            assert max(said.values(), default=0) <= MOST_SAID, said


def _lines(component: Component) -> list[Json]:
    said = component.program.said().splitlines(keepends=True)
    said = [line for line in said if line.endswith("\n")]  # the last may be being written
    assert not [line for line in said if not line.startswith("{")], said
    return [json.loads(line) for line in said]


@contextmanager
def running(
    plane: ControlPlane, name: str, *flags: str, server: str = "", env: dict[str, dict[str, str]] | None = None
) -> Iterator[Running]:
    """Both programs, on another address of the server where one is given; ready."""
    with Components(plane) as programs:
        started = {}
        for part in (CONTROLLERS, SCHEDULER):
            own = programs.kubeconfig(part)
            config = plane.through(server, own, name=f"{name}-{part}") if server else own
            started[part] = programs.start(part, *flags, replica=name, kubeconfig=config, env=(env or {}).get(part, {}))
        for component in started.values():
            component.wait_ready()
        yield Running(started[CONTROLLERS], started[SCHEDULER])


def submit_gangs(plane: ControlPlane, name: str, *, seconds: int = 1) -> list[str]:
    names = [f"{name}-{number}" for number in range(GANGS)]
    for each in names:
        submit(plane, gang(each, SIZE, command=f"sleep {seconds}; exit 0"))
    return names


def check_invariants(history: Recorder, names: list[str], *, server_restarted: bool = False) -> None:
    """By what the watches saw: each pod once, on one node for good, nodes never too full. A server that restarts may
    lose what watches go on from; nothing else does."""
    history.catch_up()
    uids: dict[str, set[str]] = {}
    nodes: dict[str, set[str]] = {}
    alive: dict[str, str] = {}
    for change in history.changes(PODS):
        if change.name.partition("/")[2].rpartition("-worker-")[0] not in names:
            continue
        uids.setdefault(change.name, set()).add(change.uid)
        node = change.object["spec"].get("nodeName")
        if node:
            nodes.setdefault(change.uid, set()).add(node)
        ended = change.type == DELETED or change.object["status"].get("phase") in ("Succeeded", "Failed")
        if ended or not node:
            alive.pop(change.uid, None)
        else:
            alive[change.uid] = node
        for each in set(alive.values()):
            assert list(alive.values()).count(each) <= CPUS, f"{each} has too many pods"
    assert {name: found for name, found in uids.items() if len(found) > 1} == {}
    assert {uid: found for uid, found in nodes.items() if len(found) > 1} == {}
    assert len(nodes) == len(names) * SIZE
    assert history.gaps == 0 or server_restarted


def wait_completed(plane: ControlPlane, names: list[str]) -> None:
    for name in names:
        wait_phase(plane, name, "Completed", timeout=180)


def every(third: int, error: Fault, *, of: Callable[[Ask], bool]) -> Rule:
    """That fault for the third, sixth and so on of those requests."""
    return lambda ask: error if of(ask) and ask.number % third == 0 else None


def _write(ask: Ask) -> bool:
    return ask.write


def _mixed(ask: Ask) -> Fault | None:
    if ask.watch or ask.number % 4:
        return None
    return (Refuse(500), Refuse(503), Refuse(503, {"Retry-After": "1"}))[ask.number // 4 % 3]


FAULTS: dict[str, Rule] = {
    "conflicts": every(3, Refuse(409), of=_write),
    "throttled": every(5, Refuse(429, {"Retry-After": "1"}), of=lambda ask: not ask.lease),
    "failing": _mixed,
    "answers-lost": every(4, Cut(), of=lambda ask: ask.write and not ask.lease),
    "answers-cut": every(4, Cut(after=100), of=lambda ask: not ask.watch),
    "watches-cut": lambda ask: Cut(after=6000) if ask.watch else None,
    "slow": lambda ask: Wait(0.5) if not ask.watch else None,
}

LATE = ("answers-cut",)
"""Spoiled only once the programs are ready: kopf begins anew where any of its hundred first answers is cut."""


@pytest.mark.parametrize("name", FAULTS)
def test_programs_start_and_gangs_get_done_though_requests_are_spoiled(plane: ControlPlane, name: str) -> None:
    rule = FAULTS[name]
    with (
        Spoiler(plane, (lambda _: None) if name in LATE else rule) as spoiler,
        running(plane, name, server=spoiler.url) as programs,
        Recorder(plane, PODS, JOBS) as history,
    ):
        spoiler.rule = rule
        names = submit_gangs(plane, name)
        wait_completed(plane, names)
        assert spoiler.spoiled.total() >= 10
        spoiler.rule = lambda _: None
        programs.check()
        check_invariants(history, names)


def test_a_webhook_that_times_out_delays_pods_and_no_more(plane: ControlPlane) -> None:
    with socket.socket() as silent, running(plane, "webhook") as programs, Recorder(plane, PODS, JOBS) as history:
        silent.bind(("127.0.0.1", 0))
        silent.listen(128)
        hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        plane.call("POST", hooks, _webhook(f"https://127.0.0.1:{silent.getsockname()[1]}/"))
        try:
            names = submit_gangs(plane, "webhook")
            wait_until("pods are refused", lambda: "failed calling webhook" in programs.controllers.program.said())
            wait_until("users are told", lambda: "failed calling webhook" in _events(plane))
        finally:
            plane.call("DELETE", f"{hooks}/silent")
        wait_completed(plane, names)
        programs.check()
        check_invariants(history, names)


def test_rights_that_are_taken_away_and_given_back(plane: ControlPlane) -> None:
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    # Without Leases: a server that takes longer than ten seconds to come back would cost them.
    with running(plane, "rights", "--leader-elect=false") as programs, Recorder(plane, PODS, JOBS) as history:
        names = submit_gangs(plane, "rights-before")
        wait_until("the first are at work", lambda: phase(plane, names[0]) in ("Running", "Completed"))
        before = [plane.call("GET", f"{bindings}/vcbatch-{part}") for part in (CONTROLLERS, SCHEDULER)]
        for binding in before:
            plane.call("DELETE", f"{bindings}/{binding['metadata']['name']}")
        try:
            # Watches that are open stay open; those of a new server have to be allowed.
            plane.programs[APISERVER].restart()
            plane.wait_ready()
            names += submit_gangs(plane, "rights-after")
            both = (programs.controllers, programs.scheduler)
            wait_until("both are refused", lambda: all("forbidden" in each.program.said() for each in both))
            # What is refused again and again is tried again later and later.
            tried = [_refused(each) for each in both]
            wait_until(
                "they go on trying",
                lambda: all(_refused(each) > so_far for each, so_far in zip(both, tried, strict=True)),
                timeout=180,
            )
        finally:
            for binding in before:
                kept = {"name": binding["metadata"]["name"]}
                plane.call("POST", bindings, {**binding, "metadata": kept})
        wait_completed(plane, names)
        programs.check()
        check_invariants(history, names, server_restarted=True)


def _refused(component: Component) -> int:
    """How many of its writes the program counted as refused."""
    counted = 0.0
    for line in component.metrics().splitlines():
        failed = line.startswith("vcbatch_scheduler_writes_failed_total")
        if failed or (line.startswith("vcbatch_reconcile_total") and 'result="refused"' in line):
            counted += float(line.rpartition(" ")[2])
    return int(counted)


def test_pod_groups_that_somebody_else_edits_meanwhile(plane: ControlPlane) -> None:
    groups = "/apis/scheduling.volcano.sh/v1beta1"
    stop = threading.Event()
    edits = 0

    def meddle() -> None:
        nonlocal edits
        while not stop.is_set():
            for group in plane.call("GET", f"{groups}/namespaces/default/podgroups")["items"]:
                edits += 1
                patch = {"metadata": {"labels": {"meddled": str(edits)}}, "spec": {"queue": "default"}}
                if edits % 3 == 0:
                    patch["status"] = {"phase": "Pending", "running": 99}
                path = f"{groups}/namespaces/default/podgroups/{group['metadata']['name']}"
                plane.request("PATCH", path, patch, content_type="application/merge-patch+json")

    with running(plane, "meddled") as programs, Recorder(plane, PODS, JOBS) as history:
        meddler = threading.Thread(target=meddle)
        meddler.start()
        try:
            names = submit_gangs(plane, "meddled", seconds=3)
            wait_completed(plane, names)
        finally:
            stop.set()
            meddler.join()
        assert edits >= 20
        programs.check()
        check_invariants(history, names)


@pytest.mark.parametrize("hours", [-1, 1])
def test_clocks_that_disagree(plane: ControlPlane, tmp_path: Path, hours: int) -> None:
    (tmp_path / "sitecustomize.py").write_text(_OTHER_CLOCK)
    skews = {CONTROLLERS: hours * 3600, SCHEDULER: -hours * 3600}
    env = {part: {"PYTHONPATH": str(tmp_path), "SKEW_SECONDS": str(skew)} for part, skew in skews.items()}
    name = "early" if hours < 0 else "late"
    with running(plane, name, env=env) as programs, Recorder(plane, PODS, JOBS) as history:
        # Long enough that they are seen while they run.
        names = submit_gangs(plane, name, seconds=15)
        short = gang(f"{name}-ttl", 1, command="exit 0")
        short["spec"]["ttlSecondsAfterFinished"] = 2
        submit(plane, short)
        # A queue closed and a condition written by somebody who lives a century from now.
        wait_phase(plane, names[0], "Running")
        path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/{names[0]}/status"
        future = {"status": {"state": {"lastTransitionTime": "2126-01-01T00:00:00Z"}}}
        plane.request("PATCH", path, future, content_type="application/merge-patch+json")
        wait_completed(plane, names)
        wait_until(
            "the TTL is over",
            lambda: plane.request("GET", path.replace(f"{names[0]}/status", f"{name}-ttl"))[0] == 404,
        )
        programs.check()
        check_invariants(history, names)


_OTHER_CLOCK = """\
import os
from datetime import timedelta

from vcbatch.runtime.clock import SystemClock

skew = timedelta(seconds=float(os.environ["SKEW_SECONDS"]))
right = SystemClock.now
SystemClock.now = lambda self: right(self) + skew
"""


def _webhook(url: str) -> Json:
    return {
        "metadata": {"name": "silent"},
        "webhooks": [
            {
                "name": "silent.example.org",
                "clientConfig": {"url": url},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                "failurePolicy": "Fail",
                "timeoutSeconds": 1,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


def _events(plane: ControlPlane) -> str:
    return json.dumps(plane.call("GET", "/api/v1/namespaces/default/events"))
