"""The plugins and actions that scheduler configurations may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vcbatch.scheduler.actions import ACTIONS, UNSUPPORTED_ACTIONS
from vcbatch.scheduler.framework.action import Action
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import Extensions, Policy
from vcbatch.scheduler.plugins import PLUGINS, UNSUPPORTED_PLUGINS
from vcbatch.scheduler.plugins.checked import checked

__all__ = ["UNSUPPORTED_ACTIONS", "UNSUPPORTED_PLUGINS", "Registry", "registry_of", "steps"]


class Registry(NamedTuple):
    """Plugins and actions by the names that a scheduler configuration uses."""

    plugins: Mapping[str, type[Plugin]]
    actions: Mapping[str, Action]


def registry_of(extensions: Extensions) -> Registry:
    """The built-in plugins and actions together with these custom ones."""
    own = {name: checked(cls) for name, cls in extensions.plugins.items()}
    return Registry({**PLUGINS, **own}, {**ACTIONS, **extensions.actions})


def steps(policy: Policy) -> Sequence[tuple[str, Action]]:
    """The actions of the scheduler configuration in their order, with their names."""
    known = {**ACTIONS, **policy.extensions.actions}
    return [(name, known[name]) for name in policy.actions]
