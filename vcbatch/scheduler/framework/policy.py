"""The scheduler configuration: which actions run, and which plugins decide in which tiers with which arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.scheduler.framework.action import Action
from vcbatch.scheduler.framework.arguments import Arguments, PolicyErrorDetail
from vcbatch.scheduler.framework.metrics_section import MetricsSection
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.switches import DEFAULT_OFF, Switch
from vcbatch.scheduler.model.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """Custom plugins and actions, by the names that a scheduler configuration uses."""

    plugins: Mapping[str, type[Plugin]] = field(default_factory=dict[str, type[Plugin]])
    actions: Mapping[str, Action] = field(default_factory=dict[str, Action])


BUILT_IN = Extensions()
"""No custom plugins and actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOption:
    """One plugin of a tier. `switches` has those that the file names; see `enabled` for the others. `given` are the
    arguments as written, `arguments` those that the plugin reads, with defaults."""

    name: str
    cls: type[Plugin]
    arguments: Arguments
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    switches: Mapping[Switch, bool] = field(default_factory=dict[Switch, bool])

    def enabled(self, switch: Switch) -> bool:
        """Whether the methods that `switch` controls are enabled for the plugin; unnamed switches are on, except
        two."""
        return self.switches.get(switch, switch not in DEFAULT_OFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Plugins of one tier; for some decisions the first tier with a result decides."""

    plugins: Sequence[PluginOption]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A validated scheduler configuration; only `vcbatch.scheduler.policy.reader` creates one."""

    actions: Sequence[str]
    tiers: Sequence[Tier]
    action_arguments: Mapping[str, Arguments]
    given_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By action, the arguments as written."""
    metrics: MetricsSection | None = None
    given_metrics: Mapping[str, Any] | None = None
    """The section `metrics` as written."""
    """The source of the nodes' actual load is `metrics`; None if there is none."""
    extensions: Extensions = BUILT_IN
    warnings: Sequence[PolicyErrorDetail] = ()
    """Warnings: settings that are accepted, as by Volcano, and have another effect than expected."""

    @property
    def by_queue(self) -> bool:
        """Whether some plugin filters or scores nodes by a task's queue."""
        return any(plugin.cls.BY_QUEUE for tier in self.tiers for plugin in tier.plugins)

    def ignored_resources(self, facts: Facts) -> frozenset[str]:
        """The resources that some plugin accounts for itself, so that all others ignore them."""
        every = (o.cls.ignored_resources(o.arguments, facts) for tier in self.tiers for o in tier.plugins)
        return frozenset[str]().union(*every)

    @property
    def devices_by_claim(self) -> bool:
        """Whether some plugin places pods by their device claims."""
        return any(o.cls.devices_by_claim(o.arguments) for tier in self.tiers for o in tier.plugins)

    @property
    def config_maps(self) -> frozenset[tuple[str, str]]:
        """The ConfigMaps that plugins read, as namespace and name."""
        every = (option.cls.config_maps(option.arguments) for tier in self.tiers for option in tier.plugins)
        return frozenset[tuple[str, str]]().union(*every)
