"""ConfigMaps that are read one by one."""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class ConfigMap(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    data: dict[str, str] | None = None
