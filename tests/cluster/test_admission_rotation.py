"""Admission goes on: while a replica is killed, and while authority and certificate are replaced, under load.

The API server asks two replicas through a balancer. Load is creates of jobs as dry runs, by several clients at once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import yaml

from tests.cluster import admission
from tests.cluster.balancer import Balancer
from tests.cluster.components import NAMESPACE, WEBHOOKS, Component, Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBS, QUEUES, SECRETS
from vcbatch.runtime.clock import SystemClock
from webhooks.certificates import rotation
from webhooks.certificates.issue import Material, carry_out, read
from webhooks.certificates.rotation import Held, Plan

CLIENTS = 8
SECRET = SECRETS.path(namespace=NAMESPACE, name="volcano-admission-secret")
TASK: Json = {"name": "w", "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}


@dataclass(kw_only=True)
class Load:
    """Creates, one after the other from each client, until told to stop."""

    plane: ControlPlane
    repeats: int = 0
    """How often a client tries again after a 500."""
    repeated: int = 0
    done: int = 0
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def one_by_one(self) -> None:
        path = JOBS.path(namespace="default") + "?dryRun=All"
        for number in itertools.count():
            if self._stop.is_set():
                return
            body = {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": {"name": f"j-{number}"},
                    "spec": {"tasks": [TASK]}}  # fmt: skip
            code, answer = self.plane.request("POST", path, body)
            for _ in range(self.repeats):
                if code != 500:
                    break
                self.repeated += 1
                code, answer = self.plane.request("POST", path, body)
            if code != 201:
                self.failed.append(f"{code} {answer}")
            self.done += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.one_by_one) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
        assert not self.failed, (len(self.failed), self.done, self.failed[:3])

    def goes_on(self, what: str, requests: int = 200) -> None:
        """Return once that many more were answered."""
        before = self.done
        wait_until(f"requests {what}", lambda: self.done >= before + requests or self.failed, timeout=300)


@dataclass(frozen=True, kw_only=True)
class Pair:
    plane: ControlPlane
    components: Components
    replicas: list[Component]

    def held(self) -> Held:
        return read(self.material())

    def material(self) -> Material:
        return Material.of_secret(self.plane.call("GET", SECRET))

    def put(self, material: Material) -> None:
        stored = self.plane.call("GET", SECRET)
        self.plane.call("PUT", SECRET, {**stored, "data": material.data()})

    def shown(self, number: int) -> str:
        lines = self.replicas[number].metrics().splitlines()
        return "\n".join(line for line in lines if "certificate_expiration" in line)


@pytest.fixture(scope="module")
def pair(control_plane: ControlPlane) -> Iterator[Pair]:
    for name in ("root", "default"):
        queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {}}
        stored = control_plane.call("POST", QUEUES.path(), queue)
        control_plane.call("PUT", QUEUES.path(name=name, subresource="status"), {**stored, "status": {"state": "Open"}})
    with Components(control_plane, managed_certificates=True) as components:
        # Both start at the same moment, with an empty Secret.
        replicas = [components.start(WEBHOOKS, replica=str(number)) for number in range(2)]
        for replica in replicas:
            replica.wait_ready()
        with Balancer({replica.port: replica.ready for replica in replicas}) as balancer:
            admission.install(control_plane, port=balancer.port, managed=True)
            yield Pair(plane=control_plane, components=components, replicas=replicas)


def asked(pair: Pair) -> bool:
    body = {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": [TASK]}}
    code, made = pair.plane.request("POST", JOBS.path(namespace="default") + "?dryRun=All", body)
    return code == 201 and made["spec"].get("maxRetry") == 3


def aged(material: Material, days: float) -> Material:
    """An authority that was made that long ago, with its leaf of yesterday."""
    then = SystemClock().now() - timedelta(days=days)
    leaf = read(material).leaf
    assert leaf is not None
    made = carry_out(Plan(keep=(), authority=True, leaf=False), Material(), now=then, names=leaf.names)
    yesterday = SystemClock().now() - timedelta(days=1)
    return carry_out(Plan(keep=[_newest(made)], authority=False, leaf=True), made, now=yesterday, names=leaf.names)


def _newest(material: Material) -> str:
    return read(material).authorities[0].fingerprint


def test_two_that_start_together_share_one_certificate(pair: Pair) -> None:
    wait_until("admission is asked", lambda: asked(pair))
    held = pair.held()
    assert len(held.authorities) == 1 and held.signs and held.leaf is not None
    (bundle,) = set(admission.bundles(pair.plane))
    assert bundle == pair.material().bundle
    assert pair.shown(0).count("certificate=") == 2


def test_authority_and_certificate_are_replaced_under_load_without_a_failed_request(pair: Pair) -> None:
    """The test gives the Secret contents as months would; the replicas do the rest while the load goes on."""
    old = aged(pair.material(), days=250)
    both = Material(
        bundle=old.bundle + pair.material().bundle, authority_key=old.authority_key,
        certificate=pair.material().certificate, key=pair.material().key,
    )  # fmt: skip
    load = Load(plane=pair.plane)
    with load.running():
        load.goes_on("before anything")
        pair.put(both)
        wait_until("a new authority is made", lambda: _authorities(pair) == 3, timeout=90)
        wait_until("all trust it", lambda: set(admission.bundles(pair.plane)) == {pair.material().bundle}, timeout=90)
        staged = pair.material()
        assert staged.certificate == both.certificate, "the new one doesn't sign before it is known"
        load.goes_on("with the new authority in the bundle")
        # The same as if the new authority had been known for long.
        pair.put(_settled(pair, staged))
        wait_until("all trust it", lambda: _trusted(pair), timeout=90)
        newest = _newest(pair.material())
        wait_until("the new authority signs", lambda: _issuer(pair) == newest, timeout=90)
        for number in range(2):
            wait_until("each replica shows it", lambda number=number: pair.replicas[number].program.said().count(
                "the certificate was replaced") >= 2, timeout=90)  # fmt: skip
        load.goes_on("with the new certificate", requests=400)
    assert read(pair.material()).leaf is not None


def _settled(pair: Pair, staged: Material) -> Material:
    """A bundle with an authority of an hour ago, which signs nothing yet, before those that there are."""
    now, names = SystemClock().now(), frozenset({"s"})
    then = now - rotation.SETTLING - timedelta(minutes=50)
    made = carry_out(Plan(keep=(), authority=True, leaf=False), Material(), now=then, names=names)
    old = Material(bundle=staged.bundle).bundle
    return Material(
        bundle=made.bundle + old, authority_key=made.authority_key, certificate=staged.certificate, key=staged.key
    )


def _authorities(pair: Pair) -> int:
    return len(pair.held().authorities)


def _trusted(pair: Pair) -> bool:
    return set(admission.bundles(pair.plane)) == {pair.material().bundle}


def _issuer(pair: Pair) -> str:
    leaf = pair.held().leaf
    return leaf.issuer if leaf is not None else ""


def test_a_secret_that_is_emptied_under_load_is_filled_without_a_failed_request(pair: Pair) -> None:
    load = Load(plane=pair.plane)
    with load.running():
        stored = pair.plane.call("GET", SECRET)
        pair.plane.call("PUT", SECRET, {**stored, "data": {}})
        wait_until("it is filled", lambda: pair.held().signs, timeout=90)
        wait_until("all trust it", lambda: _trusted(pair), timeout=90)
        load.goes_on("afterwards")


def test_configurations_that_are_made_anew_get_their_authority_at_once(pair: Pair) -> None:
    made = admission.configurations(pair.plane, port=0, managed=True)
    urls = [pair.plane.call("GET", path)["webhooks"][0]["clientConfig"]["url"] for path in _paths()]
    for configuration, url in zip(made, urls, strict=True):
        configuration["webhooks"][0]["clientConfig"] = {"url": url}
    pair.plane.must_kubectl("replace", "-f", "-", stdin=yaml.safe_dump_all(made))
    wait_until("they carry it again", lambda: all(admission.bundles(pair.plane)))
    wait_until("admission is asked again", lambda: asked(pair))


def _paths() -> list[str]:
    from webhooks.configurations import MUTATING, VALIDATING

    kinds = {MUTATING.kind: MUTATING, VALIDATING.kind: VALIDATING}
    return [
        kinds[shipped["kind"]].path(name=shipped["metadata"]["name"])
        for shipped in admission.read(admission.CONFIGURATIONS)
    ]


def test_a_replica_that_is_stopped_under_load_costs_no_create(pair: Pair) -> None:
    """As when its pod is deleted, by a roll-out for instance."""
    load = Load(plane=pair.plane)
    with load.running():
        load.goes_on("with two")
        pair.replicas[1].program.stop()
        load.goes_on("with one")
        pair.replicas[1].program.start()
        pair.replicas[1].wait_ready()
        load.goes_on("with two again")


def test_a_replica_that_is_killed_costs_no_create_but_those_under_way_in_it(pair: Pair) -> None:
    """An API server doesn't repeat a request whose connection broke. A client that does loses nothing."""
    # Filling in and judging go over connections of their own: a repeated create may meet the next that broke.
    load = Load(plane=pair.plane, repeats=4)
    with load.running():
        load.goes_on("with two")
        pair.replicas[0].program.kill()
        load.goes_on("with one", requests=400)
    assert load.repeated <= 4 * CLIENTS, "only what was under way when it was killed"
    pair.replicas[0].program.start()
    pair.replicas[0].wait_ready()
