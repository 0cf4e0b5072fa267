"""What an installation loses for a while: replicas, nodes, the API server, certificates, all webhooks."""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from dataclasses import replace

from tests.cluster.controlplane import APISERVER
from tests.cluster.processes import wait_until
from tests.nodes.installed import CONTROLLERS, NAMESPACE, SCHEDULER, WEBHOOKS, Installed
from tests.nodes.lifecycle import LifeCycle
from tests.nodes.namespace import Json, Namespace, container, job, node_of, task
from vcbatch.api.resources import JOBS, SECRETS
from vcbatch.runtime.clock import SystemClock
from webhooks.certificates.issue import Material, carry_out, read
from webhooks.certificates.rotation import LEAF_LIFE, Plan

_LED = (SCHEDULER, CONTROLLERS)
_SECRET = SECRETS.path(namespace=NAMESPACE, name="volcano-admission-secret")
_SHOWN = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], 8443)))"


def _wait_others_lead(installed: Installed, before: dict[str, str]) -> None:
    """Return once the Leases have other holders than these."""

    def others() -> bool:
        return all(installed.lease(part).get("holderIdentity") not in ("", None, before[part]) for part in before)

    wait_until(f"others lead than {before}", others, pause=0.2)


def _holders(installed: Installed, *parts: str) -> dict[str, str]:
    return {part: str(installed.lease(part).get("holderIdentity")) for part in parts}


def _wait_again(life: LifeCycle, before: list[Json], node: str) -> None:
    """Return once the gang on both nodes runs as other pods, none of them on that node."""

    def again() -> bool:
        now = life.namespace.running("spread")
        return len(now) == 2 and not _uids(before) & _uids(now)

    wait_until("the gang runs again", again, timeout=180, pause=0.5)
    assert node not in {node_of(pod) for pod in life.namespace.running("spread")}


def _uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def test_one_replica_of_each_program_is_lost(installed: Installed, life: LifeCycle) -> None:
    """The leaders are killed, as by the kernel for their memory; one pod of the webhooks is deleted."""
    installed.wait_available()
    with life.scenario("loss of one replica of each program") as scenario:
        before = _holders(installed, *_LED)
        leaders = [installed.leader(part) for part in _LED]
        scenario.go()
        for pod in (each for part in _LED for each in installed.pods(part)):
            if pod["metadata"]["name"] in leaders:
                installed.kill(pod)
        gone = installed.pods(WEBHOOKS)[0]["metadata"]["name"]
        installed.plane.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{gone}")
        _wait_others_lead(installed, before)
        installed.wait_available()


def test_the_api_server_is_restarted(installed: Installed, life: LifeCycle) -> None:
    """Whoever leads goes on, or somebody else does where that took too long."""
    installed.wait_available()
    server = installed.plane.programs[APISERVER]
    with life.scenario("restart of the API server") as scenario:
        scenario.go()
        began = time.monotonic()
        server.restart()
        installed.plane.wait_ready()
        scenario.outage = time.monotonic() - began
        before = {part: installed.lease(part)["renewTime"] for part in _LED}
        for part in _LED:
            wait_until(
                f"the {part} is led", lambda part=part: installed.lease(part)["renewTime"] != before[part], pause=0.2
            )
        scenario.client.wait_accepted(after=len(scenario.client.accepted) + 3)
    installed.wait_available()


def test_certificates_are_replaced(installed: Installed, life: LifeCycle) -> None:
    """First the certificate, when two thirds of its life are over; then all of it, when the Secret was emptied."""
    installed.wait_available()
    with life.scenario("certificate, then authority replaced") as scenario:
        scenario.go()
        aged = _aged(_material(installed))
        _put(installed, aged.data())
        wait_until("a new certificate is made", lambda: _material(installed).certificate != aged.certificate, pause=0.2)
        assert _material(installed).bundle == aged.bundle
        _wait_shown(installed)
        _put(installed, {})
        wait_until("a new authority is made", lambda: _material(installed).bundle not in (b"", aged.bundle), pause=0.2)
        _wait_shown(installed)
        trusted = {
            each["clientConfig"]["caBundle"]
            for kind in ("mutating", "validating")
            for configuration in installed.configurations(kind)
            for each in configuration["webhooks"]
        }
        assert trusted == {base64.b64encode(_material(installed).bundle).decode()}


def _material(installed: Installed) -> Material:
    return Material.of_secret(installed.plane.call("GET", _SECRET))


def _put(installed: Installed, data: dict[str, str]) -> None:
    stored = installed.plane.call("GET", _SECRET)
    installed.plane.call("PUT", _SECRET, {**stored, "data": data})


def _aged(material: Material) -> Material:
    """The same with a certificate of so long ago that another one is due."""
    held = read(material)
    assert held.leaf is not None
    then = SystemClock().now() - LEAF_LIFE * 3 / 4
    keep = [authority.fingerprint for authority in held.authorities]
    made = carry_out(Plan(keep=keep, authority=False, leaf=True), material, now=then, names=held.leaf.names)
    return replace(material, certificate=made.certificate, key=made.key)


def _wait_shown(installed: Installed) -> None:
    """Return once each replica shows the certificate of the Secret to those who connect."""
    network = installed.bed.network

    def shown(address: str) -> bool:
        done = subprocess.run(
            ["nsenter", f"--net={network}", sys.executable, "-c", _SHOWN, address],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return done.returncode == 0 and done.stdout.strip() == _material(installed).certificate.decode().strip()

    for pod in installed.pods(WEBHOOKS):
        address = pod["status"]["podIP"]
        wait_until(f"{address} shows its certificate", lambda address=address: shown(address), timeout=60, pause=0.5)


def test_all_webhooks_are_down(installed: Installed, life: LifeCycle, namespace: Namespace) -> None:
    """Jobs can't be made, as their failure policy says; all else can: pods of others and of vcbatch, in any namespace.

    What is there goes on: gangs run, a job that waited starts, and jobs are made again once a webhook is back.
    """
    installed.wait_available()
    scale = ("scale", "deployment/vcbatch-webhooks", "-n", NAMESPACE)
    free = namespace.plane
    blocked = job("blocked", task("member", 2, container("true")))
    blocked["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {"life-cycle.test/free": "true"}
    namespace.submit(blocked)
    wait_until("the gang waits", lambda: namespace.waiting("blocked"), pause=0.2)
    with life.scenario("all webhooks down") as scenario:
        with scenario.webhooks_down():
            free.must_kubectl(*scale, "--replicas=0")
            wait_until("they are gone", lambda: not installed.pods(WEBHOOKS), pause=0.2)
            code, answer = free.request("POST", JOBS.path(namespace=namespace.name), job("refused"))
            assert code == 500
            assert 'failed calling webhook "jobs.mutate.volcano.sh"' in answer["message"]
            for where in (namespace.name, "kube-system"):
                for scheduler in ("default-scheduler", "volcano"):
                    _create_pod(installed, where, scheduler)
            pod = f"pod/from-{namespace.name}-default-scheduler"
            namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", pod, "--timeout=60s")
            free.must_kubectl("label", "nodes", "--all", "life-cycle.test/free=true")
            namespace.wait_phase("blocked", "Completed")
            free.must_kubectl(*scale, "--replicas=2")
            installed.wait_available()
            dry_run = JOBS.path(namespace=namespace.name) + "?dryRun=All"
            body = job("accepted", task("member", 1, container("true")))
            wait_until("jobs are accepted", lambda: free.request("POST", dry_run, body)[0] == 201, pause=0.2)
        scenario.go()
    assert life.rows[-1].by_policy > 0


def _create_pod(installed: Installed, namespace: str, scheduler: str) -> None:
    name = f"from-{namespace}-{scheduler}"
    spec = {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container("true")]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    dry_run = "?dryRun=All" if namespace == "kube-system" else ""
    installed.plane.call("POST", f"/api/v1/namespaces/{namespace}/pods{dry_run}", pod)


def test_a_node_is_lost_with_the_leaders_on_it(installed: Installed, life: LifeCycle) -> None:
    """As when a machine loses its power: others lead, and the gang starts again once its lost pods are given up.

    That takes somebody who knows that the node is off, and says so by the taint out-of-service.
    """
    installed.wait_spread()
    node = installed.bed.nodes[installed.leader_node(SCHEDULER)]
    with life.scenario("loss of the node of the leading scheduler", node=node.name) as scenario:
        lost = [part for part in _LED if installed.leader_node(part) == node.name]
        before, gang = _holders(installed, *lost), life.namespace.running("spread")
        scenario.go()
        try:
            with scenario.webhooks_down():  # API servers ask the one on that node, too, until its loss is known
                node.kill()
                _wait_others_lead(installed, before)
                wait_until("the node is known to be lost", lambda: not installed.bed.is_ready(node.name), pause=0.5)
                wait_until("no webhook there is asked", lambda: node.name not in installed.asked_nodes(), pause=0.2)
            taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
            installed.plane.must_kubectl("taint", "node", node.name, taint)
            _wait_again(life, gang, node.name)
        finally:
            installed.bed.start_node(node)
            installed.plane.kubectl("taint", "node", node.name, "node.kubernetes.io/out-of-service-")
    installed.bed.wait_ready(node.name)
    installed.wait_available()


def test_the_leaders_node_is_drained(installed: Installed, life: LifeCycle) -> None:
    """A gang with a member there starts again on the other node, and somebody else leads."""
    installed.wait_available()
    node = installed.leader_node(SCHEDULER)
    try:
        with life.scenario("drain of the node of the leading scheduler", node=node) as scenario:
            lost = [part for part in _LED if installed.leader_node(part) == node]
            before, gang = _holders(installed, *lost), life.namespace.running("spread")
            scenario.go()
            installed.plane.must_kubectl(
                "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=150s", timeout=160
            )
            _wait_others_lead(installed, before)
            _wait_again(life, gang, node)
    finally:
        installed.plane.must_kubectl("uncordon", node)
    installed.wait_available()
