"""The running sum of what pods use is what a recount would give."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.virtual_time import run
from tests.unit.apiserver.kinds.support import container, pod
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.resources import PODS
from vcbatch.local.apiserver.kinds.pods.ledger import PodLedger
from vcbatch.local.apiserver.kinds.pods.quota import in_scope, usage
from vcbatch.local.apiserver.store import Store

SCOPED = {"scopes": ["BestEffort"]}
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "finish", "remove", "look"]), st.integers(0, 3), st.integers(0, 3)),
    max_size=25,
)


def stored(name: str, cpu: int, *, phase: str = "Pending") -> dict[str, Any]:
    resources = {"requests": {"cpu": str(cpu)}} if cpu else {}
    made = pod(name, containers=[container(resources=resources)])
    made["metadata"].update(namespace="n", uid=f"uid-of-{name}")
    made["status"] = {"phase": phase}
    return made


def recount(store: Store, spec: dict[str, Any]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for record in store.collection(PODS).sorted("n"):
        if in_scope(record.decode(), spec):
            for name, amount in usage(record.decode()).items():
                total[name] = total.get(name, ZERO) + amount
    return total


async def _play(steps: list[tuple[str, int, int]]) -> None:
    store = Store()
    ledger = PodLedger(store)
    for step, which, cpu in steps:
        name = f"p{which}"
        old = store.get(PODS, "n", name)
        match step:
            case "write":
                store.put(PODS, stored(name, cpu), old)
            case "finish" if old:
                store.put(PODS, stored(name, cpu, phase="Succeeded"), old)
            case "remove" if old:
                store.remove(PODS, old)
            case _:
                pass
        if step == "look":
            for spec in ({}, SCOPED):
                known = {name: amount for name, amount in ledger.used("n", spec).items() if amount}
                assert known == recount(store, spec)
    for spec in ({}, SCOPED):
        assert {name: amount for name, amount in ledger.used("n", spec).items() if amount} == recount(store, spec)


@settings(max_examples=60)
@given(STEPS)
def test_the_ledger_agrees_with_a_recount(steps: list[tuple[str, int, int]]) -> None:
    run(_play(steps))
