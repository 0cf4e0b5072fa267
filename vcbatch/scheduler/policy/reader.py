"""Reads a scheduler configuration file: which actions run, and which plugins decide in which tiers with which
arguments.

The file format is Volcano's (`volcano-scheduler.conf`), including the spelling of the switches, some of which start
with `enable` and others with `enabled`. Unlike in Volcano, which logs it and continues, an unknown name anywhere is an
error, because a configuration that isn't followed is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from vcbatch.api.names import POLICY_KEY
from vcbatch.api.resources import CONFIGMAPS
from vcbatch.api.spelling import nearest
from vcbatch.scheduler.actions.allocate import BACKFILL
from vcbatch.scheduler.framework.arguments import Arguments, ArgumentSpec, Errors, PolicyError, PolicyErrorDetail, shown
from vcbatch.scheduler.framework.metrics_section import MetricsSection
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import BUILT_IN, Extensions, PluginOption, Policy, Tier
from vcbatch.scheduler.framework.switches import Switch
from vcbatch.scheduler.policy.inversions import PREEMPT, RECLAIM, priority_inversions, share_inversions
from vcbatch.scheduler.policy.located import compose
from vcbatch.scheduler.policy.registry import UNSUPPORTED_ACTIONS, UNSUPPORTED_PLUGINS, Registry, registry_of

MAX_POLICY_BYTES = 1 << 20
_ALLOCATE = "allocate"


def parse_policy(
    text: str, *, plugins: Mapping[str, type[Plugin]] | None = None, extensions: Extensions = BUILT_IN
) -> Policy:
    """Read a scheduler configuration file; `plugins` adds custom plugins by name, `extensions` actions as well.

    Raises:
        PolicyError: all errors, each with its line: not YAML; an unknown key, action, plugin, switch or argument; a
            value of the wrong type; the same plugin or key twice; a combination that can't work.
    """
    if len(text) > MAX_POLICY_BYTES:
        raise PolicyError(f"policy: must be at most {MAX_POLICY_BYTES} characters, got {len(text)}")
    source = compose(text)
    if source.document is None:
        raise PolicyError(PolicyErrorDetail("policy: must be a mapping, and nothing is there", line=1, column=1))
    try:
        policy = build_policy(_mapping(source.document, "policy"), plugins=plugins, extensions=extensions)
    except PolicyError as error:
        raise source.placed(error) from error
    return replace(policy, warnings=source.placed(PolicyError(*policy.warnings)).errors)


def build_policy(
    document: Mapping[str, Any], *, plugins: Mapping[str, type[Plugin]] | None = None, extensions: Extensions = BUILT_IN
) -> Policy:
    """Read a scheduler configuration from a decoded document, where errors have no line. Raises `PolicyError`."""
    if plugins:
        extensions = replace(extensions, plugins={**extensions.plugins, **plugins})
    return _Reader(registry_of(extensions), extensions).policy(document)


def default_policy() -> Policy:
    """The default scheduler configuration."""
    return parse_policy(DEFAULT_POLICY)


def with_actions(policy: Policy, actions: str) -> Policy:
    """The scheduler configuration with these actions, a comma-separated string. Raises `PolicyError`."""
    reader = _Reader(registry_of(policy.extensions), policy.extensions)
    names = reader.actions(actions)
    reader.errors.check()
    return replace(policy, actions=names)


class _Reader:
    """Reads one scheduler configuration. Errors are collected in `errors`, with a harmless value read instead."""

    def __init__(self, registry: Registry, extensions: Extensions) -> None:
        self.errors = Errors()
        self._warnings = Errors()
        self._extensions = extensions
        self._named: set[str] = set()
        self._plugins, self._actions = registry

    def policy(self, document: Mapping[str, Any]) -> Policy:
        """The whole document. Raises `PolicyError` with every error."""
        if document.get("kind") == CONFIGMAPS.kind:
            raise PolicyError(f"policy: is a ConfigMap; must be the text that its data has as {POLICY_KEY}")
        self._known_keys(document, {"actions", "tiers", "configurations", "metrics"}, "policy")
        actions = self.actions(document.get("actions", ""))
        tiers = [
            self._tier(tier, f"policy.tiers[{i}]")
            for i, tier in enumerate(self._list(document.get("tiers"), "policy.tiers"))
        ]
        limiting = {option.name for tier in tiers for option in tier.plugins if option.enabled(Switch.ALLOCATABLE)}
        if {"capacity", "proportion"} <= limiting:
            self.errors.add("policy.tiers: capacity and proportion both say what queues deserve; name one of them")
        for i, tier in enumerate(tiers):
            self._refuse_idle(tier, actions, f"policy.tiers[{i}]")
        arguments, given = self._configurations(document.get("configurations"), actions)
        metrics = self.errors.of(lambda: MetricsSection.read(document.get("metrics")), None)
        if metrics is None:
            self._warn_of_blindness(tiers)
        if "enqueue" in actions and arguments[_ALLOCATE].get(BACKFILL):
            self._warn_of_gates(tiers)
        if PREEMPT in actions:
            for text in priority_inversions(tiers):
                self._warnings.add(text)
        if RECLAIM in actions:
            for text in share_inversions(tiers):
                self._warnings.add(text)
        self.errors.check()
        return Policy(
            actions=actions,
            tiers=tiers,
            action_arguments=arguments,
            given_arguments=given,
            metrics=metrics,
            given_metrics=document.get("metrics"),
            extensions=self._extensions,
            warnings=self._warnings.found,
        )

    def _warn_of_blindness(self, tiers: Sequence[Tier]) -> None:
        for i, tier in enumerate(tiers):
            for j, option in enumerate(tier.plugins):
                if option.cls.NEEDS_METRICS:
                    self._warnings.add(
                        f"policy.tiers[{i}].plugins[{j}].name: {option.name} should come with the section metrics "
                        "(type, address), without which it decides nothing"
                    )

    def _warn_of_gates(self, tiers: Sequence[Tier]) -> None:
        """Warn of plugins that limit admission beside conservative backfill: reservations are made only for admitted
        gangs, and no other gang is admitted before them."""
        for i, tier in enumerate(tiers):
            for j, option in enumerate(tier.plugins):
                if option.cls.TELLS_IMPOSSIBLE and option.enabled(Switch.JOB_ENQUEUED):
                    self._warnings.add(
                        f"policy.tiers[{i}].plugins[{j}].name: {option.name} should have {Switch.JOB_ENQUEUED}: false "
                        f"beside {BACKFILL}, which keeps no room for gangs that aren't admitted"
                    )

    def actions(self, value: object) -> Sequence[str]:
        """The names of a comma-separated string, in its order."""
        where = "policy.actions"
        if not isinstance(value, str):
            self.errors.add(f"{where}: must be a comma-separated string, got {shown(value)}")
            return ()
        names = [name.strip() for name in value.split(",") if name.strip()]
        if not names:
            self.errors.add(f"{where}: must name at least one action; supported: {', '.join(sorted(self._actions))}")
        for name in names:
            if name not in self._actions:
                self.errors.add(f"{where}: {self._unknown_action(name)}")
        return tuple(names)

    def _unknown_action(self, name: object) -> str:
        return _unknown("action", name, known=self._actions, unsupported=UNSUPPORTED_ACTIONS)

    def _mapping(self, value: object, where: str) -> Mapping[str, Any]:
        return self.errors.of(lambda: _mapping(value, where), {})

    def _list(self, value: object, where: str) -> Sequence[Any]:
        if value is None or isinstance(value, list):
            return cast("list[Any]", value or [])
        self.errors.add(f"{where}: must be a list, got {shown(value)}")
        return ()

    def _known_keys(self, given: Mapping[str, Any], allowed: set[str], where: str) -> None:
        for key in given:
            if key not in allowed:
                text = f"{where}: unknown key {shown(key)}; allowed: {', '.join(sorted(allowed))}"
                self.errors.add(text, key=f"{where}.{key}")

    def _tier(self, value: object, where: str) -> Tier:
        tier = self._mapping(value, where)
        self._known_keys(tier, {"plugins"}, where)
        plugins = [
            self._plugin(plugin, f"{where}.plugins[{i}]")
            for i, plugin in enumerate(self._list(tier.get("plugins"), f"{where}.plugins"))
        ]
        made = Tier(plugins=tuple(plugin for plugin in plugins if plugin is not None))
        self._refuse_conflicts(made, where)
        return made

    def _plugin(self, value: object, where: str) -> PluginOption | None:
        """The plugin; None if its name isn't valid."""
        try:
            option = _mapping(value, where)
        except PolicyError as error:
            self.errors.add(str(error))
            return None
        switches = self._switches(option, where)
        name = option.get("name")
        cls = self._plugins.get(name) if isinstance(name, str) else None
        if cls is None or not isinstance(name, str):
            unknown = _unknown("plugin", name, known=self._plugins, unsupported=UNSUPPORTED_PLUGINS)
            self.errors.add(f"{where}.name: {unknown}")
            return None
        if name in self._named:
            self.errors.add(f"{where}.name: plugin {name!r} is named twice")
        self._named.add(name)
        given, arguments = self._arguments(option, cls.ARGUMENTS, where)
        parsed = PluginOption(name=name, cls=cls, arguments=arguments, given=given, switches=switches)
        if parsed.enabled(Switch.HIERARCHY) and not cls.HIERARCHICAL:
            self.errors.add(f"{where}.{Switch.HIERARCHY}: plugin {name!r} has no hierarchical mode here; must be false")
        return parsed

    def _switches(self, option: Mapping[str, Any], where: str) -> dict[Switch, bool]:
        switches: dict[Switch, bool] = {}
        names = {switch.value for switch in Switch}
        for key, value in option.items():
            if key in ("name", "arguments"):
                continue
            if key not in names:
                allowed = f"name, arguments and the switches {', '.join(sorted(names))}"
                self.errors.add(f"{where}: unknown key {shown(key)}; allowed: {allowed}", key=f"{where}.{key}")
            elif not isinstance(value, bool):
                self.errors.add(f"{where}.{key}: must be true or false, got {shown(value)}")
            else:
                switches[Switch(key)] = value
        return switches

    def _arguments(
        self, entry: Mapping[str, Any], spec: ArgumentSpec, where: str
    ) -> tuple[Mapping[str, Any], Arguments]:
        """The arguments as written, and as read with defaults."""
        written = entry.get("arguments")
        given: Mapping[str, Any] = {} if written is None else self._mapping(written, f"{where}.arguments")
        values = self.errors.of(lambda: _read(spec, given, f"{where}.arguments"), {})
        for text in spec.doubts(values, f"{where}.arguments"):
            self._warnings.add(text)
        return given, values

    def _refuse_conflicts(self, tier: Tier, where: str) -> None:
        """Hierarchical shares and flat deserved quantities in the same tier contradict each other (as in Volcano)."""
        names = {plugin.name: plugin for plugin in tier.plugins}
        drf = names.get("drf")
        if drf is not None and drf.enabled(Switch.HIERARCHY) and "proportion" in names:
            self.errors.add(f"{where}.plugins: drf with {Switch.HIERARCHY} and proportion must not share a tier")

    def _refuse_idle(self, tier: Tier, actions: Sequence[str], where: str) -> None:
        for option in tier.plugins:
            if option.cls.ACTS_IN and option.cls.ACTS_IN not in actions:
                self.errors.add(
                    f"{where}.plugins: {option.name} acts in the action {option.cls.ACTS_IN}, which policy.actions "
                    "must name too"
                )

    def _configurations(
        self, value: object, actions: Sequence[str]
    ) -> tuple[dict[str, Arguments], dict[str, Mapping[str, Any]]]:
        by_action: dict[str, Arguments] = {}
        written: dict[str, Mapping[str, Any]] = {}
        for i, raw in enumerate(self._list(value, "policy.configurations")):
            where = f"policy.configurations[{i}]"
            entry = self._mapping(raw, where)
            self._known_keys(entry, {"name", "arguments"}, where)
            name = entry.get("name")
            action = self._actions.get(name) if isinstance(name, str) else None
            if action is None or not isinstance(name, str):
                self.errors.add(f"{where}.name: {self._unknown_action(name)}")
                continue
            if name in written:
                self.errors.add(f"{where}.name: action {name!r} is configured twice")
            if name not in actions:
                self._warnings.add(f"{where}.name: should be one of policy.actions, got {name!r}, which doesn't run")
            written[name], by_action[name] = self._arguments(entry, action.arguments, where)
        for name, action in self._actions.items():
            by_action.setdefault(name, action.arguments.read({}, name))
        return by_action, written


def _read(spec: ArgumentSpec, given: Mapping[str, Any], where: str) -> Arguments:
    try:
        return spec.read(given, where)
    except PolicyError:
        raise
    except Exception as error:  # the reader of a custom plugin may raise anything
        raise PolicyError(f"{where}: what reads them raised {type(error).__name__}: {shown(str(error))}") from error


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise PolicyError(f"{where}: must be a mapping, got {shown(value)}")


def _unknown(kind: str, name: object, *, known: Mapping[str, object], unsupported: frozenset[str]) -> str:
    allowed = f"supported: {', '.join(sorted(known))}"
    if isinstance(name, str) and name in unsupported and name not in known:
        return f"{kind} {name!r} is one of Volcano's that vcbatch doesn't support; {allowed}"
    meant = nearest(name, known) if isinstance(name, str) else ""
    return f"unknown {kind} {shown(name)}{f' (did you mean {meant!r}?)' if meant else ''}; {allowed}"


DEFAULT_POLICY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
"""The default scheduler configuration: the one that Volcano's installer writes."""
