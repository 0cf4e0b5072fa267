from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver.core.servers import (
    CONFIGMAPS,
    SERVICE,
    Client,
    configmap,
    configure,
    owner,
    server,
    virtual,
    webhook,
)
from vcbatch.api import resources
from vcbatch.local.apiserver import lifecycle
from vcbatch.local.apiserver.admission import Answer, Asked

NAMESPACES = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/default/pods"


async def settle() -> None:
    await asyncio.sleep(5)


async def exists(client: Client, path: str) -> bool:
    return (await client.get(path)).code == 200


async def make_tree(client: Client, *, block: bool = False) -> dict[str, Any]:
    """root <- branch <- leaf, and `shared`, which another owner keeps."""
    root = await client.make("root")
    other = await client.make("other")
    branch = await client.make("branch", ownerReferences=[owner(root, blockOwnerDeletion=block)])
    await client.make("leaf", ownerReferences=[owner(branch, blockOwnerDeletion=block)])
    await client.make("shared", ownerReferences=[owner(root), owner(other)])
    return root


async def left(client: Client) -> set[str]:
    names = {item["metadata"]["name"] for item in (await client.get(CONFIGMAPS)).body["items"]}
    return names - {"kube-root-ca.crt"}


@virtual
async def test_in_the_background_all_descendants_follow() -> None:
    async with server() as client:
        await make_tree(client)
        await client.delete(f"{CONFIGMAPS}/root")
        assert not await exists(client, f"{CONFIGMAPS}/root")
        await settle()

        assert await left(client) == {"other", "shared"}
        shared = (await client.get(f"{CONFIGMAPS}/shared")).body["metadata"]
        assert [one["name"] for one in shared["ownerReferences"]] == ["other"]


JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
@virtual
async def test_what_jobs_own_goes_with_the_owner_of_the_jobs(policy: str) -> None:
    """Although a Job that is deleted without a word leaves its dependents behind."""
    async with server() as client:
        root = await client.make("root")
        metadata = {"name": "j", "ownerReferences": [owner(root)]}
        made = await client.post(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": JOB})
        assert made.code == 201, made.body
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": made.body["metadata"]["uid"]}
        await client.make("of-the-job", ownerReferences=[reference])
        await client.delete(f"{CONFIGMAPS}/root", {"propagationPolicy": policy})
        await settle()
        assert await left(client) == set()


@virtual
async def test_a_job_that_was_to_leave_its_dependents_does() -> None:
    async with server() as client:
        root = await client.make("root")
        metadata = {"name": "j", "ownerReferences": [owner(root)], "finalizers": ["orphan"]}
        made = await client.post(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": JOB})
        assert made.code == 201, made.body
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": made.body["metadata"]["uid"]}
        await client.make("of-the-job", ownerReferences=[reference])
        await client.delete(f"{CONFIGMAPS}/root")
        await settle()
        assert await left(client) == {"of-the-job"}
        assert not await exists(client, f"{JOBS}/j")


@virtual
async def test_in_the_foreground_the_owner_goes_last() -> None:
    async with server() as client:
        await make_tree(client, block=True)
        version = client.kernel.store.version
        answer = await client.delete(f"{CONFIGMAPS}/root?propagationPolicy=Foreground")
        assert answer.body["metadata"]["finalizers"] == ["foregroundDeletion"]
        await settle()

        events = await client.events(f"{CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        gone = [event["object"]["metadata"]["name"] for event in events if event["type"] == "DELETED"]
        assert gone == ["leaf", "branch", "root"]
        assert await left(client) == {"other", "shared"}


@virtual
async def test_a_dependent_with_a_finalizer_holds_its_owner_in_the_foreground() -> None:
    async with server() as client:
        root = await client.make("root")
        await client.make("held", finalizers=["example.com/x"], ownerReferences=[owner(root, blockOwnerDeletion=True)])
        await client.delete(f"{CONFIGMAPS}/root?propagationPolicy=Foreground")
        await settle()
        assert await left(client) == {"root", "held"}

        await client.merge(f"{CONFIGMAPS}/held", {"metadata": {"finalizers": None}})
        await settle()
        assert await left(client) == set()


@virtual
async def test_orphans_lose_their_owner_and_stay() -> None:
    async with server() as client:
        await make_tree(client)
        await client.delete(f"{CONFIGMAPS}/root?propagationPolicy=Orphan")
        await settle()

        assert await left(client) == {"other", "shared", "branch", "leaf"}
        assert "ownerReferences" not in (await client.get(f"{CONFIGMAPS}/branch")).body["metadata"]


@virtual
async def test_an_object_whose_owner_never_was_is_garbage() -> None:
    async with server() as client:
        await client.make("a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "nobody"}])
        await settle()

        assert await left(client) == set()


@virtual
async def test_an_owner_of_an_unknown_kind_is_nobodys_to_judge() -> None:
    async with server() as client:
        stranger = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "somebody"}
        await client.make("a", ownerReferences=[stranger])
        await settle()

        assert await left(client) == {"a"}


@virtual
async def test_what_a_custom_object_owned_goes_even_with_its_kind() -> None:
    async with server() as client:
        await client.post(CRDS, definition())
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        made = (await client.post(WIDGETS, widget)).body
        await client.make("owned", ownerReferences=[owner(made)])
        await client.make("old", ownerReferences=[{**owner(made), "apiVersion": "example.com/v0"}])
        await settle()
        assert await left(client) == {"owned", "old"}

        await client.delete(f"{CRDS}/widgets.example.com")
        await settle()
        assert await left(client) == set()


@virtual
async def test_an_owner_of_the_same_name_made_again_is_another() -> None:
    async with server() as client:
        root = await client.make("root")
        await client.make("child", ownerReferences=[owner(root)])
        await client.delete(f"{CONFIGMAPS}/root")
        await client.make("root")
        await settle()

        assert await left(client) == {"root"}


@virtual
async def test_garbage_left_by_a_crash_is_found_at_the_start(tmp_path: Path) -> None:
    async with server(tmp_path) as client:
        root = await client.make("root")
        await client.make("child", ownerReferences=[owner(root)])
        await client.delete(f"{CONFIGMAPS}/root")  # and no time for the collector

    async with server(tmp_path) as client:
        await settle()
        assert await left(client) == set()


@virtual
async def test_many_dependents_go_in_parts() -> None:
    async with server() as client:
        root = await client.make("root")
        for number in range(450):
            await client.make(f"d{number}", ownerReferences=[owner(root)])
        await client.delete(f"{CONFIGMAPS}/root")
        await asyncio.sleep(0.12)
        assert 0 < len(await left(client)) < 450
        await settle()
        assert await left(client) == set()


@virtual
async def test_a_refused_deletion_is_tried_again_now_and_then() -> None:
    refusals: list[str] = []

    async def judge(asked: Asked) -> Answer:
        if (asked.request["operation"], asked.request["name"]) != ("DELETE", "child") or len(refusals) >= 3:
            return Answer(allowed=True)
        refusals.append(asked.ctx.now.isoformat())
        return Answer(allowed=False, status={"message": "not yet"})

    async with server(services={SERVICE: judge}) as client:
        await configure(client, "validating", webhook())
        root = await client.make("root")
        await client.make("child", ownerReferences=[owner(root)])
        await client.delete(f"{CONFIGMAPS}/root")
        await settle()

        assert await left(client) == set()
        assert len(refusals) == len(set(refusals)) == 3


@virtual
async def test_a_namespace_is_furnished_emptied_and_gone() -> None:
    async with server() as client:
        made = await client.post(NAMESPACES, {"metadata": {"name": "n"}})
        assert made.body["status"]["phase"] == "Active"
        await settle()
        assert await exists(client, f"{NAMESPACES}/n/configmaps/kube-root-ca.crt")
        assert await exists(client, f"{NAMESPACES}/n/serviceaccounts/default")
        held = configmap("held", finalizers=["example.com/x"])
        await client.post(f"{NAMESPACES}/n/configmaps", held)

        answer = await client.delete(f"{NAMESPACES}/n")
        assert (answer.code, answer.body["status"]["phase"]) == (200, "Terminating")
        refused = await client.post(f"{NAMESPACES}/n/configmaps", configmap("late"))
        assert refused.code == 403
        assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        await settle()
        assert await exists(client, f"{NAMESPACES}/n")

        await client.merge(f"{NAMESPACES}/n/configmaps/held", {"metadata": {"finalizers": None}})
        await settle()
        assert not await exists(client, f"{NAMESPACES}/n")
        assert not await exists(client, f"{NAMESPACES}/n/configmaps/kube-root-ca.crt")


@virtual
async def test_what_a_namespace_is_born_with_comes_back() -> None:
    async with server() as client:
        await client.delete(f"{CONFIGMAPS}/kube-root-ca.crt")
        await client.delete("/api/v1/namespaces/default/serviceaccounts/default")
        await client.merge(
            "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt", {"data": {"ca.crt": "forged", "more": "x"}}
        )
        await settle()

        assert await exists(client, f"{CONFIGMAPS}/kube-root-ca.crt")
        assert await exists(client, "/api/v1/namespaces/default/serviceaccounts/default")
        renewed = await client.get("/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt")
        assert renewed.body["data"] == {"ca.crt": ""}


@virtual
async def test_a_namespace_that_was_terminating_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with server(tmp_path) as client:
        await client.post(NAMESPACES, {"metadata": {"name": "n"}})
        await client.post(f"{NAMESPACES}/n/configmaps", configmap("a"))
        await client.delete(f"{NAMESPACES}/n")

    async with server(tmp_path) as client:
        await settle()
        assert not await exists(client, f"{NAMESPACES}/n")


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 20},
    }


async def running_pod(client: Client) -> dict[str, Any]:
    assert (await client.post(PODS, pod("p"))).code == 201
    await client.kernel.handler.operations.change(
        resources.PODS, "default", "p", lambda obj: obj["spec"].update(nodeName="n"), client.kernel.engine.context()
    )
    return (await client.get(f"{PODS}/p")).body


@virtual
async def test_a_pod_on_a_node_waits_for_its_kubelet() -> None:
    async with server() as client:
        await running_pod(client)
        marked = (await client.delete(f"{PODS}/p")).body["metadata"]
        assert marked["deletionGracePeriodSeconds"] == 20
        await settle()
        assert await exists(client, f"{PODS}/p")

        shorter = (await client.delete(f"{PODS}/p?gracePeriodSeconds=5")).body["metadata"]
        assert shorter["deletionGracePeriodSeconds"] == 5
        longer = (await client.delete(f"{PODS}/p?gracePeriodSeconds=50")).body["metadata"]
        assert longer["deletionGracePeriodSeconds"] == 5

        await client.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert not await exists(client, f"{PODS}/p")


@virtual
async def test_a_pod_that_never_got_a_node_goes_at_once() -> None:
    async with server() as client:
        await client.post(PODS, pod("p"))
        await client.delete(f"{PODS}/p")

        assert not await exists(client, f"{PODS}/p")


def definition(*, plural: str = "widgets") -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": "widget", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
                {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@virtual
async def test_a_custom_kind_is_served_at_once_in_all_its_versions_and_goes_with_its_objects() -> None:
    async with server() as client:
        assert (await client.post(CRDS, definition())).code == 201
        widget = {"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": {"name": "w"}, "size": 1}
        made = await client.post(WIDGETS.replace("v1", "v1beta1"), widget)
        assert (made.code, made.body["apiVersion"]) == (201, "example.com/v1beta1")
        stored = (await client.get(f"{WIDGETS}/w")).body
        assert (stored["apiVersion"], stored["size"]) == ("example.com/v1", 1)
        watched = await client.events(f"{WIDGETS.replace('v1', 'v1beta1')}?watch=1&timeoutSeconds=1")
        assert [event["object"]["apiVersion"] for event in watched] == ["example.com/v1beta1"]

        await client.merge(f"{WIDGETS}/w", {"metadata": {"finalizers": ["example.com/x"]}})
        await client.delete(f"{CRDS}/widgets.example.com")
        await settle()
        assert await exists(client, f"{CRDS}/widgets.example.com")
        await client.merge(f"{WIDGETS}/w", {"metadata": {"finalizers": None}})
        await settle()
        assert not await exists(client, f"{CRDS}/widgets.example.com")
        assert (await client.get(WIDGETS)).code == 404


@virtual
async def test_watches_end_with_their_kind() -> None:
    async with server() as client:
        await client.post(CRDS, definition())
        watching = asyncio.create_task(client.events(f"{WIDGETS}?watch=1"))
        await asyncio.sleep(1)
        await client.delete(f"{CRDS}/widgets.example.com")
        await settle()

        assert watching.done() and await watching == []


@virtual
async def test_custom_kinds_are_there_again_after_a_restart(tmp_path: Path) -> None:
    async with server(tmp_path) as client:
        await client.post(CRDS, definition())
        await client.post(
            WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 1}
        )

    async with server(tmp_path) as client:
        assert (await client.get(f"{WIDGETS}/w")).body["size"] == 1


def event(name: str, seen: str) -> dict[str, Any]:
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    return {"metadata": {"name": name}, "involvedObject": involved, "lastTimestamp": seen, "type": "Normal"}


@virtual
async def test_old_events_are_forgotten() -> None:
    async with server() as client:
        path = "/api/v1/namespaces/default/events"
        for name in ("a", "b"):
            made = await client.post(path, event(name, "2026-01-01T00:00:00Z"))
            assert made.code == 201, made.body
        await asyncio.sleep(3500)
        assert len((await client.get(path)).items) == 2
        await asyncio.sleep(300)
        assert (await client.get(path)).items == []


@virtual
async def test_the_number_of_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "EVENT_COUNT", 2)
    async with server() as client:
        path = "/api/v1/namespaces/default/events"
        for second in range(4):
            await client.post(path, event(f"e{second}", f"2026-01-01T00:00:0{second}Z"))
        await asyncio.sleep(100)

        assert (await client.get(path)).items == ["e2", "e3"]
