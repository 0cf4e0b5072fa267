"""Validates a scheduler configuration from a ConfigMap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vcbatch.cli.inventory.model import Maker, PolicyEntry

if TYPE_CHECKING:
    from vcbatch.scheduler.framework.arguments import PolicyErrorDetail


def validated(namespace: str, name: str, key: str, maker: Maker, text: str | None) -> PolicyEntry:
    """The configuration with its errors; not validated where the scheduler isn't installed with this command."""
    entry = PolicyEntry(namespace=namespace, name=name, key=key, maker=maker, errors=None)
    if text is None:
        return replace(entry, errors=(f"ConfigMap {namespace}/{name} has no key {key}",))
    try:
        from vcbatch.scheduler import PolicyError, parse_policy
        from vcbatch.scheduler.framework.metrics_section import MetricsType
    except ModuleNotFoundError:  # numpy, in an incomplete installation
        return entry
    try:
        policy = parse_policy(text)
    except PolicyError as error:
        return replace(entry, errors=tuple(map(_placed, error.errors)))
    measured = policy.metrics is not None and policy.metrics.type is MetricsType.LOCAL
    return replace(entry, errors=(), warnings=tuple(map(_placed, policy.warnings)), needs_metrics_api=measured)


def _placed(error: PolicyErrorDetail) -> str:
    return f"line {error.line}: {error.text}" if error.line else error.text
