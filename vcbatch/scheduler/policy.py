"""The scheduling policy: which actions run, which plugins decide, in which tiers, with which arguments.

The file format is Volcano's (`volcano-scheduler.conf`), including the spelling of the switches, of which some start
with `enable` and others with `enabled`. Unlike Volcano, which logs and goes on, an unknown name anywhere is an error:
a policy that isn't followed is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from vcbatch.scheduler.actions import ACTIONS, UNSUPPORTED_ACTIONS
from vcbatch.scheduler.arguments import ArgumentValue, PolicyError
from vcbatch.scheduler.plugins import PLUGINS, UNSUPPORTED_PLUGINS
from vcbatch.scheduler.plugins.base import Plugin
from vcbatch.scheduler.switches import DEFAULT_OFF, Switch

__all__ = ["DEFAULT_POLICY", "PluginOption", "Policy", "PolicyError", "Tier"]

MAX_POLICY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOption:
    """One plugin of a tier. `switches` has those that the file names; see `enabled` for the others."""

    name: str
    cls: type[Plugin]
    arguments: Mapping[str, ArgumentValue]
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
    """A checked policy; only `parse` and `build` make one."""

    actions: Sequence[str]
    tiers: Sequence[Tier]
    action_arguments: Mapping[str, Mapping[str, ArgumentValue]]

    @staticmethod
    def parse(text: str, *, plugins: Mapping[str, type[Plugin]] | None = None) -> Policy:
        """Read a policy file; `plugins` adds plugins of the user's own by name.

        Raises:
            PolicyError: not YAML, a key, action, plugin, switch or argument that isn't known, a value of the wrong
                type, the same plugin twice, or a combination that can't work.
        """
        if len(text) > MAX_POLICY_BYTES:
            raise PolicyError(f"policy: must be at most {MAX_POLICY_BYTES} characters, got {len(text)}")
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise PolicyError(f"policy: not valid YAML: {error}") from error
        return Policy.build(_mapping(document, "policy"), plugins=plugins)

    @staticmethod
    def build(document: Mapping[str, Any], *, plugins: Mapping[str, type[Plugin]] | None = None) -> Policy:
        """The same from a decoded document."""
        _known_keys(document, {"actions", "tiers", "configurations"}, "policy")
        known = {**PLUGINS, **(plugins or {})}
        actions = _actions(document.get("actions", ""))
        tiers = [
            _tier(_mapping(tier, f"policy.tiers[{i}]"), known, f"policy.tiers[{i}]")
            for i, tier in enumerate(_list(document.get("tiers"), "policy.tiers"))
        ]
        _refuse_doubles(tiers)
        return Policy(actions=actions, tiers=tiers, action_arguments=_configurations(document.get("configurations")))


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise PolicyError(f"{where}: must be a mapping, got {value!r}")


def _list(value: object, where: str) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, list):
        return cast("list[Any]", value)
    raise PolicyError(f"{where}: must be a list, got {value!r}")


def _known_keys(given: Mapping[str, Any], allowed: set[str], where: str) -> None:
    for key in given:
        if key not in allowed:
            raise PolicyError(f"{where}: unknown key {key!r}; allowed: {', '.join(sorted(allowed))}")


def _unknown(kind: str, name: object, *, known: Mapping[str, object], unsupported: frozenset[str]) -> str:
    allowed = f"supported: {', '.join(sorted(known))}"
    if name in unsupported:
        return f"{kind} {name!r} is one of Volcano's that vcbatch doesn't support; {allowed}"
    return f"unknown {kind} {name!r}; {allowed}"


def _actions(value: object) -> Sequence[str]:
    if not isinstance(value, str):
        raise PolicyError(f"policy.actions: must be a comma-separated string, got {value!r}")
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise PolicyError(f"policy.actions: must name at least one action; supported: {', '.join(sorted(ACTIONS))}")
    for name in names:
        if name not in ACTIONS:
            raise PolicyError(
                f"policy.actions: {_unknown('action', name, known=ACTIONS, unsupported=UNSUPPORTED_ACTIONS)}"
            )
    return tuple(names)


def _tier(tier: Mapping[str, Any], known: Mapping[str, type[Plugin]], where: str) -> Tier:
    _known_keys(tier, {"plugins"}, where)
    return Tier(
        plugins=tuple(
            _plugin(_mapping(plugin, f"{where}.plugins[{i}]"), known, f"{where}.plugins[{i}]")
            for i, plugin in enumerate(_list(tier.get("plugins"), f"{where}.plugins"))
        )
    )


def _plugin(option: Mapping[str, Any], known: Mapping[str, type[Plugin]], where: str) -> PluginOption:
    name = option.get("name")
    cls = known.get(name) if isinstance(name, str) else None
    if cls is None or not isinstance(name, str):
        raise PolicyError(f"{where}.name: {_unknown('plugin', name, known=known, unsupported=UNSUPPORTED_PLUGINS)}")
    switches: dict[Switch, bool] = {}
    names = {switch.value for switch in Switch}
    for key, value in option.items():
        if key in ("name", "arguments"):
            continue
        if key not in names:
            raise PolicyError(
                f"{where}: unknown key {key!r}; allowed: name, arguments and the switches {', '.join(sorted(names))}"
            )
        if not isinstance(value, bool):
            raise PolicyError(f"{where}.{key}: must be true or false, got {value!r}")
        switches[Switch(key)] = value
    given = option.get("arguments")
    arguments = cls.ARGUMENTS.read({} if given is None else _mapping(given, f"{where}.arguments"), f"{where}.arguments")
    parsed = PluginOption(name=name, cls=cls, arguments=arguments, switches=switches)
    if parsed.enabled(Switch.HIERARCHY) and not cls.HIERARCHICAL:
        raise PolicyError(f"{where}.{Switch.HIERARCHY}: plugin {name!r} has no hierarchical mode here; must be false")
    return parsed


def _refuse_doubles(tiers: Sequence[Tier]) -> None:
    seen: set[str] = set()
    for i, tier in enumerate(tiers):
        for j, plugin in enumerate(tier.plugins):
            if plugin.name in seen:
                raise PolicyError(f"policy.tiers[{i}].plugins[{j}].name: plugin {plugin.name!r} is named twice")
            seen.add(plugin.name)


def _configurations(value: object) -> Mapping[str, Mapping[str, ArgumentValue]]:
    by_action: dict[str, Mapping[str, ArgumentValue]] = {}
    for i, raw in enumerate(_list(value, "policy.configurations")):
        where = f"policy.configurations[{i}]"
        entry = _mapping(raw, where)
        _known_keys(entry, {"name", "arguments"}, where)
        name = entry.get("name")
        action = ACTIONS.get(name) if isinstance(name, str) else None
        if action is None or not isinstance(name, str):
            raise PolicyError(
                f"{where}.name: {_unknown('action', name, known=ACTIONS, unsupported=UNSUPPORTED_ACTIONS)}"
            )
        given = entry.get("arguments")
        by_action[name] = action.arguments.read(
            {} if given is None else _mapping(given, f"{where}.arguments"), f"{where}.arguments"
        )
    for name, action in ACTIONS.items():
        by_action.setdefault(name, action.arguments.read({}, name))
    return by_action


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
"""The policy where none is given: the one that Volcano's installer writes."""
