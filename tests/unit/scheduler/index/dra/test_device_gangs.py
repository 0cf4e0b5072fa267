"""Gangs whose pods claim different devices: one that fits as a whole starts, whatever each pod would take alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.scheduler.cluster import Json
from tests.unit.scheduler.index.dra.test_device_counters import HALF, WHOLE, Partitions
from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER
from vcbatch.scheduler.actions.search_attempt import MOST_ORDERS

PARTS = {"whole": ("gpu-0", WHOLE), "half-0": ("gpu-0", HALF), "half-1": ("gpu-0", HALF)}


class Gangs(Partitions):
    """Classes `whole` and `half` choose partitions by their size."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("whole", "half"):
            self.device_class(name, f"device.attributes['{DRIVER}'].size == '{name}'")

    def cards(self, node: str, **devices: tuple[str, Json]) -> None:
        """The cards of a node: each partition with its set of counters and what it takes of it."""
        sets = [{"name": name, "counters": _amounts(WHOLE)} for name in sorted({of for of, _ in devices.values()})]
        self.slice(f"{node}-counters", node, nodeName=node, sharedCounters=sets)
        listed = [
            {
                "name": name.replace("_", "-"),
                "attributes": {"size": {"string": name.partition("_")[0]}},
                "consumesCounters": [{"counterSet": of, "counters": _amounts(takes)}],
            }
            for name, (of, takes) in devices.items()
        ]
        self.slice(f"{node}-devices", node, nodeName=node, devices=listed)

    def claiming(self, gang: str, *classes: str, minimum: int | None = None) -> None:
        """A gang with one pod for each of these classes of devices."""
        self.gang(gang, 0, minimum=len(classes) if minimum is None else minimum)
        for nth, name in enumerate(classes):
            self.claim(f"{gang}-{nth}", {"deviceClassName": name})
            entry = {"name": "c", "resourceClaimName": f"{gang}-{nth}"}
            self.pod(gang, nth, cpu="100m", resourceClaims=[entry])

    def given(self, gang: str, pods: int) -> list[str]:
        """The node and the devices of each pod."""
        places = self.placed(gang)
        return [f"{places.get(f'{gang}-worker-{n}', '')}/{'+'.join(self.got(f'{gang}-{n}'))}" for n in range(pods)]


def _amounts(amounts: Mapping[str, str]) -> Json:
    return {name: {"value": value} for name, value in amounts.items()}


def test_a_pod_of_the_gang_changes_its_device_for_another() -> None:
    cluster = Gangs()
    second = {"whole_1": ("gpu-1", WHOLE)}
    cluster.cards("a", whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF), **second)
    cluster.claiming("g", "whole", "half", "half")
    cluster.cycle()
    assert cluster.given("g", 3) == ["a/whole-1", "a/half-0", "a/half-1"]


def test_a_pod_of_the_gang_goes_to_another_node_than_it_would_alone() -> None:
    cluster = Gangs()
    cluster.cards("a", whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF))
    cluster.cards("b", whole=("gpu-0", WHOLE))
    cluster.claiming("g", "whole", "half", "half")
    cluster.cycle()
    assert cluster.given("g", 3) == ["b/whole", "a/half-0", "a/half-1"]


def test_the_order_is_kept_where_it_serves_the_gang() -> None:
    cluster = Gangs()
    for node in ("a", "b"):
        cluster.cards(node, whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF))
    cluster.claiming("g", "whole", "half", "half")
    cluster.cycle()
    assert cluster.given("g", 3) == ["a/whole", "b/half-0", "b/half-1"]


@pytest.mark.parametrize("classes", [("whole", "whole", "half"), ("half", "whole", "half", "half")])
def test_a_gang_that_fits_in_no_order_gets_nothing_and_leaves_all_to_others(classes: tuple[str, ...]) -> None:
    cluster = Gangs()
    cluster.cards("a", whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF))
    cluster.cards("b", whole=("gpu-0", WHOLE))
    cluster.claiming("large", *classes)
    cluster.claiming("after", "half", "half")
    cluster.cycle()
    assert cluster.placed("large") == {}
    assert cluster.given("after", 2) == ["a/half-0", "a/half-1"]
    assert "node(s) couldn't serve all resourceclaims" in cluster.why("large")


def test_devices_of_gangs_that_were_told_of_theirs_are_not_changed() -> None:
    cluster = Gangs()
    second = {"whole_1": ("gpu-1", WHOLE)}
    cluster.cards("a", whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF), **second)
    cluster.claiming("first", "whole")
    cluster.claiming("next", "half", "half")
    result = cluster.cycle()
    assert [bind.name for bind in result.binds] == ["first-worker-0"]
    assert cluster.given("first", 1) == ["a/whole"]


def test_pods_beyond_the_minimum_follow_in_their_order() -> None:
    cluster = Gangs()
    cluster.cards("a", whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF))
    cluster.cards("b", whole=("gpu-0", WHOLE))
    cluster.claiming("g", "half", "whole", "half", "whole", minimum=3)
    cluster.cycle()
    assert cluster.given("g", 4) == ["a/half-0", "b/whole", "a/half-1", "/"]


def test_a_claim_that_pods_of_the_gang_share_moves_for_all_of_them() -> None:
    cluster = Gangs()
    second = {"whole_1": ("gpu-1", WHOLE)}
    cluster.cards("a", whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF), **second)
    cluster.gang("g", 0, minimum=3)
    cluster.claim("both", {"deviceClassName": "whole"})
    cluster.claim("half", {"deviceClassName": "half"})
    for nth, name in enumerate(("both", "both", "half")):
        cluster.pod("g", nth, cpu="100m", resourceClaims=[{"name": "c", "resourceClaimName": name}])
    result = cluster.cycle()
    assert (cluster.got("both"), cluster.got("half")) == (["whole-1"], ["half-0"])
    first, second_ = (bind.devices[0].allocation for bind in result.binds[:2])
    assert first == second_


def test_orders_are_tried_a_bounded_number_of_times() -> None:
    cluster = Gangs()
    names = [f"k{nth}" for nth in range(MOST_ORDERS + 4)]
    for name in names:
        cluster.device_class(name, f"device.attributes['{DRIVER}'].size == 'half'")
    cluster.cards("a", whole=("gpu-0", WHOLE), half_0=("gpu-0", HALF), half_1=("gpu-0", HALF))
    cluster.claiming("g", *names)
    cluster.cycle()
    assert cluster.placed("g") == {}
