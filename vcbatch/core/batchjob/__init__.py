"""The decisions of Kubernetes' own Job controller, which local mode has to make itself.

What a Job does in each standing is a row of `decide.TABLE`. Rules and words are those of Kubernetes 1.36
(`pkg/controller/job`); what is done otherwise is said where it is.
"""

from vcbatch.core.batchjob.decide import decide, stray
from vcbatch.core.batchjob.view import BatchJobView

__all__ = ["BatchJobView", "decide", "stray"]
