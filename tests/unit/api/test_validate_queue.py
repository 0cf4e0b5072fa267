"""Queues at admission."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.admission_world import World, queue
from vcbatch.api.queue import Queue
from vcbatch.api.validate import QueueRules, queue_deletion_errors, queue_errors, sentence

TEAM = {"cpu": "10", "memory": "40Gi"}
WORLD = World(
    known=[
        queue("root"),
        queue("default"),
        queue("team", parent="root", capability=TEAM, deserved=TEAM, guarantee={"resource": {"cpu": "4"}}),
        queue("team-a", parent="team", deserved={"cpu": "6"}, guarantee={"resource": {"cpu": "3"}}),
        Queue.parse({"metadata": {"name": "busy"}, "spec": {"parent": "root"}, "status": {"allocated": {"pods": 2}}}),
        Queue.parse(
            {
                "metadata": {
                    "name": "tree",
                    "annotations": {"volcano.sh/hierarchy": "root/a/b", "volcano.sh/hierarchy-weights": "1/2/3"},
                }
            }
        ),
    ]
)


def refusal(made: Queue, *, old: Queue | None = None, rules: QueueRules | None = None) -> str:
    return sentence(queue_errors(made, WORLD, old=old, rules=rules or QueueRules()))


def hierarchy(path: str, weights: str) -> Queue:
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return Queue.parse({"metadata": {"name": "q", "annotations": annotations}})


def test_a_queue_that_fits_has_no_faults() -> None:
    assert refusal(queue("q", capability={"cpu": 8}, deserved={"cpu": "4"}, guarantee={"resource": {"cpu": "1"}})) == ""
    assert refusal(queue("team-b", parent="team", deserved={"cpu": "4"}, guarantee={"resource": {"cpu": 1}})) == ""
    assert refusal(queue("q", capability={"cpu": "100"}, guarantee={"resource": {"cpu": "0", "memory": "0"}})) == ""
    assert refusal(hierarchy("root/a/c", "1/2/0.5")) == ""


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"capability": {"cpu": "-1"}}, 'spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0'),
        ({"deserved": {"nvidia.com/gpu": "1500m"}}, "must be an integer"),
        ({"capability": {"cpu": "much"}}, "requestBody.spec.capability.cpu"),
        ({"guarantee": {"resource": {"cpu": 1}}}, 'Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=1'),
        (
            {"guarantee": {"resource": {"cpu": 2}}, "deserved": {"cpu": 1}},
            "deserved[cpu]=1 must be >= guarantee[cpu]=2",
        ),
        ({"deserved": {"cpu": 2}, "capability": {"cpu": 1}}, "deserved[cpu]=2 must be <= capability[cpu]=1"),
        ({"parent": "q"}, "queue q cannot use itself as parent"),
        (
            {"parent": "nope"},
            'failed to get parent queue nope of queue q: queue.scheduling.volcano.sh "nope" not found',
        ),
        ({"parent": "busy"}, "queue busy cannot be the parent queue of queue q because it has allocated Pods: 2"),
        ({"parent": "team", "capability": {"cpu": 11}}, "capability[cpu]=11 exceeds its ancestor's capability=10"),
        (
            {"parent": "team", "deserved": {"cpu": 5}},
            "sum of children's deserved (cpu 11000.00, memory 0.00) exceeds parent's deserved limit (cpu 10000.00",
        ),
        (
            {"parent": "team", "deserved": {"cpu": 2}, "guarantee": {"resource": {"cpu": 2}}},
            "sum of children's guarantee (cpu 5000.00, memory 0.00) exceeds parent's guarantee limit (cpu 4000.00",
        ),
    ],
)
def test_limits_have_to_fit_together(spec: dict[str, Any], said: str) -> None:
    assert said in refusal(queue("q", **spec))


def test_what_is_below_has_to_fit_too() -> None:
    old = WORLD.queue("team")
    smaller = queue(
        "team", parent="root", capability={"cpu": 5}, deserved={"cpu": 5}, guarantee={"resource": {"cpu": 4}}
    )
    assert "sum of children's deserved (cpu 6000.00" in refusal(smaller, old=old)


def test_trees_have_neither_circles_nor_endless_depth() -> None:
    assert "which is below it" in refusal(queue("team", parent="team-a"), old=WORLD.queue("team"))
    assert "3 levels deep, and the limit is 2" in refusal(queue("q", parent="team-a"), rules=QueueRules(max_depth=2))


@pytest.mark.parametrize(
    ("path", "weights", "said"),
    [
        ("root/a", "1/2/3", "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights"),
        ("root/a", "1/x", 'x in the 1/x is invalid number: strconv.ParseFloat: parsing "x": invalid syntax'),
        ("root/a", "1/-2", "-2 in the 1/-2 must be larger than 0"),
        ("root/a", "1/2", "root/a is not allowed to be in the sub path of root/a/b of queue tree"),
    ],
)
def test_hierarchy_annotations(path: str, weights: str, said: str) -> None:
    assert said in refusal(hierarchy(path, weights))


def test_a_state_may_be_asked_for_and_a_stored_one_is_kept() -> None:
    assert refusal(queue("q", state="Closed")) == ""
    assert 'Invalid value: "Closing": queue state must be in [Open Closed]' in refusal(queue("q", state="Closing"))
    assert refusal(queue("q", state="Closing", weight=2), old=queue("q", state="Closing")) == ""


def test_metadata_of_a_queue_from_older_rules_may_change() -> None:
    stored = queue("q", guarantee={"resource": {"cpu": 1}})
    labelled = Queue.parse({**stored.dump(), "metadata": {"name": "q", "labels": {"team": "red"}}})
    assert refusal(labelled) != ""
    assert refusal(labelled, old=stored) == ""


def test_the_root_keeps_its_limits() -> None:
    limited = queue("root", capability={"cpu": 1})
    assert "queue `root` can not be modified" in refusal(limited, old=queue("root"))
    assert refusal(limited, old=queue("root"), rules=QueueRules(protect_root=False)) == ""
    assert refusal(queue("root", weight=3), old=queue("root")) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("default", "`default` queue can not be deleted"),
        ("root", "`root` queue can not be deleted"),
        ("nope", 'queue.scheduling.volcano.sh "nope" not found'),
        ("team", "queue team can not be deleted because it has 1 child queues: team-a"),
        ("busy", ""),
    ],
)
def test_deletion(name: str, said: str) -> None:
    assert sentence(queue_deletion_errors(name, WORLD)) == said


def test_a_queue_whose_pods_run_stays_where_that_is_asked_for() -> None:
    errors = queue_deletion_errors("busy", WORLD, rules=QueueRules(keep_allocated=True))
    assert "it has allocated Pods: 2" in sentence(errors)


def test_devices_by_claim_are_counted_whole_and_their_capacity_isnt() -> None:
    limits = {"deviceclass/gpu.example.com": "8", "cores.deviceclass/gpu.example.com": "1500m"}
    assert refusal(queue("q", capability=limits, deserved={"deviceclass/gpu.example.com": "4"})) == ""
    assert "must be an integer" in refusal(queue("q", capability={"deviceclass/gpu.example.com": "500m"}))
    over = queue("q", capability=limits, deserved={"cores.deviceclass/gpu.example.com": "2"})
    assert "must be <= capability[cores.deviceclass/gpu.example.com]" in refusal(over)
