"""The nodes on which a program can run."""

from __future__ import annotations

from vcbatch.api import names
from vcbatch.api.loose import Json


def off_virtual_nodes() -> Json:
    """The affinity of a pod that has to run: pods on virtual nodes are only simulated."""
    real: Json = {"key": names.VIRTUAL_NODE, "operator": "NotIn", "values": ["true"]}
    terms: Json = {"nodeSelectorTerms": [{"matchExpressions": [real]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
