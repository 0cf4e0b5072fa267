"""Moving and requeueing jobs: nothing that somebody submitted is lost, wherever the command is stopped."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from vcbatch.api.names import MOVING_JOB
from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.resources import COMMANDS, JOBS, JOBTEMPLATES, QUEUES, Resource
from vcbatch.cli.base.output import CliError
from vcbatch.cli.resources.job.copies import manifest_of, name_again
from vcbatch.cli.resources.job.move import kept_name, move
from vcbatch.cli.resources.job.requeue import run_again, suspend

Json = dict[str, Any]

CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SPEC: Json = {
    "queue": "old",
    "minAvailable": 1,
    "schedulerName": "volcano",
    "maxRetry": 3,
    "tasks": [
        {
            "name": "w",
            "replicas": 1,
            "minAvailable": 1,
            "maxRetry": 3,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]}},
        }
    ],
    "volumes": [{"mountPath": "/data", "volumeClaimName": "train-pvc-abc", "volumeClaim": CLAIM}],
}


class Stopped(Exception):
    """The command was killed here."""


class Server(FakeApi):
    """With controllers that follow Commands at once; the command's process ends before the call number `stop`."""

    def __init__(self, *, stop: int = 10**9) -> None:
        super().__init__()
        self.calls = 0
        self.stop = stop

    def _count(self) -> None:
        self.calls += 1
        if self.calls > self.stop:
            raise Stopped

    async def get(self, resource: Resource, name: str, **options: Any) -> Any:
        self._count()
        return await super().get(resource, name, **options)

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        self._count()
        if resource == COMMANDS:
            body["metadata"].setdefault("name", f"command-{self.calls}")
            phase = JobPhase.ABORTED if body["action"] == Action.ABORT_JOB else JobPhase.RESTARTING
            job = self.objects[JOBS, namespace or "", body["target"]["name"]]
            assert body["target"]["uid"] == job["metadata"]["uid"]
            job["status"] = {"state": {"phase": str(phase)}}
            return body
        return await super().create(resource, body, namespace=namespace)

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self._count()
        await super().delete(resource, name, **options)


class Impatient:
    """A clock on which waiting takes no time."""

    def __init__(self) -> None:
        self._time = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self._time

    async def sleep(self, seconds: float) -> None:
        self._time += seconds


def server(*, stop: int = 10**9, phase: str = "Pending", **metadata: Any) -> Server:
    api = Server(stop=stop)
    for queue in ("old", "new"):
        api.seed(QUEUES, {"metadata": {"name": queue}, "spec": {"weight": 1}, "status": {"state": "Open"}})
    body = {"name": "train", "namespace": "team", "labels": {"a": "b"}, "annotations": {"note": "mine"}, **metadata}
    api.seed(JOBS, {"metadata": body, "spec": copy.deepcopy(SPEC), "status": {"state": {"phase": phase}}})
    return api


def wanted() -> Json:
    spec = copy.deepcopy(SPEC)
    spec["queue"] = "new"
    del spec["volumes"][0]["volumeClaimName"]
    return spec


async def test_a_waiting_job_goes_to_the_other_queue_as_it_was() -> None:
    api = server()
    assert (
        await move(api, "train", "new", namespace="team", clock=Impatient())
        == "job.batch.volcano.sh/train moved to queue new"
    )
    [job] = api.all(JOBS)
    assert job["spec"] == wanted()
    assert job["metadata"]["labels"] == {"a": "b"}
    assert job["metadata"]["annotations"] == {"note": "mine", MOVING_JOB: "uid-3"}
    assert not api.all(JOBTEMPLATES)
    assert (
        await move(api, "train", "old", namespace="team", clock=Impatient())
        == "job.batch.volcano.sh/train moved to queue old"
    )
    [job] = api.all(JOBS)
    assert job["metadata"]["annotations"] == {"note": "mine", MOVING_JOB: job["metadata"]["annotations"][MOVING_JOB]}
    assert not api.all(JOBTEMPLATES)


@pytest.mark.parametrize("stop", range(14))
@pytest.mark.parametrize("again", [0, 3, 5, 8])
async def test_wherever_it_is_stopped_the_job_is_there_and_goes_on(stop: int, again: int) -> None:
    api = server(stop=stop)
    for limit in (None, again, 10**9):
        if limit is not None:
            api.calls, api.stop = 0, limit
        try:
            said = await move(api, "train", "new", namespace="team", clock=Impatient())
        except Stopped:
            said = ""
        specs = [held["spec"] for held in (*api.all(JOBS), *api.all(JOBTEMPLATES))]
        assert any(spec["tasks"] == SPEC["tasks"] for spec in specs)
    assert said in ("job.batch.volcano.sh/train moved to queue new", "job.batch.volcano.sh/train already in queue new")
    [job] = api.all(JOBS)
    assert job["spec"] == wanted()
    assert not api.all(JOBTEMPLATES)


async def test_what_admission_refuses_changes_nothing() -> None:
    api = server()
    api.seed(QUEUES, {"metadata": {"name": "shut"}, "spec": {"weight": 1}, "status": {"state": "Closed"}})
    before = len(api.writes)
    for queue, why in (("nowhere", "not found"), ("shut", "Closed"), ("root", "root")):
        with pytest.raises(CliError, match=why):
            await move(api, "train", queue, namespace="team", clock=Impatient())
    assert len(api.writes) == before


@pytest.mark.parametrize(
    ("phase", "metadata", "why"),
    [
        ("Running", {}, "is Running"),
        ("Completed", {}, "only pending and suspended"),
        (
            "Pending",
            {"ownerReferences": [{"kind": "JobFlow", "name": "f", "controller": True}]},
            "managed by jobflow f",
        ),
    ],
)
async def test_what_runs_is_over_or_belongs_to_others_stays(phase: str, metadata: Json, why: str) -> None:
    api = server(phase=phase, **metadata)
    with pytest.raises(CliError, match=why):
        await move(api, "train", "new", namespace="team", clock=Impatient())
    assert not api.writes


async def test_a_template_of_somebody_else_isnt_taken_for_a_job_on_its_way() -> None:
    api = server()
    api.seed(JOBTEMPLATES, {"metadata": {"name": kept_name("train"), "namespace": "team"}, "spec": {}})
    with pytest.raises(CliError, match="already exists"):
        await move(api, "train", "new", namespace="team", clock=Impatient())
    assert not api.writes


async def test_another_job_that_took_the_name_is_left_alone() -> None:
    api = server()
    stop = 0
    while not api.all(JOBTEMPLATES) or api.all(JOBS):  # until it is stopped between deleting and making it
        stop += 1
        api = server(stop=stop)
        with pytest.raises(Stopped):
            await move(api, "train", "new", namespace="team", clock=Impatient())
    body = {"metadata": {"name": "train", "namespace": "team"}, "spec": copy.deepcopy(SPEC), "status": {}}
    other = api.seed(JOBS, body)
    api.stop = 10**9
    with pytest.raises(CliError, match="another job train was created"):
        await move(api, "train", "new", namespace="team", clock=Impatient())
    assert [job["metadata"]["uid"] for job in api.all(JOBS)] == [other["metadata"]["uid"]]
    assert [kept["spec"]["tasks"] for kept in api.all(JOBTEMPLATES)] == [SPEC["tasks"]]


async def test_suspending_gives_up_where_nobody_follows() -> None:
    api = server()
    job = api.all(JOBS)[0]
    deaf = FakeApi()
    deaf.objects = api.objects

    async def create(resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        return body

    deaf.create = create  # type: ignore[method-assign]
    with pytest.raises(CliError, match="still Pending after 60 s"):
        await suspend(deaf, job, clock=Impatient())


async def test_a_finished_job_is_run_again_once() -> None:
    api = server(phase="Failed", annotations={"volcano.sh/createdByJobFlow": "team.f", "note": "mine"})
    job = api.all(JOBS)[0]
    assert "train-r2" in await run_again(api, job, new_name="", queue="")
    made = next(one for one in api.all(JOBS) if one["metadata"]["name"] == "train-r2")
    assert made["metadata"]["annotations"] == {"note": "mine"}
    with pytest.raises(CliError, match="train-r2 already exists"):
        await run_again(api, job, new_name="", queue="")


@pytest.mark.parametrize(("name", "following"), [("a", "a-r2"), ("a-r2", "a-r3"), ("a-r9", "a-r10"), ("r2", "r2-r2")])
def test_names_of_further_tries(name: str, following: str) -> None:
    assert name_again(name) == following


def test_a_copy_belongs_to_nobody() -> None:
    job = {
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "ownerReferences": [{}]},
        "spec": {"tasks": []},
        "status": {"state": {"phase": "Running"}},
    }
    assert manifest_of(job, name="b")["metadata"] == {"name": "b", "namespace": "n"}
    assert "status" not in manifest_of(job)
