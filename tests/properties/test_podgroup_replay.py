"""Gangs of pods that come without one, whenever the controllers die and however late they hear of things: a group is
made once and its pods are put into it; one that exists already is taken as it is; it follows its workload, is made anew
where somebody deletes it, and goes with what it belongs to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.lives import Stage, Story, assert_alike, assert_deaths_change_nothing, misfortunes, report
from vcbatch.api.names import DEFAULT_SCHEDULER, GROUP_MIN_MEMBER, GROUP_NAME
from vcbatch.api.resources import PODGROUPS, PODS, REPLICASETS, STATEFULSETS

Json = dict[str, Any]


def _pod(stage: Stage, name: str, *, owner: Json | None = None, scheduler: str = DEFAULT_SCHEDULER) -> Json:
    metadata: Json = {}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return stage.put(PODS, name, metadata=metadata, spec=spec, status={"phase": "Pending"})


def _group_of(obj: Json) -> str:
    return f"podgroup-{obj['metadata']['uid']}"


def _said_by(stage: Stage, pod: str) -> str:
    return (stage.get(PODS, pod)["metadata"].get("annotations") or {}).get(GROUP_NAME, "")


async def _pods_alone(stage: Stage) -> None:
    alone = [_pod(stage, name) for name in ("a", "b")]
    _pod(stage, "other", scheduler="default-scheduler")
    await stage.rest()
    assert [_said_by(stage, name) for name in ("a", "b", "other")] == [*map(_group_of, alone), ""]
    await stage.change(PODS, "a", {"status": {"phase": "Succeeded"}})
    stage.remove(PODS, "b")
    late = _pod(stage, "b")
    await stage.rest()
    assert sorted(stage.names(PODGROUPS)) == sorted([_group_of(alone[0]), _group_of(late)])


async def _a_workload(stage: Stage) -> None:
    inherited = {GROUP_MIN_MEMBER: "2", "volcano.sh/preemptable": "true"}
    owner = stage.put(REPLICASETS, "r", metadata={"annotations": inherited}, spec={"replicas": 3})
    for name in ("a", "b", "c"):
        _pod(stage, name, owner=owner)
    await stage.rest()
    group = stage.get(PODGROUPS, _group_of(owner))
    assert (group["spec"]["minMember"], group["metadata"]["annotations"]) == (2, {"volcano.sh/preemptable": "true"})
    await stage.change(REPLICASETS, "r", {"metadata": {"annotations": {GROUP_MIN_MEMBER: "3", "volcano.sh/x": "y"}}})
    stage.remove(PODS, "b")
    _pod(stage, "d", owner=owner)
    await stage.rest()
    group = stage.get(PODGROUPS, _group_of(owner))
    assert (group["spec"]["minMember"], group["metadata"]["annotations"]["volcano.sh/x"]) == (3, "y")
    assert {_said_by(stage, pod) for pod in ("a", "c", "d")} == {_group_of(owner)}


async def _scaled_to_nothing_and_back(stage: Stage) -> None:
    owner = stage.put(STATEFULSETS, "s", spec={"replicas": 2})
    for name in ("s-0", "s-1"):
        _pod(stage, name, owner=owner)
    await stage.rest()
    await stage.change(STATEFULSETS, "s", {"spec": {"replicas": 0}})
    for name in ("s-0", "s-1"):
        stage.remove(PODS, name)
    await stage.rest()
    assert stage.names(PODGROUPS) == []
    await stage.change(STATEFULSETS, "s", {"spec": {"replicas": 1}})
    _pod(stage, "s-0", owner=owner)
    await stage.rest()
    assert stage.names(PODGROUPS) == [_said_by(stage, "s-0")] == [_group_of(owner)]


async def _a_group_that_is_there(stage: Stage) -> None:
    """What another controller made, Volcano's for one, stays as it is."""
    owner = stage.put(REPLICASETS, "r", spec={"replicas": 2})
    first = _pod(stage, "a", owner=owner)
    references = first["metadata"]["ownerReferences"]
    metadata = {"ownerReferences": references, "labels": {"made-by": "another"}}
    resources = {"count/pods": "1", "cpu": "1", "pods": "1", "requests.cpu": "1"}
    spec = {"minMember": 1, "minResources": resources, "queue": "q"}
    stage.put(PODGROUPS, _group_of(owner), metadata=metadata, spec=spec)
    await stage.rest()
    _pod(stage, "b", owner=owner)
    await stage.rest()
    group = stage.get(PODGROUPS, _group_of(owner))
    assert (group["metadata"]["labels"], group["spec"]) == ({"made-by": "another"}, spec)
    assert {_said_by(stage, pod) for pod in ("a", "b")} == {_group_of(owner)}


async def _a_group_that_somebody_deletes(stage: Stage) -> None:
    owner = stage.put(REPLICASETS, "r", metadata={"annotations": {GROUP_MIN_MEMBER: "2"}}, spec={"replicas": 2})
    for name in ("a", "b"):
        _pod(stage, name, owner=owner)
    await stage.rest()
    stage.remove(PODGROUPS, _group_of(owner))
    await stage.rest()
    assert stage.get(PODGROUPS, _group_of(owner))["spec"]["minMember"] == 2


async def _a_workload_that_goes(stage: Stage) -> None:
    """Its pods and its group are garbage, and nobody makes a group for pods that are about to go."""
    owner = stage.put(REPLICASETS, "r", spec={"replicas": 2})
    for name in ("a", "b"):
        _pod(stage, name, owner=owner)
    await stage.rest()
    stage.remove(REPLICASETS, "r")
    await stage.rest()
    assert stage.names(PODGROUPS) == stage.names(PODS) == []


STORIES: dict[str, tuple[Story, int]] = {
    story.__name__.strip("_"): (story, least)
    for story, least in (
        (_pods_alone, 6),
        (_a_workload, 6),
        (_scaled_to_nothing_and_back, 6),
        (_a_group_that_is_there, 2),
        (_a_group_that_somebody_deletes, 4),
        (_a_workload_that_goes, 3),
    )
}


@pytest.mark.parametrize("late", ["nothing", PODS.plural, PODGROUPS.plural, REPLICASETS.plural])
@pytest.mark.parametrize("name", STORIES)
def test_dying_at_any_write_changes_nothing(name: str, late: str) -> None:
    """Whatever of what belongs together is heard of last."""
    story, least = STORIES[name]
    assert_deaths_change_nothing(story, least=least, lags={late: 2.0})


@pytest.mark.parametrize("name", STORIES)
def test_neither_does_late_news_and_dying_often(name: str) -> None:
    story, _ = STORIES[name]
    whole = report(story)

    @settings(max_examples=examples(15))
    @given(misfortunes(PODS, PODGROUPS, REPLICASETS, STATEFULSETS))
    def check(misfortune: Any) -> None:
        assert_alike(report(story, **misfortune), whole, str(misfortune))

    check()
