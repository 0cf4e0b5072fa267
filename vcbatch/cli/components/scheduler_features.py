"""Which features of the scheduler are on, as far as they need rights of their own."""

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
    """Those of the policy in force, None where there is none yet, and of the options."""
    on = {Feature.QUEUE_GATES: queue_gates, Feature.SHARDED: sharded}
    if policy is not None:
        metrics = policy.metrics.type if policy.metrics is not None else None
        on |= {
            Feature.EVICTION: not {*EVICTING, _ALSO_EVICTS}.isdisjoint(policy.actions),
            Feature.NODE_LOCKS: _locks_nodes(policy),
            # One of another name is granted by whoever chose it.
            Feature.CARDS: any(name == DEVICE_CONFIG_MAP for _, name in policy.config_maps),
            Feature.NODE_METRICS: metrics is MetricsType.LOCAL,
            Feature.CUSTOM_METRICS: metrics is MetricsType.PROMETHEUS_ADAPT,
        }
    return [feature for feature, is_on in on.items() if is_on]


def _locks_nodes(policy: Policy) -> bool:
    plugin, argument = _LOCKING
    options = (option for tier in policy.tiers for option in tier.plugins)
    return any(option.name == plugin and option.arguments[argument] for option in options)
