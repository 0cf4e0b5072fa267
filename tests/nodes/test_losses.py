"""Replicas and nodes that go: drained, restarted one after the other, or lost at once."""

from __future__ import annotations

from tests.cluster.history import Recorder
from tests.cluster.processes import wait_until
from tests.nodes.conftest import Figures
from tests.nodes.installed import CONTROLLERS, NAMESPACE, SCHEDULER, Client, Installed, path_of, without_leader
from tests.nodes.namespace import Json, Namespace, container, job, node_of, task

_RESTARTS = [{"event": "PodEvicted", "action": "RestartJob"}]


def _spread(name: str, *, seconds: int | None = None) -> Json:
    """Pods on different nodes where that is possible; with `seconds` they leave an unreachable node after that."""
    selector = {"matchLabels": {"volcano.sh/job-name": name}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    away = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
    keys = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    return {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        **({"tolerations": [{"key": key, **away} for key in keys]} if seconds is not None else {}),
    }


def _uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def test_the_leaders_node_is_drained(installed: Installed, namespace: Namespace, figures: Figures) -> None:
    """Its gang starts again on the other node, somebody else leads, and no creation is refused meanwhile."""
    installed.wait_available()
    runs = container("trap 'exit 3' TERM; sleep 600 & wait")
    namespace.submit(job("gang", task("member", 2, runs, spec=_spread("gang")), policies=_RESTARTS))
    before = namespace.wait_running("gang", 2)
    node, leader = installed.leader_node(SCHEDULER), installed.leader(SCHEDULER)
    assert node in {node_of(pod) for pod in before}
    client = Client(namespace)
    try:
        with client.submitting(), without_leader(installed, SCHEDULER) as seconds:
            done = installed.plane.kubectl(
                "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=150s", timeout=160
            )
            assert done.returncode == 0, done.stdout + done.stderr
            wait_until("another leads", lambda: installed.leader(SCHEDULER) not in ("", leader), pause=0.2)

            def again() -> bool:
                now = namespace.running("gang")
                return len(now) == 2 and not _uids(before) & _uids(now)

            wait_until("the gang runs again", again, timeout=180, pause=0.5)
            assert node not in {node_of(pod) for pod in namespace.running("gang")}
        client.wait_completed()
        figures["drain: longest time between renewals of the scheduler's Lease"] = seconds[0]
        assert client.accepted
        assert client.refused == []
    finally:
        installed.plane.kubectl("uncordon", node)
    installed.wait_available()


def test_replicas_are_restarted_one_after_the_other(installed: Installed, namespace: Namespace) -> None:
    """A running gang isn't disturbed, no creation is refused, and what is submitted meanwhile completes."""
    namespace.submit(job("gang", task("member", 2, container("sleep 600"))))
    before = _uids(namespace.wait_running("gang", 2))
    client = Client(namespace)
    with Recorder(namespace.plane, path_of(namespace.name)) as recorder:
        with client.submitting():
            done = installed.plane.kubectl("rollout", "restart", "deployment", "-n", NAMESPACE)
            assert done.returncode == 0, done.stderr
            installed.wait_available()
        client.wait_completed()
        recorder.catch_up()
        assert not [change for change in recorder.changes() if change.type == "DELETED" and change.uid in before]
    assert client.accepted
    assert client.refused == []
    assert _uids(namespace.running("gang")) == before


def test_a_node_is_lost_with_the_leaders_on_it(installed: Installed, namespace: Namespace, figures: Figures) -> None:
    """As when a machine loses its power: others lead, and the gang starts again once its lost pods are given up.

    That takes somebody who knows that the node is off, and says so by the taint out-of-service.
    """
    installed.wait_available()
    runs = container("sleep 600")
    gang = job("gang", task("member", 2, runs, spec=_spread("gang", seconds=2)), policies=_RESTARTS)
    namespace.submit(gang)
    before = namespace.wait_running("gang", 2)
    node = installed.bed.nodes[installed.leader_node(SCHEDULER)]
    assert node.name in {node_of(pod) for pod in before}
    leaders = {part: installed.leader(part) for part in (CONTROLLERS, SCHEDULER)}
    lost = [part for part in leaders if installed.leader_node(part) == node.name]
    with without_leader(installed, SCHEDULER) as seconds:
        node.kill()
        try:
            for part in lost:
                wait_until(
                    f"another {part} leads",
                    lambda part=part: installed.leader(part) not in ("", leaders[part]),
                    pause=0.2,
                )
            taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
            wait_until("the node is known to be lost", lambda: not installed.bed.is_ready(node.name), pause=0.5)
            done = installed.plane.kubectl("taint", "node", node.name, taint)
            assert done.returncode == 0, done.stderr

            def again() -> bool:
                now = namespace.running("gang")
                return len(now) == 2 and not _uids(before) & _uids(now)

            wait_until("the gang runs again", again, timeout=180, pause=0.5)
            assert {node_of(pod) for pod in namespace.running("gang")}.isdisjoint({node.name})
        finally:
            installed.bed.start_node(node)
            installed.plane.kubectl("taint", "node", node.name, "node.kubernetes.io/out-of-service-")
    figures["lost node: longest time between renewals of the scheduler's Lease"] = seconds[0]
    installed.bed.wait_ready(node.name)
    installed.wait_available()
