"""The service at its door: what is taken, what is turned away, and how."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.admission_http import KnownWorld, answer_of, app_over, review_of
from tests.support.admission_world import World
from tests.support.asgi import JSON_TYPE, ask
from tests.support.metrics import Scrape
from vcbatch.api.admission import Lookup, Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBS, PODS, QUEUES, Resource
from vcbatch.hosting.checks import Checks
from vcbatch.observe.metrics import PrometheusMeter
from webhooks import app as service_app
from webhooks.app import LARGEST_BODY
from webhooks.paths import PATHS

TASK: Json = {"name": "w", "replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}


def job(**spec: Any) -> Request:
    body: Json = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"queue": "default", "tasks": [TASK], **spec}}
    return Request(resource=JOBS, operation=Operation.CREATE, name="j", namespace="ns", object=body)


async def test_every_path_of_volcanos_webhook_manager_is_served() -> None:
    app = app_over(World())
    document = (await ask(app, "GET", "/openapi.json")).json
    assert {path for path in document["paths"] if path.endswith(("/mutate", "/validate"))} == set(PATHS)
    for path in ("/healthz", "/readyz", "/metrics"):
        assert (await ask(app, "GET", path)).code == 200


async def test_a_job_is_filled_in_and_judged() -> None:
    app = app_over(World())
    filled = await answer_of(app, "/jobs/mutate", review_of(job()))
    assert {operation["path"] for operation in filled["patch"]} >= {"/spec/maxRetry", "/spec/minAvailable"}
    assert (await answer_of(app, "/jobs/validate", review_of(job())))["allowed"]
    denied = await answer_of(app, "/jobs/validate", review_of(job(queue="nowhere")))
    assert denied["status"]["message"] == 'unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found'
    assert "code" not in denied["status"], "Volcano sends none, so the API server answers 400 for both"


async def test_a_review_of_many_bytes_is_answered_from_a_thread() -> None:
    large = job(tasks=[{**TASK, "name": f"w{number}"} for number in range(400)])
    app = app_over(World())
    filled = await answer_of(app, "/jobs/mutate", review_of(large))
    assert {operation["path"] for operation in filled["patch"]} >= {"/spec/maxRetry", "/spec/minAvailable"}
    assert (await answer_of(app, "/jobs/validate", review_of(large)))["allowed"]


async def test_a_dry_run_is_judged_like_any_other() -> None:
    review = review_of(job(queue="nowhere"))
    review["request"]["dryRun"] = True
    assert not (await answer_of(app_over(World()), "/jobs/validate", review))["allowed"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"resource": {"group": "", "version": "v1", "resource": "pods"}},
            "takes CREATE, UPDATE of jobs.batch.volcano.sh",
        ),
        ({"operation": "DELETE"}, "got DELETE"),
        ({"operation": "CONNECT"}, "got CONNECT"),
        ({"object": None}, "carries no object"),
    ],
)
async def test_what_a_path_isnt_for_is_denied(change: Json, said: str) -> None:
    review = review_of(job())
    review["request"] |= change
    denied = await answer_of(app_over(World()), "/jobs/validate", review)
    assert not denied["allowed"]
    assert said in denied["status"]["message"]


async def test_status_isnt_judged() -> None:
    review = review_of(job(queue="nowhere"))
    review["request"]["subResource"] = "status"
    assert (await answer_of(app_over(World()), "/jobs/validate", review))["allowed"]


@pytest.mark.parametrize(
    ("headers", "body", "code", "reason"),
    [
        ({"content-type": "text/plain"}, b"{}", 415, "UnsupportedMediaType"),
        ({}, b"{}", 415, "UnsupportedMediaType"),
        (JSON_TYPE, b"{", 400, "BadRequest"),
        (JSON_TYPE, b"", 400, "BadRequest"),
        (JSON_TYPE, b"null", 400, "BadRequest"),
        (JSON_TYPE, b'{"a":' * 10_000, 400, "BadRequest"),
    ],
)
async def test_other_bodies_get_a_status(headers: dict[str, str], body: bytes, code: int, reason: str) -> None:
    reply = await ask(app_over(World()), "POST", "/jobs/validate", body, headers=headers)
    assert (reply.code, reply.json["kind"], reply.json["reason"]) == (code, "Status", reason)


async def test_a_media_type_may_have_parameters() -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    assert (await ask(app_over(World()), "POST", "/jobs/validate", review_of(job()), headers=headers)).code == 200


@pytest.mark.parametrize("declared", [True, False])
async def test_bodies_have_a_limit_whether_announced_or_not(declared: bool) -> None:
    app = app_over(World())
    headers = {**JSON_TYPE, "content-length": str(LARGEST_BODY + 1)} if declared else JSON_TYPE
    reply = await ask(app, "POST", "/jobs/validate", headers=headers, chunks=[b" " * 2**20] * 4)
    assert reply.code == 413


async def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_app, "BODY_SECONDS", 0.01)
    reply = await ask(app_over(World()), "POST", "/jobs/validate", chunks=[b"{"])
    assert (reply.code, reply.headers["connection"]) == (408, "close")


class _Waiting(KnownWorld):
    """Holds every refusal up until `go`, and says when `full` many wait."""

    def __init__(self, *, full: int) -> None:
        super().__init__()
        self.go, self.full = asyncio.Event(), asyncio.Event()
        self._missing = full

    async def refresh(self, request: Request) -> Lookup:
        self._missing -= 1
        if not self._missing:
            self.full.set()
        await self.go.wait()
        return self


async def test_too_many_at_once_are_turned_away_at_once() -> None:
    world = _Waiting(full=3)
    app = app_over(world, most_at_once=3)
    refused = review_of(job(queue="nowhere"))
    waiting = [asyncio.create_task(answer_of(app, "/jobs/validate", refused)) for _ in range(3)]
    await world.full.wait()
    reply = await ask(app, "POST", "/jobs/validate", refused)
    assert (reply.code, reply.headers["retry-after"], reply.json["reason"]) == (429, "1", "TooManyRequests")
    assert (await ask(app, "GET", "/healthz")).code == 200, "health isn't a review"
    world.go.set()
    assert [answer["allowed"] for answer in await asyncio.gather(*waiting)] == [False] * 3
    assert (await ask(app, "POST", "/jobs/validate", review_of(job()))).code == 200


async def test_a_background_task_that_fails_makes_it_not_ready() -> None:
    app = app_over(KnownWorld(), error="keeping the certificates: RuntimeError: no luck")
    reply = await ask(app, "GET", "/readyz")
    assert reply.code == 503
    assert reply.body.decode().splitlines() == [
        "[-]tasks failed: keeping the certificates: RuntimeError: no luck",
        "[+]caches ok",
        "readyz check failed",
    ]
    assert (await ask(app, "GET", "/readyz/caches")).code == 200
    assert (await ask(app, "GET", "/readyz/tasks")).code == 503
    assert (await ask(app, "GET", "/readyz/none")).code == 404
    assert (await ask(app, "GET", "/healthz")).code == 200


async def test_a_service_that_is_about_to_end_says_so_though_it_knows_the_cluster() -> None:
    ending = Checks("readyz", {"caches": lambda: "ending"})
    reply = await ask(app_over(KnownWorld(), ready=ending), "GET", "/readyz/caches")
    assert (reply.code, reply.body) == (503, b"ending")


async def test_while_it_knows_nothing_it_says_so() -> None:
    app = app_over(KnownWorld(complete=False))
    assert (await ask(app, "GET", "/readyz")).code == 503
    assert (await ask(app, "GET", "/healthz")).code == 200
    denied = await answer_of(app, "/jobs/validate", review_of(job()))
    assert (denied["allowed"], denied["status"]["code"]) == (False, 503)
    assert "try again" in denied["status"]["message"]


class _Broken(KnownWorld):
    def queue(self, name: str) -> Any:
        raise RuntimeError("a fault of ours")


async def test_a_fault_of_ours_is_no_open_door(caplog: pytest.LogCaptureFixture) -> None:
    denied = await answer_of(app_over(_Broken()), "/jobs/validate", review_of(job()))
    assert (denied["allowed"], denied["status"]["code"]) == (False, 500)
    assert "a fault of ours" in caplog.text


@pytest.mark.parametrize(
    ("world", "reason"), [(KnownWorld(complete=False), "unavailable"), (_Broken(), "error"), (KnownWorld(), None)]
)
async def test_reviews_that_end_without_a_judgement_are_counted(world: KnownWorld, reason: str | None) -> None:
    meter = PrometheusMeter(programs=("webhooks",))
    await answer_of(app_over(world, meter=meter), "/jobs/validate", review_of(job(queue="nowhere")))
    counted = Scrape(meter).labels("vcbatch_admission_failures_total")
    assert counted == ([] if reason is None else [{"path": "/jobs/validate", "reason": reason}])
    assert Scrape(meter).value("vcbatch_admission_reviews_total", path="/jobs/validate", allowed="false") == 1


@pytest.mark.parametrize("resource", [QUEUES, PODS])
async def test_deletions_are_judged_where_there_is_a_rule(resource: Resource) -> None:
    name = "default"
    request = Request(resource=resource, operation=Operation.DELETE, name=name, old={"metadata": {"name": name}})
    answer = await answer_of(app_over(World()), f"/{resource.plural}/validate", review_of(request))
    assert not answer["allowed"]
    taken = "/pods/validate takes CREATE, UPDATE of pods"
    expected = "`default` queue can not be deleted" if resource == QUEUES else taken
    assert expected in answer["status"]["message"]
