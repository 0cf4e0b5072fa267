"""Whether the reason names the constraint of a world, and whether its remedies let the gang start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.constraints.world import GANG, KEY, World, amount_of, quantity
from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.simulation import world as simulated
from vcbatch.scheduler.simulation.outcome import Outcome
from vcbatch.scheduler.simulation.simulation import simulate

ROUNDS = 4
_LISTS = {
    "node": "nodes",
    "queue": "queues",
    "resourcequota": "resourceQuotas",
    "podgroup": "podGroups",
    "persistentvolumeclaim": "pvcs",
}


def _unknown(world: World, name: str) -> None:
    """Nothing that anybody knows of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A world with one constraint, and what is known of it.

    Attributes:
        lift: takes the constraint away from a copy of the world.
        reasons: the words that name it.
        place: where something is short, as `node/n1`; empty where it isn't about amounts.
        short: by how much, by resource.
        passes: ends the state that keeps pods from the node of this name, where it is one that passes by itself.
        ended: what else changes once the gang of this name has ended.
        rounds: in how many cycles the gang doesn't start, where it does in time.
    """

    world: World
    lift: Callable[[World], object]
    reasons: Sequence[str]
    place: str = ""
    short: dict[str, str] = field(default_factory=dict[str, str])
    passes: Callable[[World, str], object] = _unknown
    ended: Callable[[World, str], object] = _unknown
    rounds: int = ROUNDS


def run(world: World, rounds: int = ROUNDS) -> Outcome:
    policy = parse_policy(world.policy) if world.policy else None
    lists = {key: raws for key, raws in world.lists.items() if raws}
    return simulate(simulated.World.read(lists), policy, rounds=rounds)


def starts(world: World, rounds: int = ROUNDS) -> bool:
    """Whether the gang has its minimum in the end."""
    counts = run(world, rounds).counts[KEY]
    least = world.find("podGroups", GANG)["spec"]["minMember"]
    return sum(counts.get(state, 0) for state in ("Binding", "Bound", "Running")) >= least


def judge(case: Case) -> list[str]:
    """What is wrong with the reason; empty where nothing is."""
    errors: list[str] = []
    lifted = case.world.copy()
    case.lift(lifted)
    if not starts(lifted):
        errors.append("the world is wrong: the gang doesn't start without the constraint")
    why = run(case.world, case.rounds).reasons.get(KEY)
    if why is None:
        return [*errors, "no reason at all"]
    if why.reason not in case.reasons:
        errors.append(f"reason {why.reason}, not {'/'.join(case.reasons)}: {why.message}")
    if case.place and why.place != case.place:
        errors.append(f"place {why.place!r}, not {case.place!r}: {why.message}")
    short = {s.resource: s.short_by for s in why.shortages}
    if case.short and {r: amount_of(q) for r, q in short.items()} != {r: amount_of(q) for r, q in case.short.items()}:
        errors.append(f"short by {short}, not {case.short}: {why.message}")
    if not why.remedies:
        return [*errors, f"no remedy: {why.message}"]
    if not starts(remedied(case, why.remedies)):
        errors.append(f"the gang doesn't start with {why.remedies}: {why.message}")
    less = [_less(remedy) for remedy in why.remedies]
    if less != list(why.remedies) and starts(remedied(case, less), case.rounds):
        errors.append(f"less than {why.remedies} would do: {why.message}")
    return errors


def _less(remedy: Remedy) -> Remedy:
    if not remedy.resource:
        return remedy
    return remedy._replace(amount=quantity(amount_of(remedy.amount) - 1000))


def remedied(case: Case, remedies: Sequence[Remedy]) -> World:
    """The world after all of it was done."""
    changed = case.world.copy()
    for remedy in remedies:
        _apply(case, changed, remedy)
    return changed


def _apply(case: Case, world: World, remedy: Remedy) -> None:
    kind, _, path = remedy.object.partition("/")
    name = path.rpartition("/")[2]
    amount = amount_of(remedy.amount) if remedy.amount else 0
    match remedy.action:
        case RemedyAction.FREE if kind == "cluster":
            _add(world.lists["nodes"][0]["status"]["allocatable"], remedy.resource, amount)
        case RemedyAction.FREE:
            _add(world.find("nodes", name)["status"]["allocatable"], remedy.resource, amount)
        case RemedyAction.RAISE if kind == "queue":
            _add(world.find("queues", name)["spec"]["capability"], remedy.resource, amount)
        case RemedyAction.RAISE:
            quota = world.find("resourceQuotas", name)
            _add(quota["spec"]["hard"], remedy.resource, amount)
            _add(quota["status"]["hard"], remedy.resource, amount)
        case RemedyAction.LOWER:
            _add(world.find("queues", name)["spec"]["guarantee"]["resource"], remedy.resource, -amount)
        case RemedyAction.WAIT if kind == "podgroup":
            world.end(name)
            case.ended(world, name)
        case RemedyAction.WAIT if kind == "node":
            case.passes(world, name)
        case RemedyAction.OPEN:
            world.find("queues", name)["status"]["state"] = "Open"
        case RemedyAction.CREATE if kind == "queue":
            world.queue(name)
        case RemedyAction.CREATE if kind == "persistentvolumeclaim":
            _claim(world, name)
        case RemedyAction.CREATE:
            _pods(world, name, int(remedy.amount))
        case RemedyAction.CHANGE if remedy.field == "spec.tolerations":
            for pod in world.pods_of(name):
                pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        case RemedyAction.CHANGE if remedy.field.startswith("metadata.annotations["):
            key = remedy.field.partition("[")[2].rstrip("]")
            for pod in world.pods_of(name):
                if pod["metadata"]["annotations"].pop(key, None) is None:
                    pod["metadata"]["annotations"][key] = "*"
        case RemedyAction.CHANGE:
            objects = [world.find(_LISTS[kind], name)] if kind != "podgroup" else []
            for raw in objects or [world.find("podGroups", name), *world.pods_of(name)]:
                _drop(raw, remedy.field.split("."))
        case _:
            raise AssertionError(f"not known how to apply {remedy}")


def _add(amounts: dict[str, Any], resource: str, milli: int) -> None:
    amounts[resource] = quantity(amount_of(amounts.get(resource, "0")) + milli)


def _drop(raw: Any, path: Sequence[str]) -> None:
    """Take a field away, `[]` behind a name standing for all items of a list."""
    first, *rest = path
    name = first.removesuffix("[]")
    if not isinstance(raw, dict) or name not in raw:
        return
    if not rest:
        del raw[name]
        return
    for below in raw[name] if first.endswith("[]") else [raw[name]]:
        _drop(below, rest)


def _claim(world: World, name: str) -> None:
    world.add("pvs", {"metadata": {"name": f"pv-{name}"}, "spec": {"capacity": {"storage": "1Gi"}}})
    world.add(
        "pvcs",
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"volumeName": f"pv-{name}", "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Bound"},
        },
    )


def _pods(world: World, gang: str, count: int) -> None:
    like = world.pods_of(gang)[0]
    for nth in range(count):
        pod = {**like, "metadata": {**like["metadata"], "name": f"{gang}-more-{nth}"}}
        world.add("pods", pod)
