"""Who is admitted: quotas of namespaces, waiting times, the cluster's size, and the order of the queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import START, Cluster
from tests.unit.scheduler.scoring import plugin_of, session
from vcbatch.api.quota import Quota
from vcbatch.api.resources import RESOURCEQUOTAS
from vcbatch.scheduler import PolicyError, WaitReason, build_policy
from vcbatch.scheduler.framework.plugin import Vote
from vcbatch.scheduler.model.result import Shortage
from vcbatch.scheduler.plugins.sla import Sla

Json = dict[str, Any]


def cluster(*plugins: Json | str, actions: str = "enqueue, allocate") -> Cluster:
    options = [{"name": p} if isinstance(p, str) else p for p in plugins]
    made = Cluster(build_policy({"actions": actions, "tiers": [{"plugins": options}]}))
    made.node("n", cpu="10", memory="1Ti", pods="500")
    return made


def pending(made: Cluster, name: str, **given: Any) -> None:
    """A gang of one whose pod isn't made before it is admitted."""
    made.gang(name, 0, minimum=1, phase="Pending", **given)


def phases(made: Cluster) -> dict[str, str | None]:
    made.cycle()
    return {name: made.scheduler.phase("ns", name) for name in made.groups}


def quota(made: Cluster, hard: Json, used: Json | None = None, *, event: str = "ADDED") -> None:
    raw = {"metadata": {"name": "q", "namespace": "ns", "uid": "q"}, "status": {"hard": hard, "used": used or {}}}
    made.scheduler.apply(RESOURCEQUOTAS, event, msgspec.convert(raw, Quota))


# ResourceQuota -------------------------------------------------------------------------------------------------------


def test_a_gang_beyond_the_quota_of_its_namespace_waits_and_says_so() -> None:
    made = cluster("resourcequota")
    quota(made, {"requests.cpu": "4", "pods": "3"}, {"requests.cpu": "1"})
    pending(made, "one", minResources={"requests.cpu": "2", "cpu": "2", "pods": "1"})
    pending(made, "two", minResources={"requests.cpu": "2", "cpu": "2", "pods": "1"})
    pending(made, "three", minResources={"requests.cpu": "1", "cpu": "1", "pods": "1"})
    pending(made, "four", minResources={"memory": "1Ti"})
    assert phases(made) == {"one": "Inqueue", "two": "Pending", "three": "Inqueue", "four": "Inqueue"}
    reported = made.scheduler.explain("ns", "two")
    assert reported is not None
    assert reported.reason is WaitReason.RESOURCE_QUOTA
    assert list(reported.shortages) == [Shortage("requests.cpu", "2", "1", "1")]
    assert "requests.cpu: 2 asked, 1 left of 4 in ResourceQuota q" in reported.message


def test_what_was_admitted_counts_until_its_pods_do() -> None:
    made = cluster("resourcequota")
    quota(made, {"cpu": "4"})
    made.gang("one", 0, minimum=2, phase="Pending", minResources={"cpu": "4"})
    made.cycle()
    pending(made, "two", minResources={"cpu": "2"})
    assert phases(made) == {"one": "Inqueue", "two": "Pending"}
    made.pod("one", 0, cpu="1")  # smaller than the minimum said
    quota(made, {"cpu": "4"}, {"cpu": "1"}, event="MODIFIED")
    assert phases(made)["two"] == "Pending"
    made.pod("one", 1, cpu="1")
    quota(made, {"cpu": "4"}, {"cpu": "2"}, event="MODIFIED")
    assert phases(made)["two"] == "Inqueue"


def test_a_quota_that_grows_or_goes_lets_gangs_in() -> None:
    for event, hard in (("MODIFIED", "9"), ("DELETED", "1")):
        made = cluster("resourcequota")
        quota(made, {"cpu": "1"})
        pending(made, "one", minResources={"cpu": "2"})
        assert phases(made) == {"one": "Pending"}
        quota(made, {"cpu": hard}, event=event)
        assert made.scheduler.dirty
        assert phases(made) == {"one": "Inqueue"}


def test_every_quota_of_the_namespace_holds() -> None:
    for hard in ({"q": "9", "r": "1"}, {"q": "1", "r": "9"}):
        made = cluster("resourcequota")
        for name, cpu in hard.items():
            raw = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "status": {"hard": {"cpu": cpu}}}
            made.scheduler.apply(RESOURCEQUOTAS, "ADDED", msgspec.convert(raw, Quota))
        pending(made, "one", minResources={"cpu": "2"})
        assert phases(made) == {"one": "Pending"}


def test_quotas_of_other_namespaces_are_no_obstacle() -> None:
    made = cluster("resourcequota")
    raw = {"metadata": {"name": "q", "namespace": "other", "uid": "q"}, "status": {"hard": {"cpu": "1"}}}
    made.scheduler.apply(RESOURCEQUOTAS, "ADDED", msgspec.convert(raw, Quota))
    pending(made, "one", minResources={"cpu": "2"})
    assert phases(made) == {"one": "Inqueue"}


# sla -----------------------------------------------------------------------------------------------------------------

CREATED = datetime(2026, 5, 1, tzinfo=UTC)
"""When the first gang of a cluster was created."""


def sla(**arguments: str) -> Json:
    return {"name": "sla", "arguments": arguments}


def waiting(made: Cluster, name: str, key: str, wait: str) -> None:
    """A gang that asks for more than there is, with a waiting time of its own."""
    made.gang(name, 0, minimum=1, phase="Pending", minResources={"cpu": "99"})
    made.groups[name]["metadata"]["annotations"] = {key: wait}
    made.report_group(name)


def since(seconds: float) -> str:
    """A waiting time that is over so long after the cluster's clock starts."""
    return f"{(START - CREATED).total_seconds() + seconds}s"


@pytest.mark.parametrize("key", ["volcano.sh/sla-waiting-time", "sla-waiting-time"])
def test_a_gang_that_waited_long_enough_is_admitted_over_the_limit_of_a_later_tier(key: str) -> None:
    policy = {"actions": "enqueue", "tiers": [{"plugins": [sla()]}, {"plugins": [{"name": "overcommit"}]}]}
    made = Cluster(build_policy(policy))
    made.node("n")
    waiting(made, "one", key, since(10))
    result = made.cycle(after=2)
    assert made.scheduler.phase("ns", "one") == "Pending"
    assert result.requeue_at == START + timedelta(seconds=10)
    made.cycle(after=7.999)
    assert made.scheduler.phase("ns", "one") == "Pending"
    made.cycle(after=0.001)
    assert made.scheduler.phase("ns", "one") == "Inqueue"


def test_of_two_waiting_times_of_a_gang_the_one_with_the_domain_counts() -> None:
    made = cluster(sla(), actions="enqueue")
    made.gang("one", 0, minimum=1, phase="Pending", minResources={"cpu": "99"})
    made.groups["one"]["metadata"]["annotations"] = {
        "sla-waiting-time": since(1000),
        "volcano.sh/sla-waiting-time": since(2000),
    }
    made.report_group("one")
    assert made.cycle().requeue_at == START + timedelta(seconds=2000)


def test_a_rejection_of_the_same_tier_goes_before_the_waiting_time() -> None:
    made = cluster(sla(**{"sla-waiting-time": "1s"}), "overcommit", actions="enqueue")
    pending(made, "one", minResources={"cpu": "99"})
    assert phases(made) == {"one": "Pending"}


def test_the_earliest_limit_goes_first_and_those_without_last() -> None:
    made = cluster(sla(), {"name": "overcommit", "arguments": {"overcommit-factor": 1.0}}, actions="enqueue")
    pending(made, "free", minResources={"cpu": "6"})
    pending(made, "late", minResources={"cpu": "6"})
    pending(made, "soon", minResources={"cpu": "6"})
    for name, wait in (("late", 2000), ("soon", 1000)):
        made.groups[name]["metadata"]["annotations"] = {"sla-waiting-time": since(wait)}
        made.report_group(name)
    assert phases(made) == {"free": "Pending", "late": "Pending", "soon": "Inqueue"}


def test_a_limit_that_is_no_duration_leaves_the_policy_s() -> None:
    made = cluster(sla(**{"sla-waiting-time": "1h"}), actions="enqueue")
    waiting(made, "one", "sla-waiting-time", "soon")
    result = made.cycle()
    assert result.requeue_at is None  # it was created an hour ago and more
    assert made.scheduler.phase("ns", "one") == "Inqueue"


def test_a_gang_s_own_limit_goes_before_the_policy_s() -> None:
    made = cluster(sla(**{"sla-waiting-time": "1s"}), actions="enqueue")
    waiting(made, "one", "sla-waiting-time", since(10))
    waiting(made, "none", "sla-waiting-time", "0s")  # no limit at all: the policy's
    assert made.cycle().requeue_at == START + timedelta(seconds=10)


def test_who_waited_long_enough_is_asked_for_though_one_alike_was_refused() -> None:
    made = Cluster(
        build_policy(
            {
                "actions": "enqueue",
                "tiers": [
                    {"plugins": [{**sla(), "enableJobOrder": False}]},
                    {"plugins": [{"name": "overcommit"}]},
                ],
            }
        )
    )
    made.node("n")
    waiting(made, "young", "sla-waiting-time", since(1000))
    waiting(made, "old", "sla-waiting-time", since(1))
    assert phases(made) == {"young": "Pending", "old": "Inqueue"}


def test_what_a_gang_got_is_held_once_it_waited_long_enough() -> None:
    made = cluster({"name": "gang", "enableJobPipelined": False}, sla(), actions="allocate")
    waiting(made, "one", "sla-waiting-time", since(10))
    made.scheduler._state.settle()
    job = made.scheduler._state.jobs["ns/one"]
    votes, stamps = [], []
    for made.now in (START, START + timedelta(seconds=9.999), START + timedelta(seconds=10)):
        plugin = plugin_of(session(made, made.scheduler.policy), Sla)
        votes.append(plugin.job_pipelined(job))
        assert job.queue is not None
        stamps.append(plugin.limit_stamp(job.queue))
    assert votes == [Vote.ABSTAIN, Vote.ABSTAIN, Vote.PERMIT]
    assert stamps[0] == stamps[1] != stamps[2]  # gangs that are set aside are tried again


@pytest.mark.parametrize("value", ["soon", "", "0s", "-1h", 60, True])
def test_the_policy_s_limit_is_a_duration_longer_than_nothing(value: object) -> None:
    with pytest.raises(PolicyError, match=r"sla-waiting-time.*must be a duration longer than nothing"):
        cluster({"name": "sla", "arguments": {"sla-waiting-time": value}})


# overcommit ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("once", "phase"), [(False, "Pending"), (True, "Inqueue")])
def test_what_runs_of_an_admitted_gang_counts_twice_as_in_volcano_or_once(*, once: bool, phase: str) -> None:
    arguments = {"overcommit-factor": 1.0, "overcommit-count-placed-once": once}
    made = cluster("gang", {"name": "overcommit", "arguments": arguments})
    made.gang("grows", 3, minimum=4, minResources={"cpu": "4"})
    for index in range(3):
        made.change(f"grows-worker-{index}", node="n", phase="Running")
    pending(made, "one", minResources={"cpu": "6"})
    assert phases(made)["one"] == phase


# Order ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        ("traverse", {"big": "Pending", "small": "Inqueue", "tiny": "Inqueue"}),
        ("fifo", {"big": "Pending", "small": "Pending", "tiny": "Pending"}),
    ],
)
def test_a_gang_that_is_refused_holds_up_others_only_in_a_line(strategy: str, wanted: dict[str, str]) -> None:
    made = cluster("overcommit", actions="enqueue")
    made.queue("line", dequeueStrategy=strategy)
    made.pod("stranger", 0, schedulerName="default-scheduler", nodeName="n", cpu="4")
    for name, cpu in (("vast", 13), ("big", 9), ("small", 2), ("tiny", 1)):
        pending(made, name, queue="line", minResources={"cpu": str(cpu)})
    assert phases(made) == {"vast": "Pending", **wanted}
    reported = made.scheduler.explain("ns", "tiny")
    if strategy == "fifo":
        assert reported is not None
        assert reported.reason is WaitReason.QUEUE_LIMIT
        assert "queue line is first in, first out: ns/big is first" in reported.message


def test_a_gang_that_is_never_admitted_as_things_are_holds_up_nobody_in_a_line() -> None:
    made = cluster("overcommit", actions="enqueue")
    made.queue("line", dequeueStrategy="fifo")
    for name, cpu in (("vast", 13), ("small", 2)):
        pending(made, name, queue="line", minResources={"cpu": str(cpu)})
    assert phases(made) == {"vast": "Pending", "small": "Inqueue"}
    reported = made.scheduler.explain("ns", "vast")
    assert reported is not None and reported.reason is WaitReason.IMPOSSIBLE


@pytest.mark.parametrize("limits", ["proportion", "capacity"])
def test_what_a_queue_never_admits_is_told_where_the_cluster_is_full_too(limits: str) -> None:
    made = cluster("overcommit", limits, actions="enqueue")
    made.queue("line", dequeueStrategy="fifo", capability={"cpu": "8"})
    made.pod("stranger", 0, schedulerName="default-scheduler", nodeName="n", cpu="4")
    for name, cpu in (("vast", 9), ("small", 2)):
        pending(made, name, queue="line", minResources={"cpu": str(cpu)})
    assert phases(made) == {"vast": "Pending", "small": "Inqueue"}
    reported = made.scheduler.explain("ns", "vast")
    assert reported is not None and reported.reason is WaitReason.IMPOSSIBLE
    assert "9 asked" in reported.message and "of 8" in reported.message


def test_of_many_alike_gangs_as_many_are_admitted_as_fit() -> None:
    made = cluster("overcommit", "proportion", actions="enqueue")
    for i in range(40):
        pending(made, f"g{i:02}", minResources={"cpu": "3" if i % 2 else "1"})
    found = phases(made)
    assert [n for n, phase in found.items() if phase == "Inqueue"] == ["g00", "g01", "g02", "g03", "g04", "g06"]


def test_gangs_that_wait_for_admission_are_told_about_once() -> None:
    """More of them than are told every number anew."""
    made = cluster("overcommit", actions="enqueue")
    for i in range(50):
        pending(made, f"g{i:02}", minResources={"cpu": "13"})
    assert len(made.cycle().explain) == 50
    made.node("m", cpu="0")
    assert made.cycle(after=60).explain == []
    made.node("m", cpu="4", event="MODIFIED")
    made.cycle()
    assert [name for name, phase in phases(made).items() if phase == "Inqueue"] == ["g00"]


def test_a_gang_that_is_refused_for_another_reason_is_told_so() -> None:
    made = cluster("overcommit", actions="enqueue")
    pending(made, "one", minResources={"cpu": "13"})
    made.cycle()
    made.queue("default", state="Closed", event="MODIFIED")
    made.cycle()
    reported = made.scheduler.explain("ns", "one")
    assert reported is not None
    assert reported.reason is WaitReason.QUEUE_NOT_OPEN
