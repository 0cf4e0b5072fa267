"""The scheduling policy: which actions run, which plugins decide, in which tiers, with which arguments."""

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
    """Plugins and actions of the user's own, by the names that a policy uses."""

    plugins: Mapping[str, type[Plugin]] = field(default_factory=dict[str, type[Plugin]])
    actions: Mapping[str, Action] = field(default_factory=dict[str, Action])


BUILT_IN = Extensions()
"""Nothing of the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOption:
    """One plugin of a tier. `switches` has those that the file names; see `enabled` for the others. `given` are the
    arguments as they are written, `arguments` what the plugin reads, with defaults."""

    name: str
    cls: type[Plugin]
    arguments: Arguments
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    switches: Mapping[Switch, bool] = field(default_factory=dict[Switch, bool])

    def enabled(self, switch: Switch) -> bool:
        """Whether the plugin takes part in what `switch` gates; a switch that isn't named is on, save two."""
        return self.switches.get(switch, switch not in DEFAULT_OFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Plugins of one strength: an earlier tier is heard first."""

    plugins: Sequence[PluginOption]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A checked policy; only `vcbatch.scheduler.policy.reader` makes one."""

    actions: Sequence[str]
    tiers: Sequence[Tier]
    action_arguments: Mapping[str, Arguments]
    given_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By action, as they are written."""
    metrics: MetricsSection | None = None
    given_metrics: Mapping[str, Any] | None = None
    """As it is written."""
    """Where the real load of nodes is measured; None where it isn't."""
    extensions: Extensions = BUILT_IN
    warnings: Sequence[PolicyErrorDetail] = ()
    """What is accepted, as Volcano accepts it, and does something else than one would think."""

    @property
    def by_queue(self) -> bool:
        """Whether some plugin filters or scores nodes by a task's queue."""
        return any(plugin.cls.BY_QUEUE for tier in self.tiers for plugin in tier.plugins)

    def ignored_resources(self, facts: Facts) -> frozenset[str]:
        """The resources that some plugin sees to, so that they count for nobody else."""
        every = (o.cls.ignored_resources(o.arguments, facts) for tier in self.tiers for o in tier.plugins)
        return frozenset[str]().union(*every)

    @property
    def devices_by_claim(self) -> bool:
        """Whether some plugin sees to it that pods get their devices by claim."""
        return any(o.cls.devices_by_claim(o.arguments) for tier in self.tiers for o in tier.plugins)

    @property
    def config_maps(self) -> frozenset[tuple[str, str]]:
        """The ConfigMaps that plugins read, as namespace and name."""
        every = (option.cls.config_maps(option.arguments) for tier in self.tiers for option in tier.plugins)
        return frozenset[tuple[str, str]]().union(*every)
