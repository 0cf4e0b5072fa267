"""What admitted gangs are still to get, where some of their pods wait behind scheduling gates."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import policy
from vcbatch.api.names import QUEUE_ALLOCATION_GATE

QUEUE_GATE = {"name": QUEUE_ALLOCATION_GATE}
OTHER_GATE = {"name": "example.com/license"}
ASKS = {QUEUE_ALLOCATION_GATE: "true"}
PLUGINS = pytest.mark.parametrize(
    ("plugin", "arguments"), [("overcommit", {"overcommit-factor": 1.0}), ("proportion", {}), ("capacity", {})]
)
"""Those that admit gangs by what others are still to get; each may admit 10 cores here."""


def cluster(plugin: str, arguments: dict[str, Any]) -> Cluster:
    made = Cluster(policy(plugin, arguments))
    made.node("n", cpu="10", memory="1Ti", pods="500")
    return made


def gang(made: Cluster, name: str, cpu: str, *, gated: tuple[dict[str, str], ...] = (), **pod: Any) -> None:
    """A gang of one pod for which so much cpu is to be there; the pod asks for 6."""
    made.gang(
        name,
        1,
        phase="Pending",
        minResources={"cpu": cpu},
        cpu="6",
        pod={"schedulingGates": list(gated), **pod},
    )


def admitted(made: Cluster) -> set[str]:
    made.cycle()
    return {name for name in made.groups if made.scheduler.phase("ns", name) == "Inqueue"}


@PLUGINS
@pytest.mark.parametrize("at_once", [True, False])
def test_what_waits_behind_gates_of_others_is_not_counted(
    plugin: str, arguments: dict[str, Any], at_once: bool
) -> None:
    made = cluster(plugin, arguments)
    gang(made, "gated", "8", gated=(OTHER_GATE,))
    if not at_once:
        assert admitted(made) == {"gated"}
    gang(made, "fits", "8", gated=(OTHER_GATE,))  # 2 of the first are still to come
    gang(made, "excess", "7", gated=(OTHER_GATE,))  # 4 of both
    assert admitted(made) == {"gated", "fits"}


@PLUGINS
@pytest.mark.parametrize("at_once", [True, False])
def test_gated_pods_that_ask_for_more_than_the_minimum_make_no_room(
    plugin: str, arguments: dict[str, Any], at_once: bool
) -> None:
    made = cluster(plugin, arguments)
    gang(made, "gated", "2", gated=(OTHER_GATE,))
    if not at_once:
        assert admitted(made) == {"gated"}
    gang(made, "fits", "10", gated=(OTHER_GATE,))
    gang(made, "excess", "7", gated=(OTHER_GATE,))  # 4 of the second
    assert admitted(made) == {"gated", "fits"}


@PLUGINS
@pytest.mark.parametrize("at_once", [True, False])
def test_what_waits_for_room_in_its_queue_is_counted(plugin: str, arguments: dict[str, Any], at_once: bool) -> None:
    made = cluster(plugin, arguments)
    gang(made, "waits", "8", gated=(QUEUE_GATE,), notes=ASKS)
    if not at_once:
        assert admitted(made) == {"waits"}
    gang(made, "later", "8", gated=(OTHER_GATE,))
    assert admitted(made) == {"waits"}


@PLUGINS
def test_what_waits_for_nothing_else_any_more_is_counted_again(plugin: str, arguments: dict[str, Any]) -> None:
    made = cluster(plugin, arguments)
    gang(made, "waits", "8", gated=(QUEUE_GATE, OTHER_GATE), notes=ASKS)
    gang(made, "other", "8", gated=(QUEUE_GATE,))  # without the annotation the gate is its author's
    assert admitted(made) == {"waits", "other"}
    made.pods["waits-worker-0"]["spec"]["schedulingGates"] = [QUEUE_GATE]
    made.change("waits-worker-0")
    gang(made, "later", "1", gated=(OTHER_GATE,))  # 8 and 2 are still to come
    assert admitted(made) == {"waits", "other"}
