"""Groups of nodes to which pods are sent by their namespace or annotations: the file `volcano-admission.conf`.

Source: volcano-sh/volcano `pkg/webhooks/config` and `pkg/webhooks/admission/pods/mutate`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from vcbatch.api import names
from vcbatch.api.crd.schemas import array, core_type, mapping
from vcbatch.api.crd.shape import shape_errors
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json

MOST_GROUPS: Final = 1000
_KEYS: Final = ("", "namespace", "annotation")
_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "resourceGroups": array(
            {
                "type": "object",
                "properties": {
                    "resourceGroup": {"type": "string"},
                    "object": {
                        "type": "object",
                        "properties": {"key": {"type": "string"}, "value": array({"type": "string"})},
                    },
                    "schedulerName": {"type": "string"},
                    "labels": mapping({"type": "string"}),
                    "tolerations": array(core_type("Toleration")),
                    "affinity": {"type": "string"},
                },
            }
        )
    },
}


class MalformedResourceGroups(ValueError):
    """An invalid configuration; the message names each field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """One group. `namespaces` and `annotations` (key and value) select its pods; with `by_name`, a pod may also name
    the group itself."""

    name: str
    namespaces: frozenset[str] = frozenset()
    annotations: frozenset[tuple[str, str]] = frozenset()
    by_name: bool = False
    scheduler: str = ""
    labels: Mapping[str, str]
    tolerations: Sequence[Json] = ()
    affinity: Json | None = None

    def takes(self, *, namespace: str, annotations: Mapping[str, Any]) -> bool:
        """Whether the group takes the pod."""
        if namespace in self.namespaces or any(annotations.get(key) == value for key, value in self.annotations):
            return True
        return self.by_name and bool(self.name) and annotations.get(names.RESOURCE_GROUP) == self.name


def parse_resource_groups(document: Any) -> tuple[ResourceGroup, ...]:
    """Parse a decoded configuration file and return its groups in order. Raises `MalformedResourceGroups`."""
    if document is None:
        return ()
    errors = [str(error) for error in shape_errors(document, _SCHEMA, "config")]
    if errors:
        raise MalformedResourceGroups("; ".join(errors))
    given = listed(cast(Json, document), "resourceGroups")
    if len(given) > MOST_GROUPS:
        raise MalformedResourceGroups(f"config.resourceGroups: {len(given)} groups, want at most {MOST_GROUPS}")
    return tuple(_group(group, f"config.resourceGroups[{index}]") for index, group in enumerate(given))


def _group(given: Json, path: str) -> ResourceGroup:
    known = part(part(_SCHEMA["properties"]["resourceGroups"], "items"), "properties")
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise MalformedResourceGroups(f"{path}: unknown {', '.join(unknown)}; known are {', '.join(known)}")
    chosen = part(given, "object")
    key, values = chosen.get("key") or "", listed(chosen, "value")
    if key not in _KEYS:
        raise MalformedResourceGroups(f"{path}.object.key: {key!r}, want namespace, annotation or nothing")
    by_annotation = key != "namespace"
    return ResourceGroup(
        name=given.get("resourceGroup") or "",
        namespaces=frozenset(() if by_annotation else values),
        annotations=frozenset(_pair(value, f"{path}.object.value") for value in values if by_annotation),
        by_name=not key,
        scheduler=given.get("schedulerName") or "",
        labels=part(given, "labels"),
        tolerations=tuple(listed(given, "tolerations")),
        affinity=_affinity(given.get("affinity") or "", f"{path}.affinity"),
    )


def _pair(text: str, path: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key.strip():
        raise MalformedResourceGroups(f"{path}: {text!r}, want an annotation such as 'volcano.sh/resource-group: gpu'")
    return key.strip(), value.strip()


def _affinity(text: str, path: str) -> Json | None:
    if not text.strip():
        return None
    try:
        affinity: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedResourceGroups(f"{path}: want the JSON of an affinity: {error}") from error
    errors = [str(found) for found in shape_errors(affinity, core_type("Affinity"), path)]
    if errors or not isinstance(affinity, dict):
        raise MalformedResourceGroups("; ".join(errors) or f"{path}: want a JSON object")
    return cast(Json, affinity)


def default_pod(pod: Json, groups: Sequence[ResourceGroup], *, namespace: str) -> Json:
    """The pod as changed by the first group that takes it: the group's labels in its node selector, its affinity where
    the pod has none, its tolerations in addition to the pod's, its scheduler. The unchanged pod where none takes it."""
    annotations = part(part(pod, "metadata"), "annotations")
    group = next((each for each in groups if each.takes(namespace=namespace, annotations=annotations)), None)
    if group is None:
        return pod
    spec = dict(part(pod, "spec"))
    if group.labels:
        spec["nodeSelector"] = {**part(spec, "nodeSelector"), **group.labels}
    if group.affinity is not None and not spec.get("affinity"):
        spec["affinity"] = group.affinity
    given = listed(spec, "tolerations")
    added = [toleration for toleration in group.tolerations if toleration not in given]
    if added:
        spec["tolerations"] = [*given, *added]
    if group.scheduler:
        spec["schedulerName"] = group.scheduler
    return {**pod, "spec": spec}
