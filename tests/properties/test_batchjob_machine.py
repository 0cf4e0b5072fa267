"""A Job of Kubernetes against an adversary: pods start, end and are deleted, the Job is suspended and scaled, the
controller hears of it late and dies between any two writes. What became of each pod is written down apart, one by one.
Always:

* no pod is counted twice: the counts never exceed the pods that ended,
* no pod is lost: at rest every pod that ended while it was tracked is counted, and none is held back,
* an index is counted once, and has one pod at most,
* at rest there are as many pods as are wanted, unless a failure is waited after,
* a Job is over only when its pods are, and stays so.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.batch_world import BatchWorld, Crash, Stale, is_active, is_tracked
from tests.support.examples import examples
from vcbatch.api.names import COMPLETION_INDEX

Json = dict[str, Any]
_LONGEST_WAIT = 600


class Books:
    """What happened to each pod, in the order in which it happened, and nothing else."""

    def __init__(self) -> None:
        self.succeeded: set[str] = set()
        """Ended well while they were tracked."""
        self.failed: set[str] = set()
        """Failed while they were tracked, or were deleted by somebody else where that is a failure."""
        self.index: dict[str, int] = {}

    @property
    def ended(self) -> set[str]:
        return self.succeeded | self.failed

    @property
    def in_doubt(self) -> set[str]:
        """Deleted, and ended well after all: either may be counted, and only one of them."""
        return self.succeeded & self.failed


class BatchJobMachine(RuleBasedStateMachine):
    @initialize(
        indexed=st.booleans(),
        per_index=st.booleans(),
        parallelism=st.integers(1, 4),
        completions=st.integers(1, 6),
        backoff_limit=st.integers(0, 4),
        replacement=st.sampled_from(["TerminatingOrFailed", "Failed"]),
    )
    def make(
        self,
        *,
        indexed: bool,
        per_index: bool,
        parallelism: int,
        completions: int,
        backoff_limit: int,
        replacement: str,
    ) -> None:
        spec: Json = {"podReplacementPolicy": replacement, "backoffLimit": backoff_limit}
        if indexed:
            spec["completionMode"] = "Indexed"
            if per_index:
                spec |= {"backoffLimit": 2**31 - 1, "backoffLimitPerIndex": backoff_limit // 2}
        self.indexed = indexed
        self.per_index = indexed and per_index
        self.world = BatchWorld(parallelism=parallelism, completions=completions, **spec)
        self.books = Books()
        self.end: Json | None = None

    # What happens

    @rule(which=st.integers(0, 9))
    def a_pod_starts(self, which: int) -> None:
        waiting = [uid for uid in self.world.active() if not self.world.pods[uid]["spec"].get("nodeName")]
        if waiting:
            self.world.start(waiting[which % len(waiting)])

    @rule(which=st.integers(0, 9), well=st.booleans())
    def a_pod_ends(self, which: int, well: bool) -> None:
        running = [
            uid for uid, pod in self.world.pods.items()
            if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Running"
        ]  # fmt: skip
        if not running:
            return
        uid = running[which % len(running)]
        if is_tracked(self.world.pods[uid]):
            (self.books.succeeded if well else self.books.failed).add(uid)
            if self.indexed:
                self.books.index[uid] = self.world.index(uid)
        self.world.end(uid, "Succeeded" if well else "Failed")

    @rule(which=st.integers(0, 9))
    def somebody_deletes_a_pod(self, which: int) -> None:
        pods = self.world.active()
        if not pods:
            return
        uid = pods[which % len(pods)]
        pod = self.world.pods[uid]
        if is_tracked(pod) and (self.at_once or not pod["spec"].get("nodeName")):
            self.books.failed.add(uid)
        if self.indexed:
            self.books.index[uid] = self.world.index(uid)
        self.world.delete(uid)
        if uid in self.world.pods and not pod["spec"].get("nodeName"):
            self.world.end(uid, "Failed")  # the kubelet does so with what was never started

    @property
    def at_once(self) -> bool:
        return self.world.job["spec"]["podReplacementPolicy"] == "TerminatingOrFailed"

    @rule(suspend=st.booleans())
    def somebody_suspends_or_resumes_it(self, suspend: bool) -> None:
        self.world.change(suspend=suspend)

    @rule(parallelism=st.integers(0, 5))
    def somebody_scales_it(self, parallelism: int) -> None:
        self.world.change(parallelism=parallelism)

    @rule(seconds=st.sampled_from([1, 10, 60, _LONGEST_WAIT]))
    def time_passes(self, seconds: int) -> None:
        self.world.now += timedelta(seconds=seconds)

    @rule(which=st.integers(0, 9))
    def it_hears_of_a_pod(self, which: int) -> None:
        known = sorted({*self.world.pods, *self.world.snapshot})
        if known:
            self.world.report(known[which % len(known)])

    @rule(writes=st.integers(0, 4))
    def the_controller_dies_while_it_writes(self, writes: int) -> None:
        self._reconcile(writes)
        self.world.report()  # the next one lists all pods before it decides

    @rule()
    def the_controller_reconciles(self) -> None:
        self._reconcile(None)

    def _reconcile(self, writes: int | None) -> None:
        before = {uid: copy.deepcopy(pod) for uid, pod in self.world.pods.items()}
        with suppress(Crash, Stale):
            self.world.reconcile(writes=writes)
        self._note_killed(before)

    def _note_killed(self, before: dict[str, Json]) -> None:
        """Once a Job fails, what still ran of it counts as failed, whatever becomes of it."""
        if "FailureTarget" not in self.world.conditions:
            return
        for uid, pod in before.items():
            if is_tracked(pod) and pod["status"]["phase"] not in ("Succeeded", "Failed"):
                self.books.failed.add(uid)
                if self.indexed:
                    self.books.index.setdefault(uid, int(pod["metadata"]["labels"][COMPLETION_INDEX]))

    def _rest(self) -> None:
        for _ in range(60):
            self.world.report()
            before = {uid: copy.deepcopy(pod) for uid, pod in self.world.pods.items()}
            decision = self.world.reconcile()
            self._note_killed(before)
            if decision.nothing_to_do:
                return
        raise AssertionError(f"it doesn't come to rest: {self.world.job}")

    # What must be so

    @invariant()
    def no_pod_is_counted_twice(self) -> None:
        status = self.world.status
        uncounted = status.get("uncountedTerminatedPods", {})
        succeeded = status.get("succeeded", 0) + len(uncounted.get("succeeded", ()))
        failed = status.get("failed", 0) + len(uncounted.get("failed", ()))
        assert failed <= len(self.books.failed)
        if self.indexed:
            assert succeeded <= len({self.books.index[uid] for uid in self.books.succeeded})
        else:
            assert succeeded <= len(self.books.succeeded)
            assert succeeded + failed <= len(self.books.ended)

    @invariant()
    def a_job_that_is_over_stays_so(self) -> None:
        if self.end is not None:
            assert self.world.status == self.end
        elif self.world.finished:
            self.end = copy.deepcopy(self.world.status)
            assert not any(is_tracked(pod) or is_active(pod) for pod in self.world.pods.values())

    @rule()
    def at_rest_everything_is_counted(self) -> None:
        self._rest()
        world, status = self.world, self.world.status
        waiting = {uid for uid, pod in world.pods.items() if is_tracked(pod) and uid in self.books.ended}
        if not self.per_index or world.ending:
            assert not waiting, "held back, and counted for nothing"
        assert not status.get("uncountedTerminatedPods"), "counted by halves"
        succeeded, failed = status.get("succeeded", 0), status.get("failed", 0)
        if self.indexed:
            certain = {self.books.index[uid] for uid in self.books.succeeded - self.books.in_doubt}
            possible = {self.books.index[uid] for uid in self.books.succeeded}
            counted = _indexes(status.get("completedIndexes", ""))
            assert certain <= counted <= possible
            assert succeeded == len(counted)
            assert len(self.books.failed - self.books.in_doubt - waiting) <= failed <= len(self.books.failed)
        else:
            assert succeeded + failed == len(self.books.ended)
            assert succeeded >= len(self.books.succeeded - self.books.in_doubt)

    @rule()
    def at_rest_it_has_the_pods_that_it_wants(self) -> None:
        self._rest()
        world, status, spec = self.world, self.world.status, self.world.job["spec"]
        active = len(world.active())
        assert status.get("active", 0) == active
        if world.ending or spec["suspend"]:
            assert not active
            return
        left = max(0, min(spec["completions"] - status.get("succeeded", 0), spec["parallelism"]))
        assert active <= left
        if self.indexed:
            indexes = [world.index(uid) for uid in world.active()]
            assert len(indexes) == len(set(indexes))
            assert not set(indexes) & _indexes(status.get("completedIndexes", ""))

    @precondition(lambda self: not self.world.ending and not self.world.job["spec"]["suspend"])
    @rule()
    def in_the_end_it_has_them_all(self) -> None:
        """Once nothing is waited after any more."""
        self._rest()
        world, spec = self.world, self.world.job["spec"]
        for uid, pod in list(world.pods.items()):
            if pod["metadata"].get("deletionTimestamp") and not self._is_over(pod):
                if is_tracked(pod):
                    self.books.failed.add(uid)
                world.end(uid, "Failed")
        world.now += timedelta(seconds=_LONGEST_WAIT + 1)
        self._rest()
        if world.ending:
            return
        missing = spec["completions"] - world.status.get("succeeded", 0)
        if self.per_index:
            missing -= len(_indexes(world.status.get("failedIndexes", "")))
        assert len(world.active()) == max(0, min(missing, spec["parallelism"]))

    @staticmethod
    def _is_over(pod: Json) -> bool:
        return pod["status"].get("phase") in ("Succeeded", "Failed")


def _indexes(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


TestBatchJobMachine = BatchJobMachine.TestCase
TestBatchJobMachine.settings = settings(max_examples=examples(25), stateful_step_count=40)
