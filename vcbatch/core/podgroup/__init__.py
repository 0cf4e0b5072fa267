"""The PodGroup controller's decisions: a gang for pods that come without one."""

from vcbatch.core.podgroup.decide import GroupView, decide, generated_name, needs_sample

__all__ = ["GroupView", "decide", "generated_name", "needs_sample"]
