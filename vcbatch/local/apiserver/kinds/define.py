"""Helpers that define a built-in resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcbatch.api import name_rules

STATUS: Mapping[str, Sequence[str]] = {"status": ("get", "patch", "update")}
SCALE: Mapping[str, Sequence[str]] = {"scale": ("get", "patch", "update"), "status": ("get", "patch", "update")}
SCALE_KINDS: Mapping[str, tuple[str, str, str]] = {"scale": ("autoscaling", "v1", "Scale")}
SCALE_PATHS: Mapping[str, str] = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}


def label_name(name: str, prefix: bool) -> Sequence[str]:
    return name_rules.dns_label(name, prefix=prefix)


def path_segment_name(name: str, prefix: bool) -> Sequence[str]:
    return name_rules.path_segment(name, prefix=prefix)
