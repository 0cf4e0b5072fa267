"""A status is anybody's to write, and annotations are anybody's to change: whatever is found there, a look at the job
gives a decision that can be stored, and looking again comes to rest."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import JOBS

words = st.sampled_from(
    [
        "",
        "w",
        "x",
        "0-3",
        "7",
        "-1",
        "PodFailed",
        "PodEvicted",
        "Unknown",
        "Running",
        "Aborted",
        "Completed",
        "Nonsense",
    ]
)
numbers = st.integers(-1, 5)
times = st.sampled_from(["", "2026-11-20T12:00:00Z", "yesterday", "2026-11-20T12:00:00"])

records = st.fixed_dictionaries(
    {}, optional={"seen": words, "succeeded": words, "failed": words, "evicted": words, "carried": words}
)
targets = st.fixed_dictionaries({"task": words}, optional={"indices": words, "retryCount": numbers})
delays = st.fixed_dictionaries({"event": words}, optional={"task": words, "index": numbers, "since": times})
ledgers = st.fixed_dictionaries(
    {},
    optional={
        "tasks": st.dictionaries(words, records, max_size=3),
        "restartingJob": st.booleans(),
        "restarting": st.lists(targets, max_size=2),
        "resumes": numbers,
        "infrastructureRetries": numbers,
        "delayed": st.lists(delays, max_size=2),
        "commands": st.lists(words, max_size=2),
        "losses": st.lists(st.fixed_dictionaries({"pod": words, "version": numbers}), max_size=2),
    },
)
statuses = st.fixed_dictionaries(
    {},
    optional={
        "state": st.fixed_dictionaries({"phase": words}, optional={"lastTransitionTime": times, "reason": words}),
        "conditions": st.lists(st.fixed_dictionaries({"status": words}), max_size=2),
        "version": numbers,
        "retryCount": numbers,
        "ledger": ledgers,
        "controlledResources": st.dictionaries(words, words, max_size=1),
        "taskStatusCount": st.dictionaries(words, st.just({"phase": {"Running": 9}}), max_size=1),
    },
)


def _spoil_pods(world: World, annotations: dict[str, str]) -> None:
    for pod in world.pods().values():
        pod["metadata"]["annotations"] |= annotations


@settings(max_examples=examples(150))
@given(
    status=statuses,
    annotations=st.dictionaries(
        st.sampled_from(["volcano.sh/job-version", "volcano.sh/task-index", "volcano.sh/task-spec"]), words, max_size=2
    ),
    policies=st.lists(
        st.fixed_dictionaries(
            {"action": st.sampled_from(["RestartJob", "RestartPod", "AbortJob", "Nonsense"])},
            optional={"event": words, "exitCode": numbers, "timeout": st.sampled_from(["1s", "0s", "soon", "-1h"])},
        ),
        max_size=2,
    ),
)
def test_a_spoiled_job_is_looked_at_like_any_other(
    status: Json, annotations: dict[str, str], policies: list[dict[str, Any]]
) -> None:
    world = World()
    tasks = [task("w", 2), task("ps", 1, "sleep 1 && exit 1")]
    world.submit(job_object(tasks=tasks, policies=policies, ttlSecondsAfterFinished=5, plugins={"svc": []}))
    for _ in range(3):
        world.settle()
        world.step()
    world.change(JOBS, "j", lambda job: job.update(status=copy.deepcopy(status)))
    _spoil_pods(world, annotations)
    for _ in range(6):
        world.settle()
        world.step()
        if (JOBS, "j") not in world.objects:
            return
    assert world.phase()
