"""The actual cpu and memory usage of nodes, as a metrics source measured it.

No API serves these objects: the scheduler's runtime creates them from the `metrics` section of its configuration.
"""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class NodeUsage(Wire):
    """One node, by its name. `cpu` and `memory` are fractions of its capacity, averaged over the source's window;
    `observed_at` is when they were measured, in seconds since the epoch."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    cpu: float = 0.0
    memory: float = 0.0
    observed_at: float = 0.0
