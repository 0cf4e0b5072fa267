"""The Deployment and ReplicaSet controllers against an adversary: templates, sizes and strategies change, pods start,
break and are deleted, pictures lag behind, and the controllers die between any two writes. Always:

* there are never more pods than were asked for since all was quiet, with what may be above that,
* while only templates change, never fewer pods serve than the strategy leaves,
* with Recreate never two templates at once,
* once it has come to rest: all pods have the template of now, old ReplicaSets are empty and few, and the status is so.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.examples import examples
from tests.support.workload_world import MOVES, WorkloadWorld, is_active, is_ready
from vcbatch.api.names import POD_TEMPLATE_HASH, REVISION
from vcbatch.api.resources import DEPLOYMENTS, REPLICASETS

Json = dict[str, Any]
_KINDS = (DEPLOYMENTS, REPLICASETS)
_LIMIT = 2
_ROLLING = [(1, 0), (0, 1), (2, 1), ("25%", "25%"), ("100%", "50%")]
strategies = st.one_of(
    st.sampled_from(_ROLLING).map(
        lambda pair: {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": pair[0], "maxUnavailable": pair[1]}}
    ),
    st.just({"type": "Recreate", "rollingUpdate": None}),
)


def template(version: int) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": f"v{version}"}]}}


def number(given: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(given, int):
        return given
    exact = int(given[:-1]) * replicas / 100
    return int(-(-exact // 1)) if up else int(exact // 1)


class DeploymentMachine(RuleBasedStateMachine):
    @initialize(replicas=st.integers(0, 5), strategy=strategies)
    def begin(self, replicas: int, strategy: Json) -> None:
        self.world = WorkloadWorld()
        self.replicas, self.strategy, self.version = replicas, strategy, 1
        self.most = self._most()
        self.calm = self.only_recreates = False
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(1),
            "strategy": strategy,
            "revisionHistoryLimit": _LIMIT,
            "progressDeadlineSeconds": 600,
        }
        self.world.add(DEPLOYMENTS, "web", spec)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()

    # What people do

    @rule(version=st.integers(1, 4))
    def change_the_template(self, version: int) -> None:
        self.version = version
        self.world.edit(DEPLOYMENTS, "web", template=template(version))

    @rule(replicas=st.integers(0, 5))
    def scale(self, replicas: int) -> None:
        self.replicas = replicas
        self.calm = False
        self.most = max(self.most, self._most())
        self.world.edit(DEPLOYMENTS, "web", replicas=replicas)

    @rule(strategy=strategies)
    def change_the_strategy(self, strategy: Json) -> None:
        self.strategy = strategy
        self.calm = self.only_recreates = False
        self.most = max(self.most, self._most())
        self.world.edit(DEPLOYMENTS, "web", strategy=strategy)

    @rule(paused=st.booleans())
    def pause_or_resume(self, paused: bool) -> None:
        self.world.edit(DEPLOYMENTS, "web", paused=paused)

    @rule(version=st.integers(1, 4), moves=MOVES)
    def roll_out(self, version: int, moves: list[tuple[str, int]]) -> None:
        """Nothing but a new template, watched at every step."""
        self.rest()
        self.change_the_template(version)
        for move in moves:
            self.world.proceed(move, *_KINDS)
            self.never_too_many()
            self.never_too_few()
            self.never_two_templates_with_recreate()

    # What happens to pods

    @precondition(lambda self: self.world.pods())
    @rule(data=st.data(), fate=st.sampled_from(["ready", "ready", "ready", "unready", "fail", "kill"]))
    def a_pod_changes(self, data: st.DataObject, fate: str) -> None:
        pod = data.draw(st.sampled_from(self.world.pods()))
        if "deletionTimestamp" in pod["metadata"]:
            self.world.finish(pod)
            return
        if fate == "ready" and is_active(pod):
            self.world.ready(pod)
        elif fate == "unready" and is_active(pod):
            self.calm = False
            self.world.ready(pod, ready=False)
        elif fate == "fail":
            self.calm = False
            self.world.fail(pod)
        elif fate == "kill":
            self.calm = False
            self.world.kill(pod)

    # What the controllers do

    @rule(count=st.integers(1, 6))
    def hear(self, count: int) -> None:
        self.world.hear(count)

    @rule(resource=st.sampled_from(_KINDS), writes=st.none() | st.integers(0, 4))
    def reconcile(self, resource: Any, writes: int | None) -> None:
        self.world.reconcile(resource, writes=writes)

    @rule(seconds=st.sampled_from([1, 30]))
    def wait(self, seconds: int) -> None:
        self.world.pass_time(seconds)

    @rule()
    def rest(self) -> None:
        self.world.edit(DEPLOYMENTS, "web", paused=False)
        for pod in self.world.pods():
            if (pod.get("status") or {}).get("phase") == "Failed":
                self.world.finish(pod)
        self.world.settle(*_KINDS)
        self._check_rest()
        self.calm = True
        self.only_recreates = self.strategy["type"] == "Recreate"
        self.most = self._most()

    def _check_rest(self) -> None:
        pods = self.world.pods()
        assert len(pods) == self.replicas
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} <= {f"v{self.version}"}
        sets = self.world.all(REPLICASETS)
        new = [each for each in sets if each["spec"]["template"]["spec"] == template(self.version)["spec"]]
        assert len(new) == 1
        assert len(sets) <= _LIMIT + 1
        assert [each["spec"]["replicas"] for each in new] == [self.replicas]
        assert sum(each["spec"]["replicas"] for each in sets) == self.replicas
        revisions = sorted(int(each["metadata"]["annotations"][REVISION]) for each in sets)
        assert len(set(revisions)) == len(revisions)
        deployment = self.world.get(DEPLOYMENTS, "web")
        assert deployment["metadata"]["annotations"][REVISION] == new[0]["metadata"]["annotations"][REVISION]
        assert int(deployment["metadata"]["annotations"][REVISION]) == revisions[-1]
        status = deployment["status"]
        assert status["observedGeneration"] == deployment["metadata"]["generation"]
        for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"):
            assert status.get(key, 0) == self.replicas
        conditions = {each["type"]: each for each in status["conditions"]}
        assert conditions["Available"]["status"] == "True"
        assert conditions["Progressing"]["reason"] == "NewReplicaSetAvailable"

    # What holds

    @invariant()
    def never_too_many(self) -> None:
        if not hasattr(self, "world"):
            return
        assert sum(map(is_active, self.world.pods())) <= self.most
        assert sum(each["spec"]["replicas"] for each in self.world.all(REPLICASETS)) <= self.most

    @invariant()
    def never_too_few(self) -> None:
        if not hasattr(self, "world") or not self.calm or self.strategy["type"] == "Recreate":
            return
        rolling = self.strategy["rollingUpdate"]
        missing = number(rolling["maxUnavailable"], self.replicas, up=False)
        if not missing and not number(rolling["maxSurge"], self.replicas, up=True):
            missing = 1
        assert sum(map(is_ready, self.world.pods())) >= self.replicas - missing

    @invariant()
    def never_two_templates_with_recreate(self) -> None:
        if hasattr(self, "world") and self.only_recreates:
            left = [pod for pod in self.world.pods() if (pod.get("status") or {}).get("phase") != "Failed"]
            assert len({pod["metadata"]["labels"][POD_TEMPLATE_HASH] for pod in left}) <= 1

    def _most(self) -> int:
        rolling = self.strategy.get("rollingUpdate")
        return self.replicas + (number(rolling["maxSurge"], self.replicas, up=True) if rolling else 0)


DeploymentMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=20)
TestDeployments = DeploymentMachine.TestCase
