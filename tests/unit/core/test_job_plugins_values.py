"""What each plugin writes, whole: the objects it keeps and the pods it changed, field by field."""

from __future__ import annotations

import base64
import copy
import json
import re
from typing import Any

import pytest

from tests.support.job_world import Json, job_object, task
from vcbatch.api.flags import PLUGIN_FLAGS, Flags
from vcbatch.api.job import Job
from vcbatch.api.resources import CONFIGMAPS, NETWORKPOLICIES, SECRETS, SERVICES
from vcbatch.core.job.plan import Plan, Task, plan_of
from vcbatch.core.job.plugins import KNOWN, Child, JobPlugin, PluginFailedError, PluginSet, load, register
from vcbatch.core.machine import FreshKeys


class Applied:
    """The plugins of one job, and the pods that they make of bare ones."""

    def __init__(self, tasks: list[Json], plugins: dict[str, list[str]]) -> None:
        self._plan = plan_of(Job.parse(job_object(tasks=tasks, uid="u", plugins=plugins)))
        self._plugins = load(self._plan)

    def children(self) -> list[Child]:
        return list(self._plugins.children())

    def pod(self, name: str, index: int = 0, **metadata: Any) -> Json:
        wanted = self._plan.tasks[name]
        spec = copy.deepcopy(dict(wanted.spec.pod_spec))
        pod: Json = {"metadata": {"name": f"j-{name}-{index}", **metadata}, "spec": spec}
        self._plugins.change_pod(pod, task=wanted, index=index)
        return pod


def bare(name: str, replicas: int, **spec: Any) -> Json:
    """A task whose pods say as little as a pod can, and have an init container."""
    pod = {"containers": [{"name": "main"}], "initContainers": [{"name": "init"}], **spec}
    return {"name": name, "replicas": replicas, "template": {"spec": pod}}


def environment(pod: Json, container: int = 0) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][container].get("env", ())}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# svc -----------------------------------------------------------------------------------------------------------------

SELECTOR = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}


def test_svc_keeps_a_list_a_service_and_a_policy() -> None:
    pods = {"podSelector": {"matchLabels": SELECTOR}}
    data = {"w.host": "j-w-0.j\nj-w-1.j", "VC_W_HOSTS": "j-w-0.j,j-w-1.j", "VC_W_NUM": "2"}
    assert Applied([bare("w", 2)], {"svc": []}).children() == [
        Child(CONFIGMAPS, "j-svc", {"data": data}, owned=("data",)),
        Child(SERVICES, "j", {"spec": {"clusterIP": "None", "selector": SELECTOR}}),
        Child(NETWORKPOLICIES, "j", {"spec": {**pods, "ingress": [{"from": [pods]}], "policyTypes": ["Ingress"]}}),
    ]


def test_a_pod_with_svc() -> None:
    def variable(name: str) -> Json:
        return {"name": name, "valueFrom": {"configMapKeyRef": {"name": "j-svc", "key": name}}}

    added = {
        "env": [variable("VC_W_HOSTS"), variable("VC_W_NUM")],
        "volumeMounts": [{"name": "j-svc", "mountPath": "/etc/volcano"}],
    }
    assert Applied([bare("w", 2)], {"svc": []}).pod("w", 1)["spec"] == {
        "hostname": "j-w-1",
        "subdomain": "j",
        "initContainers": [{"name": "init", **added}],
        "containers": [{"name": "main", **added}],
        "volumes": [{"name": "j-svc", "configMap": {"name": "j-svc"}}],
    }


def test_svc_leaves_the_names_that_a_template_gives() -> None:
    spec = Applied([bare("w", 2, hostname="h", subdomain="s")], {"svc": []}).pod("w", 1)["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("h", "s")


# ssh -----------------------------------------------------------------------------------------------------------------

SSH_CONFIG = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
Host j-w-0
  HostName j-w-0.j
  Port 22
"""


def test_ssh_keeps_a_secret_whose_keys_are_made_with_it() -> None:
    (child,) = Applied([bare("w", 1)], {"ssh": []}).children()
    assert child == Child(
        SECRETS,
        "j-ssh",
        {"type": "Opaque", "data": {"config": encoded(SSH_CONFIG)}},
        owned=("data",),
        keys=FreshKeys(private="id_rsa", public=("id_rsa.pub", "authorized_keys")),
    )


def test_ssh_keeps_the_keys_that_it_was_given_beside_its_configuration() -> None:
    arguments = ["--ssh-private-key=private", "--ssh-public-key=public"]
    (child,) = Applied([bare("w", 1)], {"ssh": arguments}).children()
    assert child.keys is None
    assert child.body["data"] == {
        "config": encoded(SSH_CONFIG),
        "id_rsa": encoded("private"),
        "id_rsa.pub": encoded("public"),
        "authorized_keys": encoded("public"),
    }


def test_a_pod_with_ssh() -> None:
    mount = {"name": "j-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}
    files = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
    items = [{"key": key, "path": f".ssh/{key}"} for key in files]
    assert Applied([bare("w", 1)], {"ssh": []}).pod("w")["spec"] == {
        "initContainers": [{"name": "init", "volumeMounts": [mount]}],
        "containers": [{"name": "main", "volumeMounts": [mount]}],
        "volumes": [{"name": "j-ssh", "secret": {"secretName": "j-ssh", "items": items, "defaultMode": 0o600}}],
    }


@pytest.mark.parametrize(("given", "port"), [("1", 1), ("65535", 65535), ("0", 22), ("65536", 22)])
def test_ssh_takes_every_port_that_there_is(given: str, port: int) -> None:
    (child,) = Applied([bare("w", 1)], {"ssh": [f"--ssh-port={given}"]}).children()
    assert child.body["data"]["config"] == encoded(SSH_CONFIG.replace("Port 22", f"Port {port}"))


def test_ssh_calls_a_host_by_the_first_part_of_its_name() -> None:
    (child,) = Applied([bare("w", 1, subdomain="s.example")], {"ssh": []}).children()
    assert "Host j-w-0\n  HostName j-w-0.s.example\n" in base64.b64decode(child.body["data"]["config"]).decode()


# pytorch -------------------------------------------------------------------------------------------------------------


def test_a_worker_with_pytorch() -> None:
    applied = Applied([bare("master", 1), bare("worker", 2)], {"pytorch": []})
    variables = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "2"}
    assert applied.pod("worker", 1)["spec"] == {
        "initContainers": [{"name": "init"}],
        "containers": [
            {
                "name": "main",
                "ports": [{"name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP"}],
                "env": [{"name": name, "value": value} for name, value in variables.items()],
            }
        ],
    }


def test_pytorch_without_workers_counts_the_masters() -> None:
    assert environment(Applied([bare("master", 2)], {"pytorch": []}).pod("master", 1)) == {
        "MASTER_ADDR": "j-master-0.j",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "2",
        "RANK": "1",
    }


@pytest.mark.parametrize(
    ("master", "address"),
    [
        (bare("master", 1, hostname="h", subdomain="s"), "h.s"),
        (bare("master", 2, subdomain="s"), "j-master-0.s"),
        (bare("master", 0), "j-master-0.j"),  # that of the first there will be
    ],
)
def test_where_workers_look_for_their_master(master: Json, address: str) -> None:
    worker = Applied([master, bare("worker", 1)], {"pytorch": []}).pod("worker")
    assert environment(worker)["MASTER_ADDR"] == address


def test_a_worker_that_waits_for_its_master() -> None:
    arguments = ["--port=77", "--wait-master-enabled", "--wait-master-timeout=9", "--wait-master-image=img:1"]
    applied = Applied([bare("master", 1), bare("worker", 1)], {"pytorch": arguments})
    init, waiter = applied.pod("worker")["spec"]["initContainers"]
    assert init == {"name": "init"}
    shell, option, script = waiter.pop("command")
    address, port = {"name": "MASTER_ADDR", "value": "j-master-0.j"}, {"name": "MASTER_PORT", "value": "77"}
    assert waiter == {"name": "wait-for-master", "image": "img:1", "env": [address, port]}
    assert (shell, option) == ("sh", "-c")
    assert "+ 9 ))" in script
    assert "didn't answer within 9 s" in script
    assert "77" not in script, "a port that is written into the script isn't the one that the pods get"


@pytest.mark.parametrize(
    ("env", "waits_with"),
    [
        ([{"name": "MASTER_PORT", "value": "5555"}], [{"name": "MASTER_PORT", "value": "5555"}]),
        (
            [
                {"name": "X", "value": "x"},
                {"name": "BASE", "value": "5"},
                {"name": "MASTER_PORT", "value": "$(BASE)55"},
            ],
            [{"name": "BASE", "value": "5"}, {"name": "MASTER_PORT", "value": "$(BASE)55"}],
        ),
        (
            [{"name": "MASTER_PORT", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}],
            [{"name": "MASTER_PORT", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}],
        ),
        (
            [{"name": "MASTER_ADDR", "value": "elsewhere"}, {"name": "MASTER_PORT", "value": "1"}],
            [{"name": "MASTER_ADDR", "value": "elsewhere"}, {"name": "MASTER_PORT", "value": "1"}],
        ),
    ],
    ids=["a port", "a port made of another variable", "a port from a ConfigMap", "a place of the user's"],
)
def test_a_worker_waits_where_its_own_containers_will_look(env: list[Json], waits_with: list[Json]) -> None:
    worker = bare("worker", 1, containers=[{"name": "c", "env": env}])
    pod = Applied([bare("master", 1), worker], {"pytorch": ["--wait-master-enabled"]}).pod("worker")
    waiter = next(one for one in pod["spec"]["initContainers"] if one["name"] == "wait-for-master")
    address = [] if waits_with[0]["name"] == "MASTER_ADDR" else [{"name": "MASTER_ADDR", "value": "j-master-0.j"}]
    assert waiter["env"] == [*address, *waits_with]


def test_a_worker_that_waits_in_its_own_way_keeps_it() -> None:
    own = {"name": "wait-for-master", "image": "mine"}
    tasks = [bare("master", 1), bare("worker", 1, initContainers=[own])]
    assert Applied(tasks, {"pytorch": ["--wait-master-enabled"]}).pod("worker")["spec"]["initContainers"] == [own]


# tensorflow ----------------------------------------------------------------------------------------------------------


def tf_config(pod: Json) -> Json:
    return json.loads(environment(pod)["TF_CONFIG"])


def test_tensorflow_calls_tasks_by_their_roles() -> None:
    tasks = [bare("p", 1), bare("w", 1), bare("c", 1), bare("e", 1)]
    arguments = ["--ps=p", "--worker=w", "--chief=c", "--evaluator=e"]
    applied = Applied(tasks, {"tensorflow": arguments})
    roles = {"p": "ps", "w": "worker", "c": "chief", "e": "evaluator"}
    cluster = {role: [f"j-{name}-0.j:2222"] for name, role in roles.items()}
    for name, role in roles.items():
        pod = applied.pod(name)
        assert tf_config(pod) == {"cluster": cluster, "task": {"type": role, "index": 0}}
        assert pod["spec"]["initContainers"] == [{"name": "init"}]


def test_tensorflow_lists_no_role_without_pods_and_names_a_task_of_two_by_the_first() -> None:
    tasks = [bare("ps", 0), bare("both", 1)]
    applied = Applied(tasks, {"tensorflow": ["--chief=both", "--worker=both"]})
    assert tf_config(applied.pod("both")) == {
        "cluster": {"worker": ["j-both-0.j:2222"], "chief": ["j-both-0.j:2222"]},
        "task": {"type": "worker", "index": 0},
    }


@pytest.mark.parametrize(
    ("tasks", "alone"),
    [([("w", 1)], True), ([("w", 2)], False), ([("w", 1), ("x", 0)], False), ([("w", 1), ("x", 1)], False)],
)
def test_tensorflow_tells_nothing_to_a_pod_that_is_alone(tasks: list[tuple[str, int]], alone: bool) -> None:
    pod = Applied([bare(name, replicas) for name, replicas in tasks], {"tensorflow": []}).pod("w")
    assert ("TF_CONFIG" not in environment(pod)) is alone


# mpi -----------------------------------------------------------------------------------------------------------------


def test_mpi_knows_of_workers_that_there_are_none_of_now() -> None:
    applied = Applied([bare("master", 1), bare("worker", 0)], {"mpi": []})
    added = {
        "ports": [{"name": "mpijob-port", "containerPort": 22, "protocol": "TCP"}],
        "env": [{"name": "MPI_HOST", "value": ""}],
    }
    assert applied.pod("master")["spec"] == {
        "initContainers": [{"name": "init", **added}],
        "containers": [{"name": "main", **added}],
    }


# ray -----------------------------------------------------------------------------------------------------------------


def test_ray_keeps_a_service_for_its_head() -> None:
    ports = [
        {"name": "gcs", "port": 6379, "protocol": "TCP", "targetPort": "gcs"},
        {"name": "dashboard", "port": 8265, "protocol": "TCP", "targetPort": "dashboard"},
        {"name": "client-server", "port": 10001, "protocol": "TCP", "targetPort": "client-server"},
    ]
    spec = {"selector": {**SELECTOR, "volcano.sh/task-spec": "head"}, "ports": ports}
    # What an init container listens on is over when Ray starts.
    init = {"name": "init", "ports": [{"name": "gcs", "containerPort": 6379}]}
    head = bare("head", 1, containers=[{"name": "head"}], initContainers=[init])
    assert Applied([head], {"ray": []}).children() == [Child(SERVICES, "j-head-svc", {"spec": spec})]


def test_ray_starts_in_containers_and_not_in_init_containers_of_the_name() -> None:
    containers = {"containers": [{"name": "head"}], "initContainers": [{"name": "head"}]}
    spec = Applied([bare("head", 1, **containers)], {"ray": []}).pod("head")["spec"]
    assert spec["initContainers"] == [{"name": "head"}]
    assert spec["containers"][0]["ports"] == [
        {"name": "gcs", "containerPort": 6379, "protocol": "TCP"},
        {"name": "dashboard", "containerPort": 8265, "protocol": "TCP"},
        {"name": "client-server", "containerPort": 10001, "protocol": "TCP"},
    ]


def test_ray_has_a_port_targeted_by_number_where_the_head_s_name_is_that_of_an_init_container_alone() -> None:
    head = bare("head", 1, initContainers=[{"name": "head"}])
    (service,) = Applied([head], {"ray": []}).children()
    assert [port["targetPort"] for port in service.body["spec"]["ports"]] == [6379, 8265, 10001]


def test_ray_joins_nobody_while_the_head_is_scaled_away() -> None:
    tasks = [bare("head", 0), bare("worker", 1, containers=[{"name": "worker"}])]
    (container,) = Applied(tasks, {"ray": []}).pod("worker")["spec"]["containers"]
    assert container == {"name": "worker", "command": ["sh", "-c", "ray start --block --address=:6379"]}


# hcclrank ------------------------------------------------------------------------------------------------------------


def rank(tasks: list[Json], name: str, index: int = 0, **metadata: Any) -> str | None:
    pod = Applied(tasks, {"hcclrank": []}).pod(name, index, **metadata)
    return pod["metadata"]["annotations"].get("hccl/rankIndex")


def test_hcclrank_counts_workers_from_0_without_masters() -> None:
    assert rank([bare("worker", 2)], "worker", 1) == "1"


def test_hcclrank_keeps_the_pod_s_other_annotations() -> None:
    pod = Applied([bare("worker", 1)], {"hcclrank": []}).pod("worker", annotations={"a": "b"})
    assert pod["metadata"]["annotations"] == {"a": "b", "hccl/rankIndex": "0"}


@pytest.mark.parametrize(
    ("kind", "entry", "reported"),
    [
        ("containers", {"name": "RANK", "value": "9"}, "9"),
        ("containers", {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}, "0"),
        ("containers", {"name": "RANK", "value": ""}, "0"),
        ("containers", {"name": "OTHER", "value": "9"}, "0"),
        ("initContainers", {"name": "RANK", "value": "9"}, "0"),
    ],
)
def test_hcclrank_takes_a_rank_that_a_container_has_as_a_value(kind: str, entry: Json, reported: str) -> None:
    assert rank([bare("worker", 1, **{kind: [{"name": "main", "env": [entry]}]})], "worker") == reported


# The set -------------------------------------------------------------------------------------------------------------


class _Broken:
    def children(self) -> tuple[Child, ...]:
        raise LookupError("no host")

    def change_pod(self, pod: Json, *, task: object, index: int) -> None:
        raise LookupError(f"no host for {index}")


def test_variables_of_plugins_come_before_those_of_the_author() -> None:
    mine = [
        {"name": "PORT", "value": "90$(VC_TASK_INDEX)"},
        {"name": "VK_TASK_INDEX", "value": "mine"},
        {"name": "HOSTS", "value": "$(VC_W_HOSTS)"},
        {"name": "PORT", "value": "again"},
    ]
    init: Json = {"name": "init", "env": copy.deepcopy(mine)}
    given = bare("w", 2, containers=[{"name": "main", "env": mine}, {"name": "other"}], initContainers=[init])
    pod = Applied([given], {"env": [], "svc": [], "pytorch": ["--master=w"]}).pod("w", 1)
    first, second = pod["spec"]["containers"]
    added = ["VC_TASK_INDEX", "VC_W_HOSTS", "VC_W_NUM"]
    assert [entry["name"] for entry in pod["spec"]["initContainers"][0]["env"][:-4]] == added
    assert [entry["name"] for entry in first["env"][:-4]] == [
        *added, "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK",
    ]  # fmt: skip
    assert first["env"][-4:] == pod["spec"]["initContainers"][0]["env"][-4:] == mine, "as they were written"
    assert [entry["name"] for entry in second["env"]][:2] == ["VK_TASK_INDEX", "VC_TASK_INDEX"]


def test_variables_of_a_users_plugin_come_before_those_of_the_author() -> None:
    class Renewing:
        """Replaces the container with another of its name."""

        def children(self) -> tuple[Child, ...]:
            return ()

        def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
            (container,) = pod["spec"]["containers"]
            env = [*container["env"], {"name": "THEIRS", "value": "y"}]
            pod["spec"]["containers"] = [{**container, "env": env}]

    plan = plan_of(Job.parse(job_object(tasks=[task("w", 1)])))
    pod: Json = {"spec": {"containers": [{"name": "main", "env": [{"name": "MINE", "value": "$(THEIRS)"}]}]}}
    PluginSet({"renewing": Renewing()}).change_pod(pod, task=plan.tasks["w"], index=0)
    assert [entry["name"] for entry in pod["spec"]["containers"][0]["env"]] == ["THEIRS", "MINE"]


def test_a_plugin_that_raises_is_named() -> None:
    plan = plan_of(Job.parse(job_object(tasks=[task("w", 1)])))
    broken: JobPlugin = _Broken()
    plugins = PluginSet({"mine": broken})
    with pytest.raises(PluginFailedError, match=r"^plugin mine failed: LookupError: no host$"):
        list(plugins.children())
    with pytest.raises(PluginFailedError, match=r"^plugin mine failed: LookupError: no host for 3$"):
        plugins.change_pod({"spec": {}}, task=plan.tasks["w"], index=3)


def test_a_plugin_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(plan: Plan, flags: Flags) -> JobPlugin:
        raise LookupError(f"no host in {plan.job.name} {flags.values}")

    monkeypatch.setitem(KNOWN, "mine", make)
    monkeypatch.setitem(PLUGIN_FLAGS, "mine", {"flag": 1})
    with pytest.raises(PluginFailedError, match=r"^plugin mine failed: LookupError: no host in j {'flag': 1}$"):
        load(plan_of(Job.parse(job_object(plugins={"mine": []}))))


def test_arguments_that_do_not_parse_are_told_with_their_plugin() -> None:
    given = {"ssh": ["--ssh-port=x"], "env": ["--no"]}
    plugins = load(plan_of(Job.parse(job_object(plugins=given))))
    assert list(plugins.plugins) == ["env", "ssh"]
    assert plugins.errors == (
        "plugin env: flag no isn't known, want one of none",
        "plugin ssh: flag ssh-port is 'x', want an integer",
    )


@pytest.mark.parametrize(
    ("name", "default", "why"),
    [
        ("Mine", 1, "job plugin 'Mine': a name has small letters, digits and dashes, 32 at most"),
        ("svc", 1, "job plugin svc: there is one of this name already"),
        ("mine", 1.5, "job plugin mine: the default of flag is 1.5, want a boolean, integer or text"),
    ],
)
def test_a_plugin_that_cannot_be_added(name: str, default: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        register(name, flags={"flag": default}, make=lambda plan, flags: _Broken())
