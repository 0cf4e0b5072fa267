"""The JobTemplate controller's decision: which jobs were created from a template."""

from vcbatch.core.jobtemplate.decide import MOST_NAMED, decide

__all__ = ["MOST_NAMED", "decide"]
