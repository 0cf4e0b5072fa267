"""The plugins that bring programs of several hosts together: ssh, mpi, ray, hcclrank."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import JOBS, SECRETS, SERVICES

KEYS = ("id_rsa", "id_rsa.pub", "authorized_keys")


def created(job: Json) -> World:
    world = World()
    world.submit(job)
    world.settle()
    world.schedule()
    world.settle()
    return world


def with_init(spec: Json) -> Json:
    spec["template"]["spec"]["initContainers"] = [{"name": "init", "image": "img"}]
    return spec


def secret(world: World) -> dict[str, str]:
    (stored,) = world.all(SECRETS)
    return stored["data"]


def config(world: World) -> str:
    return base64.b64decode(secret(world)["config"]).decode()


def first(pod: Json, kind: str = "containers") -> Any:
    return pod["spec"][kind][0]


# ssh -----------------------------------------------------------------------------------------------------------------


def test_ssh_gives_all_pods_one_key_and_a_list_of_hosts() -> None:
    world = created(job_object(tasks=[with_init(task("a", 2)), task("b", 1)], plugins={"ssh": []}))
    assert secret(world).keys() == {*KEYS, "config"}
    assert config(world).splitlines() == [
        "StrictHostKeyChecking no",
        "UserKnownHostsFile /dev/null",
        *("Host j-a-0", "  HostName j-a-0.j", "  Port 22"),
        *("Host j-a-1", "  HostName j-a-1.j", "  Port 22"),
        *("Host j-b-0", "  HostName j-b-0.j", "  Port 22"),
    ]
    pod = world.pods()["j-a-1"]
    (volume,) = pod["spec"]["volumes"]
    assert (volume["name"], volume["secret"]["secretName"], volume["secret"]["defaultMode"]) == (
        "j-ssh",
        "j-ssh",
        0o600,
    )
    assert {item["path"] for item in volume["secret"]["items"]} == {f".ssh/{key}" for key in (*KEYS, "config")}
    mount = {"name": "j-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}
    assert first(pod)["volumeMounts"] == [mount]
    assert first(pod, "initContainers")["volumeMounts"] == [mount]


def test_ssh_for_another_user_on_another_port() -> None:
    world = created(job_object(plugins={"ssh": ["--ssh-key-file-path=/home/u/.ssh", "--ssh-port=2222"]}))
    assert "  Port 2222" in config(world)
    pod = world.pods()["j-w-0"]
    assert pod["spec"]["volumes"][0]["secret"]["defaultMode"] == 0o644
    assert first(pod)["volumeMounts"][0]["mountPath"] == "/home/u/.ssh"


@pytest.mark.parametrize("port", ["0", "-1", "65536"])
def test_ssh_on_a_port_that_is_none_stays_on_22(port: str) -> None:
    assert "  Port 22\n" in config(created(job_object(plugins={"ssh": [f"--ssh-port={port}"]})))


def test_ssh_keeps_its_keys_while_the_hosts_change() -> None:
    world = created(job_object(tasks=[task("w", 1)], plugins={"ssh": []}))
    before = secret(world)

    def more(job: Json) -> None:
        job["spec"]["tasks"][0]["replicas"] = 3

    world.change(JOBS, "j", more)
    world.settle()
    assert "Host j-w-2" in config(world)
    assert {key: secret(world)[key] for key in KEYS} == {key: before[key] for key in KEYS}


def test_ssh_keeps_its_keys_over_a_restart() -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    world = created(job_object(tasks=[task("w", 2)], plugins={"ssh": []}, policies=policies))
    before = secret(world)
    world.run_nodes()
    world.end_pod("j-w-0", 1)
    world.settle()
    assert world.job()["status"]["retryCount"] == 1
    assert secret(world) == before


def test_ssh_takes_keys_that_it_is_given() -> None:
    world = created(job_object(plugins={"ssh": ["--ssh-private-key=private", "--ssh-public-key=public"]}))
    decoded = {key: base64.b64decode(secret(world)[key]).decode() for key in KEYS}
    assert decoded == {"id_rsa": "private", "id_rsa.pub": "public", "authorized_keys": "public"}


# mpi -----------------------------------------------------------------------------------------------------------------


def mpi_host(pod: Json, kind: str = "containers") -> str | None:
    return next((entry["value"] for entry in first(pod, kind).get("env") or () if entry["name"] == "MPI_HOST"), None)


def test_mpi_tells_the_master_where_the_workers_are() -> None:
    tasks = [with_init(task("launcher", 1)), task("node", 2)]
    pods = created(
        job_object(tasks=tasks, plugins={"mpi": ["--master=launcher", "--worker=node", "--port=2222"]})
    ).pods()
    port = {"name": "mpijob-port", "containerPort": 2222, "protocol": "TCP"}
    for kind in ("containers", "initContainers"):
        assert first(pods["j-launcher-0"], kind)["ports"] == [port]
        assert mpi_host(pods["j-launcher-0"], kind) == "j-node-0.j,j-node-1.j"
    assert first(pods["j-node-1"])["ports"] == [port]
    assert mpi_host(pods["j-node-1"]) is None


def test_mpi_without_workers_leaves_the_master_alone() -> None:
    pod = created(job_object(tasks=[task("master", 1)], plugins={"mpi": []})).pods()["j-master-0"]
    assert "ports" not in first(pod)
    assert mpi_host(pod) is None


# ray -----------------------------------------------------------------------------------------------------------------


def ray_task(name: str, replicas: int) -> Json:
    spec = task(name, replicas)
    spec["template"]["spec"]["containers"] = [
        {"name": "side", "image": "img", "command": ["side"]},
        {"name": name, "image": "img", "command": ["mine"], "args": ["stay"]},
    ]
    return spec


def head_service(world: World) -> Json:
    return next(stored for stored in world.all(SERVICES) if stored["metadata"]["name"] == "j-head-svc")


def test_ray_starts_a_head_and_workers_that_join_it() -> None:
    world = created(job_object(tasks=[ray_task("head", 1), ray_task("worker", 2)], plugins={"ray": ["--port=7000"]}))
    head, worker = world.pods()["j-head-0"], world.pods()["j-worker-1"]
    side, container = head["spec"]["containers"]
    assert side["command"] == ["side"]
    start = "ray start --head --block --dashboard-host=0.0.0.0 --port=7000 --dashboard-port=8265"
    assert container["command"] == ["sh", "-c", f"{start} --ray-client-server-port=10001"]
    assert container["args"] == ["stay"]
    assert [(port["name"], port["containerPort"]) for port in container["ports"]] == [
        ("gcs", 7000),
        ("dashboard", 8265),
        ("client-server", 10001),
    ]
    assert worker["spec"]["containers"][1]["command"] == ["sh", "-c", "ray start --block --address=j-head-0.j:7000"]
    service = head_service(world)
    assert service["spec"]["selector"]["volcano.sh/task-spec"] == "head"
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [
        (7000, "gcs"),
        (8265, "dashboard"),
        (10001, "client-server"),
    ]


def test_ray_leaves_a_port_that_is_declared() -> None:
    head = ray_task("head", 1)
    head["template"]["spec"]["containers"][1]["ports"] = [{"name": "mine", "containerPort": 6379}]
    world = created(job_object(tasks=[head], plugins={"ray": []}))
    ports = world.pods()["j-head-0"]["spec"]["containers"][1]["ports"]
    assert [port["name"] for port in ports] == ["mine", "dashboard", "client-server"]
    service = head_service(world)
    # By number, where the port that the user declared has a name of its own.
    assert [port["targetPort"] for port in service["spec"]["ports"]] == [6379, "dashboard", "client-server"]


def test_ray_targets_numbers_where_a_name_is_somebody_elses() -> None:
    head = ray_task("head", 1)
    head["template"]["spec"]["containers"][0]["ports"] = [{"name": "gcs", "containerPort": 1}]
    service = head_service(created(job_object(tasks=[head], plugins={"ray": []})))
    assert [port["targetPort"] for port in service["spec"]["ports"]] == [6379, "dashboard", "client-server"]
    service = head_service(created(job_object(tasks=[ray_task("head", 1)], plugins={"ray": ["--headContainer=no"]})))
    assert [port["targetPort"] for port in service["spec"]["ports"]] == [6379, 8265, 10001]


# hcclrank ------------------------------------------------------------------------------------------------------------


def ranks(job: Json) -> dict[str, str | None]:
    pods = created(job).pods()
    return {name: pod["metadata"]["annotations"].get("hccl/rankIndex") for name, pod in pods.items()}


def test_hcclrank_counts_masters_first() -> None:
    tasks = [task("master", 2), task("worker", 2), task("other", 1)]
    assert ranks(job_object(tasks=tasks, plugins={"hcclrank": []})) == {
        "j-master-0": "0",
        "j-master-1": "1",
        "j-worker-0": "2",
        "j-worker-1": "3",
        "j-other-0": None,
    }


def test_hcclrank_takes_a_rank_that_is_there() -> None:
    tasks = [task("m", 1), task("w", 1)]
    given = job_object(tasks=tasks, plugins={"pytorch": ["--master=m", "--worker=w"], "hcclrank": []})
    assert ranks(given) == {"j-m-0": "0", "j-w-0": "1"}
    annotated = job_object(tasks=[task("master", 1)], plugins={"hcclrank": []})
    annotated["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {"hccl/rankIndex": "7"}}
    assert ranks(annotated) == {"j-master-0": "7"}


# Their objects -------------------------------------------------------------------------------------------------------


def test_what_the_plugins_keep_goes_with_the_last_pod() -> None:
    world = created(job_object(tasks=[ray_task("head", 1)], plugins={"ray": [], "ssh": [], "svc": []}))
    assert {entry["metadata"]["name"] for entry in world.all(SERVICES)} == {"j", "j-head-svc"}
    world.run_nodes()
    world.end_pod("j-head-0", 0)
    world.settle()
    assert world.job()["status"]["state"]["phase"] == "Completed"
    assert not world.all(SERVICES)
    assert not world.all(SECRETS)
    assert not world.job()["status"].get("controlledResources")
