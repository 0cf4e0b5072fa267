"""The job controller against an adversary: pods fail, vanish and are evicted, people send Commands and scale, the
controller dies between writes, in any order. Whatever happens, these hold:

* a finished job stays as it finished,
* no pod of an attempt is created while one of an older attempt is alive,
* no more restarts than the budgets allow, and none that nobody asked for,
* a Command acts at most once, and never on a job of another UID,
* what has succeeded is never run again in the same attempt,
* every pod is counted exactly once, and the job comes to rest.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api import names
from vcbatch.api.job import JobPhase
from vcbatch.api.resources import COMMANDS, JOBS, PODS
from vcbatch.core.job.budget import INFRASTRUCTURE_RETRIES

EVENTS = ["PodFailed", "PodEvicted", "TaskCompleted", "*"]
ACTIONS = ["RestartJob", "RestartTask", "RestartPod", "AbortJob", "CompleteJob", "TerminateJob", "ResumeJob"]
COMMANDABLE = ["AbortJob", "ResumeJob", "RestartJob", "CompleteJob", "TerminateJob", "SyncJob"]
FINISHED = {"Completed", "Failed", "Terminated"}

policies = st.lists(
    st.one_of(
        st.builds(
            lambda event, action: {"event": event, "action": action}, st.sampled_from(EVENTS), st.sampled_from(ACTIONS)
        ),
        st.builds(
            lambda code, action: {"exitCode": code, "action": action}, st.integers(1, 3), st.sampled_from(ACTIONS)
        ),
    ),
    max_size=3,
)


class JobMachine(RuleBasedStateMachine):
    @initialize(
        replicas=st.lists(st.integers(1, 3), min_size=1, max_size=2),
        slack=st.integers(0, 2),
        job_policies=policies,
        task_policies=policies,
        max_retry=st.integers(1, 3),
        min_success=st.none() | st.integers(1, 3),
    )
    def submit(
        self,
        replicas: list[int],
        slack: int,
        job_policies: list[Json],
        task_policies: list[Json],
        max_retry: int,
        min_success: int | None,
    ) -> None:
        self.world = World(on_create=self._check_barrier)
        tasks = [task(f"t{number}", count) for number, count in enumerate(replicas)]
        tasks[0]["policies"] = task_policies
        spec: dict[str, Any] = {"policies": job_policies, "maxRetry": max_retry, "plugins": {"svc": []}}
        if min_success is not None:
            spec["minSuccess"] = min_success
        self.world.submit(job_object(tasks=tasks, minAvailable=max(1, sum(replicas) - slack), **spec))
        self.max_retry = max_retry
        self.finished: str | None = None
        self.succeeded: dict[tuple[str, int], int] = {}
        self.disturbances = 0
        self.restart_commands = 0
        self.resume_commands = 0

    # What happens

    @rule()
    def look(self) -> None:
        self.world.look()

    @rule(writes=st.integers(0, 6))
    def look_and_die(self, writes: int) -> None:
        self.world.look(writes=writes)

    @rule()
    def time_goes_by(self) -> None:
        self.world.step()

    @rule()
    def all_goes_well_for_a_while(self) -> None:
        for _ in range(3):
            self.world.settle()
            self.world.step()

    @rule()
    def come_to_rest(self) -> None:
        self.world.settle()
        assert self.world.look().status is None

    @rule(data=st.data(), code=st.integers(0, 3))
    def a_pod_ends(self, data: st.DataObject, code: int) -> None:
        running = [name for name, pod in self.world.pods().items() if pod["status"]["phase"] == "Running"]
        if running:
            self.world.end_pod(data.draw(st.sampled_from(sorted(running))), code)
            self.disturbances += 1

    @rule(data=st.data())
    def a_pod_is_deleted(self, data: st.DataObject) -> None:
        pods = self.world.pods()
        if pods:
            self.world.delete_pod(data.draw(st.sampled_from(sorted(pods))))
            self.disturbances += 1

    @rule(data=st.data())
    def a_pod_vanishes(self, data: st.DataObject) -> None:
        pods = self.world.pods()
        if pods:
            self.world.remove(PODS, data.draw(st.sampled_from(sorted(pods))))
            self.disturbances += 1

    @rule()
    def finished_pods_are_cleaned_up(self) -> None:
        """As a node or a person does; the controller has seen them before."""
        self.world.settle()
        for name, pod in self.world.pods().items():
            if pod["status"]["phase"] == "Succeeded":
                self.world.remove(PODS, name)
        self.world.settle()

    @rule(data=st.data())
    def a_pod_is_evicted(self, data: st.DataObject) -> None:
        running = [name for name, pod in self.world.pods().items() if pod["status"]["phase"] == "Running"]
        if running:
            self.world.evict(data.draw(st.sampled_from(sorted(running))))
            self.disturbances += 1

    @rule(action=st.sampled_from(COMMANDABLE))
    def a_command_comes(self, action: str) -> None:
        self.world.command(action, target=self.world.job())
        self.restart_commands += action == "RestartJob"
        self.resume_commands += action == "ResumeJob"

    @rule(action=st.sampled_from([*COMMANDABLE, "Nonsense"]))
    def a_command_for_a_namesake_comes(self, action: str) -> None:
        """It, or one that makes no sense, is removed and changes nothing."""
        self.world.settle()
        before = self.world.job().get("status")
        namesake = {**self.world.job(), "metadata": {"name": "j", "uid": "older"}}
        self.world.command(action, target=namesake if action != "Nonsense" else self.world.job())
        self.world.look()
        assert not self.world.all(COMMANDS)
        assert self.world.job().get("status") == before

    @precondition(lambda self: self.world.phase() == "Running")
    @rule(replicas=st.integers(1, 4))
    def the_first_task_is_scaled(self, replicas: int) -> None:
        def scale(job: Json) -> None:
            job["spec"]["tasks"][0] |= {"replicas": replicas, "minAvailable": 1}
            job["spec"]["minAvailable"] = 1

        self.world.change(JOBS, "j", scale)
        self.succeeded.clear()

    # What holds

    def _check_barrier(self, body: Json) -> None:
        version = _version(body)
        for pod in self.world.pods().values():
            older = _version(pod) < version
            assert not (older and pod["status"]["phase"] in ("Pending", "Running")), "two attempts side by side"
        annotations = body["metadata"]["annotations"]
        assert int(annotations[names.JOB_RETRY_COUNT]) == self._status().get("retryCount", 0)
        assert version == self._status().get("version", 0), "a pod of an attempt that isn't recorded"

    @invariant()
    def finished_is_final(self) -> None:
        phase = self.world.phase()
        if self.finished is not None:
            assert phase == self.finished
        elif phase in FINISHED:
            self.finished = phase

    @invariant()
    def phases_are_the_known_ones(self) -> None:
        assert self.world.phase() in {"", *JobPhase}

    @invariant()
    def budgets_hold(self) -> None:
        status = self._status()
        ledger = status.get("ledger", {})
        retries = status.get("retryCount", 0)
        infrastructure = ledger.get("infrastructureRetries", 0)
        own = retries - ledger.get("resumes", 0) - infrastructure
        assert own <= self.max_retry
        assert infrastructure <= INFRASTRUCTURE_RETRIES
        if own == self.max_retry and status.get("state", {}).get("phase") not in FINISHED | {"Aborted", "Aborting"}:
            raise AssertionError("runs on with its budget used up")
        assert ledger.get("resumes", 0) <= self.resume_commands
        assert retries <= self.disturbances + self.restart_commands + self.resume_commands

    @invariant()
    def every_pod_is_counted_once(self) -> None:
        status = self._status()
        counted = sum(
            status.get(key, 0) for key in ("pending", "running", "succeeded", "failed", "unknown", "terminating")
        )
        assert counted == status.get("terminating", 0) + sum(
            sum(of_task["phase"].values()) for of_task in status.get("taskStatusCount", {}).values()
        )
        assert all(of_task["phase"] for of_task in status.get("taskStatusCount", {}).values())

    @invariant()
    def success_is_kept(self) -> None:
        """Within one attempt, an index that was seen to have succeeded gets no new pod."""
        version = self._status().get("version", 0)
        retries = self._status().get("retryCount", 0)
        for name, record in self._status().get("ledger", {}).get("tasks", {}).items():
            for index in _indices(record.get("succeeded", "")):
                pod = self.world.pods().get(names.pod_name("j", name, index))
                if pod is not None and _version(pod) == version and retries == _retries(pod):
                    assert pod["status"]["phase"] == "Succeeded"

    def _status(self) -> Json:
        return self.world.job().get("status", {})


def _version(pod: Json) -> int:
    return int(pod["metadata"]["annotations"][names.JOB_VERSION])


def _retries(pod: Json) -> int:
    return int(pod["metadata"]["annotations"][names.JOB_RETRY_COUNT])


def _indices(text: str) -> set[int]:
    from vcbatch.core.job.indices import parse_indices

    return parse_indices(text, below=100)


TestJobMachine = JobMachine.TestCase
TestJobMachine.settings = settings(
    deadline=None, max_examples=150, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
