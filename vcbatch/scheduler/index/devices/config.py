"""The ConfigMap about shared devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from vcbatch.api.yaml_reader import YamlError, only
from vcbatch.scheduler.index.devices.documents import listing, mapping
from vcbatch.scheduler.index.devices.mig import Geometry, Part
from vcbatch.scheduler.index.devices.npu import DEFAULT_CHIPS, Chip, read_chips

DEVICE_CONFIG: Final = "device-config.yaml"
"""The key in the ConfigMap."""


class DeviceConfig(NamedTuple):
    """The device configuration, and the errors in it.

    Attributes:
        models: how card models may be partitioned, by words in their type.
        factor: the factor for memory that pods request of a partitioned card.
        chips: the models of NPUs.
        error: why cards can't be used; empty if the configuration is valid.
        npu_error: why NPUs can't be used.
    """

    models: tuple[tuple[tuple[str, ...], tuple[Geometry, ...]], ...] = ()
    factor: int = 1
    chips: tuple[Chip, ...] = DEFAULT_CHIPS
    error: str = ""
    npu_error: str = ""

    def geometries(self, kind: str) -> tuple[Geometry, ...]:
        """How a card of that type may be partitioned; empty if that isn't configured."""
        for words, found in self.models:
            if any(word in kind for word in words):
                return found
        return ()


def read_config(text: str, *, resources: Mapping[str, str]) -> DeviceConfig:
    """Read the ConfigMap's text. `resources` has the supported names of vGPU resources, by the key that would rename
    them."""
    try:
        document = mapping(only(text).value)
    except (YamlError, TypeError) as error:
        return DeviceConfig(error=_error(error), npu_error=_error(error))
    found = DeviceConfig()
    try:
        found = _cards(mapping(document.get("nvidia")), resources)
    except (ValueError, TypeError) as error:
        found = found._replace(error=_error(error))
    try:
        return found._replace(chips=read_chips(document.get("vnpus")))
    except (ValueError, TypeError) as error:
        return found._replace(npu_error=_error(error))


def _error(error: Exception) -> str:
    return f"{DEVICE_CONFIG} can't be read: {str(error).splitlines()[0]}"


def _cards(nvidia: Mapping[str, Any], resources: Mapping[str, str]) -> DeviceConfig:
    renamed = next(
        (f"{key} is {nvidia[key]}, only {name} is supported"
         for key, name in resources.items() if nvidia.get(key) not in (None, "", name)),
        "",
    )  # fmt: skip
    models = tuple(
        (
            tuple(str(word) for word in listing(entry.get("models"))),
            tuple(_geometry(mapping(g)) for g in listing(entry.get("allowedGeometries"))),
        )
        for entry in map(mapping, listing(nvidia.get("knownMigGeometries")))
    )
    return DeviceConfig(models, max(int(nvidia.get("gpuMemoryFactor") or 1), 1), error=renamed)


def _geometry(given: Mapping[str, Any]) -> Geometry:
    parts = [mapping(part) for part in listing(given.get("geometries"))]
    return Geometry(
        str(given.get("group", "")),
        tuple(Part(str(p.get("name", "")), int(p.get("memory", 0)), int(p.get("count", 0))) for p in parts),
    )
