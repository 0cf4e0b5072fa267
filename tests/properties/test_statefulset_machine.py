"""The StatefulSet controller against an adversary: templates, sizes and partitions change, pods start, break and are
deleted, pictures lag behind, and the controller dies between any two writes. Always:

* pods have the names of places in the row, and each is made with its claim there,
* in order, while nobody disturbs it: one is made only when all before it serve, and no second one is deleted while
  another is on its way,
* what is below the partition is never taken for an update,
* once it has come to rest: every place has a pod of the right template, nothing is beyond, and the status says so.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.support.examples import examples
from tests.support.workload_world import MOVES, WorkloadWorld, is_active, is_ready
from vcbatch.api.names import REVISION_HASH, STATEFUL_POD_INDEX
from vcbatch.api.resources import CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS, STATEFULSETS

Json = dict[str, Any]
_LIMIT = 2


def template(version: int) -> Json:
    return {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": f"v{version}"}]}}


def image(pod: Json) -> str:
    return pod["spec"]["containers"][0]["image"]


def place(pod: Json) -> int:
    return int(pod["metadata"]["name"].removeprefix("db-"))


class StatefulSetMachine(RuleBasedStateMachine):
    @initialize(replicas=st.integers(0, 4), ordered=st.booleans(), start=st.sampled_from([0, 0, 3]))
    def begin(self, replicas: int, ordered: bool, start: int) -> None:
        self.world = WorkloadWorld()
        self.world.api.before_pod = self._before
        self.replicas, self.ordered, self.start, self.version, self.partition = replicas, ordered, start, 1, 0
        self.calm = False
        """Whether nothing happened since all was quiet but changes of the template."""
        spec = {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template(1),
            "podManagementPolicy": "OrderedReady" if ordered else "Parallel",
            "ordinals": {"start": start},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": _LIMIT,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
        }
        self.world.add(STATEFULSETS, "db", spec)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()

    # What people do

    @rule(version=st.integers(1, 3))
    def change_the_template(self, version: int) -> None:
        self.version = version
        self.world.edit(STATEFULSETS, "db", template=template(version))

    @rule(replicas=st.integers(0, 4))
    def scale(self, replicas: int) -> None:
        self.replicas = replicas
        self.calm = False
        self.world.edit(STATEFULSETS, "db", replicas=replicas)

    @rule(partition=st.integers(0, 3))
    def change_the_partition(self, partition: int) -> None:
        self.partition = partition
        self.calm = False
        self.world.edit(STATEFULSETS, "db", updateStrategy={"rollingUpdate": {"partition": partition}})

    @rule(version=st.integers(1, 3), moves=MOVES)
    def roll_out(self, version: int, moves: list[tuple[str, int]]) -> None:
        """Nothing but a new template, watched at every step."""
        self.rest()
        self.change_the_template(version)
        for move in moves:
            self.world.proceed(move, STATEFULSETS)

    # What happens to pods

    @precondition(lambda self: self.world.pods())
    @rule(data=st.data(), fate=st.sampled_from(["ready", "ready", "unready", "fail", "kill"]))
    def a_pod_changes(self, data: st.DataObject, fate: str) -> None:
        pod = data.draw(st.sampled_from(self.world.pods()))
        if "deletionTimestamp" in pod["metadata"]:
            self.world.finish(pod)
            return
        self.calm = self.calm and fate == "ready"
        if fate in ("ready", "unready") and is_active(pod):
            self.world.ready(pod, ready=fate == "ready")
        elif fate == "fail":
            self.world.fail(pod)
        elif fate == "kill":
            self.world.kill(pod)

    # What the controller does

    @rule(count=st.integers(1, 6))
    def hear(self, count: int) -> None:
        self.world.hear(count)

    @rule(writes=st.none() | st.integers(0, 4))
    def reconcile(self, writes: int | None) -> None:
        self.world.reconcile(STATEFULSETS, writes=writes)

    def _before(self, verb: str, pod: Json) -> None:
        """Judges what the controller is about to do."""
        seats = range(self.start, self.start + self.replicas)
        there = {place(each): each for each in self.world.pods()}
        if verb == "create":
            claims = {each["metadata"]["name"] for each in self.world.all(PERSISTENTVOLUMECLAIMS)}
            assert f"data-{pod['metadata']['name']}" in claims
            assert pod["metadata"]["labels"][STATEFUL_POD_INDEX] == str(place(pod))
        if not self.calm:
            return
        assert place(pod) in seats
        others = [each for each in there.values() if place(each) != place(pod)]
        if verb == "create":
            assert not self.ordered or all(
                seat in there and is_ready(there[seat]) for seat in seats if seat < place(pod)
            )
        else:
            assert place(pod) >= self.start + self.partition
            assert len(others) == self.replicas - 1
            assert all(map(is_active, others))

    @rule()
    def rest(self) -> None:
        for pod in self.world.pods():
            if (pod.get("status") or {}).get("phase") == "Failed" and "deletionTimestamp" in pod["metadata"]:
                self.world.finish(pod)
        self.world.settle(STATEFULSETS)
        self._check_rest()
        self.calm = True

    def _check_rest(self) -> None:
        pods = {place(pod): pod for pod in self.world.pods()}
        assert set(pods) == set(range(self.start, self.start + self.replicas))
        updated = [pod for pod in pods.values() if place(pod) >= self.start + self.partition]
        assert {image(pod) for pod in updated} <= {f"v{self.version}"}
        status = self.world.get(STATEFULSETS, "db")["status"]
        for key in ("replicas", "readyReplicas", "availableReplicas"):
            assert status.get(key, 0) == self.replicas
        now = [pod for pod in pods.values() if pod["metadata"]["labels"][REVISION_HASH] == status["updateRevision"]]
        assert status.get("updatedReplicas", 0) == len(now)
        assert [image(pod) for pod in now] == [f"v{self.version}"] * len(now)
        if len(now) == self.replicas:
            assert status["currentRevision"] == status["updateRevision"]
        revisions = self.world.all(CONTROLLERREVISIONS)
        assert len({each["revision"] for each in revisions}) == len(revisions)
        newest = max(revisions, key=lambda each: each["revision"])
        assert newest["metadata"]["name"] == status["updateRevision"]
        used = {pod["metadata"]["labels"][REVISION_HASH] for pod in pods.values()}
        assert len(revisions) <= _LIMIT + len(used | {status["updateRevision"], status["currentRevision"]})


StatefulSetMachine.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=20)
TestStatefulSets = StatefulSetMachine.TestCase
