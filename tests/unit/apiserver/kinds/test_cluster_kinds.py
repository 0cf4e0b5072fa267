"""Nodes, namespaces, leases, priority classes, budgets, quotas, claims, roles, workloads, events, autoscalers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.apiserver.core.servers import server, virtual
from tests.unit.apiserver.kinds.support import Json, causes, container, made, make_pod, rows, set_status

NODES = "/api/v1/nodes"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
SCALERS_V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
SCALERS_V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def named(name: str = "x", **more: Any) -> Json:
    return {"metadata": {"name": name}, **more}


def template(**spec: Any) -> Json:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()], **spec}}


def deployment(**spec: Any) -> Json:
    return named(spec={"selector": {"matchLabels": {"a": "b"}}, "template": template(), **spec})


FAULTY: dict[str, tuple[str, Json, list[str]]] = {
    "effect of a taint": (
        NODES,
        named(spec={"taints": [{"key": "k", "effect": "Never"}]}),
        [
            (
                'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"'
            )
        ],
    ),
    "reserved priority class": (
        CLASSES,
        named("system-mine", value=1),
        [
            (
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use "
                "only. error: system-mine is not a known system priority class"
            )
        ],
    ),
    "priority of a user": (
        CLASSES,
        named(value=1_000_000_001),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    "quota of something unknown": (
        QUOTAS,
        named(spec={"hard": {"gpus": "1", "pods": "-1"}}),
        [
            'spec.hard[gpus]: Invalid value: "gpus": must be a standard resource type or fully qualified',
            'spec.hard[gpus]: Invalid value: "gpus": must be a standard resource for quota',
            'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0',
        ],
    ),
    "claim": (
        CLAIMS,
        named(spec={"accessModes": ["Any"]}),
        [
            (
                'spec.accessModes: Unsupported value: "Any": supported values: "ReadOnlyMany", "ReadWriteMany", '
                '"ReadWriteOnce", "ReadWriteOncePod"'
            ),
            "spec.resources[storage]: Required value",
        ],
    ),
    "budget of both kinds": (
        BUDGETS,
        named(spec={"minAvailable": 1, "maxUnavailable": "110%"}),
        [
            (
                'spec: Invalid value: {"maxUnavailable":"110%","minAvailable":1}: minAvailable and maxUnavailable '
                "cannot be both set"
            ),
            'spec.maxUnavailable: Invalid value: "110%": must not be greater than 100%',
        ],
    ),
    "role without verbs": (
        ROLES,
        named(rules=[{"apiGroups": [""], "resources": ["pods"]}]),
        ["rules[0].verbs: Required value: verbs must contain at least one value"],
    ),
    "binding of nothing": (
        BINDINGS,
        named(roleRef={"kind": "Thing", "name": "r"}, subjects=[{"kind": "ServiceAccount", "name": "s"}]),
        [
            'roleRef.kind: Unsupported value: "Thing": supported values: "Role", "ClusterRole"',
        ],
    ),
    "deployment of finite pods": (
        DEPLOYMENTS,
        deployment(template=template(restartPolicy="Never")),
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ),
    "template that isn't selected": (
        DEPLOYMENTS,
        deployment(selector={"matchLabels": {"z": "z"}}),
        ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
    ),
    "rollout that can't move": (
        DEPLOYMENTS,
        deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
        ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
    ),
    "job of endless pods": (
        JOBS,
        named(spec={"template": {"spec": {"containers": [container()]}}}),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    "schedule": (
        CRON_JOBS,
        named(spec={"schedule": "@sometimes", "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}}}),
        ['spec.schedule: Invalid value: "@sometimes": unrecognized descriptor: @sometimes'],
    ),
    "peer of a policy": (
        POLICIES,
        named(spec={"ingress": [{"from": [{}]}]}),
        ["spec.ingress[0].from[0]: Required value: must specify a peer"],
    ),
    "autoscaler": (
        SCALERS_V2,
        named(spec={"minReplicas": 3, "maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d"}}),
        ["spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`"],
    ),
    "slice": (
        SLICES,
        named(addressType="IPv4", endpoints=[{"addresses": ["x"]}, {}], ports=[{"port": 1}]),
        [
            (
                'endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or '
                "2001:db8::ffff)"
            ),
            "endpoints[1].addresses: Required value: must contain at least 1 address",
        ],
    ),
    "lease": (
        LEASES,
        named(spec={"leaseTransitions": -1}),
        ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "event about another namespace": (
        EVENTS,
        named(involvedObject={"kind": "Pod", "namespace": "other"}),
        ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ),
}


@pytest.mark.parametrize("case", FAULTY)
@virtual
async def test_faults(case: str) -> None:
    path, obj, expected = FAULTY[case]
    async with server() as client:
        assert causes(await client.post(path, obj)) == expected


@virtual
async def test_a_node_registers_with_its_status_and_is_shown_with_its_state() -> None:
    async with server() as client:
        ready = {"type": "Ready", "status": "True"}
        status = {"capacity": {"cpu": "4"}, "conditions": [ready], "nodeInfo": {"kubeletVersion": "v1"}}
        node = named("n", status=status)
        node["metadata"]["labels"] = {"node-role.kubernetes.io/gpu": "", "node-role.kubernetes.io/a": ""}
        created = await made(client, NODES, node)
        assert created["status"]["allocatable"] == {"cpu": "4"}
        await client.merge(f"{NODES}/n", {"spec": {"unschedulable": True}})
        shown = (await rows(client, NODES))[0]
        assert (shown["Status"], shown["Roles"], shown["Version"]) == ("Ready,SchedulingDisabled", "a,gpu", "v1")
        assert (await client.get(f"{NODES}?fieldSelector=spec.unschedulable=true")).items == ["n"]
        await set_status(client, f"{NODES}/n", {"conditions": [{**ready, "status": "Unknown"}]})
        assert (await rows(client, NODES))[0]["Status"] == "NotReady,SchedulingDisabled"


@virtual
async def test_namespaces_carry_their_name_as_a_label() -> None:
    async with server() as client:
        created = await made(client, "/api/v1/namespaces", named("n"))
        assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
        assert (created["spec"], created["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
        kept = await client.merge("/api/v1/namespaces/n", {"spec": {"finalizers": []}})
        assert kept.body["spec"] == {"finalizers": ["kubernetes"]}


@virtual
async def test_a_priority_class_keeps_its_value_and_only_one_is_the_default() -> None:
    async with server() as client:
        await made(client, CLASSES, named("a", value=1, globalDefault=True))
        changed = await client.merge(f"{CLASSES}/a", {"value": 2})
        assert causes(changed) == ["value: Forbidden: may not be changed in an update."]
        second = await client.post(CLASSES, named("b", value=2, globalDefault=True))
        assert second.code == 403
        assert second.message.endswith("PriorityClass a is already marked as default. Only one default can exist")
        assert {row["Name"] for row in await rows(client, CLASSES)} >= {"system-node-critical", "a"}


@virtual
async def test_a_quota_shows_what_is_used() -> None:
    async with server() as client:
        hard = {"pods": "4", "limits.cpu": "2", "configmaps": "9", "count/secrets": "1"}
        await made(client, QUOTAS, named("q", spec={"hard": hard}))
        await make_pod(client, containers=[container(resources={"limits": {"cpu": "500m"}})])
        await asyncio.sleep(1)
        status = (await client.get(f"{QUOTAS}/q")).body["status"]
        assert status == {
            "hard": hard,
            "used": {"pods": "1", "limits.cpu": "500m", "configmaps": "1", "count/secrets": "0"},
        }
        shown = (await rows(client, QUOTAS))[0]
        assert shown["Request"] == "configmaps: 1/9, count/secrets: 0/1, pods: 1/4"
        assert shown["Limit"] == "limits.cpu: 500m/2"
        await client.delete("/api/v1/namespaces/default/pods/p")
        await asyncio.sleep(1)
        assert (await client.get(f"{QUOTAS}/q")).body["status"]["used"]["pods"] == "0"


@virtual
async def test_an_event_of_one_group_is_one_of_the_other() -> None:
    async with server() as client:
        about = {"kind": "Pod", "name": "p", "namespace": "default"}
        core = named(
            "e",
            involvedObject=about,
            message="hello",
            reason="Because",
            type="Normal",
            source={"component": "me", "host": "here"},
            lastTimestamp="2026-01-01T00:00:00Z",
            count=3,
        )
        await made(client, EVENTS, core)
        seen = (await client.get(f"{NEW_EVENTS}/e")).body
        assert (seen["regarding"], seen["note"], seen["deprecatedCount"]) == (about, "hello", 3)
        assert seen["apiVersion"] == "events.k8s.io/v1"
        new = named(
            "f",
            eventTime="2026-01-01T00:00:00.000000Z",
            reportingController="me",
            reportingInstance="me-1",
            action="Act",
            reason="Because",
            type="Normal",
            regarding=about,
            note="hi",
        )
        await made(client, NEW_EVENTS, new)
        back = (await client.get(f"{EVENTS}/f")).body
        assert (back["involvedObject"], back["message"], back["reportingComponent"]) == (about, "hi", "me")
        found = await client.get(f"{EVENTS}?fieldSelector=involvedObject.name=p,reason=Because")
        assert found.items == ["e", "f"]
        by_name = {row["Name"]: row for row in await rows(client, NEW_EVENTS)}
        assert (by_name["e"]["Object"], by_name["e"]["Source"], by_name["e"]["Count"]) == ("pod/p", "me, here", 3)
        assert (by_name["f"]["Message"], by_name["f"]["Source"]) == ("hi", "me, me-1")


@virtual
async def test_a_deployment_defaults_scales_and_keeps_its_selector() -> None:
    async with server() as client:
        created = await made(client, DEPLOYMENTS, deployment())
        assert created["spec"]["replicas"] == 1
        assert created["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
        scaled = await client.merge(f"{DEPLOYMENTS}/x/scale", {"spec": {"replicas": 3}})
        assert (scaled.body["spec"], scaled.body["status"]) == ({"replicas": 3}, {"replicas": 0, "selector": "a=b"})
        assert (await rows(client, DEPLOYMENTS))[0]["Ready"] == "0/3"
        moved = deployment(selector={"matchLabels": {"a": "b", "c": "d"}})
        moved["spec"]["template"]["metadata"]["labels"] = {"a": "b", "c": "d"}
        assert causes(await client.put(f"{DEPLOYMENTS}/x", moved)) == [
            'spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable'
        ]
        before = (await client.get(f"{DEPLOYMENTS}/x")).body["metadata"]["generation"]
        annotated = await client.merge(f"{DEPLOYMENTS}/x", {"metadata": {"annotations": {"a": "b"}}})
        assert annotated.body["metadata"]["generation"] == before + 1
        noted = await client.merge(f"{DEPLOYMENTS}/x/status", {"metadata": {"annotations": {"a": "c"}}})
        assert noted.body["metadata"]["annotations"] == {"a": "c"}, "written with the status"
        assert noted.body["metadata"]["generation"] == before + 1, "what is written with a status is no new wish"


@virtual
async def test_a_job_is_selected_by_its_uid() -> None:
    async with server() as client:
        created = await made(
            client, JOBS, named(spec={"template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}})
        )
        uid = created["metadata"]["uid"]
        assert created["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        assert created["spec"]["template"]["metadata"]["labels"]["job-name"] == "x"
        await set_status(
            client,
            f"{JOBS}/x",
            {
                "startTime": "2026-01-01T00:00:00Z",
                "completionTime": "2026-01-01T00:01:40Z",
                "succeeded": 1,
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        )
        shown = (await rows(client, JOBS))[0]
        assert (shown["Status"], shown["Completions"], shown["Duration"]) == ("Complete", "1/1", "100s")


@virtual
async def test_both_versions_of_an_autoscaler_are_one_object() -> None:
    async with server() as client:
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        await made(client, SCALERS_V1, named(spec={"maxReplicas": 3, "scaleTargetRef": target}))
        v2 = (await client.get(f"{SCALERS_V2}/x")).body["spec"]
        utilization = {"type": "Utilization", "averageUtilization": 80}
        assert v2["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": utilization}}]
        v1 = (await client.get(f"{SCALERS_V1}/x")).body["spec"]
        assert (v1["targetCPUUtilizationPercentage"], v1["minReplicas"]) == (80, 1)
        assert (await rows(client, SCALERS_V2))[0]["Targets"] == "cpu: <unknown>/80%"


@virtual
async def test_kinds_without_a_spec_count_their_generations_too() -> None:
    async with server() as client:
        created = await made(client, SLICES, named(addressType="IPv4", endpoints=[{"addresses": ["10.0.0.1"]}]))
        assert created["metadata"]["generation"] == 1
        labelled = await client.merge(f"{SLICES}/x", {"metadata": {"labels": {"a": "b"}}})
        assert labelled.body["metadata"]["generation"] == 1
        moved = await client.merge(f"{SLICES}/x", {"endpoints": [{"addresses": ["10.0.0.2"]}]})
        assert moved.body["metadata"]["generation"] == 2
