"""What `job explain` says in each phase: that nobody looked at a job only where nobody did."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from vcbatch.api.messages import WAITS_UNTIL_GONE, and_waits, executing
from vcbatch.api.phases import JobPhase
from vcbatch.api.reasons import JobReason
from vcbatch.cli.resources.job.remedies import remedies
from vcbatch.cli.resources.kinds import job_why
from vcbatch.core.waiting import Surroundings, waiting_of

Json = dict[str, Any]

UNSEEN = "Not reconciled yet"
HELD = f"{WAITS_UNTIL_GONE}pod j-a-0 (held by finalizer example.com/hold)"


def job(phase: str = "", reason: str = "", message: str = "", **metadata: Any) -> Json:
    state = {"phase": phase, "reason": reason, "message": message}
    return {
        "metadata": {"name": "j", "namespace": "n", "uid": "u", **metadata},
        "status": {"state": {key: value for key, value in state.items() if value}},
    }


def advice(given: Json, *groups: Json) -> list[str]:
    return list(remedies(given, waiting_of(given, Surroundings(pod_groups=groups))))


def all_states() -> Iterator[Json]:
    for phase, reason, message in product(JobPhase, ("", *JobReason, "OfAnother"), ("", "said", HELD)):
        yield job(phase, reason, message)


def test_a_job_that_has_a_status_was_looked_at() -> None:
    for given in all_states():
        assert not any(UNSEEN in sentence for sentence in advice(given)), given


def test_every_job_that_is_not_over_has_advice_without_a_placeholder() -> None:
    for given in all_states():
        state = given["status"]["state"]
        said = advice(given)
        assert not any("{" in sentence for sentence in said), given
        if state["phase"] != JobPhase.COMPLETED and not (state["phase"] == JobPhase.RUNNING and "message" not in state):
            assert said, given


@pytest.mark.parametrize("given", [job(), {"metadata": {"name": "j", "namespace": "n"}}], ids=["empty", "absent"])
def test_a_job_without_a_status_was_not(given: Json) -> None:
    assert [UNSEEN in sentence for sentence in advice(given)] == [True]


@pytest.mark.parametrize(
    "given",
    [
        job(reason="PluginError", message="plugin mine failed: KeyError: 'x'"),
        job("Pending"),
        {**job(), "status": {"conditions": [{"status": "Pending"}]}},
        job(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["a plugin failed before it had a phase", "without PodGroup", "only a log", "being deleted"],
)
def test_less_than_a_whole_status_is_a_look_too(given: Json) -> None:
    said = advice(given)
    assert said
    assert not any(UNSEEN in sentence for sentence in said)


@pytest.mark.parametrize("phase", ["Restarting", "Aborting", "Completing", "Terminating", "Pending", "Running"])
def test_who_is_waited_for_is_told_with_what_can_be_done(phase: str) -> None:
    reason = "PodTerminating" if phase in ("Pending", "Running") else "PodFailed"
    cause = executing(action="RestartJob", cause="pod j-b-0 exited with code 1") if reason == "PodFailed" else ""
    given = job(phase, reason, and_waits(cause, HELD))
    said = " ".join(advice(given))
    assert "kubectl describe pods -n n -l volcano.sh/job-name=j" in said
    assert "--force" in said
    assert ("job resume j" in said) is (phase == "Aborting")
    assert waiting_of(given, Surroundings()).message.endswith(HELD)
    assert job_why(given).endswith(HELD)
    assert not job_why(given).startswith("Start to execute")


def test_a_name_that_is_taken_is_to_be_freed() -> None:
    message = "ConfigMap n/j-svc can't be made: the name is taken by an object without a controller"
    said = " ".join(advice(job("Pending", "PluginError", message)))
    assert "Delete the object with that name" in said
    assert "spec.plugins" not in said
    assert "Fix spec.plugins" in " ".join(advice(job("Pending", "PluginError", "task w: plugin x failed")))
