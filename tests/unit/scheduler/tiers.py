"""Policies of few tiers, as text."""

from __future__ import annotations


def policy_of(*tiers: str, actions: str) -> str:
    """A policy with these actions and a tier for each list of plugins, separated by spaces; each plugin has a line of
    its own."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        lines += [f"  - {{name: {plugin}}}" for plugin in tier.split()]
    return "\n".join(lines) + "\n"


def with_option_off(policy: str, plugin: str, option: str) -> str:
    """The policy with this option of the plugin set to false."""
    return policy.replace(f"name: {plugin}}}", f"name: {plugin}, {option}: false}}")
