"""The options of `vcbatch run` for dependencies, begin times and deadlines, and copies of jobs that have them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.screens.play import NOW, call
from tests.support.kubeconfigs import kubeconfig
from tests.support.scripted_http import Answer, Asked, refused, scripted
from vcbatch.api.names import AFTER, BEGIN_TIME, DEADLINE
from vcbatch.api.timestamps import parse_time
from vcbatch.cli.resources.job.copies import manifest_of

Json = dict[str, Any]
PREP: Json = {"metadata": {"name": "prep", "namespace": "default", "uid": "uid-prep"}}


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of this process, UTC-5 in January."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def answer(asked: Asked) -> Answer:
    """A cluster with one job, `prep`."""
    if asked.path == "/version":
        return Answer(body={"gitVersion": "v1.36.0"})
    if asked.method == "POST":
        return Answer(status=201, body=asked.json())
    if asked.path.endswith("/jobs/prep"):
        return Answer(body=PREP)
    return refused(404, "NotFound", 'jobs.batch.volcano.sh "perp" not found')


def run(tmp_path: Path, *options: str) -> tuple[int, str, str, list[Json]]:
    """Run the command; returns its exit code, output and errors, and the jobs that it created."""
    with scripted(answer) as served:
        words = ["run", "--image", "i", "--name", "j", *options, "--", "true"]
        code, out, err = call(words, kubeconfig(tmp_path, served.url))
    return code, out, err, [asked.json() for asked in served.asked if asked.method == "POST"]


def printed(tmp_path: Path, *options: str) -> dict[str, str]:
    """The annotations of the job that --dry-run prints."""
    code, out, err, created = run(tmp_path, "--dry-run", "-o", "json", *options)
    assert (code, created) == (0, []), err
    return json.loads(out)["metadata"].get("annotations", {})


def test_a_submitted_job_names_the_others_by_uid(tmp_path: Path) -> None:
    code, _, err, (job,) = run(tmp_path, "--detach", "--after", "prep:any")
    assert code == 0, err
    assert job["metadata"]["annotations"] == {AFTER: "prep/uid-prep:any"}


def test_a_job_that_does_not_exist_is_an_error_and_nothing_is_submitted(tmp_path: Path) -> None:
    code, _, err, created = run(tmp_path, "--detach", "--after", "perp")
    assert (code, created) == (1, [])
    assert "perp" in err and "not found" in err


def test_a_printed_job_names_them_by_name(tmp_path: Path) -> None:
    assert printed(tmp_path, "--after", "a", "--after", "b:fail") == {AFTER: "a:ok,b:fail"}
    assert printed(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2030-01-01T08:00:00+02:00", "2030-01-01T06:00:00Z"),
        ("2030-01-01T08:00", "2030-01-01T13:00:00Z"),
        ("2030-01-01", "2030-01-01T05:00:00Z"),
    ],
)
@pytest.mark.usefixtures("in_new_york")
def test_times_are_local_without_an_offset(tmp_path: Path, text: str, instant: str) -> None:
    assert printed(tmp_path, "--begin", text) == {BEGIN_TIME: instant}


def test_durations_count_from_now(tmp_path: Path) -> None:
    found = printed(tmp_path, "--begin", "now+2h", "--deadline", "3h30m")
    assert (parse_time(found[BEGIN_TIME]) - NOW).total_seconds() == 7200
    assert (parse_time(found[DEADLINE]) - NOW).total_seconds() == 12600


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--after", "a:maybe"], "unknown outcome 'maybe'"),
        (["--after", "a", "--after", "a:any"], "job 'a' is named twice"),
        (["--begin", "tomorrow"], "invalid time 'tomorrow'"),
        (["--begin", "2h"], "invalid time '2h'"),
        (["--begin", "now+99999999999h"], "invalid time"),
        (["--deadline", "soon"], "or a duration such as 8h"),
        (["--deadline", "2001-01-01"], "is in the past"),
        (["--begin", "now+2h", "--deadline", "1h"], "is not after --begin"),
    ],
)
def test_errors_name_the_option_and_what_is_allowed(tmp_path: Path, options: list[str], error: str) -> None:
    code, out, err, created = run(tmp_path, "--dry-run", *options)
    assert (code, out, created) == (2, "", [])
    assert error in err and options[-2] in err


def dependent(*seen: Json, **ledger: Any) -> Json:
    annotations = {
        AFTER: "a:ok,b:fail,c/uid-c:any",
        BEGIN_TIME: "2030-01-01T00:00:00Z",
        DEADLINE: "2031-01-01T00:00:00Z",
    }
    return {
        "metadata": {"name": "j", "namespace": "default", "uid": "u", "annotations": annotations},
        "spec": {"tasks": []},
        "status": {"ledger": {"dependencies": [*seen], **ledger}},
    }


def test_a_moved_job_keeps_what_it_still_waits_for() -> None:
    job = dependent(
        {"name": "a", "uid": "uid-a", "outcome": "Completed"}, {"name": "b", "uid": "uid-b", "outcome": "Completed"}
    )
    kept = manifest_of(job)["metadata"]["annotations"]
    assert kept[AFTER] == "b/uid-b:fail,c/uid-c:any"
    assert {BEGIN_TIME, DEADLINE} < kept.keys()


def test_a_moved_job_that_was_allowed_to_start_waits_for_nothing() -> None:
    kept = manifest_of(dependent(released=True))["metadata"]["annotations"]
    assert kept.keys() == {DEADLINE}


def test_a_resubmitted_job_starts_at_once() -> None:
    assert "annotations" not in manifest_of(dependent(), again=True)["metadata"]
