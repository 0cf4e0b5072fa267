"""`vcbatch simulate`: files in, decisions out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from vcbatch.cli.base.output import CliError
from vcbatch.cli.whatif.simulate import command

Json = dict[str, Any]
GPU = "nvidia.com/gpu"


def node(name: str) -> Json:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "20", GPU: "4"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def group(name: str, minimum: int) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }


def pod(name: str, gang: str | None = None, *, gpus: int = 1, **spec: Any) -> Json:
    notes = {"annotations": {"scheduling.k8s.io/group-name": gang}} if gang else {}
    container = {"name": "c", "resources": {"requests": {"cpu": "1", GPU: gpus}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **notes},
        "spec": {"containers": [container], **spec},
    }


def _in(namespace: str, made: Json) -> Json:
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


def case(name: str, **changed: Any) -> Json:
    return {
        "name": name,
        "actions": ["allocate"],
        "tiers": [
            {"plugins": [{"name": "gang", "enabled": ["enableJobReady"]}, {"name": "predicates", "enabled": []}]}
        ],
        "nodes": [node("a")],
        "queues": [{"metadata": {"name": "default"}}],
        "podGroups": [_in("ns", group("g", 1))],
        "pods": [_in("ns", pod("g-0", "g"))],
        "want": {"binds": {"ns/g-0": "a"}},
        **changed,
    }


@pytest.fixture
def write(tmp_path: Path):
    def write(*documents: Json, name: str = "world.yaml") -> str:
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all(documents))
        return str(path)

    return write


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), standalone_mode=False)


def reported(result: Result) -> list[Json]:
    assert result.exception is None, result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_world_without_nodes_is_told_of(tmp_path: Path):
    file = tmp_path / "gang.yaml"
    file.write_text(yaml.safe_dump_all([group("g", 1), pod("g-0", "g")]))
    done = CliRunner().invoke(command, [str(file)], standalone_mode=False)
    assert done.return_value == 0
    assert done.stderr == f"{file}: no Node objects; nothing can be scheduled\n"


def test_objects_of_all_files_are_one_world(write: Any):
    listed = {"apiVersion": "v1", "kind": "List", "items": [node("a"), node("b")]}
    first = write(listed, group("g", 2), name="first.yaml")
    second = write(pod("g-0", "g", gpus=4), pod("g-1", "g", gpus=4), name="second.yaml")
    [found] = reported(run(first, second, "-o", "json"))
    assert found["name"] == "first,second"
    assert found["binds"] == {"default/g-0": "a", "default/g-1": "b"}
    assert found["podGroupPhase"] == {"default/g": "Inqueue"}
    assert found["taskStatusCounts"] == {"default/g": {"Binding": 2}}
    assert (found["evicted"], found["pipelined"], found["reasons"]) == ([], {}, {})


def test_kubectl_json_and_compressed_files_are_read_too(write: Any, tmp_path: Path):
    packed = tmp_path / "pods.json.gz"
    nodes = {
        "apiVersion": "v1",
        "kind": "NodeList",
        "items": [{"metadata": {"name": "a"}, "status": node("a")["status"]}],
    }
    packed.write_bytes(gzip.compress(json.dumps(nodes).encode()))
    [found] = reported(run(str(packed), write(group("g", 1), pod("g-0", "g")), "-o", "json"))
    assert found["binds"] == {"default/g-0": "a"}


def test_pods_without_a_podgroup_get_one_as_on_a_cluster(write: Any):
    alone = pod("alone", schedulerName="volcano")
    other = pod("other", schedulerName="default-scheduler")
    [found] = reported(run(write(node("a"), alone, other), "-o", "json"))
    assert found["binds"] == {"default/alone": "a"}
    assert found["podGroupPhase"] == {"default/podgroup-default-alone": "Inqueue"}


def test_each_case_is_a_line_and_a_bad_one_does_not_stop_the_others(write: Any):
    bad = case("bad policy", actions=["fly"])
    worse = case("bad object", podGroups=[{"metadata": {"name": "g"}, "spec": {"minMember": "one"}}])
    result = run(write(bad, worse, case("good")), "-o", "json")
    assert result.return_value == 1
    first, second, third = reported(result)
    assert first["name"] == "bad policy"
    assert "unknown action 'fly'" in first["error"]
    assert "spec.minMember" in second["error"]
    assert (third["name"], third["binds"]) == ("good", {"ns/g-0": "a"})


def test_worlds_are_lines_with_a_policy_of_their_own(tmp_path: Path):
    policy = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"
    lines = []
    for world_id in ("w-0", "w-1"):
        made = case("") | {"id": world_id, "policy": policy}
        lines.append(json.dumps({k: v for k, v in made.items() if k not in ("name", "actions", "tiers")}))
    path = tmp_path / "worlds.jsonl"
    path.write_text("\n".join(lines))
    result = run(str(path), "-o", "json")
    assert result.return_value == 0
    assert [found["id"] for found in reported(result)] == ["w-0", "w-1"]
    assert all(found["binds"] == {"ns/g-0": "a"} for found in reported(result))


def test_policy_and_actions_may_be_given(write: Any, tmp_path: Path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}]}]")
    world = write(node("a"), group("g", 1), pod("g-0", "g"))
    [found] = reported(run(world, "--policy", str(policy), "--actions", "enqueue", "-o", "json"))
    assert (found["binds"], found["podGroupPhase"]) == ({}, {"default/g": "Inqueue"})
    result = run(world, "--actions", "fly", "-o", "json")
    assert result.return_value == 1
    assert "unknown action 'fly'" in reported(result)[0]["error"]
    policy.write_text("actions: fly")
    assert "unknown action 'fly'" in str(run(world, "--policy", str(policy)).exception)


def test_rounds_let_bound_pods_run(write: Any):
    [found] = reported(run(write(node("a"), group("g", 1), pod("g-0", "g")), "--rounds", "9", "-o", "json"))
    assert found["podGroupPhase"] == {"default/g": "Running"}
    assert found["taskStatusCounts"] == {"default/g": {"Running": 1}}
    assert found["rounds"] < 9


def test_what_people_read_fits_a_narrow_terminal(write: Any):
    pods = [pod(f"train-{i}", "train") for i in range(4)] + [pod(f"big-{i}", "big", gpus=3) for i in range(3)]
    result = run(write(node("gpu-1"), group("train", 4), group("big", 3), *pods), "--at", "2026-06-01T00:00:00Z")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stdout == (
        "world\n"
        "1 round: 4 pods bound, 1 gang pending\n"
        "\n"
        "default/big  Inqueue  queue default  3 Pending\n"
        "  pending: Impossible\n"
        "    3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3\n"
        "    minAvailable; Pending: 3 Unschedulable. Origin reason is Impossible: the\n"
        "    gang needs nvidia.com/gpu 9 with 0 held of 4 in the whole cluster (queue\n"
        "    default): short by nvidia.com/gpu 5\n"
        "    nvidia.com/gpu: 9 requested, 4 available, short by 5\n"
        "\n"
        "default/train  Inqueue  queue default  4 Binding\n"
        "  bound:\n"
        "    gpu-1  train-0 train-1 train-2 train-3\n"
        "\n"
    )


def test_kinds_that_are_of_no_use_are_named(write: Any):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    result = run(write(node("a"), service, service), "-o", "json")
    assert result.stderr == "ignored: 2 Service of v1 (not used by the scheduler)\n"


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(8)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no objects or cases found"),
        ("a: [", "not valid YAML"),
        ('{"a": ', "not valid JSON"),
        ("hello", "must contain objects, got 'hello'"),
        ("a: 1", "not a Kubernetes object"),
        ("{apiVersion: v1, kind: Pod}", "not valid JSON"),
        ("apiVersion: v1\nkind: Pod", "Pod: metadata.name is required"),
        (BOMB, "its aliases stand for more than"),
        ("a: &a [*a]", "anchor 'a' value contains itself"),
    ],
)
def test_files_of_something_else_are_refused(tmp_path: Path, text: str, said: str):
    path = tmp_path / "file"
    path.write_text(text)
    error = run(str(path)).exception
    assert isinstance(error, CliError)
    assert said in str(error)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("vcbatch.cli.files.documents.LARGEST_FILE", 1000)
    for name, data in (("plain", b" " * 1001), ("packed", gzip.compress(b" " * 1001))):
        (tmp_path / name).write_bytes(data)
        assert "larger than 1000 bytes" in str(run(str(tmp_path / name)).exception)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path):
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(json.dumps(node("a")).encode())[:-12])
    assert "unexpected end of file" in str(run(str(path)).exception)


def test_a_plugin_that_fails_is_named_with_its_line(write: Any, tmp_path: Path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from vcbatch.scheduler.framework.plugin import Plugin\n"
        "class Mine(Plugin):\n"
        "    def open(self, session):\n"
        "        session.nothing\n"
        'PLUGINS = {"mine": Mine}\n'
    )
    policy = tmp_path / "policy.yaml"
    policy.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: mine}]}]")
    world = write(node("a"), group("g", 1), pod("g-0", "g"))
    options = ("--policy", str(policy), "--plugin", str(plugin))
    result = run(world, *options, "-o", "json")
    assert result.return_value == 1
    [found] = reported(result)
    assert found["binds"] == {}
    said = f"mine.open ({plugin}:4) raised AttributeError: 'Session' object has no attribute 'nothing'"
    assert found["failures"] == [said]
    assert f"a plugin failed: mine.open ({plugin}:4)" in " ".join(run(world, *options).stdout.split())


def job(name: str, *, replicas: int, gpus: int = 1, **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {GPU: gpus}}}
    task = {"name": "worker", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": [task], **spec},
    }


def test_jobs_get_their_pods_as_on_a_cluster(write: Any):
    [found] = reported(run(write(node("a"), job("train", replicas=3), job("wide", replicas=2, gpus=4)), "-o", "json"))
    assert found["binds"] == {f"default/train-worker-{i}": "a" for i in range(3)}
    assert found["taskStatusCounts"]["default/wide-simulated"] == {"Pending": 2}
    assert found["reasons"]["default/wide-simulated"]["minimum"] == 2


def test_the_priority_of_a_job_comes_from_its_class(write: Any):
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 100,
    }
    world = write(node("a"), high, job("a", replicas=4), job("b", replicas=4, priorityClassName="high"))
    [found] = reported(run(world, "-o", "json"))
    assert {pod.split("-")[0] for pod in found["binds"]} == {"default/b"}


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ({"spec": {"tasks": "none"}}, "job default/bad: "),
        ({"spec": {"tasks": [{"name": "w", "replicas": 10**6, "template": {"spec": {}}}]}}, "at most 200000 pods"),
    ],
)
def test_what_is_no_job_is_named(write: Any, spoilt: Json, said: str):
    error = run(write(node("a"), {**job("bad", replicas=1), **spoilt})).exception
    assert isinstance(error, CliError)
    assert said in str(error)


BROKEN = """\
apiVersion: v1
kind: Node
metadata: {name: a}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
spec:
  queue: default
  minMember: two
"""
LISTED = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: p}
- apiVersion: v1
  kind: Pod
  metadata:
    labels: {a: b}
"""
CASES = """\
{"id": "one", "policy": "actions: allocate", "nodes": []}

{"id": "two", "policy": "actions: allocate", "nodes": [{"metadata": {"name": 7}}]}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BROKEN, ":10:3: podGroups[0] default/g: Expected `int`, got `str` - at `$.spec.minMember`"),
        (BROKEN.replace("two", "2").replace("kind: PodGroup", "kin: PodGroup"), ":5:1: not a Kubernetes object"),
        (LISTED, ":7:3: Pod: metadata.name is required"),
        (
            BROKEN.replace("{name: a}", "{name: a}\nstatus:\n  allocatable:\n    cpu: many"),
            ":6:5: nodes[0] a: status.allocatable.cpu: must be a quantity such as 2, 500m or 8Gi, got 'many'",
        ),
        (
            BROKEN.replace("minMember: two", "minMember: 2\n  minResources: {cpu: 1x}"),
            ":11:18: podGroups[0] default/g: spec",
        ),
        (
            LISTED.replace(
                "metadata: {name: p}",
                "metadata: {name: p}\n  spec: {containers: [{resources: {requests: {cpu: lots}}}]}",
            ).partition("- apiVersion: v1\n  kind: Pod\n  metadata:\n")[0],
            ":7:47: pods[0] default/p: spec.containers[0].resources.requests.cpu: must be a quantity",
        ),
        ("a: [\n  b: }", ":2:6: not valid YAML: "),
        ('{"a":\n 1 2}', ":2:4: not valid JSON: "),
        (CASES, ":3: nodes[0] 7: Expected `str`, got `int` - at `$.metadata.name`"),
    ],
    ids=[
        "a field",
        "no kind",
        "an item of a list",
        "an amount",
        "an amount of a gang",
        "an amount of a container",
        "no YAML",
        "no JSON",
        "a line of JSON",
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, said: str):
    path = tmp_path / "world"
    path.write_text(text)
    result = run(str(path))
    reported = str(result.exception) if isinstance(result.exception, CliError) else result.stderr
    assert f"{path}{said}" in reported


def test_a_priority_that_is_no_number_is_refused_with_its_line(tmp_path: Path):
    path = tmp_path / "world.yaml"
    path.write_text(yaml.safe_dump(job("a", replicas=1)) + "---\n" + PRIORITY)
    result = run(str(path))
    reported = str(result.exception) if isinstance(result.exception, CliError) else result.stderr
    lines = path.read_text().splitlines()
    assert f"{path}:{lines.index('value: high') + 1}:1: priorityClasses[0] high: Expected `int`, got `str`" in reported


PRIORITY = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: high
"""


def test_pods_have_the_priority_of_their_class_as_on_a_cluster(write: Any):
    """Of one gang's pods, of which one fits, the one of the highest priority goes first."""
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": n}, "value": v, **more}
        for n, v, more in (("high", 100, {}), ("low", -1, {}), ("usual", 10, {"globalDefault": True}))
    ]
    pods = [pod("a", "g", gpus=3, priorityClassName="low"), pod("b", "g", gpus=3), pod("c", "g", gpus=3, priority=5)]
    found = json.loads(run(write(node("n"), group("g", 1), *pods, *classes), "-o", "json").stdout)
    assert found["binds"] == {"default/b": "n"}
    pods.append(pod("d", "g", gpus=3, priorityClassName="high"))
    found = json.loads(run(write(node("n"), group("g", 1), *pods, *classes), "-o", "json").stdout)
    assert found["binds"] == {"default/d": "n"}


def test_jobs_wait_in_the_order_in_which_they_came(write: Any):
    def since(name: str, hour: int) -> Json:
        made = job(name, replicas=1, gpus=4)
        return {**made, "metadata": {"name": name, "creationTimestamp": f"2026-05-01T{hour:02}:00:00Z"}}

    for first, second in (("a", "b"), ("b", "a")):
        found = json.loads(run(write(node("n"), since(first, 1), since(second, 2)), "-o", "json").stdout)
        assert list(found["binds"]) == [f"default/{first}-worker-0"]


def test_a_job_with_its_podgroup_has_its_pods_made_once(write: Any):
    submitted = {**job("j", replicas=1), "metadata": {"name": "j", "uid": "1"}}
    made = group("j-1", 1)
    found = json.loads(run(write(node("n"), submitted, made), "-o", "json").stdout)
    assert found["binds"] == {"default/j-worker-0": "n"}
    there = pod("j-worker-0", "j-1", nodeName="n")
    found = json.loads(
        run(write(node("n"), submitted, made, {**there, "status": {"phase": "Running"}}), "-o", "json").stdout
    )
    assert found["taskStatusCounts"] == {"default/j-1": {"Running": 1}}
    ended = {**made, "status": {"phase": "Completed"}}
    found = json.loads(run(write(node("n"), submitted, ended), "-o", "json").stdout)
    assert found["taskStatusCounts"] == {"default/j-1": {}}


@pytest.mark.parametrize(
    ("field", "value"), [("queue", False), ("minAvailable", False), ("maxRetry", []), ("schedulerName", 0)]
)
def test_a_job_with_a_value_of_a_wrong_type_is_refused(write: Any, field: str, value: object):
    made = job("j", replicas=1)
    result = run(write(node("a"), {**made, "spec": {**made["spec"], field: value}}))
    assert isinstance(result.exception, CliError)
    assert f"job default/j: spec.{field}: Invalid value: " in str(result.exception)


def test_an_object_that_is_given_twice_is_told_of(write: Any):
    result = run(write(node("a"), node("b"), node("a")), "-o", "json")
    line = next(line for line in result.stderr.splitlines() if "Node a" in line)
    assert line.partition(": ")[2] == f"Node a replaces the one in {line.partition(':')[0]}:1:1"


def test_pods_whose_podgroup_is_not_there_are_told_of(write: Any):
    """By the name of their PodGroup, which is looked for in their namespace alone."""
    there = {**group("g", 1), "metadata": {"name": "g", "namespace": "other"}}
    lost = [pod("a", "g"), pod("b", "g"), pod("runs", "g", nodeName="n"), pod("not-ours", "g", schedulerName="else")]
    world = write(node("n"), there, *lost)
    [found] = reported(run(world, "-o", "json"))
    assert found["strays"] == {"default/a": "default/g", "default/b": "default/g"}
    text = "pods without a gang\n  pending: PodGroupMissing\n    a b: PodGroup default/g doesn't exist\n"
    assert text in run(world).stdout
    [found] = reported(run(write(node("n"), pod("alone")), "-o", "json"))
    assert "strays" not in found


def test_a_quota_without_a_status_counts_the_pods_that_exist(write: Any, tmp_path: Path):
    """Of 4 cpu two are in use: by pods that exist, not by one that ended, is elsewhere or is still to be made."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: resourcequota}]}]")
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"requests.cpu": 4}},
    }
    there = [
        pod("runs", gpus=0, schedulerName="else", nodeName="n"),
        {**pod("over", gpus=0, schedulerName="else", nodeName="n"), "status": {"phase": "Succeeded"}},
        _in("other", pod("elsewhere", gpus=0, schedulerName="else", nodeName="n")),
        pod("waits", gpus=0, schedulerName="else"),
    ]

    def cpu(name: str, amount: int) -> Json:
        made = job(name, replicas=1)
        made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": amount}}
        return made

    [found] = reported(run(write(node("n"), quota, *there, cpu("wide", 3)), "--policy", str(policy), "-o", "json"))
    assert "requests.cpu: 3 asked, 2 left of 4" in found["reasons"]["default/wide-simulated"]["message"]
    [found] = reported(run(write(node("n"), quota, *there, cpu("small", 2)), "--policy", str(policy), "-o", "json"))
    assert found["binds"] == {"default/small-worker-0": "n"}
    known = {**quota, "status": {"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "2"}}}
    [found] = reported(run(write(node("n"), known, *there, cpu("small", 2)), "--policy", str(policy), "-o", "json"))
    assert found["reasons"]["default/small-simulated"]["reason"] == "ResourceQuota"


@pytest.mark.parametrize(("budget", "evicted"), [({"minAvailable": 1}, 1), ({"maxUnavailable": "0%"}, 0), (None, 2)])
def test_a_disruption_budget_without_a_status_counts_what_runs(
    write: Any, tmp_path: Path, budget: Json | None, evicted: int
):
    """Two pods of a low gang hold the node that one of a high gang needs."""
    policy = tmp_path / "policy.yaml"
    plugins = "{name: priority}, {name: gang, enablePreemptable: false}, {name: pdb}, {name: predicates}"
    policy.write_text(f"actions: enqueue, allocate, preempt\ntiers: [{{plugins: [{plugins}]}}]")
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    held = []
    for i in range(2):
        made = pod(f"low-{i}", "low", gpus=2, nodeName="n")
        made["metadata"]["labels"] = {"app": "low"}
        held.append({**made, "status": {"phase": "Running"}})
    low = {**group("low", 1), "status": {"phase": "Running"}}
    spec = {"selector": {"matchLabels": {"app": "low"}}, **(budget or {})}
    guard = [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}]
    urgent = job("urgent", replicas=1, gpus=2 * (evicted or 1), priorityClassName="high")
    world = write(node("n"), high, low, *held, urgent, *(guard if budget else []))
    [found] = reported(run(world, "--policy", str(policy), "--rounds", "3", "-o", "json"))
    assert len(found["evicted"]) == evicted


def test_a_round_that_changed_nothing_is_followed_by_the_moment_at_which_something_is_due(write: Any, tmp_path: Path):
    """A gang of two that has lost one gives its place back after ten minutes, which another pod has a second later."""
    policy = tmp_path / "policy.yaml"
    plugins = "{name: gang}, {name: predicates}, {name: stale-gang, arguments: {gracePeriod: 10m}}"
    policy.write_text(f"actions: enqueue, allocate, shuffle\ntiers: [{{plugins: [{plugins}]}}]")
    left = {**pod("left", "lost", gpus=4, nodeName="n"), "status": {"phase": "Running"}}
    lost = {**group("lost", 2), "status": {"phase": "Running"}}
    world = write(node("n"), lost, left, group("next", 1), pod("next", "next", gpus=4))
    [found] = reported(run(world, "--policy", str(policy), "--rounds", "9", "-o", "json"))
    assert found["evicted"] == ["default/left"]
    assert found["binds"] == {"default/next": "n"}
    text = " ".join(run(world, "--policy", str(policy), "--rounds", "9").stdout.split())
    assert ", 10m later: left (" in text
    assert ", 10m later: n next" in text
    [whole] = reported(run(world, "--policy", str(policy), "--rounds", "1", "-o", "json"))
    assert (whole["rounds"], whole["seconds"], whole["evicted"]) == (1, 0, [])


def test_amounts_beyond_64_bits_are_capped(tmp_path: Path):
    path = tmp_path / "world.yaml"
    node = (
        "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: '4', memory: AMOUNT, pods: 5}}\n"
    )
    path.write_text(node.replace("AMOUNT", f"'{'9' * 400}'"))
    result = run(str(path))
    assert (result.exception, result.exit_code) == (None, 0)


def test_a_job_of_another_shape_is_refused_with_its_line(tmp_path: Path):
    path = tmp_path / "world.yaml"
    text = yaml.safe_dump(job("a", replicas=1))
    path.write_text(text.replace("containers:", "containers: [7]\n        initContainers:", 1))
    result = run(str(path))
    reported = str(result.exception) if isinstance(result.exception, CliError) else result.stderr
    lines = path.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if "containers: [7]" in text)
    assert f"{path}:{line}:" in reported and "containers[0]" in reported and "internal error" not in reported
