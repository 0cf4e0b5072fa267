"""The places of many tasks found together are those that are found one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.scheduler.framework.placing.lookahead import Stacks, greatest, merged

few_values = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0])
stacks = st.lists(st.tuples(st.lists(few_values, max_size=4), st.booleans()), min_size=1, max_size=6)


def one_by_one(items: list[tuple[list[float], bool]], most: int) -> tuple[list[int], bool]:
    """Take the best top item each time, of the first stack among equals, until an item would be needed that isn't
    known; and whether that was what ended it."""
    taken: list[int] = []
    at = [0] * len(items)
    while len(taken) < most:
        tops = [values[k] if k < len(values) else -np.inf for (values, _), k in zip(items, at, strict=True)]
        best = int(np.argmax(tops))
        if tops[best] == -np.inf:
            return taken, False
        taken.append(best)
        at[best] += 1
        values, more = items[best]
        if more and at[best] == len(values):
            return taken, True
    return taken, False


def pile(numbered: list[tuple[int, tuple[list[float], bool]]]) -> Stacks:
    depth = max(1, *(len(values) for _, (values, _) in numbered), 1)
    table = np.full((depth, len(numbered)), -np.inf)
    for column, (_, (values, _)) in enumerate(numbered):
        table[: len(values), column] = values
    return Stacks(
        np.array([number for number, _ in numbered], dtype=np.intp),
        table,
        np.array([len(values) for _, (values, _) in numbered], dtype=np.intp),
        np.array([more for _, (_, more) in numbered], dtype=bool),
    )


@given(items=stacks, most=st.integers(1, 30), deep=st.integers(0, 3))
def test_stacks_are_merged_as_if_items_were_taken_one_by_one(
    items: list[tuple[list[float], bool]], most: int, deep: int
) -> None:
    items = [(values, more and bool(values)) for values, more in items]
    numbered = list(enumerate(items))
    piles = [pile(part) for part in (numbered[deep:], numbered[:deep]) if part]
    places, certain = merged(piles, most)
    wanted, cut = one_by_one(items, most)
    assert places[:certain].tolist() == wanted
    assert cut or certain == len(places)


@given(values=st.lists(st.one_of(few_values, st.just(-np.inf)), max_size=20), most=st.integers(1, 25))
def test_the_greatest_are_the_first_in_order(values: list[float], most: int) -> None:
    wanted = sorted(range(len(values)), key=lambda i: (-values[i], i))
    wanted = sorted(i for i in wanted[:most] if values[i] != -np.inf)
    assert greatest(np.array(values), most).tolist() == wanted
