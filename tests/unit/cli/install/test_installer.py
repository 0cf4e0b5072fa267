"""Applying, refusing and waiting."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from tests.fakes.api import not_found
from tests.support.volcano_cluster import Cluster
from vcbatch.api.resources import CRDS, DEPLOYMENTS, NAMESPACES, PODS, Resource
from vcbatch.cli.base.output import CliError
from vcbatch.cli.install.installer import Change, Installer, installed, remove, rollout, superfluous
from vcbatch.cli.install.kinds import CLUSTER_ROLES
from vcbatch.interfaces.api import ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.client.rest import RestApi

Json = dict[str, Any]


class Server(Cluster):
    """Server-side apply as far as an installer meets it; `refused` titles get an error."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[str, ApiError] = {}

    async def apply(
        self, resource: Resource, body: Json, *, manager: str, namespace: str | None = None, force: bool = False,
        dry_run: bool = False,
    ) -> Json:  # fmt: skip
        assert manager == "vcbatch-install"
        name = body["metadata"]["name"]
        error = self.refused.get(name)
        if error is not None and not (force and error.conflict):
            raise error
        if namespace and (NAMESPACES, "", namespace) not in self.objects:
            raise not_found(namespace)
        before = self.objects.get((resource, namespace or "", name))
        after = {**copy.deepcopy(before or {}), **copy.deepcopy(body)}
        after["metadata"] = {**(before or {}).get("metadata", {}), **body["metadata"]}
        if dry_run:
            return after
        return self._store("MODIFIED" if before else "ADDED", resource, after)


class Ticking:
    """A clock that sleeping moves; `each` happens at each sleep."""

    def __init__(self, each: Any = None) -> None:
        self.at = 0.0
        self._each = each

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds
        if self._each is not None:
            self._each()


def installer(api: Server, clock: Any = None, *, force: bool = False) -> Installer:
    return Installer(cast(RestApi, api), cast(Clock, clock or Ticking()), force=force)


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": []}
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "ns"}}
CONFLICT = ApiError(409, "Conflict", "Apply failed with 1 conflict", {
    "causes": [{"field": ".spec.versions", "message": 'conflict with "helm"'}]})  # fmt: skip
DENIED = ApiError(403, "Forbidden", 'clusterroles "r" is forbidden: User "eve" cannot patch resource')


async def test_what_became_of_each_object() -> None:
    api = Server()
    does = installer(api)
    assert await does.apply(NAMESPACE) is Change.CREATED
    assert await does.apply(NAMESPACE) is Change.UNCHANGED
    assert await does.apply(ROLE) is Change.CREATED
    assert await does.apply({**ROLE, "rules": [{"verbs": ["get"]}]}) is Change.CONFIGURED


async def test_a_dry_run_changes_nothing() -> None:
    api = Server()
    does = installer(api)
    assert await does.apply(NAMESPACE, dry_run=True) is Change.CREATED
    assert await does.apply(ACCOUNT, dry_run=True) is Change.CREATED  # into a namespace that isn't there yet
    assert not api.objects


async def test_refusals_are_found_before_anything_is_changed() -> None:
    api = Server()
    api.refused = {"r": DENIED}
    assert [one.title for one in await installer(api).refusals([NAMESPACE, ROLE, ACCOUNT])] == [
        "clusterrole.rbac.authorization.k8s.io/r"
    ]
    assert not api.objects
    # A namespace that nobody makes is another matter.
    assert [one.title for one in await installer(api).refusals([ACCOUNT])] == ["serviceaccount/a"]


async def test_objects_that_may_not_be_read_are_refused_with_all_others() -> None:
    class Blind(Server):
        async def get(self, resource: Resource, name: str, **options: Any) -> Any:
            raise DENIED

    assert await installer(Blind()).foreign([NAMESPACE, ROLE]) == []
    assert [one.title for one in await installer(Blind()).refusals([NAMESPACE, ROLE])] == [
        "namespace/ns",
        "clusterrole.rbac.authorization.k8s.io/r",
    ]


async def test_conflicts_name_fields_and_managers_and_can_be_forced() -> None:
    api = Server()
    api.refused = {"r": CONFLICT}
    (refusal,) = await installer(api).refusals([ROLE])
    assert refusal.conflict
    assert '.spec.versions (conflict with "helm")' in refusal.message
    assert await installer(api, force=True).refusals([ROLE]) == []


async def test_a_server_in_trouble_ends_it() -> None:
    api = Server()
    api.refused = {"r": ApiError(503, "ServiceUnavailable", "no")}
    with pytest.raises(ApiError):
        await installer(api).refusals([ROLE])


async def test_objects_of_helm_are_foreign() -> None:
    api = Server()
    api.seed(CLUSTER_ROLES, {"metadata": {"name": "r", "annotations": {"meta.helm.sh/release-name": "vcbatch"}}})
    assert await installer(api).foreign([NAMESPACE, ROLE]) == [
        "clusterrole.rbac.authorization.k8s.io/r (Helm release vcbatch)"
    ]


CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}}


def conditions(**states: str) -> Json:
    found = [{"type": key, "status": value, "message": "taken"} for key, value in states.items()]
    return {**copy.deepcopy(CRD), "status": {"conditions": found}}


async def test_definitions_are_waited_for() -> None:
    api = Server()
    api.seed(CRDS, conditions())

    def established() -> None:
        api.objects.pop((CRDS, "", "x"), None)
        api.seed(CRDS, conditions(Established="True"))

    await installer(api, Ticking(established)).wait_established([CRD])
    api.objects.clear()
    api.seed(CRDS, conditions(NamesAccepted="False"))
    with pytest.raises(CliError, match="was not accepted: taken"):
        await installer(api).wait_established([CRD])
    api.objects.clear()
    api.seed(CRDS, conditions())
    with pytest.raises(CliError, match="waiting to be established"):
        await installer(api).wait_established([CRD])


def deployment(*, available: int, updated: int = 2, replicas: int = 2, observed: int = 1) -> Json:
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ns", "generation": 1},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}},
        "status": {"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated,
                   "availableReplicas": available},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (deployment(available=2), ""),
        (deployment(available=1), "1 of 2 updated replicas are available"),
        (deployment(available=2, observed=0), "spec update to be observed"),
        (deployment(available=2, updated=1), "1 out of 2 new replicas"),
        (deployment(available=3, replicas=3), "1 old replicas"),
        ({"metadata": {"name": "d", "generation": 1}}, "spec update to be observed"),
    ],
)
def test_what_a_rollout_waits_for(stored: Json, words: str) -> None:
    assert words in rollout(stored)
    assert bool(rollout(stored)) is bool(words)


async def test_programs_are_waited_for_with_progress() -> None:
    api = Server()
    api.seed(DEPLOYMENTS, deployment(available=0))

    def proceed() -> None:
        available = api.objects.pop((DEPLOYMENTS, "ns", "d"))["status"]["availableReplicas"]
        api.seed(DEPLOYMENTS, deployment(available=available + 1))

    reported: list[str] = []
    await installer(api, Ticking(proceed)).wait_available([deployment(available=0)], 60, reported.append)
    assert [line.partition(": ")[2] for line in reported] == [
        "0 of 2 updated replicas are available...",
        "1 of 2 updated replicas are available...",
        "",
    ]


async def test_what_keeps_a_program_is_said_when_time_is_over() -> None:
    api = Server()
    api.seed(DEPLOYMENTS, deployment(available=0))
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    pod = {"metadata": {"name": "d-1", "namespace": "ns", "labels": {"app": "d"}},
           "status": {"containerStatuses": [{"state": waiting}]}}  # fmt: skip
    api.seed(PODS, pod)
    with pytest.raises(CliError, match="ImagePullBackOff: no such image") as failed:
        await installer(api).wait_available([deployment(available=0)], 5, lambda _: None)
    assert "-l app=d" in failed.value.hint


async def test_only_what_was_installed_is_removed_and_judges_go_first() -> None:
    api = Server()
    labels = {"app.kubernetes.io/managed-by": "vcbatch-install"}
    for resource, name in ((CRDS, "x"), (NAMESPACES, "ns"), (CLUSTER_ROLES, "r"), (DEPLOYMENTS, "d")):
        api.seed(resource, {"metadata": {"name": name, "labels": labels}})
    api.seed(CLUSTER_ROLES, {"metadata": {"name": "other"}})
    found = await installed(cast(RestApi, api))
    assert [one["metadata"]["name"] for _, one in found] == ["d", "r"]


async def test_only_what_is_not_wanted_any_more_is_superfluous() -> None:
    api = Server()
    labels = {"app.kubernetes.io/managed-by": "vcbatch-install"}
    for resource, name, namespace in ((CLUSTER_ROLES, "r", ""), (CLUSTER_ROLES, "old", ""), (DEPLOYMENTS, "d", "ns"),
                                      (DEPLOYMENTS, "old", "ns"), (CRDS, "old", "")):  # fmt: skip
        api.seed(resource, {"metadata": {"name": name, "namespace": namespace, "labels": labels}})
    wanted = [{**ROLE}, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ns"}}]
    found = superfluous(await installed(cast(RestApi, api)), wanted)
    assert [(one["kind"], one["metadata"]["name"]) for _, one in found] == [
        ("Deployment", "old"),
        ("ClusterRole", "old"),
    ]


async def test_an_object_that_was_replaced_meanwhile_is_not_removed() -> None:
    api = Server()
    api.seed(CLUSTER_ROLES, {"metadata": {"name": "r"}})
    await remove(cast(RestApi, api), CLUSTER_ROLES, {"metadata": {"name": "r", "uid": "another"}})
    assert api.objects
    await remove(cast(RestApi, api), CLUSTER_ROLES, next(iter(api.objects.values())))
    assert not api.objects
