"""Random cluster states with inter-pod affinity and anti-affinity."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.oracle.rules import HARD, SOFT
from tests.oracle.thin import thin_policy, thin_world

Json = dict[str, Any]
PLACES = ("zone", "zone", "rack", "kubernetes.io/hostname")
SPACES: dict[str, dict[str, str]] = {"ns": {"team": "a"}, "blue": {"team": "b"}, "green": {}}
"""Namespaces with their labels."""

KINDS = [(side, how) for side in ("podAffinity", "podAntiAffinity") for how in (HARD, SOFT)]
_HOSTS = [("podAffinity", HARD), ("podAffinity", HARD), ("podAffinity", SOFT)]
_GUESTS = [("podAffinity", SOFT), ("podAntiAffinity", SOFT)]

_EVERY = {"labelSelector": {}}
_SELECTORS: list[Json] = [
    {"labelSelector": {"matchLabels": {"role": "t0"}}},
    {"labelSelector": {"matchLabels": {"role": "t1"}}},
    _EVERY,
    {"labelSelector": {"matchLabels": {"gang": "g0"}}},
    {"labelSelector": {"matchLabels": {"gang": "g1"}}},
    {"labelSelector": {"matchExpressions": [{"key": "gang", "operator": "In", "values": ["g0", "g2"]}]}},
    {"labelSelector": {"matchExpressions": [{"key": "role", "operator": "NotIn", "values": ["t0"]}]}},
    {"labelSelector": {"matchExpressions": [{"key": "calm", "operator": "Exists"}]}},
    {"labelSelector": {"matchExpressions": [{"key": "calm", "operator": "DoesNotExist"}]}},
    _EVERY,
    {"labelSelector": None},
    {**_EVERY, "matchLabelKeys": ["gang"]},
    {**_EVERY, "mismatchLabelKeys": ["gang"]},
    {**_EVERY, "matchLabelKeys": ["role"], "mismatchLabelKeys": ["calm"]},
]
_WHERE: list[Json] = [
    {},
    {},
    {},
    {"namespaces": ["blue"]},
    {"namespaces": ["ns", "green"]},
    {"namespaceSelector": {}},
    {"namespaceSelector": {"matchLabels": {"team": "b"}}},
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "green"}}, "namespaces": ["ns"]},
    {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
]


@st.composite
def related(draw: st.DrawFn) -> tuple[Json, Json]:
    """Nodes of which some lack labels, gangs in several namespaces, and for each gang terms of up to two kinds. In some
    states one gang runs already, and its preferred terms attract the others."""
    guests = draw(st.integers(0, 2)) == 0
    world = thin_world(draw, guests=guests)
    world["namespaces"] = [{"metadata": {"name": name, "labels": labels}} for name, labels in SPACES.items()]
    for node in world["nodes"]:
        labels = node["metadata"]["labels"]
        labels["rack"] = draw(st.sampled_from(["x", "y"]))
        if lacks := draw(st.sampled_from([None, "zone", "zone", "rack"])):
            del labels[lacks]
    for group in world["podGroups"]:
        name, space = group["metadata"]["name"], draw(st.sampled_from(["ns", "ns", "blue", "green"]))
        group["metadata"]["namespace"] = space
        kinds = KINDS if not guests else _HOSTS if name == "g0" else _GUESTS
        affinity = draw(_affinities(kinds)) if draw(st.integers(0, 3)) else {}
        calm = draw(st.booleans())
        for pod in world["pods"]:
            if pod["metadata"]["labels"]["gang"] == name:
                pod["metadata"]["namespace"] = space
                pod["metadata"]["labels"] |= {"calm": "yes"} if calm else {}
                pod["spec"]["affinity"] = affinity
    return world, thin_policy(draw)


@st.composite
def _affinities(draw: st.DrawFn, kinds: list[tuple[str, str]]) -> Json:
    def term() -> Json:
        return {
            **draw(st.sampled_from(_SELECTORS)),
            **draw(st.sampled_from(_WHERE)),
            "topologyKey": draw(st.sampled_from(PLACES)),
        }

    out: Json = {}
    for side, how in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2)):
        found = [term() for _ in range(draw(st.sampled_from([1, 1, 2])))]
        soft = [{"weight": draw(st.integers(1, 4)), "podAffinityTerm": one} for one in found] if how == SOFT else found
        out.setdefault(side, {})[how] = soft
    return out
