"""The colocation controller's decisions: which ColocationConfiguration a pod follows."""

from vcbatch.core.colocation.decide import ColocationView, decide

__all__ = ["ColocationView", "decide"]
