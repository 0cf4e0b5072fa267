"""Features of the scheduler that are on and need permissions of their own."""

from __future__ import annotations

from collections.abc import Collection

from vcbatch.api.names import DEVICE_CONFIG_MAP
from vcbatch.api.program_rights import Feature
from vcbatch.scheduler import Policy
from vcbatch.scheduler.actions.names import EVICTING
from vcbatch.scheduler.framework.metrics_section import MetricsType

_ALSO_EVICTS = "shuffle"
_LOCKING = ("deviceshare", "deviceshare.NodeLockEnable")


def features_on(policy: Policy | None, *, queue_gates: bool, sharded: bool) -> Collection[Feature]:
    """The features that the options and the policy in force turn on; `policy` is None before the first one is
    loaded."""
    on = {Feature.QUEUE_GATES: queue_gates, Feature.SHARDED: sharded}
    if policy is not None:
        metrics = policy.metrics.type if policy.metrics is not None else None
        on |= {
            Feature.EVICTION: not {*EVICTING, _ALSO_EVICTS}.isdisjoint(policy.actions),
            Feature.NODE_LOCKS: _locks_nodes(policy),
            # For a ConfigMap of another name the administrator grants the permission.
            Feature.CARDS: any(name == DEVICE_CONFIG_MAP for _, name in policy.config_maps),
            Feature.NODE_METRICS: metrics is MetricsType.LOCAL,
            Feature.CUSTOM_METRICS: metrics is MetricsType.PROMETHEUS_ADAPT,
        }
    return [feature for feature, is_on in on.items() if is_on]


def _locks_nodes(policy: Policy) -> bool:
    plugin, argument = _LOCKING
    options = (option for tier in policy.tiers for option in tier.plugins)
    return any(option.name == plugin and option.arguments[argument] for option in options)
