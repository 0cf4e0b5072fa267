"""Prints a scheduler configuration with all its defaults; reading it again gives the same configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import yaml

from vcbatch.scheduler.framework.arguments import Arguments, ArgumentSpec
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import PluginOption, Policy
from vcbatch.scheduler.framework.switches import HOOKS, Switch
from vcbatch.scheduler.policy.registry import steps

Json = Mapping[str, Any]

_CREDENTIALS: Final = re.compile(r"://[^/?#\s]*@")


def effective(policy: Policy, *, metrics: bool = True) -> str:
    """The full scheduler configuration file: every argument with its value, and every switch that controls a method of
    its plugin. Without `metrics`, the section of that name, which may have passwords, is left out, and so are those in
    URLs."""
    document: dict[str, Any] = {
        "actions": ", ".join(policy.actions),
        "tiers": [{"plugins": [_plugin(option) for option in tier.plugins]} for tier in policy.tiers],
    }
    configurations = [
        {"name": name, "arguments": arguments}
        for name, action in steps(policy)
        if (
            arguments := _arguments(
                action.arguments, policy.action_arguments[name], policy.given_arguments.get(name, {})
            )
        )
    ]
    if configurations:
        document["configurations"] = configurations
    if metrics and policy.given_metrics is not None:
        document["metrics"] = dict(policy.given_metrics)
    shown = document if metrics else _without_credentials(document)
    return cast("str", cast("Any", yaml).safe_dump(shown, sort_keys=False, width=120))


def _without_credentials(value: Any) -> Any:
    """The value with user names and passwords removed from URLs."""
    match value:
        case str():
            return _CREDENTIALS.sub("://", value)
        case Mapping():
            return {key: _without_credentials(each) for key, each in cast("Json", value).items()}
        case list() | tuple():
            return [_without_credentials(each) for each in cast("list[Any]", value)]
        case _:
            return value


def _plugin(option: PluginOption) -> Json:
    entry: dict[str, Any] = {"name": option.name}
    for switch in Switch:
        if switch in option.switches or gates(switch, option.cls):
            entry[switch.value] = option.enabled(switch)
    arguments = _arguments(option.cls.ARGUMENTS, option.arguments, option.given)
    if arguments:
        entry["arguments"] = arguments
    return entry


def _arguments(spec: ArgumentSpec, values: Arguments, given: Json) -> dict[str, Any]:
    """The arguments to print; structured ones only if they are given, because their defaults have no spelling."""
    named = {name: value for name, value in values.items() if name not in spec.structured}
    return {**named, **{str(name): value for name, value in given.items() if str(name) in spec.structured}}


def gates(switch: Switch, plugin: type[Plugin]) -> bool:
    """Whether the switch controls a method that this plugin overrides."""
    if switch is Switch.HIERARCHY:
        return plugin.HIERARCHICAL
    return any(getattr(plugin, hook) is not getattr(Plugin, hook) for hook in HOOKS.get(switch, ()))
