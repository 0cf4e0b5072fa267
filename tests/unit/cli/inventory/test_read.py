"""Reading an inventory: in pages, with what can't be read said item by item."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.volcano_cluster import (
    NAMESPACE,
    Cluster,
    job,
    lease,
    pod_group,
    volcano_cluster,
    workload,
)
from vcbatch.api.resources import COMMANDS, CRONJOBS, DAEMONSETS, JOBS, LEASES, NODES, PODGROUPS, PODS
from vcbatch.cli.inventory import read
from vcbatch.cli.inventory.model import Maker, Owner, Role
from vcbatch.interfaces.api import ApiError


async def test_a_cluster_of_volcanos_chart() -> None:
    api = volcano_cluster()
    api.seed(DAEMONSETS, workload("volcano-agent", "vc-agent", "volcano-agent"))
    found = await api.read()
    assert not found.unread
    roles = {one.role: one for one in found.programs_of(Maker.VOLCANO)}
    assert roles.keys() == {Role.SCHEDULER, Role.CONTROLLERS, Role.ADMISSION, Role.AGENT}
    assert roles[Role.SCHEDULER].scheduler_names == ("volcano",)
    assert {one.owner for one in found.definitions} == {Owner(tool="Helm", name="volcano", namespace=NAMESPACE)}
    assert all(one.known and one.established and not one.drift for one in found.definitions)
    assert {(one.maker, one.ready, one.trusted, one.fails_closed) for one in found.webhooks} == {
        (Maker.VOLCANO, 1, True, True)
    }
    assert [one.matches_all_pods for one in found.webhooks if one.pods] == [True]
    assert [(one.name, one.errors) for one in found.policies] == [("volcano-scheduler-configmap", ())]
    assert {one.name: one.state for one in found.queues} == {"root": "Open", "default": "Open"}
    assert found.skew == timedelta()


async def test_what_runs_is_counted_and_some_of_it_named() -> None:
    api = volcano_cluster()
    for number in range(7):
        api.seed(JOBS, job(f"r{number}", "Running"))
    old = job("old", "Pending")
    api.seed(JOBS, old)
    done = job("done", "Completed", scheduler="other")
    api.seed(JOBS, done)
    api.seed(PODGROUPS, pod_group(old, "Inqueue", name="old"))
    api.seed(PODGROUPS, pod_group(done, "Completed", name="done"))
    api.seed(PODGROUPS, pod_group(job("r0", "Running"), "Running"))
    for name, phase in (("a", "Running"), ("b", "Succeeded")):
        api.seed(PODS, {"metadata": {"name": name}, "spec": {"schedulerName": "volcano"}, "status": {"phase": phase}})
    api.seed(PODS, {"metadata": {"name": "c"}, "spec": {"schedulerName": "default-scheduler"}})
    api.seed(COMMANDS, {"metadata": {"name": "c", "namespace": "team"}, "action": "AbortJob",
                        "target": {"kind": "Job", "name": "r0"}})  # fmt: skip
    api.seed(CRONJOBS, {"metadata": {"name": "cron", "namespace": "team"}, "status": {"active": [{"name": "x"}]}})
    node = {"metadata": {"name": "n", "labels": {"volcano.sh/oversubscription": "true"}},
            "status": {"allocatable": {"volcano.sh/vgpu-number": "8"}}}  # fmt: skip
    api.seed(NODES, node)
    found = await api.read()
    assert found.jobs.counts == {"Running": 7, "Pending": 1, "Completed": 1}
    assert found.jobs.some("Running") == "team/r0, team/r1, team/r2, team/r3, team/r4 and 2 more"
    assert found.job_schedulers == {"volcano": 8}
    assert found.old_names.counts == {"Job": 1}  # of the finished job nothing is left to be done
    assert found.scheduler_names == {"volcano": 1}
    assert [(one.action, one.target) for one in found.commands] == [("AbortJob", "Job/r0")]
    assert [(one.name, one.active) for one in found.cronjobs] == [("cron", 1)]
    assert (found.virtual_devices, found.colocated) == (1, 1)


async def test_missing_rights_and_kinds_cost_one_item_each() -> None:
    api = volcano_cluster()
    api.forbidden = {"customresourcedefinitions", "leases"}
    api.missing = {"jobflows", "podgroups"}
    found = await api.read()
    assert {(one.what, one.forbidden) for one in found.unread} == {
        ("CustomResourceDefinitions", True),
        ("Leases", True),
    }
    assert all("list" in one.why for one in found.unread)
    assert found.programs
    assert not found.definitions


@pytest.mark.parametrize("code", [0, 401])
async def test_a_server_that_is_gone_or_refuses_the_user_ends_it(code: int) -> None:
    class Gone(Cluster):
        async def reported(self) -> dict[str, str]:
            raise ApiError(code, "x", "gone")

    with pytest.raises(ApiError):
        await Gone().read()


async def test_no_more_is_read_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MOST", 4)
    api = volcano_cluster()
    for number in range(9):
        api.seed(JOBS, job(f"j{number}", "Running"))
    found = await api.read()
    assert found.jobs.total == 4
    assert "jobs.batch.volcano.sh" in found.cut


async def test_odd_objects_stop_nothing() -> None:
    api = volcano_cluster()
    api.seed(LEASES, lease("vcbatch-scheduler", "", "nonsense"))
    api.seed(JOBS, {"metadata": {"name": "bare", "namespace": "team"}})
    api.seed(COMMANDS, {"metadata": {"name": "odd", "namespace": "team"}, "target": 3})
    found = await api.read()
    assert [one.renewed for one in found.leases] == [None]
    assert found.jobs.counts == {"": 1}


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Sun, 01 Nov 2026 12:00:00 GMT", 0),
        ("Sun, 01 Nov 2026 12:00:02 GMT", 0),  # within the time that the request took
        ("Sun, 01 Nov 2026 12:01:02 GMT", 60),
        ("Sun, 01 Nov 2026 11:58:59 GMT", -60),
        ("yesterday", None),
        ("", None),
    ],
)
def test_clock_skew_beyond_the_request_and_the_headers_whole_seconds(date: str, seconds: int | None) -> None:
    before = datetime(2026, 11, 1, 12, tzinfo=UTC)
    found = read.skew_of(date, before, before + timedelta(seconds=2))
    assert (found.total_seconds() if found is not None else None) == seconds
