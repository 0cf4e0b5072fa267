"""Two replicas of each program: one works, the other takes over, and never do both."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cluster import audit
from tests.cluster.components import CONTROLLERS, NAMESPACE, SCHEDULER, Component, Components
from tests.cluster.conftest import MakeControlPlane
from tests.cluster.controlplane import ControlPlane, Json
from tests.cluster.gangs import gang, status, submit, wait_phase
from tests.cluster.history import JOBS, PODS, Recorder
from tests.cluster.processes import wait_until

PARTS = (CONTROLLERS, SCHEDULER)
LOST = 3
"""Exit status of a replica whose Lease was lost."""
OWN_SECONDS = 10
"""How long somebody else's Lease is good for: he renews it every half second, on a machine that may be busy."""
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


@dataclass(frozen=True, slots=True)
class Bed:
    """A control plane with nodes, what its API server audits, and the programs on it."""

    plane: ControlPlane
    log: audit.AuditLog
    programs: Components


@pytest.fixture
def bed(make_control_plane: MakeControlPlane, tmp_path: Path) -> Iterator[Bed]:
    plane = make_control_plane(audit.options(tmp_path))
    plane.add_nodes(4)
    with Components(plane) as programs:
        yield Bed(plane, audit.AuditLog(tmp_path), programs)


def replicas(bed: Bed, part: str, *flags: str) -> tuple[Component, Component]:
    """Two of that program, the first of which leads."""
    first = bed.programs.start(part, *flags, replica="a").wait_ready()
    wait_until("the first leads", first.leading)
    second = bed.programs.start(part, *flags, replica="b").wait_ready()
    assert not second.leading()
    return first, second


def lease(bed: Bed, part: str) -> Json:
    spec: Json = bed.plane.call("GET", f"{_LEASES}/vcbatch-{part}")["spec"]
    return spec


def submit_gangs(bed: Bed, count: int = 30, pods: int = 4) -> list[str]:
    names = [f"gang-{number}" for number in range(count)]
    for name in names:
        submit(bed.plane, gang(name, pods, command="sleep 2; exit 0"))
    return names


def check_done_once(bed: Bed, history: Recorder, names: list[str], pods: int = 4) -> None:
    """Every gang is Completed, with as many pods as it has, each created and bound once, and none run again."""
    for name in names:
        wait_phase(bed.plane, name, "Completed")
        found = status(bed.plane, name)
        assert not found.get("retryCount"), f"{name} was restarted: {found}"
        assert found.get("succeeded") == pods
    history.catch_up()
    uids: dict[str, set[str]] = {}
    nodes: dict[str, set[str]] = {}
    for change in history.changes(PODS):
        uids.setdefault(change.name, set()).add(change.uid)
        if change.object["spec"].get("nodeName"):
            nodes.setdefault(change.uid, set()).add(change.object["spec"]["nodeName"])
    assert len(uids) == len(names) * pods
    assert {name: found for name, found in uids.items() if len(found) > 1} == {}
    assert {uid: found for uid, found in nodes.items() if len(found) > 1} == {}
    assert len(nodes) == len(names) * pods
    # What was carried out for a client that was gone by then has another code.
    done = Counter(entry.name for entry in bed.log.entries() if entry.resource == "pods/binding" and entry.code < 300)
    assert {name: times for name, times in done.items() if times > 1} == {}


def both(bed: Bed) -> tuple[list[Component], list[Component]]:
    """The leaders and the followers of both programs."""
    pairs = [replicas(bed, part) for part in PARTS]
    return [leader for leader, _ in pairs], [follower for _, follower in pairs]


def wait_led(followers: list[Component]) -> None:
    """All of them lead. How soon is held under virtual time, by the tests of the Lease's rules."""
    wait_until("the others lead", lambda: all(follower.leading() for follower in followers), timeout=90)


def wait_for_the_middle(bed: Bed) -> None:
    """Both programs are at work: some pods are created and some bound."""

    def creates(resource: str) -> int:
        return sum(1 for entry in bed.log.entries() if entry.resource == resource and entry.verb == "create")

    wait_until("it is in the middle", lambda: creates("pods") >= 40 and creates("pods/binding") >= 10, pause=0.01)


def test_killed_leaders_are_replaced_and_nothing_is_lost_or_done_twice(bed: Bed) -> None:
    leaders, followers = both(bed)
    with Recorder(bed.plane, PODS, JOBS) as history:
        names = submit_gangs(bed)
        wait_for_the_middle(bed)
        for leader in leaders:
            leader.program.kill()
        wait_led(followers)
        check_done_once(bed, history, names)
    assert history.gaps == 0


def test_leaders_that_are_stopped_give_their_leases_back(bed: Bed) -> None:
    leaders, followers = both(bed)
    identities = [_identity(leader) for leader in leaders]
    for leader in leaders:
        assert leader.program.stop() == 0
    wait_led(followers)
    assert not {lease(bed, part)["holderIdentity"] for part in PARTS} & {*identities}
    for follower in followers:
        follower.wait_ready()


def test_frozen_leaders_write_nothing_once_others_lead(bed: Bed) -> None:
    leaders, followers = both(bed)
    with Recorder(bed.plane, PODS, JOBS) as history:
        names = submit_gangs(bed)
        wait_for_the_middle(bed)
        for leader in leaders:
            leader.program.send(signal.SIGSTOP)
        frozen = time.monotonic()
        wait_led(followers)
        taken = {part: _moment(lease(bed, part)["acquireTime"]) for part in PARTS}
        wait_until("they were frozen for 25 s", lambda: time.monotonic() - frozen >= 25, timeout=30)
        for leader in leaders:
            leader.program.send(signal.SIGCONT)
        for leader in leaders:
            assert leader.program.wait_ended() == LOST
            assert _said_of_the_end(leader) == 1
        check_done_once(bed, history, names)
    for part, leader in zip(PARTS, leaders, strict=True):
        writes = [entry for entry in bed.log.entries() if _identity(leader) in entry.agent and entry.writes]
        assert writes
        late = [entry for entry in writes if _moment(entry.at) >= taken[part]]
        # A renewal that was half-way out names the version it is based on, and changes nothing.
        assert [entry for entry in late if (entry.resource, entry.code) != ("leases", 409)] == []


def test_leaders_that_cant_renew_stop_before_others_may_begin(bed: Bed) -> None:
    leaders, followers = both(bed)
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
    before = [bed.plane.call("GET", f"{bindings}/vcbatch-{part}") for part in PARTS]
    for part in PARTS:
        bed.plane.call("DELETE", f"{bindings}/vcbatch-{part}")
    for part, leader in zip(PARTS, leaders, strict=True):
        assert leader.program.wait_ended() == LOST
        assert _said_of_the_end(leader) == 1
        # How soon it ends is held under virtual time. Here nobody can take the Lease, and what counts is that nothing
        # was written that a follower who could have might not have known of.
        held = lease(bed, part)
        assert (held["holderIdentity"], held.get("leaseTransitions", 0)) == (_identity(leader), 0)
        old = _moment(held["renewTime"]) + timedelta(seconds=held["leaseDurationSeconds"])
        done = [entry for entry in bed.log.entries() if _identity(leader) in entry.agent and entry.writes]
        assert done
        assert not [entry for entry in done if _moment(entry.at) >= old and entry.code < 300]
    # They may still read it where anybody may: that they can't take it shows when it is old.
    wait_until("no follower says that it could take over", lambda: not any(one.ready() for one in followers))
    assert not any(one.leading() for one in followers)
    for binding in before:
        bed.plane.call("POST", bindings, _fresh(binding))
    wait_led(followers)
    for follower in followers:
        assert follower.program.said().count("lease was not taken") <= 2


def test_only_the_own_clock_says_how_old_a_lease_is(bed: Bed) -> None:
    # Renewed now and again by somebody whose clock is in the last century: that is a live leader.
    ancient = datetime(1999, 1, 1, tzinfo=UTC)
    stop = threading.Event()
    bed.plane.call("POST", _LEASES, _lease(SCHEDULER, ancient))

    def renew() -> None:
        number = 0
        while not stop.wait(0.5):
            number += 1
            body = {"spec": {"renewTime": _micro(ancient + timedelta(seconds=number))}}
            bed.plane.call("PATCH", f"{_LEASES}/vcbatch-{SCHEDULER}", body, content_type="application/merge-patch+json")

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        scheduler = bed.programs.start(SCHEDULER, "--leader-elect-retry-period=500ms").wait_ready()
        checked = _reconciles(bed)
        enough = checked + OWN_SECONDS * 2.5  # two a second at most
        wait_until("it looked at the Lease for longer than a duration", lambda: _reconciles(bed) > enough)
        assert not scheduler.leading()
    finally:
        stop.set()
        renewing.join()
    # Renewed in a future that its holder doesn't live to see: dead, once it doesn't change.
    body = {"spec": {"renewTime": _micro(datetime(2999, 1, 1, tzinfo=UTC))}}
    bed.plane.call("PATCH", f"{_LEASES}/vcbatch-{SCHEDULER}", body, content_type="application/merge-patch+json")
    wait_until("it leads", scheduler.leading)
    scheduler.wait_ready()
    changed, taken = _around_the_taking(bed)
    assert _moment(taken.at) - _moment(changed.at) >= timedelta(seconds=OWN_SECONDS)


def _around_the_taking(bed: Bed) -> tuple[audit.Entry, audit.Entry]:
    """The last change of the Lease by its old holder, a patch, and the update that took it over."""
    ours = ("leases", f"vcbatch-{SCHEDULER}", 200)
    writes = [e for e in bed.log.entries() if e.writes and (e.resource, e.name, e.code) == ours]
    taking = next(number for number, entry in enumerate(writes) if entry.verb == "update")
    return writes[taking - 1], writes[taking]


def _reconciles(bed: Bed) -> int:
    return sum(1 for entry in bed.log.entries() if entry.resource == "leases" and entry.verb == "get" and
               entry.agent.endswith("leader-election"))  # fmt: skip


def _lease(part: str, renewed: datetime) -> Json:
    spec = {
        "holderIdentity": "somebody",
        "leaseDurationSeconds": OWN_SECONDS,
        "acquireTime": _micro(renewed),
        "renewTime": _micro(renewed),
        "leaseTransitions": 7,
    }
    return {"metadata": {"name": f"vcbatch-{part}"}, "spec": spec}


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _fresh(stored: Json) -> Json:
    """The object as a new one."""
    kept = {key: stored["metadata"][key] for key in ("name", "namespace") if key in stored["metadata"]}
    return {key: value for key, value in stored.items() if key != "metadata"} | {"metadata": kept}


def _identity(component: Component) -> str:
    """What the replica called itself when it took the Lease."""
    for line in component.program.said().splitlines():
        record = json.loads(line)
        if record["msg"] == "leading":
            return str(record["identity"])
    raise AssertionError(f"{component.program.name} never led")


def _said_of_the_end(component: Component) -> int:
    return component.program.said().count("exiting, so that two replicas never decide at once")
