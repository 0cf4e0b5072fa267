"""What our scheduler makes of a policy that stands in a ConfigMap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vcbatch.cli.inventory.model import Maker, PolicyEntry

if TYPE_CHECKING:
    from vcbatch.scheduler.framework.arguments import PolicyFault


def judged(namespace: str, name: str, key: str, maker: Maker, text: str | None) -> PolicyEntry:
    """The policy with its faults; not judged where the scheduler isn't installed beside this command."""
    entry = PolicyEntry(namespace=namespace, name=name, key=key, maker=maker, faults=None)
    if text is None:
        return replace(entry, faults=(f"ConfigMap {namespace}/{name} has no key {key}",))
    try:
        from vcbatch.scheduler import PolicyError, parse_policy
        from vcbatch.scheduler.framework.metrics_section import MetricsType
    except ModuleNotFoundError:  # numpy, which vcbatch[scheduler] brings
        return entry
    try:
        policy = parse_policy(text)
    except PolicyError as error:
        return replace(entry, faults=tuple(map(_placed, error.faults)))
    measured = policy.metrics is not None and policy.metrics.type is MetricsType.LOCAL
    return replace(entry, faults=(), warnings=tuple(map(_placed, policy.warnings)), needs_metrics_api=measured)


def _placed(fault: PolicyFault) -> str:
    return f"line {fault.line}: {fault.text}" if fault.line else fault.text
