"""The StatefulSet controller's decisions: pods with fixed names and claims of their own, one after the other."""

from vcbatch.core.workload.statefulset.decide import decide
from vcbatch.core.workload.statefulset.view import StatefulSetView, stateful_set_owner

__all__ = ["StatefulSetView", "decide", "stateful_set_owner"]
