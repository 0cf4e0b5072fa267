"""A job with volumes against an adversary: claims come, vanish and fall ill, pods fail, the controller dies between
writes, in any order. Whatever happens:

* the claim of the job is made at most once,
* no pod is made while a claim that it mounts isn't fit for it,
* a claim of somebody else is never made, changed or deleted,
* a pod mounts what the spec names, the same in every attempt,
* with its claims there the job ends, or says why it can't start.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.examples import examples
from tests.support.job_world import Json, World, job_object, task
from vcbatch.api import names
from vcbatch.api.resources import JOBS, PERSISTENTVOLUMECLAIMS

SPEC: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DATA = "data"


class VolumeMachine(RuleBasedStateMachine):
    @initialize(own=st.booleans(), theirs=st.booleans(), twice=st.booleans(), foreign=st.booleans())
    def submit(self, own: bool, theirs: bool, twice: bool, foreign: bool) -> None:
        self.world = World(on_create=self._check_pod)
        volumes: list[Json] = []
        if own:
            volumes.append({"mountPath": "/own", "volumeClaim": SPEC})
        if theirs or not own:
            volumes.append({"mountPath": "/data", "volumeClaimName": DATA})
        if twice and (theirs or not own):
            volumes.append({"mountPath": "/again", "volumeClaimName": DATA})
        policies = [{"event": "PodFailed", "action": "RestartJob"}, {"event": "PodEvicted", "action": "RestartTask"}]
        self.world.submit(job_object(tasks=[task("w", 2)], volumes=volumes, policies=policies, maxRetry=50))
        self.own = names.claim_name("j", self.world.job()["metadata"]["uid"], 0) if own else ""
        self.foreign = bool(own and foreign)
        if self.foreign:
            self._put(self.own)
        self.made: set[str] = set()
        self.mounted: set[str] = set()

    def _put(self, name: str) -> None:
        body = {"metadata": {"name": name}, "spec": SPEC, "status": {"phase": "Bound"}}
        self.world.put(PERSISTENTVOLUMECLAIMS, body)

    def _claim(self, name: str) -> Json | None:
        return self.world.objects.get((PERSISTENTVOLUMECLAIMS, name))

    def _check_pod(self, body: Json) -> None:
        sources = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in body["spec"].get("volumes") or ()
        }
        for name in sources.values():
            claim = self._claim(name)
            assert claim is not None, f"a pod is made without its claim {name}"
            assert "deletionTimestamp" not in claim["metadata"]
            assert claim.get("status", {}).get("phase") != "Lost"
            if name == self.own:
                assert claim["metadata"]["ownerReferences"][0]["uid"] == self.world.job()["metadata"]["uid"]
        mounts = body["spec"]["containers"][0]["volumeMounts"]
        wanted = [volume["mountPath"] for volume in self.world.job()["spec"]["volumes"]]
        assert [mount["mountPath"] for mount in mounts] == wanted
        self.mounted.add(str(sorted((mount["mountPath"], sources[mount["name"]]) for mount in mounts)))

    # What happens

    @rule(writes=st.none() | st.integers(0, 5))
    def reconcile(self, writes: int | None) -> None:
        self.world.reconcile(writes=writes)

    @rule()
    def time_goes_by(self) -> None:
        self.world.step()

    @rule()
    def come_to_rest(self) -> None:
        self.world.settle()
        assert self.world.reconcile().status is None

    @precondition(lambda self: self._claim(DATA) is None)
    @rule()
    def the_claim_comes(self) -> None:
        self._put(DATA)

    @rule(data=st.data(), harm=st.sampled_from(["gone", "going", "lost"]))
    def a_claim_is_harmed(self, data: st.DataObject, harm: str) -> None:
        there = sorted(name for name in (self.own, DATA) if name and self._claim(name) is not None)
        if not there:
            return
        self.world.settle()  # what was there was seen
        name = data.draw(st.sampled_from(there))
        if harm == "gone":
            self.world.remove(PERSISTENTVOLUMECLAIMS, name)
        elif harm == "going":
            self.world.change(
                PERSISTENTVOLUMECLAIMS, name, lambda c: c["metadata"].update(deletionTimestamp="2026-11-20T12:00:00Z")
            )
        else:
            self.world.change(PERSISTENTVOLUMECLAIMS, name, lambda c: c.update(status={"phase": "Lost"}))

    @rule(data=st.data(), code=st.integers(1, 2))
    def a_pod_fails(self, data: st.DataObject, code: int) -> None:
        running = sorted(name for name, pod in self.world.pods().items() if pod["status"]["phase"] == "Running")
        if running:
            self.world.end_pod(data.draw(st.sampled_from(running)), code)

    @rule()
    def the_manifest_is_applied_again(self) -> None:
        """The names that were written into the spec go with the list."""

        def unname(job: Json) -> None:
            for volume in job["spec"]["volumes"]:
                if "volumeClaim" in volume:
                    volume.pop("volumeClaimName", None)

        self.world.change(JOBS, "j", unname)

    # What holds

    @invariant()
    def own_claims_are_made_once(self) -> None:
        if not self.own:
            return
        claim = self._claim(self.own)
        if claim is not None:
            self.made.add(claim["metadata"]["uid"])
        assert len(self.made) <= 1 + self.foreign

    @invariant()
    def other_claims_are_let_alone(self) -> None:
        for claim in self.world.all(PERSISTENTVOLUMECLAIMS):
            assert claim["metadata"]["name"] in (self.own, DATA)
            if claim["metadata"]["name"] == DATA:
                assert "ownerReferences" not in claim["metadata"]

    @invariant()
    def every_attempt_mounts_the_same(self) -> None:
        assert len(self.mounted) <= 1

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for _ in range(6):
            self.world.settle()
            self.world.step()
        state: Any = self.world.job()["status"]["state"]
        if state["phase"] != "Running":
            assert state.get("reason") in ("PVCError", "BackOff", "RetriesExhausted"), state


TestVolumeMachine = VolumeMachine.TestCase
TestVolumeMachine.settings = settings(
    max_examples=examples(40), stateful_step_count=30, suppress_health_check=list(HealthCheck)
)
