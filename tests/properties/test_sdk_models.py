"""The models of the SDK lose nothing and change nothing but what they are told to."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from vcbatch.sdk.models.job import Job, Task
from vcbatch.sdk.models.queue import Queue

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "a", "b", "500m"])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "value", "x"]), inner),
    max_leaves=6,
)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with any of these fields, well formed or not, and something else."""
    either = {name: strategy | JSON for name, strategy in fields.items()}
    return st.fixed_dictionaries({}, optional={**either, "unknown": JSON})


TEXTS = st.lists(st.sampled_from(["", "a", "b"]), max_size=3)
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "c"]))
QUANTITIES = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "500m", 2, 0.5, True]))
ENV = st.lists(objects(name=st.sampled_from(["A", "B"]), value=st.text(max_size=2), valueFrom=JSON), max_size=3)
CONTAINER = objects(
    name=st.just("main"),
    image=st.just("busybox"),
    command=TEXTS,
    env=ENV,
    resources=objects(requests=QUANTITIES, limits=QUANTITIES),
)
POLICY = objects(action=st.just("RestartJob"), event=st.just("PodFailed"), events=TEXTS, exitCode=st.integers(0, 3))
METADATA = objects(name=st.just("a"), namespace=st.just("b"), labels=LABELS, uid=st.just("u"))
TASK = objects(
    name=st.just("worker"),
    replicas=st.integers(0, 3),
    minAvailable=st.integers(0, 3),
    policies=st.lists(POLICY, max_size=2),
    dependsOn=objects(name=TEXTS, iteration=st.just("any")),
    template=objects(
        metadata=METADATA,
        spec=objects(containers=st.lists(CONTAINER, max_size=2), restartPolicy=st.just("Never"), nodeSelector=LABELS),
    ),
)
JOB = objects(
    apiVersion=st.just("batch.volcano.sh/v1alpha1"),
    kind=st.just("Job"),
    metadata=METADATA,
    spec=objects(
        queue=st.just("default"),
        minAvailable=st.integers(0, 3),
        tasks=st.lists(TASK, max_size=2),
        plugins=st.dictionaries(st.sampled_from(["env", "svc"]), TEXTS | JSON),
        policies=st.lists(POLICY, max_size=2),
        volumes=st.lists(objects(mountPath=st.just("/data"), volumeClaim=JSON), max_size=2),
        ttlSecondsAfterFinished=st.integers(0, 3),
    ),
    status=objects(
        state=objects(phase=st.just("Running"), lastTransitionTime=st.just("2026-01-01T00:00:00Z")),
        running=st.integers(0, 3),
        taskStatusCount=st.dictionaries(st.just("worker"), objects(phase=st.dictionaries(st.just("Running"), JSON))),
        ledger=objects(losses=st.lists(objects(pod=st.just("p"), exitCode=st.integers(0, 3)), max_size=2)),
    ),
)
QUEUE = objects(
    metadata=METADATA,
    spec=objects(weight=st.integers(0, 3), capability=QUANTITIES, guarantee=objects(resource=QUANTITIES)),
    status=objects(state=st.just("Open"), allocated=QUANTITIES),
)


def exact(one: Any, other: Any) -> bool:
    """Equality of JSON, in which 1, 1.0 and true differ."""
    return repr(sorted_json(one)) == repr(sorted_json(other))


def sorted_json(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((key, sorted_json(entry)) for key, entry in value.items())
    return [sorted_json(entry) for entry in value] if isinstance(value, list) else value


@given(JOB)
@example({"spec": {"tasks": [{"template": {"spec": {"containers": [{"name": "main"}, {"name": "b"}]}}}]}})
def test_a_job_comes_back_as_it_was(manifest: dict[str, Any]):
    given_ = copy.deepcopy(manifest)
    job = Job.from_manifest(manifest)
    assert exact(job.to_manifest(), manifest)
    assert exact(manifest, given_)
    assert Job.from_manifest(job.to_manifest()) == job
    assert job.phase in type(job.phase)  # nothing that a server says makes reading fail
    job.as_new()


@given(QUEUE)
def test_a_queue_comes_back_as_it_was(manifest: dict[str, Any]):
    queue = Queue.from_manifest(manifest)
    assert exact(queue.to_manifest(), manifest)
    assert queue.status.state in type(queue.status.state)


@given(JOB, st.sampled_from(["research", None]), st.integers(0, 3))
def test_what_is_set_is_written_and_nothing_else_changes(manifest: dict[str, Any], queue: str | None, least: int):
    job = Job.from_manifest(manifest)
    changed = job.replace(queue=queue, min_available=least)
    written = changed.to_manifest()
    assert exact(Job.from_manifest(written).to_manifest(), written)
    if queue is not None:
        assert written["spec"]["queue"] == queue
    assert written["spec"]["minAvailable"] == least
    before = dict(job.to_manifest().get("spec") or {}) if isinstance(manifest.get("spec"), dict) else {}
    after = dict(written["spec"])
    for key in ("queue", "minAvailable"):
        before.pop(key, None)
        after.pop(key, None)
    assert exact(before, after)


@given(TASK)
def test_a_change_of_a_container_leaves_the_others_alone(manifest: dict[str, Any]):
    task = Task.from_manifest(manifest).replace(image="new", env={"A": "1"})
    containers = task.to_manifest()["template"]["spec"]["containers"]
    assert containers[0]["image"] == "new" and containers[0]["env"] == [{"name": "A", "value": "1"}]
    template = manifest.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    given_ = spec.get("containers") if isinstance(spec, dict) else None
    if isinstance(given_, list):
        assert exact(containers[1:], given_[1:])


@given(st.integers(0, 3), st.lists(st.sampled_from(["a", "b"]), max_size=2), st.none() | st.integers(0, 3))
def test_what_was_made_here_is_the_same_after_a_trip(replicas: int, command: list[str], least: int | None):
    job = Job(name="a", min_available=least, tasks=[Task(name="worker", replicas=replicas, command=command)])
    assert Job.from_manifest(job.to_manifest()) == job
