"""What the server fills in, and what admission adds or refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.core.servers import server, virtual
from tests.unit.apiserver.kinds.support import PODS, bind, container, made, make_pod, pod
from vcbatch.api.podspec.defaults import spec_defaults

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value, **more}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/team/busybox", "Always"),
        ("registry:5000/team/busybox:1", "IfNotPresent"),
        ("busybox@sha256:" + "a" * 64, "IfNotPresent"),
        ("busybox:latest@sha256:" + "a" * 64, "Always"),
        ("busybox:Latest", "IfNotPresent"),
        ("Not_An_Image", "IfNotPresent"),
    ],
)
def test_images_without_a_fixed_tag_are_always_pulled(image: str, policy: str) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": image}]}
    spec_defaults(spec)
    assert spec["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("given", "filled_in"),
    [
        ({"livenessProbe": {"httpGet": {"port": 80}}}, {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}),
        ({"livenessProbe": {"grpc": {"port": 80}}}, {"grpc": {"port": 80, "service": ""}}),
        ({"livenessProbe": {"exec": {"command": ["x"]}, "timeoutSeconds": 7}}, {"timeoutSeconds": 7}),
    ],
)
@virtual
async def test_probes(given: dict[str, Any], filled_in: dict[str, Any]) -> None:
    async with server() as client:
        created = await make_pod(client, containers=[container(**given)])
    probe = created["spec"]["containers"][0]["livenessProbe"]
    defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert probe == {**next(iter(given.values())), **defaults, **filled_in}


@virtual
async def test_limits_are_requests_and_amounts_are_canonical() -> None:
    async with server() as client:
        resources = {"requests": {"memory": "1024Mi"}, "limits": {"cpu": 0.5, "memory": "2Gi"}}
        created = await make_pod(client, containers=[container(resources=resources)])
    assert created["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": "500m", "memory": "2Gi"},
    }
    assert created["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("resources", "service_class"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
        ([{"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}], "Burstable"),
    ],
)
@virtual
async def test_the_service_class_follows_from_cpu_and_memory(resources: list[Any], service_class: str) -> None:
    async with server() as client:
        several = [container(name=f"c{index}", resources=one) for index, one in enumerate(resources)]
        assert (await make_pod(client, containers=several))["status"]["qosClass"] == service_class


@virtual
async def test_volumes_get_a_kind_and_modes() -> None:
    async with server() as client:
        volumes = [
            {"name": "e"},
            {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "m", "secret": {"secretName": "s"}},
        ]
        created = await make_pod(client, volumes=volumes)
    assert created["spec"]["volumes"][:3] == [
        {"name": "e", "emptyDir": {}},
        {"name": "h", "hostPath": {"path": "/x", "type": ""}},
        {"name": "m", "secret": {"secretName": "s", "defaultMode": 0o644}},
    ]


@virtual
async def test_every_container_gets_the_account_token_unless_told_otherwise() -> None:
    async with server() as client:
        both = [container(), container(name="d", volumeMounts=[{"name": "own", "mountPath": TOKEN_PATH}])]
        created = await make_pod(client, containers=both, volumes=[{"name": "own"}])
        first, second = (item["volumeMounts"] for item in created["spec"]["containers"])
        assert [mount["mountPath"] for mount in first] == [TOKEN_PATH]
        assert [mount["name"] for mount in second] == ["own"]
        assert created["spec"]["volumes"][1]["name"] == first[0]["name"]
        without = await make_pod(client, "q", automountServiceAccountToken=False)
        assert "volumes" not in without["spec"]


TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@virtual
async def test_the_priority_comes_from_the_class() -> None:
    async with server() as client:
        await made(client, CLASSES, priority_class("high", 7, preemptionPolicy="Never"))
        named = (await make_pod(client, "a", priorityClassName="high"))["spec"]
        assert (named["priority"], named["preemptionPolicy"]) == (7, "Never")
        assert (await make_pod(client, "b"))["spec"]["priority"] == 0
        await made(client, CLASSES, priority_class("usual", 3, globalDefault=True))
        usual = (await make_pod(client, "c"))["spec"]
        assert (usual["priority"], usual["priorityClassName"]) == (3, "usual")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priority": 9},
            (
                "the integer value of priority (9) must not be provided in pod spec; priority admission controller "
                "computed 0 from the given PriorityClass name"
            ),
        ),
        (
            {"serviceAccountName": "nope"},
            'error looking up service account default/nope: serviceaccount "nope" not found',
        ),
    ],
)
@virtual
async def test_admission_refuses(spec: dict[str, Any], message: str) -> None:
    async with server() as client:
        answer = await client.post(PODS, pod(**spec))
    assert (answer.code, answer.message) == (403, f'pods "p" is forbidden: {message}')


@virtual
async def test_five_minutes_on_a_silent_node_unless_the_pod_says_otherwise() -> None:
    async with server() as client:
        plain = (await make_pod(client, "a"))["spec"]["tolerations"]
        assert {item["key"] for item in plain} == {f"node.kubernetes.io/{key}" for key in ("not-ready", "unreachable")}
        everything = [{"operator": "Exists"}]
        assert (await make_pod(client, "b", tolerations=everything))["spec"]["tolerations"] == everything


@pytest.mark.parametrize(
    ("hard", "resources", "message"),
    [
        ({"pods": "0"}, {}, "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"),
        (
            {"requests.nvidia.com/gpu": "1"},
            {"limits": {"nvidia.com/gpu": "2"}},
            (
                "exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, "
                "limited: requests.nvidia.com/gpu=1"
            ),
        ),
        ({"limits.memory": "1Gi"}, {}, "failed quota: q: must specify limits.memory for: c"),
    ],
)
@virtual
async def test_a_quota_stops_a_pod(hard: dict[str, str], resources: dict[str, Any], message: str) -> None:
    async with server() as client:
        await made(client, QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        answer = await client.post(PODS, pod(containers=[container(resources=resources)]))
    assert (answer.code, answer.message) == (403, f'pods "p" is forbidden: {message}')


@virtual
async def test_a_finished_pod_gives_its_quota_back() -> None:
    async with server() as client:
        await made(client, QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
        await make_pod(client, "a")
        assert (await client.post(PODS, pod("b"))).code == 403
        await bind(client, "a")
        await client.merge(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
        assert (await client.post(PODS, pod("b"))).code == 201


LIMITS = "/api/v1/namespaces/default/limitranges"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"


@virtual
async def test_a_limit_range_gives_amounts_and_says_so() -> None:
    async with server() as client:
        item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1", "memory": "1Gi"}}
        await made(client, LIMITS, {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
        created = await make_pod(client, containers=[container(resources={"requests": {"memory": "2Gi"}})])
    assert created["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "1", "memory": "2Gi"},
    }
    assert created["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    }


@pytest.mark.parametrize(
    ("bounds", "resources", "message"),
    [
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "100m"}},
            "minimum cpu usage per Container is 1, but request is 100m",
        ),
        ({"max": {"memory": "1Gi"}}, {}, ""),
        (
            {"max": {"memory": "1Gi"}},
            {"limits": {"memory": "2Gi"}},
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
    ],
)
@virtual
async def test_a_limit_range_bounds_containers(bounds: dict[str, Any], resources: dict[str, Any], message: str) -> None:
    async with server() as client:
        spec = {"limits": [{"type": "Container", **bounds}]}
        await made(client, LIMITS, {"metadata": {"name": "l"}, "spec": spec})
        answer = await client.post(PODS, pod(containers=[container(resources=resources)]))
    if message:
        assert (answer.code, answer.message) == (403, f'pods "p" is forbidden: {message}')
    else:
        # What has a maximum and no default gets the maximum as its limit.
        assert answer.body["spec"]["containers"][0]["resources"]["limits"] == bounds["max"]


@virtual
async def test_a_runtime_class_brings_its_overhead() -> None:
    async with server() as client:
        refused = await client.post(PODS, pod(runtimeClassName="r"))
        assert refused.message == 'pods "p" is forbidden: pod rejected: RuntimeClass "r" not found'
        overhead = {"podFixed": {"memory": "64Mi"}}
        await made(client, RUNTIMES, {"metadata": {"name": "r"}, "handler": "r", "overhead": overhead})
        assert (await make_pod(client, runtimeClassName="r"))["spec"]["overhead"] == {"memory": "64Mi"}
