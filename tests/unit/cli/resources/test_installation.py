"""What `vcbatch doctor` says of an installation on a cluster."""

from __future__ import annotations

from typing import Any

from tests.support.volcano_cluster import NOW, Cluster, lease, ours, volcano_cluster, workload
from vcbatch.api.crd import render_all
from vcbatch.api.resources import CRDS, DEPLOYMENTS, LEASES
from vcbatch.cli.resources.checkup import Finding, Verdict
from vcbatch.cli.resources.doctor import installation


async def said(api: Cluster, components: str = "volcano-system") -> list[Finding]:
    return await installation(api, api.reported, lambda: NOW, components)


def troubles(found: list[Finding]) -> list[tuple[str, str]]:
    assert all(one.todo for one in found if one.verdict is not Verdict.OK)
    return [(one.verdict.value, one.about) for one in found if one.verdict is not Verdict.OK]


def healthy() -> Cluster:
    api = Cluster()
    for definition in render_all():
        status: dict[str, Any] = {"conditions": [{"type": "Established", "status": "True"}]}
        api.seed(CRDS, {**definition, "status": status})
    for part in ("scheduler", "controllers", "webhooks"):
        api.seed(DEPLOYMENTS, ours(f"vcbatch-{part}", part))
    return api


async def test_a_healthy_installation() -> None:
    found = await said(healthy())
    assert troubles(found) == []
    assert {one.about for one in found} >= {"version", "clock", "crds", "programs"}


async def test_each_trouble_is_a_line() -> None:
    api = healthy()
    api.server_date = "Sun, 01 Nov 2026 13:00:00 GMT"
    api.seed(DEPLOYMENTS, workload("volcano-scheduler", "vc-scheduler", "volcano-scheduler"))
    api.seed(DEPLOYMENTS, ours("more", "webhooks", ready=0))
    api.objects[(CRDS, "", "jobs.batch.volcano.sh")]["spec"]["scope"] = "Cluster"
    api.forbidden = {"leases"}
    assert troubles(await said(api)) == [
        ("warning", "clock"),
        ("warning", "crds"),
        ("failed", "scheduler name"),
        ("failed", "programs"),
        ("warning", "rights"),
    ]


async def test_leases_that_are_examined_anyway_are_said_once() -> None:
    api = healthy()
    api.seed(LEASES, lease("vcbatch-scheduler", "", "nonsense"))
    assert troubles(await said(api)) == []
    api.seed(LEASES, lease("vcbatch-scheduler-gpu", "", "nonsense"))
    assert troubles(await said(api)) == [("failed", "leases")]


async def test_a_local_server_has_no_installation() -> None:
    api = volcano_cluster()
    api.release = "v1.36.1+vcbatch"
    assert await said(api) == []
