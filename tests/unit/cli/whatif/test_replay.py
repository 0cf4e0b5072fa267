"""`vcbatch snapshot` and `vcbatch replay`: a cluster in a file, and what would be otherwise if it were changed."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.unit.cli.whatif.test_simulate import group, node, pod
from tests.unit.runtime.test_cycle_recorder import lived, recorded
from vcbatch.cli.base.output import CliError
from vcbatch.cli.whatif.replay import command
from vcbatch.cli.whatif.simulate import command as simulate
from vcbatch.cli.whatif.snapshot import save
from vcbatch.runtime.scheduling.cycle_recorder import RecordedScheduler
from vcbatch.scheduler.simulation import World
from vcbatch.scheduler.simulation.recording import VERSION, Settings

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)


def _in(namespace: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A node with 4 GPUs, a gang that takes them, and one that waits."""
    pods = [pod(f"{gang}-{i}", gang, gpus=2, schedulerName="volcano") for gang in ("a", "b") for i in range(2)]
    world = World.read(
        {
            "nodes": [node("n1")],
            "queues": [{"metadata": {"name": "default"}}],
            "podGroups": [_in("ns", group("a", 2)), _in("ns", group("b", 2))],
            "pods": [_in("ns", one) for one in pods],
        }
    )
    path = tmp_path / "snapshot.jsonl.gz"
    assert save(path, Settings(taken=NOW), [obj for _, obj in world.objects]) == 8
    return path


def added(path: Path, *documents: Any) -> Path:
    file = path.with_name("added.yaml")
    file.write_text(yaml.safe_dump_all(documents))
    return file


def reported(result: Result) -> Any:
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def test_a_snapshot_is_scheduled_as_the_cluster_would_be(snapshot: Path):
    found = reported(run(snapshot, "-o", "json"))
    assert found["binds"] == {"ns/a-0": "n1", "ns/a-1": "n1"}
    assert list(found["reasons"]) == ["ns/b"]
    assert "pending: InsufficientResources" in run(snapshot).stdout


def test_what_if_there_were_another_node(snapshot: Path):
    found = reported(run(snapshot, "--what-if", added(snapshot, node("n2")), "-o", "json"))
    assert found["binds"] == {"ns/b-0": "n2", "ns/b-1": "n2"}
    assert found["waits"] == {"ns/b": {"before": "InsufficientResources", "after": None}}
    assert found["bindsNoMore"] == {}
    text = run(snapshot, "--what-if", added(snapshot, node("n2"))).stdout
    assert text == (
        "before: 2 pods bound, 0 evicted, 1 gang pending\n"
        "after:  4 pods bound, 0 evicted, 0 gangs pending\n"
        "\n"
        "ns/b\n"
        "  bound: 0 → 2 pods\n"
        "  pending: InsufficientResources → no\n"
    )


def test_what_if_somebody_submitted_too_much(snapshot: Path):
    text = run(
        snapshot, "--what-if", added(snapshot, _in("ns", group("c", 1)), _in("ns", pod("c-0", "c", gpus=9)))
    ).stdout
    assert text.startswith(
        "before: 2 pods bound, 0 evicted, 1 gang pending\nafter:  2 pods bound, 0 evicted, 2 gangs pending\n"
    )
    why = "c-0: 0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu."
    assert f"ns/c\n  pending: no → Impossible\n    {why}" in text


def test_what_if_somebody_submitted_more(snapshot: Path):
    more = added(snapshot, _in("ns", group("c", 1)), _in("ns", pod("c-0", "c", gpus=0)))
    found = reported(run(snapshot, "--what-if", more, "-o", "json"))
    assert found["binds"] == {"ns/c-0": "n1"}


@pytest.mark.parametrize(
    ("without", "binds", "gone"),
    [
        ("podgroup/ns/a", {"ns/b-0": "n1", "ns/b-1": "n1"}, {"ns/a-0": "n1", "ns/a-1": "n1"}),
        ("Node/n1", {}, {"ns/a-0": "n1", "ns/a-1": "n1"}),
    ],
)
def test_what_if_something_were_not_there(snapshot: Path, without: str, binds: Any, gone: Any):
    found = reported(run(snapshot, "--without", without, "-o", "json"))
    assert (found["binds"], found["bindsNoMore"]) == (binds, gone)


def test_what_if_nothing_changes_is_said(snapshot: Path):
    assert "no changes" in run(snapshot, "--what-if", added(snapshot, node("n1"))).stdout


def test_what_if_the_policy_were_another(snapshot: Path, tmp_path: Path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("actions: enqueue\ntiers: [{plugins: [{name: gang}]}]")
    found = reported(run(snapshot, "--policy", policy, "-o", "json"))
    assert found["bindsNoMore"] == {"ns/a-0": "n1", "ns/a-1": "n1"}


def test_recorded_cycles_are_compared_and_a_different_one_is_an_error(tmp_path: Path):
    made = recorded(tmp_path, cycles=100)
    lived(made, seed=3)
    [path] = tmp_path.glob("*.gz")
    result = run(path)
    assert result.return_value == 0
    assert len(result.stdout.splitlines()) == 24
    assert all(line.endswith("  same") for line in result.stdout.splitlines())
    assert result.stderr == "24 cycles replayed, none with different decisions\n"
    lines = [json.loads(line) for line in run(path, "-o", "json").stdout.splitlines()]
    assert [line["cycle"] for line in lines] == list(range(1, 25))
    assert isinstance(made.scheduler, RecordedScheduler)
    made.scheduler.recorder.close()
    spoilt = gzip.decompress(path.read_bytes()).replace(b'"event":"DELETED"', b'"event":"MODIFIED"')
    other = tmp_path / "other.jsonl.gz"
    other.write_bytes(gzip.compress(spoilt))
    result = run(other)
    assert result.return_value == 1
    assert "DIFFERENT" in result.stdout


def test_what_if_goes_from_the_end_of_a_recording(tmp_path: Path):
    made = recorded(tmp_path, cycles=100)
    made.node("n1", cpu="2")
    made.gang("a", 2, phase="Pending")
    made.gang("b", 2, phase="Pending")
    made.cycle()
    [path] = tmp_path.glob("*.gz")
    found = reported(run(path, "--what-if", added(path, node("n2")), "-o", "json"))
    assert set(found["binds"]) == {"ns/b-worker-0", "ns/b-worker-1"}
    assert found["before"]["taskStatusCounts"]["ns/a"] == {"Bound": 2}


def test_a_file_that_somebody_unpacked_is_read_too(snapshot: Path, tmp_path: Path):
    plain = tmp_path / "snapshot.jsonl"
    plain.write_bytes(gzip.decompress(snapshot.read_bytes()))
    found = reported(run(plain, "-o", "json"))
    assert found.pop("name") == "snapshot.jsonl"
    packed = reported(run(snapshot, "-o", "json"))
    assert packed.pop("name") == "snapshot.jsonl.gz"
    assert found == packed


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"hello", "not a snapshot: Expecting value"),
        (b"\x1f\x8b\x08\x00" + b"\xff" * 64, "corrupted compressed data: "),
        (b"\x00\xff", "not a snapshot: "),
        (b"", "not a snapshot: it has no whole line"),
        (b'{"a": 1}', f"not a snapshot: its first line must name the format vcbatch-snapshot/{VERSION}, got None"),
    ],
)
def test_it_is_said_why_it_is_no_snapshot(tmp_path: Path, data: bytes, said: str):
    path = tmp_path / "file"
    path.write_bytes(data + b"\n")
    assert str(run(path).exception).startswith(f"{path}: {said}")


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_file_of_another_build_is_refused_with_both_versions(snapshot: Path, version: int):
    first, rest = gzip.decompress(snapshot.read_bytes()).split(b"\n", 1)
    line = {**json.loads(first), "format": f"vcbatch-snapshot/{version}"}
    snapshot.write_bytes(json.dumps(line).encode() + b"\n" + rest)
    error = run(snapshot).exception
    assert isinstance(error, CliError)
    assert str(error) == f"{snapshot}: it is of version {version} of the format, and only {VERSION} is read here"
    assert error.hint == "Replay it with the version of vcbatch that wrote it, or save a new snapshot."
    asked = CliRunner().invoke(simulate, [str(snapshot)], standalone_mode=False).exception
    assert str(asked) == f"{snapshot}: is a snapshot"


@pytest.mark.parametrize("data", [b"", b"hello", b'{"a": 1}', b"\x1f\x8b\x08\x00broken"])
def test_what_is_no_snapshot_is_refused(tmp_path: Path, data: bytes):
    path = tmp_path / "file"
    path.write_bytes(data)
    error = run(path).exception
    assert isinstance(error, CliError)
    assert str(error).startswith(str(path))


def test_what_is_not_there_cannot_be_taken_away(snapshot: Path):
    error = run(snapshot, "--without", "node/n9").exception
    assert isinstance(error, CliError)
    assert str(error) == "--without node/n9: object not found"


def test_simulate_says_who_reads_a_snapshot(snapshot: Path):
    error = CliRunner().invoke(simulate, [str(snapshot)], standalone_mode=False).exception
    assert isinstance(error, CliError)
    assert error.hint == f"Use `vcbatch replay {snapshot}`."


def vcjob(name: str, replicas: int, *, cpu: int = 1, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}}
    tasks = [{"name": "w", "replicas": replicas, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"schedulerName": "volcano", "minAvailable": replicas, "tasks": tasks, **spec},
    }


def owned(name: str, job: str, **changed: Any) -> dict[str, Any]:
    """The PodGroup of a job."""
    made = _in("ns", group(name, 2))
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": "7"}
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [owner], **changed}}


@pytest.fixture
def running(tmp_path: Path) -> Path:
    """Two nodes of 8 cpu. The job `a` runs, a pod on each; `b` waits, and so does nobody's pod for its DaemonSet."""
    on = [
        {**_in("ns", pod(f"a-w-{i}", "a-7", gpus=1, nodeName=f"n{i + 1}")), "status": {"phase": "Running"}}
        for i in range(2)
    ]
    agent = {**_in("ns", pod("agent", gpus=0, schedulerName="default-scheduler", nodeName="n2"))}
    world = World.read(
        {
            "nodes": [node("n1"), node("n2")],
            "queues": [{"metadata": {"name": "default"}}],
            "podGroups": [
                {**owned("a-7", "a", creationTimestamp="2026-05-01T00:00:00Z"), "status": {"phase": "Running"}},
                _in("ns", group("b", 2)),
            ],
            "pods": [*on, agent, *[_in("ns", pod(f"b-{i}", "b", gpus=4)) for i in range(2)]],
        }
    )
    path = tmp_path / "running.jsonl.gz"
    save(path, Settings(taken=NOW), [obj for _, obj in world.objects])
    return path


@pytest.mark.parametrize("without", ["job/ns/a", "vcjob/ns/a", "pg/ns/a-7", "podgroups/ns/a-7"])
def test_without_a_job_its_pods_are_gone_and_others_start(running: Path, without: str):
    found = reported(run(running, "--without", without, "-o", "json"))
    assert set(found["binds"]) == {"ns/b-0", "ns/b-1"}
    assert "ns/a-7" not in found["after"]["podGroupPhase"]


@pytest.mark.parametrize("without", ["node/n2", "no/n2", "Nodes/n2"])
def test_without_a_node_its_pods_look_for_another_place(running: Path, without: str):
    found = reported(run(running, "--without", without, "-o", "json"))
    assert found["binds"] == {"ns/a-w-1": "n1"}
    alone = reported(run(running, "--without", "node/n1", "--without", "node/n2", "-o", "json"))
    assert alone["after"]["taskStatusCounts"]["ns/a-7"] == {"Pending": 2}


@pytest.mark.parametrize(
    ("without", "hint"),
    [
        ("job/a", "Available: ns/a"),
        ("node/n9", "Available: n1, n2"),
        ("pg/a", "Available: ns/a-7, ns/b"),
        ("hypernode/h", "No objects of that kind."),
    ],
)
def test_who_is_not_there_is_answered_with_who_is(running: Path, without: str, hint: str):
    error = run(running, "--without", without).exception
    assert isinstance(error, CliError)
    assert (str(error), error.hint) == (f"--without {without}: object not found", hint)
    other = run(running, "--without", "deployment/d").exception
    assert str(other) == "--without deployment/d: unknown kind 'deployment'"


def test_a_job_that_is_added_takes_the_place_of_one_of_its_name(running: Path):
    found = reported(run(running, "--what-if", added(running, vcjob("a", 3)), "-o", "json"))
    assert list(found["after"]["podGroupPhase"]) == ["ns/a-7", "ns/b"]
    assert found["after"]["taskStatusCounts"]["ns/a-7"] == {"Running": 3}


def test_what_is_added_comes_last(running: Path):
    """Of two gangs that wait for the same 8 GPUs the one that was there goes first, whatever their names and times."""
    before = reported(run(running, "--without", "job/ns/a", "-o", "json"))
    later = [_in("ns", group("0", 2)), *[_in("ns", pod(f"0-{i}", "0", gpus=4)) for i in range(2)]]
    same = reported(run(running, "--without", "job/ns/a", "--what-if", added(running, *later), "-o", "json"))
    assert set(same["binds"]) == set(before["binds"]) == {"ns/b-0", "ns/b-1"}
    assert same["waits"]["ns/0"]["after"] == "InsufficientResources"


def test_who_waits_still_is_told_how_much_nearer_it_came(tmp_path: Path):
    """Each of these gangs needs 16 GPUs; there are 8, then 12."""
    wide = [made for i in range(6) for made in (_in("ns", group(f"w{i}", 4)), *(_wide(i, n) for n in range(4)))]
    saved = tmp_path / "wide.jsonl.gz"
    lists = {
        "nodes": [node("n1"), node("n2")],
        "queues": [{"metadata": {"name": "default"}}],
        "podGroups": [one for one in wide if one["kind"] == "PodGroup"],
        "pods": [one for one in wide if one["kind"] == "Pod"],
    }
    save(saved, Settings(taken=NOW), [obj for _, obj in World.read(lists).objects])
    text = run(saved, "--what-if", added(saved, node("n3"))).stdout
    assert "ns/w0\n  pending: Impossible (unchanged)\n    the gang needs nvidia.com/gpu 16" in text
    assert text.count(" (unchanged)\n") == 5
    assert text.endswith("... and 1 more pending for the same reason, with other numbers\n")
    assert "nothing changes" not in text


def _wide(gang: int, number: int) -> dict[str, Any]:
    return _in("ns", pod(f"w{gang}-{number}", f"w{gang}", gpus=4, schedulerName="volcano"))
