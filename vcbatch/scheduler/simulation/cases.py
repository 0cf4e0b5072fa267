"""Recorded decisions: the objects and the scheduler configuration of a unit-test case or of a random cluster, by file.

A case has `actions` and `tiers`, in which a switch that isn't listed in `enabled` is off; a random cluster has a whole
configuration file as text in `policy`, in which a switch that isn't named is on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, cast

from vcbatch.api.resources import HYPERNODES
from vcbatch.scheduler.framework.arguments import PolicyError, shown
from vcbatch.scheduler.framework.policy import Policy
from vcbatch.scheduler.framework.switches import Switch
from vcbatch.scheduler.model.share import WHOLE, ShardingMode, Share
from vcbatch.scheduler.policy.reader import build_policy, parse_policy
from vcbatch.scheduler.simulation.world import World, WorldError

Json = Mapping[str, Any]

_ABOUT = frozenset(
    {"id", "name", "source", "actions", "tiers", "configurations", "policy", "want", "shardingMode", "nodesInShard"}
)
_TIERS, _MEMBERS = "hyperNodesByTier", "hyperNodeMembers"
_MODE, _SHARD = "shardingMode", "nodesInShard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One recorded decision: the objects, and the scheduler configuration with which it was made."""

    world: World
    policy: Policy
    share: Share = WHOLE

    @staticmethod
    def recognises(document: Json) -> bool:
        """Whether the document has one of the two formats: Kubernetes objects have a `kind`."""
        return "kind" not in document and ("tiers" in document or "policy" in document)

    @staticmethod
    def label(document: Json) -> tuple[str, str]:
        """The key of its name, `id` or `name`, and the name."""
        key = "id" if "id" in document else "name"
        return key, str(document.get(key, ""))

    @staticmethod
    def read(document: Json, *, policy: Policy | None = None) -> Case:
        """Decode the document; a given `policy` replaces its own.

        Raises:
            WorldError: an invalid object, or a list of objects that the scheduler doesn't read.
            PolicyError: its scheduler configuration can't be used.
        """
        lists = {k: _list(v, k) for k, v in document.items() if k not in _ABOUT | {_TIERS, _MEMBERS, _MODE, _SHARD}}
        for key in (_TIERS, _MEMBERS):
            if not isinstance(document.get(key, {}), (Mapping, NoneType)):
                raise WorldError(f"{key}: must be a mapping to lists of names, got {shown(document[key])}")
        if document.get(_MEMBERS):  # the topology that the decision was based on, whatever the objects are
            lists["hyperNodes"] = _hyper_nodes(document)
        if _MODE in document:
            lists["nodeShards"] = [_shard(document)]
        policy = policy or read_policy(document)
        return Case(world=World.read(lists), policy=policy, share=_share(document))


def read_policy(document: Json) -> Policy:
    """The scheduler configuration of a document of either format. Raises `PolicyError`."""
    text = document.get("policy")
    if isinstance(text, str):
        return parse_policy(text)
    if text is not None:
        raise PolicyError(f"policy: must be the text of a policy file, got {shown(text)}")
    actions = document.get("actions") or ()
    if isinstance(actions, str):
        raise PolicyError("actions: a recorded case has a list; a policy file is given as --policy FILE")
    if not isinstance(actions, list):
        raise PolicyError(f"actions: must be a list, got {actions!r}")
    return build_policy(
        {
            "actions": ", ".join(str(action) for action in cast("list[object]", actions)),
            "tiers": [{"plugins": [_plugin(p) for p in _plugins(tier)]} for tier in _tiers(document)],
            "configurations": document.get("configurations"),
        }
    )


def _tiers(document: Json) -> Sequence[Any]:
    tiers: object = document.get("tiers") or []
    if not isinstance(tiers, list):
        raise PolicyError(f"tiers: must be a list, got {tiers!r}")
    return cast("Sequence[Any]", tiers)


def _plugins(tier: object) -> Sequence[Any]:
    plugins = cast("Json", tier).get("plugins") if isinstance(tier, Mapping) else None
    if not isinstance(plugins, list):
        raise PolicyError(f"tiers: must be mappings with a list `plugins`, got {tier!r}")
    return cast("Sequence[Any]", plugins)


def _plugin(option: object) -> Json:
    """The entry in the form of a configuration file, with every switch set."""
    if not isinstance(option, Mapping):
        raise PolicyError(f"plugins: must be mappings, got {option!r}")
    given = cast("Json", option)
    listed: object = given.get("enabled") or []
    if not isinstance(listed, list):
        raise PolicyError(f"plugin {given.get('name')!r}: enabled: must be a list of switches, got {shown(listed)}")
    enabled = {str(name) for name in cast("list[object]", listed)}
    unknown = sorted(enabled - {switch.value for switch in Switch})
    if unknown:
        raise PolicyError(f"plugin {given.get('name')!r}: unknown switch {unknown[0]!r}")
    switches = {switch.value: switch.value in enabled for switch in Switch}
    return {"name": given.get("name"), "arguments": given.get("arguments") or {}, **switches}


def _list(value: object, key: str) -> Sequence[Json]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise WorldError(f"{key}: must be a list, got {type(value).__name__}")
    return cast("Sequence[Json]", value)


def _hyper_nodes(document: Json) -> Sequence[Json]:
    """HyperNode objects from the names by tier and the nodes that each covers: a HyperNode that covers all nodes of a
    lower one has that as a member."""
    tiers = cast("Mapping[str, Sequence[str]]", document.get(_TIERS) or {})
    covers = cast("Mapping[str, Sequence[str]]", document[_MEMBERS])
    called = {spec["tier"]: spec.get("tierName") or "" for spec in _specs(document)}
    below: dict[str, frozenset[str]] = {}
    made: list[Json] = []
    for tier in sorted(tiers, key=int):
        names = sorted(tiers[tier])
        for name in names:
            nodes = frozenset(covers.get(name, ()))
            inner = sorted(lower for lower, covered in below.items() if covered and covered <= nodes)
            direct = sorted(nodes.difference(*(below[lower] for lower in inner)))
            members = [("HyperNode", lower) for lower in inner] + [("Node", node) for node in direct]
            made.append(_hyper_node(name, int(tier), called.get(int(tier), ""), members))
        for name in names:
            nodes = frozenset(covers.get(name, ()))
            below = {lower: covered for lower, covered in below.items() if not covered <= nodes}
            below[name] = nodes
    return made


def _specs(document: Json) -> Sequence[Json]:
    """The specs of the HyperNode objects given as well, for the names of their tiers."""
    return [cast("Json", one["spec"]) for one in cast("Sequence[Json]", document.get("hyperNodes") or ())]


def _hyper_node(name: str, tier: int, tier_name: str, members: Sequence[tuple[str, str]]) -> Json:
    return {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "tierName": tier_name,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": of}}} for kind, of in members],
        },
    }


def _share(document: Json) -> Share:
    given = document.get(_MODE)
    if given is None:
        return WHOLE
    try:
        return Share(mode=ShardingMode(given))
    except ValueError:
        allowed = ", ".join(ShardingMode)
        raise WorldError(f"{_MODE}: got {given!r}; allowed: {allowed}") from None


def _shard(document: Json) -> Json:
    """The scheduler's NodeShard with the given nodes."""
    return {"metadata": {"name": WHOLE.shard}, "spec": {"nodesDesired": list(document.get(_SHARD) or ())}}
