"""The CustomResourceDefinitions of the local server; they are created, and updated by a newer version of vcbatch."""

from __future__ import annotations

from vcbatch.api.crd import render_all
from vcbatch.api.resources import CRDS
from vcbatch.interfaces.api import Api


async def ensure_definitions(api: Api) -> None:
    """Create or update the definition of every kind."""
    stored = {crd["metadata"]["name"]: crd for crd in (await api.list(CRDS)).items}
    for definition in render_all():
        name = definition["metadata"]["name"]
        existing = stored.get(name)
        if existing is None:
            await api.create(CRDS, definition)
        elif _versions(existing) != _versions(definition):
            await api.patch(CRDS, name, {"spec": {"versions": _versions(definition)}})


def _versions(definition: dict) -> list:
    return definition["spec"]["versions"]
