"""Jobs at admission: each rule broken by itself, and what may change later."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.admission_world import World, queue
from vcbatch.api.defaults import default_job
from vcbatch.api.job import Job
from vcbatch.api.model import Json
from vcbatch.api.validate import job_errors, job_update_errors, sentence

WORLD = World(
    known=[
        queue("root"),
        queue("default"),
        queue("closed", state="Closed"),
        queue("closing", state="Closing"),
        queue("new", state=""),
        queue("parent", parent="root"),
        queue("child", parent="parent"),
    ],
    priority_classes=frozenset({"high"}),
)

CONTAINERS = [{"name": "main", "image": "busybox"}]


def job(**spec: Any) -> Json:
    """A job that can work, with its defaults."""
    tasks = [
        {"name": "master", "replicas": 1, "template": {"spec": {"containers": CONTAINERS}}},
        {"name": "worker", "replicas": 3, "template": {"spec": {"containers": CONTAINERS}}},
    ]
    return default_job({"metadata": {"name": "train"}, "spec": {"tasks": copy.deepcopy(tasks), **spec}})


def refusal(made: Json) -> str:
    return sentence(job_errors(Job.parse(made), WORLD))


def task(**fields: Any) -> Callable[[Json], None]:
    return lambda made: made["spec"]["tasks"][1].update(fields)


def spec(**fields: Any) -> Callable[[Json], None]:
    return lambda made: made["spec"].update(fields)


def policies(*listed: Json) -> Callable[[Json], None]:
    return spec(policies=list(listed))


FAIL = {"event": "PodFailed", "action": "RestartJob"}
PARTITIONS = {"totalPartitions": 3, "partitionSize": 1}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def test_a_job_that_can_work_has_no_faults() -> None:
    assert refusal(job()) == ""
    everything = job(
        plugins={"svc": ["--publish-not-ready-addresses"], "env": [], "pytorch": ["--master=master", "--port", "1234"]},
        policies=[FAIL, {"exitCode": 3, "action": "CompleteJob", "timeout": "10s"}],
        volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}],
        priorityClassName="high",
        runningEstimate="2h",
        queue="new",
    )
    everything["spec"]["tasks"][1].update(dependsOn={"name": ["master"]}, partitionPolicy=PARTITIONS)
    assert refusal(everything) == ""


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (spec(tasks=[]), "No task specified in job spec"),
        (task(minAvailable=4), "'minAvailable' is greater than 'replicas' in task: worker, job: train"),
        (task(name="master"), "duplicated task name master"),
        (task(name="Worker"), "spec.tasks[1].name: a lowercase RFC 1123 label"),
        (task(name="w" * 60), "create pod with name train-" + "w" * 60 + "-2 validate failed"),
        (task(policies=[FAIL, FAIL]), "duplicate event PodFailed"),
        (task(topologyPolicy="restricted"), "the cpu request isn't an integer"),
        (
            task(partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
            "not equal to TotalPartitions*PartitionSize",
        ),
        (task(partitionPolicy={"totalPartitions": 0, "partitionSize": 2}), "'TotalPartitions' must be greater than 0"),
        (task(partitionPolicy={**PARTITIONS, "minPartitions": 2}), "'MinAvailable' is not equal to MinPartitions"),
        (task(dependsOn={"name": ["nobody"]}), "task worker depends on nobody"),
        (task(dependsOn={"name": ["worker"]}), "doesn't form a directed acyclic graph(DAG): circle of worker"),
        (spec(minAvailable=9), "job 'minAvailable' should not be greater than total replicas in tasks: 9 > 4"),
        (policies({**FAIL, "exitCode": 1}), "must not specify event and exitCode simultaneously"),
        (policies({"action": "RestartJob"}), "either event and exitCode should be specified"),
        (policies({"event": "OutOfSync", "action": "RestartJob"}), 'Invalid value: "OutOfSync": invalid policy event'),
        (policies({"event": "PodFailed", "action": "Dance"}), 'Invalid value: "Dance": invalid policy action'),
        (policies({"event": "PodFailed"}), 'Invalid value: "": invalid policy action'),
        (policies({"exitCode": 0, "action": "AbortJob"}), "0 is not a valid error code"),
        (
            policies({"exitCode": 1, "action": "AbortJob"}, {"exitCode": 1, "action": "AbortJob"}),
            "duplicate exitCode 1",
        ),
        (policies({"event": "*", "action": "AbortJob"}, FAIL), "if there's * here, no other policy should be here"),
        (policies({**FAIL, "timeout": "soon"}), 'spec.policies[0].timeout: Invalid value: "soon"'),
        (task(replicas=2**31 - 1), "spec.tasks: 2147483648 pods in total, want at most 100000"),
        (spec(runningEstimate="5"), 'spec.runningEstimate: Invalid value: "5"'),
        (spec(plugins={"big_plugin": []}), "unable to find job plugin: big_plugin"),
        (spec(plugins={"mpi": ["--master=boss"]}), "The specified mpi master task was not found: boss"),
        (spec(volumes=[{"volumeClaimName": "c"}]), "mountPath is required"),
        (spec(volumes=[{"mountPath": "/d"}]), "either VolumeClaim or VolumeClaimName must be specified"),
        (spec(volumes=[{"mountPath": "/d", "volumeClaimName": "c"}] * 2), "duplicated mountPath: /d"),
        (spec(volumes=[{"mountPath": "/d", "volumeClaimName": "C"}]), "invalid VolumeClaimName C"),
        (spec(volumes=[{"mountPath": "/d", "volumeClaimName": "c", "volumeClaim": CLAIM}]), "conflict: If you want"),
        (spec(volumes=[{"mountPath": "/a:b", "volumeClaimName": "c"}]), "must not contain ':'"),
        (
            spec(volumes=[{"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]),
            "spec.volumes[0].volumeClaim.resources[storage]: Required value",
        ),
        (
            spec(volumes=[{"mountPath": "/etc/volcano", "volumeClaimName": "c"}], plugins={"svc": []}),
            "the plugin svc mounts another volume there",
        ),
        (spec(queue="nope"), 'unable to find job queue: queue.scheduling.volcano.sh "nope" not found'),
        (spec(queue="closed"), "can only submit job to queue with state `Open`, queue `closed` status is `Closed`"),
        (spec(queue="closing"), "queue `closing` status is `Closing`"),
        (spec(queue="root"), "can not submit job to root queue"),
        (spec(queue="parent"), "can only submit job to leaf queue, queue `parent` has child queues: child"),
        (spec(networkTopology={"highestTierAllowed": 1, "highestTierName": "a"}), "in networkTopology simultaneously"),
    ],
)
def test_each_rule_refuses_by_itself(broken: Callable[[Json], None], said: str) -> None:
    made = job()
    broken(made)
    assert said in refusal(made)


def test_names_that_cannot_become_host_names_are_refused() -> None:
    made = job()
    made["metadata"]["name"] = "a.b"
    assert refusal(made) == ""
    made["spec"]["plugins"] = {"svc": []}
    assert "as the plugin svc makes host names of it" in refusal(made)
    made["metadata"]["name"] = "j" * 64
    assert "create job with name" in refusal(made)


def test_a_name_that_is_yet_to_be_generated_is_judged_by_its_length() -> None:
    made = job(plugins={"svc": []})
    made["metadata"] = {"generateName": "train-"}
    assert refusal(made) == ""
    made["metadata"] = {"generateName": "t" * 60 + "-"}
    assert "shorten the name of the job" in refusal(made)


def test_a_job_has_no_more_tasks_than_can_be_judged_in_a_moment() -> None:
    made = job()
    made["spec"]["tasks"] = [{**made["spec"]["tasks"][0], "name": f"t{number}"} for number in range(10_001)]
    assert refusal(made) == "spec.tasks: 10001 tasks, want at most 10000"


def test_all_faults_come_in_one_answer() -> None:
    made = job(queue="closed", plugins={"big_plugin": []}, minAvailable=9)
    made["spec"]["tasks"][1]["minAvailable"] = 8
    errors = job_errors(Job.parse(made), WORLD)
    assert [error.field for error in errors] == [
        "spec.tasks[1].minAvailable",
        "spec.minAvailable",
        "spec.plugins[big_plugin]",
        "spec.queue",
    ]


def changed(**fields: Any) -> str:
    old, new = job(), job()
    new["spec"].update(fields)
    return sentence(job_update_errors(Job.parse(new), Job.parse(old)))


def resized(**fields: Any) -> str:
    old, new = job(), job()
    new["spec"]["tasks"][1].update(fields)
    return sentence(job_update_errors(Job.parse(new), Job.parse(old)))


def test_size_and_priority_may_change() -> None:
    assert changed(minAvailable=2) == ""
    assert changed(priorityClassName="high") == ""
    assert resized(replicas=9) == ""
    assert resized(replicas=4, minAvailable=4) == ""


def test_metadata_of_a_job_from_older_rules_may_change() -> None:
    stored = job()
    stored["spec"]["minAvailable"] = 99
    labelled = copy.deepcopy(stored)
    labelled["metadata"]["labels"] = {"team": "red"}
    assert job_update_errors(Job.parse(labelled), Job.parse(stored)) == []


def test_a_claim_that_the_controller_named_is_no_change() -> None:
    old = job(volumes=[{"mountPath": "/d", "volumeClaim": CLAIM}])
    new = job(volumes=[{"mountPath": "/d", "volumeClaim": CLAIM, "volumeClaimName": "train-pvc-1"}])
    assert job_update_errors(Job.parse(new), Job.parse(old)) == []


def test_spelling_absence_differently_is_no_change() -> None:
    assert changed(policies=[], plugins=None, networkTopology=None, volumes=[]) == ""


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"queue": "child"}, "changed: spec.queue"),
        ({"maxRetry": 9}, "job updates may not change fields other than `minAvailable`"),
        ({"ttlSecondsAfterFinished": 0}, "changed: spec.ttlSecondsAfterFinished"),
        ({"tasks": []}, "job updates may not add or remove tasks"),
        ({"minAvailable": 99}, "job 'minAvailable' must not be greater than total replicas: 99 > 4"),
        ({"minAvailable": -1}, "job 'minAvailable' must be >= 0"),
    ],
)
def test_the_rest_of_the_spec_may_not_change(fields: Json, said: str) -> None:
    assert said in changed(**fields)


def test_a_task_may_not_grow_beyond_its_names_or_shrink_below_its_minimum() -> None:
    assert "'minAvailable' must be <= 'replicas' in task: worker" in resized(replicas=1)
    assert "'replicas' must be >= 0 in task: worker" in resized(replicas=-1, minAvailable=None)
    old = job()
    old["metadata"]["name"] = "t" * 54
    old["spec"]["plugins"] = {"svc": []}
    new = copy.deepcopy(old)
    new["spec"]["tasks"][1]["replicas"] = 11
    assert "validate failed" in sentence(job_update_errors(Job.parse(new), Job.parse(old)))


@pytest.mark.parametrize(
    ("group", "where"),
    [("containers", "container[1] (bad)"), ("initContainers", "initContainers[1] (bad)")],
)
def test_the_container_that_a_topology_policy_refuses_is_named(group: str, where: str) -> None:
    whole = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    good: Json = {"name": "good", "image": "i", "resources": whole}
    bad: Json = {"name": "bad", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    made = job()
    made["spec"]["tasks"][1]["topologyPolicy"] = "restricted"
    made["spec"]["tasks"][1]["template"]["spec"] = {"containers": [good], group: [good, bad]}
    assert f"the cpu request isn't an integer in spec.task[1] {where}" in refusal(made)
