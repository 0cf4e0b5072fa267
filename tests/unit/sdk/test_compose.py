"""From a wish to a manifest: what it says, that admission takes it, and what can't be wished for."""

from __future__ import annotations

import os
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission_world import World, queue
from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request
from vcbatch.api.crd import render
from vcbatch.api.job import Job
from vcbatch.api.resources import JOBS
from vcbatch.core.job.ledger import read_ledger
from vcbatch.core.job.plan import plan_of
from vcbatch.core.job.plugins import load
from vcbatch.core.job.pods import creates
from vcbatch.local.apiserver.schema.pruning import prune
from vcbatch.local.apiserver.schema.structural import compile_schema
from vcbatch.local.apiserver.schema.validation import validate_schema
from vcbatch.sdk.compose import Array, CannotCompose, Framework, JobRequest, Volume, VolumeKind, compose
from vcbatch.sdk.compose.program import literal
from vcbatch.sdk.compose.request import time_limit_seconds

Json = dict[str, Any]
SCHEMA = compile_schema(render("Job")["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
WORLD = World(known=[queue("research"), queue("default")], priority_classes=frozenset({"high"}))


def composed(*command: str, **wanted: Any) -> Json:
    return compose(JobRequest(**{"command": command or ("train.py",), "image": "train:1", **wanted}))


def pods(job: Json) -> dict[str, Json]:
    """The pods that the controller makes of it, by task and index."""
    metadata = {"namespace": "ns", "uid": "u", "name": "j", **job["metadata"]}
    plan = plan_of(Job.parse({**job, "metadata": metadata}))
    return {
        f"{task.name}/{index}": next(creates(plan, read_ledger(plan), load(plan), task=task, indices=[index])).body
        for task in plan.tasks.values()
        for index in range(min(task.replicas, 3))
    }


def env_of(pod: Json) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0]["env"]}


def test_a_plain_program_is_one_pod_and_nothing_more() -> None:
    assert composed("./run.sh", "--fast", local=True, image="") == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"generateName": "run-sh-"},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": 1,
            "maxRetry": 1,
            "plugins": {"env": []},
            "policies": [
                {"event": "PodEvicted", "action": "RestartJob"},
                {"event": "PodFailed", "action": "RestartJob"},
            ],
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 1,
                    "minAvailable": 1,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "main", "image": "local", "command": ["./run.sh", "--fast"]}],
                        }
                    },
                }
            ],
        },
    }


def test_several_nodes_of_a_python_program_meet_by_the_pytorch_plugin() -> None:
    job = composed("train.py", "--epochs", "3", nodes=4, processes=8, gpus=8, queue="research")
    assert [(task["name"], task["replicas"]) for task in job["spec"]["tasks"]] == [("master", 1), ("worker", 3)]
    assert job["spec"]["minAvailable"] == 4
    made = pods(job)
    for rank, place in enumerate(["master/0", "worker/0", "worker/1", "worker/2"]):
        env = env_of(made[place])
        assert (env["RANK"], env["WORLD_SIZE"], env["MASTER_ADDR"]) == (str(rank), "4", "j-master-0.j")
        container = made[place]["spec"]["containers"][0]
        assert container["command"] == [
            *("python", "-m", "torch.distributed.run", "--nnodes=4", "--nproc-per-node=8", "--node-rank=$(RANK)"),
            *("--master-addr=$(MASTER_ADDR)", "--master-port=$(MASTER_PORT)", "train.py", "--epochs", "3"),
        ]
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_one_node_needs_nobody_to_meet() -> None:
    job = composed(gpus=4)
    (task,) = job["spec"]["tasks"]
    command = task["template"]["spec"]["containers"][0]["command"]
    assert command[1:5] == ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    assert job["spec"]["plugins"] == {"env": []}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("train.py", "x"), ["python", "train.py", "x"]),
        (("python", "train.py"), ["python", "train.py"]),
        (("python", "-u", "train.py"), ["python", "-u", "train.py"]),
        (("-m", "recipes.train", "-v"), ["python", "-m", "recipes.train", "-v"]),
        (("python3", "-m", "recipes.train"), ["python", "-m", "recipes.train"]),
        (("bash", "-c", "echo $(HOME) $$ $HOME"), ["bash", "-c", "echo $$(HOME) $$$ $HOME"]),
    ],
)
def test_the_program_is_started_as_it_was_typed(command: tuple[str, ...], words: list[str]) -> None:
    (task,) = composed(*command)["spec"]["tasks"]
    assert task["template"]["spec"]["containers"][0]["command"] == words


def test_a_program_that_is_no_python_runs_under_torchrun_too() -> None:
    (task,) = composed("./launch.sh", framework=Framework.PYTORCH, processes=2)["spec"]["tasks"]
    assert task["template"]["spec"]["containers"][0]["command"][-2:] == ["--no-python", "./launch.sh"]


def test_an_array_counts_as_its_user_does(tmp_path: Any) -> None:
    job = composed("./member.sh", array=Array.parse("5-11:3%2"), max_retries=0)
    spec = job["spec"]
    assert (spec["minAvailable"], spec["minSuccess"], spec["tasks"][0]["replicas"]) == (1, 3, 3)
    assert job["metadata"]["annotations"] == {"vcbatch.dev/max-parallel-pods": "2"}
    assert [policy["event"] for policy in spec["policies"]] == ["PodEvicted"]
    seen: list[str] = []
    for index in range(3):
        command = spec["tasks"][0]["template"]["spec"]["containers"][0]["command"]
        shown = [*command[:3], "sh", "/bin/sh", "-c", "echo $VC_ARRAY_INDEX"]
        shown[2] = shown[2].replace("$$(", "$(")  # as Kubernetes does
        env = {**os.environ, "VC_TASK_INDEX": str(index)}
        seen.append(subprocess.run(shown, env=env, capture_output=True, text=True, check=True).stdout.strip())
    assert seen == ["5", "8", "11"]


def member(folder: Path, script: str, retries: int, at: str = "") -> subprocess.Popen[str]:
    """A member of an array as its container starts it; a TERM arrives just before the shell executes the part `at`."""
    spec = composed("sh", "-c", script, array=Array.parse("4-9"), max_retries=retries)["spec"]
    (task,) = spec["tasks"]
    command = [word.replace("$$(", "$(") for word in task["template"]["spec"]["containers"][0]["command"]]
    if at:
        (found,) = [position for position, word in enumerate(command) if at in word]
        command[found] = command[found].replace(at, f"kill -TERM $$; {at}", 1)
    env = {**os.environ, "VC_TASK_INDEX": "3"}
    return subprocess.Popen(
        command, env=env, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.parametrize(
    ("retries", "works", "tries", "code"), [(0, 2, 1, 7), (1, 3, 2, 7), (2, 3, 3, 0), (5, 2, 2, 0)]
)
def test_a_member_of_an_array_is_tried_again_by_itself(
    tmp_path: Path, retries: int, works: int, tries: int, code: int
) -> None:
    done = member(tmp_path, f'echo "$VC_ARRAY_INDEX" >> seen; test $(grep -c . seen) -ge {works} || exit 7', retries)
    _, said = done.communicate(timeout=60)
    assert done.returncode == code
    assert (tmp_path / "seen").read_text() == "7\n" * tries
    reported = [f"try {number} of {retries + 1} ended with exit code 7" for number in range(1, tries)]
    assert said.splitlines() == reported


def test_the_retries_of_an_array_are_not_those_of_the_job() -> None:
    spec = composed("./member.sh", array=Array.parse("0-3"), max_retries=5)["spec"]
    assert spec["maxRetry"] == 1
    assert spec["policies"] == [{"event": "PodEvicted", "action": "RestartPod"}]


def test_a_member_that_is_ended_is_not_tried_again(tmp_path: Path) -> None:
    """Whoever ends a container signals its first process alone."""
    done = member(tmp_path, "trap 'exit 9' TERM; echo started; while :; do sleep 0.1; done", 5)
    assert done.stdout is not None and done.stdout.readline() == "started\n"
    done.terminate()
    _, said = done.communicate(timeout=60)
    assert (done.returncode, said) == (9, "")


@pytest.mark.parametrize(
    "at", ["at=$(", "pid=$!", '[ -z "$stop" ] || [ -n', 'wait "$pid"', "pid=; [", '[ "$code" -ne', "try=$(("]
)
def test_a_member_that_is_ended_at_any_moment_of_its_shell_ends(tmp_path: Path, at: str) -> None:
    """The first run fails; every later one ends by a signal only."""
    script = "[ -e ran ] || { touch ran; sleep 1; exit 7; }; exec sleep 600"
    done = member(tmp_path, script, 5, at)
    done.communicate(timeout=60)
    assert done.returncode in (7, 143)


@pytest.mark.parametrize(("per_node", "hosts", "ranks"), [(1, "a.j,b.j", "2"), (4, "a.j:4,b.j:4", "8")])
def test_mpirun_starts_so_many_ranks_on_each_node(per_node: int, hosts: str, ranks: str, tmp_path: Any) -> None:
    job = composed("./solve", framework=Framework.MPI, nodes=2, processes=per_node)
    launcher, worker = job["spec"]["tasks"]
    assert (launcher["replicas"], worker["replicas"]) == (1, 2)
    assert launcher["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
    command = launcher["template"]["spec"]["containers"][0]["command"]
    command[2] = command[2].replace("$$(", "$(")
    mpirun = tmp_path / "mpirun"
    mpirun.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    mpirun.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "MPI_HOST": "a.j,b.j"}
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()
    assert said == ["--allow-run-as-root", "--host", hosts, "-np", ranks, "./solve"]


def test_ray_has_its_program_beside_the_nodes() -> None:
    job = composed("tune.py", framework=Framework.RAY, nodes=3, cpus="4")
    assert [(task["name"], task["replicas"]) for task in job["spec"]["tasks"]] == [
        ("head", 1), ("worker", 2), ("program", 1),
    ]  # fmt: skip
    made = pods(job)
    assert "ray start --head" in made["head/0"]["spec"]["containers"][0]["command"][2]
    program = made["program/0"]["spec"]["containers"][0]
    assert "resources" not in program
    assert "VC_HEAD_HOSTS" in env_of(made["program/0"])
    assert program["command"][-2:] == ["python", "tune.py"]


def test_amounts_volumes_environment_and_limits() -> None:
    job = composed(
        cpus="4", memory="16Gi", gpus=1, env={"A": "$(B)"}, work_dir="/src", time_limit=90, max_retries=2,
        volumes=(Volume.parse("data:/data:ro"), Volume.parse("/scratch:/scratch"), Volume.parse("secret/keys:/keys")),
        priority_class="high", name="mine",
    )  # fmt: skip
    assert job["metadata"] == {"name": "mine", "annotations": {"vcbatch.dev/max-run-seconds": "90"}}
    assert (job["spec"]["maxRetry"], job["spec"]["priorityClassName"]) == (3, "high")
    pod = job["spec"]["tasks"][0]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
        "limits": {"memory": "16Gi", "nvidia.com/gpu": "1"},
    }
    assert container["env"][0] == {"name": "A", "value": "$$(B)"}
    assert container["workingDir"] == "/src"
    assert pod["volumes"] == [
        {"name": "volume-0", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "volume-1", "hostPath": {"path": "/scratch"}},
        {"name": "volume-2", "secret": {"secretName": "keys"}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
    ]
    assert container["volumeMounts"][0] == {"name": "volume-0", "mountPath": "/data", "readOnly": True}


@pytest.mark.parametrize(
    ("wanted", "option", "reported"),
    [
        ({"image": ""}, "image", "image is required"),
        ({"nodes": 0}, "nodes", "must be at least 1, got 0"),
        ({"processes": 2, "framework": Framework.TENSORFLOW}, "processes", "got tensorflow"),
        ({"processes": 2, "framework": Framework.NONE}, "processes", "got none"),
        ({"array": Array.parse("0-3"), "nodes": 2}, "nodes", "single processes"),
        ({"array": Array.parse("0-3"), "framework": Framework.MPI}, "framework", "mpi"),
        ({"name": "Train"}, "name", "RFC 1123"),
        ({"name": "a" * 60}, "name", "must be at most"),
        ({"cpus": "many"}, "cpus", "invalid quantity"),
        ({"memory": "0"}, "memory", "invalid quantity"),
        ({"memory": "16"}, "memory", "must be at least 1Mi"),
        ({"env": {"A B": ""}}, "env", "environment variable name"),
        ({"work_dir": "src"}, "work_dir", "absolute path"),
        ({"time_limit": 10**10}, "time_limit", "at most"),
        ({"volumes": (Volume.parse("a:/d"), Volume.parse("b:/d"))}, "volumes", "several volumes"),
        ({"volumes": (Volume.parse("A_b:/d"),)}, "volumes", "RFC 1123"),
        ({"command": ()}, "command", "program is required"),
    ],
)
def test_what_cannot_be_is_refused_by_the_option_to_change(wanted: Json, option: str, reported: str) -> None:
    with pytest.raises(CannotCompose, match=reported) as refused:
        compose(JobRequest(**{"command": ("train.py",), "image": "i", **wanted}))
    assert refused.value.option == option


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-99", Array(first=0, last=99)),
        ("0-99%10", Array(first=0, last=99, parallel=10)),
        ("1-9:2", Array(first=1, last=9, step=2)),
        ("7", Array(first=7, last=7)),
    ],
)
def test_arrays(text: str, expected: Array) -> None:
    assert Array.parse(text) == expected


@pytest.mark.parametrize("text", ["", "a", "3-1", "0-9:0", "0-9%0", "-1", "1-", "0-999999", "1,2", "0-9%", "0 - 9"])
def test_what_is_no_array(text: str) -> None:
    with pytest.raises(CannotCompose):
        Array.parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1.5s", 2),
        ("2h30m", 9000),
        ("3d", 259200),
        ("1d12h", 129600),
        ("12:00:00", 43200),
        ("2-00:00:00", 172800),
        ("10:30", 630),
    ],
)
def test_time_limits(text: str, seconds: int) -> None:
    assert time_limit_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5s", "5", "1:2:3:4", "1-2", "d", "0d", "5 m"])
def test_what_is_no_time_limit(text: str) -> None:
    with pytest.raises(CannotCompose):
        time_limit_seconds(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a:b", ":/b", "a:/b:rx", "a:/b:ro:x", "configmap/:/x", "configmap/a/b:/x", "other/a:/x"]
)
def test_what_is_no_volume(text: str) -> None:
    with pytest.raises(CannotCompose):
        Volume.parse(text)


@given(st.text("$(){}AB x"))
def test_kubernetes_leaves_a_literal_as_it_was_typed(text: str) -> None:
    """By the rule of k8s.io/kubernetes `third_party/forked/golang/expansion`, with every variable defined."""

    def expanded(given: str) -> str:
        out, at = "", 0
        while at < len(given):
            if given[at] == "$" and given[at + 1 : at + 2] == "$":
                out, at = f"{out}$", at + 2
            elif given[at] == "$" and given[at + 1 : at + 2] == "(" and ")" in given[at:]:
                out, at = f"{out}EXPANDED", given.index(")", at) + 1
            else:
                out, at = out + given[at], at + 1
        return out

    assert expanded(literal(text)) == text


_words = st.text(string.ascii_letters + string.digits + " ./=$()-_é", min_size=1, max_size=20)
_names = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
_commands = st.one_of(
    st.tuples(st.sampled_from(["train.py", "src/My_Model.v2.py", "./run", "a" * 80 + ".py", "é.py", "..."]), _words),
    st.lists(_words, min_size=1, max_size=4).map(tuple),
    st.just(("-m", "a.b.c")),
)
_volumes = st.builds(
    Volume,
    kind=st.sampled_from([VolumeKind.CLAIM, VolumeKind.CONFIG_MAP, VolumeKind.SECRET]),
    source=_names,
    path=_names.map(lambda name: f"/{name}"),
    read_only=st.booleans(),
)
_preferences = st.builds(
    JobRequest,
    command=_commands,
    name=st.one_of(st.just(""), _names),
    framework=st.sampled_from([None, *Framework]),
    nodes=st.integers(1, 2000),
    processes=st.one_of(st.none(), st.integers(1, 16)),
    gpus=st.integers(0, 16),
    cpus=st.sampled_from(["", "4", "500m", "1.5"]),
    memory=st.sampled_from(["", "16Gi", "1G", "123456789"]),
    image=st.sampled_from(["pytorch/pytorch:latest", "registry:5000/a/b@sha256:" + "0" * 64]),
    queue=st.sampled_from(["", "research"]),
    priority_class=st.sampled_from(["", "high"]),
    env=st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), _words, max_size=3),
    volumes=st.lists(_volumes, max_size=3).map(tuple),
    array=st.one_of(
        st.none(),
        st.builds(
            Array,
            first=st.integers(0, 50),
            last=st.integers(50, 3000),
            step=st.integers(1, 9),
            parallel=st.one_of(st.none(), st.integers(1, 500)),
        ),
    ),
    time_limit=st.one_of(st.none(), st.integers(1, 10**6)),
    max_retries=st.integers(0, 5),
    work_dir=st.sampled_from(["", "/src"]),
    local=st.booleans(),
)


@given(_preferences)
def test_admission_takes_every_job_that_is_composed(wanted: JobRequest) -> None:
    try:
        job = compose(wanted)
    except CannotCompose as refused:
        assert hasattr(wanted, refused.option)
        return
    metadata = {"namespace": "ns", **job["metadata"]}
    name = metadata.get("name", "")
    asked = Request(
        resource=JOBS, operation=Operation.CREATE, name=name, namespace="ns", object={**job, "metadata": metadata}
    )
    defaulted = admission.mutate(asked, WORLD)
    assert defaulted is not None
    verdict = admission.review(
        Request(resource=JOBS, operation=Operation.CREATE, name=name, namespace="ns", object=defaulted), WORLD
    )
    assert list(verdict.errors) == []
    assert validate_schema(defaulted, SCHEMA) == []
    assert prune(defaulted, SCHEMA) == []
    assert yaml.safe_load(yaml.safe_dump(job)) == compose(wanted)
