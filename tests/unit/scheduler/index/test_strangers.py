"""Two schedulers with different names on one cluster: each judges the gangs whose pods are its own, and both see what
runs."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.cluster import Cluster, Json
from vcbatch.api.resources import Resource
from vcbatch.scheduler import CycleResult, Scheduler

_OTHER = "other"


class Two(Cluster):
    """Both schedulers are told everything; `turn` has one of them decide."""

    def __init__(self) -> None:
        self.both = {"volcano": Scheduler(), _OTHER: Scheduler(scheduler_names=(_OTHER,))}
        super().__init__()
        self.written: dict[str, set[str]] = {}

    def _send(self, resource: Resource, kind: type[msgspec.Struct], event: str, raw: Json) -> None:
        for scheduler in self.both.values():
            scheduler.apply(resource, event, msgspec.convert(raw, kind))

    def turn(self, name: str) -> CycleResult:
        self.scheduler = self.both[name]
        result = self.cycle()
        for update in result.podgroup_updates:
            self.written.setdefault(update.name, set()).add(name)
        return result

    def turns(self) -> None:
        for name in ("volcano", _OTHER, "volcano", _OTHER):
            self.turn(name)


def _of(name: str) -> Json:
    return {"pod": {"schedulerName": name}}


@pytest.fixture
def cluster() -> Two:
    made = Two()
    made.node("a", cpu="4")
    return made


def test_each_scheduler_judges_the_gangs_of_its_own_pods(cluster: Two) -> None:
    cluster.gang("ours", 2, phase="Pending")
    cluster.gang("theirs", 2, phase="Pending", **_of(_OTHER))
    cluster.gang("large", 9, phase="Pending", **_of(_OTHER))
    cluster.turns()
    assert cluster.written == {"ours": {"volcano"}, "theirs": {_OTHER}, "large": {_OTHER}}
    assert len(cluster.placed("ours")) == len(cluster.placed("theirs")) == 2
    assert cluster.both["volcano"].phase("ns", "large") is None
    assert cluster.both["volcano"].explain("ns", "large") is None
    assert cluster.both[_OTHER].explain("ns", "large") is not None


def test_what_pods_of_others_take_of_a_node_counts(cluster: Two) -> None:
    cluster.gang("theirs", 3, **_of(_OTHER))
    cluster.turn(_OTHER)
    cluster.gang("ours", 2)
    cluster.turn("volcano")
    assert cluster.placed("ours") == {}, "one of four cores is left"
    cluster.delete_gang("theirs")
    cluster.turn("volcano")
    assert len(cluster.placed("ours")) == 2


def test_a_gang_without_pods_is_judged_by_whom_it_names_and_by_all_where_it_names_nobody(cluster: Two) -> None:
    cluster.gang("named", 0, minimum=1, phase="Pending", annotations={"vcbatch.dev/schedulers": "third,other"})
    cluster.gang("plain", 0, minimum=1, phase="Pending")
    assert cluster.both["volcano"].phase("ns", "named") is None
    assert cluster.both[_OTHER].phase("ns", "named") == "Pending"
    assert {scheduler.phase("ns", "plain") for scheduler in cluster.both.values()} == {"Pending"}


def test_a_gang_changes_hands_with_its_pods(cluster: Two) -> None:
    cluster.gang("g", 0, minimum=1)
    cluster.pod("g", 0, schedulerName=_OTHER)
    assert cluster.both["volcano"].phase("ns", "g") is None
    cluster.delete("g-worker-0")
    cluster.pod("g", 1)
    assert cluster.both[_OTHER].phase("ns", "g") is None
    assert [bind.name for bind in cluster.turn("volcano").binds] == ["g-worker-1"]
    cluster.delete("g-worker-1")
    assert cluster.both[_OTHER].phase("ns", "g") is not None


def test_pods_that_come_before_their_podgroup_say_whose_it_is(cluster: Two) -> None:
    cluster.pod("g", 0, schedulerName=_OTHER)
    cluster.gang("g", 0, minimum=1)
    cluster.turns()
    assert cluster.written == {"g": {_OTHER}}


def test_a_podgroup_of_others_that_is_replaced_or_gone_is_forgotten(cluster: Two) -> None:
    cluster.gang("g", 1, **_of(_OTHER))
    cluster.delete_gang("g")
    cluster.pod("g", 0)
    assert cluster.both["volcano"].phase("ns", "g") is None
    cluster.gang("g", 0, minimum=1)
    assert len(cluster.turn("volcano").binds) == 1


_DEEDS = st.lists(
    st.tuples(st.sampled_from(["gang", "pod", "lose", "delete", "turn", "turn"]), st.integers(0, 5), st.booleans()),
    max_size=25,
)


@given(deeds=_DEEDS)
@settings(max_examples=60)
def test_nobody_writes_what_is_anothers_and_no_node_is_full_twice(deeds: list[tuple[str, int, bool]]) -> None:
    cluster = Two()
    for name in ("a", "b"):
        cluster.node(name, cpu="3")
    owners: dict[str, str] = {}
    for number, (deed, which, other) in enumerate(deeds):
        name = _OTHER if other else "volcano"
        gang = list(owners)[which % len(owners)] if owners else ""
        match deed:
            case "gang":
                owners[f"g{number}"] = name
                notes = {"vcbatch.dev/schedulers": name}
                cluster.gang(f"g{number}", which % 3, minimum=1, phase="Pending", annotations=notes, **_of(name))
            case "pod" if gang:
                cluster.pod(gang, number + 10, schedulerName=owners[gang])
            case "lose" if gang:
                for pod in [p for p in cluster.pods if p.startswith(f"{gang}-")][:1]:
                    cluster.delete(pod)
            case "delete" if gang:
                del owners[gang]
                cluster.delete_gang(gang)
            case _:
                cluster.turn(name)
    cluster.turns()
    for gang, wrote in cluster.written.items():
        assert gang not in owners or wrote == {owners[gang]}, gang
    used = Counter(pod["spec"]["nodeName"] for pod in cluster.pods.values() if pod["spec"].get("nodeName"))
    assert all(count <= 3 for count in used.values())
    for gang, name in owners.items():
        assert cluster.both[name].phase("ns", gang) == cluster.groups[gang]["status"]["phase"]
        assert all(scheduler.phase("ns", gang) is None for n, scheduler in cluster.both.items() if n != name)
