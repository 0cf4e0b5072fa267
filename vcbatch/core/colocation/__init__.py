"""The colocation controller's decisions: which ColocationConfiguration applies to a pod."""

from vcbatch.core.colocation.decide import ColocationView, decide

__all__ = ["ColocationView", "decide"]
