"""On which nodes a program may run at all."""

from __future__ import annotations

from vcbatch.api import names
from vcbatch.api.loose import Json


def off_virtual_nodes() -> Json:
    """The affinity of a pod that has to run: a virtual node would only pretend to run it."""
    real: Json = {"key": names.VIRTUAL_NODE, "operator": "NotIn", "values": ["true"]}
    terms: Json = {"nodeSelectorTerms": [{"matchExpressions": [real]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
