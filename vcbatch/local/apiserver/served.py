"""The set of served resources: the built-in ones, and those that CustomResourceDefinitions add and remove."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.registry import CustomKinds, Served

Json = dict[str, Any]


class ServedSet:
    """Finds entries by group, version and plural. `all` is a new list object whenever the set changed."""

    def __init__(self, built_in: Sequence[Served], custom: CustomKinds | None = None) -> None:
        self._built_in = list(built_in)
        self._custom = custom
        self.built_in_groups = {entry.resource.group for entry in built_in}
        self.all: Sequence[Served] = ()
        self._by_path: dict[tuple[str, str, str], Served] = {}
        self._by_collection: dict[tuple[str, str], Served] = {}
        self._by_kind: dict[tuple[str, str], Served] = {}
        self._by_group_kind: dict[tuple[str, str], Served] = {}
        self._by_stored: dict[Resource, list[Served]] = {}
        self.refresh()

    def refresh(self) -> None:
        self.all = [*self._built_in, *(self._custom.served() if self._custom else ())]
        self._by_path = {}
        self._by_collection = {}
        self._by_kind = {}
        self._by_group_kind = {}
        self._by_stored = {}
        for entry in self.all:
            resource = entry.resource
            self._by_path[resource.group, resource.version, resource.plural] = entry
            self._by_kind[resource.api_version, resource.kind] = entry
            self._by_group_kind[resource.group, resource.kind] = entry
            stored = entry.stored_as
            self._by_stored.setdefault(stored, []).append(entry)
            # The entry that serves the stored form itself is the one that controllers read and write through.
            if stored == resource or (stored.group, stored.plural) not in self._by_collection:
                self._by_collection[stored.group, stored.plural] = entry

    def at(self, group: str, version: str, plural: str) -> Served | None:
        return self._by_path.get((group, version, plural))

    def stored_as(self, resource: Resource) -> Sequence[Served]:
        """The entries whose objects the store keeps under that resource, in the order of `all`."""
        return self._by_stored.get(resource, ())

    def of_collection(self, key: str) -> Served | None:
        """The entry through which a stored collection (`GROUP/PLURAL`) is handled."""
        group, _, plural = key.partition("/")
        return self._by_collection.get((group, plural))

    def of_kind(self, api_version: str, kind: str) -> Served | None:
        return self._by_kind.get((api_version, kind))

    def of_group_kind(self, group: str, kind: str) -> Served | None:
        """An entry of this kind, in any version: ownerReferences name the kind, and versions may change."""
        return self._by_group_kind.get((group, kind))

    def reconcile(self, crd: Json, now: datetime) -> Json | None:
        """Register a definition; returns its new status, or None."""
        if not self._custom:
            return None
        status = self._custom.reconcile(crd, now)
        self.refresh()
        return status

    def remove(self, name: str) -> None:
        if self._custom:
            self._custom.remove(name)
            self.refresh()
