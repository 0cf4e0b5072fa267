"""The HTTP client against a server that answers as servers and networks do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from tests.support.handled_http import Handler, handled
from tests.support.metrics import Scrape
from tests.support.ports import free_port
from tests.support.virtual_time import SeededRandom
from vcbatch.api.pod import Pod
from vcbatch.api.resources import CRONJOBS, JOBS, NODES, PODS, QUEUES
from vcbatch.hosting.health import Health
from vcbatch.interfaces.api import ApiError, PatchKind
from vcbatch.local.apiserver.access import ADMINISTRATORS, User
from vcbatch.local.apiserver.healthz import health_response
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.caches.cache import metadata_of
from vcbatch.runtime.client.credentials import StaticToken
from vcbatch.runtime.client.http import ClientLimits, HttpApi
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.clock import SystemClock


class Impatient(SystemClock):
    """Waits between tries are remembered, not waited for."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@asynccontextmanager
async def served(handler: Handler, **limits: object) -> AsyncIterator[tuple[HttpApi, Impatient]]:
    clock = Impatient()
    async with handled(handler) as url:
        connection = Connection(server=url, credentials=StaticToken(token="secret"))
        some = ClientLimits(**limits)  # type: ignore[arg-type]
        async with HttpApi(connection, clock=clock, random=SeededRandom(1), limits=some) as api:
            yield api, clock


def status(code: int, reason: str, message: str, **details: object) -> web.Response:
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }
    return web.json_response(body, status=code)


async def test_a_refusal_carries_what_the_status_says():
    async def handler(_: web.Request) -> web.Response:
        return status(404, "NotFound", 'pods "x" not found', name="x")

    async with served(handler) as (api, _):
        with pytest.raises(ApiError) as caught:
            await api.get(PODS, "x", namespace="ns")
    assert (caught.value.code, caught.value.reason, str(caught.value)) == (404, "NotFound", 'pods "x" not found')
    assert caught.value.details["name"] == "x"


async def test_requests_are_counted_by_method_and_status_or_the_lack_of_one():
    meter = PrometheusMeter(programs=("webhooks",))

    async def handler(request: web.Request) -> web.Response:
        return status(404, "NotFound", "gone") if request.method == "DELETE" else web.json_response({"items": []})

    async with handled(handler) as url:
        api = HttpApi(Connection(server=url), clock=Impatient(), random=SeededRandom(1), meter=meter)
        async with api:
            await api.list(PODS)
            with pytest.raises(ApiError):
                await api.delete(PODS, "x", namespace="ns")
            with suppress(ApiError):
                async for _ in api.watch(PODS, resource_version="1"):
                    pass
    nowhere = Connection(server=f"http://127.0.0.1:{free_port()}")
    async with HttpApi(
        nowhere, clock=Impatient(), random=SeededRandom(1), limits=ClientLimits(retries=2), meter=meter
    ) as api:
        with pytest.raises(ApiError):
            await api.get(PODS, "x", namespace="ns")
    scrape = Scrape(meter)
    counted = {
        (labels["method"], labels["code"]): scrape.value("vcbatch_api_requests_total", **labels)
        for labels in scrape.labels("vcbatch_api_requests_total")
    }
    assert counted == {("GET", "200"): 1, ("DELETE", "404"): 1, ("WATCH", "200"): 1, ("GET", "error"): 3}
    assert scrape.value("vcbatch_api_request_duration_seconds_count", method="DELETE") == 1


async def test_an_answer_of_a_proxy_is_a_refusal_too():
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=502, text="<html>Bad Gateway</html>")

    async with served(handler, retries=0) as (api, _):
        with pytest.raises(ApiError) as caught:
            await api.get(PODS, "x", namespace="ns")
    assert caught.value.transient
    assert "Bad Gateway" in str(caught.value)


async def test_lists_are_read_page_by_page_and_decoded_to_the_model():
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.query_string)
        first = "continue" not in request.query
        metadata = {"resourceVersion": "7", "continue": "more"} if first else {"resourceVersion": "9"}
        name = "a" if first else "b"
        return web.json_response({"metadata": metadata, "items": [{"metadata": {"name": name, "uid": name}}]})

    async with served(handler, page_size=1) as (api, _):
        listing = await api.list(PODS, label_selector="x=y", model=Pod)
    assert [pod.metadata.name for pod in listing.items] == ["a", "b"]
    assert listing.resource_version == "7"
    assert "labelSelector=x%3Dy" in asked[0] and "limit=1" in asked[0] and "continue=more" in asked[1]


async def test_a_list_whose_snapshot_expired_is_read_in_one_go():
    async def handler(request: web.Request) -> web.Response:
        if "continue" in request.query:
            return status(410, "Expired", "the provided continue parameter is too old")
        metadata = (
            {"resourceVersion": "7", "continue": "more"} if "limit" in request.query else {"resourceVersion": "8"}
        )
        return web.json_response({"metadata": metadata, "items": [{"metadata": {"name": "a"}}]})

    async with served(handler) as (api, _):
        listing = await api.list(NODES)
    assert listing.resource_version == "8"


async def test_one_object_that_doesnt_decode_stops_no_other():
    async def handler(_: web.Request) -> web.Response:
        items = [{"metadata": {"name": "good"}}, {"metadata": {"name": ["bad"]}}, {"metadata": {"name": "fine"}}]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    async with served(handler) as (api, _):
        listing = await api.list(PODS, model=Pod)
    assert [pod.metadata.name for pod in listing.items] == ["good", "fine"]


@pytest.mark.parametrize(
    ("act", "tries"),
    [
        (lambda api: api.get(PODS, "x", namespace="ns"), 3),
        (lambda api: api.delete(PODS, "x", namespace="ns", uid="u"), 3),
        (lambda api: api.delete(PODS, "x", namespace="ns"), 1),
        (lambda api: api.create(PODS, {"metadata": {"name": "x"}}, namespace="ns"), 1),
        (lambda api: api.patch(JOBS, "x", {}, namespace="ns"), 1),
        (lambda api: api.bind(namespace="ns", name="x", uid="u", node="n"), 1),
    ],
)
async def test_only_what_may_happen_twice_is_tried_again_after_a_500(act, tries: int):
    calls = 0

    async def handler(_: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        return status(500, "InternalError", "broken")

    async with served(handler, retries=2) as (api, _):
        with pytest.raises(ApiError):
            await act(api)
    assert calls == tries


async def test_a_throttled_write_waits_as_long_as_it_was_told():
    calls = 0

    async def handler(_: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        if calls == 1:
            return web.json_response({"kind": "Status", "code": 429}, status=429, headers={"Retry-After": "7"})
        return web.json_response({"metadata": {"name": "x"}})

    async with served(handler) as (api, clock):
        await api.create(PODS, {"metadata": {"name": "x"}}, namespace="ns")
    assert clock.slept == [7.0]


async def test_a_server_that_isnt_there_is_code_zero_and_transient():
    connection = Connection(server="http://127.0.0.1:1")
    async with HttpApi(connection, clock=Impatient(), random=SeededRandom(1), limits=ClientLimits(retries=1)) as api:
        with pytest.raises(ApiError) as caught:
            await api.create(PODS, {"metadata": {"name": "x"}}, namespace="ns")
    assert caught.value.code == 0 and caught.value.transient


@pytest.mark.parametrize("model", [Pod, dict])
async def test_a_watch_gives_events_bookmarks_and_the_version_to_go_on_from(model: type[Any]):
    frames = [
        {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "5"}}},
        {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "8"}}},
        {"type": "DELETED", "object": {"metadata": {"name": "a", "resourceVersion": "9"}}},
    ]

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.query["watch"] == "true" and request.query["resourceVersion"] == "4"
        response = web.StreamResponse()
        await response.prepare(request)
        data = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
        for start in range(0, len(data), 7):  # frames come in any pieces
            await response.write(data[start : start + 7])
        return response

    async with served(handler) as (api, _):
        events = [event async for event in api.watch(PODS, resource_version="4", model=model)]
    assert [(event.type, event.resource_version) for event in events] == [
        ("ADDED", "5"), ("BOOKMARK", "8"), ("DELETED", "9"),
    ]  # fmt: skip
    assert metadata_of(events[0].object).name == "a"


@pytest.mark.parametrize("obj", [{"metadata": None}, {"metadata": {"resourceVersion": None}}, {}, None, "text"])
async def test_what_a_watch_carries_as_an_object_may_be_none(obj: Any):
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=json.dumps({"type": "ADDED", "object": obj}).encode() + b"\n")

    events = []
    async with served(handler) as (api, _):
        with suppress(ApiError):
            events += [(event.object, event.resource_version) async for event in api.watch(JOBS, resource_version="4")]
    assert events == ([({}, "")] if obj == {} else [])


async def test_an_expired_watch_says_so_in_the_stream_and_in_the_answer():
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}

    async def in_stream(request: web.Request) -> web.Response:
        return web.Response(body=json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")

    async def as_answer(request: web.Request) -> web.Response:
        return web.json_response(gone, status=410)

    for handler in (in_stream, as_answer):
        async with served(handler) as (api, _):
            with pytest.raises(ApiError) as caught:
                _ = [event async for event in api.watch(PODS, resource_version="1")]
            assert caught.value.expired


async def test_a_watch_line_without_an_end_doesnt_fill_the_memory():
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"x" * 1024)
        return response

    async with served(handler, max_line=10_000) as (api, _):
        with pytest.raises(ApiError, match="longer than 10000 bytes"):
            _ = [event async for event in api.watch(PODS, resource_version="1")]


async def test_a_silent_watch_ends():
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n')
        await release.wait()
        return response

    async with served(handler, watch_idle_timeout=1.0) as (api, _):
        events = [event async for event in api.watch(PODS, resource_version="1")]
        release.set()
    assert len(events) == 1


async def test_a_bind_is_a_raw_binding_with_the_uid():
    bodies: list[tuple[str, dict]] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append((request.path, await request.json()))
        return web.json_response({"kind": "Status", "status": "Success", "code": 201}, status=201)

    async with served(handler) as (api, _):
        await api.bind(namespace="ns", name="p", uid="u", node="n1", annotations={"a": "b"})
    path, body = bodies[0]
    assert path == "/api/v1/namespaces/ns/pods/p/binding"
    assert body["metadata"] == {"name": "p", "namespace": "ns", "uid": "u", "annotations": {"a": "b"}}
    assert body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


async def test_patches_name_their_kind_and_every_request_its_sender():
    seen: list[tuple[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.headers["Content-Type"], request.headers["Authorization"]))
        return web.json_response({"metadata": {}})

    async with served(handler) as (api, _):
        await api.patch(PODS, "x", {"status": {}}, namespace="ns", subresource="status", kind=PatchKind.STRATEGIC)
    assert seen == [("application/strategic-merge-patch+json", "Bearer secret")]


def test_nothing_secret_is_in_a_repr():
    connection = Connection(server="https://x", credentials=StaticToken(token="hunter2"), key_pem="hunter2")
    assert "hunter2" not in repr(connection)


async def test_a_watch_tells_first_what_exists_where_it_is_asked_to():
    lines = [
        {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "3"}}},
        {
            "type": "BOOKMARK",
            "object": {
                "kind": "Pod",
                "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}},
                "spec": {"containers": None},
            },
        },
        {"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": "10"}}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}, "spec": {"containers": None}}},
    ]

    async def handler(request: web.Request) -> web.Response:
        asked = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        assert asked.items() <= request.query.items()
        assert "resourceVersion" not in request.query
        return web.Response(text="".join(json.dumps(line) + "\n" for line in lines))

    async with served(handler) as (api, _):
        events = [event async for event in api.watch_list(PODS, model=Pod)]
    assert [(event.type, event.resource_version, event.complete) for event in events] == [
        ("ADDED", "3", False),
        ("BOOKMARK", "9", True),
        ("MODIFIED", "10", False),
        ("BOOKMARK", "12", False),
    ]


async def test_discovery_tells_which_kinds_are_listed():
    answers = {
        "/apis": {"groups": [{"name": "batch.volcano.sh", "versions": [{"version": "v1alpha1"}]}, {"name": "gone.io"}]},
        "/api/v1": {"resources": [{"name": "pods"}, {"name": "pods/log"}]},
        "/apis/batch.volcano.sh/v1alpha1": {"resources": [{"name": "cronjobs"}]},
    }

    async def handler(request: web.Request) -> web.Response:
        answer = answers.get(request.path)
        return web.json_response(answer) if answer is not None else status(404, "NotFound", "not found")

    async with served(handler) as (api, _):
        assert await api.discovered([PODS, NODES, JOBS, CRONJOBS, QUEUES]) == [PODS, CRONJOBS]
        del answers["/apis/batch.volcano.sh/v1alpha1"]  # the last kind of a group goes between the two questions
        assert await api.discovered([PODS, CRONJOBS]) == [PODS]
        answers["/apis"] = {"groups": None}
        assert await api.discovered([CRONJOBS]) == []


@pytest.mark.parametrize("count", [1, 2, 30])
async def test_the_checks_that_fail_are_read_off_readyz(count: int) -> None:
    """In the words of the local server, which tells an administrator of each failing task."""
    errors = {f"kubelet: task {number}": f"OSError: no space, said {number} times" for number in range(count)}
    health = Health(SystemClock(), on_failure=lambda _: None)
    health.errors = lambda: errors  # type: ignore[method-assign]

    async def answer(request: web.Request) -> web.Response:
        query = {key: [value] for key, value in request.query.items()}
        reported = health_response(request.path, query, User(name="admin", groups=(ADMINISTRATORS,)), health)
        assert reported is not None and isinstance(reported.body, bytes)
        return web.Response(status=reported.code, body=reported.body, content_type="text/plain")

    async with served(answer) as (api, _):
        found = await api.failing_checks()
        assert found == [f"{name} failed: {why}" for name, why in errors.items()]
        errors.clear()
        assert await api.failing_checks() == ()
