"""The admission of `vcbatch up`: the shipped configurations, and the service in the process that they name."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.virtual_time import VirtualClock
from tests.unit.apiserver.core.servers import Answer, configure, server, virtual, webhook
from vcbatch.api.names import GROUP_MIN_MEMBER
from vcbatch.api.resources import JOBS, PODS, QUEUES
from vcbatch.cli.local.admission import admission_services, ensure_webhooks, idle_notices, remove_webhooks
from vcbatch.cli.local.definitions import ensure_definitions
from vcbatch.interfaces.api import ApiError
from vcbatch.local.apiserver.admission import Answer as Verdict
from vcbatch.local.apiserver.admission import Asked
from vcbatch.local.apiserver.inprocess import InProcessApi
from vcbatch.local.apiserver.kinds.admission import MUTATING, VALIDATING
from webhooks.policies.expressions import CONTROLLERS_ACCOUNT, OF_A_JOB, user_of

Json = dict[str, Any]
OTHER: Json = {"schedulerName": "other", "restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "default"},
    "spec": {
        "minAvailable": 5,
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}],
    },
}


def reported(answer: Answer) -> list[str]:
    """The warnings that came with an answer."""
    return [value.removeprefix('299 - "').removesuffix('"') for name, value in answer.headers if name == "Warning"]


@virtual
async def test_configurations_are_made_once_mended_and_taken_away() -> None:
    async with server(services=admission_services(VirtualClock())) as client:
        api = client.kernel.api
        await ensure_webhooks(api)
        made = {item["metadata"]["name"]: item for item in (await api.list(VALIDATING)).items}
        version = client.kernel.store.version

        await ensure_webhooks(api)
        assert client.kernel.store.version == version

        name = next(iter(made))
        await api.patch(VALIDATING, name, {"webhooks": []})
        await ensure_webhooks(api)
        assert (await api.get(VALIDATING, name))["webhooks"] == made[name]["webhooks"]

        await configure(client, "validating", webhook(), name="mine")
        await remove_webhooks(api)
        assert [item["metadata"]["name"] for item in (await api.list(VALIDATING)).items] == ["mine"]
        assert (await api.list(MUTATING)).items == []


@virtual
async def test_jobs_are_filled_in_and_judged_as_on_a_cluster() -> None:
    async with server(services=admission_services(VirtualClock())) as client:
        api = client.kernel.api
        await ensure_definitions(api)
        await ensure_webhooks(api)
        kind = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}
        queue = {**kind, "metadata": {"name": "default"}, "spec": {"weight": 1}}
        await api.create(QUEUES, queue)
        await api.patch(QUEUES, "default", {"status": {"state": "Open"}}, subresource="status")

        try:
            await api.create(JOBS, JOB)
            raise AssertionError("it was let through")
        except ApiError as error:
            assert error.code == 400
            assert error.message == (
                'admission webhook "jobs.validate.volcano.sh" denied the request: '
                "job 'minAvailable' should not be greater than total replicas in tasks: 5 > 1"
            )

        made = await api.create(JOBS, {**JOB, "spec": {**JOB["spec"], "minAvailable": 1}})
        assert (made["spec"]["queue"], made["spec"]["schedulerName"]) == ("default", "volcano")


ONE: Json = {
    "name": "a",
    "replicas": 1,
    "template": {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "head", "image": "i", "resources": {"requests": {"cpu": 1}}}],
        }
    },
}
ALWAYS: Json = {**ONE, "template": {"spec": {"containers": ONE["template"]["spec"]["containers"]}}}
HEAD: Json = copy.deepcopy({**ONE, "name": "head"})
HEAD["template"]["spec"]["containers"][0]["command"] = ["serve"]


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        ({"tasks": [ONE]}, []),
        ({"tasks": [ONE, {**ONE, "name": "b", "replicas": 9}], "minAvailable": 1}, []),
        ({"tasks": [ALWAYS]}, ["spec.tasks[0].template.spec.restartPolicy: not set: Kubernetes' default, Always, "]),
        ({"tasks": [ONE], "maxRetry": 0}, ["spec.maxRetry: 0 means the default, 3; 1 means no restart"]),
        ({"tasks": [ONE], "plugins": {"ssh": ["--no-root"]}}, ["spec.plugins[ssh]: flag no-root isn't known, "]),
        (
            {"tasks": [HEAD], "plugins": {"ray": [], "svc": ["--enable-networking"]}},
            [
                "spec.plugins[svc]: flag enable-networking isn't known, ",
                "spec.tasks[0].template.spec.containers[0].command: the plugin ray replaces it by 'ray start'; ",
            ],
        ),
    ],
)
@virtual
async def test_what_runs_otherwise_than_its_author_may_expect_is_warned_of(spec: Json, warnings: list[str]) -> None:
    async with server(services=admission_services(VirtualClock())) as client:
        api = client.kernel.api
        await ensure_definitions(api)
        await ensure_webhooks(api)
        queue = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": "default"}}
        await api.create(QUEUES, queue)
        await api.patch(QUEUES, "default", {"status": {"state": "Open"}}, subresource="status")
        path = f"/apis/{JOBS.api_version}/namespaces/default/jobs"
        answer = await client.post(path, {**JOB, "spec": spec})
        assert answer.code == 201, answer.body
        said = reported(answer)
        assert len(said) == len(warnings), said
        assert all(text.startswith(start) for text, start in zip(said, warnings, strict=True)), said


@virtual
async def test_an_answer_has_few_and_short_warnings() -> None:
    async with server(services=admission_services(VirtualClock())) as client:
        api = client.kernel.api
        await ensure_definitions(api)
        await ensure_webhooks(api)
        queue = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": "default"}}
        await api.create(QUEUES, queue)
        await api.patch(QUEUES, "default", {"status": {"state": "Open"}}, subresource="status")
        policies = [{"exitCode": code, "action": "x" * 300} for code in range(1, 200)]
        tasks = [{**ALWAYS, "name": f"t{number}", "maxRetry": 0, "policies": policies} for number in range(5)]
        plugins = {"ssh": ["-" + "n" * 500] * 100, "svc": ["text"] * 100}
        answer = await client.post(
            f"/apis/{JOBS.api_version}/namespaces/default/jobs",
            {**JOB, "spec": {"tasks": tasks, "maxRetry": 0, "plugins": plugins}},
        )
        assert answer.code == 201, answer.body
        said = reported(answer)
        assert len(said) <= 40, "twenty of each webhook"
        assert max(map(len, said)) <= 256
        assert said[-1].endswith("more warnings")


@virtual
async def test_what_nothing_will_act_on_is_warned_of() -> None:
    async with server(notices=idle_notices(["volcano"])) as client:
        pod = {
            "metadata": {"name": "p"},
            "spec": {"schedulerName": "other", "containers": [{"name": "c", "image": "i"}]},
        }
        answer = await client.post("/api/v1/namespaces/default/pods", pod)

        assert ("Warning", "spec.schedulerName") in [(name, value[7:25]) for name, value in answer.headers]


@pytest.mark.parametrize(
    ("place", "body", "field"),
    [
        ("apps/v1/namespaces/default/deployments", {"template": {"spec": OTHER}}, "spec.template.spec"),
        ("batch/v1/namespaces/default/jobs", {"template": {"spec": OTHER}}, "spec.template.spec"),
        (
            "batch/v1/namespaces/default/cronjobs",
            {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": OTHER}}}},
            "spec.jobTemplate.spec.template.spec",
        ),
        (
            "batch.volcano.sh/v1alpha1/namespaces/default/cronjobs",
            {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [{"name": "w", "template": {"spec": OTHER}}]}}},
            "spec.jobTemplate.spec.tasks[0].template.spec",
        ),
    ],
)
@virtual
async def test_a_scheduler_that_isnt_here_is_told_where_it_is_named(place: str, body: Json, field: str) -> None:
    spec: Json = copy.deepcopy(body)
    if place.startswith("batch/"):
        pods = spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec
        pods["template"]["spec"]["restartPolicy"] = "Never"
    if place.startswith("apps"):
        spec |= {"selector": {"matchLabels": {"a": "b"}}}
        spec["template"]["metadata"] = {"labels": {"a": "b"}}
    async with server(notices=idle_notices(["volcano"])) as client:
        await ensure_definitions(client.kernel.api)
        group, version, *_, plural = place.split("/")
        kind = {"deployments": "Deployment", "jobs": "Job", "cronjobs": "CronJob"}[plural]
        body = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
        answer = await client.post(f"/apis/{place}", body)
        assert answer.code == 201, answer.body
        assert reported(answer) == [
            f"{field}.schedulerName: the local server has no scheduler 'other': pods will stay pending; use volcano"
        ]


@virtual
async def test_kinds_without_a_controller_are_warned_of_and_no_others() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    async with server(notices=idle_notices()) as client:
        made = {
            kind: reported(await client.post(f"/apis/apps/v1/namespaces/default/{kind}", copy.deepcopy(body)))
            for kind in ("daemonsets", "deployments", "replicasets", "statefulsets")
        }
    warned = "the local server has no controller for DaemonSets: no pods are created; use a Deployment"
    assert made == {"daemonsets": [warned], "deployments": [], "replicasets": [], "statefulsets": []}


AT_MOST_3 = (
    "metadata.annotations[scheduling.volcano.sh/group-min-member]: a gang of 4 never starts: there are at most 3 "
    "pods at a time"
)
ONE_BY_ONE = (
    "spec.podManagementPolicy: a gang of 2 never starts: each pod is created when the previous one is running; use "
    "Parallel"
)


@pytest.mark.parametrize(
    ("place", "kind", "members", "spec", "said"),
    [
        ("apps/v1", "Deployment", 3, {"replicas": 3}, []),
        ("apps/v1", "Deployment", 4, {"replicas": 3}, [AT_MOST_3]),
        ("apps/v1", "ReplicaSet", 4, {"replicas": 3}, [AT_MOST_3]),
        ("apps/v1", "Deployment", 4, {"replicas": 0}, []),
        ("apps/v1", "StatefulSet", 4, {"replicas": 3, "podManagementPolicy": "Parallel"}, [AT_MOST_3]),
        ("apps/v1", "StatefulSet", 3, {"replicas": 3, "podManagementPolicy": "Parallel"}, []),
        ("apps/v1", "StatefulSet", 1, {"replicas": 3}, []),
        (
            "apps/v1",
            "StatefulSet",
            2,
            {"replicas": 3},
            [ONE_BY_ONE],
        ),
        ("batch/v1", "Job", 4, {"parallelism": 9, "completions": 3}, [AT_MOST_3]),
        ("batch/v1", "Job", 4, {"parallelism": 3}, [AT_MOST_3]),
        ("batch/v1", "Job", 4, {"parallelism": 4, "completions": 9}, []),
    ],
)
@virtual
async def test_a_gang_that_can_never_start_is_warned_of(
    place: str, kind: str, members: int, spec: Json, said: list[str]
) -> None:
    pods: Json = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    body: Json = {"template": {"spec": pods}, **spec}
    if kind != "Job":
        pods["restartPolicy"] = "Always"
        body["template"]["metadata"] = {"labels": {"a": "b"}}
        body["selector"] = {"matchLabels": {"a": "b"}}
    metadata = {"name": "x", "annotations": {GROUP_MIN_MEMBER: str(members)}}
    async with server(notices=idle_notices()) as client:
        path = f"/apis/{place}/namespaces/default/{kind.lower()}s"
        answer = await client.post(path, {"apiVersion": place, "kind": kind, "metadata": metadata, "spec": body})
        assert answer.code == 201, answer.body
        assert reported(answer) == said


@virtual
async def test_what_the_controllers_create_for_a_job_isnt_asked_about() -> None:
    """They come from inside and under their account, as on a cluster."""
    asked: list[str] = []
    services = admission_services(VirtualClock())
    place, service = next(iter(services.items()))

    async def counted(question: Asked) -> Verdict:
        asked.append(question.path)
        return await service(question)

    async with server(services={place: counted}) as client:
        await ensure_definitions(client.kernel.api)
        await ensure_webhooks(client.kernel.api)
        owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": "j", "uid": "u", "controller": True}
        controllers = InProcessApi(client.kernel.handler, user=user_of(CONTROLLERS_ACCOUNT))
        for api, owners in ((controllers, [owner]), (client.kernel.api, [owner]), (controllers, [])):
            name = f"p-{len(asked)}-{len(owners)}"
            metadata = {"name": name, "namespace": "default", "ownerReferences": owners}
            spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
            await api.create(
                PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, namespace="default"
            )
            asked.append(name)
        assert asked == [
            "p-0-1", "/pods/mutate", "/pods/validate", "p-1-1", "/pods/mutate", "/pods/validate", "p-4-0",
        ]  # fmt: skip


@virtual
async def test_pods_of_jobs_are_asked_about_where_gates_are_on() -> None:
    async with server(services=admission_services(VirtualClock())) as client:
        api = client.kernel.api
        for job_pods in (False, True, False):
            await ensure_webhooks(api, job_pods=job_pods)
            version = client.kernel.store.version
            await ensure_webhooks(api, job_pods=job_pods)
            assert client.kernel.store.version == version, "nothing to write a second time"
            stored = [item for resource in (MUTATING, VALIDATING) for item in (await api.list(resource)).items]
            webhooks = [webhook for item in stored for webhook in item["webhooks"]]
            said = [condition["name"] for each in webhooks for condition in each.get("matchConditions") or ()]
            assert (OF_A_JOB in said) is not job_pods
