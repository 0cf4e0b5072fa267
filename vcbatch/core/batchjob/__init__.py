"""The decisions of Kubernetes' own Job controller, which local mode makes itself.

The action for a Job in each standing is a row of `decide.TABLE`. Rules and terms are those of Kubernetes 1.36
(`pkg/controller/job`); docstrings name what differs.
"""

from vcbatch.core.batchjob.decide import decide, stray
from vcbatch.core.batchjob.view import BatchJobView

__all__ = ["BatchJobView", "decide", "stray"]
