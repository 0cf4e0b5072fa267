"""Shares of queues and of groups of queues, by the paths and weights that their annotations give."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import PolicyError, WaitReason, build_policy

Json = dict[str, Any]
KEY = "volcano.sh/hierarchy"


def cluster(actions: str = "allocate") -> Cluster:
    plugins = [{"name": "gang"}, {"name": "drf", "enableHierarchy": True}, {"name": "predicates"}]
    return Cluster(build_policy({"actions": actions, "tiers": [{"plugins": plugins}]}))


def queue(made: Cluster, path: str, weights: str = "") -> str:
    name = path.replace("/", "-")
    made.queue(name, annotations={KEY: path, **({f"{KEY}-weights": weights} if weights else {})})
    return name


def gang(made: Cluster, queue: str, size: int, *, cpu: int = 0, gigabytes: int = 0) -> None:
    """Named like the queue."""
    requests = {"cpu": str(cpu), "memory": f"{gigabytes}G"}
    requests = {name: amount for name, amount in requests.items() if amount not in ("0", "0G")}
    pod = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    made.gang(queue, size, minimum=1, queue=queue, pod=pod)


def placed(made: Cluster) -> dict[str, int]:
    made.cycle()
    return {name: len(made.placed(name)) for name in made.groups}


def test_a_group_that_wants_several_resources_gets_of_each_what_one_queue_of_it_may() -> None:
    made = cluster()
    made.node("n", cpu="10", memory="10G", pods="200")
    for path, cpu, memory in (("root/sci", 1, 1), ("root/eng/dev", 1, 0), ("root/eng/prod", 0, 1)):
        gang(
            made, queue(made, path, "/".join(["100", "50", "50"][: path.count("/") + 1])), 10, cpu=cpu, gigabytes=memory
        )
    assert placed(made) == {"root-sci": 5, "root-eng-dev": 5, "root-eng-prod": 5}


def test_a_queue_that_can_have_no_more_doesn_t_hold_its_group_back() -> None:
    made = cluster()
    made.node("n", cpu="30", memory="30G", pods="500")
    for path, cpu, memory in (
        ("root/pg1", 1, 0),
        ("root/pg2", 1, 0),
        ("root/pg3/pg31", 1, 0),
        ("root/pg3/pg32", 0, 1),
        ("root/pg4", 0, 1),
    ):
        weights = "100/25" if path.count("/") == 1 else "100/25/50"
        gang(made, queue(made, path, weights), 30, cpu=cpu, gigabytes=memory)
    assert placed(made) == {
        "root-pg1": 10,
        "root-pg2": 10,
        "root-pg3-pg31": 10,
        "root-pg3-pg32": 15,
        "root-pg4": 15,
    }


def test_weights_share_out() -> None:
    made = cluster()
    made.node("n", cpu="12", memory="1Ti", pods="200")
    for name, weight in (("a", "1"), ("b", "3"), ("c", "none"), ("d", "0.2")):
        gang(made, queue(made, f"root/{name}", f"1/{weight}"), 12, cpu=1)
    assert placed(made) == {"root-a": 2, "root-b": 6, "root-c": 2, "root-d": 2}


def test_queues_without_annotations_are_below_the_root() -> None:
    made = cluster()
    made.node("n", cpu="9", memory="1Ti", pods="200")
    made.queue("plain")
    gang(made, "plain", 9, cpu=1)
    gang(made, queue(made, "root/group/one"), 9, cpu=1)
    gang(made, queue(made, "root/group/two"), 9, cpu=1)
    found = placed(made)
    assert found["plain"] in (4, 5)
    assert found["root-group-one"] + found["root-group-two"] == 9 - found["plain"]


@pytest.mark.parametrize(
    ("path", "weights", "sentence"),
    [
        ("eng/dev", "", "volcano.sh/hierarchy must be a path that starts with root/, got 'eng/dev'"),
        ("root", "", "volcano.sh/hierarchy must be a path that starts with root/, got 'root'"),
        ("root//dev", "", "volcano.sh/hierarchy must be a path that starts with root/, got 'root//dev'"),
        (
            "root/eng/dev",
            "1/2",
            "volcano.sh/hierarchy-weights must have 3 weights, one for each part of 'root/eng/dev', got '1/2'",
        ),
    ],
)
def test_a_wrong_annotation_costs_the_queue_its_gangs_until_it_is_right(path: str, weights: str, sentence: str) -> None:
    made = cluster()
    made.node("n")
    made.queue("bad", annotations={KEY: path, f"{KEY}-weights": weights})
    made.gang("poor", 1, queue="bad")
    made.gang("fine", 1, queue="default")
    made.cycle()
    assert len(made.placed("fine")) == 1
    reported = made.scheduler.explain("ns", "poor")
    assert reported is not None
    assert reported.reason is WaitReason.QUEUE_INVALID
    assert sentence in reported.message
    made.queue("bad", event="MODIFIED", annotations={KEY: "root/eng/dev", f"{KEY}-weights": "1/2/3"})
    made.cycle()
    assert len(made.placed("poor")) == 1


def test_a_flat_drf_doesn_t_read_the_annotations() -> None:
    plugins = [{"name": "gang"}, {"name": "drf"}, {"name": "predicates"}]
    made = Cluster(build_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}))
    made.node("n")
    made.queue("bad", annotations={KEY: "nonsense"})
    made.gang("fine", 1, queue="bad")
    made.cycle()
    assert len(made.placed("fine")) == 1


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ([["proportion", "capacity"]], "capacity and proportion both say what queues deserve"),
        ([["proportion"], ["capacity"]], "capacity and proportion both say what queues deserve"),
        ([["proportion", "drf"]], "drf with enableHierarchy and proportion must not share a tier"),
    ],
)
def test_plugins_that_contradict_each_other_are_refused(tiers: list[list[str]], message: str) -> None:
    document = [
        {"plugins": [{"name": n, **({"enableHierarchy": True} if n != "proportion" else {})} for n in tier]}
        for tier in tiers
    ]
    with pytest.raises(PolicyError, match=message):
        build_policy({"actions": "allocate", "tiers": document})
    build_policy({"actions": "allocate", "tiers": [{"plugins": [tier]} for tier in document[0]["plugins"][1:]]})


def test_a_queue_may_have_pods_back_until_the_other_would_be_served_first() -> None:
    """Of 8 cpu one queue holds all; the other gets its half, and no more."""
    made = cluster("allocate, reclaim")
    made.node("n", cpu="8", memory="1Ti", pods="200")
    gang(made, queue(made, "root/a"), 8, cpu=1)
    made.cycle()
    made.run("root-a")
    gang(made, queue(made, "root/b"), 8, cpu=1)
    made.groups["root-b"]["spec"]["minMember"] = 3
    made.report_group("root-b")
    result = made.cycle()
    assert len(result.evictions) == 3
    assert {held.name for held in result.held if held.promised} == {f"root-b-worker-{i}" for i in range(3)}


def test_a_queue_that_holds_its_part_takes_nothing() -> None:
    made = cluster("allocate, reclaim")
    made.node("n", cpu="8", memory="1Ti", pods="200")
    gang(made, queue(made, "root/a"), 4, cpu=1)
    gang(made, queue(made, "root/b"), 4, cpu=1)
    made.cycle()
    made.run("root-a")
    made.run("root-b")
    made.gang("more", 2, queue="root-b")
    assert not made.cycle().evictions
