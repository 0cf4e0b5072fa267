"""Namespaces as the scheduler reads them: affinity terms select them by label."""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class Namespace(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
