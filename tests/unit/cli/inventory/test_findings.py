"""What an inventory means: each trouble gives its finding, with what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.volcano_cluster import NOW, Cluster, admission, lease, ours, volcano_cluster, workload
from vcbatch.api.crd import render_all
from vcbatch.api.resources import CRDS, DEPLOYMENTS, LEASES, SERVICES
from vcbatch.cli.inventory import Finding, Inventory, Level, Purpose, findings
from vcbatch.cli.inventory.findings import NEWEST, OLDEST
from vcbatch.cli.inventory.model import Definition, Drift, Maker, PolicyEntry, Unread, Webhook
from vcbatch.cli.inventory.read import ENDPOINT_SLICES

HEALTHY = Inventory(version="v1.36.1", skew=timedelta())


def found(inventory: Inventory, purpose: Purpose = Purpose.INSTALL, level: Level | None = None) -> list[Finding]:
    every = findings(inventory, NOW, purpose=purpose)
    assert all(one.todo for one in every if one.level is not Level.OK)
    return [one for one in every if level is None or one.level is level]


def troubles(inventory: Inventory, purpose: Purpose = Purpose.INSTALL) -> list[tuple[str, str]]:
    return [(one.level, one.check) for one in found(inventory, purpose) if one.level is not Level.OK]


def installed() -> Cluster:
    """vcbatch, and nothing of Volcano's."""
    api = Cluster()
    for definition in render_all():
        status = {"conditions": [{"type": "Established", "status": "True"}]}
        api.seed(CRDS, {**definition, "status": status})
    for name in ("scheduler", "controllers", "webhooks"):
        api.seed(DEPLOYMENTS, ours(f"vcbatch-{name}", name))
    for name in ("vcbatch-scheduler", "vcbatch-controllers"):
        api.seed(LEASES, lease(name, "pod-1", "2026-11-01T11:59:55.000000Z"))
    return api


def test_an_empty_cluster_takes_an_installation() -> None:
    assert troubles(HEALTHY) == []


async def test_a_cluster_with_vcbatch_works() -> None:
    inventory = await installed().read()
    assert troubles(inventory, Purpose.DOCTOR) == []
    assert {one.check for one in found(inventory, Purpose.DOCTOR)} >= {"version", "clock", "crds", "programs", "leases"}


async def test_an_installation_over_a_running_volcano_is_refused() -> None:
    inventory = await volcano_cluster().read()
    refused = found(inventory, level=Level.BLOCKER)
    assert [one.check for one in refused] == ["programs", "programs", "scheduler name"]
    assert all("migrate plan" in one.todo for one in refused)
    assert "schedulerName volcano" in refused[-1].message


async def test_a_volcano_that_is_stopped_blocks_nothing_but_its_webhooks_do() -> None:
    api = volcano_cluster()
    for name in ("scheduler", "controllers", "admission"):
        body = api.objects[(DEPLOYMENTS, "volcano-system", f"volcano-{name}")]
        body["spec"]["replicas"] = 0
        body["status"] = {}
    del api.objects[(ENDPOINT_SLICES, "volcano-system", "volcano-admission-service-x")]
    refused = found(await api.read(), level=Level.BLOCKER)
    assert {one.check for one in refused} == {"webhooks"}
    pods = next(one for one in refused if "pods-mutate" in one.subject)
    assert "no pod of any scheduler can be created" in pods.message
    assert "kubectl delete mutatingwebhookconfiguration volcano-admission-service-pods-mutate" in pods.todo


async def test_a_webhook_whose_service_is_gone_has_nobody_behind_it() -> None:
    api = installed()
    admission(api)
    del api.objects[(SERVICES, "volcano-system", "volcano-admission-service")]
    assert ("blocker", "webhooks") in troubles(await api.read(), Purpose.DOCTOR)


async def test_volcanos_scheduler_of_the_same_name_beside_ours_is_found() -> None:
    api = installed()
    api.seed(DEPLOYMENTS, workload("volcano-scheduler", "vc-scheduler", "volcano-scheduler"))
    api.seed(LEASES, lease("volcano", "vc-1", "2026-11-01T11:59:59.000000Z"))
    assert troubles(await api.read(), Purpose.DOCTOR) == [("blocker", "scheduler name"), ("warning", "leases")]


async def test_volcanos_scheduler_of_another_name_is_a_warning() -> None:
    api = installed()
    api.seed(DEPLOYMENTS, workload("v", "vc-scheduler", "volcano-scheduler", "--scheduler-name=other"))
    assert troubles(await api.read(), Purpose.DOCTOR) == [("warning", "scheduler name")]


async def test_programs_that_are_not_ready() -> None:
    api = installed()
    api.seed(DEPLOYMENTS, ours("a", "controllers", ready=0))
    api.seed(DEPLOYMENTS, ours("b", "webhooks", ready=1))
    api.seed(DEPLOYMENTS, ours("c", "webhooks", replicas=0, ready=0))
    reported = {one.subject.partition(" ")[0]: one for one in found(await api.read(), Purpose.DOCTOR)}
    assert "0 of 2 replicas ready" in reported["deployment/a"].message
    assert reported["deployment/b"].level is Level.WARNING
    assert "app.kubernetes.io/name=vcbatch" in reported["deployment/b"].todo
    assert "scaled to 0" in reported["deployment/c"].message


async def test_two_releases_in_one_cluster() -> None:
    api = installed()
    api.seed(DEPLOYMENTS, ours("second", "controllers", namespace="other"))
    api.seed(DEPLOYMENTS, ours("third", "scheduler", "--scheduler-name=mine", namespace="other"))
    assert troubles(await api.read()) == [("blocker", "releases")]


@pytest.mark.parametrize(
    ("renewed", "holder", "fine"),
    [
        ("2026-11-01T11:59:31.000000Z", "pod", True),
        ("2026-11-01T11:59:29.000000Z", "pod", False),
        ("2026-11-01T11:59:59.000000Z", "", False),
        ("nonsense", "pod", False),
    ],
)
async def test_a_lease_that_nobody_renews(renewed: str, holder: str, fine: bool) -> None:
    api = installed()
    api.objects.pop((LEASES, "volcano-system", "vcbatch-scheduler"))
    api.seed(LEASES, lease("vcbatch-scheduler", holder, renewed))
    assert troubles(await api.read(), Purpose.DOCTOR) == ([] if fine else [("blocker", "leases")])


@pytest.mark.parametrize(
    ("version", "level"),
    [
        (f"v{OLDEST[0]}.{OLDEST[1]}.0", Level.OK),
        (f"v{NEWEST[0]}.{NEWEST[1]}.9-gke.1", Level.OK),
        (f"v{OLDEST[0]}.{OLDEST[1] - 1}.9", Level.BLOCKER),
        (f"v{NEWEST[0]}.{NEWEST[1] + 1}.0", Level.WARNING),
        ("", Level.WARNING),
        ("v1.x", Level.WARNING),
    ],
)
def test_the_supported_range(version: str, level: Level) -> None:
    assert [one.level for one in found(replace(HEALTHY, version=version)) if one.check == "version"] == [level]


@pytest.mark.parametrize(("seconds", "words"), [(30, "30 s ahead of"), (-4000, "4000 s behind"), (9, "")])
def test_clock_skew(seconds: int, words: str) -> None:
    reported = [one for one in found(replace(HEALTHY, skew=timedelta(seconds=seconds))) if one.check == "clock"]
    assert (words in reported[0].message) if words else reported[0].level is Level.OK


def test_drift_is_said_with_the_fields() -> None:
    one = Definition(name="jobs.batch.volcano.sh", drift=Drift(missing=("status.ledger",), extra=("spec.x",)))
    reported = found(replace(HEALTHY, definitions=(one,)), Purpose.DOCTOR, Level.WARNING)
    assert "without status.ledger; with spec.x" in reported[-1].message
    before = found(replace(HEALTHY, definitions=(one,)), Purpose.INSTALL, Level.WARNING)
    assert "spec.x" in before[-1].message
    # What is only missing comes with the installation.
    old = replace(one, drift=Drift(missing=("status.ledger",)))
    assert troubles(replace(HEALTHY, definitions=(old,))) == []


def test_definitions_that_are_missing_unestablished_or_going() -> None:
    assert ("blocker", "crds") in troubles(HEALTHY, Purpose.DOCTOR)
    for one in (Definition(name="jobs.batch.volcano.sh", established=False),
                Definition(name="jobs.batch.volcano.sh", deleting=True)):  # fmt: skip
        assert troubles(replace(HEALTHY, definitions=(one,))) == [("blocker", "crds")]
    other = Definition(name="reservations.batch.volcano.sh", known=False)
    assert troubles(replace(HEALTHY, definitions=(other,))) == [("warning", "crds")]


def webhook(**differences: Any) -> Webhook:
    given: dict[str, Any] = {"kind": "ValidatingWebhookConfiguration", "configuration": "c", "name": "jobs.x",
                             "maker": Maker.VCBATCH, "target": "ns/s", "ready": 2}  # fmt: skip
    return Webhook(**{**given, **differences})


@pytest.mark.parametrize(
    ("one", "level"),
    [
        (webhook(), None),
        (webhook(ready=None), None),
        (webhook(ready=0), "blocker"),
        (webhook(ready=0, fails_closed=False), "warning"),
        (webhook(trusted=False), "blocker"),
        (webhook(trusted=False, fails_closed=False), None),
        (webhook(service=False, ready=0), None),
    ],
)
def test_webhooks(one: Webhook, level: str | None) -> None:
    reported = [each for each in troubles(replace(HEALTHY, webhooks=(one,)), Purpose.DOCTOR) if each[1] == "webhooks"]
    assert reported == ([(level, "webhooks")] if level else [])


def test_policies() -> None:
    entry = PolicyEntry(namespace="ns", name="p", key="k", maker=Maker.VOLCANO)
    with_errors = replace(HEALTHY, policies=(replace(entry, errors=("line 3: no such plugin",)),))
    assert troubles(with_errors, Purpose.MIGRATE) == [("blocker", "policy")]
    assert troubles(replace(HEALTHY, policies=(replace(entry, errors=None),)), Purpose.MIGRATE) == [
        ("warning", "policy")
    ]
    measured = replace(HEALTHY, policies=(replace(entry, needs_metrics_api=True),), metrics_api=False)
    assert troubles(measured, Purpose.MIGRATE) == [("warning", "metrics api")]
    assert troubles(replace(measured, metrics_api=True), Purpose.MIGRATE) == []
    assert troubles(replace(measured, metrics_api=None), Purpose.MIGRATE) == []


def test_what_could_not_be_read_is_said() -> None:
    inventory = replace(HEALTHY, unread=(Unread(what="Leases", why="you may not list leases", forbidden=True),))
    reported = found(inventory, level=Level.WARNING)
    assert [(one.check, one.subject) for one in reported] == [("rights", "Leases")]
    assert troubles(replace(HEALTHY, cut=("pods",))) == [("warning", "reading")]
    # What was not read isn't taken for missing.
    unread = replace(HEALTHY, unread=(Unread(what="CustomResourceDefinitions", why="no"),))
    assert ("blocker", "crds") not in troubles(unread, Purpose.DOCTOR)


def test_objects_of_another_tool_keep_an_installation_out() -> None:
    assert troubles(replace(HEALTHY, foreign=("Deployment/x in y",))) == [("blocker", "ownership")]
