"""What no request may do: make objects grow without bound, hold up others, or be answered with a failure of ours."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.virtual_time import SeededRandom, VirtualClock
from tests.unit.apiserver.core.servers import CONFIGMAPS, Answer, Client, configmap, server, virtual
from vcbatch.local.apiserver.assembly import build
from vcbatch.local.apiserver.offload import Threads
from vcbatch.local.apiserver.patch import json_patch
from vcbatch.local.apiserver.response import warning_headers
from vcbatch.local.apiserver.store import LARGEST_OBJECT

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD: dict[str, Any] = {
    "metadata": {"name": "w"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}


async def patched(client: Client, path: str, patch: Any, kind: str = "json-patch") -> Answer:
    return await client.send("PATCH", path, patch, headers={"content-type": f"application/{kind}+json"})


# -- size -----------------------------------------------------------------------------------------------------------


@virtual
async def test_copies_of_a_json_patch_do_not_multiply_an_object() -> None:
    async with server() as client:
        await client.post(CONFIGMAPS, configmap("a", data={"k": "x" * 1000}))
        doubling = [{"op": "copy", "from": "/data", "path": f"/data/x{number}"} for number in range(90)]

        answer = await patched(client, f"{CONFIGMAPS}/a", doubling)

        assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
        assert "the copy operations of the patch add more than 3145728 bytes" in answer.message
        assert (await client.get(f"{CONFIGMAPS}/a")).body["data"] == {"k": "x" * 1000}


@virtual
@pytest.mark.parametrize(
    "step",
    [
        {"op": "add", "path": "/x/0", "value": 0},
        {"op": "remove", "path": "/x/0"},
        {"op": "copy", "from": "/x/0", "path": "/x/0"},
        {"op": "move", "from": "/x/0", "path": "/x/-"},
        {"op": "move", "from": "/x/-1", "path": "/x/0"},
    ],
)
async def test_the_operations_of_a_json_patch_move_a_bounded_number_of_list_elements(step: dict[str, Any]) -> None:
    async with server() as client:
        await client.make("a")
        long = {"op": "add", "path": "/x", "value": [0] * 200_000}
        answer = await patched(client, f"{CONFIGMAPS}/a", [long, *[step] * 9_999])
        assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
        assert f"move more than {json_patch.MAXIMUM_MOVED} elements of lists" in answer.message


def test_as_many_insertions_as_a_patch_may_have_fill_a_list_from_its_head() -> None:
    inserts = [{"op": "add", "path": "/x/0", "value": number} for number in range(json_patch.MAXIMUM_OPERATIONS)]
    filled = json_patch.apply({"x": []}, inserts)
    assert filled["x"] == list(reversed(range(json_patch.MAXIMUM_OPERATIONS)))


@virtual
async def test_no_more_than_ten_thousand_operations_are_taken() -> None:
    async with server() as client:
        await client.make("a")
        answer = await patched(client, f"{CONFIGMAPS}/a", [{"op": "test", "path": "/data/k", "value": "v"}] * 10_001)
        assert answer.code == 413
        assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in answer.message


@virtual
async def test_what_a_json_patch_makes_does_not_nest_deeper_than_a_body() -> None:
    async with server() as client:
        await client.make("a")
        deeper = [{"op": "copy", "from": "/data", "path": "/data/x"}] * 1000
        moved = [step for _ in range(1200) for step in (
            {"op": "add", "path": "/y", "value": {}},
            {"op": "move", "from": "/data", "path": "/y/d"},
            {"op": "move", "from": "/y", "path": "/data"},
        )]  # fmt: skip
        for patch in (deeper[:300], deeper, moved):
            assert 400 <= (await patched(client, f"{CONFIGMAPS}/a", patch)).code < 500


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/data/k/x", "value": 1},
        {"op": "replace", "path": "/metadata/finalizers/²", "value": 1},
        {"op": "add", "path": "/metadata/finalizers/" + "9" * 5000, "value": "a.b/c"},
        {"op": "remove", "path": "/metadata/finalizers/-99"},
        {"op": "copy", "from": "", "path": "/data/x"},
        {"op": "move", "from": "/data", "path": "/data/x"},
        {"op": "test", "path": "/data/k/0", "value": None},
    ],
)
def test_a_path_that_leads_nowhere_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(json_patch.JsonPatchError):
        json_patch.apply(
            {"data": {"k": "v"}, "metadata": {"finalizers": ["a.b/c"]}}, [operation, {"op": "x", "path": ""}]
        )


TEMPLATES = "/api/v1/namespaces/default/podtemplates"


def pod_template(name: str, size: int, **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "env": [{"name": "E", "value": "x" * size}]}
    return {"metadata": {"name": name, **metadata}, "template": {"spec": {"containers": [container]}}}


@virtual
async def test_an_object_is_no_larger_than_what_etcd_takes() -> None:
    async with server() as client:
        answer = await client.post(TEMPLATES, pod_template("big", LARGEST_OBJECT))
        assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
        assert "etcdserver: request is too large" in answer.message
        assert (await client.get(f"{TEMPLATES}/big")).code == 404

        fits = pod_template("fits", LARGEST_OBJECT - 1000, finalizers=["a.b/c"])
        assert (await client.post(TEMPLATES, fits)).code == 201
        for dry in ("", "?dryRun=All"):
            grown = await client.merge(f"{TEMPLATES}/fits{dry}", {"metadata": {"annotations": {"more": "x" * 10_000}}})
            assert grown.code == 413
        assert (await client.delete(f"{TEMPLATES}/fits")).code == 200, "it can still be marked as deleted"
        ended = await client.merge(f"{TEMPLATES}/fits", {"metadata": {"finalizers": None}})
        assert ended.code == 200
        assert (await client.get(f"{TEMPLATES}/fits")).code == 404


def test_warnings_are_fewer_than_the_headers_that_clients_read() -> None:
    headers = warning_headers([f"w{number}" for number in range(1000)])
    assert len(headers) == 64
    assert headers[-1][1] == '299 - "937 more warnings were left out"'
    assert len(warning_headers([f"w{number}" for number in range(64)])) == 64
    long = warning_headers(["x" * 300 + str(number) for number in range(100)])
    assert sum(len(value) for _, value in long) < 5000


# -- time -----------------------------------------------------------------------------------------------------------


async def test_others_are_served_while_a_large_body_is_read() -> None:
    threads = Threads()
    kernel = build(clock=VirtualClock(), random=SeededRandom(7), offload=threads)
    await kernel.start()
    try:
        client = Client(kernel)
        body = "kind: ConfigMap\nmetadata: {name: a}\ndata:\n" + "".join(f"  k{i:05}: v\n" for i in range(20_000))
        headers = {"content-type": "application/yaml"}
        large = asyncio.create_task(client.send("POST", CONFIGMAPS, body.encode(), headers=headers))
        await asyncio.sleep(0)
        answer = await client.get("/api/v1/namespaces/default")
        assert answer.code == 200
        assert not large.done()
        assert (await large).code == 201
    finally:
        await kernel.stop()
        threads.stop()


async def test_work_in_a_thread_looks_things_up_on_the_event_loop() -> None:
    threads = Threads()
    kernel = build(clock=VirtualClock(), random=SeededRandom(7), offload=threads)
    await kernel.start()
    try:
        client = Client(kernel)
        variables = [{"name": f"E{i}", "value": "v" * 20} for i in range(4000)]
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "env": variables}]}}
        assert (await client.post(PODS, pod)).code == 201
        larger = await client.merge(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
        assert larger.code == 200, larger.body
    finally:
        await kernel.stop()
        threads.stop()


@virtual
async def test_strategic_merges_of_long_lists_take_linear_time() -> None:
    async with server() as client:
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": f"u{i}"} for i in range(8000)]
        await client.post(
            CONFIGMAPS, configmap("a", ownerReferences=owners, finalizers=[f"a.b/{i}" for i in range(8000)])
        )
        patch = {
            "metadata": {
                "ownerReferences": [{**owner, "name": "y"} for owner in reversed(owners)],
                "$setElementOrder/finalizers": [f"a.b/{i}" for i in reversed(range(8000))],
                "$deleteFromPrimitiveList/finalizers": [f"a.b/{i}" for i in range(0, 8000, 2)],
            }
        }
        answer = await patched(client, f"{CONFIGMAPS}/a", patch, "strategic-merge-patch")
        assert answer.code == 200
        assert {owner["name"] for owner in answer.body["metadata"]["ownerReferences"]} == {"y"}
        assert answer.body["metadata"]["finalizers"] == [f"a.b/{i}" for i in range(7999, 0, -2)]


# -- types ----------------------------------------------------------------------------------------------------------

ODD = (1, 1.5, True, "x", ["a"], [{}], [["a"]], {"a": "b"}, [1])


@pytest.mark.parametrize("value", ODD, ids=str)
@pytest.mark.parametrize(
    "directive",
    [
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder/x",
    ],
)
def test_directives_of_strategic_merge_patches_have_their_types(directive: str, value: Any) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            await client.post(DEPLOYMENTS, WORKLOAD)
            for patch in (
                {directive: value},
                {"metadata": {directive: value}},
                {"spec": {directive: value, "replicas": 2}},
                {"spec": {"strategy": {directive: value, "type": "Recreate"}}},
                {"spec": {"template": {"spec": {"containers": [{"name": "c", directive: value}]}}}},
            ):
                answer = await patched(client, f"{DEPLOYMENTS}/w", patch, "strategic-merge-patch")
                assert answer.code in (200, 400, 422), answer.body
                wrong = not isinstance(value, list) if "/" in directive else directive == "$patch"
                if wrong:
                    assert answer.code == 400, answer.body
                    assert directive in answer.message or "primitive list" in answer.message

    play()


HUGE = ("9" * 30, "9" * 5000, "-1", "²", "٣", "1_0", "1.5", "1e9", "x", str(2**63), str(-(2**63) - 1))


@pytest.mark.parametrize("value", HUGE, ids=lambda value: value[:20])
@pytest.mark.parametrize("name", ["gracePeriodSeconds", "timeoutSeconds", "limit", "continue", "resourceVersionMatch"])
def test_numbers_in_queries_are_numbers_of_64_bits(name: str, value: str) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            await client.make("a")
            await client.post(PODS, {"metadata": {"name": "p"}, "spec": {**TEMPLATE["spec"], "nodeName": "n"}})
            for method, path in (("GET", CONFIGMAPS), ("DELETE", f"{PODS}/p"), ("DELETE", f"{CONFIGMAPS}/a")):
                answer = await client.send(method, f"{path}?{name}={value}")
                assert answer.code < 500, answer.body

    play()


@pytest.mark.parametrize("seconds", [2**31, 2**40, 2**63 - 1, 2**63, 10**300, -(10**300)])
def test_a_grace_period_beyond_what_a_time_can_say_is_refused_with_its_field(seconds: int) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            await client.post(PODS, {"metadata": {"name": "p"}, "spec": {**TEMPLATE["spec"], "nodeName": "n"}})
            answer = await client.delete(f"{PODS}/p", {"gracePeriodSeconds": seconds})
            assert answer.code in (400, 422)
            assert "gracePeriodSeconds" in answer.message
            assert (await client.get(f"{PODS}/p")).code == 200

    play()


@virtual
async def test_a_pod_with_the_longest_grace_period_can_be_deleted() -> None:
    async with server() as client:
        spec = {**TEMPLATE["spec"], "nodeName": "n", "terminationGracePeriodSeconds": 2**63 - 1}
        assert (await client.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).code == 201
        answer = await client.delete(f"{PODS}/p")
        assert answer.body["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"
        sooner = await client.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})
        assert sooner.body["metadata"]["deletionGracePeriodSeconds"] == 5


@pytest.mark.parametrize("value", [*ODD, None, 2**40, -1, {"replicas": "x"}, {"name": 1}], ids=str)
@pytest.mark.parametrize("key", ["metadata", "spec", "status", "kind", "apiVersion"])
def test_scales_have_their_types(key: str, value: Any) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            await client.post(DEPLOYMENTS, WORKLOAD)
            scale = {"metadata": {"name": "w"}, "spec": {"replicas": 2}, key: value}
            answers = [
                await client.put(f"{DEPLOYMENTS}/w/scale", scale),
                await client.merge(f"{DEPLOYMENTS}/w/scale", {key: value}),
                await patched(client, f"{DEPLOYMENTS}/w/scale", {key: value}, "strategic-merge-patch"),
            ]
            for answer in answers:
                assert answer.code < 500, answer.body
            if key in ("metadata", "spec") and not isinstance(value, dict) and value is not None:
                assert answers[0].code == 400
                assert f"Scale.{key}" in answers[0].message

    play()


@pytest.mark.parametrize("value", [*ODD, 2**70], ids=str)
@pytest.mark.parametrize("key", ["metadata", "apiVersion", "kind", "spec"])
def test_merge_patches_with_wrong_types_are_refused_with_the_field(key: str, value: Any) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            await client.post(DEPLOYMENTS, WORKLOAD)
            for kind in ("merge-patch", "strategic-merge-patch"):
                answer = await patched(client, f"{DEPLOYMENTS}/w", {key: value}, kind)
                assert answer.code < 500, answer.body

    play()


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("binding", {"target": "n"}, "Binding.target"),
        ("binding", {"metadata": "x", "target": {"name": "n"}}, "metadata"),
        ("eviction", {"metadata": []}, "metadata"),
        ("eviction", {"deleteOptions": {"gracePeriodSeconds": "1"}}, "gracePeriodSeconds"),
        ("eviction", {"deleteOptions": 5}, "deleteOptions"),
    ],
)
def test_what_is_posted_to_a_subresource_has_its_types(path: str, body: Any, words: str) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            await client.post(PODS, {"metadata": {"name": "p"}, "spec": TEMPLATE["spec"]})
            answer = await client.post(f"{PODS}/p/{path}", body)
            assert answer.code == 400
            assert words in answer.message

    play()


@pytest.mark.parametrize(
    "value", ["abc", "-1%", "101%", -1, 0, "0%", "9" * 5000 + "%"], ids=lambda value: str(value)[:9]
)
def test_a_stateful_set_names_a_maximum_that_is_none(value: Any) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": value}}
            spec = {**WORKLOAD["spec"], "serviceName": "s", "updateStrategy": rolling}
            answer = await client.post("/apis/apps/v1/namespaces/default/statefulsets", {**WORKLOAD, "spec": spec})
            assert answer.code == 422
            assert "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value" in answer.message

    play()


@virtual
async def test_bodies_and_headers_with_odd_numbers_are_refused() -> None:
    async with server() as client:
        deep = b'{"kind":"ConfigMap","data":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"
        assert (await client.post(CONFIGMAPS, deep)).code == 400
        number = json.dumps(configmap("a", generation=10**400)).encode()
        assert (await client.post(CONFIGMAPS, number)).code < 500
        annotated = {
            "metadata": {"name": "p", "annotations": {"controller.kubernetes.io/pod-deletion-cost": "9" * 5000}}
        }
        assert (await client.post(PODS, {**annotated, "spec": TEMPLATE["spec"]})).code == 422
