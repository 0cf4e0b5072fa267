"""What real kubelets do to the pods of jobs, and what the jobs' policies make of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.history import Recorder
from tests.cluster.processes import wait_until
from tests.nodes.installed import Installed
from tests.nodes.namespace import Json, Namespace, apart, container, free_millicores, job, node_of, task
from vcbatch.api.timestamps import parse_time

MPI = "mpioperator/openmpi:latest"
_HOG = "exec python3 -c 'x = bytearray(256 << 20); print(len(x))'"


def _limited(command: str) -> Json:
    resources = {"requests": {"cpu": "50m", "memory": "48Mi"}, "limits": {"memory": "48Mi"}}
    return {**container(command, image=MPI), "resources": resources}


def _terminated(pod: Json) -> Json:
    statuses = pod["status"].get("containerStatuses", ())
    return next((each["state"]["terminated"] for each in statuses if "terminated" in each["state"]), {})


def _failed(namespace: Namespace, name: str) -> list[Json]:
    return [pod for pod in namespace.pods(name) if pod["status"].get("phase") == "Failed"]


@pytest.mark.parametrize(
    ("policy", "phase"),
    [
        ({"event": "PodFailed", "action": "AbortJob"}, "Aborted"),
        ({"exitCode": 137, "action": "TerminateJob"}, "Terminated"),
        ({"exitCode": 137, "action": "CompleteJob"}, "Completed"),
    ],
    ids=["event", "exit-code", "completes"],
)
def test_a_pod_that_is_killed_for_its_memory_is_answered_by_policy(
    installed: Installed, namespace: Namespace, policy: dict[str, Any], phase: str
) -> None:
    """The kernel ends it, the kubelet says OOMKilled and 137, and the other member goes with it."""
    hog = task("hog", 1, _limited(_HOG))
    rest = task("rest", 1, container("sleep 600"))
    namespace.submit(job("oom", hog, rest, policies=[policy]))
    namespace.wait_phase("oom", phase)
    (pod,) = _failed(namespace, "oom")
    state = _terminated(pod)
    assert (state["exitCode"], state["reason"]) == (137, "OOMKilled")
    wait_until("the other member is gone", lambda: not namespace.running("oom"), pause=0.2)


def test_a_gang_restarts_until_its_retries_are_used_up(installed: Installed, namespace: Namespace) -> None:
    """RestartJob for a member that is killed for its memory each time: a job's own failure, which costs retries."""
    hog = task("hog", 1, _limited(_HOG))
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    namespace.submit(job("oom", hog, task("rest", 1, container("sleep 600")), policies=policies, maxRetry=2))
    namespace.wait_phase("oom", "Failed", timeout=180)
    status = namespace.job("oom")["status"]
    assert status["retryCount"] == 2
    assert any("memory" in event["message"] for event in namespace.events("oom"))


def test_a_kubelet_evicts_a_pod_that_fills_its_volume(installed: Installed, namespace: Namespace) -> None:
    """Evicted by the node for its storage: answered as PodEvicted, and the gang starts again without using a retry."""
    fills = """\
        if [ "$VC_TASK_INDEX" = 0 ] && [ "$ATTEMPT" = first ]; then
          dd if=/dev/zero of=/scratch/file bs=1M count=8 2>/dev/null
        fi
        sleep 600
        """
    volume = {"volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "2Mi"}}]}
    runs = container(fills, volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}])
    runs["env"] = [{"name": "ATTEMPT", "valueFrom": {"configMapKeyRef": {"name": "attempt", "key": "is"}}}]
    said = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "attempt"}}
    namespace.apply({**said, "data": {"is": "first"}})
    policies = [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}]
    namespace.submit(job("filled", task("member", 2, runs, spec=volume), policies=policies, plugins={"env": []}))
    first = {pod["metadata"]["uid"] for pod in namespace.wait_running("filled", 2)}
    namespace.apply({**said, "data": {"is": "second"}})

    def again() -> bool:
        now = namespace.running("filled")
        return len(now) == 2 and not first & {pod["metadata"]["uid"] for pod in now}

    wait_until("the whole gang runs again", again, timeout=180, pause=0.5)
    assert any(event["reason"] == "PodEvicted" for event in namespace.events("filled"))
    assert namespace.phase("filled") == "Running"


def test_an_evicted_member_aborts_the_job_where_the_policy_says_so(installed: Installed, namespace: Namespace) -> None:
    """By the eviction API, as `kubectl drain` does it."""
    policies = [{"event": "PodEvicted", "action": "AbortJob"}, {"event": "PodFailed", "action": "RestartJob"}]
    runs = container("trap 'exit 3' TERM; sleep 600 & wait")
    namespace.submit(job("evicted", task("member", 2, runs), policies=policies))
    pod = namespace.wait_running("evicted", 2)[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    namespace.plane.call("POST", f"/api/v1/namespaces/{namespace.name}/pods/{pod}/eviction", eviction)
    namespace.wait_phase("evicted", "Aborted")
    assert not namespace.running("evicted")


def test_a_deleted_job_lets_its_pods_finish_within_their_grace(installed: Installed, namespace: Namespace) -> None:
    """One saves its work at SIGTERM; one ignores it, and is killed when its grace is over."""
    saves = container("trap 'sleep 2; echo saved; exit 0' TERM; echo ready; sleep 600 & wait")
    ignores = container("trap '' TERM; echo ready; while true; do sleep 1; done")
    namespace.submit(job("graceful", task("saves", 1, saves, grace=30), task("ignores", 1, ignores, grace=4)))
    namespace.wait_running("graceful", 2)
    for each in ("saves", "ignores"):
        wait_until(f"{each} is ready", lambda pod=f"graceful-{each}-0": "ready" in namespace.logs(pod), pause=0.2)
    path = f"/api/v1/namespaces/{namespace.name}/pods"
    with Recorder(namespace.plane, path) as recorder, namespace.following("graceful-saves-0") as following:
        namespace.kubectl("delete", "vcjob", "graceful", "--wait=false")
        wait_until("both pods are gone", lambda: not recorder.latest(path), pause=0.2)
        said = following.communicate(timeout=60)[0]
    ends = {change.name.partition("/")[2]: _terminated(change.object) for change in recorder.changes(path)}
    assert ends["graceful-saves-0"]["exitCode"] == 0
    assert ends["graceful-ignores-0"]["exitCode"] == 137
    assert "saved" in said
    assert _seconds(recorder, path, "graceful-ignores-0") >= 3  # four, and the API's times are whole seconds


def _seconds(recorder: Recorder, path: str, name: str) -> float:
    """How long the container of a deleted pod went on."""
    seen = [change.object for change in recorder.changes(path) if change.name.endswith(f"/{name}")]
    deleted = next(pod["metadata"] for pod in seen if "deletionTimestamp" in pod["metadata"])
    ended, until = parse_time(_terminated(seen[-1])["finishedAt"]), parse_time(deleted["deletionTimestamp"])
    assert ended is not None and until is not None
    return (ended - until).total_seconds() + deleted["deletionGracePeriodSeconds"]


def test_a_large_gang_waits_until_there_is_room_for_all_of_it(installed: Installed, namespace: Namespace) -> None:
    """None of its pods starts while a job holds half of the cluster, all do once that has ended."""
    cpu = f"{int(min(free_millicores(namespace.plane).values()) * 0.6)}m"
    blocks = container("while ! test -e /tmp/end; do sleep 0.2; done", cpu=cpu)
    namespace.submit(job("blocker", task("member", 2, blocks, spec=apart("blocker"))))
    namespace.wait_running("blocker", 2)
    namespace.submit(job("large", task("member", 2, container("sleep 600", cpu=cpu), spec=apart("large"))))
    wait_until("the gang has a reason to wait", lambda: namespace.waiting("large"), pause=0.3)
    namespace.kubectl("exec", "blocker-member-0", "--", "touch", "/tmp/end")
    wait_until("one place is free", lambda: len(namespace.running("blocker")) == 1, pause=0.2)
    first = namespace.waiting("large")
    wait_until("the scheduler has seen it", lambda: namespace.waiting("large") != first, pause=0.3)
    assert not [pod for pod in namespace.pods("large") if node_of(pod)]
    namespace.kubectl("exec", "blocker-member-1", "--", "touch", "/tmp/end")
    namespace.wait_phase("blocker", "Completed")
    namespace.wait_running("large", 2)
