"""Binding, evicting and reading logs of pods; reviews."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.unit.apiserver.core.servers import Client, server, virtual
from tests.unit.apiserver.kinds.support import PODS, Json, bind, container, made, make_pod, set_status
from vcbatch.api.disruption import desired_healthy
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.authn import Authenticator

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
REVIEWS = "/apis/authorization.k8s.io/v1"
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


@virtual
async def test_a_binding_names_the_node_once() -> None:
    async with server() as client:
        await make_pod(client, metadata={"annotations": {"a": "1"}})
        answer = await bind(client, node="n", annotations={"b": "2"})
        assert (answer.code, answer.body) == (201, SUCCESS)
        pod = (await client.get(f"{PODS}/p")).body
        assert pod["spec"]["nodeName"] == "n"
        assert pod["metadata"]["annotations"] == {"a": "1", "b": "2"}
        (condition,) = pod["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
        again = await bind(client, node="m")
        assert (again.code, again.body["reason"]) == (409, "Conflict")
        assert again.message == (
            'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"'
        )


@pytest.mark.parametrize(
    ("spec", "binding", "code", "words"),
    [
        ({}, {"uid": "other"}, 409, "Precondition failed: UID in precondition: other"),
        ({"schedulingGates": [{"name": "g"}]}, {}, 409, "pod p has non-empty .spec.schedulingGates"),
    ],
)
@virtual
async def test_bindings_that_are_refused(spec: Json, binding: Json, code: int, words: str) -> None:
    async with server() as client:
        await make_pod(client, **spec)
        answer = await bind(client, **binding)
        assert answer.code == code
        assert words in answer.message
        assert "nodeName" not in (await client.get(f"{PODS}/p")).body["spec"]


@virtual
async def test_a_binding_needs_a_pod_and_a_node() -> None:
    async with server() as client:
        assert (await bind(client, "nobody")).code == 404
        await make_pod(client)
        assert (await bind(client, node="")).message == "target.name: Required value"


@virtual
async def test_bindings_can_be_posted_to_their_own_resource() -> None:
    async with server() as client:
        await make_pod(client)
        binding = {"metadata": {"name": "p"}, "target": {"name": "n"}}
        assert (await client.post("/api/v1/namespaces/default/bindings", binding)).code == 201
        assert (await client.get(f"{PODS}/p")).body["spec"]["nodeName"] == "n"


@pytest.mark.parametrize(
    ("spec", "expected", "wanted"),
    [
        ({"minAvailable": 2}, 3, 2),
        ({"minAvailable": "50%"}, 3, 2),
        ({"maxUnavailable": 1}, 3, 2),
        ({"maxUnavailable": "34%"}, 3, 1),
        ({"maxUnavailable": 5}, 3, 0),
    ],
)
def test_what_a_budget_wants(spec: Json, expected: int, wanted: int) -> None:
    assert desired_healthy(spec.get("minAvailable"), spec.get("maxUnavailable"), expected) == wanted


async def ready_pods(client: Client, count: int) -> None:
    for index in range(count):
        await make_pod(client, f"p{index}", metadata={"labels": {"app": "x"}})
        await bind(client, f"p{index}")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await set_status(client, f"{PODS}/p{index}", status)


async def evict(client: Client, name: str, **more: Any) -> Any:
    return await client.post(
        f"{PODS}/{name}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more},
    )


@virtual
async def test_an_eviction_obeys_the_budget() -> None:
    async with server() as client:
        await ready_pods(client, 2)
        selector = {"matchLabels": {"app": "x"}}
        await made(client, BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}})
        first = await evict(client, "p0")
        assert (first.code, first.body) == (201, SUCCESS)
        leaving = (await client.get(f"{PODS}/p0")).body
        assert "deletionTimestamp" in leaving["metadata"]
        assert {one["type"]: one.get("reason") for one in leaving["status"]["conditions"]}["DisruptionTarget"] == (
            "EvictionByEvictionAPI"
        )
        second = await evict(client, "p1")
        assert (second.code, second.body["reason"]) == (429, "TooManyRequests")
        assert second.message == "Cannot evict pod as it would violate the pod's disruption budget."
        assert second.body["details"]["causes"] == [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
            }
        ]


@virtual
async def test_pods_that_serve_nobody_may_always_go() -> None:
    async with server() as client:
        await make_pod(client, metadata={"labels": {"app": "x"}})
        await made(client, BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 9, "selector": {}}})
        assert (await evict(client, "p")).code == 201
        assert (await client.get(f"{PODS}/p")).code == 404


@virtual
async def test_a_dry_eviction_changes_nothing() -> None:
    async with server() as client:
        await ready_pods(client, 1)
        assert (await evict(client, "p0", deleteOptions={"dryRun": ["All"]})).code == 201
        pod = (await client.get(f"{PODS}/p0")).body
        assert "deletionTimestamp" not in pod["metadata"]
        assert len(pod["status"]["conditions"]) == 1


class Kubelet:
    """Tells what it was asked for."""

    async def logs(self, namespace: str, name: str, container: str, options: Any) -> AsyncIterator[bytes]:
        asked = (options.follow, options.tail_lines, options.since_seconds, options.timestamps, options.limit_bytes)
        yield f"{namespace}/{name}/{container} {asked}\n".encode()


async def running(client: Client, **state: Any) -> None:
    await bind(client)
    status = {"name": "c", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": state}
    await set_status(client, f"{PODS}/p", {"phase": "Running", "containerStatuses": [status]})


@virtual
async def test_logs_come_from_the_kubelet_as_asked_for() -> None:
    async with server() as client:
        client.kernel.handler.kubelet = Kubelet()
        await make_pod(client)
        await running(client, running={})
        query = "follow=true&tailLines=5&sinceSeconds=60&timestamps=true&limitBytes=100"
        answer = await client.get(f"{PODS}/p/log?{query}")
        text = b"".join([chunk async for chunk in answer.body])
        assert text == b"default/p/c (True, 5, 60, True, 100)\n"


class RefusingKubelet:
    async def logs(self, namespace: str, name: str, container: str, options: Any) -> AsyncIterator[bytes]:
        raise StatusError(400, "BadRequest", f"{name} isn't here")
        yield b""


class SlowKubelet:
    async def logs(self, namespace: str, name: str, container: str, options: Any) -> AsyncIterator[bytes]:
        await asyncio.sleep(10)
        yield b"at last\n"


@virtual
async def test_a_kubelet_that_refuses_answers_and_one_that_is_slow_is_waited_for() -> None:
    async with server() as client:
        await make_pod(client)
        await running(client, running={})
        client.kernel.handler.kubelet = RefusingKubelet()
        refused = await client.get(f"{PODS}/p/log")
        assert (refused.code, refused.message) == (400, "p isn't here")
        client.kernel.handler.kubelet = SlowKubelet()
        answer = await client.get(f"{PODS}/p/log?follow=true")
        assert b"".join([chunk async for chunk in answer.body]) == b"at last\n"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        (
            "",
            400,
            "a container name must be specified for pod p, choose one of: [c d] or one of the init containers: [i]",
        ),
        ("?container=x", 400, "container x is not valid for pod p"),
        ("?container=c", 400, 'container "c" in pod "p" is waiting to start: PodInitializing'),
        ("?container=c&previous=true", 400, 'previous terminated container "c" in pod "p" not found'),
        (
            "?container=c&tailLines=-1",
            422,
            'PodLogOptions "" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            "?container=c&limitBytes=0",
            422,
            'PodLogOptions "" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
        ),
        ("?container=c&tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
@virtual
async def test_logs_that_there_are_not(query: str, code: int, message: str) -> None:
    async with server() as client:
        initial = [container(name="i")]
        await make_pod(client, containers=[container(), container(name="d")], initContainers=initial)
        await bind(client)
        answer = await client.get(f"{PODS}/p/log{query}")
        assert (answer.code, answer.message) == (code, message)


@virtual
async def test_an_unscheduled_pod_has_an_empty_log_and_a_server_without_kubelet_says_so() -> None:
    async with server() as client:
        await make_pod(client)
        assert (await client.get(f"{PODS}/p/log")).body == b""
        await running(client, running={})
        answer = await client.get(f"{PODS}/p/log")
        assert (answer.code, answer.body["reason"]) == (503, "ServiceUnavailable")


STREAM = "?container=c&stdout=1&command=true"


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("nobody/exec" + STREAM, 404, 'pods "nobody" not found'),
        ("p/exec?stdout=1&command=true", 400, "a container name must be specified for pod p, choose one of: [c d]"),
        ("p/attach?container=x&stdout=1", 400, "container x is not valid for pod p"),
        ("p/exec?container=c&command=true", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("p/exec?container=c&stdout=1", 400, "you must specify at least one command for the container"),
        ("p/exec" + STREAM, 503, "no kubelet runs pods for this server"),
        ("p/portforward", 503, "no kubelet runs pods for this server"),
    ],
)
@virtual
async def test_streams_that_cannot_be_are_refused_before_any_upgrade(path: str, code: int, message: str) -> None:
    async with server() as client:
        await make_pod(client, containers=[container(), container(name="d")])
        await bind(client)
        for answer in (await client.get(f"{PODS}/{path}"), await client.post(f"{PODS}/{path}", {})):
            assert (answer.code, answer.message) == (code, message)


@pytest.mark.parametrize("what", ["exec" + STREAM, "attach?container=c&stdout=1", "portforward"])
@virtual
async def test_a_pod_on_no_node_has_no_streams(what: str) -> None:
    async with server() as client:
        await make_pod(client)
        answer = await client.get(f"{PODS}/p/{what}")
        assert (answer.code, answer.message) == (400, "pod p does not have a host assigned")


@pytest.mark.parametrize(
    "path",
    [
        f"{PODS}/p/ephemeralcontainers",
        f"{PODS}/p/resize",
        "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods",
    ],
)
@virtual
async def test_what_local_mode_lacks_is_not_there(path: str) -> None:
    async with server() as client:
        await make_pod(client)
        for method in ("GET", "POST", "PATCH"):
            assert (await client.send(method, path, {})).code == 404


@pytest.mark.parametrize(("groups", "allowed"), [(("system:masters",), True), (("system:authenticated",), False)])
@virtual
async def test_one_account_may_do_everything(groups: tuple[str, ...], allowed: bool) -> None:
    async with server() as client:
        spec = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
        asked = {"spec": {**spec, "user": "who", "groups": list(groups)}}
        answer = await client.post(f"{REVIEWS}/subjectaccessreviews", asked)
        assert (answer.code, answer.body["status"]["allowed"]) == (201, allowed)


@virtual
async def test_who_am_i_and_what_may_i_do() -> None:
    async with server() as client:
        me = User(name="me", groups=("system:masters",))
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        assert (await client.post(path, {}, user=me)).body["status"]["userInfo"] == {
            "username": "me",
            "groups": ["system:masters"],
        }
        rules = await client.post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, user=me)
        assert rules.body["status"]["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        assert (await client.get(f"{REVIEWS}/selfsubjectrulesreviews")).code == 405


@virtual
async def test_whose_is_this_token() -> None:
    authenticator = Authenticator("the-token")
    async with server(token_user=authenticator.token_user) as client:

        async def review(token: str) -> Any:
            answer = await client.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
            assert answer.code == 201
            return answer.body["status"]

        groups = ["system:masters", "system:authenticated"]
        assert await review("the-token") == {
            "authenticated": True,
            "user": {"username": "vcbatch-admin", "groups": groups},
        }
        for wrong in ("other", "the-token ", "ü"):
            assert await review(wrong) == {"user": {}, "error": "invalid bearer token"}


@virtual
async def test_a_budget_shows_what_it_allows() -> None:
    async with server() as client:
        await ready_pods(client, 3)
        selector = {"matchLabels": {"app": "x"}}
        await made(client, BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 2, "selector": selector}})
        await asyncio.sleep(1)
        status = (await client.get(f"{BUDGETS}/b")).body["status"]
        assert status == {
            "currentHealthy": 3,
            "desiredHealthy": 2,
            "disruptionsAllowed": 1,
            "expectedPods": 3,
            "observedGeneration": 1,
        }
        await evict(client, "p0")
        await asyncio.sleep(1)
        assert (await client.get(f"{BUDGETS}/b")).body["status"]["disruptionsAllowed"] == 0
