"""Pods that come without a gang, against an adversary: workloads that are made, edited, scaled and deleted, pods that
come, end and go, groups that somebody deletes, and controllers that die at any write. At rest:

* every pod of ours that isn't over names its group: its workload's, or its own,
* a workload's group is there while it has pods, and says what the workload says; scaled to nothing it has none,
* what belonged to something that is gone is gone,
* and controllers that are started anew write nothing.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.support.examples import examples
from tests.support.stage_machine import StageMachine
from vcbatch.api.names import DEFAULT_SCHEDULER, GROUP_MIN_MEMBER, GROUP_NAME
from vcbatch.api.resources import PODGROUPS, PODS, REPLICASETS

Json = dict[str, Any]

WORKLOADS = ("r", "s")
PODS_NAMED = ("a", "b", "c", "d")


class PodGroupMachine(StageMachine):
    followed = (PODS, PODGROUPS, REPLICASETS)

    # What people do

    @rule(name=st.sampled_from(WORKLOADS), members=st.integers(1, 4), replicas=st.integers(0, 3))
    def a_workload_is_made_or_edited(self, name: str, members: int, replicas: int) -> None:
        metadata = {"annotations": {GROUP_MIN_MEMBER: str(members), "volcano.sh/said": str(members)}}
        if name in self.stage.names(REPLICASETS):
            self.change(REPLICASETS, name, {"metadata": metadata, "spec": {"replicas": replicas}})
        else:
            self.put(REPLICASETS, name, metadata=metadata, spec={"replicas": replicas})
        self.rest()

    @precondition(lambda self: self.stage.names(REPLICASETS))
    @rule(data=st.data())
    def a_workload_is_deleted(self, data: st.DataObject) -> None:
        self.remove(REPLICASETS, data.draw(st.sampled_from(self.stage.names(REPLICASETS))))
        self.rest()

    @rule(data=st.data(), names=st.sets(st.sampled_from(PODS_NAMED), min_size=1))
    def pods_come(self, data: st.DataObject, names: set[str]) -> None:
        owner = data.draw(st.sampled_from(["", *self.stage.names(REPLICASETS)]))
        for name in sorted(names - set(self.stage.names(PODS))):
            container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
            self.put(
                PODS,
                name,
                metadata=self._owned_by(owner) if owner else {},
                spec={"schedulerName": DEFAULT_SCHEDULER, "containers": [container]},
                status={"phase": "Pending"},
            )
        self.rest()

    @precondition(lambda self: self.stage.names(PODS))
    @rule(data=st.data(), gone=st.booleans())
    def a_pod_ends_or_goes(self, data: st.DataObject, gone: bool) -> None:
        name = data.draw(st.sampled_from(self.stage.names(PODS)))
        if gone:
            self.remove(PODS, name)
        else:
            self.change(PODS, name, {"status": {"phase": "Succeeded"}})
        self.rest()

    @precondition(lambda self: self.stage.names(PODGROUPS))
    @rule(data=st.data())
    def somebody_deletes_a_group(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.stage.names(PODGROUPS)))
        self.remove(PODGROUPS, name)
        self.rest()

    # What holds

    @invariant()
    def every_pod_is_in_its_group(self) -> None:
        for pod in self._live_pods():
            assert pod["metadata"]["annotations"][GROUP_NAME] == _group_of(pod)

    @invariant()
    def a_workload_has_its_group(self) -> None:
        groups = {each["metadata"]["name"]: each for each in self.stage.server.all(PODGROUPS)}
        wanted = {_group_of(pod) for pod in self._live_pods()}
        for workload in self.stage.server.all(REPLICASETS):
            name = f"podgroup-{workload['metadata']['uid']}"
            members = workload["metadata"]["annotations"][GROUP_MIN_MEMBER]
            if name in wanted:
                assert groups[name]["spec"]["minMember"] == int(members)
                assert groups[name]["spec"]["minResources"]["cpu"] == members
                assert groups[name]["metadata"]["annotations"] == {"volcano.sh/said": members}
            elif workload["spec"]["replicas"] == 0:
                assert name not in groups

    @invariant()
    def no_group_is_without_an_owner(self) -> None:
        there = {
            f"podgroup-{each['metadata']['uid']}"
            for resource in (PODS, REPLICASETS)
            for each in self.stage.server.all(resource)
        }
        assert set(self.stage.names(PODGROUPS)) <= there

    def _live_pods(self) -> list[Json]:
        return [pod for pod in self.stage.server.all(PODS) if pod["status"]["phase"] == "Pending"]

    def _owned_by(self, name: str) -> Json:
        uid = self.stage.get(REPLICASETS, name)["metadata"]["uid"]
        kind = {"apiVersion": REPLICASETS.api_version, "kind": REPLICASETS.kind}
        return {"ownerReferences": [{**kind, "name": name, "uid": uid, "controller": True}]}


def _group_of(pod: Json) -> str:
    owners = pod["metadata"].get("ownerReferences") or [pod["metadata"]]
    return f"podgroup-{owners[0]['uid']}"


PodGroupMachine.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=15)
TestPodGroupMachine = PodGroupMachine.TestCase
