"""`vcbatch doctor`: each trouble is found, and its remedy said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from vcbatch.api.names import FAILING_TASKS
from vcbatch.api.resources import ACCESS_REVIEWS, JOBS, LEASES, NODES, PODGROUPS, QUEUES, VALIDATING_WEBHOOKS, Resource
from vcbatch.cli.base.terminal import Terminal, cells
from vcbatch.cli.resources.checkup import Finding, Setting, Verdict, examine
from vcbatch.cli.resources.doctor import lines_of
from vcbatch.interfaces.api import ApiError, Listing

Json = dict[str, Any]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SETTING = Setting(namespace="team", components="volcano-system", now=NOW)


class Server(FakeApi):
    """Everything is well until a test spoils it: `denied` verbs and resources, `missing` plurals, `down`."""

    def __init__(self) -> None:
        super().__init__()
        self.denied: set[tuple[str, str]] = set()
        self.missing: set[str] = set()
        self.forbidden: set[str] = set()
        self.down = ""
        self.release = "v1.36.1"
        for name in ("default", "root"):
            self.seed(QUEUES, {"metadata": {"name": name}, "status": {"state": "Open"}})
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.seed(NODES, {"metadata": {"name": "node"}, "status": ready})
        webhook = {"name": "jobs.validate.volcano.sh", "clientConfig": {"caBundle": "Q0E="}}
        self.seed(VALIDATING_WEBHOOKS, {"metadata": {"name": "vcbatch"}, "webhooks": [webhook]})
        for name in ("vcbatch-scheduler", "vcbatch-controllers"):
            self.lease(name, "2026-05-01T11:59:55.000000Z")

    def lease(self, name: str, renewed: str, holder: str = "pod-1") -> None:
        spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
        self.objects.pop((LEASES, "volcano-system", name), None)
        self.seed(LEASES, {"metadata": {"name": name, "namespace": "volcano-system"}, "spec": spec})

    async def reported(self) -> Json:
        if self.down:
            raise ApiError(401 if self.down == "401" else 0, "x", self.down)
        return {"gitVersion": self.release}

    async def list(self, resource: Resource, **options: Any) -> Listing[Any]:
        if resource.plural in self.missing:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if resource.plural in self.forbidden:
            raise ApiError(403, "Forbidden", f"{resource.plural} is forbidden")
        return await super().list(resource, **options)

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        assert resource == ACCESS_REVIEWS
        asked = body["spec"]["resourceAttributes"]
        return {"status": {"allowed": (asked["verb"], asked["resource"]) not in self.denied}}


async def findings(api: Server, setting: Setting = SETTING) -> list[Finding]:
    return [finding async for finding in examine(api, setting, server="https://here", version=api.reported)]


def troubles(found: list[Finding]) -> list[tuple[str, str]]:
    assert all(finding.todo for finding in found if finding.verdict is Verdict.FAILED)
    return [(str(one.verdict), one.about) for one in found if one.verdict is not Verdict.OK]


async def test_a_healthy_cluster_has_no_trouble() -> None:
    found = await findings(Server())
    assert not troubles(found)
    assert {one.about for one in found} >= {
        "connection",
        "CRDs",
        "permissions",
        "admission",
        "scheduler",
        "queues",
        "nodes",
    }


@pytest.mark.parametrize("down", ["401", "connection refused"])
async def test_where_nobody_answers_nothing_else_is_asked(down: str) -> None:
    api = Server()
    api.down = down
    assert troubles(await findings(api)) == [("failed", "connection")]


async def test_a_missing_kind_a_right_and_webhooks_are_named() -> None:
    api = Server()
    api.missing = {"podgroups"}
    api.denied = {("create", "jobs"), ("get", "pods")}
    api.objects.pop((VALIDATING_WEBHOOKS, "", "vcbatch"))
    found = await findings(api)
    assert ("failed", "kinds") in troubles(found)
    assert ("warning", "rights") in troubles(found)
    assert ("warning", "admission") in troubles(found)
    said = " ".join(one.message for one in found)
    assert "podgroups.scheduling.volcano.sh" in said
    assert "submit jobs, read logs" in said


@pytest.mark.parametrize(
    ("renewed", "holder", "verdict"),
    [
        ("2026-05-01T11:59:31.000000Z", "pod-1", Verdict.OK),
        ("2026-05-01T11:59:29.000000Z", "pod-1", Verdict.FAILED),
        ("2026-05-01T11:59:59.000000Z", "", Verdict.FAILED),
        ("nonsense", "pod-1", Verdict.FAILED),
    ],
)
async def test_a_lease_that_nobody_renews_is_a_failure(renewed: str, holder: str, verdict: Verdict) -> None:
    api = Server()
    api.lease("vcbatch-scheduler", renewed, holder)
    found = {one.about: one for one in await findings(api)}
    assert found["scheduler"].verdict is verdict
    assert found["controllers"].verdict is Verdict.OK


async def test_a_local_server_needs_no_leases() -> None:
    api = Server()
    for key in [key for key in api.objects if key[0] == LEASES]:
        del api.objects[key]
    assert ("warning", "scheduler") in troubles(await findings(api))
    api.release = "v1.36.1+vcbatch"
    assert not troubles(await findings(api))


async def test_a_background_task_that_fails_is_named() -> None:
    api = Server()
    lease = api.objects[LEASES, "volcano-system", "vcbatch-controllers"]
    lease["metadata"]["annotations"] = {FAILING_TASKS: "listing custom resources: RuntimeError: no luck"}
    found = await findings(api)
    assert troubles(found) == [("failed", "controllers")]
    assert any("listing custom resources: RuntimeError: no luck" in one.message for one in found)


@pytest.mark.parametrize("failing", [["kubelet: hosts files failed: OSError: no space"], []])
async def test_a_background_task_of_a_local_server_that_fails_is_named(failing: list[str]) -> None:
    async def asked() -> list[str]:
        return failing

    api = Server()
    api.release = "v1.36.1+vcbatch"
    found = await findings(api, replace(SETTING, failing=asked))
    assert troubles(found) == [("failed", "tasks")] * len(failing)
    (tasks,) = [one for one in found if one.about == "tasks"]
    assert ("kubelet: hosts files: OSError: no space" in tasks.message) == bool(failing)


async def test_queues_nodes_and_silence() -> None:
    api = Server()
    api.objects.pop((QUEUES, "", "default"))
    api.seed(QUEUES, {"metadata": {"name": "lost"}, "spec": {"parent": "nowhere"}, "status": {"state": "Closed"}})
    api.objects.pop((NODES, "", "node"))
    old, young = "2026-05-01T11:00:00Z", "2026-05-01T11:59:50Z"
    for name, created in (("mute", old), ("new", young)):
        body = {"metadata": {"name": name, "namespace": "team", "creationTimestamp": created}}
        api.seed(JOBS, body)
        api.seed(PODGROUPS, body)
    found = await findings(api)
    assert troubles(found) == [
        ("failed", "queues"),
        ("warning", "queues"),
        ("warning", "queues"),
        ("failed", "nodes"),
        ("failed", "jobs"),
        ("failed", "gangs"),
    ]
    said = " ".join(one.message for one in found)
    assert "reconciled by a controller: mute" in said and "new" not in said.replace("nowhere", "")
    assert "no nodes" in said


async def test_what_may_not_be_read_is_said_and_the_rest_goes_on() -> None:
    api = Server()
    api.forbidden = {"nodes"}
    found = await findings(api)
    assert troubles(found) == [("warning", "nodes")]
    assert "nodes is forbidden" in next(one.message for one in found if one.about == "nodes")


def test_a_finding_fits_the_terminal() -> None:
    finding = Finding(verdict=Verdict.FAILED, about="x", message="word " * 40, todo="do " * 40)
    lines = list(lines_of(finding, Terminal(width=60)))
    assert all(cells(line) <= 60 for line in lines)
    assert lines[0].startswith("failed   x: word")
