"""Jobs that depend on each other, against an adversary: they are submitted in any order, end in any way, expire, are
suspended, cancelled, deleted and recreated under the same name, time passes, and the controller crashes between two
writes or restarts and forgets what it only saw. Whatever happens, these hold:

* no job gets a PodGroup before its begin time, or before each of its dependencies has ended as required,
* a dependency that was seen is the same job for ever, whatever is created under its name,
* once nothing goes wrong any more, each job whose dependencies are met has started, and each other one has a reason
  that leads to a job that a user has to handle,
* the end of a job that merely expired is never lost.
"""

from __future__ import annotations

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.examples import examples
from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.job import JobPhase
from vcbatch.api.names import AFTER, BEGIN_TIME
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, Resource
from vcbatch.api.timestamps import format_time, parse_time

NAMES = ("a", "b", "c")
HELD = {"DependencyNotMet", "DependencyNotFound", "DependencyNeverSatisfied", "BeginTime"}
ENDS = {"ok": {"Completed"}, "fail": {"Failed", "Terminated"}, "any": {"Completed", "Failed", "Terminated", ""}}


class Cluster(World):
    """Checks each PodGroup when it is created, and keeps the last phase of each job that ever existed."""

    def begin(self) -> None:
        self.truth: dict[str, str] = {}
        """UID -> final phase; empty for a job that was deleted before its end."""
        self.deleted_by_users: set[str] = set()
        self.started: set[str] = set()
        self.remembers = True
        """Whether the controller sees how a job was when it was deleted; one that restarts doesn't."""

    def put(self, resource: Resource, body: Json) -> Json:
        stored = super().put(resource, body)
        if resource is PODGROUPS:
            job = self.job(stored["metadata"]["ownerReferences"][0]["name"])
            self.started.add(job["metadata"]["uid"])
            self._may_start(job)
        return stored

    def _may_start(self, job: Json) -> None:
        annotations = job["metadata"].get("annotations", {})
        if BEGIN_TIME in annotations:
            assert parse_time(annotations[BEGIN_TIME]) <= self.now
        seen = {one["name"]: one for one in job["status"].get("ledger", {}).get("dependencies", ())}
        for name, outcome in wanted(job):
            uid = seen[name]["uid"]
            assert self.truth.get(uid, "still there") in ENDS[outcome], f"{job['metadata']['name']} starts early"

    def note_ends(self) -> None:
        for job in self.all(JOBS):
            phase = job.get("status", {}).get("state", {}).get("phase", "")
            if phase in ("Completed", "Failed", "Terminated"):
                self.truth[job["metadata"]["uid"]] = phase

    def remove(self, resource: Resource, name: str) -> None:
        job = self.objects.get((resource, name)) if resource is JOBS else None
        self.note_ends()
        if job is not None:
            uid = job["metadata"]["uid"]
            self.truth.setdefault(uid, "")
            if not self.remembers:
                self.last_phases.clear()
            else:
                self.last_phases[uid] = JobPhase(job.get("status", {}).get("state", {}).get("phase") or "Pending")
        super().remove(resource, name)


def wanted(job: Json) -> list[tuple[str, str]]:
    text = job["metadata"].get("annotations", {}).get(AFTER, "")
    return [(one.partition(":")[0], one.partition(":")[2]) for one in text.split(",") if one]


after = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(list(ENDS)), max_size=3)


class StartMachine(RuleBasedStateMachine):
    @initialize(
        remembers=st.booleans(),
        outcomes=st.tuples(*[st.sampled_from(list(ENDS))] * 2),
        code=st.sampled_from([0, 0, 1]),
        ttl=st.sampled_from([None, 0]),
    )
    def begin(self, remembers: bool, outcomes: tuple[str, str], code: int, ttl: int | None) -> None:
        self.world = Cluster()
        self.world.begin()
        self.world.remembers = remembers
        self.uids: dict[tuple[str, str], str] = {}
        self.submit("a", {}, None, code, ttl, 5)
        self.submit("b", {"a": outcomes[0]}, None, 0, ttl, 0)
        self.submit("c", {"b": outcomes[1]}, None, 0, None, 0)
        self.reconcile("b", None)

    @rule(
        name=st.sampled_from(NAMES),
        after=after,
        begins_in=st.sampled_from([None, None, -5, 20]),
        code=st.sampled_from([0, 0, 1]),
        ttl=st.sampled_from([None, 0]),
        seconds=st.sampled_from([0, 5, 100]),
    )
    def submit(
        self, name: str, after: dict[str, str], begins_in: int | None, code: int, ttl: int | None, seconds: int
    ) -> None:
        if (JOBS, name) in self.world.objects:
            return
        spec: Json = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
        job = job_object(name, tasks=[task("w", 1, f"sleep {seconds}; exit {code}")], **spec)
        annotations = {}
        if after:
            annotations[AFTER] = ",".join(f"{other}:{outcome}" for other, outcome in after.items())
        if begins_in is not None:
            annotations[BEGIN_TIME] = format_time(self.world.now + timedelta(seconds=begins_in))
        job["metadata"]["annotations"] = annotations
        self.world.submit(job)

    @rule(name=st.sampled_from(NAMES), writes=st.sampled_from([None, None, 0, 1, 2]))
    def reconcile(self, name: str, writes: int | None) -> None:
        if (JOBS, name) in self.world.objects:
            self.world.reconcile(name, writes=writes)
            self.world.note_ends()

    @rule(name=st.sampled_from(NAMES), times=st.integers(1, 4))
    def advance(self, name: str, times: int) -> None:
        """One job makes progress while the others aren't reconciled."""
        for _ in range(times):
            self.reconcile(name, None)
            self.pass_time(5)

    @rule(name=st.sampled_from(NAMES))
    def recreate(self, name: str) -> None:
        """Another job under the same name, which completes."""
        self.delete(name)
        self.submit(name, {}, None, 0, None, 0)
        self.advance(name, 8)

    @rule(seconds=st.sampled_from([0.5, 10]))
    def pass_time(self, seconds: float) -> None:
        self.world.step(seconds=seconds)

    @rule()
    def restart_controller(self) -> None:
        self.world.last_phases.clear()

    @rule(name=st.sampled_from(NAMES), action=st.sampled_from(["AbortJob", "ResumeJob", "TerminateJob", "RestartJob"]))
    def command(self, name: str, action: str) -> None:
        if (JOBS, name) in self.world.objects and len(self.world.all(COMMANDS)) < 3:
            self.world.command(action, target=self.world.job(name))

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        if (JOBS, name) in self.world.objects:
            self.world.deleted_by_users.add(self.world.job(name)["metadata"]["uid"])
            self.world.remove(JOBS, name)

    @invariant()
    def what_was_seen_stays_the_same_job(self) -> None:
        for job in self.world.all(JOBS):
            for seen in job.get("status", {}).get("ledger", {}).get("dependencies", ()):
                uid = self.uids.setdefault((job["metadata"]["uid"], seen["name"]), seen["uid"])
                assert seen["uid"] == uid
                assert seen["uid"] != "" and (seen.get("outcome") or seen["uid"] in self._existing())
                if seen.get("outcome") == "Deleted":
                    assert seen["uid"] in self.world.deleted_by_users

    def _existing(self) -> set[str]:
        known = {job["metadata"]["uid"] for job in self.world.all(JOBS)}
        return known | set(self.world.truth)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        for _ in range(30):
            for name in NAMES:
                if (JOBS, name) in world.objects:
                    world.reconcile(name)
                    world.note_ends()
            world.step(seconds=10)
        for name in NAMES:
            if (JOBS, name) in world.objects:
                self._has_come_to_rest(name, ())

    def _has_come_to_rest(self, name: str, behind: tuple[str, ...]) -> None:
        """The job has ended, or is suspended, or waits for what a user has to handle."""
        world = self.world
        assert name not in behind, f"{behind} wait for each other"
        job = world.job(name)
        state = job["status"]["state"]
        if state["phase"] in ("Completed", "Failed", "Terminated", "Aborted"):
            return
        assert state["phase"] == "Pending"
        assert state["reason"] in HELD - {"BeginTime"}
        assert job["metadata"]["uid"] not in world.started
        seen = {one["name"]: one for one in job["status"].get("ledger", {}).get("dependencies", ())}
        unmet = [
            (other, seen.get(other))
            for other, outcome in wanted(job)
            if other not in seen or not seen[other].get("outcome") or not _meets(outcome, seen[other]["outcome"])
        ]
        assert unmet, f"{name} should have started"
        if state["reason"] == "DependencyNotFound":
            assert any(one is None and (JOBS, other) not in world.objects for other, one in unmet)
        elif state["reason"] == "DependencyNotMet":
            for other, one in unmet:
                assert one is not None and world.job(other)["metadata"]["uid"] == one["uid"]
                self._has_come_to_rest(other, (*behind, name))


def _meets(outcome: str, ended: str) -> bool:
    return outcome == "any" or ended in ENDS[outcome]


StartMachine.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=15, deadline=None)
TestStartMachine = StartMachine.TestCase
