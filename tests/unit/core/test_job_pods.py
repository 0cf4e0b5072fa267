"""What is created for a job: pods with what the plugins add, the PodGroup with its resources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.pod_usage import pod_usage, wire
from vcbatch.api.resources import CONFIGMAPS, JOBS, NETWORKPOLICIES, PODGROUPS, SERVICES
from vcbatch.core.job.indices import format_indices, parse_indices


def _created(job: Json) -> World:
    world = World()
    world.submit(job)
    world.settle()
    world.schedule()
    world.settle()
    return world


def _env(pod: Json, container: str = "containers") -> dict[str, str]:
    """Variables with a value of their own."""
    return {entry["name"]: entry["value"] for entry in _entries(pod, container) if "value" in entry}


def _references(pod: Json, container: str = "containers") -> set[str]:
    """Variables whose value is in a ConfigMap."""
    return {entry["name"] for entry in _entries(pod, container) if "valueFrom" in entry}


def _entries(pod: Json, container: str) -> list[Json]:
    return pod["spec"][container][0].get("env", [])


def _with_init(spec: Json) -> Json:
    spec["template"]["spec"]["initContainers"] = [{"name": "init", "image": "img"}]
    return spec


# Pods ----------------------------------------------------------------------------------------------------------------


def test_what_the_job_hands_to_its_pods() -> None:
    job = job_object(tasks=[task("w", 1, topologyPolicy="best-effort")], priorityClassName="high", queue="default")
    job["metadata"]["annotations"] = {
        "volcano.sh/preemptable": "true",
        "volcano.sh/jdb-min-available": "1",
        "volcano.sh/jdb-max-unavailable": "2",
        "mine": "stays",
    }
    job["metadata"]["labels"] = {"volcano.sh/preemptable": "true", "mine": "stays"}
    job["spec"]["tasks"][0]["template"]["metadata"] = {
        "labels": {"own": "1", "volcano.sh/job-name": "no"},
        "annotations": {"own": "2"},
    }
    pod = _created(job).pods()["j-w-0"]
    annotations, labels = pod["metadata"]["annotations"], pod["metadata"]["labels"]
    assert (
        annotations.items()
        >= {
            "volcano.sh/numa-topology-policy": "best-effort",
            "volcano.sh/preemptable": "true",
            "volcano.sh/jdb-min-available": "1",
            "own": "2",
        }.items()
    )
    assert not annotations.keys() & {"volcano.sh/jdb-max-unavailable", "mine"}
    assert labels.items() >= {"own": "1", "volcano.sh/job-name": "j", "volcano.sh/preemptable": "true"}.items()
    assert "mine" not in labels
    assert (pod["spec"]["priorityClassName"], pod["spec"]["schedulerName"]) == ("high", "volcano")


def test_a_template_s_own_choices_stand() -> None:
    spec = task("w", 1)
    spec["template"]["spec"] |= {"schedulerName": "other", "priorityClassName": "low"}
    pod = _created(job_object(tasks=[spec], priorityClassName="high")).pods()["j-w-0"]
    assert (pod["spec"]["priorityClassName"], pod["spec"]["schedulerName"]) == ("low", "other")


def test_a_queue_name_too_long_for_a_label_is_in_the_annotation() -> None:
    queue = "q" * 64
    world = World()
    world.put_queue(queue)
    world.submit(job_object(queue=queue))
    world.run(until=lambda: world.phase() == "Running")
    metadata = world.pods()["j-w-0"]["metadata"]
    assert metadata["annotations"]["volcano.sh/queue-name"] == queue
    assert "volcano.sh/queue-name" not in metadata["labels"]


# Plugins -------------------------------------------------------------------------------------------------------------


def test_env_reaches_init_containers_and_leaves_the_user_s_own() -> None:
    spec = _with_init(task("w", 2))
    spec["template"]["spec"]["containers"][0]["env"] = [{"name": "VC_TASK_INDEX", "value": "mine"}]
    pod = _created(job_object(tasks=[spec], plugins={"env": []})).pods()["j-w-1"]
    assert _env(pod, "initContainers") == {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}
    assert _env(pod) == {"VC_TASK_INDEX": "mine", "VK_TASK_INDEX": "1"}


def test_svc_names_hosts_and_lists_them() -> None:
    world = _created(job_object(tasks=[_with_init(task("a", 2)), task("b-c", 1)], plugins={"svc": []}))
    (config_map,), (service,), (policy,) = (world.all(kind) for kind in (CONFIGMAPS, SERVICES, NETWORKPOLICIES))
    assert config_map["data"] == {
        "a.host": "j-a-0.j\nj-a-1.j",
        "VC_A_HOSTS": "j-a-0.j,j-a-1.j",
        "VC_A_NUM": "2",
        "b_c.host": "j-b-c-0.j",
        "VC_B_C_HOSTS": "j-b-c-0.j",
        "VC_B_C_NUM": "1",
    }
    assert service["spec"]["clusterIP"] == "None"
    assert "publishNotReadyAddresses" not in service["spec"]
    assert policy["spec"]["podSelector"]["matchLabels"] == service["spec"]["selector"]
    pod = world.pods()["j-a-1"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("j-a-1", "j")
    for kind in ("containers", "initContainers"):
        assert {"VC_A_HOSTS", "VC_A_NUM", "VC_B_C_HOSTS", "VC_B_C_NUM"} == _references(pod, kind)
        assert {"name": "j-svc", "mountPath": "/etc/volcano"} in pod["spec"][kind][0]["volumeMounts"]


def test_svc_arguments() -> None:
    arguments = ["--publish-not-ready-addresses", "--disable-network-policy=true", "-inject-hosts-env=false"]
    world = _created(job_object(plugins={"svc": arguments}))
    (service,) = world.all(SERVICES)
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert not world.all(NETWORKPOLICIES)
    assert not _references(world.pods()["j-w-0"])


def test_svc_with_one_name_for_a_task_lists_it_once() -> None:
    spec = task("w", 3)
    spec["template"]["spec"] |= {"hostname": "h", "subdomain": "s"}
    world = _created(job_object(tasks=[spec], plugins={"svc": []}))
    (config_map,) = world.all(CONFIGMAPS)
    assert (config_map["data"]["VC_W_HOSTS"], config_map["data"]["VC_W_NUM"]) == ("h.s", "1")


def test_svc_follows_a_scaled_job_and_mends_what_was_removed() -> None:
    world = _created(job_object(tasks=[task("w", 1), task("x", 1)], plugins={"svc": []}))

    def more(job: Json) -> None:
        job["spec"]["tasks"][0]["replicas"] = 2

    world.change(JOBS, "j", more)
    world.remove(SERVICES, "j")
    world.settle()
    (config_map,) = world.all(CONFIGMAPS)
    assert config_map["data"]["VC_W_NUM"] == "2"
    assert world.all(SERVICES)


def test_torchx_finds_rank_0() -> None:
    """One task per replica, and the host of the first in VC_<ROLE>_0_HOSTS."""
    roles = [task(f"train-er-{rank}", 1) for rank in range(2)]
    world = _created(job_object(tasks=roles, plugins={"svc": ["--publish-not-ready-addresses"], "env": []}))
    (config_map,) = world.all(CONFIGMAPS)
    assert config_map["data"]["VC_TRAIN_ER_0_HOSTS"] == "j-train-er-0-0.j"
    assert "VC_TRAIN_ER_0_HOSTS" in _references(world.pods()["j-train-er-1-0"])


def test_pytorch_ranks() -> None:
    tasks = [task("m", 2), _with_init(task("w", 2)), task("log", 1)]
    arguments = ["--master=m", "--worker", "w", "--port=0x10", "--wait-master-enabled", "--wait-master-timeout=7"]
    pods = _created(job_object(tasks=tasks, plugins={"pytorch": arguments})).pods()
    assert {name: _env(pod).get("RANK") for name, pod in pods.items()} == {
        "j-m-0": "0",
        "j-m-1": "1",
        "j-w-0": "2",
        "j-w-1": "3",
        "j-log-0": None,
    }
    assert _env(pods["j-log-0"]) == {"MASTER_ADDR": "j-m-0.j", "MASTER_PORT": "16", "WORLD_SIZE": "4"}
    assert [container["name"] for container in pods["j-w-0"]["spec"]["initContainers"]] == ["init", "wait-for-master"]
    assert "initContainers" not in pods["j-m-0"]["spec"]
    assert not _env(pods["j-w-0"], "initContainers")
    (port,) = pods["j-m-0"]["spec"]["containers"][0]["ports"]
    assert (port["name"], port["containerPort"]) == ("pytorchjob-port", 16)


def test_pytorch_without_a_master_does_nothing() -> None:
    pod = _created(job_object(plugins={"pytorch": []})).pods()["j-w-0"]
    assert not _env(pod)


def test_pytorch_leaves_a_declared_port() -> None:
    spec = task("master", 1)
    spec["template"]["spec"]["containers"][0]["ports"] = [{"name": "mine", "containerPort": 23456}]
    pod = _created(job_object(tasks=[spec], plugins={"pytorch": []})).pods()["j-master-0"]
    assert pod["spec"]["containers"][0]["ports"] == [{"name": "mine", "containerPort": 23456}]


def test_tensorflow_cluster() -> None:
    tasks = [task("ps", 1), task("worker", 2), task("extra", 1)]
    pods = _created(job_object(tasks=tasks, plugins={"tensorflow": ["--port=5000"]})).pods()
    cluster = {"ps": ["j-ps-0.j:5000"], "worker": ["j-worker-0.j:5000", "j-worker-1.j:5000"]}
    places = {name: json.loads(_env(pod)["TF_CONFIG"]) for name, pod in pods.items()}
    assert all(place["cluster"] == cluster for place in places.values())
    assert places["j-worker-1"]["task"] == {"type": "worker", "index": 1}
    assert places["j-extra-0"]["task"] == {"type": "extra", "index": 0}


def test_tensorflow_alone_needs_no_cluster() -> None:
    pod = _created(job_object(tasks=[task("worker", 1)], plugins={"tensorflow": []})).pods()["j-worker-0"]
    assert not _env(pod)


# The PodGroup --------------------------------------------------------------------------------------------------------


def _group(job: Json) -> Json:
    world = World()
    world.submit(job)
    world.settle()
    (group,) = world.all(PODGROUPS)
    return group


def test_the_pod_group_carries_the_job_s_marks_but_not_what_a_person_applied() -> None:
    job = job_object(priorityClassName="high", networkTopology={"mode": "soft", "highestTierAllowed": 2})
    job["metadata"]["labels"] = {"a": "1"}
    job["metadata"]["annotations"] = {"b": "2", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    group = _group(job)
    assert group["metadata"]["labels"] == {"a": "1"}
    assert group["metadata"]["annotations"] == {"b": "2", "vcbatch.dev/schedulers": "volcano"}
    assert group["spec"]["priorityClassName"] == "high"
    assert group["spec"]["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}


def test_the_pod_group_follows_the_job() -> None:
    world = World()
    world.submit(job_object(tasks=[task("w", 4), task("x", 1)], minAvailable=3))
    world.settle()

    def change(job: Json) -> None:
        job["spec"]["minAvailable"] = 2
        job["spec"]["priorityClassName"] = "high"
        job["spec"]["tasks"][0] |= {"replicas": 1, "minAvailable": 1}

    world.change(JOBS, "j", change)
    world.settle()
    (group,) = world.all(PODGROUPS)
    spec = group["spec"]
    assert (spec["minMember"], spec["minTaskMember"], spec["priorityClassName"]) == (2, {"w": 1, "x": 1}, "high")
    assert spec["minResources"]["cpu"] == "200m"
    assert not world.reconcile().ensures


def test_the_pod_group_forgets_tasks_and_resources_that_are_no_more() -> None:
    world = World()
    world.submit(job_object())
    world.settle()
    (group,) = world.all(PODGROUPS)
    group["spec"]["minTaskMember"]["old"] = 7
    group["spec"]["minResources"]["nvidia.com/gpu"] = "8"
    world.settle()
    assert group["spec"]["minTaskMember"] == {"w": 2}
    assert "nvidia.com/gpu" not in group["spec"]["minResources"]


def _sized(name: str, replicas: int, cpu: str, *, priority: str = "", **spec: Any) -> Json:
    sized = task(name, replicas, **spec)
    sized["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    if priority:
        sized["template"]["spec"]["priorityClassName"] = priority
    return sized


SIZES = {
    "all": ([_sized("a", 2, "1"), _sized("b", 1, "10")], None, {}, "12"),
    "below the sum, in the order written": ([_sized("a", 2, "1"), _sized("b", 2, "10")], 3, {}, "12"),
    "below the sum, the important first": (
        [_sized("a", 2, "1"), _sized("b", 2, "10", priority="high")],
        3,
        {"high": 5},
        "21",
    ),
    "a class that isn't there counts nothing": (
        [_sized("a", 2, "1"), _sized("b", 2, "10", priority="none")],
        3,
        {"high": 5},
        "12",
    ),
    "above the sum: minimums, then others": (
        [_sized("a", 4, "1", minAvailable=1), _sized("b", 4, "10", minAvailable=1)],
        3,
        {},
        "12",
    ),
}


@pytest.mark.parametrize("case", SIZES)
def test_min_resources(case: str) -> None:
    tasks, minimum, priorities, cpu = SIZES[case]
    world = World(priority_classes=priorities)
    world.submit(job_object(tasks=tasks, **({"minAvailable": minimum} if minimum else {})))
    world.settle()
    (group,) = world.all(PODGROUPS)
    assert group["spec"]["minResources"]["requests.cpu"] == cpu


def test_pod_usage_of_init_containers_sidecars_and_overhead() -> None:
    def container(cpu: str, **more: Any) -> Json:
        return {"resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": 1}, "limits": {"cpu": cpu}}, **more}

    spec: Json = {
        "containers": [container("1"), container("500m")],
        "initContainers": [container("200m", restartPolicy="Always"), container("3")],
        "overhead": {"cpu": "100m", "memory": "16Mi"},
    }
    assert wire(pod_usage(spec)) == {
        "count/pods": "1",
        "cpu": "3300m",
        "limits.cpu": "3300m",
        "memory": "16Mi",
        "nvidia.com/gpu": "3",
        "pods": "1",
        "requests.cpu": "3300m",
        "requests.memory": "16Mi",
        "requests.nvidia.com/gpu": "3",
    }


def test_pod_usage_of_unreadable_quantities() -> None:
    spec: Json = {"containers": [{"resources": {"requests": {"cpu": "many", "memory": "1Gi"}}}]}
    assert wire(pod_usage(spec)) == {"count/pods": "1", "memory": "1Gi", "pods": "1", "requests.memory": "1Gi"}


# Index sets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("indices", "text"), [(set(), ""), ({0}, "0"), ({0, 1, 2}, "0-2"), ({5, 0, 1, 3}, "0-1,3,5"), ({7, 8}, "7-8")]
)
def test_index_sets(indices: set[int], text: str) -> None:
    assert format_indices(indices) == text
    assert parse_indices(text, below=100) == indices


@pytest.mark.parametrize(
    "text", ["x", "-", "3-1", "1-x-2", "²", "0-99999999999999999999", "1" * 5000, "0-" + "1" * 5000]
)
def test_index_sets_that_somebody_spoiled_are_bounded(text: str) -> None:
    assert parse_indices(text, below=3) <= {0, 1, 2}
