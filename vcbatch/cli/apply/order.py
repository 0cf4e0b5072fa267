"""The order in which objects are created: dependencies first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from vcbatch.api import resources
from vcbatch.api.loose import part
from vcbatch.api.resources import Resource
from vcbatch.cli.files.manifests import Manifest

_FIRST: Final = (
    resources.NAMESPACES,
    resources.CRDS,
    resources.PRIORITYCLASSES,
    resources.STORAGECLASSES,
    resources.PERSISTENTVOLUMES,
    resources.HYPERNODES,
    resources.QUEUES,
    resources.RESOURCEQUOTAS,
    resources.CONFIGMAPS,
    resources.SECRETS,
    resources.PERSISTENTVOLUMECLAIMS,
    resources.SERVICES,
    resources.JOBTEMPLATES,
)
_RANKS: Final[Mapping[Resource, int]] = {resource: rank for rank, resource in enumerate(_FIRST)}


def in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Dependencies first, queues below their parents; otherwise in the order of the files."""
    given = list(manifests)
    parents = {one.name: _parent(one) for one in given if one.resource == resources.QUEUES}

    def key(manifest: Manifest) -> tuple[int, int]:
        resource = manifest.resource
        rank = _RANKS.get(resource, len(_RANKS)) if resource is not None else len(_RANKS)
        return rank, _depth(manifest.name, parents) if resource == resources.QUEUES else 0

    return sorted(given, key=key)


def _parent(queue: Manifest) -> str:
    parent = part(queue.value, "spec").get("parent")
    return parent if isinstance(parent, str) else ""


def _depth(name: str, parents: Mapping[str, str]) -> int:
    """Number of the given queues above this one. A cycle, which the server rejects, ends the count."""
    above: set[str] = set()
    while name in parents and name not in above:
        above.add(name)
        name = parents[name]
    return len(above)
