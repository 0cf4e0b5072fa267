"""What queues deserve, for any weights, requests, guarantees and capabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.shares import Claimant, deserved
from tests.support.examples import examples
from vcbatch.scheduler.plugins.proportion import real_capability, water_fill

COLUMNS = 3  # cpu, memory, pods: pods are no share of a queue's
amounts = st.integers(0, 1_000).map(float)


@st.composite
def queues(draw: st.DrawFn) -> dict[str, np.ndarray]:
    """Any tree-less set of queues whose guarantees fit the cluster together, as admission holds them to."""
    count = draw(st.integers(1, 6))
    vector = st.tuples(amounts, amounts)

    def matrix(rows: st.SearchStrategy[list[tuple[float, float]]]) -> np.ndarray:
        return np.hstack([np.array(draw(rows), dtype=np.float64), np.zeros((count, 1))])

    total = np.array([*draw(st.tuples(st.integers(1, 5_000), st.integers(1, 5_000))), 0.0], dtype=np.float64)
    request = matrix(st.lists(vector, min_size=count, max_size=count))
    guarantee = matrix(st.lists(vector, min_size=count, max_size=count))
    over = guarantee.sum(axis=0) > total
    guarantee[:, over] = 0.0
    capability = matrix(st.lists(vector, min_size=count, max_size=count)) + guarantee
    capped = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    most = np.array(
        [
            real_capability(
                total=total,
                guarantees=guarantee.sum(axis=0),
                guarantee=guarantee[q],
                capability=capability[q] if capped[q] else None,
                named=np.array([1.0, 1.0, 0.0]) if capped[q] else None,
            )
            for q in range(count)
        ]
    )
    weights = np.array(draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), dtype=np.float64)
    return {"total": total, "weights": weights, "request": request, "most": most, "guarantee": guarantee}


@settings(max_examples=examples(200))
@given(queues())
def test_what_all_deserve_is_no_more_than_there_is(world: dict[str, np.ndarray]) -> None:
    """Guarantees aside: Volcano's formula, which this is, raises a queue to its guarantee after it has shared out the
    whole, so that what all deserve may then exceed the cluster by as much as the guarantees raise."""
    found = water_fill(**{**world, "guarantee": np.zeros_like(world["guarantee"])})
    assert (found.sum(axis=0) <= world["total"] + 1e-6).all()


@settings(max_examples=examples(200))
@given(queues())
def test_nobody_deserves_more_than_it_asks_for_or_may_have_nor_less_than_its_guarantee(
    world: dict[str, np.ndarray],
) -> None:
    found = water_fill(**world)
    ceiling = np.maximum(np.minimum(world["most"], world["request"]), world["guarantee"])
    assert (found <= ceiling + 1e-6).all()
    assert (found >= world["guarantee"] - 1e-6).all()


@settings(max_examples=examples(200))
@given(queues())
def test_nothing_is_kept_back_while_somebody_asks_for_it(world: dict[str, np.ndarray]) -> None:
    """The shares add up to the capacity, or to what is asked for where that is less. It holds for each resource in
    which no queue has a limit: what one can't take goes to the others."""
    free = {
        **world,
        "guarantee": np.zeros_like(world["guarantee"]),
        "most": np.tile(world["total"], (len(world["weights"]), 1)),
    }
    found = water_fill(**free)
    for column in range(COLUMNS - 1):
        wanted = min(free["request"][:, column].sum(), free["total"][column])
        others = free["request"][:, 1 - column].sum()
        if others <= free["total"][1 - column]:
            assert found[:, column].sum() == pytest.approx(wanted, abs=1.0)


@settings(max_examples=examples(100))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 5_000))
def test_queues_that_all_want_everything_share_by_weight(weights: list[int], size: int) -> None:
    count = len(weights)
    total = np.array([size, size, 0.0], dtype=np.float64)
    wanting = np.tile(total, (count, 1))
    found = water_fill(
        total=total,
        weights=np.array(weights, dtype=np.float64),
        request=wanting,
        most=wanting,
        guarantee=np.zeros_like(wanting),
    )
    np.testing.assert_allclose(found[:, 0], size * np.array(weights) / sum(weights), rtol=1e-6)


@settings(max_examples=examples(200))
@given(queues())
def test_all_rounds_at_once_give_what_one_after_the_other_gives(world: dict[str, np.ndarray]) -> None:
    names = ("cpu", "memory", "pods")

    def named(row: np.ndarray) -> dict[str, float]:
        return dict(zip(names, row.tolist(), strict=True))

    rows = zip(world["weights"].tolist(), world["request"], world["most"], world["guarantee"], strict=True)
    claimants = [Claimant(weight, *(named(vector) for vector in vectors)) for weight, *vectors in rows]
    wanted = [list(one.values()) for one in deserved(named(world["total"]), claimants)]
    np.testing.assert_allclose(water_fill(**world)[:, :2], np.array(wanted)[:, [0, 1]], rtol=1e-6, atol=0.5)


@settings(max_examples=examples(200))
@given(queues())
def test_without_guarantees_all_rise_to_one_level(world: dict[str, np.ndarray]) -> None:
    """Resource by resource, each queue has the level times its weight, or all that it asks for and may have."""
    world = {**world, "guarantee": np.zeros_like(world["guarantee"])}
    caps = np.minimum(world["request"], world["most"])
    found = water_fill(**world)
    for column in range(COLUMNS - 1):
        rise = level(caps[:, column], world["weights"], world["total"][column])
        np.testing.assert_allclose(found[:, column], np.minimum(caps[:, column], rise * world["weights"]), atol=0.5)


def level(caps: np.ndarray, weights: np.ndarray, total: float) -> float:
    """How high so much water rises in vessels with these areas and volumes; infinite where it fills them all."""
    for cap, weight in sorted(zip(caps.tolist(), weights.tolist(), strict=True), key=lambda one: one[0] / one[1]):
        if total <= 0:
            return 0.0
        if (rise := total / weights.sum()) * weight < cap:
            return float(rise)
        total, weights = total - cap, np.delete(weights, list(weights).index(weight))
    return float("inf")
