"""Trees of queues, flows and domains: everything is drawn once, whatever circles there are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.quantity import ZERO, parse_quantity
from vcbatch.cli.base.terminal import PLAIN, Terminal, cells
from vcbatch.cli.resources.flow.graph import dot, graph
from vcbatch.cli.resources.flow.nodes import layers, nodes_of, tree
from vcbatch.cli.resources.hypernode.network import network_of
from vcbatch.cli.resources.hypernode.tree import tree_text
from vcbatch.cli.resources.queue.tree import bar, default_resource, shown, tree_lines
from vcbatch.cli.resources.queue.usage import usage_of

Json = dict[str, Any]
NAMES = ["root", "a", "b", "c", "d", "e"]

_PARENTS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", *NAMES, "nowhere"]), max_size=6)
_GANGS = st.lists(
    st.tuples(
        st.sampled_from([*NAMES, "gone"]), st.sampled_from(["Pending", "Inqueue", "Running", ""]), st.integers(0, 50)
    ),
    max_size=8,
)


def queues(parents: dict[str, str]) -> list[Json]:
    return [
        {
            "metadata": {"name": name},
            "spec": {"parent": parent, "capability": {"cpu": str(10 * len(name))}, "deserved": {"cpu": "3"}},
            "status": {"state": "Open", "allocated": {"cpu": "5"}},
        }
        for name, parent in parents.items()
    ]


def groups(gangs: list[tuple[str, str, int]]) -> list[Json]:
    return [
        {
            "metadata": {"name": f"g{at}"},
            "spec": {"queue": queue, "minResources": {"cpu": str(cpu)}},
            "status": {"phase": phase},
        }
        for at, (queue, phase, cpu) in enumerate(gangs)
    ]


@given(_PARENTS, _GANGS)
def test_every_queue_is_drawn_and_what_waits_counts_in_each_queue_above(
    parents: dict[str, str], gangs: list[tuple[str, str, int]]
) -> None:
    usage = usage_of(queues(parents), groups(gangs))
    drawn = [entry.name for entry, _ in usage.walk()]
    assert set(drawn) == set(usage.entries)
    assert set(parents) <= set(usage.entries)
    for name, entry in usage.entries.items():
        below = {name} | {child for child in usage.entries if name in _above(child, parents)}
        pending = sum(cpu for queue, phase, cpu in gangs if queue in below and phase in ("Pending", ""))
        admitted = sum(cpu for queue, phase, cpu in gangs if queue in below and phase == "Inqueue")
        assert entry.pending.get("cpu", ZERO) == parse_quantity(pending)
        assert entry.admitted.get("cpu", ZERO) == parse_quantity(admitted)
    for line in tree_lines(usage, "cpu", Terminal(width=80)):
        assert cells(line) <= 80


def _above(name: str, parents: dict[str, str]) -> list[str]:
    found: list[str] = []
    while name in parents and name != "root":
        name = parents[name] or "root"
        if name in found:
            break
        found.append(name)
    return found


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 200), st.integers(0, 150))
def test_a_bar_is_as_long_as_its_limit(held: int, deserved: int, admitted: int, most: int) -> None:
    queue = {
        "metadata": {"name": "q"},
        "spec": {"capability": {"cpu": str(most)}, "deserved": {"cpu": str(deserved)}},
        "status": {"allocated": {"cpu": str(held)}},
    }
    usage = usage_of([queue], groups([("q", "Inqueue", admitted)]))
    drawn = bar(usage.entries["q"], "cpu", parse_quantity(most), PLAIN)
    assert len(drawn) == 30
    full = drawn.count("█") + drawn.count("▓")
    if most:
        assert (full == 30) == (held >= most)
        assert (full == 0) == (held == 0)
        assert ("▓" in drawn) <= (held > deserved)


def test_gpus_are_what_people_look_at() -> None:
    limited = {"metadata": {"name": "a"}, "spec": {"capability": {"cpu": "1", "nvidia.com/gpu": "8"}}}
    assert default_resource(usage_of([limited], []), []) == "nvidia.com/gpu"
    assert default_resource(usage_of([], []), []) == "cpu"


@pytest.mark.parametrize(("gpus", "chosen"), [("4", "nvidia.com/gpu"), ("0", "cpu")])
def test_a_job_that_wants_gpus_that_there_are_not_does_not_hide_the_queues(gpus: str, chosen: str) -> None:
    machine = {"status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": gpus}}}
    queue = {"metadata": {"name": "a"}}
    wanting = {"metadata": {"name": "g"}, "spec": {"queue": "a", "minResources": {"nvidia.com/gpu": "1"}}}
    assert default_resource(usage_of([queue], []), [machine]) == "cpu"
    assert default_resource(usage_of([queue], [wanting]), [machine]) == chosen


def test_amounts_are_short() -> None:
    assert shown(parse_quantity("2304Gi"), "memory") == "2.25Ti"
    assert shown(parse_quantity("1500m"), "cpu") == "1.5"
    assert shown(parse_quantity("0"), "memory") == "0"


_FLOWS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e"]), st.lists(st.sampled_from(["a", "b", "c", "d", "e", "x"]), max_size=3)
)


@given(
    _FLOWS, st.dictionaries(st.sampled_from(["f-a", "f-b", "f-c"]), st.sampled_from(["Completed", "Failed", "Running"]))
)
def test_every_job_of_a_flow_stands_below_one_that_it_comes_after(
    targets: dict[str, list[str]], states: dict[str, str]
) -> None:
    flow: Json = {
        "metadata": {"name": "f"},
        "spec": {"flows": [{"name": name, "dependsOn": {"targets": on}} for name, on in targets.items()]},
        "status": {"jobStatusList": [{"name": name, "state": state} for name, state in states.items()]},
    }
    nodes = nodes_of(flow)
    rows, circle = layers(nodes)
    depth = {name: at for at, row in enumerate(rows) for name in row}
    assert sorted([*depth, *circle]) == sorted(targets)
    for name in depth:
        assert all(depth[on] < depth[name] for on in targets[name] if on in depth)
    path: list[str] = []
    drawn: list[str] = []
    for node, lasts in tree(nodes):
        del path[len(lasts) :]
        assert not path or path[-1] in node.targets
        path.append(node.name)
        drawn.append(node.name)
    assert sorted(drawn) == sorted(depth)
    text = graph(flow, Terminal(width=80))
    assert all(name in text for name in targets)
    assert dot(flow).count("->") == sum(map(len, targets.values()))


@pytest.mark.parametrize(
    ("probe", "made", "last"),
    [
        ({"taskStatusList": [{"taskName": "w", "phase": "Running"}]}, "", "waits for its probe"),
        ({"httpGetList": [{"port": 80}], "tcpSocketList": [{"port": 81}]}, "", "waits for its probes"),
        ({"tcpSocketList": [{"port": 81}]}, "Running", "Running"),
        ({}, "", "waits for a"),
    ],
)
def test_probes_are_told_of_until_the_job_is_made(probe: Json, made: str, last: str) -> None:
    flow: Json = {
        "metadata": {"name": "f"},
        "spec": {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"], "probe": probe}}]},
        "status": {"jobStatusList": [{"name": "f-b", "state": made}]},
    }
    assert graph(flow, Terminal(width=80)).splitlines()[-1].endswith(last)


def test_a_name_with_quotes_is_a_name_to_graphviz() -> None:
    flow = {"metadata": {"name": 'a"b\\'}, "spec": {"flows": []}}
    assert dot(flow).splitlines()[0] == 'digraph "a\\"b\\\\" {'


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=3), min_size=1))
def test_every_domain_is_drawn_even_in_a_circle(members: dict[str, list[str]]) -> None:
    domains = {
        name: {
            "metadata": {"name": name},
            "spec": {
                "tier": 1,
                "members": [
                    *({"type": "HyperNode", "selector": {"exactMatch": {"name": one}}} for one in inside),
                    {"type": "Node", "selector": {"regexMatch": {"pattern": "gpu-.*"}}},
                ],
            },
        }
        for name, inside in members.items()
    }
    lines = tree_text(network_of(domains.values()), PLAIN).split("\n")[1:]
    first_words = [line.strip("│├└─ ").split(" ")[0] for line in lines]
    assert set(first_words) == set(members)
    assert sum("Nodes matching /gpu-.*/" in line for line in lines) == len(members)
