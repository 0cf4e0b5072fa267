"""The job controller against an adversary: pods fail, vanish, hang and are evicted, nodes and PodGroups go, people send
Commands, scale, delete the job and make it again, others write into its status, the controller acts on late pictures
and dies between writes, in any order. Whatever happens, these hold:

* a finished job stays as it finished, and no pod is made for it,
* no pod of an attempt is created while one of an older attempt is alive,
* no more restarts than the budgets allow, and none that nobody asked for,
* a Command acts at most once, and never on a job of another UID,
* what has succeeded is never run again in the same attempt,
* every pod is counted exactly once, and the job comes to rest,
* once nothing goes wrong any more and pods end, the job is finished; or suspended, if a policy of its own suspends it
  as soon as a pod is pending, so that no resume helps.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.examples import examples
from tests.support.faulty_job_world import FaultyWorld
from tests.support.job_world import Json, job_object, task
from vcbatch.api import names
from vcbatch.api.job import JobPhase
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, PODS
from vcbatch.core.job.budget import INFRASTRUCTURE_RETRIES
from vcbatch.core.job.indices import parse_indices

EVENTS = ["PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "PodPending", "Unknown", "*"]
ACTIONS = [
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "AbortJob",
    "CompleteJob",
    "TerminateJob",
    "ResumeJob",
]
COMMANDABLE = ["AbortJob", "ResumeJob", "RestartJob", "CompleteJob", "TerminateJob", "SyncJob"]
FINISHED = {"Completed", "Failed", "Terminated"}
TIMEOUTS = [None, None, "0s", "1s", "30s"]


def policy(event: str | int, action: str, timeout: str | None) -> Json:
    cause = {"exitCode": event} if isinstance(event, int) else {"event": event}
    return {**cause, "action": action, **({"timeout": timeout} if timeout else {})}


policies = st.lists(
    st.builds(
        policy,
        st.sampled_from(EVENTS) | st.integers(1, 3),
        st.sampled_from(ACTIONS),
        st.sampled_from(TIMEOUTS),
    ),
    max_size=3,
)


@st.composite
def jobs(draw: st.DrawFn) -> Json:
    """A job that uses whatever there is."""
    tasks: list[Json] = []
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.sampled_from([0, 0, 1, 2]))
        replicas = size * draw(st.integers(1, 2)) or draw(st.integers(0 if number else 1, 3))
        spec: dict[str, Any] = {"policies": draw(policies)} if number == 0 else {}
        if size:
            spec["partitionPolicy"] = {"totalPartitions": replicas // size, "partitionSize": size}
        if draw(st.booleans()):
            spec["minAvailable"] = draw(st.integers(0, replicas))
        if draw(st.booleans()):
            spec["maxRetry"] = draw(st.sampled_from([-1, 1, 2]))
        if number and draw(st.booleans()):
            others = draw(st.sets(st.integers(0, number - 1), min_size=1))
            spec["dependsOn"] = {"name": [f"t{other}" for other in sorted(others)]}
            spec["dependsOn"]["iteration"] = draw(st.sampled_from(["any", "all", ""]))
        tasks.append(task(f"t{number}", replicas, **spec))
    total = sum(spec["replicas"] for spec in tasks)
    spec = {
        "policies": draw(policies),
        "maxRetry": draw(st.integers(1, 3)),
        "minAvailable": draw(st.integers(1, total)),
        "plugins": {"svc": []},
    }
    if draw(st.integers(0, 3)) == 0:
        spec["minSuccess"] = draw(st.integers(1, total))
    job = job_object(tasks=tasks, **spec)
    if draw(st.integers(0, 3)) == 0:
        job["metadata"]["annotations"] = {names.MAX_RUN_SECONDS: str(draw(st.sampled_from([1, 20, 300])))}
    return job


class JobMachine(RuleBasedStateMachine):
    @initialize(job=jobs())
    def submit(self, job: Json) -> None:
        self.world = FaultyWorld(on_create=self._check_pod)
        self.world.submit(job)
        self._begin()

    def _begin(self) -> None:
        self.max_retry: int = self.world.job()["spec"]["maxRetry"]
        self.pending_counts = '"timeout"' in json.dumps(self.world.job())
        """A pod that is merely pending may be the cause of a restart."""
        self.suspends_itself = any(_aborts_pending(each) for each in _policies(self.world.job()["spec"]))
        self.finished: str | None = None
        self.disturbances = 0
        self.restart_commands = 0
        self.resume_commands = 0

    # The controller

    @rule()
    def reconcile(self) -> None:
        self.world.reconcile()

    @rule(writes=st.integers(0, 6))
    def reconcile_and_die(self, writes: int) -> None:
        self.world.reconcile(writes=writes)

    @rule()
    def take_a_snapshot(self) -> None:
        self.world.late = self.world.view()

    @precondition(lambda self: self.world.late is not None)
    @rule()
    def act_on_the_snapshot(self) -> None:
        """Other things have happened since, none of them the controller's doing."""
        assert self.world.late is not None
        self.world.act_on(self.world.late)

    @rule()
    def departures_get_lost(self) -> None:
        self.world.departed.clear()

    @rule()
    def come_to_rest(self) -> None:
        self.world.settle()
        assert self.world.reconcile().status is None

    # The scheduler, the nodes and time

    @rule()
    def time_goes_by(self) -> None:
        self.world.step()

    @rule(seconds=st.sampled_from([1, 10, 30, 600]))
    def much_time_goes_by(self, seconds: int) -> None:
        self.world.step(seconds=seconds)
        self.disturbances += 1

    @rule()
    def all_goes_well_for_a_while(self) -> None:
        for _ in range(3):
            self.world.settle()
            self.world.step()

    @rule(lets_in=st.booleans(), binds=st.booleans(), refusal=st.sampled_from(["", "", "exceeded quota: q"]))
    def the_cluster_fills_or_empties(self, lets_in: bool, binds: bool, refusal: str) -> None:
        self.world.lets_in, self.world.binds, self.world.refusal = lets_in, binds, refusal

    @rule(data=st.data(), code=st.integers(0, 3))
    def a_pod_ends(self, data: st.DataObject, code: int) -> None:
        running = self.world.running_pods()
        if running:
            self.world.end_pod(data.draw(st.sampled_from(running)), code)
            self.disturbances += 1

    @rule(data=st.data())
    def a_container_restarts(self, data: st.DataObject) -> None:
        running = self.world.running_pods()
        if running:
            status = self.world.pods()[data.draw(st.sampled_from(running))]["status"]["containerStatuses"][0]
            status["restartCount"] = status.get("restartCount", 0) + 1
            self.disturbances += 1

    @rule(data=st.data())
    def a_pod_is_not_ready(self, data: st.DataObject) -> None:
        running = self.world.running_pods()
        if running:
            status = self.world.pods()[data.draw(st.sampled_from(running))]["status"]["containerStatuses"][0]
            status["ready"] = False

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
        running = self.world.running_pods()
        if running:
            self.world.evict(data.draw(st.sampled_from(running)))
            self.disturbances += 1

    @rule(data=st.data())
    def a_node_is_lost(self, data: st.DataObject) -> None:
        running = self.world.running_pods()
        if running:
            self.world.lose_node(data.draw(st.sets(st.sampled_from(running), min_size=1)))
            self.disturbances += 1

    @rule()
    def the_pod_group_goes(self) -> None:
        group = self.world.group()
        if group:
            self.world.remove(PODGROUPS, group)
            self.disturbances += 1

    @rule()
    def the_gang_is_broken(self) -> None:
        group = self.world.group()
        if group:
            self.world.change(PODGROUPS, group, lambda stored: stored.setdefault("status", {}).update(phase="Unknown"))
            self.disturbances += 1

    # People

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
        self.world.reconcile()
        assert not self.world.all(COMMANDS)
        assert self.world.job().get("status") == before

    @rule(data=st.data(), slack=st.integers(0, 2))
    def a_task_is_scaled(self, data: st.DataObject, slack: int) -> None:
        def scale(job: Json) -> None:
            spec = job["spec"]
            chosen = data.draw(st.sampled_from(spec["tasks"]), label="task")
            partition = chosen.get("partitionPolicy")
            others = sum(each["replicas"] for each in spec["tasks"] if each is not chosen)
            replicas = data.draw(st.integers(0 if others else 1, 4), label="replicas")
            if partition:
                partition["totalPartitions"] = max(1, replicas // partition["partitionSize"])
                replicas = partition["totalPartitions"] * partition["partitionSize"]
            chosen["replicas"] = replicas
            if chosen.get("minAvailable") is not None:
                chosen["minAvailable"] = min(chosen["minAvailable"], replicas)
            spec["minAvailable"] = max(1, others + replicas - slack)
            if "minSuccess" in spec:
                spec["minSuccess"] = min(spec["minSuccess"], others + replicas)

        self.world.change(JOBS, "j", scale)
        self.disturbances += 1

    @rule(phase=st.sampled_from([*JobPhase, "", "Nonsense"]), number=st.integers(0, 9))
    def somebody_writes_into_the_status(self, phase: str, number: int) -> None:
        """A phase and counts that aren't so. Aborted suspends a job; everything else is put right."""
        self.world.settle()
        before = copy.deepcopy(self.world.job()["status"])
        self.world.write_over(running=number, succeeded=number, taskStatusCount={"t0": {"phase": {"Running": number}}})
        self.world.write_phase(phase)
        self.world.reconcile()
        if phase == "Aborted" and before["state"]["phase"] in {"Pending", "Running", "Restarting", "Aborting"}:
            assert self.world.phase() == "Aborted"
        else:
            assert self.world.job()["status"] == before

    @rule(lingering=st.booleans())
    def the_job_is_made_again(self, lingering: bool) -> None:
        self.world.replace_job(lingering=lingering)
        self._begin()

    @rule(seconds=st.sampled_from(["1", "60", "nonsense", ""]))
    def the_time_limit_is_changed(self, seconds: str) -> None:
        limit = {names.MAX_RUN_SECONDS: seconds} if seconds else {}
        self.world.change(JOBS, "j", lambda job: job["metadata"].update(annotations=limit))

    # What holds

    def _check_pod(self, body: Json) -> None:
        assert self.world.phase() in ("Pending", "Running"), f"a pod for a job that is {self.world.phase()}"
        uid = self.world.job()["metadata"]["uid"]
        version = _version(body)
        for pod in self.world.pods().values():
            older = pod["metadata"]["ownerReferences"][0]["uid"] == uid and _version(pod) < version
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
        if not self.pending_counts:
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
        uid = self.world.job()["metadata"]["uid"]
        for name, record in self._status().get("ledger", {}).get("tasks", {}).items():
            for index in parse_indices(record.get("succeeded", ""), below=100):
                pod = self.world.pods().get(names.pod_name("j", name, index))
                if pod is None or pod["metadata"]["ownerReferences"][0]["uid"] != uid:
                    continue
                if _version(pod) == version and retries == _retries(pod):
                    assert pod["status"]["phase"] == "Succeeded"

    def teardown(self) -> None:
        """Nothing goes wrong any more, pods end well, and whoever suspended the job resumes it."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.lets_in = world.binds = True
        world.refusal = ""
        for _ in range(60):
            world.settle()
            if world.phase() in FINISHED:
                break
            if world.phase() == "Aborted":
                world.command("ResumeJob", target=world.job())
            for name in world.running_pods():
                world.end_pod(name, 0)
            world.step(seconds=60)
        if self.suspends_itself and world.phase() == "Aborted":
            return
        assert world.phase() in FINISHED, f"never ends: {world.job().get('status')}"
        world.step()
        world.settle()
        assert all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in world.pods().values())
        assert not world.all(PODGROUPS)
        assert not any(self._status().get(key) for key in ("pending", "running", "unknown", "terminating"))

    def _status(self) -> Json:
        return self.world.job().get("status", {})


def _policies(spec: Json) -> list[Json]:
    return [*spec["policies"], *(each for of_task in spec["tasks"] for each in of_task.get("policies", ()))]


def _aborts_pending(chosen: Json) -> bool:
    """Whether the policy suspends the job for a pod that is pending, as each is at first: at once, or after a time that
    passes between two looks of the machine. Such a job may suspend itself again after each time that it is resumed."""
    for_pending = chosen.get("event") in ("PodPending", "*") and chosen.get("timeout") is not None
    return chosen["action"] == "AbortJob" and for_pending


def _version(pod: Json) -> int:
    return int(pod["metadata"]["annotations"][names.JOB_VERSION])


def _retries(pod: Json) -> int:
    return int(pod["metadata"]["annotations"][names.JOB_RETRY_COUNT])


TestJobMachine = JobMachine.TestCase
TestJobMachine.settings = settings(
    max_examples=examples(60), stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
